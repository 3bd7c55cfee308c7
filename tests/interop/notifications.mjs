// What the TypeScript SDK 1.x and 2.x hear of changes: of lists, of resources, of their variant alone.

import * as types from "@modelcontextprotocol/sdk/types.js";

import { VARIANT } from "./checks.mjs";
import { SDKS, clientOf, failure, open, same, told, transportTo } from "./sdks.mjs";

const { way, era, client: name, ...servers } = JSON.parse(process.argv[2]);
const sdk = SDKS[name];

const SCHEMAS = {
  "notifications/tools/list_changed": types.ToolListChangedNotificationSchema,
  "notifications/resources/updated": types.ResourceUpdatedNotificationSchema,
};
const NOTIFIED = "is notified of a change of a resource";
const WATCHED = "test://watched-resource";
const OTHER = "test://static-text";

/** A client of one server that can do this, and what it has heard. */
async function connected(server, capabilities = {}) {
  const client = clientOf(sdk, era, capabilities);
  const heard = [];
  let wake = () => {};
  for (const [method, schema] of Object.entries(SCHEMAS)) {
    client.setNotificationHandler(sdk.key(method, schema), ({ params }) => {
      heard.push([method, params ?? {}]);
      wake();
    });
  }
  await open(sdk, client, transportTo(sdk, way, servers[server]), era);
  /** Does `change` until it is heard; what is heard then. A stream may be opened only after the first time. */
  const hear = async (change, holds) => {
    for (;;) {
      await change();
      const pause = new Promise((resolve) => {
        wake = resolve;
        setTimeout(resolve, 500);
      });
      await pause;
      const found = heard.find(holds);
      if (found) return found;
    }
  };
  return { client, heard, hear };
}

const call = (client, tool, args) => client.callTool({ name: tool, arguments: args });

/** Subscribes to a resource; what ends that. */
async function subscribed(client, uri) {
  if (era === "modern") {
    const stream = await client.listen({ resourceSubscriptions: [uri] });
    return () => stream.close();
  }
  await client.subscribeResource({ uri });
  return () => client.unsubscribeResource({ uri });
}

for (const server of ["fixture", "modern"]) {
  await told("is notified that a list changed, and in which variant", async () => {
    const { client, hear } = await connected(server);
    const stream = era === "modern" && (await client.listen({ toolsListChanged: true }));
    const tool = `added-by-${name}-${way}-${era}`;
    const change = async () => {
      await call(client, "add_tool", { name: tool });
      await call(client, "remove_tool", { name: tool });
    };
    const [, params] = await hear(change, ([method]) => method.endsWith("tools/list_changed"));
    same(params._meta[VARIANT], "standard");
    await stream?.close?.();
    await client.close();
  }, server);

  await told("is notified of the resource to which it subscribed, and of no other", async () => {
    const { client, heard, hear } = await connected(server);
    const end = await subscribed(client, WATCHED);
    const change = async () => {
      await call(client, "update_resource", { uri: OTHER });
      await call(client, "update_resource", { uri: WATCHED });
    };
    const [, params] = await hear(change, ([method]) => method.endsWith("resources/updated"));
    same(params.uri, WATCHED);
    same(params._meta[VARIANT], "standard");
    await end();
    same(heard.some(([, { uri }]) => uri === OTHER), false);
    await client.close();
  }, server);
}

await told("a subscription belongs to its variant", async () => {
  const { client } = await connected("fixture");
  if (era === "modern") {
    const filter = { toolsListChanged: true, resourceSubscriptions: [WATCHED] };
    const stream = await client.listen(filter);
    same(stream.honoredFilter, filter);
    await stream.close();
  } else {
    const under = (variant) => ({ uri: WATCHED, _meta: { [VARIANT]: variant } });
    await client.subscribeResource(under("compact"));
    await client.subscribeResource(under("compact"));
    const error = await failure(client.subscribeResource(under("standard")));
    same(error.code, -32602);
    same(error.data.activeVariant, "standard");
    await client.unsubscribeResource(under("standard"));
    await client.subscribeResource(under("standard"));
  }
  await client.close();
}, "fixture");

// Over stdio each client has a gateway and servers of its own, and what is behind that is the same.
for (const server of way === "http" ? ["everything", "everything-http"] : ["everything"]) {
  // What can be asked something has its calls made on a connection of its own.
  for (const [capabilities, can] of [[{}, ""], [{ elicitation: { form: {} } }, ", and can be asked"]]) {
    await told(`${NOTIFIED}${can}`, async () => {
      const { client, heard, hear } = await connected(server, capabilities);
      const [{ uri }] = (await client.listResources()).resources;
      const end = await subscribed(client, uri);
      // The first time of two it begins to say so, and says it at once.
      const change = () => call(client, "toggle-subscriber-updates");
      const [, params] = await hear(change, ([method]) => method.endsWith("resources/updated"));
      same(params.uri, uri);
      await end();
      same(heard.some(([method, it]) => method.endsWith("resources/updated") && it.uri !== uri), false);
      await client.close();
    }, server);
  }
}
