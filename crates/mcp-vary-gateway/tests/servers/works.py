"""A process of 2025-11-25 whose tool `job` can only be called as a task.

Its tasks are called alike in every process. With the argument `ask` a task asks: `first`, before it is made, `at once`, before
anybody waits for its result, or when somebody `waits`; one that has to `die` takes its process with it. What it comes to says what it was answered, and in which process.
"""

import json
import os
import sys

tasks, waiting, questions = {}, {}, {}


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def state(task):
    return {"taskId": task, "status": tasks[task]["status"], "ttl": 60000}


def ask(task, then):
    questions[7] = then
    related = {"io.modelcontextprotocol/related-task": {"taskId": task}}
    params = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}, "_meta": related}
    say({"id": 7, "method": "elicitation/create", "params": params})


def end(task, said):
    text = json.dumps({"said": said, "pid": os.getpid()})
    tasks[task].update(status="completed", result={"content": [{"type": "text", "text": text}]})
    status = {"method": "notifications/tasks/status", "params": state(task)}
    say(status)
    for request in waiting.pop(task, []):
        say({"id": request, "result": tasks[task]["result"]})


def ask_for(task):
    tasks[task]["status"] = "input_required"
    ask(task, lambda said: end(task, said))


def begin(request, said=None):
    task = f"task-{len(tasks) + 1}"
    asks = request["params"].get("arguments", {}).get("ask")
    if "task" not in request["params"]:
        say({"id": request["id"], "error": {"code": -32601, "message": "it has to be a task"}})
        return
    if asks == "first" and said is None:
        ask(task, lambda said: begin(request, said))
        return
    tasks[task] = {"status": "working", "asks": asks}
    say({"id": request["id"], "result": {"task": state(task)}})
    if asks == "at once":
        ask_for(task)
    elif asks == "first":
        end(task, said)


def wait(request):
    task = request["params"]["taskId"]
    if "result" in tasks[task]:
        say({"id": request["id"], "result": tasks[task]["result"]})
        return
    waiting.setdefault(task, []).append(request["id"])
    asks = tasks[task]["asks"]
    if asks == "waits":
        ask_for(task)
    elif asks == "die":
        os._exit(1)
    elif asks is None:
        end(task, None)


for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        say({"id": message["id"], "result": {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}},
            "serverInfo": {"name": "works", "version": "1"},
        }})
    elif method == "tools/list":
        job = {"name": "job", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}
        say({"id": message["id"], "result": {"tools": [job]}})
    elif method == "tools/call":
        begin(message)
    elif method in ("tasks/result", "tasks/get", "tasks/cancel") and message["params"]["taskId"] not in tasks:
        say({"id": message["id"], "error": {"code": -32602, "message": "no such task"}})
    elif method == "tasks/result":
        wait(message)
    elif method in ("tasks/get", "tasks/cancel"):
        task = message["params"]["taskId"]
        if method == "tasks/cancel":
            tasks[task]["status"] = "cancelled"
            print(f"{task} cancelled", file=sys.stderr)
        say({"id": message["id"], "result": state(task)})
    elif method == "ping":
        say({"id": message["id"], "result": {}})
    elif method is None and message.get("id") in questions:
        questions.pop(message["id"])(message.get("result", message.get("error")))
    elif method is not None and "id" in message:
        say({"id": message["id"], "error": {"code": -32601, "message": "no such method"}})
