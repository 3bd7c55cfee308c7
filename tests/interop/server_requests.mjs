// What servers ask of the TypeScript SDK 1.x and 2.x: forms, visits, samples and roots.

import * as types from "@modelcontextprotocol/sdk/types.js";

import { SDKS, called, clientOf, failure, holds, lacks, ofBothEras, open, same, told, transportTo } from "./sdks.mjs";

const { way, era, client: name, ...servers } = JSON.parse(process.argv[2]);
const sdk = SDKS[name];

const CAPABILITIES = {
  elicitation: { form: {}, url: {} },
  sampling: { tools: {} },
  roots: { listChanged: true },
};

const ASKED = {
  "elicitation/create": types.ElicitRequestSchema,
  "sampling/createMessage": types.CreateMessageRequestSchema,
  "roots/list": types.ListRootsRequestSchema,
};
const ENDED = "notifications/elicitation/complete";

/** A client of one server that answers as `answers` says at the time. */
async function connected(server, answers) {
  const client = clientOf(sdk, era, CAPABILITIES);
  for (const [method, schema] of Object.entries(ASKED)) {
    client.setRequestHandler(sdk.key(method, schema), (request) => answers[method](request));
  }
  client.setNotificationHandler(sdk.key(ENDED, types.ElicitationCompleteNotificationSchema), ({ params }) =>
    answers[ENDED]?.(params.elicitationId),
  );
  await open(sdk, client, transportTo(sdk, way, servers[server]), era);
  return client;
}

/** What only clients with a session are told, or can say. */
async function inSessions(name, check, server) {
  if (era === "legacy") await told(name, check, server);
  else lacks(name, "2026-07-28 has no such message", server);
}

const accepts = (content) => () => ({ action: "accept", content });
const ROOTS = [{ uri: "file:///one", name: "one" }];
const shows = (roots) => () => ({ roots });

/** A message with what was said to the model. */
function sampled({ params }) {
  const { text } = [params.messages[0].content].flat()[0];
  return { role: "assistant", model: "m", content: { type: "text", text: `so ${text}` } };
}

/** A message that calls the first tool. */
function used({ params }) {
  const use = { type: "tool_use", id: "1", name: params.tools[0].name, input: {} };
  return { role: "assistant", model: "m", stopReason: "toolUse", content: [use] };
}

/** The tools of the servers that ask for something, their arguments, and what they say when they got it. */
const OF_EVERYTHING = {
  form: ["trigger-elicitation-request", {}, "Ada", "declined"],
  sample: ["trigger-sampling-request", { prompt: "what" }, "so Resource"],
  visit: ["trigger-url-elicitation", { url: "https://example.org/visit" }, "completed"],
  roots: ["get-roots-list", {}, "file:///one"],
};
const OF_FIXTURE = {
  form: ["test_input_required_result_elicitation", {}, "Ada", "nothing"],
  sample: ["test_input_required_result_sampling", {}, "so What is"],
  use: ["test_input_required_result_sampling_tools", {}, "look-out"],
  visit: ["test_input_required_result_url", {}, "accept"],
  roots: ["test_input_required_result_list_roots", {}, "file:///one"],
};
const OF_SDKS = {
  form: ["fill_form", {}, "hello Ada", "decline"],
  sample: ["ask_model", {}, "so What is"],
  roots: ["show_roots", {}, "file:///one"],
};

/** Asks everything that a server asks, of one client. */
async function all(server, { form, sample, use, visit, roots }) {
  const answers = { "roots/list": shows(ROOTS) };
  const client = await connected(server, answers);
  const seen = [];
  const accept = ({ params }) => {
    seen.push(params.mode, params.url);
    return { action: "accept" };
  };
  const decline = () => ({ action: "decline" });
  for (const [title, method, answer, tool, part] of [
    ["fills in a form", "elicitation/create", accepts({ name: "Ada", check: true }), form, 2],
    ["declines a form", "elicitation/create", decline, form, 3],
    ["samples", "sampling/createMessage", sampled, sample, 2],
    ["samples with tools", "sampling/createMessage", used, use, 2],
    ["visits an address", "elicitation/create", accept, visit, 2],
    ["shows its roots", "roots/list", shows(ROOTS), roots, 2],
  ]) {
    if (!tool) continue;
    await told(title, async () => {
      answers[method] = answer;
      holds(await called(client, tool[0], tool[1]), tool[part]);
      if (answer === accept) same(seen, ["url", "https://example.org/visit"]);
    }, server);
  }
  return { client, answers };
}

/** The URL that `client` gets before a call of `tool` can be answered. */
async function refused(client, tool, args) {
  const error = await failure(client.callTool({ name: tool, arguments: args }));
  same(error.code, -32042);
  return error.data.elicitations[0].url;
}

// Over stdio each client has a gateway and servers of its own, and what is behind that is the same.
for (const server of way === "http" ? ["everything", "everything-http", "everything-sse"] : ["everything"]) {
  const { client, answers } = await all(server, OF_EVERYTHING);

  await told("learns which URL to visit first", async () => {
    // The server remembers the URL of a session, which clients with the same capabilities share.
    const args = { url: `https://example.org/${process.pid}`, errorPath: true };
    const first = "https://modelcontextprotocol.io";
    if (era === "legacy") return same(await refused(client, "trigger-url-elicitation", args), first);
    // In 2026-07-28 it is asked to go there; this server never has enough of that.
    const seen = new Set();
    answers["elicitation/create"] = ({ params }) => {
      seen.add(params.url);
      return { action: "decline" };
    };
    await called(client, "trigger-url-elicitation", args).catch(() => {});
    same([...seen], [first]);
  }, server);

  await told("shows other roots when they have changed", async () => {
    answers["roots/list"] = shows([{ uri: "file:///two", name: "two" }]);
    // In 2026-07-28 it says nothing of that, and is asked.
    if (era === "legacy") await client.sendRootsListChanged();
    // The server asks once more in its own time.
    while (!(await called(client, "get-roots-list")).includes("file:///two"));
  }, server);

  await told("two clients at once are each asked their own", async () => {
    const other = await connected(server, {
      "roots/list": shows([]),
      "elicitation/create": accepts({ name: "Grace" }),
    });
    answers["elicitation/create"] = accepts({ name: "Ada" });
    for (let round = 0; round < 5; round += 1) {
      const both = [client, other].map((each) => called(each, "trigger-elicitation-request"));
      const [one, two] = await Promise.all(both);
      holds(one, "Ada");
      holds(two, "Grace");
    }
    await other.close();
  }, server);
  await client.close();
}

for (const server of ["fixture", "modern"]) {
  const { client, answers } = await all(server, OF_FIXTURE);
  await told("is asked in as many rounds as the server wants", async () => {
    answers["elicitation/create"] = ({ params }) => {
      const names = Object.keys(params.requestedSchema.properties);
      return { action: "accept", content: Object.fromEntries(names.map((name) => [name, "Ada"])) };
    };
    answers["sampling/createMessage"] = sampled;
    holds(await called(client, "test_input_required_result_multi_round"), "all rounds are done");
    holds(await called(client, "test_input_required_result_multiple_inputs"), "got all three");
  }, server);
  await client.close();
}

// Servers that say in discovery that they know 2026-07-28, and know sessions, too.
for (const server of [...ofBothEras(way), ...(way === "http" ? ["python-sdk-sse"] : [])]) {
  const { client } = await all(server, OF_SDKS);
  await client.close();
}

const { client, answers } = await all("asking", { use: ["weather", {}, "tool_use look-out"] });
const ended = new Set();
let wake = () => {};
answers[ENDED] = (id) => {
  ended.add(id);
  wake();
};
const ends = async (id) => {
  while (!ended.has(id)) await new Promise((resolve) => (wake = resolve));
};

await inSessions("is notified that a URL elicitation is complete", async () => {
  answers["elicitation/create"] = accepts();
  same(await called(client, "visit"), "accept");
  await ends("visit-1");
}, "asking");

await told("visits a URL before its call is answered", async () => {
  const seen = new Set();
  answers["elicitation/create"] = ({ params }) => {
    seen.add(params.url);
    return { action: "accept" };
  };
  const who = `${name}-${way}-${era}`;
  if (era === "legacy") {
    seen.add(await refused(client, "enter", { who }));
    await ends(`ticket-${who}`);
  }
  same(await called(client, "enter", { who }), `welcome ${who}`);
  same([...seen], ["https://example.org/ticket"]);
}, "asking");
await client.close();
