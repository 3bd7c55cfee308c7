"""A server of both eras on FastMCP 4: its tools ask the client, count per session, add tools and run as tasks.

Over stdio, or with `http` over HTTP on a port that the system chooses.
"""

import asyncio
import sys
import warnings

import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp_tasks import TasksExtension
from pydantic import BaseModel

from listening import serve

server = FastMCP("fastmcp-server", version="1.0.0")
server.add_extension(TasksExtension(url="memory://"))


class Form(BaseModel):
    name: str


SAMPLE = types.CreateMessageRequestParams(
    messages=[types.SamplingMessage(role="user", content=types.TextContent(text="What is it?"))],
    max_tokens=100,
)


def asks(request):
    return types.InputRequiredResult(input_requests={"it": request})


def is_modern(ctx):
    return ctx.request_context.protocol_version >= "2026"


def response(ctx):
    return (ctx.input_responses or {}).get("it")


@server.tool
async def fill_form(ctx: Context):
    """Asks for a name."""
    if is_modern(ctx):
        form = types.ElicitRequestFormParams(message="Who?", requested_schema=Form.model_json_schema())
        if (outcome := response(ctx)) is None:
            return asks(types.ElicitRequest(params=form))
        return f"hello {outcome.content['name']}" if outcome.action == "accept" else outcome.action
    outcome = await ctx.elicit("Who?", Form)
    return f"hello {outcome.data.name}" if outcome.action == "accept" else outcome.action


@server.tool
async def ask_model(ctx: Context):
    """Asks for a sample."""
    if is_modern(ctx):
        if (sample := response(ctx)) is None:
            return asks(types.CreateMessageRequest(params=SAMPLE))
    else:
        sample = await ctx.session.create_message(SAMPLE.messages, max_tokens=100, related_request_id=ctx.request_id)
    return sample.content.text


@server.tool
async def show_roots(ctx: Context):
    """Asks for the roots."""
    if is_modern(ctx):
        if (shown := response(ctx)) is None:
            return asks(types.ListRootsRequest())
    else:
        shown = await ctx.session.list_roots()
    return ",".join(str(root.uri) for root in shown.roots)


@server.tool
async def count(ctx: Context) -> str:
    """Counts the calls of this session."""
    calls = (await ctx.get_state("calls") or 0) + 1
    await ctx.set_state("calls", calls)
    return str(calls)


@server.tool
async def enable_toolset(name: str, ctx: Context) -> str:
    """Adds a tool."""

    def added() -> str:
        return f"{name} was called"

    server.tool(added, name=name, description="Added later.")
    await ctx.send_notification(types.ToolListChangedNotification())
    return f"{name} was added"


@server.tool(task=True)
async def compute(seconds: float):
    """Runs as a task."""
    await asyncio.sleep(seconds)
    return "computed it"


warnings.simplefilter("ignore")
if sys.argv[1:] == ["http"]:
    serve(server.http_app())
else:
    server.run("stdio", show_banner=False, log_level="WARNING")
