"""A legacy MCP server on standard streams whose calls make its lists grow: its own, or those of all its processes.

The file that is its argument holds the tools that all processes list.
"""

import json
import sys

alone = []


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def shared():
    with open(sys.argv[1]) as file:
        return file.read().split()


def call(request):
    name, arguments = request["params"]["name"], request["params"].get("arguments", {})
    if name == "enable":
        if arguments.get("everywhere"):
            with open(sys.argv[1], "a") as file:
                file.write(arguments["tool"] + "\n")
        else:
            alone.append(arguments["tool"])
        for _ in range(arguments.get("times", 1)):
            say({"method": "notifications/tools/list_changed"})
    elif name not in alone + shared():
        return {"error": {"code": -32602, "message": f"the server has no tool {name}"}}
    return {"result": {"content": [{"type": "text", "text": name}]}}


def answer(request):
    match request["method"]:
        case "initialize":
            return {"result": {
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "growing", "version": "1"},
            }}
        case "tools/list":
            names = ["enable", *alone, *shared()]
            return {"result": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}}
        case "tools/call":
            return call(request)
    return {"error": {"code": -32601, "message": "Method not found"}}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        say({"id": message["id"], **answer(message)})
