"""All that the Python SDK lists at an address, as JSON."""

import asyncio
import json
import sys

from mcp.client.client import Client

from sdks import written

_, url, era = sys.argv


async def everything(ask, name):
    found, cursor = [], None
    while True:
        page = await ask(cursor=cursor)
        found += [written(item) for item in getattr(page, name)]
        if (cursor := page.next_cursor) is None:
            return found


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
