// The TypeScript SDKs 1.x and 2.x, asked alike, and what their answers are held against.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as Stdio1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as Http1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { NEGOTIATION, VARIANT, VARIANTS } from "./checks.mjs";
import { same, textOf } from "./telling.mjs";

export { failure, holds, lacks, same, textOf, told } from "./telling.mjs";

/** What the two SDKs call differently; whatever is asked of a client, both call the same. */
export const SDKS = {
  "typescript-1": {
    Client: Client1,
    Stdio: Stdio1,
    Http: Http1,
    eraOf: () => "legacy",
    // What a handler is set for.
    key: (method, schema) => schema,
    // It puts the code before the server's words.
    said: (error) => error.message.replace(/^MCP error -?\d+: /, ""),
    page: (client, params) => client.listTools(params),
    call: (client, params, options) => client.callTool(params, undefined, options),
  },
  "typescript-2": {
    Client,
    Stdio: StdioClientTransport,
    Http: StreamableHTTPClientTransport,
    eraOf: (client) => client.getProtocolEra(),
    key: (method) => method,
    said: (error) => error.message,
    // Its `listTools` joins all pages.
    page: (client, params) => client.request({ method: "tools/list", params }),
    call: (client, params, options) => client.callTool(params, options),
  },
};

const SDK_SERVERS = ["typescript-sdk", "python-sdk", "fastmcp"];

/** The servers of both eras; over stdio each client has a gateway of its own, and what is behind that is the same. */
export function ofBothEras(way) {
  return way === "http" ? [...SDK_SERVERS, ...SDK_SERVERS.map((name) => `${name}-http`)] : SDK_SERVERS;
}

export const INFO = { name: "interop", version: "1.0.0" };

/** A client with these capabilities, which will find out that it speaks `era`, as applications do. */
export function clientOf(sdk, era, capabilities) {
  return new sdk.Client(INFO, { capabilities, versionNegotiation: { mode: era === "modern" ? "auto" : "legacy" } });
}

/** The way to a server with this URL and this command. */
export function transportTo(sdk, way, { url, command, cwd }) {
  if (way === "http") return new sdk.Http(new URL(url));
  const [program, ...args] = command;
  return new sdk.Stdio({ command: program, args, cwd, env: process.env, stderr: "inherit" });
}

export async function open(sdk, client, transport, era) {
  await client.connect(transport);
  same(sdk.eraOf(client), era);
}

/** A client of `era` that is connected over `transport`. */
export async function connected(sdk, transport, era, wanted) {
  const client = clientOf(sdk, era, { extensions: declared(wanted) });
  await open(sdk, client, transport, era);
  return client;
}

/** The text of the result of a tool. */
export async function called(client, tool, args = {}) {
  return textOf(await client.callTool({ name: tool, arguments: args }));
}

function declared({ features, hints }) {
  return {
    ...(features && { [NEGOTIATION]: { version: "1.0", features } }),
    ...(hints && { [VARIANTS]: { variantHints: { hints } } }),
  };
}

/** `params` for a variant, if there is one. */
export function under(variant, params) {
  return variant ? { ...params, _meta: { [VARIANT]: variant } } : params;
}

/** Asks, and holds the answer against what it should find, or fail with. */
export async function answers(sdk, client, wanted) {
  const [found, failed] = await answer(sdk, client, wanted);
  if (failed && !wanted.fails) throw new Error(JSON.stringify(failed));
  for (const [pointer, value] of Object.entries(wanted.finds ?? wanted.fails)) {
    same(at(wanted.finds ? found : failed, pointer), value);
  }
}

/** The result, or the error. */
async function answer(sdk, client, { method, params, variant }) {
  const withVariant = under(variant, params);
  const ask = {
    capabilities: () => client.getServerCapabilities(),
    "tools/list": () => (params?.cursor ? sdk.page(client, withVariant) : client.listTools(withVariant)),
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
