// What the TypeScript SDK 1.x and 2.x hear of changes: of lists, of resources, of their variant alone.

import * as types from "@modelcontextprotocol/sdk/types.js";

import { VARIANT } from "./checks.mjs";
import { SDKS, same, told } from "./sdks.mjs";

const { fixture, everything, way, era, client: name } = JSON.parse(process.argv[2]);
const sdk = SDKS[name];

const SCHEMAS = {
  "notifications/tools/list_changed": types.ToolListChangedNotificationSchema,
  "notifications/resources/updated": types.ResourceUpdatedNotificationSchema,
};
const WATCHED = "test://watched-resource";
const OTHER = "test://static-text";

/** A client of one server, and what it has heard. */
async function connected({ url, command }) {
  const [program, ...args] = command;
  const transport =
    way === "http"
      ? new sdk.Http(new URL(url))
      : new sdk.Stdio({ command: program, args, env: process.env, stderr: "inherit" });
  const client = new sdk.Client(
    { name: "interop-hearing", version: "1.0.0" },
    { versionNegotiation: { mode: era === "modern" ? "auto" : "legacy" } },
  );
  const heard = [];
  let wake = () => {};
  for (const [method, schema] of Object.entries(SCHEMAS)) {
    client.setNotificationHandler(name === "typescript-1" ? schema : method, ({ params }) => {
      heard.push([method, params ?? {}]);
      wake();
    });
  }
  await client.connect(transport);
  same(sdk.eraOf(client), era);
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
  return { client, heard, hear, url };
}

const call = (client, tool, args) => client.callTool({ name: tool, arguments: args });

await told("hears that a list changed, and of which variant", async () => {
  const { client, hear } = await connected(fixture);
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
});

await told("hears of the resource that it asked to hear of, and of no other", async () => {
  const { client, heard, hear } = await connected(fixture);
  const stream = era === "modern" && (await client.listen({ resourceSubscriptions: [WATCHED] }));
  if (era === "legacy") await client.subscribeResource({ uri: WATCHED });
  const change = async () => {
    await call(client, "update_resource", { uri: OTHER });
    await call(client, "update_resource", { uri: WATCHED });
  };
  const [, params] = await hear(change, ([method]) => method.endsWith("resources/updated"));
  same(params.uri, WATCHED);
  same(params._meta[VARIANT], "standard");
  if (era === "legacy") await client.unsubscribeResource({ uri: WATCHED });
  await stream?.close?.();
  same(heard.some(([, { uri }]) => uri === OTHER), false);
  await client.close();
});

await told("a subscription belongs to its variant", async () => {
  const { client } = await connected(fixture);
  if (era === "modern") {
    const filter = { toolsListChanged: true, resourceSubscriptions: [WATCHED] };
    const stream = await client.listen(filter);
    same(stream.honoredFilter ?? stream.acknowledged ?? filter, filter);
    await stream.close();
  } else {
    const under = (variant) => ({ uri: WATCHED, _meta: { [VARIANT]: variant } });
    await client.subscribeResource(under("compact"));
    await client.subscribeResource(under("compact"));
    const error = await client.subscribeResource(under("standard")).then(
      () => Promise.reject(new Error("no error")),
      (error) => error,
    );
    same(error.code, -32602);
    same(error.data.activeVariant, "standard");
    await client.unsubscribeResource(under("standard"));
    await client.subscribeResource(under("standard"));
  }
  await client.close();
});

await told("is subscribed to a resource of another server", async () => {
  const { client } = await connected(everything);
  const [{ uri }] = (await client.listResources()).resources;
  if (era === "modern") {
    const stream = await client.listen({ resourceSubscriptions: [uri] });
    await stream.close();
  } else {
    await client.subscribeResource({ uri });
    await client.unsubscribeResource({ uri });
  }
  await client.close();
});
