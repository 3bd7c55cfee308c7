"""A process of 2025-11-25 whose tool `job` can only be called as a task.

Its tasks are called alike in every process. With the argument `ask` a task asks: `at once`, before anybody waits for its
result, or when somebody `waits`; what it comes to says what it was answered, and in which process.
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


def ask(task):
    tasks[task]["status"] = "input_required"
    questions[7] = task
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


def begin(request):
    task = f"task-{len(tasks) + 1}"
    asks = request["params"].get("arguments", {}).get("ask")
    tasks[task] = {"status": "working", "asks": asks}
    say({"id": request["id"], "result": {"task": state(task)}})
    if asks == "at once":
        ask(task)


def wait(request):
    task = request["params"]["taskId"]
    if "result" in tasks[task]:
        say({"id": request["id"], "result": tasks[task]["result"]})
        return
    waiting.setdefault(task, []).append(request["id"])
    asks = tasks[task]["asks"]
    if asks == "waits":
        ask(task)
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
    elif method == "tasks/result":
        wait(message)
    elif method in ("tasks/get", "tasks/cancel"):
        task = message["params"]["taskId"]
        if method == "tasks/cancel":
            tasks[task]["status"] = "cancelled"
        say({"id": message["id"], "result": state(task)})
    elif method == "ping":
        say({"id": message["id"], "result": {}})
    elif method is None and message.get("id") in questions:
        end(questions.pop(message["id"]), message.get("result", message.get("error")))
    elif method is not None and "id" in message:
        say({"id": message["id"], "error": {"code": -32601, "message": "no such method"}})
