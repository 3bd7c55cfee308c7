// The configurations of examples/configurations, asked by the TypeScript SDK 1.x or 2.x. examples.json says what
// they answer.

import { readFileSync } from "node:fs";

import { SDKS, answers, connected, same, told, transportTo, under } from "./sdks.mjs";

const { targets, way, era, client: name } = JSON.parse(process.argv[2]);
const examples = JSON.parse(readFileSync(new URL("examples.json", import.meta.url), "utf8"));
const sdk = SDKS[name];

/** A way to the example; a client that sets no `_meta` has its variant by the address or the command line. */
function transport({ example, pinned }) {
  const { url, command, directory: cwd } = targets[example];
  if (!pinned) return transportTo(sdk, way, { url, command, cwd });
  return transportTo(sdk, way, { url: `${url}/v/${pinned}`, command: [...command, "--variant", pinned], cwd });
}

async function holds(client, { variant, lists, cursorOf, ...wanted }) {
  if (lists) return same(await names(client, variant), lists);
  if (!cursorOf) return answers(sdk, client, { variant, ...wanted });
  const { nextCursor } = await sdk.page(client, under(cursorOf, {}));
  if (!nextCursor) throw new Error(`${cursorOf} has one page`);
  const next = { method: "tools/list", params: { cursor: nextCursor } };
  await answers(sdk, client, { ...next, variant: cursorOf, finds: {} });
  await answers(sdk, client, { ...next, variant, ...wanted });
}

/** The names of all tools of a variant. */
async function names(client, variant) {
  const all = [];
  let cursor;
  do {
    const page = await client.listTools(under(variant, cursor ? { cursor } : {}));
    all.push(...page.tools.map((tool) => tool.name));
    cursor = page.nextCursor;
  } while (cursor);
  return all;
}

for (const example of examples.filter(({ ways }) => !ways || ways.includes(way))) {
  const what = example.pinned ? `${example.example} as ${example.pinned}` : example.example;
  let client;
  const open = async () => {
    client = await connected(sdk, transport(example), era, example);
  };
  if (!(await told(`${what}: connects`, open))) continue;
  for (const wanted of example.cases) {
    await told(`${what}: ${wanted.name}`, () => holds(client, wanted));
  }
  await told(`${what}: closes`, () => client.close());
}
