"""Tasks with the Python SDK. The same as in tasks.mjs: 1.x makes those of 2025-11-25, 2.x has hooks for extensions."""

import asyncio
from contextlib import asynccontextmanager

from sdks import IS_FASTMCP, IS_FIRST, MCPError, connected, types
from tasks_core import CoreTasks, cannot_make_a_task
from telling import JOB, holds, lacks, same, text, told

if IS_FASTMCP:
    from tasks_fastmcp import FastMcpTasks
elif not IS_FIRST:
    from tasks_extension import ExtensionTasks

IS_LEGACY = JOB["era"] == "legacy"

LISTS = "lists the tasks that it had made"
CANCELS = "cancels a task"
GETS = "gets what a task came to"
NOTIFIED = "is notified of the status of a task"
IS_ASKED = "is asked by a task"
IS_ASKED_BEFORE = "is asked before there is a task"
FAILS = "learns that a task has failed"
MODERN_ONLY = "the server on FastMCP 4 makes tasks in 2026-07-28 only"
POLLS = "the client of FastMCP 4 asks for the status of its tasks and does not listen"
OTHER_ERA = "clients of 2025-11-25 get no tasks of servers of 2026-07-28"
NONE = "the SDK has types of tasks, and takes no result that one was made"


@asynccontextmanager
async def client(server, form):
    """A client of one of the job's servers that fills in forms with `form`, its tasks, if it knows any, and
    what it was asked."""
    asked = []

    async def fill(context, params):
        asked.append(params)
        return types.ElicitResult(action="accept", content=form)

    if IS_FIRST:
        tasks = CoreTasks()
        there = connected(JOB, server, tasks.hear, elicitation_callback=fill)
    elif IS_FASTMCP:
        tasks = None if IS_LEGACY else FastMcpTasks()
        there = connected(JOB, server, elicitation_callback=fill)
    else:
        tasks = None if IS_LEGACY else ExtensionTasks(form, asked)
        extensions = [tasks] if tasks else None
        hear = tasks.hear if tasks else None
        there = connected(JOB, server, hear, elicitation_callback=fill, extensions=extensions)
    async with there as session:
        if tasks:
            tasks.session = session
        yield session, tasks, asked


async def until(check):
    while not await check():
        await asyncio.sleep(0.05)


async def cancels(tasks, task):
    """Cancels a task, which may take the server a while."""
    await tasks.cancel(task)

    async def is_cancelled():
        return await tasks.status(task) == "cancelled"

    await until(is_cancelled)


async def notified(tasks, task, status, change=None):
    """Waits until a task is said to stand so, where `change` makes it."""

    async def has_heard():
        return (task, status) in tasks.heard

    async with tasks.listening(task):
        if change is not None:
            await change()
        await until(has_heard)


async def lists(server, tasks, made):
    """Lists tasks and finds these, in an era that has a list."""

    async def check():
        same(sorted(await tasks.list()), sorted(made))

    if IS_LEGACY:
        await told(LISTS, check, server)
    else:
        lacks(LISTS, "2026-07-28 has no `tasks/list`", server)


async def listens(server, check):
    """Listens to a task, with a client that can."""
    if IS_FASTMCP:
        lacks(NOTIFIED, POLLS, server)
    else:
        await told(NOTIFIED, check, server)


async def of_the_core(server):
    """What is asked of servers that make tasks of 2025-11-25."""
    async with client(server, {"interpretation": "historical"}) as (_, tasks, asked):

        async def research(topic, **more):
            return await tasks.begin("simulate-research-query", {"topic": topic, **more})

        # Each takes four seconds.
        one = await research("a")
        heard = asyncio.ensure_future(listens(server, lambda: notified(tasks, one, "completed")))
        begun = await tasks.status(one)
        other, gone = await research("b", ambiguous=True), await research("c")

        async def gets():
            same(begun, "working")
            holds(text(await tasks.end(one)), "Research Report: a")
            same(await tasks.status(one), "completed")

        async def is_asked():
            holds(text(await tasks.end(other)), "Research Report: b (historical)")
            same(len(asked), 1)

        await lists(server, tasks, [one, other, gone])
        await told(CANCELS, lambda: cancels(tasks, gone), server)
        await told(GETS, gets, server)
        await heard
        await told(IS_ASKED, is_asked, server)


async def of_the_extension(server):
    """What is asked of servers with the extension."""
    async with client(server, {"name": "Ada", "confirm": True, "value": "seven"}) as (session, tasks, _):

        async def comes_to(tool, arguments, part):
            holds(text(await tasks.end(await tasks.begin(tool, arguments))), part)

        async def cancels_one():
            task = await tasks.begin("slow_compute", {"seconds": 600})
            same(await tasks.status(task), "working")
            await cancels(tasks, task)

        async def gets():
            await comes_to("slow_compute", {"seconds": 0.2, "label": "it"}, "computed it")

        async def is_asked():
            await comes_to("confirm_delete", {"filename": "a.txt"}, "deleted a.txt")
            await comes_to("multi_input", {}, "seven")

        async def is_asked_before():
            if IS_FASTMCP:
                # Its `call_tool_task` fails when it is asked first; `call_tool` answers and waits for the task.
                holds(text(await session.call_tool("test_tool_with_task", {})), "Hello, Ada!")
                return
            await comes_to("test_tool_with_task", {}, "Hello, Ada!")

        async def is_told_of_failures():
            await comes_to("failing_job", {}, "always fails")
            task = await tasks.begin("protocol_error_job", {})
            try:
                raise AssertionError(await tasks.end(task))
            except MCPError as error:
                same(error.error.code, -32603)

        await told(CANCELS, cancels_one, server)
        await told(GETS, gets, server)
        await told(IS_ASKED, is_asked, server)
        await told(IS_ASKED_BEFORE, is_asked_before, server)
        await told(FAILS, is_told_of_failures, server)
        await lists(server, tasks, [])
    lacks(NOTIFIED, "the SDK of the server, rmcp 3.8.0, knows no `taskIds` to listen to", server)


async def of_listening(server):
    """What a server says of its tasks to whoever listens."""
    async with client(server, {}) as (_, tasks, _):

        async def notified_of_the_end():
            task = await tasks.begin("wait", {})
            await notified(tasks, task, "cancelled", lambda: tasks.cancel(task))

        await listens(server, notified_of_the_end)


async def of_fastmcp(server):
    """What is asked of the server on FastMCP, which makes tasks of the extension."""
    if IS_LEGACY:
        for name in [GETS, CANCELS]:
            lacks(name, MODERN_ONLY, server)
        return
    async with client(server, {}) as (_, tasks, _):

        async def gets():
            holds(text(await tasks.end(await tasks.begin("compute", {"seconds": 0.2}))), "computed it")

        async def cancels_one():
            task = await tasks.begin("compute", {"seconds": 600})
            same(await tasks.status(task), "working")
            await cancels(tasks, task)

        await told(GETS, gets, server)
        await told(CANCELS, cancels_one, server)


async def of_none(cores):
    """What 2.x has of the era before."""
    for server in cores:
        async with client(server, {}) as (session, _, _):
            await told("is not made a task", lambda: cannot_make_a_task(session))
    every = [LISTS, CANCELS, GETS, NOTIFIED, IS_ASKED]
    for names, servers in [(every, cores), ([*every, IS_ASKED_BEFORE, FAILS], ["fixture", "modern"]), ([NOTIFIED], ["tasks"])]:
        for server in servers:
            for name in names:
                lacks(name, NONE, server)


async def main():
    cores = ["everything", "everything-http"] if JOB["way"] == "http" else ["everything"]
    fastmcp = ["fastmcp", "fastmcp-http"] if JOB["way"] == "http" else ["fastmcp"]
    if IS_LEGACY and not IS_FIRST:
        await of_none(cores)
        await asyncio.gather(*map(of_fastmcp, fastmcp))
        return
    extensions = []
    if IS_LEGACY:
        # In a session the fixture is served in 2025-11-25; `modern` is the same server without sessions.
        for name in [LISTS, CANCELS, GETS, NOTIFIED, IS_ASKED, IS_ASKED_BEFORE, FAILS]:
            lacks(name, "the SDK of the server, rmcp 3.8.0, makes no tasks in a session", "fixture")
            lacks(name, OTHER_ERA, "modern")
        lacks(NOTIFIED, OTHER_ERA, "tasks")
    else:
        extensions = [of_the_extension("fixture"), of_the_extension("modern"), of_listening("tasks")]
    await asyncio.gather(*map(of_the_core, cores), *extensions, *map(of_fastmcp, fastmcp))


asyncio.run(main())
