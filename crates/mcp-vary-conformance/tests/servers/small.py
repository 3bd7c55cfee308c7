"""Small MCP servers of both revisions that know both extensions, by their documents alone.

`small.py` listens on a port of its own, and prints the address. Each path is a server: `/DEFAULT/MUTATION`. DEFAULT is what
clients get that declare nothing: `structure`, `markdown` (without a structure, of tools that do not say that they only
read), `tags-only` (the same of tools that do), `word` (all tools answer one word), `text` (markdown or plain text, and never
a structure), or `no-tools` (resources and prompts alone). `sessions` is `structure` with the variants in another order for
every other session. `swift` and `typescript` are the reference examples of content negotiation, line for line.
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


# What a mutation changes of the variant at a place.
VARIANT_MUTATIONS = {
    "no-description": (1, {"description": None}),
    "hint-a-list": (1, {"hints": {"contextSize": ["compact"]}}),
    "unknown-status": (2, {"status": "beta"}),
    "no-message": (3, {"deprecationInfo": {"replacement": "full"}}),
    "unknown-replacement": (3, {"deprecationInfo": {"message": "Use newer.", "replacement": "newer"}}),
    "unreadable-date": (3, {"deprecationInfo": {"message": "Use full.", "removalDate": "next summer"}}),
}
NEGOTIATION_MUTATIONS = {"version-a-number": {"version": 1}, "features-declared": {"features": ["agent"]}}


def equals(tags, key, *values):
    """The first of `values` that a tag `key=value` has; else the first of them."""
    return next((tag[len(key) + 1 :] for tag in tags if tag in [f"{key}={value}" for value in values]), values[0])


def swift(tags):
    """`WeatherServer`: JSON as a text."""
    form = equals(tags, "format", "markdown", "json", "text")
    verbosity = equals(tags, "verbosity", "standard", "compact", "verbose")
    lines = ["## Weather in Bern", "- **Temperature**: 8°C", "- **Humidity**: 72%"]
    if verbosity == "verbose":
        lines += ["- **UV Index**: 2 (low)", "", "_Data provided by WeatherAPI. Valid for 60 minutes._"]
    written = "\n".join(lines)
    if "agent" in tags and form == "json":
        more = {} if verbosity == "compact" else {"units": "metric", "source": "WeatherAPI", "valid_for_minutes": 60}
        written = json.dumps(DATA | more, sort_keys=True)
    return {"content": [{"type": "text", "text": written}]}


def typescript(tags):
    """`getWeatherToolResponse`: a structure with a wrapper for agents, and null for all others."""

    def markdown(verbosity):
        more = ["- **UV Index**: 2 (low)"] if verbosity == "verbose" else []
        return [{"type": "text", "text": "\n".join(["## Weather in Bern", "- **Temperature**: 8°C", *more])}]

    if "agent" in tags and "format=json" in tags:
        hints = {"reasoning_hints": ["8°C suggests appropriate clothing"]} if "sampling" in tags else {}
        return {"content": [], "structuredContent": {"type": "object", "properties": DATA | hints}}
    if "agent" not in tags:
        verbosity = equals(tags, "verbosity", "standard", "compact", "verbose")
        return {"content": markdown(verbosity), "structuredContent": None}
    return {"content": markdown("standard"), "structuredContent": DATA}


REFERENCES = {"swift": swift, "typescript": typescript}


class Refused(Exception):
    def __init__(self, code, message, **data):
        self.error = {"code": code, "message": message, "data": data}


class Session:
    def __init__(self, default, mutation):
        self.default, self.mutation, self.client = default, mutation, {"extensions": {}}
        self.is_modern, self.requests, self.number = False, 0, len(Handler.sessions)

    def tags(self):
        settings = self.client["extensions"].get(NEGOTIATION)
        features = settings.get("features", []) if isinstance(settings, dict) else []
        if self.mutation == "tags-remembered" and self.is_modern:
            features = Session.last = features or getattr(Session, "last", [])
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
        offered.append(variant("old", "tiny", "deprecated") | {"deprecationInfo": {"message": "Use full.", "replacement": "full"}})
        if self.mutation in VARIANT_MUTATIONS:
            at, changed = VARIANT_MUTATIONS[self.mutation]
            offered[at] |= changed
        if self.mutation == "set-shrinks" and self.requests > 1:
            offered.pop()
        if self.mutation == "deprecated-first":
            offered.insert(0, offered.pop())
        if self.default == "sessions" and self.number % 2 == 1 and not self.is_modern and not self.hints():
            offered.insert(0, offered.pop(1))
        wanted = self.hints().get("contextSize")
        wanted = wanted[0] if isinstance(wanted, list) and wanted else wanted
        if self.mutation == "experimental-first":
            offered.insert(0, offered.pop(2))
        elif wanted == "compact":
            offered[:2] = offered[1::-1]
        if self.mutation == "duplicate-id":
            offered.append(offered[1])
        return offered[:1] if self.mutation == "lone-variant" else offered

    def capabilities(self):
        settings = {"availableVariants": self.variants()}
        if self.mutation == "lone-variant":
            settings["moreVariantsAvailable"] = True
        if self.mutation == "more-as-text":
            settings["moreVariantsAvailable"] = "yes"
        if self.mutation == "empty-variants":
            settings["availableVariants"] = []
        declared = {"tools": {}, "resources": {"subscribe": True}, "prompts": {}, "completions": {}}
        if self.default == "no-tools":
            del declared["tools"]
        if (self.mutation == "capability-by-tag" and "agent" in self.tags()) or (self.mutation == "capability-by-hint" and self.hints()):
            declared["logging"] = {}
        extensions = {NEGOTIATION: NEGOTIATION_MUTATIONS.get(self.mutation, {}), VARIANTS: settings}
        if self.mutation == "bare-identifier":
            extensions["flag"] = {}
        if self.mutation == "undeclared":
            del extensions[NEGOTIATION]
        return declared | {"extensions": extensions}

    def select(self, method, params):
        ids = [variant["id"] for variant in self.variants()]
        meta = params.get("_meta", {})
        ignored = {"selector-ignored-in-call": method == "tools/call", "selector-ignored-in-get": method == "prompts/get"}
        ignored["selector-ignored-in-modern"] = self.is_modern
        if SELECTOR not in meta or ignored.get(self.mutation):
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

    def resolve(self, kind, verb, name, variant):
        names = LISTS[kind][1]
        known = names if variant == "full" or self.mutation in ("ids-not-scoped", f"{verb}-outside") else names[:-1]
        if name not in known:
            raise Refused(-32602, f"Unknown: {name}", activeVariant=variant)

    def result(self):
        """The weather, in the form that the client declared."""

        def text(written):
            return {"content": [{"type": "text", "text": written}]}

        if self.default == "word":
            return text("sunny")
        if self.default in REFERENCES:
            return REFERENCES[self.default](self.tags())
        declared = [] if self.mutation == "every-tag-ignored" else self.tags()
        lines = [f"- **{name}**: {value}" for name, value in DATA.items()]
        lines = lines[:2] if "verbosity=compact" in declared else lines
        markdown = text("\n".join(["## Weather in Bern", *lines]))
        if self.mutation == "text-contradicts":
            markdown = text("## Weather in Bern\n- **temperature_c**: 12\n- **humidity_percent**: 72")
        structure = {"structuredContent": DATA}
        known = ("format=text", "format=markdown") if self.default == "text" else ("format=json", "format=text", "format=markdown")
        formats = [tag[7:] for tag in declared if tag in known]
        if self.mutation == "unknown-value-empties" and any(tag.startswith("format=") and tag not in known for tag in declared):
            return {"content": []}
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
        if self.default == "text":
            return markdown
        if "agent" in declared or (self.mutation == "structure-for-all" and NEGOTIATION in self.client["extensions"]):
            return text("Bern: 8 degrees.") | structure
        return markdown | structure if self.default in ("structure", "sessions") else markdown

    def read(self, uri):
        """A page of a resource, in the form that the client declared."""
        declared = self.tags()
        kind, written = "text/plain", "Bern lies on the Aare."
        if "agent" in declared and "format=json" in declared:
            kind, written = "application/json", json.dumps({"city": "Bern", "river": "Aare"})
        elif "human" in declared:
            kind, written = "text/markdown", "# Bern\nIt lies on the *Aare*."
        if self.mutation == "json-resource-as-text" and kind == "application/json":
            written = "city: Bern"
        if self.mutation == "markdown-resource-as-json" and kind == "text/markdown":
            kind = "application/json"
        uri = "doc://elsewhere" if self.mutation == "other-uri" else uri
        return {"contents": [{"uri": uri, "mimeType": kind, "text": written}]}

    def answer(self, method, params):
        self.requests += 1
        if self.is_modern:
            self.client = {"extensions": {}} | params["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        if method in ("initialize", "server/discover"):
            self.client = {"extensions": {}} | params.get("capabilities", self.client)
            if self.mutation == "hints-required" and not self.is_modern and not self.hints():
                raise Refused(-32602, "Hints are missing")
            if self.mutation == "unknown-hints-refused" and any("/" in key for key in self.hints()):
                raise Refused(-32602, "Unknown hint")
            if self.mutation == "invalid-tag-refused" and any("@" in tag for tag in self.tags()):
                raise Refused(-32602, "Invalid tag")
            served = {"name": "small", "version": "1"}
            if self.is_modern:
                return {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": self.capabilities()}
            return {"protocolVersion": "2025-11-25", "capabilities": self.capabilities(), "serverInfo": served}
        if method == "ping":
            return {}
        variant = self.select(method, params)
        kind, _, verb = method.partition("/")
        if verb == "unsubscribe" and self.mutation == "unsubscribe-refused":
            raise Refused(-32602, "Not subscribed")
        if method == "resources/unsubscribe":
            return {}
        if method == "completion/complete":
            self.resolve("prompts", verb, params["ref"].get("name"), variant)
            return {"completion": {"values": ["Bern", "Thun"]}}
        if kind not in LISTS or (kind == "tools" and self.default == "no-tools") or verb not in ("list", "call", "read", "get", "subscribe"):
            raise Refused(-32601, "Method not found")
        if verb == "list":
            return self.page(kind, params, variant)
        self.resolve(kind, verb, params.get(LISTS[kind][0]), variant)
        if verb == "call":
            return self.result()
        if verb == "read":
            return self.read(params["uri"])
        block = {"type": "text", "text": "Hello."}
        content = [block] if self.mutation == "prompt-content-a-list" else block
        return {} if verb == "subscribe" else {"messages": [{"role": "user", "content": content}]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    sessions = {}

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        session = self.sessions.get(self.headers["Mcp-Session-Id"]) or Session(*self.path.split("/")[1:3])
        headers = {}
        session.is_modern = self.headers["MCP-Protocol-Version"] == "2026-07-28"
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
