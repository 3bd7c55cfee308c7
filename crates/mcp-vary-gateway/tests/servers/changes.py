"""A server that tells of its resources in the session whose calls change them."""

from scripted import notify, serve, tools

subscribed = []


def tell(uri):
    notify("notifications/resources/updated", {"uri": uri})


def subscribe(request):
    subscribed.append(request["params"]["uri"])
    return {}


def unsubscribe(request):
    subscribed.remove(request["params"]["uri"])
    return {}


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


serve("changes", {"tools": {}, "resources": {"subscribe": True}}, {
    "tools/list": lambda request: {"tools": tools("change", "touch", "state")},
    "resources/list": lambda request: {"resources": [{"uri": uri, "name": uri} for uri in ["note:a", "note:b"]]},
    "resources/templates/list": lambda request: {"resourceTemplates": []},
    "resources/subscribe": subscribe,
    "resources/unsubscribe": unsubscribe,
    "tools/call": call,
})
