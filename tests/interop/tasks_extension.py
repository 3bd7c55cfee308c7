"""Tasks of the extension with the Python SDK 2.x, which has hooks for extensions."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any, Literal

from mcp.client.extension import ClientExtension, NotificationBinding, ResultClaim
from pydantic import ConfigDict, Field

from sdks import MCPError, types


class Made(types.Result):
    """The result that a task was made."""

    result_type: Literal["task"] = Field(alias="resultType")
    task_id: str = Field(alias="taskId")


class Answered(types.Result):
    """What a request about a task comes to: how it stands, or nothing."""

    model_config = ConfigDict(extra="allow")
    status: str = ""


class Stands(types.NotificationParams):
    """How a task stands."""

    task_id: str = Field(alias="taskId")
    status: str


class Asks(types.Request):
    """A request about a task."""

    method: str
    params: Any
    name_param = "taskId"


class ExtensionTasks(ClientExtension):
    """The extension: it takes note of a task, waits for what it comes to, and answers what it asks."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, form, asked):
        self.form = form
        self.asked = asked
        self.session = None
        self.made = []
        self.heard = []
        self.listens = asyncio.Event()

    async def hear(self, message):
        if getattr(message, "method", "") == "notifications/subscriptions/acknowledged":
            self.listens.set()

    async def hear_of_a_task(self, stands):
        self.heard.append((stands.task_id, stands.status))

    def notifications(self):
        method, handler = "notifications/tasks", self.hear_of_a_task
        return [NotificationBinding(method=method, params_type=Stands, handler=handler)]

    def claims(self):
        return [ResultClaim(result_type="task", model=Made, resolve=self.resolve)]

    async def resolve(self, made, context):
        self.made.append(made.task_id)
        # What waits for it waits by `end`, so that there is something to be asked of it before.
        return types.CallToolResult(content=[])

    async def end(self, task):
        while True:
            stands = await self.ask("tasks/get", task)
            match stands.status:
                case "completed":
                    return types.CallToolResult.model_validate(stands.result)
                case "failed":
                    raise MCPError(stands.error["code"], stands.error["message"])
                case "input_required":
                    self.asked.extend(stands.inputRequests.values())
                    filled = {"action": "accept", "content": self.form}
                    answers = dict.fromkeys(stands.inputRequests, filled)
                    await self.ask("tasks/update", task, inputResponses=answers)
            await asyncio.sleep(0.1)

    async def begin(self, tool, arguments):
        await self.session.call_tool(tool, arguments)
        return self.made.pop()

    async def status(self, task):
        return (await self.ask("tasks/get", task)).status

    async def cancel(self, task):
        await self.ask("tasks/cancel", task)

    @asynccontextmanager
    async def listening(self, task):
        """Listens to a task: of filters with `taskIds` the SDK knows that there may be some."""
        filter = types.SubscriptionFilter(taskIds=[task])
        params = types.SubscriptionsListenRequestParams(notifications=filter)
        request = types.SubscriptionsListenRequest(params=params)
        asked = self.session.session.send_request(request, types.SubscriptionsListenResult)
        stream = asyncio.create_task(asked)
        await self.listens.wait()
        yield
        stream.cancel()

    async def ask(self, method, task, **more):
        """Asks something about a task."""
        request = Asks(method=method, params={"taskId": task, **more})
        return await self.session.session.send_request(request, Answered)
