// The servers of examples/library, asked by the TypeScript SDK 1.x or 2.x. library.json says what they answer.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { SDKS, answers, connected, told, transportTo } from "./sdks.mjs";

const { programs, way, era, client: name } = JSON.parse(process.argv[2]);
const cases = JSON.parse(readFileSync(new URL("library.json", import.meta.url), "utf8"));
const sdk = SDKS[name];

/** One case, on a connection and a server of its own. */
async function holds(wanted) {
  const program = join(programs, wanted.program);
  const server = way === "http" ? spawn(program, ["--http", "127.0.0.1:0"]) : undefined;
  try {
    const client = await connected(sdk, await transport(program, server), era, wanted);
    await answers(sdk, client, wanted);
    await client.close();
  } finally {
    server?.kill();
  }
}

async function transport(program, server) {
  const lines = server && createInterface({ input: server.stdout });
  const url = lines && (await new Promise((resolve) => lines.once("line", resolve)));
  return transportTo(sdk, way, { url, command: [program, "--stdio"] });
}

for (const wanted of cases) {
  await told(wanted.name, () => holds(wanted));
}
