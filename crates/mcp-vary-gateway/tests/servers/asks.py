"""A server that asks its client for things, and says what it got.

It asks for the roots as soon as there is a client that has some, and whenever they changed.
"""

import os

from scripted import Refusal, answer, notify, say, serve, tools

waiting = {}
state = {"client": {}, "roots": None, "replies": [], "told": [], "asked": 0, "lists": 0}


def done(request, result):
    answer(request, {"content": [], "pid": os.getpid(), **result})


def ask(method, params, then):
    state["asked"] += 1
    # The same in every process, so that two of them use the same ids.
    waiting[state["asked"]] = then
    say({"id": state["asked"], "method": method, "params": params})
    return state["asked"]


def learn_roots(message=None):
    ask("roots/list", {}, lambda reply: state.update(roots=reply.get("result", reply)))


def initialized(message):
    if "roots" in state["client"]:
        learn_roots()


def list_tools(request):
    state["lists"] += 1
    return {"tools": tools("ask", "hang", "later", "never mind", "go", "tell", "visit", "state")}


def call(request):
    arguments = request["params"].get("arguments", {})
    name = request["params"]["name"]
    method, params = arguments.get("method"), arguments.get("params", {})
    if name == "ask":
        ask(method, params, lambda reply: done(request, {"reply": reply, "told": state["told"]}))
    elif name == "hang":
        # It is never answered.
        pass
    elif name == "later":
        # Asks when nobody has a call open.
        done(request, {})
        ask(method, params, state["replies"].append)
    elif name == "never mind":
        asked = ask(method, params, state["replies"].append)
        notify("notifications/cancelled", {"requestId": asked, "reason": "never mind"})
        waiting["go"] = lambda: done(request, {})
    elif name == "go":
        waiting.pop("go")()
        done(request, {})
    elif name == "tell":
        done(request, {})
        notify(method, params)
    elif name == "visit":
        raise Refusal(-32042, "visit first", data={"elicitations": [params]})
    elif name == "state":
        done(request, state)


def otherwise(message):
    if "method" in message:
        state["told"].append(message)
    elif message.get("id") in waiting:
        waiting.pop(message["id"])(message)


def initialize(request):
    state["client"] = request["params"]["capabilities"]
    return {
        "protocolVersion": request["params"]["protocolVersion"],
        "capabilities": {"tools": {}, "logging": {}},
        "serverInfo": {"name": "asks", "version": "1"},
    }


serve("asks", {}, {
    "initialize": initialize,
    "notifications/initialized": initialized,
    "notifications/roots/list_changed": learn_roots,
    "tools/list": list_tools,
    "logging/setLevel": lambda request: {},
    "tools/call": call,
}, otherwise)
