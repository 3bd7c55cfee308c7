"""What the scripted servers in this folder share: a server of 2025-11-25 on standard streams."""

import json
import sys
import threading

writing = threading.Lock()


class Refusal(Exception):
    """The error that answers a request."""

    def __init__(self, code, message, **more):
        self.error = {"code": code, "message": message, **more}


def say(message):
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def notify(method, params=None):
    say({"method": method} if params is None else {"method": method, "params": params})


def answer(request, result):
    say({"id": request["id"], "result": result})


def tools(*names):
    return [{"name": name, "inputSchema": {"type": "object"}} for name in names]


def serve(name, capabilities, methods, otherwise=lambda message: None):
    """Reads messages until the input ends.

    `methods` has a function for each method. A request is answered with what it returns, unless that is None: then the
    function answers it, or nothing does. `otherwise` gets each other notification and response.
    """
    introduction = {"capabilities": capabilities, "serverInfo": {"name": name, "version": "1"}}
    known = {
        "initialize": lambda request: {"protocolVersion": request["params"]["protocolVersion"], **introduction},
        "ping": lambda request: {},
        **methods,
    }
    for line in sys.stdin:
        message = json.loads(line)
        is_request = "id" in message and "method" in message
        act = known.get(message.get("method"))
        if act is None:
            if is_request:
                say({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
            else:
                otherwise(message)
            continue
        try:
            result = act(message)
            if is_request and result is not None:
                answer(message, result)
        except Refusal as refusal:
            say({"id": message["id"], "error": refusal.error})
