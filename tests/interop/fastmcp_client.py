"""FastMCP 4's client, with the methods and callbacks of the Python SDK's client 2.x."""

from contextlib import asynccontextmanager

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from mcp.client.subscriptions import listen

# Without this its client declares no tasks.
import fastmcp_tasks  # noqa: F401


@asynccontextmanager
async def connected(target, *, elicitation_callback=None, sampling_callback=None, list_roots_callback=None, **more):
    """A client of `target`, a URL or how to start a program."""
    if elicitation_callback:

        async def elicit(message, kind, params, context):
            return await elicitation_callback(context, params)

        more["elicitation_handler"] = elicit
    if sampling_callback:

        async def sample(messages, params, context):
            return await sampling_callback(context, params)

        more["sampling_handler"] = sample
    if list_roots_callback:

        async def roots(context):
            return (await list_roots_callback(context)).roots

        more["roots"] = roots
    if not isinstance(target, str):
        target = StdioTransport(target.command, target.args, env=target.env, keep_alive=False)
    async with Client(target, timeout=60, **more) as client:
        yield FastMcp(client)


class FastMcp:
    """A client of FastMCP, which calls less than the SDK's its own and has the rest in its session."""

    def __init__(self, client):
        self.client = client

    def __getattr__(self, name):
        return getattr(self.client.session, name)

    @property
    def session(self):
        return self.client.session

    async def list_tools(self):
        return await self.client.list_tools_mcp()

    async def list_resources(self):
        return await self.client.list_resources_mcp()

    async def call_tool(self, name, arguments):
        return await self.client.call_tool_mcp(name, arguments)

    def listen(self, **filters):
        return listen(self.client.session, **filters)
