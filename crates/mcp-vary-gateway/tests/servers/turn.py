"""A server that says who it is, and writes down what it does.

Its arguments are its name and a file, which gets a line for each start, for each call and for the end.
"""

import os
import sys
import threading
import time

from scripted import answer, notify, serve, tools, writing

NAME, DIARY = sys.argv[1:3]
grown = []


def note(what):
    with writing, open(DIARY, "a") as diary:
        diary.write(f"{NAME} {os.getpid()} {what}\n")


def work(request):
    arguments = request["params"].get("arguments", {})
    note(f"call {arguments.get('n')}")
    # Whoever asks decides when it has been long enough.
    while "until" in arguments and not os.path.exists(arguments["until"]):
        time.sleep(0.01)
    if "grow" in arguments:
        grown.extend(tools(arguments["grow"]))
        notify("notifications/tools/list_changed")
    answer(request, {"content": [], "by": NAME, "pid": os.getpid(), "n": arguments.get("n")})


def list_tools(request):
    note("list")
    who, change = tools("who", "change")
    return {"tools": [{**who, "annotations": {"readOnlyHint": True}}, change, *grown]}


note("start")
serve(NAME, {"tools": {"listChanged": True}}, {
    "tools/list": list_tools,
    "tools/call": lambda request: threading.Thread(target=work, args=(request,), daemon=True).start(),
})
note("end")
