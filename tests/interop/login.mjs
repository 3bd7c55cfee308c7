// A client on the TypeScript SDK 1.x or 2.x logs in to the gateway from nothing but the URL.

import { consent } from "./consent.mjs";
import { SDKS, answers, connected, same, told, under } from "./sdks.mjs";

/** Where the authorization server redirects to. Nothing listens there: the person's program reads the parameters. */
const CALLBACK = "http://127.0.0.1:7777/callback";

/** The state of a client that registers itself, as an application would store it. */
class Credentials {
  constructor(who) {
    this.who = who;
  }
  redirectUrl = CALLBACK;
  clientMetadata = {
    client_name: "interop",
    redirect_uris: [CALLBACK],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  };
  clientInformation = () => this.client;
  saveClientInformation = (client) => void (this.client = client);
  tokens = () => this.issued;
  saveTokens = (tokens) => void (this.issued = tokens);
  codeVerifier = () => this.verifier;
  saveCodeVerifier = (verifier) => void (this.verifier = verifier);
  /** Returns after the person has said yes. */
  redirectToAuthorization = async (url) => void (this.redirected = await consent(url, CALLBACK, this.who));
}

/** Logs in to `url` as `who`; it has to refuse a client without a login: the credentials, with a token never presented yet. */
export async function authorize(name, url, era, who) {
  const authProvider = new Credentials(who);
  const transport = transportTo(name, url, authProvider);
  const refused = await connected(SDKS[name], transport, era, {}).then(
    () => new Error(`${url} lets in a client without a login`),
    (error) => error,
  );
  const { redirected } = authProvider;
  if (!redirected) throw refused;
  if (!redirected.get("code")) throw new Error(`the authorization server refuses: ${redirected}`);
  // The SDK 1.x takes the code alone.
  await transport.finishAuth(name === "typescript-1" ? redirected.get("code") : redirected);
  return authProvider;
}

/** Logs in to `url` as `who`: a client that is connected, and its access token. */
export async function login(name, url, era, who) {
  const authProvider = await authorize(name, url, era, who);
  const client = await connected(SDKS[name], transportTo(name, url, authProvider), era, {});
  return { client, token: authProvider.issued.access_token };
}

function transportTo(name, url, authProvider) {
  return new SDKS[name].Http(new URL(url), { authProvider });
}

/** What the server received from Vary has `mark` in it and no token. */
export async function checkReceived(recorder, mark, tokens) {
  const received = await (await fetch(new URL("/received", recorder))).json();
  const found = received.filter(({ body }) => body.includes(mark)).length;
  if (found !== 1) throw new Error(`${found} requests with ${mark} among ${received.length}`);
  for (const { method, headers, body } of received) {
    const text = `${headers.join(" ")} ${body}`;
    const leaks = headers.some((header) => header.toLowerCase() === "authorization");
    if (leaks || tokens.some((token) => text.includes(token))) {
      throw new Error(`the server received a token with ${method}: ${headers.filter((_, at) => at % 2 === 0)}`);
    }
  }
}

/** What the server received from Vary has `mark` in it once, with a token for `who`; and no token is for anybody but the server. */
async function checkExchanged(recorder, mark, who, inbound) {
  const received = await (await fetch(new URL("/received", recorder))).json();
  const owners = [];
  for (const { method, headers, body } of received) {
    const at = headers.findIndex((header) => header.toLowerCase() === "authorization");
    const [, claims] = headers[at + 1]?.match(/^Bearer [\w-]+\.([\w-]+)\./) ?? [];
    if (at < 0 || !claims) throw new Error(`the server received no token with ${method}`);
    const { sub, aud, act } = JSON.parse(Buffer.from(claims, "base64url"));
    same([aud, act], [recorder, { sub: "gateway" }]);
    if (body.includes(mark)) owners.push(sub);
    if (`${headers.join(" ")} ${body}`.includes(inbound)) throw new Error(`the server received the token of ${who}`);
  }
  same(owners, [who]);
}

/** Two people call at once, and the server behind gets tokens in exchange for theirs. */
async function people({ client: name, era, url, recorder }) {
  const sessions = [];
  for (const who of ["ann", "bob"]) {
    await told("logs in from the URL alone", async () => sessions.push({ who, ...(await login(name, url, era, who)) }), who);
  }
  const calls = sessions.map(async ({ who, client, token }) => {
    await told("calls a tool, and the server behind gets the token of this person alone", async () => {
      const mark = `${who} ${name} ${era}`;
      const params = { name: "echo", arguments: { said: mark } };
      await answers(SDKS[name], client, { method: "tools/call", params, finds: { "/structuredContent/said": mark } });
      await checkExchanged(recorder, mark, who, token);
    }, who);
    await client.close();
  });
  await Promise.all(calls);
}

async function main(job) {
  if (job.exchanged) return people(job);
  const { client: name, era, url, recorder } = job;
  const sdk = SDKS[name];
  const lists = {};
  for (const address of ["/mcp", "/mcp/v/compact"]) {
    let session;
    const logIn = async () => (session = await login(name, new URL(address, url).href, era));
    if (!(await told("logs in from the URL alone", logIn, address))) continue;
    const { client, token } = session;
    await told("lists the tools of the address", () => checkLists(sdk, client, address, lists), address);
    await told("calls a tool, and the server behind receives no token", async () => {
      const mark = `${name} ${era} ${address}`;
      const params = { name: "echo", arguments: { said: mark } };
      await answers(sdk, client, { method: "tools/call", params, finds: { "/structuredContent/said": mark } });
      await checkReceived(recorder, mark, [token]);
    }, address);
    await client.close();
  }
}

/** The address of the variant has the list that `/mcp` has for it: the same tools, smaller. */
async function checkLists(sdk, client, address, lists) {
  const { tools } = await client.listTools();
  if (address === "/mcp") {
    lists.standard = tools;
    // The SDK 2.x would answer `listTools` from its cache, which ignores the variant.
    lists.compact = (await sdk.page(client, under("compact"))).tools;
    same(tools.some(({ name }) => name === "echo"), true);
    return;
  }
  same(tools, lists.compact);
  same(tools.map(({ name }) => name), lists.standard.map(({ name }) => name));
  const [large, small] = [lists.standard, tools].map((list) => JSON.stringify(list).length);
  if (small >= large) throw new Error(`${small} characters instead of fewer than ${large}`);
}

if (import.meta.filename === process.argv[1]) await main(JSON.parse(process.argv[2]));
