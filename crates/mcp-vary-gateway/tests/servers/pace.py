"""A server whose two callers go step by step, at the same time."""

from scripted import answer, notify, serve, tools

waiting = []


def call(request):
    waiting.append(request)
    if len(waiting) < 2:
        return
    for step in range(1, 4):
        for each in waiting:
            notify("notifications/progress", {
                "progressToken": each["params"]["_meta"]["progressToken"],
                "progress": step,
                "message": each["params"]["arguments"]["who"],
            })
    for each in reversed(waiting):
        answer(each, {"content": [], "who": each["params"]["arguments"]["who"]})
    waiting.clear()


serve("pace", {"tools": {}}, {"tools/list": lambda request: {"tools": tools("pace")}, "tools/call": call})
