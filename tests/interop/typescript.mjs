// The TypeScript SDKs: 1.x with `initialize` and sessions, 2.x in either era.

import { capabilities, check, job } from "./checks.mjs";
import { SDKS, clientOf, open, transportTo } from "./sdks.mjs";

const { client: name, era, url, command, ...rest } = job();
const sdk = SDKS[name];

async function connect(features) {
  const client = clientOf(sdk, era, capabilities(features));
  await open(sdk, client, transportTo(sdk, url ? "http" : "stdio", { url, command }), era);
  return {
    seesProgress: true,
    dropsLastProgress: true,
    serverCapabilities: () => client.getServerCapabilities(),
    listTools: (meta) => client.listTools(meta && { _meta: meta }),
    callTool: ({ name, arguments: args }, meta, step) => {
      const params = { name, arguments: args, ...(meta && { _meta: meta }) };
      return sdk.call(client, params, step && { onprogress: ({ progress }) => step(progress) });
    },
    listResources: () => client.listResources(),
    listResourceTemplates: () => client.listResourceTemplates(),
    readResource: (uri) => client.readResource({ uri }),
    listPrompts: () => client.listPrompts(),
    getPrompt: (name, args) => client.getPrompt({ name, arguments: args }),
    complete: (name, argument) => client.complete({ ref: { type: "ref/prompt", name }, argument }),
    close: () => client.close(),
  };
}

await check(rest, connect);
