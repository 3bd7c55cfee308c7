// A variant that Vary proposes from the calls of a client.

import { get } from "./api.js";
import { Component, html } from "./dom.js";
import { Problem } from "./parts.js";
import { plain } from "./text.js";

/** `clients`: the recent ones. `suggested`: what to do with a proposal. */
export class Suggest extends Component {
  submit = async (event) => {
    event.preventDefault();
    const client = event.target.elements.client.value;
    try {
      this.props.suggested(await get(`/api/suggest?${new URLSearchParams({ client })}`));
      this.setState({ error: null });
    } catch (error) {
      this.setState({ error });
      this.props.failed(error);
    }
  };

  render({ clients = [] }, { error }) {
    const names = new Set(clients.filter((it) => it.calls > 0 && it.client.name).map((it) => it.client.name));
    if (names.size === 0) return null;
    return html`<form class="buttons" onSubmit=${this.submit}>
        <label class="field">Suggest from what a client called
          <select name="client">${[...names].map((name) => html`<option value=${name}>${plain(name, 40)}</option>`)}</select>
        </label>
        <button>Suggest a variant</button>
      </form>
      ${error && html`<${Problem} what="Nothing is suggested." error=${error} />`}`;
  }
}
