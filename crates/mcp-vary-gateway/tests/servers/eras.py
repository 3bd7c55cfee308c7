"""An MCP server on standard streams that speaks one era for as long as it runs: that of the first request.

So do servers that are built with the official SDKs, which name only 2026-07-28 in `server/discover` although they
know `initialize`. The first argument says which eras it has: `both`; `refuses`, which has only 2026-07-28 and refuses
`initialize`; `ignores`, which does not answer that. The second one is a file that each process writes to.
"""

import json
import os
import sys

from scripted import say, tools

KIND, LOG = sys.argv[1], sys.argv[2]
state = {"era": None, "calls": 0}
waiting = {}


def note(what):
    with open(LOG, "a") as log:
        log.write(what + "\n")


def result(request, members):
    if state["era"] == "modern":
        info = {"io.modelcontextprotocol/serverInfo": {"name": "eras", "version": "1"}}
        members = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "_meta": info, **members}
    say({"id": request["id"], "result": members})


def refuse(request, code, text):
    say({"id": request["id"], "error": {"code": code, "message": text}})


def text(request, text, **members):
    result(request, {"content": [{"type": "text", "text": text}], **members})


def call(request):
    state["calls"] += 1
    name = request["params"]["name"]
    if name == "era":
        text(request, f"{state['era']} {state['calls']}")
    elif state["era"] == "modern":
        text(request, "no back-channel", isError=True)
    else:
        waiting["q"] = request
        method = request["params"]["arguments"]["method"]
        say({"id": "q", "method": method, "params": request["params"]["arguments"].get("params", {})})


def answer(request):
    method = request["method"]
    era = "legacy" if method == "initialize" else "modern"
    if method == "initialize" and KIND != "both":
        if KIND == "refuses":
            refuse(request, -32601, "Method not found")
        return
    if state["era"] is None:
        state["era"] = era
    if method == "initialize" and state["era"] == "modern":
        refuse(request, -32022, "this connection is of the other era")
    elif method == "initialize":
        revision = request["params"]["protocolVersion"]
        info = {"name": "eras", "version": "1"}
        result(request, {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "server/discover" and state["era"] == "legacy":
        refuse(request, -32600, "this connection is of the other era")
    elif method == "server/discover":
        result(request, {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
    elif method == "ping":
        result(request, {})
    elif method == "tools/list":
        result(request, {"tools": tools("era", "ask")})
    elif method == "tools/call":
        call(request)
    else:
        refuse(request, -32601, "Method not found")


note(f"begins {os.getpid()}")
for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        text(waiting.pop(message["id"]), json.dumps(message.get("result", message.get("error"))))
    elif "id" in message:
        note(message["method"])
        answer(message)
note(f"ends {os.getpid()}")
