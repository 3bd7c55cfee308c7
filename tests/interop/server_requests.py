"""What servers ask of the Python SDK: forms, visits, samples and roots. The same as in server_requests.mjs."""

import asyncio
import os
from contextlib import suppress

from sdks import MCPError, connected, of_both_eras, types, written
from telling import JOB, holds, lacks, same, text, told

IS_LEGACY = JOB["era"] == "legacy"
ROOTS = ["file:///one"]


class Answers:
    """What a client answers at the time, and what it was told of visits."""

    def __init__(self, **forms):
        self.elicit = accepts(**forms)
        self.sample = sampled
        self.roots = ROOTS
        self.ended = set()
        self.news = asyncio.Event()

    async def on_elicit(self, context, params):
        return self.elicit(params)

    async def on_sample(self, context, params):
        return self.sample(params)

    async def on_roots(self, context):
        return types.ListRootsResult(roots=[types.Root(uri=uri, name=uri) for uri in self.roots])

    async def on_message(self, message):
        if getattr(message, "method", "") == "notifications/elicitation/complete":
            self.ended.add(written(message.params)["elicitationId"])
            self.news.set()

    async def ends(self, visit):
        """Waits until a visit is said to have ended."""
        while visit not in self.ended:
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), 60)


def client(server, answers):
    """A client of one of the job's servers that answers as `answers` says."""
    return connected(
        JOB,
        server,
        answers.on_message,
        sampling_capabilities=types.SamplingCapability(tools=types.SamplingToolsCapability()),
        elicitation_callback=answers.on_elicit,
        sampling_callback=answers.on_sample,
        list_roots_callback=answers.on_roots,
    )


async def called(session, tool, arguments=None):
    return text(await session.call_tool(tool, arguments or {}))


def accepts(**content):
    return lambda params: types.ElicitResult(action="accept", content=content or None)


def declines(params):
    return types.ElicitResult(action="decline")


def sampled(params):
    """A message with what was said to the model."""
    content = params.messages[0].content
    block = content[0] if isinstance(content, list) else content
    said = types.TextContent(type="text", text=f"so {block.text}")
    return types.CreateMessageResult(role="assistant", model="m", content=said)


def used(params):
    """A message that calls the first tool."""
    use = types.ToolUseContent(type="tool_use", id="1", name=params.tools[0].name, input={})
    said = {"role": "assistant", "model": "m", "stopReason": "toolUse", "content": use}
    return types.CreateMessageResultWithTools.model_validate(said)


# The tools of the servers that ask for something, their arguments, and what they say when they got it.
OF_EVERYTHING = {
    "form": ("trigger-elicitation-request", {}, "Ada", "declined"),
    "sample": ("trigger-sampling-request", {"prompt": "what"}, "so Resource"),
    "visit": ("trigger-url-elicitation", {"url": "https://example.org/visit"}, "completed"),
    "roots": ("get-roots-list", {}, "file:///one"),
}
OF_FIXTURE = {
    "form": ("test_input_required_result_elicitation", {}, "Ada", "nothing"),
    "sample": ("test_input_required_result_sampling", {}, "so What is"),
    "use": ("test_input_required_result_sampling_tools", {}, "look-out"),
    "visit": ("test_input_required_result_url", {}, "accept"),
    "roots": ("test_input_required_result_list_roots", {}, "file:///one"),
}
OF_SDKS = {
    "form": ("fill_form", {}, "hello Ada", "decline"),
    "sample": ("ask_model", {}, "so What is"),
    "roots": ("show_roots", {}, "file:///one"),
}
OF_ASKING = {"use": ("weather", {}, "tool_use look-out")}


async def all_of(server, session, answers, tools):
    """Asks everything that a server asks, of one client."""
    seen = []

    def visit(params):
        seen.extend([params.mode, params.url])
        return types.ElicitResult(action="accept")

    async def asks(tool, arguments, part, changed):
        vars(answers).update(changed)
        holds(await called(session, tool, arguments), part)
        if changed.get("elicit") is visit:
            same(seen, ["url", "https://example.org/visit"])

    for name, kind, part, changed in [
        ("fills in a form", "form", 2, {"elicit": accepts(name="Ada", check=True)}),
        ("declines a form", "form", 3, {"elicit": declines}),
        ("samples", "sample", 2, {"sample": sampled}),
        ("samples with tools", "use", 2, {"sample": used}),
        ("visits an address", "visit", 2, {"elicit": visit}),
        ("shows its roots", "roots", 2, {}),
    ]:
        if kind in tools:
            tool = tools[kind]
            await told(name, lambda: asks(tool[0], tool[1], tool[part], changed), server)


async def in_sessions(name, action, server):
    """What only clients with a session are told, or can say."""
    if IS_LEGACY:
        await told(name, action, server)
    else:
        lacks(name, "2026-07-28 has no such message", server)


async def refused(session, tool, arguments):
    """The URL that the client gets before a call of `tool` can be answered."""
    try:
        raise AssertionError(f"no error but {await called(session, tool, arguments)}")
    except MCPError as error:
        same(error.error.code, -32042)
        return error.error.data["elicitations"][0]["url"]


async def everything(server):
    answers = Answers()
    async with client(server, answers) as session:
        await all_of(server, session, answers, OF_EVERYTHING)

        async def is_told_where_first():
            # The server remembers the URL of a session, which clients with the same capabilities share.
            arguments = {"url": f"https://example.org/{os.getpid()}", "errorPath": True}
            first = "https://modelcontextprotocol.io"
            if IS_LEGACY:
                same(await refused(session, "trigger-url-elicitation", arguments), first)
                return
            # In 2026-07-28 it is asked to go there; this server never has enough of that.
            seen = set()

            def decline(params):
                seen.add(params.url)
                return declines(params)

            answers.elicit = decline
            with suppress(MCPError):
                await called(session, "trigger-url-elicitation", arguments)
            same(seen, {first})

        async def shows_others():
            answers.roots = ["file:///two"]
            # In 2026-07-28 it says nothing of that, and is asked.
            if IS_LEGACY:
                await session.send_roots_list_changed()
            # The server asks once more in its own time.
            while "file:///two" not in await called(session, "get-roots-list"):
                pass

        async def are_asked_their_own():
            answers.elicit = accepts(name="Ada")
            async with client(server, Answers(name="Grace")) as other:
                for _ in range(5):
                    both = [called(each, "trigger-elicitation-request") for each in (session, other)]
                    one, two = await asyncio.gather(*both)
                    holds(one, "Ada")
                    holds(two, "Grace")

        await told("learns which URL to visit first", is_told_where_first, server)
        await told("shows other roots when they have changed", shows_others, server)
        await told("two clients at once are each asked their own", are_asked_their_own, server)


async def fixture(server):
    answers = Answers()
    async with client(server, answers) as session:
        await all_of(server, session, answers, OF_FIXTURE)

        async def is_asked_in_rounds():
            def fill(params):
                content = dict.fromkeys(written(params)["requestedSchema"]["properties"], "Ada")
                return types.ElicitResult(action="accept", content=content)

            answers.elicit, answers.sample = fill, sampled
            holds(await called(session, "test_input_required_result_multi_round"), "all rounds are done")
            holds(await called(session, "test_input_required_result_multiple_inputs"), "got all three")

        await told("is asked in as many rounds as the server wants", is_asked_in_rounds, server)


async def asking(server):
    answers = Answers()
    async with client(server, answers) as session:
        await all_of(server, session, answers, OF_ASKING)

        async def is_told_of_the_end():
            answers.elicit = accepts()
            same(await called(session, "visit"), "accept")
            await answers.ends("visit-1")

        async def visits_before_the_answer():
            seen = set()

            def visit(params):
                seen.add(params.url)
                return types.ElicitResult(action="accept")

            answers.elicit = visit
            who = f"{JOB['client']}-{JOB['way']}-{JOB['era']}"
            if IS_LEGACY:
                seen.add(await refused(session, "enter", {"who": who}))
                await answers.ends(f"ticket-{who}")
            same(await called(session, "enter", {"who": who}), f"welcome {who}")
            same(seen, {"https://example.org/ticket"})

        await in_sessions("is notified that a URL elicitation is complete", is_told_of_the_end, server)
        await told("visits a URL before its call is answered", visits_before_the_answer, server)


async def main():
    # Over stdio each client has a gateway and servers of its own, and what is behind that is the same.
    for server in ["everything", "everything-http", "everything-sse"] if JOB["way"] == "http" else ["everything"]:
        await everything(server)
    for server in ["fixture", "modern"]:
        await fixture(server)
    await asking("asking")
    # Servers that say in discovery that they know 2026-07-28, and know sessions, too.
    for server in [*of_both_eras(JOB), *(["python-sdk-sse"] if JOB["way"] == "http" else [])]:
        async with client(server, answers := Answers()) as session:
            await all_of(server, session, answers, OF_SDKS)


asyncio.run(main())
