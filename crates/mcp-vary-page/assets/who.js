// The view of who gets what: what a client sends, the variant that it gets, and why.

import { get, post } from "./api.js";
import { ClientFields, ClientName, FIELDS, callersOf, clientLabel, fieldText, fieldsOf, questionOf, readClient } from "./client.js";
import { Component, html } from "./dom.js";
import { clientName } from "./draft-value.js";
import { count, minuteOfDay, plural, timeOfDay } from "./format.js";
import { CallCount, Choice, Filter, PlainTable, Problem, Table, matcher } from "./parts.js";
import { go, link, linkWith, replace } from "./route.js";
import { Rule, RuleText } from "./rule.js";
import { FirstTen, Folded, LongText, Name, plain, sentence } from "./text.js";
import { MayCall, Unknown, causesIn, linkToTool, reasonsOf, toolKey } from "./tool.js";

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

/** The link to the view for a client that Vary has seen, with what a call of it shows: who called, and what was decided. */
export function linkToClient(client, seen = {}) {
  const { principal, variant, reason, variantRule, at, tool } = seen;
  const recorded = variant && reason && { got: variant, by: reason, rule: variantRule, at };
  return link("who", { ...fieldsOf(client, seen), person: principal, q: tool, ...recorded });
}

/** A client, and the person who uses it, as a link to what it gets, and why. */
export const ClientLink = ({ client, person, seen }) => html`<a href=${linkToClient(client, seen)}><${ClientName} ...${{ client, person }} /></a>`;

/** People, clients of the status, or of calls with their people, as links to what they get. */
export function clientLinks(uses) {
  if (uses.length === 0) return "–";
  const one = ({ client, principal, variant, reason, rule, variantRule = rule, last, at = last, tool, isPerson, person }, place) => {
    const seen = { principal, variant, reason, variantRule, at, tool };
    const ofClient = client?.name ? html`<${ClientLink} person=${principal} ...${{ client, seen }} />` : "no name";
    const ofPerson = html`<a href=${link("who", { key: person, q: tool })}><${Name} value=${person} limit=${40} /></a>`;
    return html`${place > 0 && ", "}${isPerson ? ofPerson : ofClient}`;
  };
  return html`<${FirstTen} all=${uses} show=${(some) => some.map(one)} />`;
}

/** Who made calls, each once. */
export const callerLinks = (calls) => clientLinks([...new Map(calls.map((it) => [JSON.stringify([it.principal, it.client?.name]), it])).values()]);

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
    get("/api/catalog").then(({ tools }) => this.setState({ tools }), this.props.failed);
    if (this.props.status) this.loadCallers();
  }

  componentDidUpdate(before) {
    if (asked(before) !== asked(this.props)) this.ask();
    if (before.status?.clients.length !== this.props.status?.clients.length) this.loadCallers();
  }

  /** Who called, and then what each gets now. */
  async loadCallers() {
    const { status } = this.props;
    try {
      const callers = callersOf((await get("/api/last-calls")).calls, status ?? {});
      this.setState({ callers });
      const answers = await Promise.all(callers.slice(0, MOST_ASKED).map((it) => answerTo(it, status?.keys ?? [])));
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
      // The link that was followed may be gone.
      const focus = () => document.activeElement === document.body && document.getElementById("answer")?.focus();
      if (number === this.asked) this.setState({ answer: answer && { ...answer, person: text("key") }, error: null }, focus);
    } catch (error) {
      if (number === this.asked) this.setState({ answer: null, error });
      failed(error);
    }
  }

  render({ params, status, failed }, { answer, error, callers, tools }) {
    const keys = status?.keys ?? [];
    const text = textIn(params, keys);
    return html`<section aria-label="What the client sends">
        <div class="choices"><${Choices} ...${{ params, keys, person: text("key") }} /></div>
        <details class="question" open=${!!error}>
          <summary>All that the client sends</summary>
          <${Form} key=${asked({ params, status })} ...${{ params, text }} /></details></section>
      ${params.get("tool") && tools && callers && html`<${AskedTools} text=${params.get("tool")} ...${{ tools, callers, keys, failed }} />`}
      ${error && html`<${Problem} what="There is no answer to this." error=${error} />`}
      ${!params.get("initialize") && !error && callers && html`<div class="review"><${Seen} callers=${callers} person=${text("key")} /></div>`}
      ${answer?.lacksCredential && html`${refusal(keys)}<${Recorded} ...${{ answer, params }} />`}
      ${answer && !answer.lacksCredential && html`<${Answer} ...${{ answer, params, status }} />`}`;
  }
}

/** The people who have keys, and the way back to the clients; or a tool. */
function Choices({ params, keys, person }) {
  const people = [...new Set([...keys, ...(person ? [person] : [])])].sort().slice(0, 200);
  const options = [["", "without a key"], ...people.map((key) => [key, plain(key, 60)])];
  return html`${people.length > 0 && html`<${Choice} label="Person, by API key" value=${person ?? ""} options=${options} onChange=${(key) => go(linkWith({ key, person: null }))} />`}
    ${params.get("initialize") && html`<a href=${link("who", { key: person })}>Choose another client</a>`}
    <${Filter} label="Who may call a tool?" hint="delete_file" value=${params.get("tool") ?? ""} onChange=${(tool) => replace({ tool })} />`;
}

/** Who may call the tool that a text names, or the tools that it may mean. */
function AskedTools({ text, tools, ...others }) {
  const matches = matcher(text);
  const found = tools.filter((tool) => namesOf(tool).some(matches));
  const named = found.filter((tool) => namesOf(tool).includes(text.trim()));
  const tool = [named, found].find(({ length }) => length === 1)?.[0];
  const choice = (it, at) => html`${at > 0 && ", "}<a href=${linkWith({ tool: toolKey(it) })}><${Name} value=${clientName(it)} limit=${60} /></a>`;
  return html`<section aria-labelledby="may-call">
    <h2 id="may-call">Who may call ${tool ? html`<${Name} value=${clientName(tool)} limit=${60} />` : "a tool"}</h2>
    ${found.length === 0 && html`<p class="empty">No tool matches “${plain(text)}”. Write a part of its name.</p>`}
    ${!tool && found.length > 0 && html`<p>Choose one: <${FirstTen} all=${found} show=${(some) => some.map(choice)} /></p>`}
    ${tool && html`<${MayCall} key=${[toolKey(tool), others.callers.length, others.keys.length].join(" ")} links=${clientLinks} ...${{ tool, ...others }} />`}
  </section>`;
}

function Form({ params, text }) {
  const submit = (event) => {
    event.preventDefault();
    const values = Object.keys(FIELDS).map((field) => [field, fieldText(event.target, field)]);
    go(link("who", { ...Object.fromEntries(values), q: params.get("q") }));
  };
  return html`<form class="who" onSubmit=${submit}>
    <p class="note">Paste what the client sends, as far as you know it. No server is called.</p>
    <${ClientFields} text=${text} />
    <p class="note"><button>Explain</button> Headers with credentials, such as <code>Authorization</code>, are left out: paste the claims.</p>
  </form>`;
}

/** In place of an answer that no client gets. */
const refusal = ({ length }) => html`<p class="problem">
  ${length > 0 ? "Without a key Vary refuses this client; choose a person." : "Without a token Vary refuses this client; paste its claims."}
</p>`;

/** The callers of which Vary is asked what they get now: those in sight. */
const MOST_ASKED = 12;

/** Where to begin: who called, and what they got. */
function Seen({ callers, person }) {
  const own = callers.filter(({ principal }) => person && principal === person);
  const rows = (own.length > 0 ? own : callers).map(({ client, principal, calls, now, ...seen }) => [
    html`<${ClientLink} client=${client} person=${principal} seen=${{ ...seen, principal: principal ?? person }} />`,
    html`<${Got} ...${{ now, seen }} />`,
    count(now?.listed),
    whyOf(now ?? { ...seen, steps: [] }, seen.variantRule),
    html`<${CallCount} number=${calls} filters=${{ client: client.name, person: principal }} what=${`calls of ${clientLabel(client, principal)}`} />`,
  ]);
  const columns = ["client", "variant", "#tools", "~why", "#last calls"];
  const empty = "Once clients have connected, they are listed here. Until then, open “All that the client sends”, fill in a field and press “Explain”.";
  return html`<${Table} isMain title="Choose a client that was seen" label="Clients that were seen" ...${{ columns, rows, empty }} />`;
}

/** The variant of a caller now, and with which it was seen if that is another one. */
function Got({ now, seen: { variant, at } }) {
  const before = at && now?.variant && variant && variant !== now.variant;
  const name = (id) => (id ? html`<${Name} value=${id} limit=${40} />` : "–");
  return html`${name(now?.variant ?? variant)}${before && html`<span class="beneath">${name(variant)} at ${minuteOfDay(at)}</span>`}`;
}

/** The answer for what is known of a caller; nothing if its person is not that of a key. */
async function answerTo(caller, keys) {
  if (caller.principal && !keys.includes(caller.principal)) return null;
  const ask = async (known) => {
    const answer = await post("/api/explain", { ...questionOf(known), brief: true }).catch(() => null);
    return answer?.lacksCredential ? null : answer;
  };
  if (caller.reason !== "experiment") return ask(caller);
  // An experiment assigns no variant to those whose variant something else decides now.
  const answer = await ask({ ...caller, reason: null });
  const isAssigned = ["ranking", "model", "experiment"].includes(answer?.reason);
  return isAssigned ? { ...(await ask(caller)), reason: "experiment", steps: [] } : answer;
}

/** What decided, the rule by its name and place; `seen` names the experiment in which the client was seen. */
function whyOf({ steps, reason }, seen) {
  const rule = ruleIn(steps.find(({ decided }) => decided) ?? {});
  const experiment = reason === "experiment" && (rule ?? seen);
  if (experiment) return html`an arm of the experiment <a href=${link("experiments")}><${Name} value=${experiment} limit=${60} /></a>`;
  if (!rule) return REASONS[reason] ?? reason ?? "–";
  return html`given by <code><${Name} value=${rule} /></code><${RuleText} key=${rule} name=${rule} isShort />`;
}

/** What Vary recorded of a call, beside the answer for what the fields have now. */
function Recorded({ answer, params }) {
  const [variant, by, rule, at, caller] = ["got", "by", "rule", "at", "person"].map((name) => params.get(name));
  if (!variant || !by) return null;
  const time = timeOfDay(Number(at));
  const isOfCaller = !caller || caller === answer.person;
  if (isOfCaller && !answer.lacksCredential && answer.variant === variant && answer.reason === by) return html`<p class="note">The call at ${time} got the same.</p>`;
  const lacks = isOfCaller ? `what decided then (${REASONS[by] ?? plain(by)}), or the configuration has changed` : html`<${Name} value=${caller} limit=${60} />, who called`;
  return html`<p>The call at ${time} got <strong><${Name} value=${variant} /></strong>, by ${by}${rule && html` <code><${Name} value=${rule} /></code>`}: ${isOfCaller && answer.lacksCredential ? "its person is not known any more" : html`the fields lack ${lacks}`}.</p>`;
}

function Answer({ answer, params, status }) {
  const { person } = answer;
  const { name, version } = answer.client ?? {};
  const other = person ? html`A client of <${Name} value=${person} />` : "This client";
  const client = name ? html`<${ClientName} client=${{ name, version }} person=${person} />` : other;
  const isRefused = answer.steps.some(({ step }) => step === "refused");
  const without = isRefused ? "is refused" : "gets the lists as they are: variants are off";
  const variant = html`gets <${Name} value=${answer.variant} />, ${whyOf(answer)}`;
  const line = ({ step, decided, detail }) => html`<li class=${decided || step === "refused" ? "decided" : ""}>
    <span>${step}</span>
    <span>${sentence(detail)}<${RuleText} key=${detail} name=${step !== "experiment" && ruleIn({ step, detail })} />${decided && html` <span class="mark">decides</span>`}</span>
  </li>`;
  return html`<section class="answer">
      <h2 id="answer" tabindex="-1" aria-live="polite">${client} ${answer.variant ? variant : without}</h2>
      <${Recorded} ...${{ answer, params }} />
      <div class="sides">
        <div><h3>The steps of the decision</h3><ol class="steps">${answer.steps.map(line)}</ol></div>
        ${answer.tools.length > 0 && html`<div><${Tools} ...${{ answer, params, status }} /></div>`}</div>
      <${Declared} features=${answer.features ?? []} />
      <${Rules} rules=${answer.rules ?? []} />
      <${Ranking} ranking=${answer.ranking ?? []} decided=${["ranking", "model"].includes(answer.reason)} />
    </section>`;
}

/** The rule or experiment that a step names. A rule that is built in is in no file. */
const ruleIn = ({ step, detail }) =>
  ["pin", "access", "rule", "experiment"].includes(step) ? detail.match(/^(?:the rule |the experiment )?`([^`]+)` /)?.[1] : undefined;

const Declared = ({ features }) => html`<p class="note">
  ${features.length > 0 ? html`Features that it declares: <${LongText} value=${features.join(", ")} limit=${300} />` : "It declares no features: results reach it as servers send them."}
</p>`;

/** Folded where something else decided, or all have the same points. */
function Ranking({ ranking, decided }) {
  if (ranking.length === 0) return null;
  const rows = ranking.map(({ id, points, why }) => [html`<${Name} value=${id} />`, count(points), sentence(why.join("; ") || "–")]);
  const label = "How its hints rank the variants";
  return html`<details class="question" open=${decided && new Set(ranking.map(({ points }) => points)).size > 1}>
    <summary>${label}</summary>
    <${PlainTable} ...${{ label, rows }} columns=${["variant", "#points", "~why"]} /></details>`;
}

/** Each rule by its name and what it says, which has the conditions that `rule` repeats. */
function Rules({ rules }) {
  if (rules.length === 0) return null;
  return html`<div class="note">Access rules that apply to it:
    <ul class="rules">${rules.map(({ rule }) => html`<li key=${rule}><${Rule} name=${rule.split(" (")[0]} /></li>`)}</ul>
  </div>`;
}

/** The tools: those that are listed, then those that are hidden by what hides them, each once. */
function Tools({ answer, params, status }) {
  const down = (status?.servers ?? []).filter(({ state }) => state === "down").map(({ name }) => name);
  const isHidden = ({ hidden }) => hidden.length > 0;
  const q = params.get("q") ?? "";
  const matches = matcher(q);
  const found = answer.tools.filter((it) => namesOf(it).some(matches));
  const one = found.length === 1 ? found[0] : found.find((it) => namesOf(it).includes(q.trim()));
  const groups = [...Map.groupBy(found, (it) => JSON.stringify([it.hidden, isRefused(it) && it.rules])).values()];
  groups.sort(([a, ...as], [b, ...bs]) => isHidden(a) - isHidden(b) || bs.length - as.length);
  const group = (tools) => html`<li key=${JSON.stringify([tools[0].hidden, isRefused(tools[0]) && tools[0].rules])}>
    <strong>${plural(tools.length, "tool")}</strong> ${isHidden(tools[0]) ? causesOf({ hidden: tools[0].hidden }) : isRefused(tools[0]) ? refusedBy(tools[0]) : "listed"}
    <${ToolNames} ...${{ tools, variant: answer.variant }} /></li>`;
  const [hidden, refused] = [isHidden, isRefused].map((is) => answer.tools.filter(is).length);
  return html`<h3>${plural(answer.tools.length - hidden, "tool")} listed${refused > 0 && `, of which ${count(refused)} always refused`}, ${count(hidden)} hidden</h3>
    <div class="choices">
      <${Filter} label="Tool" hint="why not delete_file?" value=${q} onChange=${(text) => replace({ q: text })} />
    </div>
    <${Unknown} status=${status} />
    <div role="status">${q && one && html`<${OneTool} tool=${one} variant=${answer.variant} isDown=${down.includes(one.server)} />`}</div>
    ${found.length === 0 && html`<p class="empty">No tool matches. Clear the filter.</p>`}
    ${found.length > 1 && html`<${FirstTen} all=${groups} show=${(some) => html`<ul class="causes">${some.map(group)}</ul>`} />`}`;
}

/** The tools that are shown without being asked for. */
const FEW = 3;

/** Tools by their servers, as links to the tool. */
function ToolNames({ tools, variant }) {
  const ofServer = ([server, all]) => html`<div><span class="faint"><${Name} value=${server} limit=${32} />: </span>
    ${all.map((tool, at) => html`${at > 0 && ", "}<a href=${linkToTool(tool, variant)}><${Name} value=${tool.shown ?? tool.name} limit=${60} /></a>`)}</div>`;
  return html`<${Folded} isLong=${tools.length > FEW} all=${count(tools.length)}>
    ${(isWhole) => isWhole && [...Map.groupBy(tools, ({ server }) => server)].map(ofServer)}<//>`;
}

/** The names by which one may ask for a tool: its own, with its server as clients often have it, and the one that a client gets. */
const namesOf = (tool) => [tool.name, `${tool.server}_${tool.name}`, toolKey(tool), ...(tool.shown ? [tool.shown] : [])];

/** Whether it gets the tool, and what to do if not, in a line. */
function OneTool({ tool, variant, isDown }) {
  const gets = html`it gets <${Name} value=${tool.shown} />${isDown && html`, but <strong class="bad"><${Name} value=${tool.server} /> is down</strong>`}`;
  const answer = tool.hidden.length > 0 ? causesOf(tool) : isRefused(tool) ? refusedBy(tool) : gets;
  return html`<a href=${linkToTool(tool, variant)}><${Name} value=${tool.name} /></a> of <${Name} value=${tool.server} />: ${answer}
    ${" "}· <a href=${linkWith({ tool: toolKey(tool) })}>who may call it, and by which rule</a>`;
}

/** Whether each call of a tool that is listed is refused, and by what. */
const isRefused = ({ hidden, isAllowed }) => hidden.length === 0 && isAllowed === false;
const refusedBy = (tool) => html`listed, but <strong class="bad">each call is refused</strong>: ${causesIn(reasonsOf(tool))}`;

/** All that hides a tool; of several tools, their causes alone. */
export const causesOf = ({ hidden, rules = [], isAllowed, ...tool }) => html`<span class="hidden-tool">hidden:</span> ${causesIn(reasonsOf({ hidden, rules, isAllowed }), tool.name && tool)}`;
