// What clients get while the keys of the authorization server change, while it is dead, and after it is back. The
// TypeScript SDKs, with a gateway and an authorization server of the script's own.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { SCOPE, signingKeys, startAuthorizationServer } from "./authorization-server.mjs";
import { startGateway } from "./gateway.mjs";
import { authorize, login } from "./login.mjs";
import { SDKS, answers, same, told } from "./sdks.mjs";

const { client: name, era, vary, fixture, ports } = JSON.parse(process.argv[2]);
const [gatewayPort, issuerPort] = ports;
const origin = `http://127.0.0.1:${gatewayPort}`;
const directory = mkdtempSync(join(tmpdir(), "rotation-"));
const configuration = join(directory, "vary.json");

/** The response to a first message with this token, or with none. */
async function post(url, token) {
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1.0.0" } };
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(token && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
  });
  await response.text();
  return response;
}

/** The response refuses, and leads to the metadata of `address`; `error` is absent without a token (RFC 6750, 3.1). */
function isRefused(response, address, error) {
  same(response.status, 401);
  const challenge = response.headers.get("www-authenticate") ?? "";
  const parameters = Object.fromEntries([...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key, value]));
  const metadata = `${origin}/.well-known/oauth-protected-resource${address}`;
  same([parameters.resource_metadata, parameters.error], [metadata, error]);
  return metadata;
}

async function isChallenged(address, issuer) {
  const metadata = isRefused(await post(`${origin}${address}`), address, undefined);
  const document = await (await fetch(metadata)).json();
  const { resource, authorization_servers, scopes_supported } = document;
  same([resource, authorization_servers, scopes_supported], [`${origin}${address}`, [issuer], [SCOPE]]);
}

async function passes(token) {
  same((await post(`${origin}/mcp`, token)).status, 200);
}

async function calls(client) {
  const params = { name: "echo", arguments: { said: "hello" } };
  await answers(SDKS[name], client, { method: "tools/call", params, finds: { "/structuredContent/said": "hello" } });
}

async function logsIn() {
  const { client, token } = await login(name, `${origin}/mcp`, era);
  await calls(client);
  return { client, token };
}

const logsInAndCloses = async () => (await logsIn()).client.close();
const newToken = async () => (await authorize(name, `${origin}/mcp`, era)).issued.access_token;

async function main(start) {
  const keys = signingKeys(1);
  let server = await start(keys);
  for (const address of ["/mcp", "/mcp/v/compact"]) {
    await told(`is led from ${address} to the authorization server`, () => isChallenged(address, server.issuer));
  }
  let known, fresh, old;
  const logIn = async () => ([known, fresh, old] = [await logsIn(), await newToken(), await newToken()]);
  // All that follows needs these tokens.
  if (!(await told("logs in, calls a tool, and gets two more tokens", logIn))) return server.stop();

  await server.stop();
  await told("goes on while the authorization server is dead", async () => {
    await calls(known.client);
    await passes(known.token);
  });
  await told("presents a token for the first time while the authorization server is dead", () => passes(fresh));

  server = await start(keys);
  await told("logs in after the authorization server is back", logsInAndCloses);

  await server.stop();
  server = await start(signingKeys(2));
  await told("logs in at once after the keys have changed", logsInAndCloses);
  await told("is refused with a token of a key that is gone", async () => {
    isRefused(await post(`${origin}/mcp`, old), "/mcp", "invalid_token");
  });
  await known.client.close();
  await server.stop();
}

const settings = {
  "public-url": origin,
  "start-wait": "60s",
  auth: { issuers: [{ issuer: `http://127.0.0.1:${issuerPort}`, scopes: [SCOPE] }] },
  servers: { fixture: { command: fixture, args: ["--stdio"] } },
};
writeFileSync(configuration, JSON.stringify(settings));
let gateway;
await main(async (keys) => {
  const server = await startAuthorizationServer({ port: issuerPort, keys });
  gateway ??= (await startGateway(vary, configuration, `127.0.0.1:${gatewayPort}`)).gateway;
  return server;
});
gateway?.kill();
rmSync(directory, { recursive: true });
