// The Inspector's command line: each request connects anew. It declares no extensions.

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { check, job } from "./checks.mjs";
import { runCli } from "./node_modules/@modelcontextprotocol/inspector/clients/cli/build/index.js";

const { url, command, era, ...rest } = job();
const inspector = fileURLToPath(new URL("node_modules/.bin/mcp-inspector", import.meta.url));
const directory = mkdtempSync(join(tmpdir(), "inspector-"));
const servers = join(directory, "mcp.json");

process.env.MCP_CLIENT_CONFIG_PATH = join(directory, "client.json");
process.env.MCP_INSPECTOR_SECRET_STORE = "memory";

const [program, ...args] = command ?? [];
const server = url ? { type: "http", url } : { command: program, args };
writeFileSync(servers, JSON.stringify({ mcpServers: { vary: server } }));

/** What a command of the Inspector prints. */
async function ask(method, ...options) {
  const args = ["--config", servers, "--server", "vary", "--protocol-era", era, "--method", method, ...options];
  // The first request of a job starts a process as users do, which takes longer to load the Inspector than to use it.
  const printed = method === "initialize" ? await started(args) : await called(args);
  return JSON.parse(printed);
}

async function started(args) {
  try {
    return (await promisify(execFile)(inspector, ["--cli", ...args])).stdout;
  } catch (error) {
    throw new Error((error.stderr || error.stdout || error.message).trim().slice(-600));
  }
}

/** What the function behind the command prints: it reads the arguments, connects, asks, prints and disconnects. */
async function called(args) {
  const { write } = process.stdout;
  let printed = "";
  process.stdout.write = (text, written) => {
    printed += text;
    written?.();
    return true;
  };
  try {
    await runCli([process.execPath, inspector, ...args]);
  } finally {
    process.stdout.write = write;
  }
  return printed;
}

/** `_meta` members as options. */
function metadata(meta) {
  return Object.entries(meta ?? {}).flatMap(([key, value]) => ["--metadata", `${key}=${value}`]);
}

async function connect() {
  const { protocolVersion, capabilities } = await ask("initialize");
  if (protocolVersion >= "2026" !== (era === "modern")) {
    throw new Error(`negotiated ${protocolVersion}, not ${era}`);
  }
  return {
    cannotDeclare: true,
    hidesErrorData: true,
    serverCapabilities: () => capabilities,
    listTools: (meta) => ask("tools/list", ...metadata(meta)),
    callTool: ({ name, arguments: args }, meta) => {
      const call = ["--tool-name", name, "--tool-args-json", JSON.stringify(args)];
      return ask("tools/call", ...call, ...metadata(meta));
    },
    listResources: () => ask("resources/list"),
    listResourceTemplates: () => ask("resources/templates/list"),
    readResource: (uri) => ask("resources/read", "--uri", uri),
    listPrompts: () => ask("prompts/list"),
    getPrompt: (name, args) => {
      const pairs = Object.entries(args).map(([key, value]) => `${key}=${value}`);
      return ask("prompts/get", "--prompt-name", name, "--prompt-args", ...pairs);
    },
    close: () => {},
  };
}

await check(rest, connect);
rmSync(directory, { recursive: true });
