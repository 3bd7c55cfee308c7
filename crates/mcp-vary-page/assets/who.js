// The view of who gets what: what a client sends, the variant that it gets, and why.

import { post } from "./api.js";
import { ClientFields, FIELDS, fieldText, readClient } from "./client.js";
import { Component, html } from "./dom.js";
import { count, plural, timeOfDay } from "./format.js";
import { Grid } from "./grid.js";
import { CheckBox, Choice, Filter, PlainTable, Problem, Table, matcher } from "./parts.js";
import { go, link, linkWith, replace } from "./route.js";
import { Rule, RuleText } from "./rule.js";
import { LongText, Name, plain } from "./text.js";
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

/** Where a client names a variant, so that the fields can have it as well. */
const NAMED_IN = {
  selector: (id) => ({ meta: JSON.stringify({ "io.modelcontextprotocol/server-variant": id }) }),
  address: (id) => ({ path: `/mcp/v/${id}` }),
  header: (id) => ({ headers: `MCP-Server-Variant: ${id}` }),
};

/** The link to the view for a client that Vary has seen, with what a call of it shows: who called, and what was decided. */
export function linkToClient({ name, version }, { principal, variant, reason, variantRule, at } = {}) {
  const recorded = variant && reason && { got: variant, by: reason, rule: variantRule, at, ...NAMED_IN[reason]?.(variant) };
  return link("who", { initialize: JSON.stringify({ clientInfo: { name, version } }), person: principal, ...recorded });
}

/** A client as a link to what it gets, and why. */
export function ClientLink({ client, seen }) {
  const version = client.version && html` <${Name} value=${client.version} limit=${24} />`;
  return html`<a href=${linkToClient(client, seen)}><${Name} value=${client.name} limit=${60} />${version}</a>`;
}

/** The text of a field: a person of a call is the name of a key, if there is such a key. */
const textIn = (params, keys) => (field) => {
  const person = params.get("person");
  return params.get(field) ?? (field === "key" && keys.includes(person) ? person : null);
};

/** All that is asked about, as one text. */
const asked = ({ params, status }) => [!status && params.get("person"), ...Object.keys(FIELDS).map(textIn(params, status?.keys ?? []))].join("\0");

export class Who extends Component {
  componentDidMount() {
    this.ask();
  }

  componentDidUpdate(before) {
    if (asked(before) !== asked(this.props)) this.ask();
  }

  async ask() {
    const { params, status, failed } = this.props;
    // The status says whether a person of a call is the name of a key.
    if (params.get("person") && !status) return;
    const number = (this.asked = (this.asked ?? 0) + 1);
    try {
      const text = textIn(params, status?.keys ?? []);
      const body = readClient(text);
      const answer = body && (await post("/api/explain", body));
      if (number === this.asked) this.setState({ answer: answer && { ...answer, person: text("key") }, error: null });
    } catch (error) {
      if (number === this.asked) this.setState({ answer: null, error });
      failed(error);
    }
  }

  render({ params, status }, { answer, error }) {
    const { clients = [], keys = [] } = status ?? {};
    const text = textIn(params, keys);
    return html`
      <section aria-label="What the client sends">
        <${Choices} ...${{ params, keys, person: text("key") }} />
        <details class="question" open=${!!error}>
          <summary>All that the client sends</summary>
          <${Form} key=${asked({ params, status })} ...${{ params, text }} />
        </details>
      </section>
      ${error && html`<${Problem} what="There is no answer to this." error=${error} />`}
      ${!params.get("initialize") && !error && html`<${Seen} clients=${clients} person=${text("key")} />`}
      ${answer && html`<${Recorded} ...${{ answer, params }} /><${Answer} ...${{ answer, params }} />`}
    `;
  }
}

/** The people who have keys, and the way back to the clients. */
function Choices({ params, keys, person }) {
  const people = [...new Set([...keys, ...(person ? [person] : [])])].sort().slice(0, 200);
  const another = params.get("initialize") && html`<a href=${link("who", { key: person })}>Choose another client</a>`;
  if (people.length === 0) return another;
  const options = [["", "without a key"], ...people.map((key) => [key, plain(key, 60)])];
  return html`<div class="choices">
    <${Choice} label="Person, by API key" value=${person ?? ""} options=${options} onChange=${(key) => go(linkWith({ key, person: null }))} />
    ${another}
  </div>`;
}

function Form({ params, text }) {
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
    <${ClientFields} text=${text} />
    <p class="note">
      <button>Explain</button> Headers with credentials, such as <code>Authorization</code>, are left out: paste the
      ${" "}claims instead.
    </p>
  </form>`;
}

/** Where to begin: what clients got that Vary has seen. */
function Seen({ clients, person }) {
  const rows = clients.filter(({ client }) => client.name).slice(0, 20).map(({ client, variant, reason, rule, last }) => [
    html`<${ClientLink} client=${client} seen=${{ principal: person, variant, reason, variantRule: rule, at: last }} />`,
    variant ? html`<${Name} value=${variant} limit=${40} />, by ${reason}` : "–",
  ]);
  const empty = "Once clients have connected, they are listed here. Until then, open “All that the client sends”, fill in a field and press “Explain”.";
  return html`<${Table} title="Choose a client that was seen" label="Clients that were seen" columns=${["client", "got"]} ...${{ rows, empty }} />`;
}

/** What decides beside the fields, so that an answer can differ from what was recorded. */
const LACKS = {
  pin: "the credential of the client",
  experiment: "the person or the session that the experiment assigned",
  model: "the ranking of the model, which is not asked here",
  ranking: "the hints that the client declared",
};

/** What Vary recorded of a call, before the answer for what the fields have now. */
function Recorded({ answer, params }) {
  const [variant, by, rule, at, caller] = ["got", "by", "rule", "at", "person"].map((name) => params.get(name));
  if (!variant || !by) return null;
  const isSame = answer.variant === variant && answer.reason === by;
  const isOfCaller = !caller || caller === answer.person;
  const lacks = isOfCaller ? (LACKS[by] ?? "something that the client sent") : html`<${Name} value=${caller} limit=${60} />, who called`;
  return html`<div class=${`recorded ${isSame && isOfCaller ? "" : "differs"}`}>
    <p>
      Recorded at ${timeOfDay(Number(at))}: <strong><${Name} value=${variant} /></strong>, by ${by}${rule && html` <code><${Name} value=${rule} /></code>`}
    </p>
    <p class="note">
      ${isSame && isOfCaller && "The answer below, for what the fields have, is the same."}
      ${!isOfCaller && html`The answer below is for what the fields have: they lack ${lacks}.`}
      ${!isSame && isOfCaller && html`The answer below differs: it is for what the fields have, and they lack ${lacks}. Or the configuration has changed since.`}
    </p>
  </div>`;
}

function Answer({ answer, params }) {
  const { person } = answer;
  const { name, version } = answer.client ?? {};
  const client = [name ? html`<${Name} value=${name} />` : "This client", version && html` <${Name} value=${version} />`, person && html` as <${Name} value=${person} />`];
  const isRefused = answer.steps.some(({ step }) => step === "refused");
  const without = isRefused ? "is refused" : "gets the lists as they are: variants are off";
  const variant = html`gets <${Name} value=${answer.variant} />: ${REASONS[answer.reason] ?? answer.reason}`;
  return html`
    <section class="answer" aria-live="polite">
      <h2>${client} ${answer.variant ? variant : without}</h2>
      <ol class="steps">
        ${answer.steps.map(
          ({ step, decided, detail }) => html`<li class=${decided || step === "refused" ? "decided" : ""}>
            <span>${step}</span>
            <span>${sentence(detail)}${ruleIn(detail)}${decided && html` <span class="mark">decides</span>`}</span>
          </li>`,
        )}
      </ol>
      <${Declared} features=${answer.features ?? []} />
      <${Rules} rules=${answer.rules ?? []} />
      <${Ranking} ranking=${answer.ranking ?? []} decided=${["ranking", "model"].includes(answer.reason)} />
    </section>
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

/** Folded where something else decided, or all have the same points. */
function Ranking({ ranking, decided }) {
  if (ranking.length === 0) return null;
  const rows = ranking.map(({ id, points, why }) => [
    html`<${Name} value=${id} />`,
    count(points),
    sentence(why.join("; ") || "–"),
  ]);
  const label = "How its hints rank the variants";
  return html`<details class="question" open=${decided && new Set(ranking.map(({ points }) => points)).size > 1}>
    <summary>${label}</summary>
    <${PlainTable} ...${{ label, rows }} columns=${["variant", "#points", "~why"]} />
  </details>`;
}

/** Each rule by its name and what it says, which has the conditions that `rule` repeats. */
function Rules({ rules }) {
  if (rules.length === 0) return null;
  return html`<div class="note">Access rules that apply to it:
    <ul class="rules">${rules.map(({ rule }) => html`<li key=${rule}><${Rule} name=${rule.split(" (")[0]} /></li>`)}</ul>
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
      <${CheckBox} checked=${all} disabled=${hidden.length === 0} onChange=${toggle}>also those that it gets<//>
    </div>
    ${rows.length === 0
      ? html`<p class="empty">${all ? NO_TOOL : NO_HIDDEN_TOOL}</p>`
      : html`<${Grid} label="Tools, and what hides them" columns=${COLUMNS} rows=${rows} cell=${(row, column) => toolCell(row, column, answer.variant)} />`}
  </section>`;
}

const COLUMNS = [
  { id: "name", head: "tool", kind: "c-name" },
  { id: "shown", head: "it gets", kind: "c-wide" },
  { id: "server", head: "server", kind: "c-short" },
];

function toolCell(row, column, variant) {
  if (column.id === "name") return html`<${ToolLink} tool=${row} variant=${variant} />`;
  if (column.id === "server" || row.shown !== null) return html`<${Name} value=${row[column.id]} />`;
  const causes = row.hidden.map((it, at) => html`${at > 0 && "; "}<${Cause} cause=${it} isShort />`);
  return html`<span class="causes-of"><span class="hidden-tool">hidden:</span> ${causes}</span>`;
}

/** What hides a tool: a rule or a variant by its name, and what of it does. The name is not repeated. */
function Cause({ cause: { by, rule, detail }, isShort }) {
  const denies = `the rule \`${rule}\` denies it: `;
  const why = detail.startsWith(denies) ? detail.replace(denies, " denies ") : `${rule ? ": " : ""}${detail}`;
  const kind = by === "access" ? "access rule " : `${by} `;
  return html`${rule && html`${isShort ? "" : kind}<code><${Name} value=${rule} /></code>`}<${Name} value=${why} limit=${300} isSentence />`;
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
        (all) => html`<li><strong>${plural(all.length, "tool")}</strong> hidden: <${Cause} cause=${all[0]} /></li>`,
      )}
    </ul>
    ${severalTimes > 0 &&
    html`<p class="note">
      ${plural(severalTimes, "tool")} hidden by more than one of these: to list such a tool, change each that is named beside it.
    </p>`}`;
}
