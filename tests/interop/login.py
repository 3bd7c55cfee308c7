"""A client on the Python SDK 1.x or 2.x, or on FastMCP 4, logs in from nothing but the URL. The same as in login.mjs."""

import asyncio
import json
from base64 import urlsafe_b64decode
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import parse_qsl, urljoin

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientMetadata
from sdks import IS_FIRST, connected, httpx, written
from telling import JOB, same, told

if not IS_FIRST:
    from mcp.client.auth import AuthorizationCodeResult

STANDARD = "/mcp"
COMPACT = "/mcp/v/compact"

# The authorization server redirects there. Nothing listens: the parameters are read from the redirect.
CALLBACK = "http://127.0.0.1:7777/callback"


class Credentials:
    """What a client stores between its requests."""

    def __init__(self):
        self.tokens = None
        self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Person:
    """Logs in and says yes, without a browser."""

    def __init__(self, who):
        self.who = who

    async def open(self, url):
        """Has consent.mjs fill in the forms at `url`, until the authorization server redirects to the client."""
        script, pipe = str(Path(__file__).with_name("consent.mjs")), asyncio.subprocess.PIPE
        person = await asyncio.create_subprocess_exec("node", script, url, CALLBACK, self.who, stdout=pipe, stderr=pipe)
        printed, problem = await person.communicate()
        if person.returncode != 0:
            raise AssertionError(problem.decode()[-600:])
        self.redirected = dict(parse_qsl(printed.decode().strip()))

    async def returned(self):
        """The parameters of the redirect, as the SDK wants them."""
        if "code" not in self.redirected:
            raise AssertionError(f"the authorization server refuses: {self.redirected}")
        code, state = self.redirected["code"], self.redirected.get("state")
        if IS_FIRST:
            return code, state
        return AuthorizationCodeResult(code=code, state=state, iss=self.redirected.get("iss"))


def authentication(url, credentials, who):
    """What the SDK needs to log in to `url` as `who`."""
    metadata = OAuthClientMetadata(
        client_name="interop",
        redirect_uris=[CALLBACK],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method="none",
    )
    person = Person(who)
    return OAuthClientProvider(url, metadata, credentials, person.open, person.returned)


async def call(session, mark):
    """Calls a tool with `mark`; what the server received from Vary since it was started."""
    result = await session.call_tool("echo", {"said": mark})
    same(written(result)["structuredContent"], {"said": mark})
    async with httpx.AsyncClient() as http:
        return (await http.get(urljoin(JOB["recorder"], "/received"))).json()


def check_received(received, mark, token):
    """What the server received from Vary has `mark` in it once, and no token."""
    same(len([it for it in received if mark in it["body"]]), 1)
    for request in received:
        names = request["headers"][::2]
        text = " ".join([*request["headers"], request["body"]])
        if token in text or "authorization" in [name.lower() for name in names]:
            raise AssertionError(f"the server received a token with {request['method']}: {names}")


async def check_lists(session, address, lists):
    """The address of the variant has the tools of `/mcp`, smaller."""
    tools = written(await session.list_tools())["tools"]
    lists[address] = tools
    same("echo" in names(tools), True)
    if address == COMPACT:
        standard = lists[STANDARD]
        same(names(tools), names(standard))
        large, small = (len(json.dumps(it)) for it in (standard, tools))
        if small >= large:
            raise AssertionError(f"{small} characters instead of fewer than {large}")


def names(tools):
    return [tool["name"] for tool in tools]


async def logged_in(what, url, checks, who="ann"):
    """Everything that a client does that knows nothing but `url`: `who` logs in, and makes the `checks`."""
    credentials = Credentials()
    session = None
    async with AsyncExitStack() as stack:

        async def log_in():
            nonlocal session
            target = connected({**JOB, what: {"url": url}}, what, auth=authentication(url, credentials, who))
            opened = await stack.enter_async_context(target)
            if credentials.tokens is None:
                raise AssertionError(f"{url} lets in a client without a login")
            session = opened

        await told("logs in from the URL alone", log_in, what)
        for name, check in checks.items() if session else []:
            await told(name, lambda: check(session, credentials.tokens.access_token), what)


async def of_address(address, lists):
    async def calls(session, token):
        mark = f"{JOB['client']} {JOB['era']} {address}"
        check_received(await call(session, mark), mark, token)

    checks = {
        "lists the tools of the address": lambda session, _: check_lists(session, address, lists),
        "calls a tool, and the server behind receives no token": calls,
    }
    await logged_in(address, urljoin(JOB["url"], address), checks)


def check_exchanged(received, mark, who, inbound):
    """What the server received from Vary has `mark` in it once, with a token for `who`; and none for anybody but the server."""
    owners = []
    for request in received:
        names, values = request["headers"][::2], request["headers"][1::2]
        headers = {name.lower(): value for name, value in zip(names, values)}
        claims = headers["authorization"].removeprefix("Bearer ").split(".")[1]
        claims = json.loads(urlsafe_b64decode(claims + "=="))
        same([claims["aud"], claims["act"]], [JOB["recorder"], {"sub": "gateway"}])
        if mark in request["body"]:
            owners.append(claims["sub"])
        if inbound in " ".join([*values, request["body"]]):
            raise AssertionError(f"the server received the token of {who}")
    same(owners, [who])


async def of_person(who):
    """Calls while another person does; the server behind gets tokens in exchange for theirs."""

    async def calls(session, token):
        mark = f"{who} {JOB['client']} {JOB['era']}"
        check_exchanged(await call(session, mark), mark, who, token)

    checks = {"calls a tool, and the server behind gets the token of this person alone": calls}
    await logged_in(who, JOB["url"], checks, who)


async def main():
    if JOB.get("exchanged"):
        await asyncio.gather(of_person("ann"), of_person("bob"))
        return
    lists = {}
    for address in [STANDARD, COMPACT]:
        await of_address(address, lists)


asyncio.run(main())
