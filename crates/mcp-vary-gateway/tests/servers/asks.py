"""A legacy MCP server on standard streams that asks its client for things, and says what it got.

It asks for the roots as soon as there is a client that has some, and whenever they changed.
"""

import json
import os
import sys

waiting = {}
state = {"client": {}, "roots": None, "replies": [], "told": [], "asked": 0, "lists": 0}


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(request, result):
    say({"id": request["id"], "result": {"content": [], "pid": os.getpid(), **result}})


def ask(method, params, then):
    state["asked"] += 1
    # The same in every process, so that two of them use the same ids.
    waiting[state["asked"]] = then
    say({"id": state["asked"], "method": method, "params": params})
    return state["asked"]


def learn_roots():
    ask("roots/list", {}, lambda reply: state.update(roots=reply.get("result", reply)))


def call(request):
    arguments = request["params"].get("arguments", {})
    name = request["params"]["name"]
    method, params = arguments.get("method"), arguments.get("params", {})
    if name == "ask":
        ask(method, params, lambda reply: answer(request, {"reply": reply, "told": state["told"]}))
    elif name == "hang":
        # It is never answered.
        pass
    elif name == "later":
        # Asks when nobody has a call open.
        answer(request, {})
        ask(method, params, state["replies"].append)
    elif name == "never mind":
        asked = ask(method, params, state["replies"].append)
        say({"method": "notifications/cancelled", "params": {"requestId": asked, "reason": "never mind"}})
        waiting.pop("go", None)
        waiting["go"] = lambda: answer(request, {})
    elif name == "go":
        waiting.pop("go")()
        answer(request, {})
    elif name == "tell":
        answer(request, {})
        say({"method": method, "params": params})
    elif name == "visit":
        error = {"code": -32042, "message": "visit first", "data": {"elicitations": [params]}}
        say({"id": request["id"], "error": error})
    elif name == "state":
        answer(request, state)


for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        state["client"] = message["params"]["capabilities"]
        say({"id": message["id"], "result": {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}, "logging": {}},
            "serverInfo": {"name": "asks", "version": "1"},
        }})
    elif method == "notifications/initialized":
        if "roots" in state["client"]:
            learn_roots()
    elif method == "notifications/roots/list_changed":
        learn_roots()
    elif method == "tools/list":
        state["lists"] += 1
        names = ["ask", "hang", "later", "never mind", "go", "tell", "visit", "state"]
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
        say({"id": message["id"], "result": {"tools": tools}})
    elif method in ("ping", "logging/setLevel"):
        say({"id": message["id"], "result": {}})
    elif method == "tools/call":
        call(message)
    elif method and "id" in message:
        say({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
    elif method:
        state["told"].append(message)
    elif message.get("id") in waiting:
        waiting.pop(message["id"])(message)
