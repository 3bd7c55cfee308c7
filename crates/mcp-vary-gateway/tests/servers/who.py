"""A process of 2025-11-25 whose tool `who` says which process it is.

With arguments, it notes its start in the file of the first, waits the seconds of the second, and computes those of the third.
"""

import json
import os
import sys
import time

if sys.argv[1:]:
    with open(sys.argv[1], "a") as starts:
        starts.write("x")
    time.sleep(float(sys.argv[2]))
    while time.process_time() < float(sys.argv[3]):
        pass

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
