// The choice of clients that make the same call. The address has it: ids of known clients, and what was pasted.

import { ClientFields, PRESETS, fieldText, readClient } from "./client.js";
import { Component, html } from "./dom.js";
import { CheckBox, Problem } from "./parts.js";
import { replace } from "./route.js";
import { Name, plain } from "./text.js";

/** Vary makes at most as many calls at once. */
const MOST_CLIENTS = 8;

/** Seen clients that can be chosen; others can be pasted. */
const MOST_SEEN = 24;

/** What is chosen first where no client was seen, and how many of those that were. */
const FIRST = ["claude-code", "json", "markdown"];

/** The value of the address for no client at all. */
const NONE = "-";

/** Before the id of a variant, which a client gets that uses its address. */
const VARIANT = "v:";

/** The clients of the address, as `POST /api/call` takes them, with the `id` or the place `at` of each. */
export function chosenClients(params) {
  const known = knownIds(params).map((id) => ({ id, client: knownClient(id) }));
  const pasted = pastedClients(params).map((client, at) => ({ at, client }));
  return [...known.filter(({ client }) => client), ...pasted].slice(0, MOST_CLIENTS);
}

function knownIds(params) {
  const ids = params.get("clients") ?? "";
  return ids.split(",").filter((id) => id && id !== NONE).map(decoded);
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function knownClient(id) {
  if (Object.hasOwn(PRESETS, id)) return PRESETS[id];
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

/** The parameters of the address for one client that was seen, beside what it would get at the address of each variant. */
export function addressOfSeen(client) {
  return addressOf([], [seen(client)]);
}

const seen = ({ name, version }) => ({ name: plain(name, 60), initialize: { clientInfo: { name, version } } });

/** The parameters of the address for the first choice: the clients that made most calls, each name once. */
export function addressOfFirst(clients) {
  const named = clients.filter(({ client }) => client?.name).sort((a, b) => b.calls - a.calls || b.last - a.last);
  const first = named.filter((it, at) => named.findIndex(({ client }) => client.name === it.client.name) === at);
  return first.length > 0 ? addressOf([], first.slice(0, FIRST.length).map((it) => seen(it.client))) : addressOf(FIRST, []);
}

/** The choice: known clients, the address of each variant, clients that were seen, and a field to paste others. */
export class Chooser extends Component {
  toggle = (id) => {
    const ids = knownIds(this.props.params);
    const next = ids.includes(id) ? ids.filter((it) => it !== id) : [...ids, id];
    replace(addressOf(next, pastedClients(this.props.params)));
  };

  /** Chooses a client that was seen or pasted, or chooses it no more. */
  set = (client, isChosen) => {
    const { params } = this.props;
    const others = pastedClients(params).filter((it) => !isSame(it, client));
    replace(addressOf(knownIds(params), isChosen ? [...others, client] : others));
  };

  render({ params, variants, seen: clients }) {
    const chosen = chosenClients(params);
    const isFull = chosen.length >= MOST_CLIENTS;
    const box = (key, name, isChosen, toggle) =>
      html`<${CheckBox} key=${key} checked=${isChosen} disabled=${isFull && !isChosen} onChange=${toggle}>${name}<//>`;
    const choice = (id, name) => box(id, name, chosen.some((it) => it.id === id), () => this.toggle(id));
    const pasted = pastedClients(params);
    const boxes = clients.slice(0, MOST_SEEN).map(seen).filter((it) => !pasted.some((other) => isSame(it, other)));
    const others = [...pasted, ...boxes].sort((a, b) => a.name.localeCompare(b.name));
    return html`
      ${others.length > 0 &&
      html`<fieldset>
        <legend>Clients that were seen, or pasted</legend>
        ${others.map((it) => box(JSON.stringify(it), nameOf(it), pasted.includes(it), () => this.set(it, !pasted.includes(it))))}
      </fieldset>`}
      <fieldset>
        <legend>Clients by name, and clients that negotiate</legend>
        ${Object.entries(PRESETS).map(([id, { name }]) => choice(id, name))}
      </fieldset>
      <fieldset>
        <legend>Any client at the address of a variant</legend>
        ${variants.map((id) => choice(`${VARIANT}${id}`, html`<${Name} value=${id} limit=${40} />`))}
      </fieldset>
      ${!isFull && html`<${Paste} add=${(client) => this.set(client, true)} />`}
      ${isFull && html`<p class="note">Vary makes at most ${MOST_CLIENTS} calls at once. Take one away to add another.</p>`}
    `;
  }
}

const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** The name of a client that was seen or pasted, and its version. */
function nameOf({ name, initialize }) {
  const version = initialize?.clientInfo?.version;
  return html`<${Name} value=${name} limit=${60} />${version && html` <span class="mark"><${Name} value=${version} limit=${20} /></span>`}`;
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
        <p class="note">
          <button>Add the client</button> The address of this view will have what you paste. Headers with credentials are
          ${" "}left out.
        </p>
      </form>
    </details>`;
  }
}
