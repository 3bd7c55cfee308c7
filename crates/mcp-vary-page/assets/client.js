// What a client sends: the fields to paste it into, and clients to choose from.

import { html } from "./dom.js";

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
