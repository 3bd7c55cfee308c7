"""A process of 2025-11-25 whose tool `who` says which process it is."""

import json
import os
import sys

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    capabilities = {"tools": {}}
    server = {"name": "who", "version": "1"}
    results = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": server},
        "tools/list": {"tools": [{"name": "who", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": str(os.getpid())}]},
        "ping": {},
    }
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] in results:
        answer["result"] = results[message["method"]]
    else:
        answer["error"] = {"code": -32601, "message": "Method not found"}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
