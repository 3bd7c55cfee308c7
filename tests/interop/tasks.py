"""Tasks with the Python SDK. The same as in tasks.mjs: 1.x makes those of 2025-11-25, 2.x has hooks for extensions."""

import asyncio
import json
import sys
import warnings
from contextlib import asynccontextmanager

from sdks import IS_FIRST, MCPError, connected, types
from tasks_core import CoreTasks, cannot_make_a_task
from telling import lacks, same, told

if not IS_FIRST:
    from tasks_extension import ExtensionTasks

JOB = json.loads(sys.argv[1])
IS_LEGACY = JOB["era"] == "legacy"

LISTS = "lists the tasks that it had made"
CANCELS = "cancels a task"
GETS = "gets what a task came to"
HEARS = "hears how a task stands"
IS_ASKED = "is asked by a task"
IS_ASKED_BEFORE = "is asked before there is a task"
FAILS = "is told that a task has failed"
OTHER = "calls what could be a task, of a kind that it does not know"
KNOWN = "the SDK knows tasks of the extension in 2026-07-28 alone"


@asynccontextmanager
async def client(server, form, asked=None):
    """A client of one of the job's servers that fills in forms with `form`, and its tasks, if it knows any."""

    async def fill(context, params):
        if asked is not None:
            asked.append(params)
        return types.ElicitResult(action="accept", content=form)

    if IS_FIRST:
        tasks = CoreTasks()
        there = connected(JOB, server, tasks.hear, elicitation_callback=fill)
    else:
        tasks = None if IS_LEGACY else ExtensionTasks(form)
        extensions = [tasks] if tasks else None
        hear = tasks.hear if tasks else None
        there = connected(JOB, server, hear, elicitation_callback=fill, extensions=extensions)
    async with there as session:
        if tasks:
            tasks.session = session
        yield session, tasks


def holds(found, part):
    if part not in found:
        raise AssertionError(f"no {part} in {found}")


def text(result):
    return "\n".join(block.text for block in result.content)


async def until(check):
    while not await check():
        await asyncio.sleep(0.05)


def cannot(names, why, server):
    """Nothing of `names` can be done with `server`."""
    for name in names:
        lacks(name, why, server)


async def of_sessions(server):
    """What is asked of servers of 2025-11-25."""
    asked = []
    async with client(server, {"interpretation": "historical"}, asked) as (_, tasks):

        async def research(topic, **more):
            return await tasks.begin("simulate-research-query", {"topic": topic, **more})

        # Each takes four seconds.
        one, other, gone = [await research("a"), await research("b", ambiguous=True), await research("c")]

        async def lists():
            same(sorted(await tasks.list()), sorted([one, other, gone]))

        async def cancels():
            await tasks.cancel(gone)
            same(await tasks.status(gone), "cancelled")

        async def gets():
            same(await tasks.status(one), "working")
            holds(text(await tasks.end(one)), "Research Report: a")
            same(await tasks.status(one), "completed")

        async def hears():
            async def has_heard():
                return (one, "completed") in tasks.heard

            await until(has_heard)

        async def is_asked():
            holds(text(await tasks.end(other)), "Research Report: b (historical)")
            same(len(asked), 1)

        await told(LISTS, lists, server)
        await told(CANCELS, cancels, server)
        await told(GETS, gets, server)
        await told(HEARS, hears, server)
        await told(IS_ASKED, is_asked, server)


async def of_the_extension(server):
    """What is asked of servers with the extension."""
    async with client(server, {"name": "Ada", "confirm": True, "value": "seven"}) as (_, tasks):

        async def comes_to(tool, arguments, part):
            holds(text(await tasks.comes_to(tool, arguments)), part)

        async def cancels():
            task = await tasks.begin("slow_compute", {"seconds": 600})
            same(await tasks.status(task), "working")
            await tasks.cancel(task)

            async def is_cancelled():
                return await tasks.status(task) == "cancelled"

            await until(is_cancelled)

        async def gets():
            await comes_to("slow_compute", {"seconds": 0.2, "label": "it"}, "computed it")

        async def is_asked():
            await comes_to("confirm_delete", {"filename": "a.txt"}, "deleted a.txt")
            await comes_to("multi_input", {}, "seven")

        async def is_asked_before():
            await comes_to("test_tool_with_task", {}, "Hello, Ada!")

        async def is_told_of_failures():
            await comes_to("failing_job", {}, "always fails")
            try:
                raise AssertionError(await tasks.comes_to("protocol_error_job", {}))
            except MCPError as error:
                same(error.error.code, -32603)

        await told(CANCELS, cancels, server)
        await told(GETS, gets, server)
        await told(IS_ASKED, is_asked, server)
        await told(IS_ASKED_BEFORE, is_asked_before, server)
        await told(FAILS, is_told_of_failures, server)
    lacks(LISTS, "the extension has no `tasks/list`", server)
    lacks(HEARS, "the SDK of the server, rmcp 3.8.0, knows no `taskIds` to listen to", server)


async def of_listening(server):
    """What a server says of its tasks to whoever listens."""
    async with client(server, {}) as (_, tasks):

        async def hears():
            task = await tasks.begin("wait", {})
            async with tasks.listening(task):
                await tasks.cancel(task)

                async def has_heard():
                    return (task, "cancelled") in tasks.heard

                await until(has_heard)

        await told(HEARS, hears, server)


async def calls_another_kind(server, tool, arguments, part):
    async with client(server, {}) as (session, _):
        holds(text(await session.call_tool(tool, arguments)), part)


async def main():
    every = [LISTS, CANCELS, GETS, HEARS, IS_ASKED]
    sessions = ["everything", "everything-http"] if JOB["way"] == "http" else ["everything"]
    if IS_LEGACY:
        if IS_FIRST:
            await asyncio.gather(*map(of_sessions, sessions))
        else:
            for server in sessions:
                async with client(server, {}) as (session, _):
                    await told("is not made a task", lambda: cannot_make_a_task(session))
                cannot(every, "the SDK has types of tasks, and takes no result that one was made", server)
        for server in ["fixture", "modern"]:
            cannot([*every, IS_ASKED_BEFORE, FAILS], KNOWN, server)
            arguments = {"seconds": 0, "label": "it"}
            await told(OTHER, lambda: calls_another_kind(server, "slow_compute", arguments, "computed it"))
        cannot([HEARS], KNOWN, "tasks")
        return
    for server in sessions:
        cannot(every, "the server makes tasks of 2025-11-25 alone, and they keep their form", server)
        # The server makes no exception for those who cannot.
        why = "requires task augmentation"
        research = ("simulate-research-query", {"topic": "a"}, why)
        await told(OTHER, lambda: calls_another_kind(server, *research))
    await asyncio.gather(*map(of_the_extension, ["fixture", "modern"]))
    await of_listening("tasks")


# The SDK says of what 2025-11-25 has that it is on its way out.
warnings.simplefilter("ignore")
asyncio.run(main())
