// A server of 2026-07-28 that says how its tasks stand to those who listen (SEP-2663), which the fixture's SDK cannot.

import { createInterface } from "node:readline";

const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";
const EXTENSION = "io.modelcontextprotocol/tasks";

const tasks = new Map();
/** The requests that listen, and the tasks that each listens to. */
const listening = new Map();

const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

function change(task, status, more) {
  Object.assign(task, { status, lastUpdatedAt: new Date().toISOString() }, more);
  for (const [id, taskIds] of listening) {
    if (!taskIds.includes(task.taskId)) continue;
    const params = { ...task, _meta: { [SUBSCRIPTION]: id } };
    say({ method: "notifications/tasks", params });
  }
}

const complete = (result) => ({ resultType: "complete", ...result });

const METHODS = {
  "server/discover": () =>
    complete({
      supportedVersions: ["2026-07-28"],
      capabilities: { tools: {}, extensions: { [EXTENSION]: {} } },
      serverInfo: { name: "tasks-server", version: "1.0.0" },
      ttlMs: 0,
      cacheScope: "public",
    }),
  "tools/list": () =>
    complete({ tools: [{ name: "wait", inputSchema: { type: "object" } }], ttlMs: 0, cacheScope: "public" }),
  "tools/call": () => {
    const now = new Date().toISOString();
    const task = { taskId: `wait-${tasks.size}`, status: "working", createdAt: now, lastUpdatedAt: now, ttlMs: null };
    tasks.set(task.taskId, task);
    return { resultType: "task", ...task };
  },
  "tasks/get": ({ taskId }) => complete(tasks.get(taskId)),
  "tasks/cancel": ({ taskId }) => {
    change(tasks.get(taskId), "cancelled");
    return complete({});
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (method === "subscriptions/listen") {
    const { taskIds = [] } = params.notifications;
    listening.set(id, taskIds);
    const acknowledged = { notifications: { taskIds }, _meta: { [SUBSCRIPTION]: id } };
    say({ method: "notifications/subscriptions/acknowledged", params: acknowledged });
  } else if (METHODS[method]) {
    say({ id, result: METHODS[method](params) });
  } else if (id !== undefined) {
    say({ id, error: { code: -32601, message: "Method not found" } });
  } else if (method === "notifications/cancelled") {
    listening.delete(params.requestId);
  }
}
