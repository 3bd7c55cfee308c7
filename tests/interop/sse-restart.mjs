// Servers with the transport of 2024-11-05 that end and start again: a client stays connected to Vary, and lists, calls and
// is asked back as before.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

import * as types from "@modelcontextprotocol/sdk/types.js";

import { startGateway } from "./gateway.mjs";
import { SDKS, clientOf, holds, same, textOf, told, transportTo } from "./sdks.mjs";

const { vary, python } = JSON.parse(process.argv[2]);

/** The servers: how they start, and tools that answer, that ask for a form, and that ask for a sample. */
const SERVERS = {
  "typescript-1": {
    command: [process.execPath, "everything-http.mjs", "sse"],
    tools: [["echo", { message: "Ada" }], ["trigger-elicitation-request"], ["trigger-sampling-request", { prompt: "what" }]],
  },
  "python-2": {
    command: [python, "sdk_server.py", "sse"],
    tools: [["count"], ["fill_form"], ["ask_model"]],
  },
};

/** How long a server may need until it is reached again. */
const SECONDS = 60;

/** Starts a server, on the port that it had before if there is one: the process and its URL. */
async function start(command, url) {
  const [program, ...args] = url ? [...command, new URL(url).port] : command;
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
    const [found] = String(chunk).match(/http:\S+/) ?? [];
    if (!found) continue;
    child.stdout.resume();
    return { child, url: found };
  }
  throw new Error(`${command} ended`);
}

async function stop({ child }) {
  child.kill("SIGKILL");
  await once(child, "exit");
}

/** A client that can be asked for a form and a sample. */
async function connect(url) {
  const sdk = SDKS["typescript-1"];
  const client = clientOf(sdk, "legacy", { elicitation: {}, sampling: {} });
  const content = { name: "Ada", check: true };
  client.setRequestHandler(types.ElicitRequestSchema, () => ({ action: "accept", content }));
  const sample = { role: "assistant", model: "m", content: { type: "text", text: "so Ada" } };
  client.setRequestHandler(types.CreateMessageRequestSchema, () => sample);
  await client.connect(transportTo(sdk, "http", { url }));
  return client;
}

async function call(client, [name, args = {}]) {
  const { content, isError } = await client.callTool({ name, arguments: args });
  if (isError) throw new Error(JSON.stringify(content));
  return textOf({ content });
}

/** Lists, calls, and is asked back. */
async function use(client, [plain, form, sample]) {
  const { tools } = await client.listTools();
  for (const [name] of [plain, form, sample]) same(tools.some((tool) => tool.name === name), true);
  await call(client, plain);
  for (const asking of [form, sample]) {
    holds(await call(client, asking), "Ada");
  }
}

/** Calls until there is an answer: what was in flight is lost, and the next calls may find the server down. */
async function untilAnswered(client, plain) {
  const end = Date.now() + SECONDS * 1_000;
  for (;;) {
    try {
      return await call(client, plain);
    } catch (error) {
      if (Date.now() > end) throw error;
      await pause(50);
    }
  }
}

async function check(name, { command, tools }) {
  const directory = mkdtempSync(join(tmpdir(), "sse-restart-"));
  const file = join(directory, "vary.json");
  let server = await start(command);
  writeFileSync(file, JSON.stringify({ "start-wait": "60s", servers: { old: { url: server.url } } }));
  const { gateway, url } = await startGateway(vary, file);
  const client = await connect(url);
  await told("lists, calls and is asked back", () => use(client, tools), name);
  await stop(server);
  await told("is told that the server is gone", async () => {
    const failed = await call(client, tools[0]).then(() => undefined, (error) => error.message);
    if (!failed?.includes("`old`")) throw new Error(`${failed}`);
  }, name);
  server = await start(command, server.url);
  await told("calls again without connecting anew", () => untilAnswered(client, tools[0]), name);
  await told("lists, calls and is asked back after that", () => use(client, tools), name);
  await client.close();
  gateway.kill();
  await stop(server);
  rmSync(directory, { recursive: true });
}

await Promise.all(Object.entries(SERVERS).map(([name, server]) => check(name, server)));
