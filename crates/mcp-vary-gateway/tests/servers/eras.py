"""An MCP server on standard streams that speaks one era for as long as it runs: that of the first request.

So do servers that are built with the official SDKs, which name only 2026-07-28 in `server/discover` although they
know `initialize`. The first argument says which eras it has: `both`; `refuses`, which has only 2026-07-28 and refuses
`initialize`; `ignores`, which does not answer that. The second one is a file that each process writes to.
"""

import json
import os
import sys

from scripted import Refusal, say, tools

KIND, LOG = sys.argv[1], sys.argv[2]
INFO = {"name": "eras", "version": "1"}
state = {"era": None, "calls": 0}
waiting = {}


def note(what):
    with open(LOG, "a") as log:
        log.write(what + "\n")


def respond(request, members):
    if state["era"] == "modern":
        info = {"io.modelcontextprotocol/serverInfo": INFO}
        members = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "_meta": info, **members}
    say({"id": request["id"], "result": members})


def text(text, **members):
    return {"content": [{"type": "text", "text": text}], **members}


def call(request):
    state["calls"] += 1
    if request["params"]["name"] == "era":
        return text(f"{state['era']} {state['calls']}")
    if state["era"] == "modern":
        return text("no back-channel", isError=True)
    waiting["q"] = request
    arguments = request["params"]["arguments"]
    say({"id": "q", "method": arguments["method"], "params": arguments.get("params", {})})
    return None


def answer(request):
    method = request["method"]
    if method == "initialize" and KIND == "refuses":
        raise Refusal(-32601, "Method not found")
    if method == "initialize" and KIND == "ignores":
        return None
    state["era"] = state["era"] or ("legacy" if method == "initialize" else "modern")
    match method, state["era"]:
        case "initialize", "modern":
            raise Refusal(-32022, "this connection is of the other era")
        case "initialize", _:
            revision = request["params"]["protocolVersion"]
            return {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": INFO}
        case "server/discover", "legacy":
            raise Refusal(-32600, "this connection is of the other era")
        case "server/discover", _:
            return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        case "ping", _:
            return {}
        case "tools/list", _:
            return {"tools": tools("era", "ask")}
        case "tools/call", _:
            return call(request)
    raise Refusal(-32601, "Method not found")


note(f"begins {os.getpid()}")
for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        respond(waiting.pop(message["id"]), text(json.dumps(message.get("result", message.get("error")))))
    elif "id" in message:
        note(message["method"])
        try:
            if (members := answer(message)) is not None:
                respond(message, members)
        except Refusal as refusal:
            say({"id": message["id"], "error": refusal.error})
note(f"ends {os.getpid()}")
