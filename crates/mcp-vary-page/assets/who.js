// The view of who gets what: what a client sends, the variant that it gets, and why.

import { post } from "./api.js";
import { ClientFields, FIELDS, fieldText, readClient } from "./client.js";
import { Component, html } from "./dom.js";
import { count, plural } from "./format.js";
import { Grid } from "./grid.js";
import { Filter, Problem, Table, matcher } from "./parts.js";
import { go, link, replace } from "./route.js";
import { RuleText } from "./rule.js";
import { LongText, Name } from "./text.js";
import { ToolLink } from "./variants.js";

const REASONS = {
  selector: "the request names it in _meta",
  address: "the address names it",
  header: "the header MCP-Server-Variant names it",
  pin: "its credential or an access rule leaves no other",
  rule: "a rule of the configuration gives it this one",
  experiment: "it is the client’s arm of an experiment",
  model: "a model ranked it first",
  ranking: "its hints rank it first",
};

/** The link to the view for a client that Vary has seen. */
export function linkToClient({ name, version }) {
  return link("who", { initialize: JSON.stringify({ clientInfo: { name, version } }) });
}

/** A client as a link to what it gets, and why. */
export function ClientLink({ client }) {
  const version = client.version && html` <${Name} value=${client.version} limit=${24} />`;
  return html`<a href=${linkToClient(client)}><${Name} value=${client.name} limit=${60} />${version}</a>`;
}

/** What the address has of the fields, as one text. */
const asked = (params) => Object.keys(FIELDS).map((field) => params.get(field) ?? "").join("\0");

export class Who extends Component {
  componentDidMount() {
    this.ask();
  }

  componentDidUpdate(before) {
    if (asked(before.params) !== asked(this.props.params)) this.ask();
  }

  async ask() {
    const { params, failed } = this.props;
    const number = (this.asked = (this.asked ?? 0) + 1);
    try {
      const body = readClient((field) => params.get(field));
      const answer = body && (await post("/api/explain", body));
      if (number === this.asked) this.setState({ answer, error: null });
    } catch (error) {
      this.setState({ answer: null, error });
      failed(error);
    }
  }

  render({ params, status }, { answer, error }) {
    return html`
      <details class="question" open=${!answer}>
        <summary>What the client sends</summary>
        <${Form} key=${asked(params)} params=${params} />
      </details>
      ${error && html`<${Problem} what="There is no answer to this." error=${error} />`}
      ${!answer && !error && html`<${Examples} clients=${status?.clients ?? []} />`}
      ${answer && html`<${Answer} ...${{ answer, params }} />`}
    `;
  }
}

function Form({ params }) {
  const submit = (event) => {
    event.preventDefault();
    const values = Object.keys(FIELDS).map((field) => [field, fieldText(event.target, field)]);
    go(link("who", { ...Object.fromEntries(values), q: params.get("q"), all: params.get("all") }));
  };
  return html`<form class="who" onSubmit=${submit}>
    <p class="note">
      Paste what the client sends; each field is optional. The answer is what a client that sends this gets now. Nothing
      ${" "}is sent to a server.
    </p>
    <${ClientFields} text=${(field) => params.get(field)} />
    <p class="note">
      <button>Explain</button> Headers with credentials, such as <code>Authorization</code>, are left out: paste the
      ${" "}claims instead.
    </p>
  </form>`;
}

const NO_CLIENTS = html`<p class="empty">
  Fill in a field and press “Explain”. Once clients have connected, they are listed here to choose from.
</p>`;

/** Where to begin: clients that Vary has seen. */
function Examples({ clients }) {
  const names = new Map(clients.filter(({ client }) => client.name).map(({ client }) => [JSON.stringify(client), client]));
  if (names.size === 0) return NO_CLIENTS;
  return html`<section>
    <h2>Or choose a client that was seen</h2>
    <ul class="links">
      ${[...names.values()].slice(0, 20).map((client) => html`<li><${ClientLink} client=${client} /></li>`)}
    </ul>
  </section>`;
}

function Answer({ answer, params }) {
  const { name, version } = answer.client ?? {};
  const client = [name ? html`<${Name} value=${name} />` : "This client", version && html` <${Name} value=${version} />`];
  const isRefused = answer.steps.some(({ step }) => step === "refused");
  const without = isRefused ? "is refused" : "gets the lists as they are: variants are off";
  const variant = html`gets <${Name} value=${answer.variant} />: ${REASONS[answer.reason] ?? answer.reason}`;
  return html`
    <section class="answer" aria-live="polite">
      <h2>${client} ${answer.variant ? variant : without}</h2>
      <ol class="steps">
        ${answer.steps.map(
          ({ step, decided, detail }) => html`<li class=${decided || step === "refused" ? "decided" : ""}>
            <span class="step">${step}</span>
            <span>${sentence(detail)}${ruleIn(detail)}${decided && html` <span class="mark">decides</span>`}</span>
          </li>`,
        )}
      </ol>
      <${Declared} features=${answer.features ?? []} />
      <${Rules} rules=${answer.rules ?? []} />
    </section>
    <${Ranking} ranking=${answer.ranking ?? []} />
    <${Tools} ...${{ answer, params }} />
  `;
}

/** What a rule says that a sentence names by its position. */
function ruleIn(detail) {
  const [, rule] = detail.match(/^(?:the rule )?`((?:access|clients)\[\d+\])`/) ?? [];
  return rule && html`<${RuleText} key=${rule} name=${rule} />`;
}

/** A sentence of Vary. */
const sentence = (text) => html`<${LongText} value=${text} limit=${300} isSentence />`;

/** Names with commas between them. */
const named = (names) => names.map((name, at) => html`${at > 0 && ", "}<${Name} value=${name} />`);

function Declared({ features }) {
  if (features.length === 0) return html`<p class="note">It declares no features, so results reach it as servers send them.</p>`;
  return html`<p class="note">Features that it declares: ${named(features)}</p>`;
}

function Ranking({ ranking }) {
  if (ranking.length === 0) return null;
  const rows = ranking.map(({ id, points, why }) => [
    html`<${Name} value=${id} />`,
    count(points),
    sentence(why.join("; ") || "–"),
  ]);
  return html`<${Table} title="How its hints rank the variants" columns=${["variant", "#points", "~why"]} rows=${rows} />`;
}

function Rules({ rules }) {
  if (rules.length === 0) return null;
  return html`<div class="note">Access rules that apply to it:
    <ul class="rules">${rules.map(({ rule }) => html`<li key=${rule}><code><${Name} value=${rule} /></code><${RuleText} name=${rule.split(" (")[0]} /></li>`)}</ul>
  </div>`;
}

const NO_TOOL = "No tool matches. Clear the filter.";
const NO_HIDDEN_TOOL = "No hidden tool matches. Clear the filter, or tick “also those that it gets”.";

/** The tools that are hidden, by what hides them, then each tool. */
function Tools({ answer, params }) {
  const hidden = answer.tools.filter((it) => it.hidden.length > 0);
  const all = params.get("all") === "yes" || hidden.length === 0;
  const matches = matcher(params.get("q") ?? "");
  const rows = (all ? answer.tools : hidden).filter((it) => matches(it.name) || matches(it.shown ?? ""));
  const toggle = (event) => replace({ all: event.target.checked ? "yes" : "" });
  return html`<section aria-labelledby="tools">
    <h2 id="tools">${plural(answer.tools.length - hidden.length, "tool")} listed, ${count(hidden.length)} hidden</h2>
    <${Causes} hidden=${hidden.filter((it) => matches(it.name))} />
    <div class="choices">
      <${Filter} label="Filter tools" hint="delete_" value=${params.get("q") ?? ""} onChange=${(q) => replace({ q })} />
      <label class="choice"
        ><input type="checkbox" checked=${all} disabled=${hidden.length === 0} onChange=${toggle} /> also those that it
        ${" "}gets
      </label>
    </div>
    ${rows.length === 0
      ? html`<p class="empty">${all ? NO_TOOL : NO_HIDDEN_TOOL}</p>`
      : html`<${Grid} label="Tools, and what hides them" columns=${COLUMNS} rows=${rows} cell=${(row, column) => toolCell(row, column, answer.variant)} />`}
  </section>`;
}

const COLUMNS = [
  { id: "name", head: "tool", kind: "c-name" },
  { id: "server", head: "server", kind: "c-short" },
  { id: "shown", head: "it gets", kind: "c-client" },
  { id: "rule", head: "hidden by", kind: "c-client" },
  { id: "detail", head: "because", kind: "c-wide" },
];

function toolCell(row, column, variant) {
  if (column.id === "name") return html`<${ToolLink} tool=${row} variant=${variant} />`;
  const causes = (text) => row.hidden.map(text).join("; ");
  if (column.id === "rule") return html`<${Name} value=${causes((it) => it.rule ?? it.by)} />`;
  if (column.id === "detail") return html`<${Name} value=${causes((it) => it.detail)} limit=${200} isSentence />`;
  if (column.id === "shown" && row.shown === null) return html`<span class="hidden-tool">hidden</span>`;
  return html`<${Name} value=${row[column.id]} />`;
}

/** What hides a tool: a rule, a variant, or all access rules together. */
function cause({ by, rule }) {
  if (!rule) return by === "access" ? "the access rules" : by;
  return html`the ${by === "access" ? "access rule" : by} <code><${Name} value=${rule} /></code>`;
}

/** What hides tools, each with how many. */
function Causes({ hidden }) {
  const causes = new Map();
  for (const one of hidden.flatMap((tool) => tool.hidden)) {
    const key = JSON.stringify([one.by, one.rule, one.detail]);
    causes.set(key, [...(causes.get(key) ?? []), one]);
  }
  const sorted = [...causes.values()].sort((a, b) => b.length - a.length).slice(0, 8);
  if (sorted.length === 0) return null;
  const severalTimes = hidden.filter((tool) => tool.hidden.length > 1).length;
  return html`<ul class="causes">
      ${sorted.map(
        (all) => html`<li><strong>${plural(all.length, "tool")}</strong> hidden by ${cause(all[0])}: ${sentence(all[0].detail)}</li>`,
      )}
    </ul>
    ${severalTimes > 0 &&
    html`<p class="note">
      ${plural(severalTimes, "tool")} hidden by more than one of these: to list such a tool, change each that “hidden by” names.
    </p>`}`;
}
