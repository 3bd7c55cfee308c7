// Clients in TypeScript that make tool objects of what a server lists: each calls the tools of a `directory` through
// its own objects, without a model. Prints a line of JSON for each call of calls.json, with the text of the result.
//
// clients.mjs CLIENT URL; CLIENT is the function below.

import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const calls = JSON.parse(readFileSync(new URL("calls.json", import.meta.url), "utf8"));

/** The text of a result, in whichever form a client hands it on. */
function textOf(result) {
  if (typeof result === "string") return result;
  if (Array.isArray(result)) return result.map(textOf).join("");
  return result?.text ?? (result?.content === undefined ? JSON.stringify(result) : textOf(result.content));
}

async function report(perform) {
  for (const { call, name, arguments: args } of calls) {
    let line;
    try {
      line = { text: textOf(await perform(name, args)) };
    } catch (error) {
      line = { error: `${error.name}: ${error.message}` };
    }
    console.log(JSON.stringify({ call, ...line }));
  }
}

/** The official SDK in a version: the module of the client, and that of the transport. */
async function sdk(url, { Client }, { StreamableHTTPClientTransport }) {
  const client = new Client({ name: "directory", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  await client.listTools();
  await report((name, args) => client.callTool({ name, arguments: args }));
  await client.close();
}

const clients = {
  async typescript1(url) {
    const path = "@modelcontextprotocol/sdk/client";
    await sdk(url, await import(`${path}/index.js`), await import(`${path}/streamableHttp.js`));
  },

  async typescript2(url) {
    const client = await import("@modelcontextprotocol/client");
    await sdk(url, client, client);
  },

  async inspector(url) {
    const program = new URL("../node_modules/.bin/mcp-inspector", import.meta.url).pathname;
    const directory = mkdtempSync(join(tmpdir(), "inspector-"));
    const servers = join(directory, "mcp.json");
    writeFileSync(servers, JSON.stringify({ mcpServers: { vary: { type: "http", url } } }));
    const state = { MCP_CLIENT_CONFIG_PATH: join(directory, "client.json"), MCP_INSPECTOR_SECRET_STORE: "memory" };
    const env = { ...process.env, ...state };
    await report(async (name, args) => {
      const call = ["--method", "tools/call", "--tool-name", name, "--tool-args-json", JSON.stringify(args)];
      const options = ["--cli", "--config", servers, "--server", "vary", ...call];
      const { stdout } = await promisify(execFile)(program, options, { env });
      return JSON.parse(stdout);
    });
  },

  async langchain(url) {
    const { MultiServerMCPClient } = await import("@langchain/mcp-adapters");
    const client = new MultiServerMCPClient({ mcpServers: { vary: { transport: "http", url } } });
    const tools = Object.fromEntries((await client.getTools()).map((tool) => [tool.name, tool]));
    await report((name, args) => tools[name].invoke(args));
    await client.close();
  },

  // It gives up after 3 s, and declares an extension, so that the server is started for it.
  async mastra(url) {
    const { MCPClient } = await import("@mastra/mcp");
    const client = new MCPClient({ servers: { vary: { url: new URL(url) } } });
    const tools = await client.listTools();
    await report((name, args) => tools[`vary_${name}`].execute(args, {}));
    await client.disconnect();
  },

  async vercel(url) {
    const { createMCPClient } = await import("@ai-sdk/mcp");
    const { asSchema } = await import("ai");
    const client = await createMCPClient({ transport: { type: "http", url } });
    const tools = await client.tools();
    await report(async (name, args) => {
      const checked = await asSchema(tools[name].inputSchema).validate?.(args);
      if (checked && !checked.success) throw checked.error;
      return tools[name].execute(checked?.value ?? args, { toolCallId: "1", messages: [] });
    });
    await client.close();
  },
};

await clients[process.argv[2]](process.argv[3]);
