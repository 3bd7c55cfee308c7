"""An MCP server on standard streams with two variants, whose tool says which hints the client declared.

It offers `human` before `agent` to clients with the use case `chat`.

The argument is the revision that it speaks: `2025-11-25` or `2026-07-28`."""

import json
import sys

VARIANTS = "io.modelcontextprotocol/server-variants"
SELECTOR = "io.modelcontextprotocol/server-variant"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"

revision = sys.argv[1]
is_modern = revision == "2026-07-28"
declared = {}


def answer(request):
    global declared
    method, params = request["method"], request.get("params", {})
    seen = params.get("_meta", {}).get(CAPABILITIES, params.get("capabilities", declared))
    settings = seen.get("extensions", {}).get(VARIANTS, {})
    ids = ["agent", "human"]
    if "chat" in settings.get("variantHints", {}).get("hints", {}).get("useCase", []):
        ids.reverse()
    offered = [{"id": id, "description": "", "hints": {"useCase": "chat"}} for id in ids]
    capabilities = {"tools": {}, "extensions": {VARIANTS: {"availableVariants": offered}}}
    if method == "server/discover" and is_modern:
        return {"resultType": "complete", "supportedVersions": [revision], "capabilities": capabilities}
    if method == "initialize" and not is_modern:
        declared = params["capabilities"]
        server = {"name": "hints", "version": "1"}
        return {"protocolVersion": revision, "capabilities": capabilities, "serverInfo": server}
    meta = params.get("_meta", {})
    if method == "tools/list":
        return {"tools": [{"name": "hints", "inputSchema": {"type": "object"}}]}
    if method == "tools/call":
        settings = meta.get(CAPABILITIES, declared).get("extensions", {}).get(VARIANTS)
        shown = {"variant": meta.get(SELECTOR), "settings": settings}
        return {"content": [{"type": "text", "text": json.dumps(shown)}]}
    return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = answer(request)
    reply = {"jsonrpc": "2.0", "id": request["id"], "result": result}
    if result is None:
        reply = {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "Method not found"}}
    print(json.dumps(reply), flush=True)
