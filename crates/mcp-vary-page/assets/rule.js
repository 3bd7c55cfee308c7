// A rule of the configuration, with what it says in the file. Many have no name, only a position such as `access[0]`.

import { get } from "./api.js";
import { Component, html } from "./dom.js";
import { LongText, Name } from "./text.js";

/** The texts of the file as it was read last, by the names of rules, until they are too old. */
let latest;
/** Milliseconds until the file is read again. */
const LIFETIME = 10_000;

function texts() {
  if (!latest || performance.now() - latest.at > LIFETIME) latest = { at: performance.now(), rules: get("/api/rules") };
  return latest.rules;
}

/** What a rule says in the file; nothing for what is not a rule of it. */
export class RuleText extends Component {
  componentDidMount() {
    const show = (text) => this.setState({ text });
    texts().then(({ rules }) => show(rules.find((it) => it.rule === this.props.name)?.text), (error) => this.setState({ error }));
  }

  render(_, { text, error }) {
    if (error) return html` <span class="faint">(its text cannot be shown: ${error.message})</span>`;
    return text && html` <code class="rule"><${LongText} value=${text} limit=${200} /></code>`;
  }
}

export function Rule({ name }) {
  return html`<code><${Name} value=${name} /></code><${RuleText} key=${name} name=${name} />`;
}
