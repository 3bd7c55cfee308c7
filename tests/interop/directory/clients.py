"""Clients in Python that make tool objects of what a server lists: each calls the tools of a `directory` through its
own objects, without a model. Prints a line of JSON for each call of calls.json, with the text of the result.

clients.py CLIENT URL; CLIENT is the function below."""

import asyncio
import json
import sys
from pathlib import Path

CALLS = json.loads((Path(__file__).parent / "calls.json").read_text())


def text_of(result):
    """The text of a result, in whichever form a client hands it on."""
    if isinstance(result, str):
        try:
            inner = json.loads(result)
        except ValueError:
            return result
        # Some clients hand on the block as JSON.
        return inner["text"] if isinstance(inner, dict) and inner.get("type") == "text" else result
    if isinstance(result, list):
        return "".join(text_of(block) for block in result)
    if isinstance(result, dict):
        return result["text"] if "text" in result else json.dumps(result)
    if hasattr(result, "content"):
        return text_of(result.content)
    return result.text if hasattr(result, "text") else str(result)


async def report(perform):
    for call in CALLS:
        try:
            line = {"text": text_of(await perform(call["name"], call["arguments"]))}
        except Exception as error:  # what a client refuses is in the table
            line = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"call": call["call"]} | line), flush=True)


async def sdk(url):
    from mcp.client.client import Client

    async with Client(url) as client:
        await client.list_tools()
        await report(client.call_tool)


async def langchain(url):
    from langchain_mcp_adapters.client import MultiServerMCPClient

    client = MultiServerMCPClient({"vary": {"url": url, "transport": "streamable_http"}})
    tools = {tool.name: tool for tool in await client.get_tools()}
    await report(lambda name, arguments: tools[name].ainvoke(arguments))


async def openai_agents(url):
    from agents import Agent
    from agents.mcp import MCPServerStreamableHttp, MCPUtil
    from agents.run_context import RunContextWrapper
    from agents.tool_context import ToolContext

    async with MCPServerStreamableHttp(params={"url": url}) as server:
        agent = Agent(name="test")
        listed = await MCPUtil.get_function_tools(server, False, RunContextWrapper(None), agent)
        tools = {tool.name: tool for tool in listed}

        async def perform(name, arguments):
            text = json.dumps(arguments)
            context = ToolContext(None, tool_name=name, tool_call_id="1", tool_arguments=text)
            return await tools[name].on_invoke_tool(context, text)

        await report(perform)


async def pydantic_ai(url):
    from pydantic_ai import RunContext, RunUsage
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.models.test import TestModel

    async with MCPToolset(url) as toolset:
        context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
        tools = await toolset.get_tools(context)

        async def perform(name, arguments):
            tool = tools[name]
            checked = tool.args_validator.validate_python(arguments)
            return await toolset.call_tool(name, checked, context, tool)

        await report(perform)


async def llama_index(url):
    from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

    tools = await McpToolSpec(BasicMCPClient(url)).to_tool_list_async()
    tools = {tool.metadata.name: tool for tool in tools}

    async def perform(name, arguments):
        return (await tools[name].acall(**arguments)).raw_output

    await report(perform)


async def crewai(url):
    from crewai_tools import MCPServerAdapter

    with MCPServerAdapter({"url": url, "transport": "streamable-http"}) as listed:
        tools = {tool.name: tool for tool in listed}

        async def perform(name, arguments):
            return tools[name].run(**arguments)

        await report(perform)


async def autogen(url):
    from autogen_core import CancellationToken
    from autogen_ext.tools.mcp import StreamableHttpServerParams, mcp_server_tools

    tools = {tool.name: tool for tool in await mcp_server_tools(StreamableHttpServerParams(url=url))}

    async def perform(name, arguments):
        return await tools[name].run_json(arguments, CancellationToken())

    await report(perform)


asyncio.run(globals()[sys.argv[1]](sys.argv[2]))
