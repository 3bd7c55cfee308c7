"""A legacy MCP server on standard streams that logs about a call when that call has long been answered."""

import json
import sys

pending = []
names = ["start", "work", "after", "noise", "flood"]


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def log(data):
    say({"method": "notifications/message", "params": {"level": "info", "data": data}})


for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    name = message.get("params", {}).get("name")
    if method == "initialize":
        say({"id": message["id"], "result": {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}, "logging": {}},
            "serverInfo": {"name": "logs", "version": "1"},
        }})
    elif method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
        say({"id": message["id"], "result": {"tools": tools}})
    elif method == "tools/call":
        if name == "start":
            # Goes on in the background.
            pending.append(message["params"]["arguments"].get("data"))
        elif name == "work":
            for data in pending:
                log(data)
            pending.clear()
        elif name == "noise":
            for at in range(message["params"]["arguments"]["lines"]):
                print(f"noise {at}", file=sys.stderr)
            sys.stderr.flush()
        elif name == "flood":
            # Asks and asks, and reads none of the answers meanwhile.
            for at in range(message["params"]["arguments"]["requests"]):
                say({"id": f"f-{at}", "method": "sampling/createMessage", "params": {}})
        say({"id": message["id"], "result": {"content": []}})
        if name == "after":
            log("after the answer")
            names.append(f"new-{len(names)}")
            say({"method": "notifications/tools/list_changed"})
    elif method in ("ping", "logging/setLevel"):
        say({"id": message["id"], "result": {}})
    elif method and "id" in message:
        say({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
