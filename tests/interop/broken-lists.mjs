// 500 lists of 125 servers, with broken items beside good ones: every client lists all good ones, and each broken one is
// repaired, or named in the log.

import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

import { startGateway } from "./gateway.mjs";
import { SDKS, connected, same, told, transportTo } from "./sdks.mjs";

const { vary, python } = JSON.parse(process.argv[2]);

const SERVERS = 125;
const BREAKS = JSON.parse(readFileSync(new URL("broken-items.json", import.meta.url), "utf8"));
const METHODS = { "tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates" };
const IDS = { tools: "name", prompts: "name", resources: "uri", resourceTemplates: "uriTemplate" };

/** The same numbers in each run. */
let state = 59;
function random(below) {
  state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
  return Math.floor((state / 2_147_483_648) * below);
}

function good(kind, name) {
  const schema = { type: "object", properties: { a: { type: "string", description: "An argument." } }, required: ["a"] };
  return {
    tools: { name, description: "A tool.", inputSchema: schema, outputSchema: schema, annotations: { readOnlyHint: true } },
    prompts: { name, description: "A prompt.", arguments: [{ name: "a", required: true }] },
    resources: { uri: `note:${name}`, name, mimeType: "text/plain", size: 3 },
    resourceTemplates: { uriTemplate: `note:${name}/{a}`, name },
  }[kind];
}

function broken(kind, name, how) {
  if ("whole" in how) return how.whole;
  const item = { ...good(kind, name), ...how.set };
  for (const key of how.without ?? []) delete item[key];
  return item;
}

/** Good and broken items in any order; each break is in some list. URIs are different on each server. */
function list(kind, server) {
  const items = [0, 1, 2].map((at) => good(kind, `good-${at}`));
  for (let at = 0; at < 3; at++) {
    const how = BREAKS[kind][at === 0 ? server % BREAKS[kind].length : random(BREAKS[kind].length)];
    items.splice(1 + random(items.length), 0, broken(kind, `bad-${at}`, how));
  }
  return JSON.parse(JSON.stringify(items).replaceAll("note:", `note:s${server}/`));
}

const LISTS = Array.from({ length: SERVERS }, (_, server) =>
  Object.fromEntries(Object.values(METHODS).map((kind) => [kind, list(kind, server)])),
);

/** The servers: those with an even number have sessions, the others none. */
function answer(server, { method, params }) {
  const capabilities = { tools: {}, prompts: {}, resources: {} };
  const serverInfo = { name: `s${server}`, version: "1" };
  const isModern = server % 2 === 1;
  if (method === "initialize" && !isModern) return { protocolVersion: params.protocolVersion, capabilities, serverInfo };
  const cached = isModern && { resultType: "complete", ttlMs: 600_000, cacheScope: "public" };
  if (method === "server/discover" && isModern) return { ...cached, supportedVersions: ["2026-07-28"], capabilities, serverInfo };
  if (METHODS[method]) return { ...cached, [METHODS[method]]: LISTS[server][METHODS[method]], ...(!isModern && { nextCursor: null }) };
  return undefined;
}

const servers = createServer(async (request, response) => {
  let text = "";
  for await (const chunk of request) text += chunk;
  if (request.method !== "POST") return response.writeHead(405).end();
  const { id, ...message } = JSON.parse(text);
  if (id === undefined) return response.writeHead(202).end();
  const result = answer(Number(request.url.slice(2)), message);
  const outcome = result ? { result } : { error: { code: -32601, message: "Method not found" } };
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", id, ...outcome }));
});
await new Promise((done) => servers.listen(0, "127.0.0.1", done));

const directory = mkdtempSync(join(tmpdir(), "broken-lists-"));
const file = join(directory, "vary.json");
const url = (server) => `http://127.0.0.1:${servers.address().port}/s${server}`;
const configured = Object.fromEntries(LISTS.map((_, server) => [`s${server}`, { url: url(server) }]));
writeFileSync(file, JSON.stringify({ "start-wait": "60s", servers: configured }));
let log = "";
const { gateway, url: address } = await startGateway(vary, file);
gateway.stderr.on("data", (chunk) => (log += chunk));

/** The id that clients see. */
const shown = (kind, server, item) => (IDS[kind] === "name" ? `s${server}_${item.name}` : item[IDS[kind]]);

/** All ids of each list, all different, with all good items as they were. */
function holds(found) {
  for (const [kind, items] of Object.entries(found)) {
    const known = new Map(items.map((item) => [item[IDS[kind]], item]));
    same(known.size, items.length);
    for (const [server, lists] of LISTS.entries()) {
      for (const item of lists[kind].filter((it) => it?.[IDS[kind]]?.includes?.("good-"))) {
        const id = shown(kind, server, item);
        const listed = known.get(id);
        if (!listed) throw new Error(`${id} is not listed`);
        const original = lists[kind].find((it) => it?.[IDS[kind]] === item[IDS[kind]]);
        if (listed.inputSchema) same(listed.inputSchema, original.inputSchema);
      }
    }
  }
}

async function all(ask) {
  const items = [];
  for (let cursor; ; ) {
    const [page, next] = await ask(cursor ? { cursor } : {});
    items.push(...page);
    if (!(cursor = next)) return items;
  }
}

async function listed(name, era) {
  const sdk = SDKS[name];
  const client = await connected(sdk, transportTo(sdk, "http", { url: address }), era, {});
  const asks = { tools: "listTools", prompts: "listPrompts", resources: "listResources", resourceTemplates: "listResourceTemplates" };
  const found = {};
  for (const [kind, ask] of Object.entries(asks)) {
    found[kind] = await all(async (params) => {
      const result = await client[ask](params);
      return [result[kind], result.nextCursor];
    });
  }
  await client.close();
  return found;
}

let seen;
for (const [name, era] of [["typescript-1", "legacy"], ["typescript-2", "legacy"], ["typescript-2", "modern"]]) {
  await told(`lists all good items, ${name} ${era}`, async () => holds((seen = await listed(name, era))));
}
for (const era of ["legacy", "modern"]) {
  await told(`lists all good items, python ${era}`, async () => {
    const { stdout } = await promisify(execFile)(python, ["broken_lists.py", address, era], { maxBuffer: 1 << 26 });
    holds(JSON.parse(stdout));
  });
}

await told("repairs each broken item, or names it", async () => {
  for (const [server, lists] of LISTS.entries()) {
    const lines = log.split("\n").filter((line) => line.includes(`"s${server}"`) && line.includes("left out"));
    for (const [kind, items] of Object.entries(lists)) {
      for (const [at, item] of items.entries()) {
        const id = item?.[IDS[kind]];
        const isTwice = items.findIndex((it) => it?.[IDS[kind]] === id) < at;
        if (!isTwice && seen[kind].some((it) => it[IDS[kind]] === shown(kind, server, item ?? {}))) continue;
        const label = `\`${typeof id === "string" && id ? id : `#${at + 1}`}\``;
        if (!lines.some((line) => line.includes(label))) throw new Error(`${label} of s${server}: ${JSON.stringify(item)}`);
      }
    }
  }
});

gateway.kill();
servers.close();
servers.closeAllConnections();
rmSync(directory, { recursive: true });
