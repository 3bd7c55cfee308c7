// The list of the last calls, and the details of one.

import { get, getTool } from "./api.js";
import {
  MOST_CALLS, MOST_ERRORS, OUTCOMES, PERIODS, callOf, failures, filtersOf, firstLine, isError, keyOf, kindOf, log, narrowed, outcomeOf, timeOfKey,
} from "./calls.js";
import { CallChart } from "./chart.js";
import { addressOfSeen } from "./chooser.js";
import { Component, createRef, html } from "./dom.js";
import {
  TIMES, addressOfMinute, count, milliseconds, minuteOfDay, percentile, plural, secondsOf, secondsOfWritten, startOf, timeOfDay, writtenMinute,
} from "./format.js";
import { Grid } from "./grid.js";
import { CallCount, CheckBox, Choice, Copy, Filter, Panel, Pending, PlainTable, Problem } from "./parts.js";
import { go, link, linkWith, narrow, replace } from "./route.js";
import { Rule } from "./rule.js";
import { LongText, Name, plain } from "./text.js";
import { Members, toolKey } from "./tool.js";
import { ClientLink, linkToClient } from "./who.js";

export class Calls extends Component {
  heading = createRef();
  grid = createRef();
  list = createRef();

  componentDidMount() {
    const failed = (error) => {
      this.setState({ error });
      this.props.failed(error);
    };
    const changed = () => {
      if (!this.isHeld()) this.setState({ calls: log.calls, error: null });
      this.props.changed();
    };
    log.start(changed, failed);
    this.setState({ calls: log.calls });
  }

  componentWillUnmount() {
    log.stop();
  }

  /** A link to some calls shows them; the controls keep the focus. */
  componentDidUpdate({ params: before }, { calls }) {
    const { params } = this.props;
    const open = this.opened();
    if (open && !calls) this.grid.current?.reveal(narrowed(this.state.calls, params).indexOf(open));
    if (open || before.toString() === params.toString()) return;
    this.setState({ calls: log.calls });
    if (before.has("call")) this.grid.current?.refocus();
    else if (!document.activeElement.closest(".choices, .axis")) this.heading.current?.focus();
  }

  /** The call that the address names, if it is kept. */
  opened() {
    const key = this.props.params.get("call");
    return key && callOf(this.state.calls ?? [], key);
  }

  /** Rows do not move under a pointer or the focus. */
  isHeld() {
    return this.state.calls && (this.state.paused || this.opened() || this.list.current?.matches(":hover, :focus-within"));
  }

  pause = (event) => this.setState({ paused: event.target.checked, calls: log.calls });

  close = () => go(linkWith({ call: null }));

  render({ params, status }, { calls, error }) {
    const key = params.get("call");
    return html`<section class="calls" aria-labelledby="calls">
      <h2 id="calls" tabindex="-1" ref=${this.heading}>Calls</h2>
      ${error && html`<${Problem} what="The calls are not followed at the moment." error=${error} />`}
      ${calls && key && !this.opened() && html`<p class="problem">The call of ${minuteOfDay(timeOfKey(key))} is not kept any more. <${Earlier} status=${status} /></p>`}
      ${calls?.length === 0 && html`<p class="empty">No call since Vary started at ${startOf(status)}. Calls appear here as clients make them. <${Earlier} status=${status} /></p>`}
      ${calls?.length > 0 && this.content(calls)}
      ${!calls && !error && html`<${Pending} what="calls" />`}
    </section>`;
  }

  /** The calls that the address wants: when they were, each of them, and their tools. */
  content(all) {
    const { params, status } = this.props;
    const [calls, open] = [narrowed(all, params), this.opened()];
    const latest = all.slice(0, MOST_CALLS);
    const chosen = new Set(filtersOf(params).some((name) => TIME_FILTERS.includes(name)) ? calls : []);
    return html`
      <${Filters} ...${{ params, all }} />
      <div ref=${this.list}>
        <${CallChart} all=${latest} calls=${narrowed(latest, params, TIME_FILTERS)} chosen=${chosen} />
        ${calls.length > 0 ? html`<${Summary} calls=${calls} all=${all} />` : html`<p class="empty">No call that Vary keeps matches the filters. <a href=${link("now")}>Clear the filters</a></p>`}
        ${(calls.length > 0 || open) && html`<div class=${open ? "split" : ""}>
          <${Grid} handle=${this.grid} label="Calls, the latest first" columns=${columnsOf(all, calls)} rows=${calls} cell=${callCell}
            open=${(call) => go(linkWith({ call: keyOf(call) }))} selected=${(call) => call.id === open?.id} />
          ${open && html`<${CallFacts} key=${open.id} call=${open} status=${status} close=${this.close} />`}
        </div>`}
        ${calls.length > 0 && html`<${ByTool} ...${{ calls, params }} />`}
        <div class="choices note">
          <${CheckBox} checked=${this.state.paused} onChange=${this.pause}>hold the list still (it also waits while you point at it)<//>
          <span>Vary keeps the last ${count(MOST_CALLS)} calls since it started at ${startOf(status)}, and of older ones ${MOST_ERRORS} errors and ${MOST_ERRORS} that Vary refused. <${Earlier} status=${status} /></span>
        </div>
      </div>`;
  }
}

/** Where the calls are that Vary does not keep. */
function Earlier({ status }) {
  const file = log.auditFile && (/[^\w./-]/.test(log.auditFile) ? `'${log.auditFile.replaceAll("'", "'\\''")}'` : log.auditFile);
  if (file) return html`Older calls: <code>vary audit <${Name} value=${file} limit=${400} /></code> reads them from the audit log.`;
  if (status.audit) return html`Older calls are where <code>audit</code> in the configuration sends them.`;
  return html`To keep older calls, set <code>${"audit: {to: file /var/log/vary/audit.jsonl}"}</code> in the configuration.`;
}

const COLUMNS = [
  { id: "at", head: "time", kind: "c-time" },
  { id: "outcome", head: "outcome", kind: "c-outcome" },
  { id: "target", head: "call", kind: "c-name" },
  { id: "client", head: "client", kind: "c-client" },
  { id: "principal", head: "person", kind: "c-short c-person" },
  { id: "variant", head: "variant", kind: "c-short" },
  { id: "durationMs", head: "time taken", kind: "c-number" },
];

/** Without `auth` there are no people. Where all calls failed, their errors have the room of what matters less. */
const columnsOf = (all, calls) =>
  COLUMNS.filter(({ id }) => (id === "principal" ? all.some((it) => it.principal) : !["variant", "durationMs"].includes(id) || !calls.every(isError)));

function callCell(call, { id }) {
  if (id === "at") return timeOfDay(call.at);
  if (id === "target") return html`<${Name} value=${call.target ?? call.method} />${call.error && beginningOf(call)}`;
  if (id === "client") return html`<${Name} value=${call.client?.name || "–"} limit=${40} />`;
  if (id === "outcome") return html`<span class=${`outcome ${call.outcome}`} title=${meaningOf(call)}>${outcomeOf(call)}</span>`;
  if (id === "durationMs") return milliseconds(call.durationMs);
  return html`<${Name} value=${call[id] ?? "–"} limit=${40} />`;
}

const beginningOf = ({ error, server }) =>
  html` <span class="causes-of faint" title=${plain(error, 400)}><${Name} value=${firstLine(error)} limit=${160} isSentence=${!server} /></span>`;

const meaningOf = (call) => OUTCOMES[kindOf(call)]?.[1];

/** The filters by time. */
const TIME_FILTERS = ["minutes", "from", "to"];

/** The fields that narrow the list, links that take other filters away, and toggles for what failed. */
function Filters({ params, all }) {
  const chosen = ["tool", "rule"].filter((name) => params.get(name)).map(
    (name) => html`<li><a href=${narrow({ [name]: null })} aria-label=${`${name}: ${plain(params.get(name), 40)}; remove this filter`}>${name}: <${Name} value=${params.get(name)} limit=${40} /> <b aria-hidden="true">×</b></a></li>`,
  );
  const select = (name, label, options, others = {}) =>
    html`<${Choice} label=${label} value=${params.get(name) ?? ""} options=${[["", "all"], ...options]} onChange=${(value) => replace({ ...others, [name]: value, call: null })} />`;
  const values = (name, of) => [...new Set([...all.map(of), params.get(name)])].filter(Boolean).sort().map((it) => [it, plain(it, 40)]);
  const minutes = params.get("minutes");
  const times = { ...(minutes > 0 && { [minutes]: `the last ${plain(minutes)} minutes` }), ...PERIODS };
  const wrong = ["from", "to"].map((name) => params.get(name)).find(isWrong);
  const people = values("person", (it) => it.principal);
  return html`<div class="choices">
    <${Filter} label="Search calls" value=${params.get("q") ?? ""} onChange=${(q) => replace({ q, call: null })} hint="tool, person, error text" />
    ${select("client", "Client", values("client", (it) => it.client?.name))}
    ${people.length > 0 && select("person", "Person", people)}
    ${select("server", "Server", values("server", (it) => it.server))}
    ${select("outcome", "Outcome", [["error", "any error"], ...Object.entries(OUTCOMES).map(([id, [text]]) => [id, text])])}
    ${select("minutes", "Time", Object.entries(times), { from: null, to: null })}
    <${Minute} name="from" label="At" params=${params} /><${Minute} name="to" label="until" params=${params} />
    <ul class="filters" aria-label="Filters of the calls">${chosen}<${Toggles} ...${{ params, all }} /></ul>
  </div>
  ${wrong && html`<p id="times" class="bad" role="alert">“${plain(wrong, 40)}” is not a time. Write ${TIMES}.</p>`}`;
}

/** Whether the address has a time that is not understood. */
const isWrong = (text) => text && !(secondsOf(text) > 0);

/** A field for a minute. The first one alone is that minute, both are the time from one to the other. */
class Minute extends Component {
  type = ({ target }) => this.setState({ typed: target.value });

  change = ({ target }) => {
    const seconds = secondsOfWritten(target.value.trim());
    this.setState({ typed: null });
    replace({ minutes: null, [this.props.name]: seconds > 0 ? addressOfMinute(seconds) : target.value, call: null });
  };

  render({ name, label, params }, { typed }) {
    const text = params.get(name) ?? "";
    const properties = isWrong(text) && { "aria-invalid": "true", "aria-describedby": "times" };
    return html`<label class="field">${label}
      <input value=${typed ?? (isWrong(text) ? text : writtenMinute(secondsOf(text)))} ...${properties} placeholder="14:05, 10m ago"
        title=${TIMES} size="14" autocomplete="off" onInput=${this.type} onChange=${this.change} />
    </label>`;
  }
}

/** What failed of the calls that the other filters want. */
function Toggles({ params, all }) {
  const { errors, denied } = failures(narrowed(all, params, ["outcome"]));
  const toggle = (outcome, number, text) => {
    const isSet = params.get("outcome") === outcome;
    return (number > 0 || isSet) && html`<li><a href=${narrow({ outcome: isSet ? null : outcome })} aria-current=${isSet ? "true" : undefined}>${text}</a></li>`;
  };
  return html`${toggle("error", errors, plural(errors, "error"))}${toggle("denied", denied, `${count(denied)} denied`)}`;
}

/** Figures of the calls in the list, which is bounded. */
function Summary({ calls, all }) {
  const times = calls.map((it) => it.durationMs);
  const added = calls.filter((it) => typeof it.serverMs === "number").map((it) => it.durationMs - it.serverMs);
  const dropped = log.dropped > 0 ? ` · ${plural(log.dropped, "call")} came too fast to be shown` : "";
  const p = (numbers, percent) => milliseconds(percentile(numbers, percent));
  const number = `${plural(calls.length, "call")}${calls.length < all.length ? ` of ${count(all.length)}` : ""}`;
  const figures = `p50 ${p(times, 50)}, p99 ${p(times, 99)} · of that by Vary: p50 ${p(added, 50)}, p99 ${p(added, 99)}`;
  return html`<p class="note figures">${number} · ${figures}${dropped}</p>`;
}

/** The most rows of the table by tool, and the most people or clients of a row. */
const [MOST_TOOLS, MOST_VALUES] = [50, 2];

/** The calls by a value of theirs, those with the most first. */
const grouped = (calls, valueOf) => [...Map.groupBy(calls, valueOf)].sort(([, a], [, b]) => b.length - a.length);

/** What was called, how often and by whom; each leads to its calls. */
function ByTool({ calls, params }) {
  const tools = grouped(calls.filter((it) => it.target), (it) => it.target);
  const rows = tools.slice(0, MOST_TOOLS).map(([tool, some]) => {
    const filters = { ...Object.fromEntries(params), call: null, tool };
    return [
      html`<a href=${link("now", filters)}><${Name} value=${tool} limit=${60} /></a>`,
      html`<${CallCount} number=${some.length} filters=${filters} what=${`calls of ${tool}`} />`,
      html`<${CallCount} number=${some.filter(isError).length} filters=${{ ...filters, outcome: "error" }} what=${`errors of ${tool}`} />`,
      timeOfDay(some[0].at),
      mostOf(some, (it) => it.client?.name, (client) => ({ ...filters, client })),
      mostOf(some, (it) => it.principal, (person) => ({ ...filters, person })),
    ];
  });
  return html`<details>
    <summary>By tool${tools.length > MOST_TOOLS && `, the ${MOST_TOOLS} most called`}</summary>
    <${PlainTable} label="Calls by tool" columns=${["tool", "#calls", "#errors", "last", "clients", "people"]} rows=${rows} />
  </details>`;
}

/** The values that most of the calls have, as links to those with each. */
function mostOf(calls, valueOf, filtersOf) {
  const groups = grouped(calls.filter(valueOf), valueOf);
  const linkOf = ([it, some], at) => html`${at > 0 && ", "}<a href=${link("now", filtersOf(it))}><${Name} value=${it} limit=${30} /></a> ${count(some.length)}`;
  return html`${groups.slice(0, MOST_VALUES).map(linkOf)}${groups.length > MOST_VALUES && ` and ${count(groups.length - MOST_VALUES)} more`}`;
}

function CallFacts({ call, status, close }) {
  const title = html`<${Name} value=${call.method} />${" "}${call.target && html`<${LongText} value=${call.target} limit=${120} />`}`;
  const address = new URL(link("now", { call: keyOf(call) }), location).href;
  const box = createRef();
  return html`<${Panel} id="call" level="h3" ...${{ title, close }}>
    <${Result} ...${{ call, servers: status.servers }} />
    <dl class="facts">${facts(call).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
    <p class="note">Its link: <code ref=${box}>${address}</code></p>
    ${call.method === "tools/call" && call.server && call.target && html`<${CalledTool} ...${{ call, keys: status.keys ?? [] }} />`}
    <${Copy} button="Copy the link" text=${address} box=${box} />
    <p class="note">${call.arguments ? "Results are" : "Arguments and results are"} not kept; <code>audit</code> records what it is configured to.</p>
  <//>`;
}

/** What came of a call, and what the client read of it. */
function Result({ call, servers }) {
  const { outcome, code, error, rule, client, target } = call;
  const isNotListed = kindOf(call) === "not_listed";
  const down = isNotListed && servers.find(({ name, state }) => state === "down" && target?.startsWith(`${name}_`));
  return html`<div class=${isError(call) || outcome === "denied" ? "problem" : ""}>
    <p><strong class=${`outcome ${outcome}`}>${outcomeOf(call)}${code ? `, code ${code}` : ""}</strong> ${meaningOf(call)}
      ${isNotListed && client?.name && html` · <a href=${linkToClient(client, call)}>Who gets what</a>`}
      ${down && html` · <code><${Name} value=${down.name} limit=${60} /></code> is down`}
    </p>
    ${outcome === "denied" && rule && html`<p>by the access rule or limit <${Rule} name=${rule} /></p>`}
    ${error && html`<h4>what the client read</h4>${error.split("\n").filter(Boolean).map((line) => html`<p class="bad"><${LongText} value=${line} limit=${400} isSentence=${!call.server} /></p>`)}`}
  </div>`;
}

/** What the client was told of the tool that it called, beside the server's own definition. */
class CalledTool extends Component {
  tool = { server: this.props.call.server, name: this.props.call.upstreamName ?? this.props.call.target };

  async componentDidMount() {
    try {
      const [definitions, catalog] = await Promise.all([getTool(this.tool), get("/api/catalog")]);
      const row = catalog.tools.find((it) => toolKey(it) === toolKey(this.tool));
      this.setState({ definitions, fixed: row?.variants[this.props.call.variant]?.fixed ?? [] });
    } catch (error) {
      this.setState({ error });
    }
  }

  render({ call, keys }, { definitions, fixed, error }) {
    const { variant, client } = call;
    const known = definitions && variant && Object.hasOwn(definitions.variants, variant) ? definitions.variants[variant] : null;
    const isSame = known && JSON.stringify(known) === JSON.stringify(definitions.original);
    const again = client?.name ? addressOfSeen(client, keys.find((key) => key === call.principal)) : {};
    return html`
      <p>
        <a href=${link("calls", { tool: toolKey(this.tool), ...again })}>Call it as several clients</a> ·${" "}
        <a href=${link("variants", { tool: toolKey(this.tool), variant })}>see it in each variant</a>
      </p>
      ${fixed?.length > 0 &&
      html`<p>Vary fixed ${plural(fixed.length, "argument")}: ${fixed.map((name, at) => html`${at > 0 && ", "}<code><${Name} value=${name} limit=${60} /></code>`)}</p>`}
      ${error && html`<${Problem} what="Its definitions cannot be shown." error=${error} />`}
      ${known && isSame && html`<p class="note">The client sees the tool as the server lists it.</p>`}
      ${known && !isSame && html`<h4>What the client sees of it, beside what the server lists</h4><${Members} before=${definitions.original} after=${known} />`}
    `;
  }
}

function facts(call) {
  const text = (value) => (value ? html`<${LongText} value=${value} limit=${200} />` : "–");
  /** A value, and the link to the calls that have it, too. */
  const some = (shown, filter, value) =>
    value ? html`${shown} · <a href=${narrow({ [filter]: value })} aria-label=${`only these: calls of this ${filter}`}>only these</a>` : shown;
  return [
    ["time", `${timeOfDay(call.at)}; in UTC ${new Date(call.at * 1000).toISOString()}`],
    ["called as", some(text(call.target), "tool", call.target)],
    ...(typeof call.serverMs === "number" ? [["sent to the server as", text(call.upstreamName ?? call.target)]] : []),
    ...(call.server ? [["server", some(text(call.server), "server", call.server)]] : []),
    ...(call.arguments ? [["arguments", html`<code>${text(call.arguments)}</code>`]] : []),
    ["client", some(call.client?.name ? html`<${ClientLink} client=${call.client} seen=${call} />` : "–", "client", call.client?.name)],
    ...(call.principal ? [["person", some(text(call.principal), "person", call.principal)]] : []),
    ["variant", text(call.variant)],
    ["selected by", call.reason ? html`${text(call.reason)}${call.variantRule && html`: <${Rule} name=${call.variantRule} />`}` : "–"],
    ...(call.rule && call.outcome !== "denied" ? [["access rule", html`<${Rule} name=${call.rule} />`]] : []),
    ["time taken", `${milliseconds(call.durationMs)}; of that the server ${milliseconds(call.serverMs)}`],
    ["bytes", `${count(call.bytesIn)} of the request, ${count(call.bytesOut)} of the answer`],
  ];
}
