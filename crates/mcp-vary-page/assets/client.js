// Clients: how they are named, who called, the fields to paste what one sends into, and clients to choose from.

import { html } from "./dom.js";
import { Name, plain } from "./text.js";

/** A client with its version, and the person who uses it. */
export function ClientName({ client: { name, version }, person }) {
  const of = person && html` · <${Name} value=${person} limit=${60} />`;
  return html`<${Name} value=${name} limit=${32} />${version && html` <${Name} value=${version} limit=${24} />`}${of}`;
}

export const clientLabel = ({ name, version }, person) => plain([name, version, person && `· ${person}`].filter(Boolean).join(" "), 80);

/** The people of a client in the savings, which have all of them since the start. */
export const peopleOf = ({ savings }, name) => (savings?.clients ?? []).flatMap(({ client, person }) => (client === name && person ? [person] : []));

/** A client that was seen, once for each person who is known of it. What it got last is certain of an only person. */
function withPeople(seen, people) {
  const decided = people.length > 1 && { reason: undefined, last: undefined };
  return people.length === 0 ? [seen] : people.map((principal) => ({ ...seen, ...decided, principal }));
}

/** Who called, most calls first: clients with their people, once each, as they were last. Then those that were seen and made none of the `calls`. */
export function callersOf(calls, status) {
  const keyOf = ({ name, version }, ...person) => JSON.stringify([name, version, ...person]);
  const ofClients = calls.filter(({ client, principal }) => client?.name && principal !== OPERATOR);
  const byCaller = Map.groupBy(ofClients, ({ client, principal }) => keyOf(client, principal));
  const callers = [...byCaller.values()].map((all) => ({ ...all[0], calls: all.length })).sort((a, b) => b.calls - a.calls);
  const known = new Set(callers.map(({ client }) => keyOf(client)));
  // A client is there once for each variant that it got.
  const others = new Map((status.clients ?? []).toSorted((a, b) => a.last - b.last).map((it) => [keyOf(it.client ?? {}), it]));
  const silent = [...others.values()].filter(({ client }) => client?.name && !known.has(keyOf(client))).reverse();
  const all = silent.flatMap((it) => withPeople(it, peopleOf(status, it.client.name)));
  return [...callers, ...all.map(({ rule, last, ...it }) => ({ ...it, variantRule: rule, at: last, calls: 0 }))];
}

/** Who makes the calls of this page. */
export const OPERATOR = "operator's page";

/** The fields: their labels, what to paste, and how their text is read. */
export const FIELDS = {
  initialize: ["initialize: its params, or the whole request", '{"clientInfo": {"name": "claude-code"}}', JSON.parse],
  meta: ["_meta of a request", '{"io.modelcontextprotocol/server-variant": "compact"}', JSON.parse],
  headers: ["headers, one a line", "MCP-Server-Variant: compact", readHeaders],
  claims: ["claims of its token", '{"sub": "ada", "groups": ["ops"]}', JSON.parse],
  path: ["address that it uses", "such as /mcp/v/compact", String],
  key: ["name of its API key", "such as ci", String],
};

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

/** Where a client names a variant, so that the fields can have it as well. */
const NAMED_IN = {
  selector: (id) => ({ meta: JSON.stringify({ "io.modelcontextprotocol/server-variant": id }) }),
  address: (id) => ({ path: `/mcp/v/${id}` }),
  header: (id) => ({ headers: `MCP-Server-Variant: ${id}` }),
};

/** Whether a client has a variant since it named that, or an experiment assigned it. */
export const isNamed = (reason) => reason === "experiment" || Object.hasOwn(NAMED_IN, reason);

/** The texts of the fields for a client that Vary has seen, with where it named its variant. */
export const fieldsOf = ({ name, version }, { variant, reason }) => ({
  initialize: JSON.stringify({ clientInfo: { name, version } }),
  ...(variant && NAMED_IN[reason]?.(variant)),
});

/** What Vary is asked of a caller. Which arm of an experiment a session gets is only known of those that were seen. */
export function questionOf({ client, principal, ...seen }) {
  const reason = seen.reason === "experiment" ? "address" : seen.reason;
  const fields = { ...fieldsOf(client, { ...seen, reason }), key: principal };
  return readClient((field) => fields[field]);
}

export function clientTexts({ name, headers, ...client }) {
  const texts = Object.entries(client).map(([field, value]) => [field, typeof value === "object" ? JSON.stringify(value) : value]);
  return { ...Object.fromEntries(texts), headers: Object.entries(headers ?? {}).map((pair) => pair.join(": ")).join("\n") };
}

/** The text of a field of a form, without credentials. */
export const fieldText = (form, field) => form.elements[field].value.replace(SECRET, "").trim();

/** All fields, with the texts that they begin with. A `value` would replace what somebody types with each reading of the status. */
export function ClientFields({ text = () => "" }) {
  const field = ([name, [label, example]]) => {
    const common = { name, defaultValue: text(name) ?? "", placeholder: example, spellcheck: false, autocomplete: "off" };
    const input = ["path", "key"].includes(name) ? html`<input ...${common} />` : html`<textarea rows="3" ...${common}></textarea>`;
    return html`<label key=${name} class="field">${label} ${input}</label>`;
  };
  return html`<div class="fields">${Object.entries(FIELDS).map(field)}</div>`;
}

const sends = (name, ...features) => ({
  initialize: {
    clientInfo: { name, version: "1" },
    ...(features.length > 0 && { capabilities: { extensions: { "io.modelcontextprotocol/content-negotiation": { version: "1.0", features } } } }),
  },
});

/** Clients that everybody knows, and clients that negotiate, by their ids in the address. */
export const PRESETS = {
  "claude-code": { name: "Claude Code", ...sends("claude-code") },
  cursor: { name: "Cursor", ...sends("cursor-vscode") },
  "claude-ai": { name: "Claude Desktop", ...sends("claude-ai") },
  codex: { name: "Codex", ...sends("codex-mcp-client") },
  "vs-code": { name: "VS Code", ...sends("Visual-Studio-Code") },
  json: { name: "agent, format=json", ...sends("agent", "agent", "format=json") },
  markdown: { name: "human, format=markdown", ...sends("human", "human", "format=markdown") },
  any: { name: "any other client", ...sends("any") },
};
