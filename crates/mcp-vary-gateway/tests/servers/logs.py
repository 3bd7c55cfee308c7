"""A server that logs about a call when that call has long been answered."""

import sys

from scripted import answer, notify, say, serve, tools

pending = []
names = ["start", "work", "after", "noise", "flood"]


def log(data):
    notify("notifications/message", {"level": "info", "data": data})


def call(request):
    arguments = request["params"].get("arguments", {})
    name = request["params"]["name"]
    if name == "start":
        # Goes on in the background.
        pending.append(arguments.get("data"))
    elif name == "work":
        for data in pending:
            log(data)
        pending.clear()
    elif name == "noise":
        for at in range(arguments["lines"]):
            print(f"noise {at}", file=sys.stderr)
        sys.stderr.flush()
    elif name == "flood":
        # Asks and asks, and reads none of the answers meanwhile.
        for at in range(arguments["requests"]):
            say({"id": f"f-{at}", "method": "sampling/createMessage", "params": {}})
    answer(request, {"content": []})
    if name == "after":
        log("after the answer")
        names.append(f"new-{len(names)}")
        notify("notifications/tools/list_changed")


serve("logs", {"tools": {"listChanged": True}, "logging": {}}, {
    "tools/list": lambda request: {"tools": tools(*names)},
    "tools/call": call,
    "logging/setLevel": lambda request: {},
})
