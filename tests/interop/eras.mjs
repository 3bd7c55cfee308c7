// What clients of either era get from servers of both eras with the TypeScript SDK 1.x and 2.x: state of their session
// alone, lists that grow while they are connected, and results with the members of their era.

import * as types from "@modelcontextprotocol/sdk/types.js";

import { SDKS, called, clientOf, lacks, ofBothEras, open, same, told, transportTo } from "./sdks.mjs";

const { way, era, client: name, replicas, ...servers } = JSON.parse(process.argv[2]);
const sdk = SDKS[name];

const COUNTS = "counts the calls of its session alone";
const GROWS = "is notified that a tool was added, and calls it";
const OF_ONE_REPLICA = "a list that a program or session changes for itself is that of one replica";
const MEMBERS = "gets results with the members of its era";
const LIST_CHANGED = "notifications/tools/list_changed";
const CAPABILITIES = { elicitation: { form: {} }, sampling: {}, roots: { listChanged: true } };

/** How often the client was notified that the list of tools changed. */
class Changes {
  count = 0;
  #wake = () => {};

  add() {
    this.count += 1;
    this.#wake();
  }

  /** Waits until there were more than `count`. */
  async after(count) {
    while (this.count <= count) await new Promise((resolve) => (this.#wake = resolve));
  }
}

/** A client of one server, its notifications of changed lists, and the results as they arrived. */
async function connected(server, capabilities) {
  const transport = transportTo(sdk, way, servers[server]);
  const client = clientOf(sdk, era, capabilities);
  const changes = new Changes();
  client.setNotificationHandler(sdk.key(LIST_CHANGED, types.ToolListChangedNotificationSchema), () => changes.add());
  await open(sdk, client, transport, era);
  const results = [];
  const { onmessage } = transport;
  transport.onmessage = (message, extra) => {
    // A copy, as the SDK takes members out.
    if (message.result) results.push(structuredClone(message.result));
    return onmessage(message, extra);
  };
  return { client, changes, results };
}

const isModern = era === "modern";

/** The members of a list and of the result of a call, as they arrived. */
function members([list, call]) {
  for (const result of [list, call]) {
    same(result.resultType, isModern ? "complete" : undefined);
    same("io.modelcontextprotocol/serverInfo" in (result._meta ?? {}), isModern);
  }
  same(["ttlMs", "cacheScope"].filter((it) => it in list), isModern ? ["ttlMs", "cacheScope"] : []);
}

/** The client has called `count` once; over HTTP another one calls it in between. */
async function counts({ client }, server) {
  const other = way === "http" && (await connected(server, CAPABILITIES));
  try {
    for (const count of [2, 3]) {
      same(await called(client, "count"), `${count}`);
      if (other) same(await called(other.client, "count"), `${count - 1}`);
    }
  } finally {
    // A client that stays open would keep this process from ending.
    if (other) await other.client.close();
  }
}

async function grows({ client, changes }, kind) {
  const names = async () => (await client.listTools()).tools.map(({ name }) => name);
  const tool = `added_for_${name}_${way}_${era}_${kind}`.replaceAll("-", "_");
  same((await names()).includes(tool), false);
  const stream = isModern && (await client.listen({ toolsListChanged: true }));
  same(await called(client, "enable_toolset", { name: tool }), `${tool} was added`);
  // Other clients add tools to the same server meanwhile, so the first change may be theirs.
  for (let count = 0, isListed = false; !isListed; ) {
    await changes.after(count);
    count = changes.count;
    isListed = (await names()).includes(tool);
  }
  same(await called(client, tool), `${tool} was called`);
  await stream?.close?.();
}

await Promise.all(
  ofBothEras(way).map(async (server) => {
    let asked;
    await told(MEMBERS, async () => {
      asked = await connected(server, CAPABILITIES);
      await asked.client.listTools();
      same(await called(asked.client, "count"), "1");
      members(asked.results);
    }, server);
    if (isModern) lacks(COUNTS, "2026-07-28 has no sessions", server);
    else await told(COUNTS, () => counts(asked, server), server);
    if (replicas && isModern) lacks(`${GROWS}, and can be asked`, OF_ONE_REPLICA, server);
    else await told(`${GROWS}, and can be asked`, () => grows(asked, "asked"), server);
    await asked?.client.close();
    // Over stdio it costs another gateway, and what is behind that is the same.
    if (way !== "http") return;
    if (replicas) return lacks(GROWS, OF_ONE_REPLICA, server);
    await told(GROWS, async () => {
      const plain = await connected(server, {});
      await grows(plain, "plain").finally(() => plain.client.close());
    }, server);
  }),
);
