// The TypeScript SDK 1.x: `initialize` and sessions.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { capabilities, check, job } from "./checks.mjs";

const { url, command, ...rest } = job();

function transport() {
  if (url) return new StreamableHTTPClientTransport(new URL(url));
  const [program, ...args] = command;
  return new StdioClientTransport({ command: program, args, env: process.env, stderr: "inherit" });
}

async function connect(features) {
  const client = new Client(
    { name: "interop-typescript-1", version: "1.0.0" },
    { capabilities: capabilities(features) },
  );
  await client.connect(transport());
  return {
    seesProgress: true,
    dropsLastProgress: true,
    serverCapabilities: () => client.getServerCapabilities(),
    listTools: (meta) => client.listTools({ _meta: meta }),
    callTool: ({ name, arguments: args }, meta, step) =>
      client.callTool(
        { name, arguments: args, _meta: meta },
        undefined,
        step && { onprogress: ({ progress }) => step(progress) },
      ),
    listResources: () => client.listResources(),
    listResourceTemplates: () => client.listResourceTemplates(),
    readResource: (uri) => client.readResource({ uri }),
    listPrompts: () => client.listPrompts(),
    getPrompt: (name, args) => client.getPrompt({ name, arguments: args }),
    complete: (name, argument) => client.complete({ ref: { type: "ref/prompt", name }, argument }),
    close: () => client.close(),
  };
}

await check(rest, connect);
