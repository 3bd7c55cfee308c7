"""What clients of either era get from servers of both eras with the Python SDK and FastMCP. The same as in eras.mjs."""

import asyncio
from contextlib import AsyncExitStack

from sdks import connected, of_both_eras, types
from telling import JOB, lacks, same, told

IS_MODERN = JOB["era"] == "modern"
OVER_HTTP = JOB["way"] == "http"
REPLICAS = JOB.get("replicas", False)

COUNTS = "counts the calls of its session alone"
GROWS = "is notified that a tool was added, and calls it"
OF_ONE_REPLICA = "a list that a program or session changes for itself is that of one replica"
MEMBERS = "gets results with the members of its era"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"


async def decline(context, params):
    return types.ElicitResult(action="decline")


async def sample(context, params):
    return types.ErrorData(code=-1, message="no model")


async def roots(context):
    return types.ListRootsResult(roots=[])


CALLBACKS = {"elicitation_callback": decline, "sampling_callback": sample, "list_roots_callback": roots}


async def called(session, tool, **arguments):
    return (await session.call_tool(tool, arguments)).content[0].text


def as_it_arrived(result):
    return result.model_dump(mode="json", by_alias=True, exclude_unset=True)


def members(results):
    """The members of a list and of the result of a call."""
    listed, result = map(as_it_arrived, results)
    for found in [listed, result]:
        same(found.get("resultType"), "complete" if IS_MODERN else None)
        same(SERVER_INFO in (found.get("_meta") or {}), IS_MODERN)
    caching = ["ttlMs", "cacheScope"]
    same([it for it in caching if it in listed], caching if IS_MODERN else [])


async def counts(session, server):
    """The client has called `count` once; over HTTP another one calls it in between."""
    async with AsyncExitStack() as stack:
        other = await stack.enter_async_context(connected(JOB, server, **CALLBACKS)) if OVER_HTTP else None
        for count in [2, 3]:
            same(await called(session, "count"), f"{count}")
            if other:
                same(await called(other, "count"), f"{count - 1}")


def noting(changes):
    """Puts the notifications that the list of tools changed into a queue."""

    async def note(message):
        if isinstance(message, types.ToolListChangedNotification):
            changes.put_nowait(message)

    return note


async def grows(session, changes, kind):
    tool = f"added_for_{JOB['client']}_{JOB['way']}_{JOB['era']}_{kind}".replace("-", "_")

    async def is_listed():
        return tool in [it.name for it in (await session.list_tools()).tools]

    async def enable():
        same(await called(session, "enable_toolset", name=tool), f"{tool} was added")

    async def appears(next_change):
        # Other clients add tools to the same server meanwhile, so the first change may be theirs.
        await next_change()
        while not await is_listed():
            await next_change()

    same(await is_listed(), False)
    if IS_MODERN:
        async with session.listen(tools_list_changed=True) as stream:
            await enable()
            await asyncio.wait_for(appears(aiter(stream).__anext__), 60)
    else:
        await enable()
        await asyncio.wait_for(appears(changes.get), 60)
    same(await called(session, tool), f"{tool} was called")


async def of_one(server):
    changes = asyncio.Queue()
    async with connected(JOB, server, noting(changes), **CALLBACKS) as session:

        async def are_of_the_era():
            members([await session.list_tools(), await session.call_tool("count", {})])

        await told(MEMBERS, are_of_the_era, server)
        if IS_MODERN:
            lacks(COUNTS, "2026-07-28 has no sessions", server)
        else:
            await told(COUNTS, lambda: counts(session, server), server)
        asked = f"{GROWS}, and can be asked"
        if REPLICAS and IS_MODERN:
            lacks(asked, OF_ONE_REPLICA, server)
        else:
            await told(asked, lambda: grows(session, changes, "asked"), server)
    # Over stdio it costs another gateway, and what is behind that is the same.
    if OVER_HTTP and REPLICAS:
        lacks(GROWS, OF_ONE_REPLICA, server)
    elif OVER_HTTP:
        changes = asyncio.Queue()
        async with connected(JOB, server, noting(changes)) as session:
            await told(GROWS, lambda: grows(session, changes, "plain"), server)


async def main():
    await asyncio.gather(*map(of_one, of_both_eras(JOB)))


asyncio.run(main())
