// What the page asks of Vary: JSON under `/api/`, with the token of the operator.

const TOKEN = "vary-token";

/** A request that failed, with the status of the answer; 0 without an answer. */
class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export const setToken = (token) => sessionStorage.setItem(TOKEN, token);
export const hasToken = () => sessionStorage.getItem(TOKEN) !== null;

/** The code in an address that `vary open` made; nothing if there is none, as in the address of a view. */
export function codeIn(address) {
  const fragment = address.split("#")[1] ?? "";
  return fragment.startsWith("/") ? null : new URLSearchParams(fragment).get("code");
}

/** Exchanges a code for the token of this tab. It works once. */
export async function exchange(code) {
  const response = await request("/api/token", { method: "POST", headers: { Authorization: `Bearer ${code}` } });
  setToken((await response.json()).token);
}

/** Exchanges the code of the address, which then neither history nor a copied link keeps, or one of another tab. */
export async function takeToken() {
  const own = codeIn(location.hash);
  if (own) history.replaceState(null, "", location.pathname);
  const code = own ?? (hasToken() ? null : await codeOfTabs());
  tabs.onmessage = async ({ data }) => data === ASK && hasToken() && tabs.postMessage(await post("/api/code").catch(() => ({})));
  if (code) await exchange(code);
}

/** The tabs of this page in the browser. One without a token asks the others for a code, and waits for milliseconds. */
const [tabs, ASK, PATIENCE] = [new BroadcastChannel("vary"), "code?", 400];

function codeOfTabs() {
  tabs.postMessage(ASK);
  return new Promise((resolve) => {
    tabs.onmessage = ({ data }) => data.code && resolve(data.code);
    setTimeout(resolve, PATIENCE);
  });
}

async function request(path, options = {}) {
  // A proxy that signs people in adds their own token.
  const token = sessionStorage.getItem(TOKEN);
  const headers = { ...(token && { Authorization: `Bearer ${token}` }), ...options.headers };
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("Vary does not answer. Is `vary serve` still running?", 0);
  }
  if (response.ok || response.status === 304) return response;
  const answer = await response.json().catch(() => ({}));
  throw new ApiError(answer.error ?? `Vary answered ${response.status} to ${path}`, response.status);
}

const answers = new Map();

/** The JSON at a path: the same value as long as it has not changed, and as long as Vary does not answer, unless that `isFresh`. */
export async function get(path, isFresh = false) {
  const known = answers.get(path);
  try {
    const response = await request(path, { headers: known?.etag ? { "If-None-Match": known.etag } : {} });
    if (response.status === 304) return known.value;
    const value = await response.json();
    answers.set(path, { etag: response.headers.get("ETag"), value });
    return value;
  } catch (error) {
    if (error.status === 0 && known && !isFresh) return known.value;
    throw error;
  }
}

/** The definitions of a tool: the server's own, and that of each variant. */
export const getTool = ({ server, name }) => get(`/api/tool?${new URLSearchParams({ server, name })}`);

export async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  const response = await request(path, { method: "POST", headers, body: JSON.stringify(body) });
  return response.json();
}

/** The events of a stream: `{event, data}` each, until `signal` ends it; the first is `open`. `EventSource` cannot send a token. */
export async function* events(path, signal) {
  const response = await request(path, { signal });
  yield { event: "open" };
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const event = read(part);
      if (event) yield event;
    }
  }
}

/** One event; nothing for a comment. */
function read(text) {
  const fields = Object.fromEntries(text.split("\n").map((line) => line.split(/: ?(.*)/s, 2)));
  return fields.data ? { event: fields.event, data: JSON.parse(fields.data) } : null;
}
