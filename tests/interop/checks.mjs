// What every client is asked to do, whatever its SDK calls it.
//
// A client is an object with the functions that `check` calls; each answers as the
// specification writes the result. servers.json says what each server must answer.

import { readFileSync } from "node:fs";

import { failure, same, textOf, told } from "./telling.mjs";

export const NEGOTIATION = "io.modelcontextprotocol/content-negotiation";
export const VARIANTS = "io.modelcontextprotocol/server-variants";
export const VARIANT = "io.modelcontextprotocol/server-variant";

const AGENT = ["agent", "format=json"];
const HUMAN = ["human", "format=markdown"];

/** The job that the command line describes: who is asked, over what, in which era. */
export function job() {
  const job = JSON.parse(process.argv[2]);
  const servers = readFileSync(new URL("servers.json", import.meta.url), "utf8");
  const directory = JSON.stringify(job.directory ?? "").slice(1, -1);
  job.expected = JSON.parse(servers.replaceAll("{directory}", directory))[job.server];
  return job;
}

/** The capabilities of a client that declares `features`, or nothing. */
export function capabilities(features) {
  return features ? { extensions: { [NEGOTIATION]: { version: "1.0", features } } } : {};
}

/** Runs every check that this client can do; one line of JSON for each. */
export async function check(job, connect) {
  let plain;
  if (!(await told("connects", async () => (plain = await connect())))) return;
  await asServed(job.expected, plain);
  if (job.vary) await variants(job.expected, plain);
  await plain.close();
  if (job.vary && !plain.cannotDeclare) {
    await negotiated("an agent gets the bare value", AGENT, connect, job.expected, bareValue);
    await negotiated("a person gets markdown", HUMAN, connect, job.expected, markdown);
  }
}

/** What a client sees that knows neither extension: what the server said. */
async function asServed(expected, client) {
  const { call, structured, progress, resource, template, prompt, completion } = expected;
  await told("lists tools", async () => {
    const names = (await client.listTools()).tools.map((tool) => tool.name);
    const missing = expected.tools.filter((name) => !names.includes(name));
    same(missing, []);
  });
  if (call) {
    await told(`calls ${call.name}`, async () => {
      same(textOf(await client.callTool(call)), call.text);
    });
  }
  await told(`calls ${structured.name}`, async () => {
    const result = await client.callTool(structured);
    expectValue(result, structured);
    if (textOf(result) === "") throw new Error("`content` is empty");
  });
  if (progress && client.seesProgress) {
    await told(`sees the progress of ${progress.name}`, async () => {
      const seen = [];
      await client.callTool(progress, undefined, (step) => seen.push(step));
      // The TypeScript SDKs drop a step that arrives in one chunk with the answer, with Vary or without.
      const wanted = client.dropsLastProgress ? progress.steps.slice(0, seen.length) : progress.steps;
      same(seen, wanted);
      if (seen.length + 1 < progress.steps.length) throw new Error(`only ${seen}`);
    });
  }
  if (resource) {
    await told("lists and reads resources", async () => {
      const uris = (await client.listResources()).resources.map(({ uri }) => uri);
      if (!uris.includes(resource.uri)) throw new Error(`not listed among ${uris}`);
      const [content] = (await client.readResource(resource.uri)).contents;
      if (!content.text.startsWith(resource.begins)) throw new Error(content.text.slice(0, 80));
    });
  }
  if (template) {
    await told("lists templates", async () => {
      const { resourceTemplates } = await client.listResourceTemplates();
      same(resourceTemplates.map((each) => each.uriTemplate).includes(template), true);
    });
  }
  if (prompt) {
    await told("lists and gets prompts", async () => {
      const names = (await client.listPrompts()).prompts.map(({ name }) => name);
      if (!names.includes(prompt.name)) throw new Error(`not listed among ${names}`);
      const { messages } = await client.getPrompt(prompt.name, prompt.arguments);
      same(messages[0].content.text, prompt.text);
    });
  }
  if (completion && client.complete) {
    await told("completes an argument", async () => {
      const result = await client.complete(completion.prompt, completion.argument);
      same(result.completion.values, completion.values);
    });
  }
}

/** What selecting a variant changes. */
async function variants(expected, client) {
  const { structured } = expected;
  if (client.serverCapabilities) {
    await told("is offered the variants", async () => {
      const offer = client.serverCapabilities()?.extensions?.[VARIANTS];
      same(offer?.availableVariants?.map(({ id }) => id), ["standard", "compact", "directory", "read-only"]);
    });
  }
  await told("sees a smaller list in compact, and the whole one again after it", async () => {
    const standard = await client.listTools();
    const compact = await client.listTools({ [VARIANT]: "compact" });
    const again = await client.listTools();
    const names = ({ tools }) => tools.map(({ name }) => name);
    same(names(compact), names(standard));
    same(again.tools, standard.tools);
    const [large, small] = [standard, compact].map(({ tools }) => JSON.stringify(tools).length);
    if (small * 4 > large * 3) throw new Error(`${small} of ${large} characters`);
  });
  await told("calls in compact", async () => {
    expectValue(await client.callTool(structured, { [VARIANT]: "compact" }), structured);
  });
  await told("learns which variants exist when it selects another", async () => {
    const error = await failure(client.listTools({ [VARIANT]: "nonesuch" }));
    if (!/Invalid server variant/.test(error.message)) throw error;
    if (client.hidesErrorData) return;
    same(error.code, -32602);
    same(error.data?.requestedVariant, "nonesuch");
    const ids = error.data?.availableVariants?.map((each) => each.id ?? each);
    same(ids, ["standard", "compact", "directory", "read-only"]);
  });
  if (client.hidesErrorData) return;
  await told("learns the active variant when a tool does not exist", async () => {
    const error = await failure(client.callTool({ name: "nonesuch", arguments: {} }));
    same(error.code, -32602);
    same(error.data?.activeVariant, "standard");
  });
}

/** One call by a client that declares `features`. */
async function negotiated(name, features, connect, { structured }, holds) {
  await told(name, async () => {
    const client = await connect(features);
    try {
      // Clients validate against the schema they listed.
      await client.listTools();
      holds(await client.callTool(structured), structured);
    } finally {
      await client.close();
    }
  });
}

function bareValue(result, structured) {
  same(result.content, []);
  expectValue(result, structured);
}

function markdown(result, structured) {
  const shown = textOf(result);
  if (!shown.includes(structured.markdown)) throw new Error(shown);
  if (parses(shown)) throw new Error(`still JSON: ${shown}`);
  // All of these tools declare an output schema, so the value has to stay.
  expectValue(result, structured);
}

function expectValue(result, { value, part }) {
  if (result.isError) throw new Error(textOf(result));
  if (value) same(result.structuredContent, value);
  for (const key of Object.keys(part ?? {})) same(result.structuredContent?.[key], part[key]);
}

function parses(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
