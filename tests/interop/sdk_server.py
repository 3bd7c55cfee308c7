"""A server of both eras on the Python SDK 2.x: its tools ask the client, count per session and add tools.

Over stdio, or with `http` over HTTP on a port that the system chooses; with `sse` over the transport of 2024-11-05, and then
on the port that follows, if there is one.
"""

import sys
import warnings
from collections import Counter
from typing import Annotated

from mcp.server.mcpserver import Context, Elicit, ElicitationResult, ListRoots, MCPServer, Resolve, Sample
from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel

from listening import serve

server = MCPServer("python-sdk-server", version="1.0.0", log_level="WARNING")


class Form(BaseModel):
    name: str


def ask_for_name() -> Elicit[Form]:
    return Elicit("Who?", Form)


def ask_for_sample() -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(text="What is it?"))], max_tokens=100)


def ask_for_roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def fill_form(outcome: Annotated[ElicitationResult[Form], Resolve(ask_for_name)]) -> str:
    """Asks for a name."""
    return f"hello {outcome.data.name}" if outcome.action == "accept" else outcome.action


@server.tool()
async def ask_model(sample: Annotated[CreateMessageResult, Resolve(ask_for_sample)]) -> str:
    """Asks for a sample."""
    return sample.content.text


@server.tool()
async def show_roots(roots: Annotated[ListRootsResult, Resolve(ask_for_roots)]) -> str:
    """Asks for the roots."""
    return ",".join(str(root.uri) for root in roots.roots)


calls = Counter()


@server.tool()
async def count(ctx: Context) -> str:
    """Counts the calls of this session, which over stdio is the only one."""
    session = (ctx.headers or {}).get("mcp-session-id")
    calls[session] += 1
    return str(calls[session])


@server.tool()
async def enable_toolset(name: str, ctx: Context) -> str:
    """Adds a tool."""
    server.add_tool(lambda: f"{name} was called", name=name, description="Added later.")
    # Reports it to sessions, and to clients without one.
    await ctx.session.send_tool_list_changed()
    await ctx.notify_tools_changed()
    return f"{name} was added"


warnings.simplefilter("ignore")
if sys.argv[1:] == ["http"]:
    serve(server.streamable_http_app())
elif sys.argv[1:2] == ["sse"]:
    serve(server.sse_app(), "sse", *map(int, sys.argv[2:]))
else:
    server.run("stdio")
