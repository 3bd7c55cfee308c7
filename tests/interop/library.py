"""The servers of examples/library, asked by the Python SDK. library.json says what they answer."""

import asyncio
import json
import os
import sys
from pathlib import Path

import discover_timeout  # noqa: F401
from mcp.client.client import Client
from mcp.client.extension import advertise
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from telling import VARIANT, said, same

NEGOTIATION = "io.modelcontextprotocol/content-negotiation"
VARIANTS = "io.modelcontextprotocol/server-variants"


async def holds(job, wanted):
    """One case, on a connection and a server of its own."""
    program = str(Path(job["programs"]) / wanted["program"])
    if job["way"] == "stdio":
        target = StdioServerParameters(command=program, args=["--stdio"], env=dict(os.environ))
        await asks(job, target, wanted)
        return
    pipe = asyncio.subprocess.PIPE
    server = await asyncio.create_subprocess_exec(program, "--http", "127.0.0.1:0", stdout=pipe)
    try:
        url = (await server.stdout.readline()).decode().strip()
        await asks(job, url, wanted)
    finally:
        server.kill()
        await server.wait()


async def asks(job, target, wanted):
    mode = "auto" if job["era"] == "modern" else "legacy"
    async with Client(target, mode=mode, extensions=declared(wanted)) as session:
        same("modern" if session.protocol_version >= "2026" else "legacy", job["era"])
        await answers(session, wanted)


async def answers(session, wanted):
    """Asks, and holds the answer against what it should find, or fail with."""
    found, expected = await answer(session, wanted)
    for pointer, value in expected.items():
        same(at(found, pointer), value)


def declared(wanted):
    extensions = []
    if features := wanted.get("features"):
        extensions.append(advertise(NEGOTIATION, {"version": "1.0", "features": features}))
    if hints := wanted.get("hints"):
        extensions.append(advertise(VARIANTS, {"variantHints": {"hints": hints}}))
    return extensions or None


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


def written(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


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
    job = json.loads(sys.argv[1])
    cases = json.loads(Path(__file__).with_name("library.json").read_text(encoding="utf-8"))
    for wanted in cases:
        line = {"name": wanted["name"], "ok": True}
        try:
            await holds(job, wanted)
        except Exception as error:
            line |= {"ok": False, "detail": said(error)}
        print(json.dumps(line, ensure_ascii=False) + "\n", end="", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
