"""Every shaped result of shaped.json, taken by the Python SDK for every set of feature tags: the SDK validates it, and
shaped-results.mjs holds it against what the server said. shaped.mjs asks the same of the TypeScript SDKs."""

import asyncio
import json
import re
from pathlib import Path

from library import declaring, started
from sdks import written
from telling import JOB, said, same, told


async def faults_of(judge, received):
    """What the program shaped-results.mjs finds wrong with what a client received."""
    judge.stdin.write(json.dumps(received).encode() + b"\n")
    return json.loads(await judge.stdout.readline())


def result_of(got):
    """A result as the SDK has it; one that has a structure that is null, too."""
    if "structured_content" not in got.model_fields_set:
        return written(got)
    return written(got) | {"structuredContent": got.structured_content}


async def holds(session, judge, tags):
    """All answers that a client of these tags gets."""
    tools = (await session.list_tools()).tools
    tools = [tool for tool in tools if not any(rows["tool"] == tool.name for rows in JOB["rows"])]
    calls = [session.call_tool(tool.name, {}) for tool in tools]
    received = {"era": JOB["era"], "calls": []} | ({} if tags is None else {"tags": tags})
    for tool, got in zip(tools, await asyncio.gather(*calls, return_exceptions=True)):
        outcome = {"failed": said(got)} if isinstance(got, Exception) else {"got": result_of(got)}
        received["calls"].append({"tool": written(tool), **outcome})
    received["resource"] = written(await session.read_resource("map://valley"))
    received["prompt"] = written(await session.get_prompt("plan"))
    same(await faults_of(judge, received), [])


async def reads_rows(session, server, rows):
    """In few words: each key is read inline up to 500 rows, and the whole, page by page, where the link leads."""
    await session.list_tools()
    got = written(await session.call_tool(rows["tool"], {}))
    whole = server["results"]["tools"][rows["tool"]]["structuredContent"][rows["list"]]
    words = set(re.split(r"[^\w.:-]+", "\n".join(block.get("text", "") for block in got["content"])))
    same([row for row in whole[:500] if str(row[rows["key"]]) not in words], [])
    link = next(block["uri"] for block in got["content"] if block["type"] == "resource_link")
    read, uri = [], f"{link}?pointer=/{rows['list']}"
    while uri:
        contents = written(await session.read_resource(uri))["contents"]
        read += json.loads(contents[0]["text"])
        uri = contents[1]["uri"] if len(contents) > 1 else None
    same(read, whole)


async def main():
    server = json.loads(Path(JOB["recording"]).read_text(encoding="utf-8"))
    script, pipe = str(Path(__file__).with_name("shaped-results.mjs")), asyncio.subprocess.PIPE
    judge = await asyncio.create_subprocess_exec("node", script, JOB["recording"], stdin=pipe, stdout=pipe)
    target = JOB["url"] if JOB["way"] == "http" else started(JOB["command"])

    async def of(tags, check):
        # A list without tags is declared, too.
        async with declaring(target, tags) as session:
            await check(session)

    for tags in JOB["sets"]:
        name = "nothing declared" if tags is None else f"[{','.join(tags)}]"
        await told(name, lambda: of(tags, lambda session: holds(session, judge, tags)))
    # On stdio each connection is a process: one of the sets will do.
    for rows in JOB["rows"] if JOB["way"] == "http" else JOB["rows"][:1]:
        name, tags = f"the rows of {rows['tool']}", ["verbosity=compact"]
        await told(name, lambda: of(tags, lambda session: reads_rows(session, server, rows)))


asyncio.run(main())
