// Clients: how they are named, who called, the fields to paste what one sends into, and clients to choose from.

import { html } from "./dom.js";
import { Name, plain } from "./text.js";

/** A client with its version, and the person who uses it. */
export function ClientName({ client: { name, version }, person }) {
  return html`<${Name} value=${name} limit=${60} />${version && html` <${Name} value=${version} limit=${24} />`}${person && html` · <${Name} value=${person} limit=${60} />`}`;
}

/** The same as a text without elements. */
export const clientLabel = ({ name, version }, person) => plain([name, version, person && `· ${person}`].filter(Boolean).join(" "), 80);

/** Who called, most calls first: clients with their people. Then the clients that were seen, and made none of the `calls`, which are the latest first. */
export function callersOf(calls, seen) {
  const callers = new Map();
  const keyOf = ({ name, version }, ...person) => JSON.stringify([name, version, ...person]);
  for (const { client, principal, variant, reason, variantRule, at } of calls.filter((it) => it.client?.name)) {
    const key = keyOf(client, principal);
    const caller = callers.get(key) ?? { client, principal, variant, reason, variantRule, at, calls: 0 };
    callers.set(key, { ...caller, calls: caller.calls + 1 });
  }
  const all = [...callers.values()].sort((a, b) => b.calls - a.calls || b.at - a.at);
  const known = new Set(all.map(({ client }) => keyOf(client)));
  const others = seen.filter(({ client }) => client?.name && !known.has(keyOf(client)));
  return [...all, ...others.map(({ client, variant, reason, rule, last }) => ({ client, variant, reason, variantRule: rule, at: last, calls: 0 }))];
}

/** The fields: their labels, what to paste, and how their text is read. */
export const FIELDS = {
  initialize: ["initialize: its params, or the whole request", '{"clientInfo": {"name": "claude-code"}}', JSON.parse],
  meta: ["_meta of a request", '{"io.modelcontextprotocol/server-variant": "compact"}', JSON.parse],
  headers: ["headers, one a line", "MCP-Server-Variant: compact", readHeaders],
  claims: ["claims of its token", '{"sub": "ada", "groups": ["ops"]}', JSON.parse],
  path: ["address that it uses", "such as /mcp/v/compact", String],
  key: ["name of its API key", "such as ci", String],
};

/** Fields of one line. */
const SHORT = ["path", "key"];

/** Headers with credentials: neither the address of the view nor a request of it should have them. */
const SECRET = /^\s*(authorization|cookie|proxy-authorization|x-api-key)\s*:.*$/gim;

function readHeaders(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  const pairs = lines.map((line) => {
    const at = line.indexOf(":");
    if (at < 1) throw new Error(`“${line.trim().slice(0, 40)}” is not \`Name: value\``);
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  });
  return Object.fromEntries(pairs);
}

/** The client that the texts of the fields describe; `null` if all are empty. */
export function readClient(text) {
  const given = Object.keys(FIELDS).filter((field) => text(field)?.trim());
  const values = given.map((field) => {
    try {
      return [field, FIELDS[field][2](text(field))];
    } catch (error) {
      throw new Error(`${FIELDS[field][0]}: ${error.message}`);
    }
  });
  return values.length > 0 ? Object.fromEntries(values) : null;
}

/** The texts of the fields that describe a client. */
export function clientTexts(client) {
  const texts = Object.keys(FIELDS).map((field) => {
    const value = client[field];
    if (field === "headers") return [field, Object.entries(value ?? {}).map((pair) => pair.join(": ")).join("\n")];
    return [field, typeof value === "object" ? JSON.stringify(value) : value];
  });
  return Object.fromEntries(texts);
}

/** The text of a field of a form, without credentials. */
export const fieldText = (form, field) => form.elements[field].value.replace(SECRET, "").trim();

/** All fields, with the texts that they begin with. */
export function ClientFields({ text = () => "" }) {
  return html`<div class="fields">${Object.keys(FIELDS).map((name) => html`<${Field} key=${name} name=${name} value=${text(name) ?? ""} />`)}</div>`;
}

function Field({ name, value }) {
  const [label, example] = FIELDS[name];
  // A `value` would replace what somebody types with each reading of the status.
  const common = { name, defaultValue: value, placeholder: example, spellcheck: false, autocomplete: "off" };
  const input = SHORT.includes(name) ? html`<input ...${common} />` : html`<textarea rows="3" ...${common}></textarea>`;
  return html`<label class="field">${label} ${input}</label>`;
}

const named = (name) => ({ initialize: { clientInfo: { name, version: "1" } } });

const negotiating = (name, ...features) => ({
  initialize: {
    clientInfo: { name, version: "1" },
    capabilities: { extensions: { "io.modelcontextprotocol/content-negotiation": { version: "1.0", features } } },
  },
});

/** Clients that everybody knows, and clients that negotiate, by their ids in the address. */
export const PRESETS = {
  "claude-code": { name: "Claude Code", ...named("claude-code") },
  cursor: { name: "Cursor", ...named("cursor-vscode") },
  "claude-ai": { name: "Claude Desktop", ...named("claude-ai") },
  codex: { name: "Codex", ...named("codex-mcp-client") },
  "vs-code": { name: "VS Code", ...named("Visual-Studio-Code") },
  json: { name: "agent, format=json", ...negotiating("agent", "agent", "format=json") },
  markdown: { name: "human, format=markdown", ...negotiating("human", "human", "format=markdown") },
  any: { name: "any other client", ...named("any") },
};
