"""Tasks with the Python SDK. The same as in tasks.mjs; of tasks the SDK has types, and hooks for extensions."""

import asyncio
import json
import os
import sys
from typing import Any, Literal

import mcp_types as types
from mcp.client.client import Client
from mcp.client.extension import ClientExtension, ResultClaim
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from pydantic import ConfigDict, Field, ValidationError

from library import same
from telling import lacks, told

JOB = json.loads(sys.argv[1])
IS_LEGACY = JOB["era"] == "legacy"


class Made(types.Result):
    """The result that a task was made."""

    result_type: Literal["task"] = Field(alias="resultType")
    task_id: str = Field(alias="taskId")


class Answered(types.Result):
    """What a request about a task comes to: how it stands, or nothing."""

    model_config = ConfigDict(extra="allow")
    status: str = ""


class Asks(types.Request):
    """A request about a task."""

    method: str
    params: Any
    name_param = "taskId"


class Tasks(ClientExtension):
    """The extension: it waits for what a task comes to, and answers what the task asks."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, form):
        self.form = form
        self.made = []
        self.leaves = False

    def claims(self):
        return [ResultClaim(result_type="task", model=Made, resolve=self.resolve)]

    async def resolve(self, made, context):
        self.made.append(made.task_id)
        if self.leaves:
            return types.CallToolResult(content=[])
        while True:
            task = await ask(context.session, "tasks/get", made.task_id)
            match task.status:
                case "completed":
                    return types.CallToolResult.model_validate(task.result)
                case "failed":
                    raise MCPError(task.error["code"], task.error["message"])
                case "input_required":
                    filled = {"action": "accept", "content": self.form}
                    answers = dict.fromkeys(task.inputRequests, filled)
                    await ask(context.session, "tasks/update", made.task_id, inputResponses=answers)
            await asyncio.sleep(0.1)


async def ask(session, method, task, **more):
    """Asks something about a task of the extension."""
    return await session.send_request(Asks(method=method, params={"taskId": task, **more}), Answered)


def client(server, form, extension=None):
    """A client of one of the job's servers that fills in forms with `form`."""
    target = JOB[server]["url"]
    if JOB["way"] == "stdio":
        program, *args = JOB[server]["command"]
        target = StdioServerParameters(command=program, args=args, env=dict(os.environ))

    async def fill(context, params):
        return types.ElicitResult(action="accept", content=form)

    return Client(
        target,
        mode="legacy" if IS_LEGACY else "auto",
        read_timeout_seconds=60,
        elicitation_callback=fill,
        extensions=[extension] if extension else None,
    )


def holds(found, part):
    if part not in found:
        raise AssertionError(f"no {part} in {found}")


def text(result):
    return "\n".join(block.text for block in result.content)


async def until(check):
    while not await check():
        await asyncio.sleep(0.05)


async def cannot_make_a_task(server):
    """The SDK has the types of 2025-11-25, but takes no result that a task was made."""
    params = types.CallToolRequestParams(
        name="simulate-research-query", arguments={"topic": "a"}, task=types.TaskMetadata(ttl=60_000)
    )
    async with client(server, {}) as session:
        try:
            request = types.CallToolRequest(params=params)
            made = await session.session.send_request(request, types.CreateTaskResult)
        except ValidationError as error:
            holds(str(error), "validation error for CallToolResult")
            return
    raise AssertionError(f"the SDK knows tasks by now: {made}")


async def of_the_extension(server):
    """What is asked of servers with the extension."""
    tasks = Tasks({"name": "Ada", "confirm": True, "value": "seven"})
    async with client(server, tasks.form, tasks) as session:

        async def comes_to(tool, arguments, part):
            holds(text(await session.call_tool(tool, arguments)), part)

        async def cancels():
            tasks.leaves = True
            await session.call_tool("slow_compute", {"seconds": 600})
            tasks.leaves = False
            task = tasks.made[-1]
            same((await ask(session.session, "tasks/get", task)).status, "working")
            await ask(session.session, "tasks/cancel", task)

            async def is_cancelled():
                return (await ask(session.session, "tasks/get", task)).status == "cancelled"

            await until(is_cancelled)

        async def is_asked():
            await comes_to("confirm_delete", {"filename": "a.txt"}, "deleted a.txt")
            await comes_to("multi_input", {}, "seven")

        async def is_told_of_failures():
            await comes_to("failing_job", {}, "always fails")
            try:
                raise AssertionError(await session.call_tool("protocol_error_job", {}))
            except MCPError as error:
                same(error.error.code, -32603)

        await told("cancels a task", cancels, server)
        await told(
            "gets what a task came to",
            lambda: comes_to("slow_compute", {"seconds": 0.2, "label": "it"}, "computed it"),
            server,
        )
        await told("is asked by a task", is_asked, server)
        await told(
            "is asked before there is a task",
            lambda: comes_to("test_tool_with_task", {}, "Hello, Ada!"),
            server,
        )
        await told("is told that a task has failed", is_told_of_failures, server)
    lacks("lists the tasks that it had made", "the extension has no `tasks/list`", server)
    lacks(HEARS, "the SDK of the server, rmcp 3.8.0, knows no `taskIds` to listen to", server)


HEARS = "hears how a task stands"
EVERY = [
    "lists the tasks that it had made",
    "cancels a task",
    "gets what a task came to",
    HEARS,
    "is asked by a task",
]
MORE = ["is asked before there is a task", "is told that a task has failed"]
OTHER = "calls what could be a task, of a kind that it does not know"
KNOWN = "the SDK knows tasks of the extension in 2026-07-28 alone"


def cannot(names, why, server):
    """Nothing of `names` can be done with `server`."""
    for name in names:
        lacks(name, why, server)


async def calls_another_kind(server, tool, arguments, part):
    async with client(server, {}) as session:
        holds(text(await session.call_tool(tool, arguments)), part)


async def main():
    sessions = ["everything", "everything-http"] if JOB["way"] == "http" else ["everything"]
    if IS_LEGACY:
        for server in sessions:
            await told("is not made a task", lambda: cannot_make_a_task(server))
            cannot(EVERY, "the SDK has types of tasks, and takes no result that one was made", server)
        for server in ["fixture", "modern"]:
            cannot([*EVERY, *MORE], KNOWN, server)
            arguments = {"seconds": 0, "label": "it"}
            await told(OTHER, lambda: calls_another_kind(server, "slow_compute", arguments, "computed it"))
        cannot([HEARS], KNOWN, "tasks")
        return
    for server in sessions:
        cannot(EVERY, "the server makes tasks of 2025-11-25 alone, and they keep their form", server)
        # The server makes no exception for those who cannot.
        why = "requires task augmentation"
        research = ("simulate-research-query", {"topic": "a"}, why)
        await told(OTHER, lambda: calls_another_kind(server, *research))
    await asyncio.gather(*map(of_the_extension, ["fixture", "modern"]))
    cannot([HEARS], "`Client.listen` of the SDK has no `taskIds`", "tasks")


asyncio.run(main())
