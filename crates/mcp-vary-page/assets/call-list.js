// The list of the last calls, and the details of one.

import { get, getTool } from "./api.js";
import {
  FIXED, MOST_CALLS, MOST_ERRORS, OUTCOMES, PERIODS, auditCommand, beginOf, callOf, failures, failuresWith, filtersOf, firstLine, isError, keptSince,
  keyOf, kindOf, log, narrowed, outcomeOf, timeOfKey, total,
} from "./calls.js";
import { CallChart } from "./chart.js";
import { addressOfSeen } from "./chooser.js";
import { prepare } from "./compare.js";
import { Component, createRef, html } from "./dom.js";
import {
  TIMES, addressOfMinute, count, milliseconds, minuteOfDay, momentOfDay, percentile, plural, secondsOf, secondsOfWritten, startOf, timeOfDay,
  writtenMinute,
} from "./format.js";
import { Grid, isShortcut } from "./grid.js";
import { CallCount, Choice, Copy, Filter, Panel, Pending, PlainTable, Problem, readInto } from "./parts.js";
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
      this.setState({ error: null, ...(!this.isHeld() && { calls: this.known() }) });
      this.props.changed();
    };
    log.watcher = { changed, failed };
    this.showAll();
    // After the heading of the view has got the focus.
    if (filtersOf(this.props.params).length > 0) setTimeout(() => this.heading.current?.scrollIntoView());
    // Before the keys of all views.
    addEventListener("keydown", this.pressed, true);
  }

  componentWillUnmount() {
    clearTimeout(this.again);
    log.watcher = {};
    removeEventListener("keydown", this.pressed, true);
  }

  /** A link to some calls shows them; the controls keep the focus. */
  componentDidUpdate({ params: before }, { calls }) {
    const { params } = this.props;
    const [open, isOther] = [this.opened(), before.toString() !== params.toString()];
    if (this.state.calls && !open && params.has("call")) this.readLost(params.get("call"));
    // Who wanted the calls of the audit log wants those of other filters, too, once they are typed.
    if (isOther) clearTimeout(this.again);
    if (isOther && this.state.earlier && !this.earlier() && gapBefore(params, this.props.status)) this.again = setTimeout(this.readEarlier, 600);
    if (open && (!calls || isOther)) this.grid.current?.reveal(narrowed(this.state.calls, params).indexOf(open));
    if (open || !isOther) return;
    const isControl = document.activeElement.closest(".choices, .axis");
    this.setState({ calls: this.known() }, () => before.has("call") && !isControl && this.refocus(before.get("call")));
    if (before.has("call") || isControl) return;
    this.heading.current?.focus();
    this.heading.current?.scrollIntoView();
  }

  /** Returns to the row of a call, which has another number if calls came while it was open. */
  refocus(key) {
    const row = narrowed(this.state.calls ?? [], this.props.params).indexOf(callOf(this.state.calls ?? [], key));
    this.grid.current?.refocus(row < 0 ? undefined : row);
  }

  showAll = () => this.setState({ calls: this.known() });

  /** What was read of the audit log, if that was for these filters. */
  earlier = () => this.state.earlier?.of === filterText(this.props.params) && this.state.earlier;

  /** The calls that are kept, and those of the audit log that are not, by time. */
  known() {
    const { calls = [] } = this.earlier() || {};
    const recorded = new Map([...(this.state.around ?? []), ...calls].map((it) => [it.id, it]));
    if (recorded.size === 0) return log.calls;
    const kept = Map.groupBy(log.calls, identityOf);
    return [...log.calls, ...[...recorded.values()].filter((call) => !kept.get(identityOf(call))?.pop())].sort((a, b) => b.at - a.at);
  }

  /** Reads what the filters want, and Vary does not keep; then what is before that, if it was too much. */
  readEarlier = async () => {
    const { params, status } = this.props;
    const of = filterText(params);
    const { calls = [], to = keptSince() || status.begun } = this.earlier() || {};
    const end = calls.at(-1)?.at ?? Math.min(to, endIn(params) || to);
    const query = new URLSearchParams([...JSON.parse(of), ["from", beginIn(params)], ["to", end]]);
    this.setState({ isReading: true });
    await readInto(this, async () => {
      const read = await get(`/api/recorded?${query}`);
      return { earlier: { ...read, calls: [...calls, ...read.calls], of, to } };
    }, "unread");
    this.setState({ isReading: false }, this.showAll);
  };

  /** Beside a call that is open, the keys of a list open its neighbours, and Escape closes it from anywhere. */
  pressed = (event) => {
    const [open, step] = [this.opened(), { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key]];
    if (open && event.key === "Escape" && isShortcut(event)) this.close();
    if (!open || !step || !isShortcut(event) || event.target.closest?.(".grid, .axis, .wide")) return;
    event.preventDefault();
    const calls = narrowed(this.state.calls, this.props.params);
    const next = calls[calls.indexOf(open) + step];
    if (next) replace({ call: keyOf(next) });
  };

  /** Reads the call of the address, which Vary does not keep, from the audit log, with those of the same seconds. */
  async readLost(key) {
    if (this.lost === key || !log.auditFile) return;
    this.lost = key;
    const query = new URLSearchParams({ from: timeOfKey(key) - 1, to: timeOfKey(key) + 2 });
    await readInto(this, async () => ({ around: (await get(`/api/recorded?${query}`)).calls }), "unread");
    this.showAll();
  }

  /** The call that the address names, if it is kept. */
  opened() {
    const key = this.props.params.get("call");
    return key && callOf(this.state.calls ?? [], key);
  }

  /** Rows do not move under a pointer or the focus. */
  isHeld() {
    return this.state.calls && (this.opened() || this.list.current?.matches(":hover, :focus-within"));
  }

  close = () => go(linkWith({ call: null }));

  render({ params, status }, { calls, error }) {
    const key = params.get("call");
    const earlier = html`${this.door()} <${Earlier} ...${{ params, status }} />`;
    return html`<section class="calls" aria-labelledby="calls">
      <header class="choices">
        <h2 id="calls" tabindex="-1" ref=${this.heading}>Calls</h2>
        ${calls?.length > 0 && html`<${Chosen} ...${{ params, status }} all=${calls} />`}</header>
      ${error && html`<${Problem} what="The calls are not followed at the moment." error=${error} />`}
      ${calls && key && !this.opened() && html`<div class="problem">The call of ${minuteOfDay(timeOfKey(key))} is not kept any more. ${earlier}</div>`}
      ${calls?.length === 0 && html`<div class="empty">No call since Vary started at ${startOf(status)}. Calls appear here as clients make them. ${earlier}</div>`}
      ${calls?.length > 0 && this.content(calls)}
      ${!calls && !error && html`<${Pending} what="calls" />`}</section>`;
  }

  /** What reads the calls of the audit log, where there is one that this page may read. */
  door = (text = "Show earlier ones from the audit log") => log.auditFile && html`<button type="button" disabled=${this.state.isReading} onClick=${this.readEarlier}>${this.state.isReading ? "Reading the audit log …" : text}</button>`;

  /** The calls that the address wants: when they were, each of them, and their tools. */
  content(all) {
    const { params, status } = this.props;
    const [calls, open] = [narrowed(all, params), this.opened()];
    const latest = all.slice(0, MOST_CALLS);
    const chosen = new Set(filtersOf(params).some((name) => TIME_FILTERS.includes(name)) ? calls : []);
    const earlier = this.earlier();
    const gap = !earlier && gapBefore(params, status);
    const held = narrowed(log.calls.filter(({ id, at }) => at > all[0].at && id !== all[0].id), params).length;
    return html`
      <${Filters} ...${{ params, all }} isOpen=${!!this.state.isOpen} toggle=${() => this.setState(({ isOpen }) => ({ isOpen: !isOpen }))} />
      <div ref=${this.list}>
        <${CallChart} all=${latest} calls=${narrowed(all, params, TIME_FILTERS)} chosen=${chosen} from=${beginIn(params)} since=${earlier ? earlier.isCut && earlier.calls.at(-1)?.at : keptSince() || status.begun} before=${keptSince() || earlier ? "not kept" : "before the start"} />
        ${gap && html`<div class="recorded differs">
          <span>${gap}</span> ${this.door("Show them from the audit log")}
          <${Earlier} ...${{ params, status }} /></div>`}
        ${this.state.unread && html`<${Problem} what="The audit log cannot be read." error=${this.state.unread} />`}
        ${earlier && html`<div class=${earlier.isCut ? "recorded differs" : "recorded"}>
          <span><strong>Before ${momentOfDay(earlier.to)}</strong> ${plural(earlier.calls.length, "call")} of the audit log${earlier.isCut && ", the last ones"}; it has no texts of errors, and “not listed” and “session lost” are “error” in it.</span>
          ${earlier.isCut && this.door("Show earlier ones")}</div>`}
        ${calls.length > 0 ? html`<${Summary} ...${{ calls, all, params }}>
          <span class="held"><span role="status">${held > 0 && "held"}</span>${held > 0 && html`: ${count(held)} new <button type="button" class="quiet" onClick=${this.showAll}>show them</button>`}</span>
        <//>` : html`<p class="empty">No call ${earlier ? "here" : "that Vary keeps"} matches the filters${isFromBefore(params, status) && !earlier && ", and none from before its start is here"}. <a href=${link("now")}>Clear the filters</a></p>`}
        ${(calls.length > 0 || open) && html`<div class=${open ? "split" : ""}>
          <${Grid} handle=${this.grid} label="Calls, the latest first" columns=${columnsOf(all, calls, params)} rows=${calls} cell=${(call, column) => column.cell(call)}
            open=${(call) => go(linkWith({ call: keyOf(call) }))} selected=${(call) => call.id === open?.id} />
          ${open && html`<${CallFacts} key=${open.id} call=${open} status=${status} close=${this.close} />`}
        </div>`}
        ${calls.length > 0 && html`<${By} what="tool" valueOf=${(it) => it.target} ...${{ calls, params }} />`}
        ${calls.some(isError) && html`<${By} what="error" valueOf=${(it) => isError(it) && !it.isUnknownTool && firstLine(it.error)} ...${{ calls, params }} />`}
        <div class="older note">
          <span>Vary keeps the last ${count(MOST_CALLS)} calls since ${startOf(status)}, and of older ones ${MOST_ERRORS} errors and ${MOST_ERRORS} refusals. The list waits while you point at it.</span>
          ${!gap && html` ${!earlier && this.door()} <${Earlier} ...${{ params, status }} />`}</div></div>`;
  }
}

/** The second at which the time begins that the filters want; 0 without such a filter. */
const beginIn = (params) => (params.get("minutes") ? beginOf(params.get("minutes")) : secondsOf(params.get("from") ?? "")) || 0;

/** The second at which it ends; nothing without one. */
const endIn = (params) => secondsOf(params.get("to") ?? params.get("from") ?? "") + 60 || 0;
/** All that the filters want, as one text; times are those of `beginIn` and `endIn`. */
const filterText = (params) => JSON.stringify(filtersOf(params).map((name) => [TIME_FILTERS.includes(name) ? `${name}-written` : name, params.get(name)]));
/** What a call has in common with itself in the audit log; calls at the same time can be alike. */
const identityOf = ({ at, target, durationMs, bytesIn }) => [Math.floor(at / 10), target, durationMs, bytesIn].join(" ");

/** Whether a time filter begins before Vary started, of which nothing is here. */
const isFromBefore = (params, status) => beginIn(params) > 0 && beginIn(params) < status.begun;

/** What the calls that the filters want lack, since Vary does not keep it; nothing if all of them are there. */
function gapBefore(params, status) {
  const [since, end] = [keptSince(), endIn(params)];
  const isCut = filtersOf(params).length > 0 && beginIn(params) < since && !(end > 0 && end <= status.begun);
  const cut = isCut && html`<strong>Before ${momentOfDay(since)}</strong> only ${MOST_ERRORS} errors and ${MOST_ERRORS} refusals of all are kept.`;
  return isFromBefore(params, status) ? html`<strong>Vary started at ${startOf(status)}</strong>; nothing from before is here. ${cut}` : cut;
}

/** Where the calls are that Vary does not keep, with the command for those that the filters want. */
function Earlier({ params, status }) {
  const [command, box] = [log.auditFile && auditCommand(params), createRef()];
  const code = html`<code ref=${box}><${Name} value=${command} limit=${400} /></code>`;
  if (command) return html`<span>All of them: ${code}</span> <${Copy} button="Copy the command" text=${command} box=${box} />`;
  if (status.audit) return html`<span>All of them are where <code>audit</code> in the configuration sends them.</span>`;
  return html`<span>To keep all of them, set <code>${"audit: {to: file /var/log/vary/audit.jsonl}"}</code> in the configuration.</span>`;
}

const named = (value) => html`<${Name} value=${value || "–"} limit=${40} />`;

const COLUMNS = [
  { id: "at", head: "time", kind: "c-time", cell: ({ at }) => timeOfDay(at) },
  { id: "outcome", head: "outcome", kind: "c-outcome", cell: (call) => html`<span class=${`outcome ${call.outcome}`} title=${meaningOf(call)}>${outcomeOf(call)}</span>` },
  { id: "target", head: "call", kind: "c-name", cell: (call) => html`<${Name} value=${call.target ?? call.method} />${(call.error || call.outcome === "denied") && causeOf(call) && beginningOf(call)}` },
  { id: "client", head: "client", kind: "c-client", cell: ({ client }) => named(client?.name) },
  { id: "principal", head: "person", kind: "c-short c-person", cell: ({ principal }) => named(principal) },
  { id: "variant", head: "variant", kind: "c-short", cell: ({ variant }) => named(variant) },
  { id: "durationMs", head: "took", kind: "c-number", cell: ({ durationMs }) => milliseconds(durationMs) },
];

/** What filters say, all calls have, or the open call shows, leaves its room to the errors; so does what matters less where all failed. */
function columnsOf(all, calls, params) {
  const isBrief = params.has("call") || calls.every(isError);
  const left = { client: params.has("client"), principal: params.has("person") || !all.some((it) => it.principal), durationMs: isBrief };
  const isLeft = { ...left, variant: isBrief || all.every((it) => it.variant === all[0].variant) };
  return COLUMNS.filter(({ id }) => !isLeft[id]);
}

/** What Vary decided of a call that it did not send on, or else what the client read. */
function causeOf({ error, outcome, rule, isUnknownTool, variant }) {
  if (outcome === "denied" && rule) return `by \`${rule}\``;
  return isUnknownTool && variant ? `\`${variant}\` does not list it` : firstLine(error);
}

const beginningOf = (call) => html` <span class="causes-of faint" title=${plain(call.error ?? "", 400)}>
  <${Name} value=${causeOf(call)} limit=${160} isSentence=${!call.server || causeOf(call) !== firstLine(call.error)} /></span>`;

const meaningOf = (call) => OUTCOMES[kindOf(call)]?.[1];
const TIME_FILTERS = ["minutes", "from", "to"];

/** The fields that narrow the list. On a phone, a button shows all but the search. */
function Filters({ params, all, isOpen, toggle }) {
  const select = (name, label, options, others = {}) =>
    html`<${Choice} label=${label} value=${params.get(name) ?? ""} options=${[["", "all"], ...options]} onChange=${(value) => replace({ ...others, [name]: value, call: null })} />`;
  const values = (name, of) => [...new Set([...all.map(of), params.get(name)])].filter(Boolean).sort().map((it) => [it, plain(it, 40)]);
  const minutes = params.get("minutes");
  const times = { ...(minutes > 0 && { [minutes]: `the last ${plain(minutes)} minutes` }), ...PERIODS };
  const wrong = wrongIn(params);
  const people = values("person", (it) => it.principal);
  const number = filtersOf(params).filter((name) => !["q", "to"].includes(name)).length;
  return html`<div class="choices">
    <${Filter} label="Search calls" value=${params.get("q") ?? ""} onChange=${(q) => replace({ q, call: null })} hint="tool, person, error" />
    <button type="button" class="fold" aria-expanded=${String(isOpen)} onClick=${toggle}>Filters${number > 0 && ` (${number})`}</button>
    ${select("client", "Client", values("client", (it) => it.client?.name))}
    ${people.length > 0 && select("person", "Person", people)}
    ${select("server", "Server", values("server", (it) => it.server))}
    ${select("outcome", "Outcome", [["error", "any error"], ["invalid", "any invalid call"], ...Object.entries(OUTCOMES).map(([id, [text]]) => [id, text])])}
    ${select("minutes", "Time", Object.entries(times), { from: null, to: null })}
    <${Time} ...${{ params, wrong }} /></div>
  ${wrong && html`<p id="times" class="bad" role="alert">“${plain(wrong, 40)}” is not a time. Write ${TIMES}, or 14:05 to 14:30.</p>`}`;
}

const wrongIn = (params) => ["from", "to"].map((name) => params.get(name)).find((text) => text && !(secondsOf(text) > 0));
/** The seconds before and after a time that one writes. */
const AROUND = 300;
/** The time of the address as one writes it: a minute, as the bars have it, or two. */
const timeIn = (params) => ["from", "to"].map((name) => writtenMinute(secondsOf(params.get(name) ?? ""))).filter(Boolean).join(" to ");

/** A field for a time, which the list has with five minutes before and after it, or for two. */
class Time extends Component {
  change = ({ target }) => {
    const [first, last, ...others] = target.value.trim().split(/ +to +/).map(secondsOfWritten);
    const [from, to] = last === undefined ? [first - AROUND, first + AROUND] : [first, last];
    const isTime = from > 0 && to > 0 && others.length === 0;
    this.setState({ typed: null });
    replace({ minutes: null, from: isTime ? addressOfMinute(from) : target.value, to: isTime && addressOfMinute(to), call: null });
  };

  render({ params, wrong }, { typed }) {
    const properties = wrong && { "aria-invalid": "true", "aria-describedby": "times" };
    return html`<label class="field">At
      <input value=${typed ?? wrong ?? timeIn(params)} ...${properties} placeholder="10m ago" title=${`${TIMES}, with 5 minutes before and after it; or 14:05 to 14:30`}
        size="10" autocomplete="off" onInput=${({ target }) => this.setState({ typed: target.value })} onChange=${this.change} />
    </label>`;
  }
}

/** The filters that no field shows, as links that take them away, and what failed of the calls that the other ones want. */
function Chosen({ params, all, status }) {
  const { errors, denied } = failures(narrowed(all, params, ["outcome"]));
  const toggle = (outcome, number, textOf) => {
    const isSet = params.get("outcome") === outcome;
    const since = TIME_FILTERS.some((name) => params.has(name)) ? 0 : total(failuresWith(status, { ...Object.fromEntries(params), outcome }));
    const text = since > number ? `${count(number)} kept of ${textOf(since)}` : textOf(number);
    return (number > 0 || isSet) && html`<li><a href=${narrow({ outcome: isSet ? null : outcome })} aria-current=${isSet ? "true" : undefined}>${text}</a></li>`;
  };
  const chosen = FIXED.map((name) => [name, params.get(name)]).filter(([, value]) => value).map(
    ([name, value]) => html`<li><a href=${narrow({ [name]: null })} aria-label=${`${name}: ${plain(value, 40)}; remove this filter`}>${name}: <${Name} value=${value} limit=${40} /> <b aria-hidden="true">×</b></a></li>`,
  );
  return html`<ul class="filters" aria-label="Filters of the calls">${chosen}${toggle("error", errors, (number) => plural(number, "error"))}${toggle("denied", denied, (number) => `${count(number)} denied`)}</ul>`;
}

/** Figures of the calls in the list, which is bounded. */
function Summary({ calls, all, params, children }) {
  const times = calls.map((it) => it.durationMs);
  const added = calls.filter((it) => typeof it.serverMs === "number").map((it) => it.durationMs - it.serverMs);
  const dropped = log.dropped > 0 ? ` · ${plural(log.dropped, "call")} came too fast to be shown` : "";
  const p = (numbers, percent) => milliseconds(percentile(numbers, percent));
  const variants = new Set(all.map((it) => it.variant));
  const number = `${plural(calls.length, "call")}${calls.length < all.length ? ` of ${count(all.length)}` : ""}`;
  const which = [number, timeIn(params), variants.size === 1 && all[0].variant && `variant ${plain(all[0].variant, 40)}`].filter(Boolean);
  const figures = `p50 ${p(times, 50)}, p99 ${p(times, 99)} · outside the server: p50 ${p(added, 50)}, p99 ${p(added, 99)}`;
  return html`<p class="note figures">${which.join(", ")} · ${figures}${dropped}${children}</p>`;
}

/** The most rows of a table by a value, and the most people or clients of a row. */
const [MOST_GROUPS, MOST_VALUES] = [50, 2];
/** The calls by a value of theirs, those with the most first. */
export const grouped = (calls, valueOf) => [...Map.groupBy(calls, valueOf)].sort(([, a], [, b]) => total(b) - total(a));

/** What was called or what failed by a value, how often and by whom; each leads to its calls. */
function By({ calls, params, what, valueOf }) {
  const groups = grouped(calls.filter(valueOf), valueOf);
  const rows = groups.slice(0, MOST_GROUPS).map(([value, some]) => {
    const filters = { ...Object.fromEntries(params), call: null, [what]: value };
    return [
      html`<a href=${link("now", filters)}><${Name} value=${value} limit=${what === "tool" ? 60 : 160} /></a>`,
      html`<${CallCount} number=${some.length} filters=${filters} what=${`calls of ${value}`} />`,
      ...(what === "tool" ? [html`<${CallCount} number=${some.filter(isError).length} filters=${{ ...filters, outcome: "error" }} what=${`errors of ${value}`} />`] : []),
      timeOfDay(some[0].at),
      mostOf(some, (it) => it.client?.name, (client) => ({ ...filters, client })),
      mostOf(some, (it) => it.principal, (person) => ({ ...filters, person })),
    ];
  });
  return html`<details>
    <summary>By ${what}${groups.length > MOST_GROUPS && `, the first ${MOST_GROUPS}`}</summary>
    <${PlainTable} label=${`Calls by ${what}`} columns=${[what, "#calls", ...(what === "tool" ? ["#errors"] : []), "last", "clients", "people"]} rows=${rows} />
  </details>`;
}

/** The values that most of the calls have, as links to those with each; the others in a title. */
export function mostOf(calls, valueOf, filtersOf) {
  const groups = grouped(calls.filter(valueOf), valueOf);
  const linkOf = ([it, some], at) => html`${at > 0 && ", "}<a href=${link("now", filtersOf(it))}><${Name} value=${it} limit=${30} /></a> ${count(total(some))}`;
  const others = groups.slice(MOST_VALUES).map(([it, some]) => `${plain(it, 30)} ${count(total(some))}`);
  if (groups.length === 0) return "–";
  return html`${groups.slice(0, MOST_VALUES).map(linkOf)}${others.length > 0 && html` <span title=${others.join(", ")}>and ${count(others.length)} more</span>`}`;
}

function CallFacts({ call, status, close }) {
  const title = html`<${Name} value=${call.method} />${" "}${call.target && html`<${LongText} value=${call.target} limit=${120} />`}`;
  const address = new URL(link("now", { call: keyOf(call) }), location).href;
  const box = createRef();
  return html`<${Panel} id="call" level="h3" ...${{ title, close }}>
    <${Result} ...${{ call, servers: status.servers }} />
    <${Copy} button="Copy the link" text=${address} box=${box} />
    <dl class="facts">${facts(call).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
    <p class="note">Its link: <code ref=${box}>${address}</code></p>
    ${call.method === "tools/call" && call.server && call.target && html`<${CalledTool} ...${{ call, keys: status.keys ?? [] }} />`}
    <p class="note">${call.arguments ? "Results are" : "Arguments and results are"} not kept; <code>audit</code> records what it is configured to.</p>
  <//>`;
}

/** What came of a call, and what the client read of it. */
function Result({ call, servers }) {
  const { outcome, code, error, rule, client, target } = call;
  const isNotListed = kindOf(call) === "not_listed";
  const down = isNotListed && servers.find(({ name, state }) => state === "down" && (target?.startsWith(`${name}_`) || error?.startsWith(`server \`${name}\``)));
  const isDecided = isNotListed || outcome === "denied";
  return html`<div class=${isError(call) || outcome === "denied" ? "problem" : ""}>
    <p><strong class=${`outcome ${outcome}`}>${outcomeOf(call)}${code ? `, code ${code}` : ""}</strong> ${meaningOf(call)}
      ${isNotListed && client?.name && html` · <a href=${linkToClient(client, call)}>Who gets what</a>`}
      ${down && html` · it may be one of <code><${Name} value=${down.name} limit=${60} /></code>, which is down`}
    </p>
    ${isError(call) && !error && html`<p class="note">Vary does not keep the text of this error any more, and the audit log has none.</p>`}
    ${outcome === "denied" && rule && html`<p>by the access rule or limit <${Rule} name=${rule} /></p>`}
    ${error && html`<h4>what the client read${isDecided && ": the same as of a name that no server has, so that it learns nothing of what is hidden"}</h4>
      ${error.split("\n").filter(Boolean).map((line) => html`<p class=${isDecided ? "" : "bad"}><${LongText} value=${line} limit=${400} isSentence=${!call.server} /></p>`)}`}
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
    const again = client?.name ? addressOfSeen(call, keys.find((key) => key === call.principal)) : {};
    return html`
      <p>
        <a href=${link("calls", { tool: toolKey(this.tool), ...again })} onClick=${() => prepare(this.tool, call.arguments)}>Call it as several clients</a> ·${" "}
        <a href=${link("variants", { tool: toolKey(this.tool), variant })}>see it in each variant</a></p>
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
    ["protocol", `${call.era?.replace("before-", "before ") ?? "–"}, over ${call.transport === "stdio" ? "stdio" : "HTTP"}`],
    ...(call.principal ? [["person", some(text(call.principal), "person", call.principal)]] : []),
    ["variant", text(call.variant)],
    ["selected by", call.reason ? html`${text(call.reason)}${call.variantRule && html`: <${Rule} name=${call.variantRule} />`}` : "–"],
    ...(call.rule && call.outcome !== "denied" ? [["access rule", html`<${Rule} name=${call.rule} />`]] : []),
    ["time taken", timeTaken(call)],
    ["bytes", `${count(call.bytesIn)} of the request, ${count(call.bytesOut)} of the answer`],
  ];
}

/** What the time of a call was spent on; from 100 ms on, one asks why the server did not get it earlier. */
function timeTaken({ durationMs, waitedMs, serverMs }) {
  const waited = waitedMs >= 100 && `, and ${milliseconds(waitedMs)} until the server got it: it waited for a start, a turn, a connection or an answer of the client`;
  return `${milliseconds(durationMs)}; of that the server ${milliseconds(serverMs)}${waited || ""}`;
}
