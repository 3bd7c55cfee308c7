"""A server whose calls make its lists grow: its own, or those of all its processes.

The file that is its argument holds the tools that all processes list.
"""

import sys

from scripted import Refusal, notify, serve, tools

alone = []


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
            notify("notifications/tools/list_changed")
    elif name not in alone + shared():
        raise Refusal(-32602, f"the server has no tool {name}")
    return {"content": [{"type": "text", "text": name}]}


serve("growing", {"tools": {"listChanged": True}}, {
    "tools/list": lambda request: {"tools": tools("enable", *alone, *shared())},
    "tools/call": call,
})
