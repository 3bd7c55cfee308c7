// Every shaped result of shaped.json, taken by the TypeScript SDK 1.x or 2.x for every set of feature tags: the SDK
// validates it, and shaped-results.mjs holds it against what the server said.

import { readFileSync } from "node:fs";

import { SDKS, connected, same, told, transportTo } from "./sdks.mjs";
import { faultsOf } from "./shaped-results.mjs";

const { recording, url, command, sets, rows, way, era, client: name } = JSON.parse(process.argv[2]);
const server = JSON.parse(readFileSync(recording, "utf8"));
const sdk = SDKS[name];

const transport = () => transportTo(sdk, way, { url, command });

/** All answers that a client of these tags gets. */
async function holds(client, tags) {
  const { tools } = await client.listTools();
  const called = tools.filter(({ name }) => !rows.some((set) => set.tool === name)).map(async (tool) => {
    const call = client.callTool({ name: tool.name, arguments: {} });
    return { tool, ...(await call.then((got) => ({ got }), (error) => ({ failed: String(error) }))) };
  });
  const calls = await Promise.all(called);
  const resource = await client.readResource({ uri: "map://valley" });
  const prompt = await client.getPrompt({ name: "plan" });
  const faults = faultsOf(server, { era, tags, calls, resource, prompt });
  if (faults.length > 0) throw new Error(faults.join("; "));
}

/** In few words: each key is read inline up to 500 rows, and the whole, page by page, where the link leads. */
async function readsRows(client, { tool, key, list }) {
  const got = await client.callTool({ name: tool, arguments: {} });
  const whole = server.results.tools[tool].structuredContent;
  const text = got.content.map((block) => block.text ?? "").join("\n");
  const words = new Set(text.split(/[^\p{L}\p{N}_.:-]+/u));
  const missing = whole[list].slice(0, 500).filter((row) => !words.has(String(row[key])));
  same(missing, []);
  const { uri } = got.content.find((block) => block.type === "resource_link");
  same(await pages(client, `${uri}?pointer=/${list}`), whole[list]);
}

/** What is read from `uri` on. */
async function pages(client, uri) {
  const { contents } = await client.readResource({ uri });
  const page = JSON.parse(contents[0].text);
  return contents[1] ? page.concat(await pages(client, contents[1].uri)) : page;
}

for (const tags of sets) {
  const what = tags ? `[${tags}]` : "nothing declared";
  let client;
  const open = async () => {
    client = await connected(sdk, transport(), era, tags ? { features: tags } : {});
  };
  if (!(await told(`${what}: connects`, open))) continue;
  await told(what, () => holds(client, tags));
  await told(`${what}: closes`, () => client.close());
}
// On stdio each connection is a process: one of the sets will do.
for (const set of way === "http" ? rows : rows.slice(0, 1)) {
  await told(`the rows of ${set.tool}`, async () => {
    const client = await connected(sdk, transport(), era, { features: ["verbosity=compact"] });
    try {
      await client.listTools();
      await readsRows(client, set);
    } finally {
      await client.close();
    }
  });
}
