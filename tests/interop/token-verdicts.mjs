// Judges access tokens with the package `jose`, whose verdicts must be those of Vary.
//
// `cargo run -p mcp-vary-auth --example token_verdicts` prints the tokens. What Vary accepts, `jose` accepts, without
// any exception. What `jose` accepts and Vary refuses has a reason that only Vary has: STRICTER lists them all.

import { readFileSync } from "node:fs";

import { createLocalJWKSet, jwtVerify } from "jose";

import { told } from "./sdks.mjs";

const PUBLIC = "https://mcp.example";

/** The issuers of `mcp_vary_testkit::credentials`: their further audiences, and whether they need a scope. */
const ISSUERS = {
  "https://idp.example/realms/a": { audiences: ["api://vary", "client-of-vary"], needsScope: true },
  "https://other.example": { audiences: [], needsScope: false },
};

const ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];

const [{ now, keys }, ...lines] = readFileSync(JSON.parse(process.argv[2]).tokens, "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line));
const keySet = createLocalJWKSet(keys);

/** The claims and the header, if `jose` verifies the token for the address. */
async function verified({ token, path }) {
  const options = { algorithms: ALGORITHMS, clockTolerance: 60, currentDate: new Date(now * 1000) };
  const all = { ...options, issuer: Object.keys(ISSUERS), requiredClaims: ["exp", "sub"] };
  try {
    const { payload } = await jwtVerify(token, keySet, all);
    // The address of a variant may be spelled with other escapes.
    const here = [payload.aud].flat().filter((one) => decoded(one) === decoded(PUBLIC + path));
    const audience = [`${PUBLIC}/mcp`, ...here, ...ISSUERS[payload.iss].audiences];
    const { protectedHeader } = await jwtVerify(token, keySet, { ...all, audience });
    return hasScope(payload) && { payload, header: protectedHeader, parts: token.split(".") };
  } catch {
    return false;
  }
}

function decoded(url) {
  try {
    return decodeURIComponent(url);
  } catch {
    return undefined;
  }
}

function hasScope({ iss, scope, scp }) {
  const written = scope ?? scp ?? [];
  const scopes = typeof written === "string" ? written.split(" ") : written;
  return !ISSUERS[iss].needsScope || (Array.isArray(scopes) && scopes.includes("mcp:read"));
}

/** Why only Vary refuses a token. */
const STRICTER = {
  "base64url in another spelling": ({ parts }) =>
    parts.some((part) => Buffer.from(part, "base64url").toString("base64url") !== part),
  "a name that is repeated, or many levels": ({ parts }) => parts.slice(0, 2).some((part) => isUnusual(text(part))),
  "too long": ({ parts }) =>
    parts.join(".").length > 8192 || text(parts[0]).length > 1024 || text(parts[1]).length > 6144,
  "another kind of token": ({ header }) => {
    const kinds = ["jwt", "at+jwt", "application/at+jwt"];
    return header.typ !== undefined && !kinds.includes(String(header.typ).toLowerCase());
  },
  "a critical extension": ({ header }) => "crit" in header,
  "a kid that is not text": ({ header }) => (header.kid ?? "") !== String(header.kid ?? ""),
  "bound to a key": ({ payload }) => "cnf" in payload,
  "an ID token": ({ payload }) => "at_hash" in payload || "c_hash" in payload,
  "no sub, or one that is not usable": ({ payload: { sub } }) => !isText(sub, 1) || sub.length > 1024,
  "issued in the future": ({ payload: { iat } }) => iat > now + 60,
  "a time before 1970 or without end": ({ payload }) =>
    [payload.exp, payload.nbf, payload.iat].some((time) => time !== undefined && !(time >= 0 && time < 1e15)),
  "an audience that is not text": ({ payload: { aud } }) => [aud].flat().some((one) => typeof one !== "string"),
  "many audiences": ({ payload: { aud } }) => [aud].flat().length > 64,
  "groups that are not usable": ({ payload: { groups } }) =>
    [groups ?? []].flat().length > 1024 || [groups ?? []].flat().some((group) => !isText(String(group), 0)),
};

const text = (part) => Buffer.from(part, "base64url").toString();

/** Whether it is text without control characters and halves of characters. */
function isText(value, least) {
  return typeof value === "string" && value.length >= least && value.isWellFormed() && !/\p{Cc}/u.test(value);
}

/** Whether JSON repeats a name in an object, or has more than eight levels. */
function isUnusual(json) {
  const names = [];
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\]]/g)) {
    if (token === "{" || token === "[") names.push(new Set());
    else if (token === "}" || token === "]") names.pop();
    else if (token.endsWith(":")) {
      const name = JSON.parse(token.slice(0, -1));
      if (names.at(-1).has(name)) return true;
      names.at(-1).add(name);
    }
    if (names.length > 8) return true;
  }
  return false;
}

/** Why the verdicts differ, or nothing. */
async function difference(line) {
  const ours = line.answer.startsWith("200");
  const theirs = await verified(line);
  if (ours && !theirs) return `jose refuses what Vary accepts: ${line.token}`;
  if (ours || !theirs) return undefined;
  const reasons = Object.entries(STRICTER).filter(([, holds]) => holds(theirs));
  return reasons.length > 0 ? undefined : `jose accepts, and Vary: ${line.answer}: ${line.token}`;
}

const generated = [];
let accepted = 0;
for (const line of lines) {
  accepted += line.answer.startsWith("200");
  if (line.name === "generated") {
    generated.push(line);
    continue;
  }
  await told(line.name, async () => {
    const found = await difference(line);
    if (found) throw new Error(found.slice(0, 600));
  });
}
await told(`${generated.length} generated tokens`, async () => {
  const found = (await Promise.all(generated.map(difference))).filter(Boolean);
  if (found.length > 0) throw new Error(`${found.length} differ; the first: ${found[0].slice(0, 600)}`);
});
await told("some tokens are accepted, and some are not", async () => {
  const part = accepted / lines.length;
  if (!(part > 0.1 && part < 0.9)) throw new Error(`${accepted} of ${lines.length} are accepted`);
});
