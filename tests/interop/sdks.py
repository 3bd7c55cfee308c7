"""The Python SDK 1.x and 2.x, and FastMCP 4, called alike; the environment has one of them."""

import os
import warnings
from contextlib import asynccontextmanager
from datetime import timedelta
from importlib.metadata import version
from importlib.util import find_spec

IS_FIRST = version("mcp").startswith("1.")
IS_FASTMCP = find_spec("fastmcp") is not None

if IS_FIRST:
    import anyio
    import httpx
    import mcp.types as types
    from mcp.client.session import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.shared.exceptions import McpError as MCPError
else:
    from mcp.client import session

    # A server that has not answered `server/discover` by then is taken for one of the older revision. Beside other jobs, a
    # server that is written in Python can take longer to start than the SDK's ten seconds.
    session.DISCOVER_TIMEOUT_SECONDS = 60.0

    import httpx2 as httpx
    import mcp_types as types
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters
    from mcp.shared.exceptions import MCPError
from mcp.client.streamable_http import streamable_http_client

if IS_FASTMCP:
    import fastmcp_client

__all__ = ["IS_FASTMCP", "IS_FIRST", "MCPError", "connected", "httpx", "of_both_eras", "pages", "types", "written"]

# The SDK warns that what only sessions have is deprecated.
warnings.simplefilter("ignore")

SDK_SERVERS = ["typescript-sdk", "python-sdk", "fastmcp"]


def of_both_eras(job):
    """The servers of both eras; over stdio each client has a gateway of its own, and what is behind that is the same."""
    over_http = [f"{name}-http" for name in SDK_SERVERS] if job["way"] == "http" else []
    return [*SDK_SERVERS, *over_http]


def written(model):
    """As it is on the wire: the SDKs have other names for its members."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def pages(ask, name, **params):
    """The items of a list, of all its pages."""
    found, cursor = [], None
    while True:
        page = await ask(cursor=cursor, **params)
        found += getattr(page, name)
        if (cursor := page.next_cursor) is None:
            return found


def connected(job, server, message_handler=None, auth=None, **more):
    """A client of one of the job's servers, and what it does with messages that answer nothing and to log in."""
    target = job[server]["url"]
    if auth and IS_FASTMCP:
        more["auth"] = auth
    elif auth:
        target = streamable_http_client(target, http_client=httpx.AsyncClient(auth=auth, timeout=60))
    if job["way"] == "stdio":
        program, *args = job[server]["command"]
        target = StdioServerParameters(command=program, args=args, env=dict(os.environ))
    if IS_FIRST:
        return _connected(target, message_handler, more)
    mode = "legacy" if job["era"] == "legacy" else "auto"
    if IS_FASTMCP:
        return fastmcp_client.connected(target, mode=mode, message_handler=message_handler, **more)
    return Client(target, mode=mode, read_timeout_seconds=60, message_handler=message_handler, **more)


@asynccontextmanager
async def _connected(target, message_handler, more):
    if isinstance(target, str):
        target = streamable_http_client(target)
    elif isinstance(target, StdioServerParameters):
        target = stdio_client(target)

    async def hear(message):
        if message_handler is not None:
            # One of many types, in a type that may be any of them.
            await message_handler(getattr(message, "root", message))

    limit = timedelta(seconds=60)
    is_over = False
    try:
        async with target as (reads, writes, *_):
            async with ClientSession(reads, writes, limit, message_handler=hear, **more) as session:
                await session.initialize()
                yield First(session)
                is_over = True
    except* anyio.BrokenResourceError:
        # The SDK 1.x fails when a message comes while it closes.
        if not is_over:
            raise


class First:
    """A session of the SDK 1.x, with the methods of 2.x where those are others."""

    def __init__(self, session):
        self.session = session

    def __getattr__(self, name):
        return getattr(self.session, name)

    async def subscribe_resource(self, uri, meta=None):
        params = types.SubscribeRequestParams.model_validate({"uri": uri, "_meta": meta})
        request = types.ClientRequest(types.SubscribeRequest(params=params))
        await self.session.send_request(request, types.EmptyResult)
