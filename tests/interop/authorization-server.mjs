// An authorization server: npm's `oidc-provider` with dynamic registration, PKCE, resource indicators and access tokens
// that are JWT, which a gateway can exchange (RFC 8693). Its forms accept every account. As a program it listens on a port that
// the system chooses.

import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

import Provider, { errors } from "oidc-provider";

/** The scope of its resources. */
export const SCOPE = "mcp:read";

/** The client that exchanges tokens. */
export const GATEWAY = { client_id: "gateway", client_secret: "of-the-gateway-of-the-gateway-of-the-gateway" };

const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";

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
  const parameters = ["subject_token", "subject_token_type", "requested_token_type", "resource", "scope"];
  provider.registerGrantType(EXCHANGE, (context) => exchange(provider, context), parameters);
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
    clients: [{ ...GATEWAY, grant_types: [EXCHANGE], redirect_uris: [], response_types: [] }],
    extraTokenClaims: (context, { gty }) => (gty === EXCHANGE ? { act: { sub: GATEWAY.client_id } } : undefined),
    pkce: { required: () => true },
    features: {
      devInteractions: { enabled: true },
      registration: { enabled: true },
      resourceIndicators: { enabled: true, useGrantedResource: () => true, getResourceServerInfo: resourceServer },
    },
  };
}

/** A token for `resource` of the user whose token it gets (RFC 8693, section 2). It does not verify the signature. */
async function exchange(provider, context) {
  const { client, params } = context.oidc;
  const { iss, sub, exp } = JSON.parse(Buffer.from(params.subject_token.split(".")[1], "base64url"));
  if (iss !== provider.issuer || exp * 1000 < Date.now()) throw new errors.InvalidGrant("the subject token is not valid");
  const issued = new provider.AccessToken({ accountId: sub, client, gty: EXCHANGE, scope: SCOPE });
  issued.resourceServer = new provider.ResourceServer(params.resource, resourceServer(context, params.resource));
  context.oidc.entity("AccessToken", issued);
  context.body = {
    access_token: await issued.save(),
    issued_token_type: "urn:ietf:params:oauth:token-type:access_token",
    token_type: "Bearer",
    expires_in: SECONDS_OF_A_TOKEN,
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
