"""A scripted MCP server on standard streams.

Its arguments are its tempers, see TEMPERS: that of its first start, of its second, and so on; the last one stays.
Where there are several, the environment names a file, STARTS, that gets a line for each start.
"""

import json
import os
import signal
import subprocess
import sys
import time

starts = 1
if "STARTS" in os.environ:
    with open(os.environ["STARTS"], "a+") as file:
        file.write(f"{os.getpid()}\n")
        file.flush()
        file.seek(0)
        starts = len(file.readlines())
TEMPER = (sys.argv[1:] or ["legacy"])[:starts][-1]
seen = []


def raw(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def say(message):
    raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def answer(request, result):
    say({"id": request["id"], "result": result})


def warn(text):
    print(text, file=sys.stderr, flush=True)


def refuse(request, code, message, **data):
    say({"id": request["id"], "error": {"code": code, "message": message, **data}})


def initialize(request):
    version = os.environ.get("REVISION", request["params"]["protocolVersion"])
    answer(request, {
        "protocolVersion": version,
        "capabilities": {"tools": {"listChanged": True}, "logging": {}},
        "serverInfo": {"name": "peer", "version": "1.10"},
        "instructions": "Be kind.",
    })


def discover(request):
    answer(request, {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28", "2025-11-25"] if TEMPER == "dual" else ["2026-07-28"],
        "capabilities": {"tools": {"listChanged": True}, "prompts": {}},
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "peer", "version": "2"}},
    })


def refuse_revision(request):
    refuse(request, -32022, "Unsupported", data={"supported": ["2026-07-28"], "requested": "2026-07-28"})


def discover_again(request):
    again = [message["method"] for message in seen].count("server/discover") > 1
    (discover if again else refuse_revision)(request)


def discover_late(request):
    if "initialize" in [message["method"] for message in seen]:
        discover(request)


def discover_after_a_refusal(request):
    """As a process of both eras that needs long to answer its first request, and fixes its era by it."""
    refuse_revision(request)
    time.sleep(0.2)
    discover(seen[0])


def discover_slowly(request):
    time.sleep(0.5)
    discover(request)


def initialize_after_a_refusal(request):
    refuse(request, -32022, "Unsupported", data={"supported": ["2025-11-25"], "requested": "2026-07-28"})
    time.sleep(0.5)
    initialize(seen[0])


def first_fails(request):
    again = [message["method"] for message in seen].count("server/discover") > 1
    discover(request) if again else refuse(request, -32603, "still starting")


# What a server does with `server/discover` and `initialize`.
TEMPERS = {
    "legacy": (lambda r: refuse(r, -32601, "Method not found"), initialize),
    "picky": (lambda r: refuse(r, -32602, "Received request before initialization"), initialize),
    "silent": (lambda r: None, initialize),
    "dies": (lambda r: sys.exit("expected initialize"), initialize),
    "modern": (discover, lambda r: refuse(r, -32601, "2026-07-28 only")),
    "dual": (discover, initialize),
    "late": (lambda r: None, lambda r: (discover(seen[0]), refuse(r, -32601, "2026-07-28 only"))),
    "older": (lambda r: refuse(r, -32022, "Unsupported", data={"supported": ["2025-03-26"]}), initialize),
    "future": (lambda r: refuse(r, -32022, "Unsupported", data={"supported": ["2099-01-01"]}), initialize),
    "forgetful": (discover_again, lambda r: refuse(r, -32601, "2026-07-28 only")),
    # Says nothing until `initialize` comes, and asks for another `server/discover` only then.
    "late-forgetful": (discover_late, lambda r: (refuse_revision(seen[0]), refuse(r, -32601, "2026-07-28 only"))),
    "slow-modern": (lambda r: None, discover_after_a_refusal),
    # Has sessions from the moment at which it answers `initialize`.
    "slow-dual": (discover_slowly, initialize),
    "slower-dual": (discover_slowly, lambda r: (time.sleep(1.5), initialize(r))),
    "slow-legacy": (initialize_after_a_refusal, lambda r: None),
    "errs-once": (first_fails, refuse_revision),
    # Leaves `server/discover` unanswered for ever, and needs a setting.
    "unset": (lambda r: None, lambda r: refuse(r, -32600, "API_KEY is not set")),
    "adamant": (refuse_revision, lambda r: refuse(r, -32601, "2026-07-28 only")),
    "hollow": (lambda r: refuse(r, -32601, "no"), lambda r: answer(r, {"capabilities": {}})),
    "string": (lambda r: refuse(r, -32601, "no"), lambda r: answer(r, "\x1b[2Jhello")),
    "garbage": (lambda r: raw(b"Usage: peer [OPTIONS]\n"), lambda r: raw(b"what?\n")),
    "unreadable": (lambda r: raw(b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"inconnu\xe9"}}\n' % r["id"]), initialize),
    "unusable": (lambda r: refuse(r, -32601, "no"), lambda r: raw(b'{"jsonrpc":"2.0","id":%d,"result":{"x":NaN}}\n' % r["id"])),
    "anonymous": (lambda r: raw(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}\n'), initialize),
    "marked": (lambda r: raw(b'\xef\xbb\xbf') or refuse(r, -32601, "no"), initialize),
    "huge": (lambda r: refuse(r, -32601, "no"), lambda r: raw(b"x" * 3_000_000)),
    "crashing": (lambda r: sys.exit("no luck"), initialize),
    "mute": (lambda r: None, lambda r: None),
    "half": (lambda r: refuse(r, -32601, "no"), lambda r: None),
    "half-loud": (lambda r: refuse(r, -32601, "no"), lambda r: warn("opening")),
    "loud": (lambda r: warn("opening"), lambda r: None),
    "chatty": (lambda r: say({"method": "notifications/message", "params": {}}), lambda r: None),
    "late-deaf": (lambda r: refuse(r, -32601, "no"), lambda r: (time.sleep(2.2), initialize(r))),
    "deaf": (lambda r: refuse(r, -32601, "Method not found"), initialize),
    "flapping": (lambda r: refuse(r, -32601, "Method not found"), initialize),
}


def call(request):
    arguments = request["params"].get("arguments", {})
    token = request["params"].get("_meta", {}).get("progressToken")
    name = request["params"]["name"]
    if name == "echo":
        answer(request, {"content": [], "echo": arguments})
    elif name == "count":
        for at in range(arguments["to"]):
            say({"method": "notifications/progress", "params": {"progressToken": token, "progress": at}})
        answer(request, {"content": []})
    elif name == "log":
        say({"method": "notifications/message", "params": {"level": "info", "data": arguments}})
    elif name == "say":
        say({"method": "notifications/message", "params": {"level": "info", "data": arguments}})
        answer(request, {"content": []})
    elif name == "noise":
        raw(b"Listening on stdout\n\n{\"level\":30}\n\xff\xfe\n[1\n")
        say({"id": 987654, "result": {}})
        say({"id": "x", "result": {}})
        say({"result": {}})
        answer(request, {"content": []})
        answer(request, {"content": ["again"]})
    elif name == "raw":
        raw(arguments["raw"].replace("ID", str(request["id"])).encode("latin-1") + b"\n")
    elif name == "logged":
        raw(b'sent {"jsonrpc":"2.0","id":%d,"result":{"content":["log"]}}\n' % request["id"])
        time.sleep(0.1)
        answer(request, {"content": []})
    elif name == "line":
        raw(b'{"jsonrpc":"2.0","id":%d,"result":{"x":"' % request["id"])
        raw(b"x" * arguments["size"] + b'"}}\n')
    elif name == "blob":
        raw(b"x" * arguments["size"] + b"\n")
    elif name == "ask":
        say({"id": "p", "method": "ping"})
        say({"id": 7, "method": "sampling/createMessage", "params": {}})
        answer(request, {"content": []})
    elif name == "relay":
        # Asks its client, and says what came back; "withdraw" takes it back at once.
        asked["q-%d" % request["id"]] = request
        say({"id": "q-%d" % request["id"], "method": arguments["method"], "params": {"n": arguments.get("n")}})
        if arguments.get("withdraw"):
            params = {"requestId": "q-%d" % request["id"], "reason": "never mind"}
            say({"method": "notifications/cancelled", "params": params})
            answer(request, {"content": []})
    elif name == "change":
        say({"method": "notifications/tools/list_changed"})
        say({"method": "notifications/resources/updated", "params": {"uri": "a:b"}})
        for method in ["notifications/tasks/status", "notifications/tasks"]:
            say({"method": method, "params": {"taskId": "t-1", "status": "working"}})
        answer(request, {"content": []})
    elif name == "die":
        sys.stderr.write("out of \x1b[31mluck\n")
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    elif name == "exit":
        answer(request, {"content": []})
        sys.exit(3)
    elif name == "spawn":
        # Deaf to a polite request, and holding our streams.
        code = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        child = subprocess.Popen([sys.executable, "-c", code], start_new_session=arguments.get("leaves", False))
        answer(request, {"pid": child.pid, "own": os.getpid()})
    elif name == "seen":
        answer(request, {"seen": seen})
    elif name == "who":
        answer(request, {"pid": os.getpid()})
    elif name == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif name == "work":
        time.sleep(arguments["seconds"])
        answer(request, {"content": []})
    elif name == "hang":
        pass


held = []
asked = {}
for line in sys.stdin:
    message = json.loads(line)
    seen.append(message)
    method = message.get("method")
    if method == "server/discover":
        TEMPERS[TEMPER][0](message)
    elif method == "initialize":
        TEMPERS[TEMPER][1](message)
    elif method == "ping" and TEMPER in ("deaf", "late-deaf"):
        pass
    elif method == "ping":
        answer(message, {})
        if TEMPER == "flapping":
            sys.exit(7)
    elif method == "tools/call" and message["params"]["name"] == "hold":
        # Answers go out in reverse once enough calls wait.
        held.append(message)
        if len(held) == message["params"]["arguments"]["until"]:
            for waiting in reversed(held):
                answer(waiting, {"n": waiting["params"]["arguments"]["n"]})
            held = []
    elif method == "tools/call":
        call(message)
    elif method == "subscriptions/listen":
        meta = {"io.modelcontextprotocol/subscriptionId": message["id"]}
        params = {"_meta": meta, "notifications": message["params"]["notifications"]}
        say({"method": "notifications/subscriptions/acknowledged", "params": params})
        say({"method": "notifications/tools/list_changed", "params": {"_meta": meta}})
    elif message.get("id") in asked and not method:
        answer(asked.pop(message["id"]), {"reply": message})
    elif method == "x/exit":
        sys.exit(0)
    elif "id" in message and method:
        refuse(message, -32601, "Method not found")

if TEMPER == "stubborn" or os.environ.get("STAY"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pause()
