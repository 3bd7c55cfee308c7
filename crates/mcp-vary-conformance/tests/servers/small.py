"""Small MCP servers of 2025-11-25 that know both extensions, by their documents alone.

`small.py` listens on a port of its own, and prints the address. Each path is a server: `/DEFAULT/MUTATION`. DEFAULT is what
clients get that declare nothing: `structure`, `markdown` (without a structure, of tools that do not say that they only
read), `tags-only` (the same of tools that do), or `word` (all tools answer one word).
MUTATION breaks one sentence of the documents; `right` breaks none.
"""

import base64
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NEGOTIATION = "io.modelcontextprotocol/content-negotiation"
VARIANTS = "io.modelcontextprotocol/server-variants"
SELECTOR = "io.modelcontextprotocol/server-variant"
DATA = {"location": "Bern", "temperature_c": 8, "humidity_percent": 72, "uv_index": 2}
LISTS = {
    "tools": ("name", ["get_weather", "get_alerts", "debug"]),
    "resources": ("uri", ["doc://bern", "doc://lakes", "doc://log"]),
    "prompts": ("name", ["greet", "explain", "trace"]),
}


class Refused(Exception):
    def __init__(self, code, message, **data):
        self.error = {"code": code, "message": message, "data": data}


class Session:
    def __init__(self, default, mutation):
        self.default, self.mutation, self.client = default, mutation, {"extensions": {}}

    def tags(self):
        settings = self.client["extensions"].get(NEGOTIATION)
        features = settings.get("features", []) if isinstance(settings, dict) else []
        return [tag for tag in features if isinstance(tag, str)] if isinstance(features, list) else []

    def hints(self):
        settings = self.client["extensions"].get(VARIANTS)
        declared = settings.get("variantHints") if isinstance(settings, dict) else None
        found = declared.get("hints") if isinstance(declared, dict) else None
        return found if isinstance(found, dict) else {}

    def variants(self):
        def variant(name, size, status="stable"):
            return {"id": name, "description": f"{name} descriptions", "hints": {"contextSize": size}, "status": status}

        offered = [variant("full", "standard"), variant("short", "compact"), variant("next", "verbose", "experimental")]
        wanted = self.hints().get("contextSize")
        wanted = wanted[0] if isinstance(wanted, list) and wanted else wanted
        if self.mutation == "experimental-first":
            offered.reverse()
        elif wanted == "compact":
            offered[:2] = offered[1::-1]
        if self.mutation == "duplicate-id":
            offered.append(offered[1])
        return offered[:1] if self.mutation == "lone-variant" else offered

    def capabilities(self):
        settings = {"availableVariants": self.variants()}
        if self.mutation == "lone-variant":
            settings["moreVariantsAvailable"] = True
        declared = {"tools": {}, "resources": {"subscribe": True}, "prompts": {}}
        if (self.mutation == "capability-by-tag" and "agent" in self.tags()) or (self.mutation == "capability-by-hint" and self.hints()):
            declared["logging"] = {}
        return declared | {"extensions": {NEGOTIATION: {}, VARIANTS: settings}}

    def select(self, method, params):
        ids = [variant["id"] for variant in self.variants()]
        meta = params.get("_meta", {})
        if SELECTOR not in meta or (self.mutation == "selector-ignored-in-call" and method == "tools/call"):
            return ids[1] if self.mutation == "default-is-the-second" else ids[0]
        if meta[SELECTOR] in ids:
            return meta[SELECTOR]
        if self.mutation == "fallback":
            return ids[0]
        code = -32600 if self.mutation == "wrong-code" else -32602
        message = "Unknown variant" if self.mutation == "wrong-message" else "Invalid server variant"
        visible = ids + ["internal"] if self.mutation == "invisible-id" else ids
        raise Refused(code, message, requestedVariant=meta[SELECTOR], availableVariants=visible)

    def page(self, kind, params, variant):
        key, names = LISTS[kind]
        names = names if variant == "full" else names[:-1]
        if self.mutation == "tools-by-tag" and kind == "tools" and "agent" in self.tags():
            names = names[1:]
        start = 0
        if "cursor" in params:
            try:
                owner, start = base64.b64decode(params["cursor"], validate=True).decode().split(":")
                start = int(start)
            except ValueError:
                raise Refused(-32602, "Invalid cursor", activeVariant=variant)
            if owner != variant and self.mutation != "foreign-cursor":
                message = "Cursor invalid for requested variant"
                raise Refused(-32602, message, cursorVariant=owner, requestedVariant=variant)
        elements = [{key: name, "name": name, "description": f"{name}, {variant}"} for name in names[start : start + 1]]
        for element in elements if kind == "tools" else []:
            element["inputSchema"] = {"type": "object", "properties": {"city": {"type": "string"}}}
            if self.default != "markdown":
                element["annotations"] = {"readOnlyHint": True}
        more = {"nextCursor": base64.b64encode(f"{variant}:{start + 1}".encode()).decode()} if start + 1 < len(names) else {}
        return {kind: elements} | more

    def resolve(self, kind, params, variant):
        key, names = LISTS[kind]
        known = names if variant == "full" or self.mutation == "ids-not-scoped" else names[:-1]
        if params.get(key) not in known:
            raise Refused(-32602, f"Unknown: {params.get(key)}", activeVariant=variant)

    def result(self):
        """The weather, in the form that the client declared."""

        def text(written):
            return {"content": [{"type": "text", "text": written}]}

        if self.default == "word":
            return text("sunny")
        declared = [] if self.mutation == "every-tag-ignored" else self.tags()
        lines = [f"- **{name}**: {value}" for name, value in DATA.items()]
        lines = lines[:2] if "verbosity=compact" in declared else lines
        markdown = text("\n".join(["## Weather in Bern", *lines]))
        structure = {"structuredContent": DATA}
        formats = [tag[7:] for tag in declared if tag in ("format=json", "format=text", "format=markdown")]
        wanted = formats[0] if formats else "markdown" if "human" in declared else None
        if wanted == "json" and self.mutation == "json-alone-ignored" and "agent" not in declared:
            wanted = None
        if wanted == "json" and "!agent" in declared and self.mutation != "not-agent-ignored":
            return text(json.dumps(DATA)) | structure
        if wanted == "json":
            if self.mutation == "json-without-structure":
                return text(json.dumps(DATA))
            return (text(json.dumps(DATA)) if self.mutation == "json-with-text" else {"content": []}) | structure
        if wanted == "text":
            return text("In Bern it has 8 degrees, a humidity of 72 % and a UV index of 2.")
        if wanted == "markdown":
            written = text(json.dumps(DATA)) if self.mutation == "markdown-as-json" else markdown
            return written | structure if self.mutation == "markdown-with-structure" else written
        if "agent" in declared or (self.mutation == "structure-for-all" and NEGOTIATION in self.client["extensions"]):
            return text("Bern: 8 degrees.") | structure
        return markdown | structure if self.default == "structure" else markdown

    def answer(self, method, params):
        if method == "initialize":
            self.client = {"extensions": {}} | params["capabilities"]
            if self.mutation == "unknown-hints-refused" and any("/" in key for key in self.hints()):
                raise Refused(-32602, "Unknown hint")
            if self.mutation == "invalid-tag-refused" and any("@" in tag for tag in self.tags()):
                raise Refused(-32602, "Invalid tag")
            served = {"name": "small", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": self.capabilities(), "serverInfo": served}
        if method == "ping":
            return {}
        if method == "server/discover":
            raise Refused(-32601, "Method not found")
        variant = self.select(method, params)
        kind, _, verb = method.partition("/")
        if verb == "unsubscribe" and self.mutation == "unsubscribe-refused":
            raise Refused(-32602, "Not subscribed")
        if method == "resources/unsubscribe":
            return {}
        if kind not in LISTS or verb not in ("list", "call", "read", "get", "subscribe"):
            raise Refused(-32601, "Method not found")
        if verb == "list":
            return self.page(kind, params, variant)
        self.resolve(kind, params, variant)
        if verb == "call":
            return self.result()
        if verb == "read":
            return {"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": "Bern lies on the Aare."}]}
        return {} if verb == "subscribe" else {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello."}}]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    sessions = {}

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        session = self.sessions.get(self.headers["Mcp-Session-Id"]) or Session(*self.path.split("/")[1:3])
        headers = {}
        if message["method"] == "initialize":
            headers = {"Mcp-Session-Id": str(len(self.sessions))}
            self.sessions[headers["Mcp-Session-Id"]] = session
        if "id" not in message:
            return self.respond(202, b"", headers)
        response = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            response["result"] = session.answer(message["method"], message.get("params") or {})
        except Refused as refused:
            response["error"] = refused.error
        return self.respond(200, json.dumps(response).encode(), headers | {"Content-Type": "application/json"})

    def do_DELETE(self):
        self.respond(200, b"", {})

    def respond(self, status, body, headers):
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
