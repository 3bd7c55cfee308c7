"""The servers of examples/library, asked by the Python SDK. library.json says what they answer."""

import asyncio
import json
import os
from contextlib import asynccontextmanager
from pathlib import Path

from mcp.client.client import Client
from mcp.client.extension import advertise
from mcp.client.stdio import StdioServerParameters

from sdks import MCPError, written
from telling import JOB, VARIANT, same, told

NEGOTIATION = "io.modelcontextprotocol/content-negotiation"
VARIANTS = "io.modelcontextprotocol/server-variants"


async def holds(wanted):
    """One case, on a connection and a server of its own."""
    program = str(Path(JOB["programs"]) / wanted["program"])
    if JOB["way"] == "stdio":
        await asks(started([program, "--stdio"]), wanted)
        return
    pipe = asyncio.subprocess.PIPE
    server = await asyncio.create_subprocess_exec(program, "--http", "127.0.0.1:0", stdout=pipe)
    try:
        url = (await server.stdout.readline()).decode().strip()
        await asks(url, wanted)
    finally:
        server.kill()
        await server.wait()


async def asks(target, wanted):
    async with declaring(target, wanted.get("features"), wanted.get("hints")) as session:
        await answers(session, wanted)


def started(command, **more):
    """The server that this command starts."""
    program, *args = command
    return StdioServerParameters(command=program, args=args, env=dict(os.environ), **more)


@asynccontextmanager
async def declaring(target, features=None, hints=None):
    """A client that declares these, if there are any, and finds out by probing that it speaks the era of the job."""
    extensions = []
    if features is not None:
        extensions.append(advertise(NEGOTIATION, {"version": "1.0", "features": features}))
    if hints:
        extensions.append(advertise(VARIANTS, {"variantHints": {"hints": hints}}))
    mode = "auto" if JOB["era"] == "modern" else "legacy"
    async with Client(target, mode=mode, extensions=extensions or None, read_timeout_seconds=60) as session:
        same("modern" if session.protocol_version >= "2026" else "legacy", JOB["era"])
        yield session


async def answers(session, wanted):
    """Asks, and holds the answer against what it should find, or fail with."""
    found, expected = await answer(session, wanted)
    for pointer, value in expected.items():
        same(at(found, pointer), value)


async def answer(session, wanted):
    """The result or the error, and what stands in it."""
    try:
        found = written(await asked(session, wanted))
    except MCPError as error:
        if "fails" not in wanted:
            raise
        return written(error.error), wanted["fails"]
    return found, wanted["finds"]


async def asked(session, wanted):
    params = wanted.get("params", {})
    meta = {VARIANT: wanted["variant"]} if "variant" in wanted else None
    match wanted["method"]:
        case "capabilities":
            return session.server_capabilities
        case "tools/list":
            return await session.list_tools(cursor=params.get("cursor"), meta=meta)
        case "tools/call":
            return await session.call_tool(params["name"], params["arguments"], meta=meta)
        case "resources/read":
            return await session.read_resource(params["uri"], meta=meta)
        case "prompts/get":
            return await session.get_prompt(params["name"], params.get("arguments"), meta=meta)


def at(value, pointer):
    """What a JSON pointer points at; None where there is nothing."""
    for key in pointer[1:].split("/"):
        key = key.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(key) if isinstance(value, list) else key]
        except (KeyError, IndexError):
            return None
    return value


async def main():
    cases = json.loads(Path(__file__).with_name("library.json").read_text(encoding="utf-8"))
    for wanted in cases:
        await told(wanted["name"], lambda: holds(wanted))


if __name__ == "__main__":
    asyncio.run(main())
