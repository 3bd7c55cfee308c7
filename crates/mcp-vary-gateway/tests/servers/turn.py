"""An MCP server on standard streams that says who it is, and writes down what it does.

Its arguments are its name and a file, which gets a line for each start, for each call and for the end.
"""

import json
import os
import sys
import threading
import time

NAME, DIARY = sys.argv[1:3]
writing = threading.Lock()
grown = []


def note(what):
    with writing, open(DIARY, "a") as diary:
        diary.write(f"{NAME} {os.getpid()} {what}\n")


def say(message):
    line = json.dumps({"jsonrpc": "2.0", **message}) + "\n"
    with writing:
        sys.stdout.write(line)
        sys.stdout.flush()


def call(request):
    arguments = request["params"].get("arguments", {})
    note(f"call {arguments.get('n')}")
    # Whoever asks decides when it has been long enough.
    while "until" in arguments and not os.path.exists(arguments["until"]):
        time.sleep(0.01)
    if "grow" in arguments:
        grown.append({"name": arguments["grow"], "inputSchema": {"type": "object"}})
        say({"method": "notifications/tools/list_changed"})
    result = {"content": [], "by": NAME, "pid": os.getpid(), "n": arguments.get("n")}
    say({"id": request["id"], "result": result})


note("start")
for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    if method == "initialize":
        say({"id": request["id"], "result": {
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": NAME, "version": "1"},
        }})
    elif method == "tools/list":
        note("list")
        tools = [
            {"name": "who", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
            {"name": "change", "inputSchema": {"type": "object"}},
        ]
        say({"id": request["id"], "result": {"tools": tools + grown}})
    elif method == "ping":
        say({"id": request["id"], "result": {}})
    elif method == "tools/call":
        threading.Thread(target=call, args=(request,), daemon=True).start()
    elif "id" in request:
        say({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
note("end")
