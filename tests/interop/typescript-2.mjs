// The TypeScript SDK 2.x: either era.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { capabilities, check, job } from "./checks.mjs";

const { url, command, era, ...rest } = job();

function transport() {
  if (url) return new StreamableHTTPClientTransport(new URL(url));
  const [program, ...args] = command;
  return new StdioClientTransport({ command: program, args, env: process.env, stderr: "inherit" });
}

async function connect(features) {
  const client = new Client(
    { name: "interop-typescript-2", version: "1.0.0" },
    {
      capabilities: capabilities(features),
      // Found out by probing, as an application does that does not know the server.
      versionNegotiation: { mode: era === "modern" ? "auto" : "legacy" },
    },
  );
  await client.connect(transport());
  if (client.getProtocolEra() !== era) {
    throw new Error(`negotiated ${client.getNegotiatedProtocolVersion()}, not ${era}`);
  }
  return {
    seesProgress: true,
    dropsLastProgress: true,
    serverCapabilities: () => client.getServerCapabilities(),
    listTools: (meta) => client.listTools(meta && { _meta: meta }),
    callTool: ({ name, arguments: args }, meta, step) =>
      client.callTool(
        { name, arguments: args, ...(meta && { _meta: meta }) },
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
