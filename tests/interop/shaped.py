"""Every shaped result of shaped.json, taken by the Python SDK for every set of feature tags: the SDK validates it, and
it is held against what the server said. shaped.mjs asks the same of the TypeScript SDKs."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import discover_timeout  # noqa: F401
from mcp.client.client import Client
from mcp.client.extension import advertise
from mcp.client.stdio import StdioServerParameters

from library import NEGOTIATION, written
from telling import said, same

APPLIED = "vary/applied"


class Wanted:
    """What the tags of a set come to: who reads, in which form, and whether the client wants few words."""

    def __init__(self, tags):
        tags = tags or []
        self.agent = "agent" in tags and "human" not in tags
        self.human = "human" in tags and "agent" not in tags
        explicit = next((tag[7:] for tag in tags if tag.startswith("format=")), None)
        self.form = explicit or ("json" if self.agent else "markdown" if self.human else None)
        self.lifts = explicit == "json"
        self.alone = self.lifts and self.agent
        self.compact = "verbosity=compact" in tags
        self.samples = "sampling" in tags


def texts_of(content):
    return [block["text"] for block in content if block["type"] == "text"]


def document(texts):
    """The one JSON document, an object or a list, that the text is."""
    if len(texts) != 1:
        return None
    try:
        value = json.loads(texts[0])
    except ValueError:
        return None
    return value if isinstance(value, (dict, list)) else None


def wrong(server, era, tool, result, tags):
    """What is wrong with what a client of these tags got from `tool`; nothing where all is well."""
    said = server["results"]["tools"][tool.name]
    got, structured = written(result), result.structured_content
    applied = (got.get("_meta") or {}).get(APPLIED)
    want = Wanted(tags)
    texts, served = texts_of(got["content"]), texts_of(said["content"])
    link = next((block for block in got["content"] if str(block.get("uri", "")).startswith("vary://result/")), None)
    modern = era == "modern"
    value = said.get("structuredContent")
    value = value if modern or isinstance(value, dict) else None
    bound = tool.output_schema is not None and value is not None
    stays = bound or "ui" in (tool.meta or {})
    ruled = tool.name.startswith("told") and bool(tags)
    shortened = want.compact and link is not None

    def others(content):
        return [block for block in content if block["type"] != "text" and block != link]

    if others(got["content"]) != others(said["content"]):
        yield "another block than text was lost or changed"
    if "structured_content" in result.model_fields_set and structured is None:
        yield "`structuredContent` is null"
    if link and not want.compact:
        yield "something was left out"
    if not link and want.compact and tool.name == "rows":
        yield "nothing was left out of the rows"
    if tags is None and applied:
        yield "the report of what was applied is there, and nothing was declared"
    if said.get("isError"):
        if not result.is_error:
            yield "it is no error any more"
        if texts != served:
            yield "the error says something else"
        return
    if result.is_error:
        yield "it is an error"
    if stays and structured is None:
        yield "`structuredContent` is missing"
    if structured is not None and value is not None and not shortened and (bound or not ruled):
        found = structured
        if ruled and want.samples:
            found = {key: part for key, part in structured.items() if key != "hints"}
        if found != value:
            yield "`structuredContent` has another value"
    if ruled:
        yield from wrong_in_the_operators_words(tool, structured, got, texts, want, applied)
        return
    if shortened:
        if not any("vary://result/" in text for text in texts):
            yield "nothing says where the rest is"
        return
    if not want.form and not want.compact:
        if texts != served:
            yield "its text is another"
        if structured != value:
            yield "its `structuredContent` is another"
        if applied:
            yield "something was applied"
    if not want.form:
        return
    yield from wrong_form(said, want, texts, served, structured, value, stays, modern, applied, "ui" in (tool.meta or {}))


def wrong_form(said, want, texts, served, structured, value, stays, modern, applied, is_ui):
    whole = said.get("structuredContent", document(served))
    if whole is None:
        if texts != served:
            yield "prose says something else"
        return
    author = [text for text in served if (document([text]) or text) != whole and text != str(whole)]
    if want.form in ("markdown", "text"):
        if not stays and structured is not None:
            yield "`structuredContent` is there for who reads text"
        if not "".join(texts).strip() and not is_ui:
            yield "it says nothing"
        if any(document([text]) is not None for text in texts):
            yield "it is still JSON"
        if any(text not in texts for text in author):
            yield "the author's words are lost"
        if (applied or {}).get("format") != want.form and texts != served:
            yield "it is not told the form"
        return
    may = modern or isinstance(whole, dict)
    if "structuredContent" not in said and want.lifts and may and structured != whole:
        yield "the document is no value"
    # Words that the author wrote beside the value follow it, unless the client asked for the value alone.
    if want.alone and may:
        if any(not is_ui or text not in author for text in texts):
            yield "text stands beside the bare value"
    elif not texts or json.loads(texts[0]) != whole or any(text not in author for text in texts[1:]):
        yield "the text is not the value"
    if value is not None and (applied or {}).get("format") != "json":
        yield "it is not told the form"


def wrong_in_the_operators_words(tool, structured, got, texts, want, applied):
    projected = {"ids": [1, 2]} | ({"hints": ["ask for one of them"]} if want.samples else {})
    words = "2 of them" if want.form == "text" else "**2** of them"
    if want.form != "json" and texts[:1] != [words]:
        yield f"the text is {texts}"
    if want.form == "json" and tool.output_schema is None and structured != projected:
        yield "`structuredContent` is not the operator's"
    # A value that is bound to a schema, and stands alone, has no place for it.
    has_place = not want.alone or tool.output_schema is None
    if want.samples and has_place and "ask for one of them" not in json.dumps(got):
        yield "the hint is missing"
    if applied is None:
        yield "it is not told what was applied"


def wrong_resource(server, result, tags):
    first, picture = written(result)["contents"]
    said, blob = server["results"]["resources"]["map://valley"]["contents"]
    if picture != blob:
        yield "the blob of the map is another"
    media_type = {"markdown": "text/markdown", "text": "text/plain"}.get(Wanted(tags).form, said["mimeType"])
    if first["mimeType"] != media_type:
        yield f"the map is {first['mimeType']}, not {media_type}"
    if (document([first["text"]]) is not None) != (media_type == said["mimeType"]):
        yield "the media type of the map is not true"


def wrong_prompt(server, result, tags):
    first, second = written(result)["messages"]
    want = Wanted(tags)
    if second != server["results"]["prompts"]["plan"]["messages"][1]:
        yield "the picture of the prompt is another"
    words = "Plan it."
    if want.agent and want.samples:
        words = "Plan it step by step."
    elif want.human:
        words = "Let us plan it together."
    if first["content"]["text"] != words:
        yield f"the prompt says {first['content']['text']}"


async def holds(session, server, job, tags):
    """All answers that a client of these tags gets."""
    tools = (await session.list_tools()).tools
    tools = [tool for tool in tools if not any(rows["tool"] == tool.name for rows in job["rows"])]
    calls = [session.call_tool(tool.name, {}) for tool in tools]
    faults = []
    for tool, got in zip(tools, await asyncio.gather(*calls, return_exceptions=True)):
        if isinstance(got, Exception):
            faults.append(f"{tool.name}: {said(got)}")
            continue
        found = wrong(server, job["era"], tool, got, tags)
        faults += [f"{tool.name}: {fault}: {json.dumps(written(got))[:300]}" for fault in found]
    faults += wrong_resource(server, await session.read_resource("map://valley"), tags)
    faults += wrong_prompt(server, await session.get_prompt("plan"), tags)
    if faults:
        raise AssertionError("; ".join(faults))


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


def connected(job, tags):
    mode = "auto" if job["era"] == "modern" else "legacy"
    target = job["url"]
    if job["way"] == "stdio":
        program, *args = job["command"]
        target = StdioServerParameters(command=program, args=args, env=dict(os.environ))
    # A list without tags is declared, too.
    extensions = None if tags is None else [advertise(NEGOTIATION, {"version": "1.0", "features": tags})]
    return Client(target, mode=mode, extensions=extensions)


async def told(name, job, tags, action):
    """Connects, does `action`, and prints how it went."""
    line = {"name": name, "ok": True}
    try:
        async with connected(job, tags) as session:
            same("modern" if session.protocol_version >= "2026" else "legacy", job["era"])
            await action(session)
    except Exception as error:
        line |= {"ok": False, "detail": said(error)}
    print(json.dumps(line, ensure_ascii=False) + "\n", end="", flush=True)


async def main():
    job = json.loads(sys.argv[1])
    server = json.loads(Path(job["recording"]).read_text(encoding="utf-8"))
    for tags in job["sets"]:
        name = "nothing declared" if tags is None else f"[{','.join(tags)}]"
        await told(name, job, tags, lambda session, tags=tags: holds(session, server, job, tags))
    # On stdio each connection is a process: one of the sets will do.
    for rows in job["rows"] if job["way"] == "http" else job["rows"][:1]:
        name, tags = f"the rows of {rows['tool']}", ["verbosity=compact"]
        await told(name, job, tags, lambda session, rows=rows: reads_rows(session, server, rows))


asyncio.run(main())
