// The view of who gets what: what a client sends, the variant that it gets, and why.

import { get, post } from "./api.js";
import { ClientFields, ClientName, FIELDS, callersOf, clientLabel, fieldText, readClient } from "./client.js";
import { Component, html } from "./dom.js";
import { count, minuteOfDay, plural, timeOfDay } from "./format.js";
import { Grid } from "./grid.js";
import { FirstTen } from "./more.js";
import { CallCount, Choice, Filter, PlainTable, Problem, matcher } from "./parts.js";
import { go, link, linkWith, replace } from "./route.js";
import { Rule, RuleText } from "./rule.js";
import { LongText, Name, plain } from "./text.js";
import { ToolLink, linkToTool, toolKey } from "./tool.js";

/** What decides, after the variant. */
export const REASONS = {
  selector: "named by the request in _meta",
  address: "named by the address",
  header: "named by the header MCP-Server-Variant",
  pin: "the only one that a credential or an access rule leaves",
  rule: "given by a rule of the configuration",
  experiment: "an arm of an experiment",
  model: "ranked first by a model",
  ranking: "ranked first by its hints",
};

/** Where a client names a variant, so that the fields can have it as well. */
const NAMED_IN = {
  selector: (id) => ({ meta: JSON.stringify({ "io.modelcontextprotocol/server-variant": id }) }),
  address: (id) => ({ path: `/mcp/v/${id}` }),
  header: (id) => ({ headers: `MCP-Server-Variant: ${id}` }),
};

/** The texts of the fields for a client that Vary has seen, with where it named its variant. */
const fieldsOf = ({ name, version }, { variant, reason }) => ({
  initialize: JSON.stringify({ clientInfo: { name, version } }),
  ...(variant && NAMED_IN[reason]?.(variant)),
});

/** The link to the view for a client that Vary has seen, with what a call of it shows: who called, and what was decided. */
export function linkToClient(client, seen = {}) {
  const { principal, variant, reason, variantRule, at, tool } = seen;
  const recorded = variant && reason && { got: variant, by: reason, rule: variantRule, at };
  return link("who", { ...fieldsOf(client, seen), person: principal, q: tool, ...recorded });
}

/** A client, and the person who uses it, as a link to what it gets, and why. */
export const ClientLink = ({ client, person, seen }) => html`<a href=${linkToClient(client, seen)}><${ClientName} ...${{ client, person }} /></a>`;

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
    if (this.props.status) this.loadCallers();
  }

  componentDidUpdate(before) {
    if (asked(before) !== asked(this.props)) this.ask();
    if (before.status?.clients.length !== this.props.status?.clients.length) this.loadCallers();
  }

  /** Who called, and then what each gets now. */
  async loadCallers() {
    const { clients = [], keys = [] } = this.props.status ?? {};
    try {
      const callers = callersOf((await get("/api/last-calls")).calls, clients);
      this.setState({ callers });
      const answers = await Promise.all(callers.slice(0, MOST_ASKED).map((it) => answerTo(it, keys)));
      this.setState({ callers: callers.map((it, at) => ({ ...it, now: answers[at] })) });
    } catch (error) {
      this.props.failed(error);
    }
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

  render({ params, status }, { answer, error, callers }) {
    const keys = status?.keys ?? [];
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
      ${!params.get("initialize") && !error && callers && html`<${Seen} callers=${callers} person=${text("key")} />`}
      ${answer && html`<${Recorded} ...${{ answer, params }} />`}
      ${answer && (answer.lacksCredential ? refusal(keys) : html`<${Answer} ...${{ answer, params }} />`)}
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
    <p class="note">Paste what the client sends, as far as you know it. The answer is what it gets now. Servers receive nothing.</p>
    <${ClientFields} text=${text} />
    <p class="note"><button>Explain</button> Headers with credentials, such as <code>Authorization</code>, are left out: paste the claims.</p>
  </form>`;
}

/** In place of an answer that no client gets. */
const refusal = ({ length }) => html`<p class="problem">
  ${length > 0 ? "Without a key Vary refuses this client; choose a person." : "Without a token Vary refuses this client; paste its claims."}
</p>`;

/** The callers of which Vary is asked what they get now. */
const MOST_ASKED = 20;

/** Where to begin: who called, and what they got. */
function Seen({ callers, person }) {
  const own = callers.filter(({ principal }) => person && principal === person);
  const rows = (own.length > 0 ? own : callers).map(({ client, principal, calls, now, ...seen }) => [
    html`<${ClientLink} client=${client} person=${principal} seen=${{ ...seen, principal: principal ?? person }} />`,
    html`<${Got} ...${{ now, seen }} />`,
    count(now?.listed),
    now ? whyOf(now) : (REASONS[seen.reason] ?? "–"),
    html`<${CallCount} number=${calls} filters=${{ client: client.name, person: principal }} what=${`calls of ${clientLabel(client, principal)}`} />`,
  ]);
  const columns = ["client", "variant", "#tools", "~why", "#calls"];
  const empty = "Once clients have connected, they are listed here. Until then, open “All that the client sends”, fill in a field and press “Explain”.";
  return html`<section>
    <h2>Choose a client that was seen</h2>
    ${rows.length === 0 && html`<p class="empty">${empty}</p>`}
    <${FirstTen} all=${rows} show=${(rows) => rows.length > 0 && html`<${PlainTable} label="Clients that were seen" ...${{ columns, rows }} />`} />
  </section>`;
}

/** The variant of a caller now, and with which it was seen if that is another one. */
function Got({ now, seen: { variant, at } }) {
  const before = now?.variant && variant && variant !== now.variant;
  const name = (id) => (id ? html`<${Name} value=${id} limit=${40} />` : "–");
  return html`${name(now?.variant ?? variant)}${before && html`<span class="beneath">${name(variant)} at ${minuteOfDay(at)}</span>`}`;
}

/** The answer for what is known of a caller; nothing if its person is not that of a key. */
async function answerTo({ client, principal, ...seen }, keys) {
  if (principal && !keys.includes(principal)) return null;
  const ask = async (known) => {
    const fields = { ...fieldsOf(client, known), key: principal };
    const answer = await post("/api/explain", { ...readClient((field) => fields[field]), brief: true }).catch(() => null);
    return answer?.lacksCredential ? null : answer;
  };
  const answer = await ask(seen);
  if (seen.reason !== "experiment" || !["ranking", "model"].includes(answer?.reason)) return answer;
  // Which arm a session gets is only known of those that were seen.
  return { ...(await ask({ ...seen, reason: "address" })), reason: "experiment", steps: [] };
}

/** What decided, the rule by its name and place. */
function whyOf({ steps, reason }) {
  const rule = ruleIn(steps.find(({ decided }) => decided) ?? {});
  if (!rule) return REASONS[reason] ?? reason;
  return html`given by <code><${Name} value=${rule} /></code><${RuleText} key=${rule} name=${rule} isShort />`;
}

/** What Vary recorded of a call, before the answer for what the fields have now. */
function Recorded({ answer, params }) {
  const [variant, by, rule, at, caller] = ["got", "by", "rule", "at", "person"].map((name) => params.get(name));
  if (!variant || !by) return null;
  const isOfCaller = !caller || caller === answer.person;
  const isSame = isOfCaller && answer.variant === variant && answer.reason === by;
  return html`<div class=${`recorded ${isSame ? "" : "differs"}`}>
    <p>Recorded at ${timeOfDay(Number(at))}: <strong><${Name} value=${variant} /></strong>, by ${by}${rule && html` <code><${Name} value=${rule} /></code>`}</p>
    <p class="note">
      The answer below, for what the fields have, ${isSame ? "is the same." : "can differ: "}
      ${!isOfCaller && html`they lack <${Name} value=${caller} limit=${60} />, who called.`}
      ${isOfCaller && !isSame && `they lack what decided then (${REASONS[by] ?? plain(by)}), or the configuration has changed since.`}
    </p>
  </div>`;
}

function Answer({ answer, params }) {
  const { person } = answer;
  const { name, version } = answer.client ?? {};
  const other = person ? html`A client of <${Name} value=${person} />` : "This client";
  const client = name ? html`<${ClientName} client=${{ name, version }} person=${person} />` : other;
  const isRefused = answer.steps.some(({ step }) => step === "refused");
  const without = isRefused ? "is refused" : "gets the lists as they are: variants are off";
  const variant = html`gets <${Name} value=${answer.variant} />, ${whyOf(answer)}`;
  return html`
    <section class="answer">
      <h2 aria-live="polite">${client} ${answer.variant ? variant : without}</h2>
      ${answer.tools.length > 0 && html`<${Tools} ...${{ answer, params }} />`}
      <h3>The steps of the decision</h3>
      <ol class="steps">
        ${answer.steps.map(
          ({ step, decided, detail }) => html`<li class=${decided || step === "refused" ? "decided" : ""}>
            <span>${step}</span>
            <span>${sentence(detail)}<${RuleText} key=${detail} name=${ruleIn({ step, detail })} />${decided && html` <span class="mark">decides</span>`}</span>
          </li>`,
        )}
      </ol>
      <${Declared} features=${answer.features ?? []} />
      <${Rules} rules=${answer.rules ?? []} />
      <${Ranking} ranking=${answer.ranking ?? []} decided=${["ranking", "model"].includes(answer.reason)} />
    </section>
  `;
}

/** The rule that a step names. One that is built in is in no file. */
function ruleIn({ step, detail }) {
  return ["pin", "access", "rule"].includes(step) ? detail.match(/^(?:the rule )?`([^`]+)` /)?.[1] : undefined;
}

/** A sentence of Vary. */
const sentence = (text) => html`<${LongText} value=${text} limit=${300} isSentence />`;

function Declared({ features }) {
  if (features.length === 0) return html`<p class="note">It declares no features, so results reach it as servers send them.</p>`;
  return html`<p class="note">Features that it declares: <${LongText} value=${features.join(", ")} limit=${300} /></p>`;
}

/** Folded where something else decided, or all have the same points. */
function Ranking({ ranking, decided }) {
  if (ranking.length === 0) return null;
  const rows = ranking.map(({ id, points, why }) => [html`<${Name} value=${id} />`, count(points), sentence(why.join("; ") || "–")]);
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

/** The tools that are hidden, by what hides them, then each tool. */
function Tools({ answer, params }) {
  const hidden = answer.tools.filter((it) => it.hidden.length > 0);
  const all = params.get("all") === "yes" || hidden.length === 0;
  const q = params.get("q") ?? "";
  const matches = matcher(q);
  const found = answer.tools.filter((it) => namesOf(it).some(matches));
  const rows = found.filter((it) => all || it.hidden.length > 0);
  const one = found.length === 1 ? found[0] : found.find((it) => namesOf(it).includes(q.trim()));
  const shows = [...(hidden.length > 0 ? [["", "hidden"]] : []), ["yes", "all"]];
  return html`
    <h3>${plural(answer.tools.length - hidden.length, "tool")} listed, ${count(hidden.length)} hidden</h3>
    <div class="choices">
      <${Filter} label="Tool" hint="why not delete_file?" value=${q} onChange=${(text) => replace({ q: text })} />
      <${Choice} label="Show" value=${all ? "yes" : ""} options=${shows} onChange=${(value) => replace({ all: value })} />
    </div>
    <div role="status">${q && one && html`<${OneTool} tool=${one} variant=${answer.variant} />`}</div>
    ${found.length > 1 && html`<${Causes} hidden=${found.filter((it) => it.hidden.length > 0)} />`}
    ${found.length !== 1 && (rows.length === 0
      ? html`<p class="empty">${found.length === 0 ? "No tool matches. Clear the filter." : "It gets all that match."}</p>`
      : html`<${Grid} label="Tools, and what hides them" columns=${COLUMNS} rows=${rows} cell=${(row, column) => toolCell(row, column, answer.variant)} />`)}
  `;
}

/** The names by which one may ask for a tool: its own, with its server as clients often have it, and the one that it gets. */
const namesOf = ({ server, name, shown }) => [name, `${server}_${name}`, ...(shown ? [shown] : [])];

/** Whether it gets the tool, and what to do if not, in a line. */
function OneTool({ tool, variant }) {
  const answer = tool.hidden.length > 0 ? causesOf(tool) : html`it gets <${Name} value=${tool.shown} />`;
  return html`<a href=${linkToTool(tool, variant)}><${Name} value=${tool.name} /></a> of <${Name} value=${tool.server} />: ${answer}`;
}

const COLUMNS = [
  { id: "name", head: "tool", kind: "c-name" },
  { id: "shown", head: "it gets", kind: "c-wide" },
  { id: "server", head: "server", kind: "c-short" },
];

function toolCell(row, column, variant) {
  if (column.id === "name") return html`<${ToolLink} tool=${row} variant=${variant} />`;
  if (column.id === "server" || row.shown !== null) return html`<${Name} value=${row[column.id]} />`;
  return html`<span class="causes-of">${causesOf(row, true)}</span>`;
}

/** All that hides a tool. Links in cells are not reached by Tab. */
export function causesOf(tool, isCell = false) {
  return html`<span class="hidden-tool">hidden:</span> ${tool.hidden.map((cause, at) => html`${at > 0 && "; "}<${Cause} ...${{ cause, tool, isCell }} />`)}`;
}

/** What hides a tool: a rule or a variant by its name, what of it does, and the next step. The name is not repeated. */
function Cause({ cause: { by, rule, detail }, tool, isCell }) {
  const denies = `the rule \`${rule}\` denies it: `;
  const why = detail.startsWith(denies) ? detail.replace(denies, " denies ") : `${rule ? ": " : ""}${detail}`;
  const [kind, next, to] = by === "variant"
    ? ["variant ", tool ? "add it in a draft" : "change it in a draft", link("draft", { variant: rule, tool: tool && toolKey(tool) })]
    : ["access rule ", "Problems", link("review")];
  const place = !isCell && by !== "variant" && html`<${RuleText} key=${rule} name=${rule} isShort />`;
  return html`${rule && html`${isCell ? "" : kind}<code><${Name} value=${rule} /></code>${place}`}<${Name} value=${why} limit=${300} isSentence />
    ${" "}· <a href=${to} tabindex=${isCell ? "-1" : undefined}>${next}</a>`;
}

/** What hides tools, each with how many. */
function Causes({ hidden }) {
  const causes = Map.groupBy(hidden.flatMap((tool) => tool.hidden), ({ by, rule, detail }) => JSON.stringify([by, rule, detail]));
  const sorted = [...causes.values()].sort((a, b) => b.length - a.length).slice(0, 8);
  if (sorted.length === 0) return null;
  const severalTimes = hidden.filter((tool) => tool.hidden.length > 1).length;
  return html`<ul class="causes">
      ${sorted.map((all) => html`<li><strong>${plural(all.length, "tool")}</strong> hidden: <${Cause} cause=${all[0]} /></li>`)}
    </ul>
    ${severalTimes > 0 && html`<p class="note">${plural(severalTimes, "tool")} hidden by more than one: change each that is named beside such a tool.</p>`}`;
}
