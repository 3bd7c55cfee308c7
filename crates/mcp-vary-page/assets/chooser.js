// The choice of clients that make the same call. The address has it: ids of known clients, and what was pasted.

import { ClientFields, ClientName, PRESETS, clientLabel, fieldText, isNamed, questionOf, readClient } from "./client.js";
import { Component, html } from "./dom.js";
import { CheckBox, Problem } from "./parts.js";
import { replace } from "./route.js";
import { FirstTen, Name, plain } from "./text.js";

/** Vary makes at most as many calls at once. */
const MOST_CLIENTS = 8;

/** What is chosen first where no client was seen, and how many of those that were. */
const FIRST = ["claude-code", "json", "markdown"];

/** The value of the address for no client at all. */
const NONE = "-";

/** Before the id of a variant, which a client gets that uses its address. */
const VARIANT = "v:";

/** Before each part of a client that was seen: its name, its version, the name of its person's key, and where it named which variant. */
const SEEN = "*";

/** The clients of the address, as `POST /api/call` takes them. One person can be chosen for all. */
export function chosenClients(params) {
  const all = [...knownIds(params).map(knownClient), ...pastedClients(params)].filter(Boolean);
  return all.slice(0, MOST_CLIENTS).map((it) => withPerson(it, params.get("key") || it.key));
}

/** A client of a person, if there is one, who is in its name. */
const withPerson = (client, key) => (key ? { ...client, name: `${client.name} · ${plain(key, 60)}`, key } : client);

function knownIds(params) {
  const ids = params.get("clients") ?? "";
  return ids.split(",").filter((id) => id && id !== NONE).map(decoded).slice(0, MOST_CLIENTS);
}

/** Unlike `decodeURIComponent`, this fails for no text that an address can have. */
const decoded = (text) => new URLSearchParams(`=${text}`).get("") ?? "";

function knownClient(id) {
  if (Object.hasOwn(PRESETS, id)) return PRESETS[id];
  if (id.startsWith(SEEN)) {
    const { client, key, ...seen } = readSeen(id);
    return { name: clientLabel(client), ...questionOf({ client, principal: key, ...seen }) };
  }
  if (!id.startsWith(VARIANT)) return null;
  const variant = id.slice(VARIANT.length);
  return { ...PRESETS.any, name: `at the address of ${variant}`, path: `/mcp/v/${variant}` };
}

/** Pasted clients. An address that somebody sent can have anything there. */
function pastedClients(params) {
  try {
    const all = JSON.parse(params.get("own") ?? "[]");
    return all.filter((it) => typeof it?.name === "string");
  } catch {
    return [];
  }
}

/** The parameters of the address for these clients. */
function addressOf(ids, pasted) {
  const clients = ids.map(encodeURIComponent).join(",");
  return { clients: clients || NONE, own: pasted.length > 0 ? JSON.stringify(pasted) : "" };
}

/** The parameters of the address for the client of a call, and the name of its person's key. */
export const addressOfSeen = (call, key) => addressOf([seenId(call, key)], []);

function seenId({ client: { name, version }, reason, variant }, key) {
  const named = isNamed(reason) ? [reason, variant] : [];
  return [name, version, key, ...named].map((it) => `${SEEN}${encodeURIComponent(it ?? "").replaceAll(SEEN, "%2A")}`).join("");
}

function readSeen(id) {
  const [name, version, key, reason, variant] = id.slice(1).split(SEEN).map(decoded);
  return { client: { name, ...(version && { version }) }, key, reason, variant };
}

/** The ids of callers, each with the person if that is the name of a key: the claims of a token are not known here. */
export const idsOf = (callers, keys) => [...new Set(callers.map((it) => seenId(it, keys.includes(it.principal) ? it.principal : "")))];

/** The parameters of the address for the first choice: the callers with most calls, each name once. */
export function addressOfFirst(ids) {
  const names = ids.map((id) => readSeen(id).client.name);
  const first = ids.filter((_, at) => names.indexOf(names[at]) === at).slice(0, FIRST.length);
  return addressOf(first.length > 0 ? first : FIRST, []);
}

/** The choice: known clients, the address of each variant, clients that were seen, and a field to paste others. */
export class Chooser extends Component {
  toggle = (id) => {
    const ids = knownIds(this.props.params);
    const next = ids.includes(id) ? ids.filter((it) => it !== id) : [...ids, id];
    replace(addressOf(next, pastedClients(this.props.params)));
  };

  /** Chooses a client that was pasted, or forgets it. */
  set = (client, isChosen) => {
    const { params } = this.props;
    const others = pastedClients(params).filter((it) => JSON.stringify(it) !== JSON.stringify(client));
    replace(addressOf(knownIds(params), isChosen ? [...others, client] : others));
  };

  render({ params, variants, seen }) {
    const isFull = chosenClients(params).length >= MOST_CLIENTS;
    const box = (key, name, isChosen, toggle) =>
      html`<${CheckBox} key=${key} checked=${isChosen} disabled=${isFull && !isChosen} onChange=${toggle}>${name}<//>`;
    const isChosen = (id) => knownIds(params).includes(id);
    const choice = (id, name) => box(id, name, isChosen(id), () => this.toggle(id));
    const pasted = pastedClients(params);
    const ids = [...new Set([...seen, ...knownIds(params).filter((id) => id.startsWith(SEEN))])];
    return html`${ids.length + pasted.length > 0 && html`<fieldset>
        <legend>Clients that were seen, or pasted</legend>
        <${FirstTen} all=${ids} isChosen=${isChosen} show=${(ids) => ids.map((id) => choice(id, html`<${ClientName} client=${readSeen(id).client} person=${readSeen(id).key} />`))} />
        ${pasted.map((it) => box(JSON.stringify(it), html`<${ClientName} client=${it} person=${it.key} />`, true, () => this.set(it, false)))}
      </fieldset>`}
      <fieldset>
        <legend>Clients by name, and clients that negotiate</legend>
        ${Object.entries(PRESETS).map(([id, { name }]) => choice(id, name))}</fieldset>
      <fieldset>
        <legend>Any client at the address of a variant</legend>
        ${variants.map((id) => choice(`${VARIANT}${id}`, html`<${Name} value=${id} limit=${40} />`))}
      </fieldset>
      ${!isFull && html`<${Paste} add=${(client) => this.set(client, true)} />`}
      ${isFull && html`<p class="note">Vary makes at most ${MOST_CLIENTS} calls at once. Take one away to add another.</p>`}`;
  }
}

/** The fields of the view “Who gets what”, for one more client. */
class Paste extends Component {
  submit = (event) => {
    event.preventDefault();
    const form = event.target;
    try {
      const client = readClient((field) => fieldText(form, field));
      if (!client) throw new Error("Fill in one of the fields.");
      this.props.add({ name: form.elements.name.value.trim() || "another client", ...client });
      this.setState({ error: null });
      form.reset();
    } catch (error) {
      this.setState({ error });
    }
  };

  render(_, { error }) {
    return html`<details class="question">
      <summary>Paste what another client sends</summary>
      <form onSubmit=${this.submit}>
        <label class="field">its name, for this page <input name="name" autocomplete="off" spellcheck=${false} /></label>
        <${ClientFields} />
        ${error && html`<${Problem} what="This cannot be a client." error=${error} />`}
        <p class="note"><button>Add the client</button> The address of this view will have it, without headers with credentials.</p>
      </form></details>`;
  }
}
