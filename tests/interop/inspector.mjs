// The Inspector's command line: one process for each request. It declares no extensions.

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { check, job } from "./checks.mjs";

const { url, command, era, ...rest } = job();
const inspector = fileURLToPath(new URL("node_modules/.bin/mcp-inspector", import.meta.url));
const directory = mkdtempSync(join(tmpdir(), "inspector-"));
const servers = join(directory, "mcp.json");

const [program, ...args] = command ?? [];
const server = url ? { type: "http", url } : { command: program, args };
writeFileSync(servers, JSON.stringify({ mcpServers: { vary: server } }));

async function ask(method, ...options) {
  const run = promisify(execFile);
  const base = ["--cli", "--config", servers, "--server", "vary", "--protocol-era", era];
  const env = {
    ...process.env,
    MCP_CLIENT_CONFIG_PATH: join(directory, "client.json"),
    MCP_INSPECTOR_SECRET_STORE: "memory",
  };
  try {
    const { stdout } = await run(inspector, [...base, "--method", method, ...options], { env });
    return JSON.parse(stdout);
  } catch (error) {
    throw new Error((error.stderr || error.stdout || error.message).trim().slice(-600));
  }
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
