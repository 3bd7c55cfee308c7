"""An MCP server on standard streams that declares no capability.

The first argument is its era, `legacy` or `modern`; the second one a file to which it writes each method that it is
asked for. It has tools and completions, and refuses everything else on standard error, too.
"""

import json
import sys

ERA, LOG = sys.argv[1], sys.argv[2]
INFO = {"name": "undeclared", "version": "1"}


def answer(method, params):
    if method == "initialize" and ERA == "legacy":
        return {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": INFO}
    if method == "server/discover" and ERA == "modern":
        return {"supportedVersions": ["2026-07-28"], "capabilities": {}}
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [{"name": "one", "inputSchema": {"type": "object"}}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "called " + params["name"]}]}
    if method == "completion/complete":
        return {"completion": {"values": ["Bern"]}}
    return None


for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    if "id" not in request or method is None:
        continue
    with open(LOG, "a") as log:
        log.write(method + "\n")
    result = answer(method, request.get("params", {}))
    if result is None:
        print(f"validation error: {method}", file=sys.stderr, flush=True)
        outcome = {"error": {"code": -32601, "message": "Method not found"}}
    else:
        if ERA == "modern":
            result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}
        outcome = {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome}), flush=True)
