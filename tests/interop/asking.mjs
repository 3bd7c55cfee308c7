// What servers ask of the TypeScript SDK 1.x and 2.x: forms, visits, samples and roots.

import * as types from "@modelcontextprotocol/sdk/types.js";

import { SDKS, same, told } from "./sdks.mjs";

const { everything, asking, fixture, way, era, client: name } = JSON.parse(process.argv[2]);
const sdk = SDKS[name];

const CAPABILITIES = {
  elicitation: { form: {}, url: {} },
  sampling: { tools: {} },
  roots: { listChanged: true },
};

/** Has `answer` answer `method`, however the SDK names it. */
function handle(client, method, answer) {
  const schemas = {
    "elicitation/create": types.ElicitRequestSchema,
    "sampling/createMessage": types.CreateMessageRequestSchema,
    "roots/list": types.ListRootsRequestSchema,
    "notifications/elicitation/complete": types.ElicitationCompleteNotificationSchema,
  };
  const key = name === "typescript-1" ? schemas[method] : method;
  if (method.startsWith("notifications/")) client.setNotificationHandler(key, answer);
  else client.setRequestHandler(key, answer);
}

/** A client of one server that answers as `answers` says. */
async function connected({ url, command }, answers) {
  const [program, ...args] = command;
  const transport =
    way === "http"
      ? new sdk.Http(new URL(url))
      : new sdk.Stdio({ command: program, args, env: process.env, stderr: "inherit" });
  const client = new sdk.Client(
    { name: "interop-asking", version: "1.0.0" },
    {
      capabilities: CAPABILITIES,
      versionNegotiation: { mode: era === "modern" ? "auto" : "legacy" },
    },
  );
  for (const [method, answer] of Object.entries(answers)) handle(client, method, answer);
  await client.connect(transport);
  same(sdk.eraOf(client), era);
  return client;
}

/** Calls a tool while requests are answered so; the text of its result. */
async function called(server, answers, tool, args = {}) {
  const client = await connected(server, answers);
  try {
    return text(await client.callTool({ name: tool, arguments: args }));
  } finally {
    await client.close();
  }
}

function text({ content }) {
  return content.map(({ text }) => text).join("\n");
}

function holds(found, ...parts) {
  for (const part of parts) {
    if (!found.includes(part)) throw new Error(`no ${part} in ${found}`);
  }
}

/** What only clients with a session are told, or can say. */
async function inSessions(name, check) {
  if (era === "legacy") await told(name, check);
}

const accepts = (content) => () => ({ action: "accept", content });
const noRoots = { "roots/list": () => ({ roots: [] }) };

await told("fills in a form", async () => {
  const answers = { ...noRoots, "elicitation/create": accepts({ name: "Ada", check: true }) };
  holds(await called(everything, answers, "trigger-elicitation-request"), "Ada");
});

await told("declines a form", async () => {
  const answers = { ...noRoots, "elicitation/create": () => ({ action: "decline" }) };
  holds(await called(everything, answers, "trigger-elicitation-request"), "declined");
});

await told("samples", async () => {
  const answer = ({ params }) => {
    const { text } = params.messages[0].content;
    return { role: "assistant", model: "m", content: { type: "text", text: `so ${text}` } };
  };
  const answers = { ...noRoots, "sampling/createMessage": answer };
  const found = await called(everything, answers, "trigger-sampling-request", { prompt: "what" });
  holds(found, "context: what", "so Resource");
});

await told("samples with tools", async () => {
  const answer = ({ params }) => ({
    role: "assistant",
    model: "m",
    stopReason: "toolUse",
    content: [{ type: "tool_use", id: "1", name: params.tools[0].name, input: {} }],
  });
  same(await called(asking, { "sampling/createMessage": answer }, "weather"), "tool_use look-out");
});

await told("visits an address", async () => {
  const seen = [];
  const visit = ({ params }) => {
    seen.push(params.mode, params.url);
    return { action: "accept" };
  };
  const url = "https://example.org/a";
  const answers = { ...noRoots, "elicitation/create": visit };
  holds(await called(everything, answers, "trigger-url-elicitation", { url }), "completed", url);
  same(seen, ["url", url]);
});

await inSessions("is told that a visit has ended", async () => {
  let ended;
  const end = new Promise((resolve) => (ended = resolve));
  const answers = {
    "elicitation/create": accepts(),
    "notifications/elicitation/complete": ({ params }) => ended(params.elicitationId),
  };
  const client = await connected(asking, answers);
  same(text(await client.callTool({ name: "visit", arguments: {} })), "accept");
  same(await end, "visit-1");
  await client.close();
});

await inSessions("is told which address to visit first", async () => {
  const answers = { ...noRoots, "elicitation/create": accepts() };
  const args = { url: "https://example.org/b", errorPath: true };
  const error = await called(everything, answers, "trigger-url-elicitation", args).then(
    (found) => Promise.reject(new Error(`no error but ${found}`)),
    (error) => error,
  );
  same(error.code, -32042);
  same(error.data.elicitations[0].url, "https://modelcontextprotocol.io");
});

await told("shows its roots", async () => {
  const roots = [{ uri: "file:///one", name: "one" }];
  holds(await called(everything, { "roots/list": () => ({ roots }) }, "get-roots-list"), "file:///one");
});

await inSessions("shows its roots, and others when they have changed", async () => {
  let roots = [{ uri: "file:///one", name: "one" }];
  const client = await connected(everything, { "roots/list": () => ({ roots }) });
  const listed = async () => text(await client.callTool({ name: "get-roots-list", arguments: {} }));
  holds(await listed(), "file:///one");
  roots = [{ uri: "file:///two", name: "two" }];
  await client.sendRootsListChanged();
  // The server asks once more in its own time.
  while (!(await listed()).includes("file:///two"));
  await client.close();
});

await told("two clients at once are each asked their own", async () => {
  const clients = await Promise.all(
    ["Ada", "Grace"].map(async (who) => {
      const answers = { ...noRoots, "elicitation/create": accepts({ name: who }) };
      return [who, await connected(everything, answers)];
    }),
  );
  for (let round = 0; round < 5; round += 1) {
    await Promise.all(
      clients.map(async ([who, client]) => {
        const result = await client.callTool({ name: "trigger-elicitation-request", arguments: {} });
        holds(text(result), who);
      }),
    );
  }
  for (const [, client] of clients) await client.close();
});

await told("is asked in as many rounds as a modern server wants", async () => {
  const filled = ({ params }) => {
    const names = Object.keys(params.requestedSchema.properties);
    return { action: "accept", content: Object.fromEntries(names.map((name) => [name, "Ada"])) };
  };
  const sampled = () => ({ role: "assistant", model: "m", content: { type: "text", text: "Paris" } });
  const answers = {
    "roots/list": () => ({ roots: [{ uri: "file:///one", name: "one" }] }),
    "elicitation/create": filled,
    "sampling/createMessage": sampled,
  };
  for (const [tool, part] of [
    ["elicitation", "Hello, Ada!"],
    ["sampling", "Paris"],
    ["list_roots", "file:///one"],
    ["multi_round", "all rounds are done"],
    ["multiple_inputs", "got all three"],
  ]) {
    holds(await called(fixture, answers, `test_input_required_result_${tool}`), part);
  }
});
