// A rule of the configuration, with its place and what it says in the file. Many have no name, only a position such as `access[0]`.

import { get } from "./api.js";
import { Component, html } from "./dom.js";
import { LongText, Name, plain } from "./text.js";

/** The rules of the file as it was read last, until they are too old. */
let latest;
/** Milliseconds until the file is read again. */
const LIFETIME = 10_000;

function rules() {
  if (!latest || performance.now() - latest.at > LIFETIME) latest = { at: performance.now(), rules: get("/api/rules") };
  return latest.rules;
}

/** The file is another: what was read of it is old. */
export const forget = () => (latest = null);

/** Where a rule is, as editors open it, and unless it `isShort` what it says; nothing for what is not a rule of the file. */
export class RuleText extends Component {
  componentDidMount() {
    const show = (state) => this.setState({ error: null, ...state });
    this.read = rules();
    this.read.then(({ rules }) => show({ rule: rules.find((it) => it.rule === this.props.name) }), (error) => show({ error }));
  }

  componentDidUpdate = () => rules() !== this.read && this.componentDidMount();

  render({ isShort }, { rule, error }) {
    if (error) return html` <span class="faint">(its text cannot be shown: ${error.message})</span>`;
    if (!rule) return null;
    const [path, file] = [`${rule.file}:${rule.line}`, rule.file.split(/[/\\]/).at(-1)];
    return html`${!isShort && html` <code class="rule"><${LongText} value=${rule.text} limit=${200} /></code>`}${" "}
      (<code title=${plain(path, 200)}><${Name} value=${`${file}:${rule.line}`} /></code>)`;
  }
}

export const Rule = ({ name }) => html`<code><${Name} value=${name} /></code><${RuleText} key=${name} name=${name} />`;
