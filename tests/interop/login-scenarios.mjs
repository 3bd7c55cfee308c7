// The client of the official suite's scenarios about authorization: `vary call --login`, and a browser that agrees.
//
// The suite names the scenario in its environment, and appends the URL of the scenario's server to the command.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const { MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_CONTEXT: context } = process.env;

/** `auth` of the server in this scenario. */
async function auth(url, { client_id, client_secret, private_key_pem }) {
  const client = { "client-id": client_id, "client-secret": client_secret, "private-key": private_key_pem };
  if (client_secret) client.issuer = await issuer(url);
  if (scenario.startsWith("auth/client-credentials-")) return { "client-credentials": client };
  if (scenario === "auth/basic-cimd") client["client-id"] = "https://conformance-test.local/client-metadata.json";
  return { login: client };
}

/** The authorization server, which an operator names who has its secret. */
async function issuer(url) {
  const { origin, pathname } = new URL(url);
  for (const path of [pathname, ""]) {
    const metadata = await fetch(`${origin}/.well-known/oauth-protected-resource${path}`);
    if (metadata.ok) return (await metadata.json()).authorization_servers[0];
  }
}

async function call(vary, url) {
  const directory = mkdtempSync(join(tmpdir(), "vary-scenario-"));
  const file = join(directory, "vary.json");
  const peer = { url, auth: await auth(url, JSON.parse(context ?? "{}")) };
  writeFileSync(file, JSON.stringify({ servers: { peer } }));
  const env = {
    ...process.env,
    BROWSER: `${process.execPath} ${process.argv[1]} --browser`,
    // Nobody's logins, and nobody's keyring.
    XDG_STATE_HOME: directory,
    DBUS_SESSION_BUS_ADDRESS: "unix:path=/nonexistent",
  };
  const called = spawnSync(vary, ["call", "--login", "test-tool", file], { env, stdio: "inherit", timeout: 90_000 });
  rmSync(directory, { recursive: true });
  return called.status ?? 1;
}

const [first, second] = process.argv.slice(2);
if (first === "--browser") await fetch(second);
else process.exit(await call(first, second));
