// Tasks with the TypeScript SDK 1.x and 2.x: those of 2025-11-25, and those of the extension.

import { createTaskSessionFromClient } from "@modelcontextprotocol/ext-tasks/client";
import { contributeTaskFilterV2 } from "@modelcontextprotocol/ext-tasks/core/v2";
import * as types from "@modelcontextprotocol/sdk/types.js";

import { INFO, SDKS, clientOf, failure, holds, lacks, open, same, textOf, told, transportTo } from "./sdks.mjs";

const { way, era, client: name, ...servers } = JSON.parse(process.argv[2]);
const sdk = SDKS[name];

const CAPABILITIES = {
  elicitation: { form: {} },
  ...(era === "modern" && { extensions: { "io.modelcontextprotocol/tasks": {} } }),
};

/** A client of one server, its tasks, how they were said to stand, and the forms that it filled in. */
async function connected(server, form) {
  const transport = transportTo(sdk, way, servers[server]);
  const client = clientOf(sdk, era, CAPABILITIES);
  const heard = [];
  const hear = ({ method, params }) => method.startsWith("notifications/tasks") && heard.push(params);
  const asked = [];
  const fill = ({ params }) => {
    asked.push(params);
    return { action: "accept", content: form };
  };
  if (name === "typescript-1") client.setNotificationHandler(types.TaskStatusNotificationSchema, hear);
  else client.fallbackNotificationHandler = hear;
  client.setRequestHandler(sdk.key("elicitation/create", types.ElicitRequestSchema), fill);
  await open(sdk, client, transport, era);
  // It knows what becomes a task by what is listed.
  await client.listTools();
  const tasks = name === "typescript-1" ? tasksOf1(client) : tasksOf2(client, transport, fill);
  /** Waits until a task is said to stand so, where `change` makes it. */
  const notified = async (id, expected, change = () => {}) => {
    // A session is notified of its tasks anyway.
    const stream = era === "modern" && (await client.listen(contributeTaskFilterV2({}, [id]).notifications));
    await change();
    await until(() => heard.some(({ taskId, status }) => taskId === id && status === expected));
    await stream?.close?.();
  };
  return { client, tasks, notified, asked };
}

/** The tasks of the SDK 1.x. */
function tasksOf1(client) {
  const { tasks } = client.experimental;
  return {
    async begin(tool, args) {
      const messages = tasks.callToolStream({ name: tool, arguments: args }, undefined, { task: { ttl: 60_000 } });
      const { value } = await messages.next();
      same(value.type, "taskCreated");
      const end = async () => {
        for await (const message of messages) {
          if (message.type === "result") return message.result;
          if (message.type === "error") throw message.error;
        }
      };
      return { id: value.task.taskId, end };
    },
    status: async (id) => (await tasks.getTask(id)).status,
    list: async () => (await tasks.listTasks()).tasks.map(({ taskId }) => taskId),
    cancel: (id) => tasks.cancelTask(id),
  };
}

const ANYTHING = { "~standard": { version: 1, vendor: "interop", validate: (value) => ({ value }) } };

/** The tasks of the SDK 2.x, which are a package of their own. */
function tasksOf2(client, transport, fill) {
  const framing = { protocolVersion: "2026-07-28", clientInfo: INFO, clientCapabilities: CAPABILITIES };
  const session = createTaskSessionFromClient(client, {
    endpointId: "interop",
    onInputRequest: fill,
    ...(era === "modern" && { rawDispatch: rawly(transport), v2RequestFraming: framing }),
  });
  return {
    async begin(tool, args) {
      const preference = era === "modern" ? "allow" : "require";
      const execution = await session.callTool(tool, args, { task: { preference } });
      // A task of 2025-11-25 asks whoever waits for its result, which the package only does once there is one.
      const onEvent = ({ task }) => {
        if (era !== "legacy" || task?.status !== "input_required") return;
        const { taskId } = task;
        // What comes of it the package finds out by itself.
        client.request({ method: "tasks/result", params: { taskId } }, ANYTHING).catch(() => {});
      };
      same(execution.kind, "task");
      const end = async () => {
        const { outcome } = await execution.settle({ onEvent });
        if (outcome.status !== "completed") throw outcome.error ?? new Error(outcome.status);
        return outcome.result;
      };
      return { id: execution.handle.taskId, end };
    },
    status: async (id) => (await session.task(id).snapshot()).status,
    list: async () => (await session.listTasks()).tasks.map(({ taskId }) => taskId),
    cancel: (id) => session.cancelTask(id),
  };
}

/** Sends requests whose answers the SDK does not know; the package leaves that to the application. */
function rawly(transport) {
  const waiting = new Map();
  const others = transport.onmessage;
  transport.onmessage = (message, extra) => {
    const wait = waiting.get(message.id);
    if (!wait || message.method) return others(message, extra);
    waiting.delete(message.id);
    wait(message.error ? { kind: "error", error: message.error } : { kind: "result", result: message.result });
  };
  let sent = 0;
  return async (request) => {
    sent += 1;
    const id = `task-${sent}`;
    const answer = new Promise((resolve) => waiting.set(id, resolve));
    await transport.send({ jsonrpc: "2.0", id, ...request });
    return answer;
  };
}

/** Waits until `check` holds. */
async function until(check) {
  while (!(await check())) await new Promise((resolve) => setTimeout(resolve, 50));
}

const LISTS = "lists the tasks that it had made";
const CANCELS = "cancels a task";
const GETS = "gets what a task came to";
const NOTIFIED = "is notified of the status of a task";
const IS_ASKED = "is asked by a task";
const IS_ASKED_BEFORE = "is asked before there is a task";
const FAILS = "learns that a task has failed";

/** Lists tasks and finds these, in an era that has a list. */
async function lists(server, tasks, ids) {
  if (era === "modern") return lacks(LISTS, "2026-07-28 has no `tasks/list`", server);
  await told(LISTS, async () => same((await tasks.list()).sort(), [...ids].sort()), server);
}

/** Cancels a task, which may take the server a while. */
async function cancels(tasks, id) {
  await tasks.cancel(id);
  await until(async () => (await tasks.status(id)) === "cancelled");
}

/** What is asked of servers that make tasks of 2025-11-25. */
async function ofTheCore(server) {
  const { client, tasks, notified, asked } = await connected(server, { interpretation: "historical" });
  const research = (topic, more) => tasks.begin("simulate-research-query", { topic, ...more });
  // Each takes four seconds.
  const one = await research("a");
  const heard = told(NOTIFIED, () => notified(one.id, "completed"), server);
  const begun = await tasks.status(one.id);
  const [other, gone] = [await research("b", { ambiguous: true }), await research("c")];
  await lists(server, tasks, [one.id, other.id, gone.id]);
  await told(CANCELS, () => cancels(tasks, gone.id), server);
  await told(GETS, async () => {
    same(begun, "working");
    holds(textOf(await one.end()), "Research Report: a");
    same(await tasks.status(one.id), "completed");
  }, server);
  await heard;
  await told(IS_ASKED, async () => {
    holds(textOf(await other.end()), "Research Report: b (historical)");
    same(asked.length, 1);
  }, server);
  await client.close();
}

/** What is asked of servers with the extension. */
async function ofTheExtension(server) {
  const { client, tasks } = await connected(server, { name: "Ada", confirm: true, value: "seven" });
  const comesTo = async (tool, args, part) => holds(textOf(await (await tasks.begin(tool, args)).end()), part);
  lacks(NOTIFIED, "the SDK of the server, rmcp 3.8.0, knows no `taskIds` to listen to", server);
  // Each of them waits between two looks.
  await Promise.all([
    told(CANCELS, async () => {
      const { id } = await tasks.begin("slow_compute", { seconds: 600 });
      same(await tasks.status(id), "working");
      await cancels(tasks, id);
    }, server),
    told(GETS, () => comesTo("slow_compute", { seconds: 0.2, label: "it" }, "computed it"), server),
    told(IS_ASKED, async () => {
      await comesTo("confirm_delete", { filename: "a.txt" }, "deleted a.txt");
      await comesTo("multi_input", {}, "seven");
    }, server),
    told(IS_ASKED_BEFORE, () => comesTo("test_tool_with_task", {}, "Hello, Ada!"), server),
    told(FAILS, async () => {
      await comesTo("failing_job", {}, "always fails");
      const { end } = await tasks.begin("protocol_error_job", {});
      same((await failure(end())).code, -32603);
    }, server),
  ]);
  await lists(server, tasks, []);
  await client.close();
}

/** What a server says of its tasks to whoever listens. */
async function ofListening(server) {
  await told(NOTIFIED, async () => {
    const { client, tasks, notified } = await connected(server);
    const { id } = await tasks.begin("wait", {});
    await notified(id, "cancelled", () => tasks.cancel(id));
    await client.close();
  }, server);
}

/** What is asked of the server on FastMCP, which makes tasks of the extension. */
async function ofFastMcp(server) {
  if (era === "legacy") {
    for (const name of [GETS, CANCELS]) lacks(name, "the server on FastMCP 4 makes tasks in 2026-07-28 only", server);
    return;
  }
  const { client, tasks } = await connected(server);
  await told(GETS, async () => {
    const { end } = await tasks.begin("compute", { seconds: 0.2 });
    holds(textOf(await end()), "computed it");
  }, server);
  await told(CANCELS, async () => {
    const { id } = await tasks.begin("compute", { seconds: 600 });
    same(await tasks.status(id), "working");
    await cancels(tasks, id);
  }, server);
  await client.close();
}

const FASTMCP = ["fastmcp", ...(way === "http" ? ["fastmcp-http"] : [])];
const CORES = ["everything", ...(way === "http" ? ["everything-http"] : [])];
if (era === "legacy") {
  // In a session the fixture is served in 2025-11-25, in which its SDK knows no tasks; `modern` is the same server without sessions.
  const fixture = "the SDK of the server, rmcp 3.8.0, makes no tasks in a session";
  const others = "clients of 2025-11-25 get no tasks of servers of 2026-07-28";
  for (const name of [LISTS, CANCELS, GETS, NOTIFIED, IS_ASKED, IS_ASKED_BEFORE, FAILS]) {
    lacks(name, fixture, "fixture");
    lacks(name, others, "modern");
  }
  lacks(NOTIFIED, others, "tasks");
}
const EXTENSIONS = era === "modern" ? [ofTheExtension("fixture"), ofTheExtension("modern"), ofListening("tasks")] : [];
await Promise.all([...CORES.map(ofTheCore), ...EXTENSIONS, ...FASTMCP.map(ofFastMcp)]);
