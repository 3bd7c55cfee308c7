// A client that passes the official suite's client scenarios, on the TypeScript SDK 2.x.
//
// The suite names the scenario and the revision in its environment, and appends the URL of the scenario's server
// to the command. `--vary PATH` puts Vary between, `--era legacy|modern` makes it a client of that era instead of
// the revision's.

import { once } from "node:events";
import { parseArgs } from "node:util";

import { SERVES, startGateway } from "./gateway.mjs";
import { SDKS, called, clientOf, open, same, transportTo } from "./sdks.mjs";

const { MCP_CONFORMANCE_SCENARIO, MCP_CONFORMANCE_PROTOCOL_VERSION, MCP_CONFORMANCE_CONTEXT } = process.env;
const { values, positionals } = parseArgs({
  options: { vary: { type: "string" }, era: { type: "string" } },
  allowPositionals: true,
});
const era = values.era ?? (MCP_CONFORMANCE_PROTOCOL_VERSION >= "2026-07-28" ? "modern" : "legacy");

/** What an application does in each scenario; it fails when an answer is not the scenario's. */
const SCENARIOS = {
  initialize: listsTools,
  tools_call: async (client) => {
    await client.listTools();
    same(await called(client, "add_numbers", { a: 2, b: 3 }), "The sum of 2 and 3 is 5");
  },
  "elicitation-sep1034-client-defaults": async (client) => {
    client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: {} }));
    await client.listTools();
    const said = await called(client, "test_client_elicitation_defaults");
    same(said.replace(/: .*/s, ""), "Elicitation completed");
  },
  "sse-retry": async (client) => {
    await client.listTools();
    same(await called(client, "test_reconnection"), "Reconnection test completed successfully");
  },
  "json-schema-2020-12-preservation": async (client) => {
    const { tools } = await client.listTools();
    const { inputSchema } = tools.find(({ name }) => name === "json_schema_2020_12_tool");
    same(await called(client, "json_schema_echo", { schema: inputSchema }), "echoed");
  },
  "request-metadata": listsTools,
  "sep-2322-client-request-state": async (client) => {
    // A call of another tool between the question and the answer.
    client.setRequestHandler("elicitation/create", async () => {
      same(await called(client, "test_mrtr_unrelated"), "unrelated-ok");
      return { action: "accept", content: { confirmed: true } };
    });
    await client.listTools();
    same(await called(client, "test_mrtr_echo_state"), "echo-state-ok");
    same(await called(client, "test_mrtr_no_state"), "no-state-ok");
    // The scenario wants no second try. The SDK goes further and refuses a result without a type; Vary gives it one.
    const untyped = called(client, "test_mrtr_no_result_type");
    if (values.vary) same(await untyped, "no-result-type-test-ok");
    else same(/missing required resultType/.test(await untyped.catch(({ message }) => message)), true);
  },
  "http-standard-headers": async (client) => {
    for (const { name } of (await client.listTools()).tools) {
      same(await called(client, name), "Headers test completed");
    }
    for (const { uri } of (await client.listResources()).resources) {
      same((await client.readResource({ uri })).contents, []);
    }
    for (const { name } of (await client.listPrompts()).prompts) {
      same((await client.getPrompt({ name })).messages, []);
    }
  },
  "http-custom-headers": async (client) => {
    await client.listTools();
    for (const { name, arguments: args } of JSON.parse(MCP_CONFORMANCE_CONTEXT).toolCalls) {
      same(await called(client, name, args), "Custom headers test completed");
    }
  },
  "http-invalid-tool-headers": async (client) => {
    // All that it is shown.
    for (const { name } of (await client.listTools()).tools) {
      same(await called(client, name, { region: "here" }), "Tool call received");
    }
  },
  "json-schema-ref-no-deref": listsTools,
};

async function listsTools(client) {
  await client.listTools();
}

async function play(url) {
  const scenario = SCENARIOS[MCP_CONFORMANCE_SCENARIO];
  if (!scenario) throw new Error(`nobody knows what to do in ${MCP_CONFORMANCE_SCENARIO}`);
  const sdk = SDKS["typescript-2"];
  const client = clientOf(sdk, era, { elicitation: { form: { applyDefaults: true } }, roots: {}, sampling: {} });
  await open(sdk, client, transportTo(sdk, "http", { url }), era);
  try {
    await scenario(client);
  } finally {
    await client.close();
  }
}

/** Does `action` with the URL of Vary in front of `url`. */
async function through(vary, url, action) {
  const { gateway, url: address } = await startGateway(vary, url, "127.0.0.1:0", SERVES);
  const ended = once(gateway, "exit");
  process.on("exit", () => gateway.kill("SIGKILL"));
  try {
    await action(address);
  } finally {
    gateway.kill("SIGTERM");
    await ended;
  }
}

// The suite would end the shell around us, and wait.
setTimeout(() => {
  console.error("the scenario did not end");
  process.exit(1);
}, 90_000).unref();

const [url] = positionals;
if (values.vary) await through(values.vary, url, play);
else await play(url);
