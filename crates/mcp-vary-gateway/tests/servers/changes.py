"""A legacy MCP server on standard streams that tells of its resources in the session whose calls change them."""

import json
import sys

subscribed = []


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tell(uri):
    say({"method": "notifications/resources/updated", "params": {"uri": uri}})


def call(request):
    arguments = request["params"].get("arguments", {})
    match request["params"]["name"]:
        case "change":
            # Whoever did not ask to hear of it must not hear of it, whatever the server says.
            for uri in arguments["uris"]:
                tell(uri)
        case "touch":
            # Where that is not known by then, nobody is told.
            tell(arguments["uri"]) if arguments["uri"] in subscribed else None
    return {"content": [], "subscribed": subscribed}


def answer(request):
    match request["method"]:
        case "initialize":
            return {
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}, "resources": {"subscribe": True}},
                "serverInfo": {"name": "changes", "version": "1"},
            }
        case "tools/list":
            names = ["change", "touch", "state"]
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
        case "resources/list":
            return {"resources": [{"uri": uri, "name": uri} for uri in ["note:a", "note:b"]]}
        case "resources/subscribe":
            subscribed.append(request["params"]["uri"])
        case "resources/unsubscribe":
            subscribed.remove(request["params"]["uri"])
        case "tools/call":
            return call(request)
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        say({"id": message["id"], "result": answer(message)})
