// A variant that Vary proposes from the calls of a client.

import { get } from "./api.js";
import { Component, html } from "./dom.js";
import { Choice, Problem } from "./parts.js";
import { plain } from "./text.js";

/** The name of the chosen client: the first one until somebody chooses. It stays while other clients come, and over other views. */
let chosen = null;

/** `clients`: the recent ones. `suggested`: what to do with a proposal for one of them. */
export class Suggest extends Component {
  submit = async (event) => {
    event.preventDefault();
    const name = event.target.elements.client.value;
    const { client, variant } = this.props.clients.find((it) => it.client.name === name);
    try {
      await this.props.suggested(await get(`/api/suggest?${new URLSearchParams({ client: name })}`), { ...client, variant });
      this.setState({ error: null });
    } catch (error) {
      this.setState({ error });
      this.props.failed(error);
    }
  };

  render({ clients = [] }, { error }) {
    const called = clients.filter((it) => it.calls > 0 && it.client.name).map((it) => it.client.name);
    const all = [...new Set(called)].sort((a, b) => a.localeCompare(b));
    if (all.length === 0) return null;
    if (!all.includes(chosen)) chosen = all[0];
    return html`<form class="choices" onSubmit=${this.submit}>
        <${Choice} label="Suggest from what a client called" name="client" value=${chosen} options=${all.map((it) => [it, plain(it, 40)])}
          onChange=${(name) => (chosen = name)} />
        <button>Suggest a variant</button>
      </form>
      ${error && html`<${Problem} what="Nothing is suggested." error=${error} />`}`;
  }
}
