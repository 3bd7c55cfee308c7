// The servers of examples/library, asked by the TypeScript SDK 1.x or 2.x. library.json says what they answer.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { isDeepStrictEqual } from "node:util";

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as Stdio1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as Http1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { NEGOTIATION, VARIANT, VARIANTS } from "./checks.mjs";

const { programs, way, era, client: name } = JSON.parse(process.argv[2]);
const cases = JSON.parse(readFileSync(new URL("library.json", import.meta.url), "utf8"));

/** What the two SDKs call differently; whatever is asked of a client, both call the same. */
const SDKS = {
  "typescript-1": {
    Client: Client1,
    Stdio: Stdio1,
    Http: Http1,
    eraOf: () => "legacy",
    // It puts the code before the server's words.
    said: (error) => error.message.replace(/^MCP error -?\d+: /, ""),
  },
  "typescript-2": {
    Client,
    Stdio: StdioClientTransport,
    Http: StreamableHTTPClientTransport,
    eraOf: (client) => client.getProtocolEra(),
    said: (error) => error.message,
  },
};
const sdk = SDKS[name];

/** One case, on a connection and a server of its own. */
async function holds(wanted) {
  const program = join(programs, wanted.program);
  const server = way === "http" ? spawn(program, ["--http", "127.0.0.1:0"]) : undefined;
  try {
    const client = new sdk.Client(
      { name: "interop-library", version: "1.0.0" },
      {
        capabilities: { extensions: declared(wanted) },
        versionNegotiation: { mode: era === "modern" ? "auto" : "legacy" },
      },
    );
    await client.connect(await transport(program, server));
    same(sdk.eraOf(client), era);
    const [found, failed] = await answer(client, wanted);
    if (failed && !wanted.fails) throw failed;
    for (const [pointer, value] of Object.entries(wanted.finds ?? wanted.fails)) {
      same(at(wanted.finds ? found : failed, pointer), value);
    }
    await client.close();
  } finally {
    server?.kill();
  }
}

function declared({ features, hints }) {
  return {
    ...(features && { [NEGOTIATION]: { version: "1.0", features } }),
    ...(hints && { [VARIANTS]: { variantHints: { hints } } }),
  };
}

async function transport(program, server) {
  if (!server) return new sdk.Stdio({ command: program, args: ["--stdio"], env: process.env });
  const lines = createInterface({ input: server.stdout });
  const url = await new Promise((resolve) => lines.once("line", resolve));
  return new sdk.Http(new URL(url));
}

/** The result, or the error. */
async function answer(client, { method, params, variant }) {
  const withVariant = variant ? { ...params, _meta: { [VARIANT]: variant } } : params;
  const ask = {
    capabilities: () => client.getServerCapabilities(),
    "tools/list": () => client.listTools(withVariant),
    "tools/call": () => client.callTool(withVariant),
    "resources/read": () => client.readResource(withVariant),
    "prompts/get": () => client.getPrompt(withVariant),
  }[method];
  try {
    return [await ask()];
  } catch (error) {
    if (error.code === undefined) throw error;
    return [undefined, { code: error.code, message: sdk.said(error), data: error.data }];
  }
}

/** What a JSON pointer points at; null where there is nothing. */
function at(value, pointer) {
  const keys = pointer.slice(1).split("/");
  const names = keys.map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
  return names.reduce((inner, name) => inner?.[name], value) ?? null;
}

function same(found, wanted) {
  if (isDeepStrictEqual(found, wanted)) return;
  throw new Error(`${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`);
}

for (const wanted of cases) {
  const { name } = wanted;
  const line = await holds(wanted).then(
    () => ({ name, ok: true }),
    (error) => ({ name, ok: false, detail: String(error) }),
  );
  console.log(JSON.stringify(line));
}
