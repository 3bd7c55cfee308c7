"""An MCP server on standard streams whose two callers go step by step, at the same time."""

import json
import sys


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


waiting = []
for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    if method == "initialize":
        say({"id": request["id"], "result": {
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "pace", "version": "1"},
        }})
    elif method == "tools/list":
        tool = {"name": "pace", "inputSchema": {"type": "object"}}
        say({"id": request["id"], "result": {"tools": [tool]}})
    elif method == "tools/call":
        waiting.append(request)
        if len(waiting) < 2:
            continue
        for step in range(1, 4):
            for call in waiting:
                say({"method": "notifications/progress", "params": {
                    "progressToken": call["params"]["_meta"]["progressToken"],
                    "progress": step,
                    "message": call["params"]["arguments"]["who"],
                }})
        for call in reversed(waiting):
            say({"id": call["id"], "result": {"content": [], "who": call["params"]["arguments"]["who"]}})
        waiting = []
    elif "id" in request:
        say({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
