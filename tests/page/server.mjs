// An MCP server on stdio with the tools of a fixture: `node server.mjs git`. It answers each call with its name and arguments.

import { createInterface } from "node:readline";

import { resultOf, toolsOf } from "./fixtures.mjs";

const tools = toolsOf(process.argv[2]);
const RESULTS = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: process.argv[2], version: "1" } }),
  ping: () => ({}),
  "tools/list": () => ({ tools }),
  "tools/call": (params) => resultOf(params.name, params.arguments),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = RESULTS[method] ? { result: RESULTS[method](params) } : { error: { code: -32601, message: "Method not found" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
}
