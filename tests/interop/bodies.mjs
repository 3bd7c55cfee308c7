// Bodies that are too large, sent with Node's `fetch`, which reports a broken pipe where a server stops reading.

import { same, told } from "./sdks.mjs";

const { url } = JSON.parse(process.argv[2]);
const TIMES = 10;
const MEGABYTE = 1_000_000;

async function post(size) {
  const params = { name: "echo", arguments: { said: "x".repeat(size) } };
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
  });
  await response.text();
  return response.status;
}

for (const megabytes of [5, 30]) {
  await told(`gets HTTP 413 for ${megabytes} MB, ${TIMES} times of ${TIMES}`, async () => {
    const statuses = [];
    for (let time = 0; time < TIMES; time += 1) {
      statuses.push(await post(megabytes * MEGABYTE).catch((error) => String(error.cause ?? error)));
    }
    same(statuses, Array(TIMES).fill(413));
  });
}
