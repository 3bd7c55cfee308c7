// An authorization server: npm's `oidc-provider` with dynamic registration, PKCE, resource indicators and access tokens
// that are JWT. Its forms accept every account. As a program it listens on a port that the system chooses.

import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

import Provider, { errors } from "oidc-provider";

/** The scope of its resources. */
export const SCOPE = "mcp:read";

/** The algorithms of access tokens, so that clients present both: for the endpoint, and for a variant's address. */
const ENDPOINT_ALGORITHM = "RS256";
const VARIANT_ALGORITHM = "ES256";

const SECONDS_OF_A_TOKEN = 300;

/** Signing keys whose ids end with `generation`: new keys with another generation are a rotation. */
export function signingKeys(generation) {
  const key = (algorithm, type, options) => ({
    ...generateKeyPairSync(type, options).privateKey.export({ format: "jwk" }),
    kid: `${algorithm}-${generation}`,
    alg: algorithm,
    use: "sig",
  });
  return [
    key(ENDPOINT_ALGORITHM, "rsa", { modulusLength: 2048 }),
    key(VARIANT_ALGORITHM, "ec", { namedCurve: "P-256" }),
  ];
}

/** Starts the server. `stop` ends it with its connections, as a crash does; what it had registered is gone. */
export async function startAuthorizationServer({ port = 0, keys = signingKeys(1) } = {}) {
  const listener = createServer();
  await new Promise((resolve, reject) => {
    listener.once("error", reject).listen(port, "127.0.0.1", resolve);
  });
  const issuer = `http://127.0.0.1:${listener.address().port}`;
  const provider = new Provider(issuer, settings(keys));
  provider.on("server_error", (context, error) => console.error(error));
  for (const event of ["authorization.error", "grant.error", "registration_create.error"]) {
    provider.on(event, (context, error) => console.error(`${event}: ${error.message} ${error.error_description ?? ""}`));
  }
  listener.on("request", provider.callback());
  const stop = async () => {
    const closed = new Promise((resolve) => listener.close(resolve));
    listener.closeAllConnections();
    await closed;
  };
  return { issuer, port: listener.address().port, stop };
}

function settings(keys) {
  return {
    jwks: { keys },
    findAccount: (context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    scopes: ["openid", "offline_access", SCOPE],
    pkce: { required: () => true },
    features: {
      devInteractions: { enabled: true },
      registration: { enabled: true },
      resourceIndicators: { enabled: true, useGrantedResource: () => true, getResourceServerInfo: resourceServer },
    },
  };
}

/** The addresses of a gateway on this machine are known; others are refused as `invalid_target` (RFC 8707, section 2). */
function resourceServer(context, resource) {
  const { hostname, pathname } = new URL(resource);
  if (hostname !== "127.0.0.1" || !/^\/mcp(\/v\/[\w-]+)?$/.test(pathname)) throw new errors.InvalidTarget();
  const alg = pathname === "/mcp" ? ENDPOINT_ALGORITHM : VARIANT_ALGORITHM;
  return {
    scope: SCOPE,
    audience: resource,
    accessTokenTTL: SECONDS_OF_A_TOKEN,
    accessTokenFormat: "jwt",
    jwt: { sign: { alg } },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { issuer } = await startAuthorizationServer();
  console.log(`listening on ${issuer}`);
}
