"""Tasks of the extension with FastMCP 4, which sends no `Mcp-Name` in its requests about them."""

from fastmcp_tasks import call_tool_task
from mcp.shared.exceptions import MCPError


class FastMcpTasks:
    """The tasks that FastMCP's client begins."""

    def __init__(self):
        self.session = None
        self.made = {}

    async def begin(self, tool, arguments):
        task = await call_tool_task(self.session.client, tool, arguments, raise_on_error=False)
        self.made[task.task_id] = task
        return task.task_id

    async def status(self, task):
        return (await self.made[task].status()).status

    async def end(self, task):
        result = await self.made[task].result()
        final = await self.made[task].status()
        if final.status == "failed":
            raise MCPError(final.error["code"], final.error["message"])
        return result

    async def cancel(self, task):
        await self.made[task].cancel()
