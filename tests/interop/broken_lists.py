"""All that the Python SDK lists at an address, as JSON."""

import asyncio
import json
import sys

from mcp.client.client import Client

from sdks import pages, written

_, url, era = sys.argv


async def everything(ask, name):
    return [written(item) for item in await pages(ask, name)]


async def main():
    async with Client(url, mode="auto" if era == "modern" else "legacy", read_timeout_seconds=60) as client:
        lists = {
            "tools": await everything(client.list_tools, "tools"),
            "prompts": await everything(client.list_prompts, "prompts"),
            "resources": await everything(client.list_resources, "resources"),
            "resourceTemplates": await everything(client.list_resource_templates, "resource_templates"),
        }
    print(json.dumps(lists))


asyncio.run(main())
