"""Tasks of 2025-11-25 with the Python SDK: 1.x makes them, 2.x takes no result that one was made."""

from contextlib import asynccontextmanager

from pydantic import ValidationError

from sdks import types


class CoreTasks:
    """The tasks of a session of the SDK 1.x, and how they were said to stand."""

    def __init__(self):
        self.session = None
        self.heard = []

    async def hear(self, message):
        if getattr(message, "method", "") == "notifications/tasks/status":
            self.heard.append((message.params.taskId, message.params.status))

    @asynccontextmanager
    async def listening(self, task):
        """A session is notified of its tasks anyway."""
        yield

    async def begin(self, tool, arguments):
        made = await self.session.experimental.call_tool_as_task(tool, arguments)
        return made.task.taskId

    async def status(self, task):
        return (await self.session.experimental.get_task(task)).status

    async def end(self, task):
        return await self.session.experimental.get_task_result(task, types.CallToolResult)

    async def cancel(self, task):
        await self.session.experimental.cancel_task(task)

    async def list(self):
        return [task.taskId for task in (await self.session.experimental.list_tasks()).tasks]


async def cannot_make_a_task(session):
    """2.x has the types, but takes no result that a task was made."""
    params = types.CallToolRequestParams(
        name="simulate-research-query", arguments={"topic": "a"}, task=types.TaskMetadata(ttl=60_000)
    )
    try:
        request = types.CallToolRequest(params=params)
        made = await session.session.send_request(request, types.CreateTaskResult)
    except ValidationError as error:
        if "validation error for CallToolResult" not in str(error):
            raise
        return
    raise AssertionError(f"the SDK knows tasks by now: {made}")
