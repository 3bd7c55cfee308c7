"""The notifications of changes that the Python SDK receives. The same as in notifications.mjs."""

import asyncio

from sdks import MCPError, connected, types, written
from telling import JOB, VARIANT, same, told

IS_MODERN = JOB["era"] == "modern"
NOTIFIED = "is notified of a change of a resource"
WATCHED = "test://watched-resource"
OTHER = "test://static-text"


class Ear:
    """The notifications of one kind that a client receives in a session of 2025-11-25."""

    def __init__(self, kind):
        self.kind = kind
        self.heard = []
        self.news = asyncio.Event()

    async def __call__(self, message):
        if isinstance(message, self.kind):
            self.heard.append(message)
            self.news.set()


async def declines(context, params):
    return types.ElicitResult(action="decline")


async def until(change, wait):
    """Does `change` until `wait` ends: a stream may be opened only after the first time."""
    waiting = asyncio.ensure_future(wait())
    while not waiting.done():
        await change()
        await asyncio.wait([waiting], timeout=0.5)
    return waiting.result()


async def is_notified_of_a_list(server):
    ear = Ear(types.ToolListChangedNotification)
    async with connected(JOB, server, ear) as session:
        tool = f"added-by-{JOB['client']}-{JOB['way']}-{JOB['era']}"

        async def change():
            await session.call_tool("add_tool", {"name": tool})
            await session.call_tool("remove_tool", {"name": tool})

        if IS_MODERN:
            async with session.listen(tools_list_changed=True) as stream:
                await until(change, lambda: anext(aiter(stream)))
        else:
            await until(change, ear.news.wait)
            same(written(ear.heard[0].params)["_meta"][VARIANT], "standard")


async def is_notified_of_a_resource(server):
    ear = Ear(types.ResourceUpdatedNotification)
    async with connected(JOB, server, ear) as session:

        async def change():
            await session.call_tool("update_resource", {"uri": OTHER})
            await session.call_tool("update_resource", {"uri": WATCHED})

        if IS_MODERN:
            async with session.listen(resource_subscriptions=[WATCHED]) as stream:
                event = await until(change, lambda: anext(aiter(stream)))
                same(str(event.uri), WATCHED)
        else:
            await session.subscribe_resource(WATCHED)
            await until(change, ear.news.wait)
            await session.unsubscribe_resource(WATCHED)
            same({str(message.params.uri) for message in ear.heard}, {WATCHED})
            same(written(ear.heard[0].params)["_meta"][VARIANT], "standard")


async def belongs_to_its_variant():
    async with connected(JOB, "fixture") as session:
        if IS_MODERN:
            async with session.listen(tools_list_changed=True, resource_subscriptions=[WATCHED]) as stream:
                same(stream.honored.resource_subscriptions, [WATCHED])
            return
        await session.subscribe_resource(WATCHED, meta={VARIANT: "compact"})
        try:
            await session.subscribe_resource(WATCHED, meta={VARIANT: "standard"})
        except MCPError as error:
            same(error.error.code, -32602)
            same(error.error.data["activeVariant"], "standard")
        else:
            raise AssertionError("no error")
        await session.unsubscribe_resource(WATCHED)
        await session.subscribe_resource(WATCHED, meta={VARIANT: "standard"})


async def is_notified_of_the_official_one(server, **callbacks):
    ear = Ear(types.ResourceUpdatedNotification)
    async with connected(JOB, server, ear, **callbacks) as session:
        uri = str((await session.list_resources()).resources[0].uri)

        async def change():
            # The first time of two it begins to say so, and says it at once.
            await session.call_tool("toggle-subscriber-updates", {})

        if IS_MODERN:
            async with session.listen(resource_subscriptions=[uri]) as stream:
                same(stream.honored.resource_subscriptions, [uri])
                event = await until(change, lambda: anext(aiter(stream)))
                same(str(event.uri), uri)
        else:
            await session.subscribe_resource(uri)
            await until(change, ear.news.wait)
            await session.unsubscribe_resource(uri)
            # The server logs that it was unsubscribed from; the SDK 1.x fails when a message comes while it closes.
            await session.call_tool("echo", {"message": "last"})
            same({str(message.params.uri) for message in ear.heard}, {uri})


async def main():
    for server in ["fixture", "modern"]:
        await told("is notified that a list changed, and in which variant", lambda: is_notified_of_a_list(server), server)
        await told(
            "is notified of the resource to which it subscribed, and of no other",
            lambda: is_notified_of_a_resource(server),
            server,
        )
    await told("a subscription belongs to its variant", belongs_to_its_variant, "fixture")
    # Over stdio each client has a gateway and servers of its own, and what is behind that is the same.
    for server in ["everything", "everything-http"] if JOB["way"] == "http" else ["everything"]:
        await told(NOTIFIED, lambda: is_notified_of_the_official_one(server), server)
        # What can be asked something has its calls made on a connection of its own.
        await told(
            f"{NOTIFIED}, and can be asked",
            lambda: is_notified_of_the_official_one(server, elicitation_callback=declines),
            server,
        )


asyncio.run(main())
