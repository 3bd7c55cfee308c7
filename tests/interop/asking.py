"""What servers ask of the Python SDK: forms, visits, samples and roots. The same as in asking.mjs."""

import asyncio
import json
import os
import sys

import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from library import said, same

JOB = json.loads(sys.argv[1])


def holds(found, *parts):
    for part in parts:
        if part not in found:
            raise AssertionError(f"no {part} in {found}")


def text(result):
    return "\n".join(block.text for block in result.content)


def client(server, **callbacks):
    """A client of one of the job's servers that answers by `callbacks`."""
    target = JOB[server]["url"]
    if JOB["way"] == "stdio":
        program, *args = JOB[server]["command"]
        target = StdioServerParameters(command=program, args=args, env=dict(os.environ))
    mode = "auto" if JOB["era"] == "modern" else "legacy"
    return Client(
        target,
        mode=mode,
        read_timeout_seconds=60,
        sampling_capabilities=types.SamplingCapability(tools=types.SamplingToolsCapability()),
        **{"list_roots_callback": no_roots, **callbacks},
    )


async def called(session, tool, arguments=None):
    return text(await session.call_tool(tool, arguments or {}))


async def no_roots(context):
    return types.ListRootsResult(roots=[])


def accepts(**content):
    async def answer(context, params):
        return types.ElicitResult(action="accept", content=content or None)

    return answer


async def declines(context, params):
    return types.ElicitResult(action="decline")


async def fills_in_a_form():
    async with client("everything", elicitation_callback=accepts(name="Ada", check=True)) as session:
        holds(await called(session, "trigger-elicitation-request"), "Ada")


async def declines_a_form():
    async with client("everything", elicitation_callback=declines) as session:
        holds(await called(session, "trigger-elicitation-request"), "declined")


async def samples():
    async def answer(context, params):
        said = types.TextContent(type="text", text=f"so {params.messages[0].content.text}")
        return types.CreateMessageResult(role="assistant", model="m", content=said)

    async with client("everything", sampling_callback=answer) as session:
        found = await called(session, "trigger-sampling-request", {"prompt": "what"})
        holds(found, "context: what", "so Resource")


async def samples_with_tools():
    async def answer(context, params):
        use = types.ToolUseContent(type="tool_use", id="1", name=params.tools[0].name, input={})
        return types.CreateMessageResultWithTools(
            role="assistant", model="m", stop_reason="toolUse", content=use
        )

    async with client("asking", sampling_callback=answer) as session:
        same(await called(session, "weather"), "tool_use look-out")


async def visits_an_address():
    seen = []

    async def visit(context, params):
        seen.extend([params.mode, params.url])
        return types.ElicitResult(action="accept")

    url = "https://example.org/a"
    async with client("everything", elicitation_callback=visit) as session:
        holds(await called(session, "trigger-url-elicitation", {"url": url}), "completed", url)
    same(seen, ["url", url])


async def is_told_that_a_visit_has_ended():
    ended = asyncio.Event()

    async def hear(message):
        if getattr(message, "method", "") == "notifications/elicitation/complete":
            same(message.params.elicitation_id, "visit-1")
            ended.set()

    callbacks = {"elicitation_callback": accepts(), "message_handler": hear}
    async with client("asking", **callbacks) as session:
        same(await called(session, "visit"), "accept")
        await asyncio.wait_for(ended.wait(), 60)


async def is_told_which_address_to_visit_first():
    arguments = {"url": "https://example.org/c", "errorPath": True}
    async with client("everything", elicitation_callback=accepts()) as session:
        try:
            raise AssertionError(await called(session, "trigger-url-elicitation", arguments))
        except MCPError as error:
            same(error.error.code, -32042)
            first = error.error.data["elicitations"][0]
            same(first["url"], "https://modelcontextprotocol.io")


def showing(roots):
    async def show(context):
        return types.ListRootsResult(roots=[types.Root(uri=uri, name=uri) for uri in roots])

    return show


async def shows_its_roots():
    async with client("everything", list_roots_callback=showing(["file:///one"])) as session:
        holds(await called(session, "get-roots-list"), "file:///one")


async def shows_others_when_they_have_changed():
    roots = ["file:///one"]
    async with client("everything", list_roots_callback=showing(roots)) as session:
        holds(await called(session, "get-roots-list"), "file:///one")
        roots[:] = ["file:///two"]
        await session.send_roots_list_changed()
        # The server asks once more in its own time.
        while "file:///two" not in await called(session, "get-roots-list"):
            pass


async def two_are_each_asked_their_own():
    async def asked(who):
        async with client("everything", elicitation_callback=accepts(name=who)) as session:
            for _ in range(5):
                holds(await called(session, "trigger-elicitation-request"), who)

    await asyncio.gather(asked("Ada"), asked("Grace"))


async def told(name, action):
    """Does `action`, and prints how it went."""
    line = {"name": name, "ok": True}
    try:
        await action()
    except Exception as error:
        line |= {"ok": False, "detail": said(error)}
    print(json.dumps(line, ensure_ascii=False), flush=True)


async def main():
    await told("fills in a form", fills_in_a_form)
    await told("declines a form", declines_a_form)
    await told("samples", samples)
    await told("samples with tools", samples_with_tools)
    await told("visits an address", visits_an_address)
    await told("shows its roots", shows_its_roots)
    await told("two clients at once are each asked their own", two_are_each_asked_their_own)
    if JOB["era"] == "legacy":
        # Clients of 2026-07-28 are told nothing beside their requests, and of no error that asks for a visit.
        await told("is told that a visit has ended", is_told_that_a_visit_has_ended)
        await told("is told which address to visit first", is_told_which_address_to_visit_first)
        await told("shows others when they have changed", shows_others_when_they_have_changed)


asyncio.run(main())
