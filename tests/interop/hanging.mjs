// A gateway before a server that works and a server that never answers: the Inspector and clients whose requests
// fail after 10 seconds use the one that works, from the first moment on.

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { startGateway } from "./gateway.mjs";
import { SDKS, clientOf, same, told, transportTo } from "./sdks.mjs";

const { way, era, client: name, vary, fixture } = JSON.parse(process.argv[2]);
const LIMIT = 10_000;
const directory = mkdtempSync(join(tmpdir(), "hanging-"));
const configuration = join(directory, "vary.json");
const servers = { works: { command: fixture, args: ["--stdio"] }, hangs: { command: "sleep", args: ["1000"] } };
writeFileSync(configuration, JSON.stringify({ servers }));
const ECHO = "works_echo";

/** What a command of the Inspector prints; each starts a process, and over stdio a gateway. */
async function inspect(url, method, ...options) {
  const inspector = fileURLToPath(new URL("node_modules/.bin/mcp-inspector", import.meta.url));
  const file = join(directory, "mcp.json");
  const target = url ? { type: "http", url } : { command: vary, args: ["serve", "--stdio", configuration] };
  writeFileSync(file, JSON.stringify({ mcpServers: { vary: target } }));
  const base = ["--cli", "--config", file, "--server", "vary", "--protocol-era", era, "--method", method];
  const env = {
    ...process.env,
    MCP_CLIENT_CONFIG_PATH: join(directory, "client.json"),
    MCP_INSPECTOR_SECRET_STORE: "memory",
  };
  const { stdout } = await promisify(execFile)(inspector, [...base, ...options], { env });
  return JSON.parse(stdout);
}

async function ofInspector(url) {
  await told("lists the tools of the server that works", async () => {
    const { tools } = await inspect(url, "tools/list");
    same(tools.some((tool) => tool.name === ECHO), true);
  });
  await told("calls a tool of the server that works", async () => {
    const call = ["--tool-name", ECHO, "--tool-args-json", '{"said":"hello"}'];
    same((await inspect(url, "tools/call", ...call)).structuredContent, { said: "hello" });
  });
}

async function ofSdk(sdk, url) {
  const transport = transportTo(sdk, way, { url, command: [vary, "serve", "--stdio", configuration] });
  const client = clientOf(sdk, era, {});
  const options = { timeout: LIMIT };
  await told("connects with a limit of 10 s", () => client.connect(transport, options));
  await told("lists the tools of the server that works", async () => {
    const { tools } = await client.listTools(undefined, options);
    same(tools.some((tool) => tool.name === ECHO), true);
  });
  await told("calls a tool of the server that works", async () => {
    const params = { name: ECHO, arguments: { said: "hello" } };
    same((await sdk.call(client, params, options)).structuredContent, { said: "hello" });
  });
  await client.close();
}

const { gateway, url } = way === "http" ? await startGateway(vary, configuration) : {};
if (name === "inspector") await ofInspector(url);
else await ofSdk(SDKS[name], url);
gateway?.kill();
rmSync(directory, { recursive: true });
