// The choice of clients that make the same call. The address has it: ids of known clients, and what was pasted.

import { ClientFields, PRESETS, fieldText, readClient } from "./client.js";
import { Component, html } from "./dom.js";
import { Problem } from "./parts.js";
import { replace } from "./route.js";
import { Name, plain } from "./text.js";

/** Vary makes at most as many calls at once. */
export const MOST_CLIENTS = 8;

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

  remove = (at) => {
    const { params } = this.props;
    replace(addressOf(knownIds(params), pastedClients(params).filter((_, other) => other !== at)));
  };

  add = (client) => {
    const { params } = this.props;
    replace(addressOf(knownIds(params), [...pastedClients(params), client]));
  };

  choose = (event) => {
    const client = this.props.seen[Number(event.target.value)];
    event.target.value = "";
    if (client) this.add(seen(client));
  };

  render({ params, variants, seen }) {
    const chosen = chosenClients(params);
    const isFull = chosen.length >= MOST_CLIENTS;
    const choice = (id, name) => {
      const isChosen = chosen.some((it) => it.id === id);
      return html`<label key=${id} class="choice">
        <input type="checkbox" checked=${isChosen} disabled=${isFull && !isChosen} onChange=${() => this.toggle(id)} />
        ${name}
      </label>`;
    };
    return html`
      <fieldset>
        <legend>Clients by name, and clients that negotiate</legend>
        ${Object.entries(PRESETS).map(([id, { name }]) => choice(id, name))}
      </fieldset>
      <fieldset>
        <legend>Any client at the address of a variant</legend>
        ${variants.map((id) => choice(`${VARIANT}${id}`, html`<${Name} value=${id} limit=${40} />`))}
      </fieldset>
      <${Pasted} clients=${pastedClients(params)} remove=${this.remove} />
      ${seen.length > 0 &&
      html`<label class="field"
        >Add a client that was seen
        <select disabled=${isFull} onChange=${this.choose}>
          <option value="">choose one</option>
          ${seen.slice(0, 100).map(({ name, version }, at) => html`<option value=${at}>${plain(`${name} ${version}`, 60)}</option>`)}
        </select>
      </label>`}
      ${!isFull && html`<${Paste} add=${this.add} />`}
      ${isFull && html`<p class="note">Vary makes at most ${MOST_CLIENTS} calls at once. Take one away to add another.</p>`}
    `;
  }
}

function Pasted({ clients, remove }) {
  if (clients.length === 0) return null;
  return html`<ul class="links" aria-label="Other clients">
    ${clients.map(
      ({ name }, at) => html`<li>
        <${Name} value=${name} limit=${60} />${" "}
        <button type="button" class="quiet" aria-label=${`remove ${plain(name)}`} onClick=${() => remove(at)}>remove</button>
      </li>`,
    )}
  </ul>`;
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
