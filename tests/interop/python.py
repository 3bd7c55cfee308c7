"""The Python SDK: either era. The same checks as in checks.mjs, in its own words."""

import asyncio
import json
from pathlib import Path

from library import VARIANTS, declaring, started
from sdks import MCPError, types
from telling import JOB, VARIANT, same, text, told

OFFERED = ["standard", "compact", "directory", "read-only"]


SERVERS = Path(__file__).with_name("servers.json").read_text(encoding="utf-8")
DIRECTORY = json.dumps(JOB.get("directory", ""), ensure_ascii=False)[1:-1]
EXPECTED = json.loads(SERVERS.replace("{directory}", DIRECTORY))[JOB["server"]]


def client(features=None):
    """A client of the job's server that declares `features`, or nothing."""
    return declaring(JOB.get("url") or started(JOB["command"]), features)


def expect_value(result, structured):
    if result.is_error:
        raise AssertionError(text(result))
    if "value" in structured:
        same(result.structured_content, structured["value"])
    for key, value in structured.get("part", {}).items():
        same((result.structured_content or {}).get(key), value)


def names(listed):
    return [tool.name for tool in listed.tools]


async def failure(action):
    """The protocol error that `action` ends with."""
    try:
        result = await action
    except MCPError as error:
        return error.error
    raise AssertionError(f"no error but {result!r:.200}")


async def lists_tools(session, tools):
    listed = names(await session.list_tools())
    same([name for name in tools if name not in listed], [])


async def calls(session, call):
    same(text(await session.call_tool(call["name"], call["arguments"])), call["text"])


async def calls_structured(session, structured):
    result = await session.call_tool(structured["name"], structured["arguments"])
    expect_value(result, structured)
    if not text(result):
        raise AssertionError("`content` is empty")


async def sees_progress(session, progress):
    seen = []

    async def step(done, total, message):
        seen.append(done)

    await session.call_tool(progress["name"], progress["arguments"], progress_callback=step)
    same(seen, progress["steps"])


async def reads(session, resource):
    listed = [each.uri for each in (await session.list_resources()).resources]
    if resource["uri"] not in listed:
        raise AssertionError(f"not listed among {listed}")
    content = (await session.read_resource(resource["uri"])).contents[0]
    if not content.text.startswith(resource["begins"]):
        raise AssertionError(content.text[:80])


async def lists_templates(session, template):
    listed = (await session.list_resource_templates()).resource_templates
    same(template in [each.uri_template for each in listed], True)


async def gets(session, prompt):
    listed = [each.name for each in (await session.list_prompts()).prompts]
    if prompt["name"] not in listed:
        raise AssertionError(f"not listed among {listed}")
    result = await session.get_prompt(prompt["name"], prompt["arguments"])
    same(result.messages[0].content.text, prompt["text"])


async def completes(session, completion):
    ref = types.PromptReference(type="ref/prompt", name=completion["prompt"])
    result = await session.complete(ref, completion["argument"])
    same(result.completion.values, completion["values"])


async def as_served(session):
    """What a client sees that knows neither extension: what the server said."""
    for key, check, title in [
        ("tools", lists_tools, "lists tools"),
        ("call", calls, "calls {name}"),
        ("structured", calls_structured, "calls {name}"),
        ("progress", sees_progress, "sees the progress of {name}"),
        ("resource", reads, "lists and reads resources"),
        ("template", lists_templates, "lists templates"),
        ("prompt", gets, "lists and gets prompts"),
        ("completion", completes, "completes an argument"),
    ]:
        if wanted := EXPECTED.get(key):
            values = wanted if isinstance(wanted, dict) else {}
            await told(title.format_map(values), lambda: check(session, wanted))


async def is_offered(session):
    extensions = session.server_capabilities.extensions or {}
    offered = extensions.get(VARIANTS, {}).get("availableVariants", [])
    same([variant["id"] for variant in offered], OFFERED)


async def sees_less(session):
    standard = await session.list_tools()
    compact = await session.list_tools(meta={VARIANT: "compact"})
    again = await session.list_tools()
    same(names(compact), names(standard))
    same(again.tools, standard.tools)
    large, small = (len(listed.model_dump_json(exclude_none=True)) for listed in (standard, compact))
    if small * 4 > large * 3:
        raise AssertionError(f"{small} of {large} characters")


async def calls_in_compact(session, structured):
    meta = {VARIANT: "compact"}
    result = await session.call_tool(structured["name"], structured["arguments"], meta=meta)
    expect_value(result, structured)


async def is_told_of_variants(session):
    error = await failure(session.list_tools(meta={VARIANT: "nonesuch"}))
    same((error.code, error.message), (-32602, "Invalid server variant"))
    same(error.data["requestedVariant"], "nonesuch")
    available = error.data["availableVariants"]
    same([each["id"] if isinstance(each, dict) else each for each in available], OFFERED)


async def is_told_of_its_variant(session):
    error = await failure(session.call_tool("nonesuch", {}))
    same((error.code, error.data["activeVariant"]), (-32602, "standard"))


async def variants(session):
    """What selecting a variant changes."""
    await told("is offered the variants", lambda: is_offered(session))
    await told("sees a smaller list in compact, and the whole one again after it", lambda: sees_less(session))
    await told("calls in compact", lambda: calls_in_compact(session, EXPECTED["structured"]))
    await told("learns which variants exist when it selects another", lambda: is_told_of_variants(session))
    await told("learns the active variant when a tool does not exist", lambda: is_told_of_its_variant(session))


async def negotiated(features, holds):
    """One call by a client that declares `features`."""
    structured = EXPECTED["structured"]
    async with client(features) as session:
        # Clients validate against the schema they listed.
        await session.list_tools()
        holds(await session.call_tool(structured["name"], structured["arguments"]), structured)


def bare_value(result, structured):
    same(result.content, [])
    expect_value(result, structured)


def markdown(result, structured):
    shown = text(result)
    if structured["markdown"] not in shown:
        raise AssertionError(shown)
    try:
        json.loads(shown)
    except ValueError:
        pass
    else:
        raise AssertionError(f"still JSON: {shown}")
    # All of these tools declare an output schema, so the value has to stay.
    expect_value(result, structured)


async def undeclared():
    """Everything that one client does that declares nothing."""
    async with client() as session:
        await as_served(session)
        if JOB.get("vary"):
            await variants(session)


async def main():
    await told("opens and closes", lambda: undeclared())
    if JOB.get("vary"):
        agent, human = ["agent", "format=json"], ["human", "format=markdown"]
        await told("an agent gets the bare value", lambda: negotiated(agent, bare_value))
        await told("a person gets markdown", lambda: negotiated(human, markdown))


asyncio.run(main())
