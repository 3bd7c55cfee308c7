"""The configurations of examples/configurations, asked by the Python SDK. examples.json says what they answer."""

import asyncio
import json
from pathlib import Path

from library import answers, declaring, started
from sdks import pages
from telling import JOB, VARIANT, same, told


def target(example):
    """A way to the example; a client that sets no `_meta` has its variant by the address or the command line."""
    there = JOB["targets"][example["example"]]
    pinned = example.get("pinned")
    if JOB["way"] == "http":
        return f"{there['url']}/v/{pinned}" if pinned else there["url"]
    return started(there["command"] + (["--variant", pinned] if pinned else []), cwd=there["directory"])


async def holds(session, wanted):
    variant = wanted.get("variant")
    if "lists" in wanted:
        tools = await pages(session.list_tools, "tools", meta={VARIANT: variant} if variant else None)
        same([tool.name for tool in tools], wanted["lists"])
    elif cursor_of := wanted.get("cursorOf"):
        page = await session.list_tools(meta={VARIANT: cursor_of})
        if page.next_cursor is None:
            raise AssertionError(f"{cursor_of} has one page")
        following = {"method": "tools/list", "params": {"cursor": page.next_cursor}}
        await answers(session, {**following, "variant": cursor_of, "finds": {}})
        await answers(session, {**wanted, **following})
    else:
        await answers(session, wanted)


async def asked(example, what):
    async with declaring(target(example), example.get("features"), example.get("hints")) as session:
        for wanted in example["cases"]:
            await told(f"{what}: {wanted['name']}", lambda: holds(session, wanted))


async def main():
    examples = json.loads(Path(__file__).with_name("examples.json").read_text(encoding="utf-8"))
    for example in examples:
        if JOB["way"] not in example.get("ways", [JOB["way"]]):
            continue
        pinned = example.get("pinned")
        what = f"{example['example']} as {pinned}" if pinned else example["example"]
        await told(f"{what}: connects and closes", lambda: asked(example, what))


asyncio.run(main())
