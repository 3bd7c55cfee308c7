"""What the Python SDK hears of changes. The same as in hearing.mjs."""

import asyncio
import json
import os
import sys
import warnings

import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from library import VARIANT, said, same

JOB = json.loads(sys.argv[1])
IS_MODERN = JOB["era"] == "modern"
WATCHED = "test://watched-resource"
OTHER = "test://static-text"


class Ear:
    """What a client hears of one kind, in a session of the era before."""

    def __init__(self, kind):
        self.kind = kind
        self.heard = []
        self.news = asyncio.Event()

    async def __call__(self, message):
        message = getattr(message, "root", message)
        if isinstance(message, self.kind):
            self.heard.append(message)
            self.news.set()


def client(server, ear=None):
    target = JOB[server]["url"]
    if JOB["way"] == "stdio":
        program, *args = JOB[server]["command"]
        target = StdioServerParameters(command=program, args=args, env=dict(os.environ))
    mode = "auto" if IS_MODERN else "legacy"
    return Client(target, mode=mode, read_timeout_seconds=60, message_handler=ear)


async def until(change, wait):
    """Does `change` until `wait` ends: a stream may be opened only after the first time."""
    waiting = asyncio.ensure_future(wait())
    while not waiting.done():
        await change()
        await asyncio.wait([waiting], timeout=0.5)
    return waiting.result()


async def hears_of_a_list():
    ear = Ear(types.ToolListChangedNotification)
    async with client("fixture", ear) as session:
        tool = f"added-by-python-{JOB['way']}-{JOB['era']}"

        async def change():
            await session.call_tool("add_tool", {"name": tool})
            await session.call_tool("remove_tool", {"name": tool})

        if IS_MODERN:
            async with session.listen(tools_list_changed=True) as stream:
                await until(change, lambda: anext(aiter(stream)))
        else:
            await until(change, ear.news.wait)
            same(ear.heard[0].params.meta[VARIANT], "standard")


async def hears_of_a_resource():
    ear = Ear(types.ResourceUpdatedNotification)
    async with client("fixture", ear) as session:

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
            same(ear.heard[0].params.meta[VARIANT], "standard")


async def belongs_to_its_variant():
    async with client("fixture") as session:
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


async def is_subscribed_to_another_server():
    async with client("everything") as session:
        uri = str((await session.list_resources()).resources[0].uri)
        if IS_MODERN:
            async with session.listen(resource_subscriptions=[uri]) as stream:
                same(stream.honored.resource_subscriptions, [uri])
        else:
            await session.subscribe_resource(uri)
            await session.unsubscribe_resource(uri)


async def told(name, action):
    """Does `action`, and prints how it went."""
    line = {"name": name, "ok": True}
    try:
        await action()
    except Exception as error:
        line |= {"ok": False, "detail": said(error)}
    print(json.dumps(line, ensure_ascii=False), flush=True)


async def main():
    await told("hears that a list changed, and of which variant", hears_of_a_list)
    await told("hears of the resource that it asked to hear of, and of no other", hears_of_a_resource)
    await told("a subscription belongs to its variant", belongs_to_its_variant)
    await told("is subscribed to a resource of another server", is_subscribed_to_another_server)


# The SDK says of what sessions have that it is on its way out.
warnings.simplefilter("ignore")
asyncio.run(main())
