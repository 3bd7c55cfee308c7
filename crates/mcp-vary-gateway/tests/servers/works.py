"""A server whose tool `job` can only be called as a task.

Its tasks are called alike in every process. With the argument `ask` a task asks: `first`, before it is made, `at once`, before
anybody waits for its result, or when somebody `waits`; one that has to `die` takes its process with it. What it comes to says what it was answered, and in which process.
"""

import json
import os
import sys

from scripted import Refusal, answer, notify, say, serve, tools

tasks, waiting, questions = {}, {}, {}


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
    notify("notifications/tasks/status", state(task))
    for request in waiting.pop(task, []):
        say({"id": request, "result": tasks[task]["result"]})


def ask_for(task):
    tasks[task]["status"] = "input_required"
    ask(task, lambda said: end(task, said))


def begin(request, said=None):
    task = f"task-{len(tasks) + 1}"
    asks = request["params"].get("arguments", {}).get("ask")
    if "task" not in request["params"]:
        raise Refusal(-32601, "it has to be a task")
    if asks == "first" and said is None:
        ask(task, lambda said: begin(request, said))
        return
    tasks[task] = {"status": "working", "asks": asks}
    answer(request, {"task": state(task)})
    if asks == "at once":
        ask_for(task)
    elif asks == "first":
        end(task, said)


def wait(request):
    task = known(request)
    if "result" in tasks[task]:
        return tasks[task]["result"]
    waiting.setdefault(task, []).append(request["id"])
    asks = tasks[task]["asks"]
    if asks == "waits":
        ask_for(task)
    elif asks == "die":
        os._exit(1)
    elif asks is None:
        end(task, None)


def known(request):
    task = request["params"]["taskId"]
    if task not in tasks:
        raise Refusal(-32602, "no such task")
    return task


def get(request):
    return state(known(request))


def cancel(request):
    task = known(request)
    tasks[task]["status"] = "cancelled"
    print(f"{task} cancelled", file=sys.stderr)
    return state(task)


def otherwise(message):
    if message.get("id") in questions:
        questions.pop(message["id"])(message.get("result", message.get("error")))


serve("works", {"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}, {
    "tools/list": lambda request: {"tools": [{**tools("job")[0], "execution": {"taskSupport": "required"}}]},
    "tools/call": begin,
    "tasks/result": wait,
    "tasks/get": get,
    "tasks/cancel": cancel,
}, otherwise)
