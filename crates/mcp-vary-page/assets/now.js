// The view of now: servers, clients, and the last calls as they come.

import { get, getTool, post } from "./api.js";
import { CallLog, MOST_CALLS, MOST_ERRORS, filtersOf, isError, narrowed } from "./calls.js";
import { addressOfSeen } from "./chooser.js";
import { Component, createRef, html } from "./dom.js";
import { count, duration, milliseconds, percentile, plural, share, timeOfDay } from "./format.js";
import { Grid } from "./grid.js";
import { CheckBox, Choice, Filter, Panel, Pending, PlainTable, Problem, Table } from "./parts.js";
import { link, linkWith, replace } from "./route.js";
import { Rule } from "./rule.js";
import { LongText, Name, plain, visible } from "./text.js";
import { Members } from "./tool.js";
import { ToolLink, toolKey } from "./variants.js";
import { ClientLink, linkToClient } from "./who.js";

export class Now extends Component {
  render({ status, error, failed, params }) {
    if (!status) return html`<${Pending} what="status" error=${error} />`;
    return html`
      <${Tiles} servers=${status.servers} savings=${status.savings} />
      <${Troubles} servers=${status.servers} canRetry=${status.retries} missingKeys=${status.missingKeys} />
      <div class="now">
        <${Calls} ...${{ failed, params }} changed=${() => this.setState({})} />
        <div class="aside">
          <${Servers} servers=${status.servers} />
          <${Clients} clients=${status.clients} />
          ${status.people?.length > 0 && html`<${People} people=${status.people} />`}
        </div>
        <div>
          <${Savings} savings=${status.savings} />
          <${Counts} status=${status} />
        </div>
      </div>
    `;
  }
}

/** The numbers that one looks at first. */
function Tiles({ servers, savings }) {
  const up = servers.filter(({ state }) => state === "up" || state === "per-user").length;
  const { calls } = log;
  return html`<dl class="tiles">
    <div><dt>servers up</dt><dd>${count(up)} of ${count(servers.length)}</dd></div>
    <div><dt>calls a minute</dt><dd><${CallCount} number=${calls && callsPerMinute(calls)} filters=${{ minutes: "1" }} what="calls of the last minute" /></dd></div>
    <div><dt>errors that are kept</dt><dd><${CallCount} number=${calls?.filter(isError).length} filters=${{ outcome: "error" }} what="errors" /></dd></div>
    <div><dt>tokens saved</dt><dd>${count(saved(savings.total))}</dd></div>
  </dl>`;
}

/** The calls of the last minute; if fewer seconds are kept, as many as came in each. */
function callsPerMinute(calls) {
  const now = Date.now() / 1000;
  const recent = calls.slice(0, MOST_CALLS).filter(({ at }) => at >= now - 60);
  if (recent.length < MOST_CALLS) return recent.length;
  return Math.round((recent.length * 60) / Math.max(1, now - recent.at(-1).at));
}

/** A number of calls as the link to them. */
function CallCount({ number, filters, what }) {
  if (!number) return count(number);
  return html`<a href=${link("now", filters)} aria-label=${`${count(number)}: show ${what}`}>${count(number)}</a>`;
}

/** The most servers that are all shown, whatever their state. */
const FEW_SERVERS = 10;

const hasErrors = ({ calls }) => calls?.errors > 0;

/** Servers with a trouble come first, then those with errors. Of many, the others are folded. */
function Servers({ servers }) {
  const kindOf = (server) => (troublesOf(server).length > 0 ? 0 : hasErrors(server) ? 1 : 2);
  const sorted = servers.toSorted((a, b) => kindOf(a) - kindOf(b));
  const shown = sorted.filter((it) => servers.length <= FEW_SERVERS || kindOf(it) < 2);
  const others = sorted.slice(shown.length);
  const empty = servers.length > 0 ? "No server needs you." : html`The configuration names no server. Add one to <code>servers</code>, then run <code>vary reload</code>.`;
  return html`
    <${Table} title="Servers" columns=${SERVER_COLUMNS} rows=${shown.map(serverRow)} empty=${empty} />
    ${others.length > 0 &&
    html`<details>
      <summary>${plural(others.length, "server")} without a trouble</summary>
      <${PlainTable} label="Servers without a trouble" columns=${SERVER_COLUMNS} rows=${others.map(serverRow)} />
    </details>`}
  `;
}

const SERVER_COLUMNS = ["server", "state", "for", "#tools", "#calls", "#errors", "#p50", "#p95", "skills"];

function serverRow({ name, state, since, tools, calls, skills }) {
  const server = plain(name, 40);
  return [
    html`<${Name} value=${name} />`,
    html`<span class=${`state ${state}`}>${state}</span>`,
    duration(since),
    count(tools),
    html`<${CallCount} number=${calls?.count} filters=${{ server: name }} what=${`calls of ${server}`} />`,
    html`<${CallCount} number=${calls?.errors} filters=${{ server: name, outcome: "error" }} what=${`errors of ${server}`} />`,
    milliseconds(calls?.p50),
    milliseconds(calls?.p95),
    skills ? "yes" : "–",
  ];
}

/** The most servers whose errors are shown above the table. */
const MOST_WITH_ERRORS = 4;

/** Why servers are down and when Vary tries again, what else their operator should do, and which servers have errors. */
class Troubles extends Component {
  /** By the name of a server: when somebody had Vary try it, and why it was down then. */
  state = { tried: {} };

  retry = async ({ name, reason }) => {
    const note = (outcome) => this.setState(({ tried }) => ({ tried: { ...tried, [name]: { at: Date.now() / 1000, reason, ...outcome } } }));
    note({});
    await post(`/api/retry?${new URLSearchParams({ server: name })}`, {}).catch((error) => note({ error }));
  };

  render({ servers, canRetry, missingKeys = [] }, { tried }) {
    const isShown = (server) => tried[server.name] || troublesOf(server).length > 0;
    const failing = servers.filter((it) => hasErrors(it) && !isShown(it)).slice(0, MOST_WITH_ERRORS);
    const shown = [...servers.filter(isShown), ...failing];
    const retry = canRetry && this.retry;
    return html`
      ${missingKeys.map((why) => html`<p class="problem"><strong>Keys of an issuer are missing.</strong> <${LongText} value=${why} /></p>`)}
      ${shown.length > 0
        ? html`<ul class="troubles" aria-label="Troubles of servers">${shown.map((server) => html`<${Trouble} key=${server.name} ...${{ server, retry }} tried=${tried[server.name]} />`)}</ul>`
        : servers.length > 0 && html`<p class="note">All servers can be used.</p>`}
    `;
  }
}

/** The troubles and errors of a server, and the button that has Vary try it at once. */
function Trouble({ server, retry, tried }) {
  const { name, state, stderr, nextAttempt } = server;
  const troubles = troublesOf(server);
  const sentences = [...troubles, ...(hasErrors(server) ? [errorsOf(server)] : [])];
  return html`<li class=${troubles.length > 0 ? "" : "errors"}>
    <div>
      ${(sentences.length > 0 ? sentences : [`is ${state}`]).map((it) => html`<div><strong><${Name} value=${name} /></strong> ${it}</div>`)}
      ${stderr && html`<pre title="the last lines of its standard error">${visible(stderr.join("\n"), true)}</pre>`}
      ${tried?.error && html`<${Problem} what="It was not tried." error=${tried.error} />`}
    </div>
    ${(state === "down" || tried) &&
    html`<div class="try">
      ${state === "down" && retry && html`<button type="button" aria-label=${`Try now: ${plain(name, 40)}`} onClick=${() => retry(server)}>Try now</button>`}
      <div role="status">${tried && !tried.error && outcomeOfTry(server, tried)}</div>
      ${nextAttempt > 0 && `next attempt in ${nextAttempt}\u00A0s`}
    </div>`}
  </li>`;
}

/** Seconds until the status has what came of a try that fails at once. */
const TRY = 1.5;

function outcomeOfTry({ state, reason, nextAttempt }, tried) {
  if (state === "down" && (nextAttempt === 0 || Date.now() / 1000 - tried.at < TRY)) return "trying …";
  const outcome = state !== "down" ? `it is ${state}` : reason === tried.reason ? "the same error" : "another error";
  return html`${outcome},<br />tried at ${timeOfDay(tried.at)}`;
}

/** How many calls of a server failed, and what the last of them answered. */
function errorsOf({ name, calls }) {
  const last = log.calls?.find((it) => it.server === name && isError(it));
  const number = html`<${CallCount} number=${calls.errors} filters=${{ server: name, outcome: "error" }} what=${`errors of ${plain(name, 40)}`} />`;
  return html`failed ${number} of ${plural(calls.count, "call")} (${share(calls.errors, calls.count)})
    <div class="last">${last ? html`${timeOfDay(last.at)} <${Name} value=${last.error ?? outcomeOf(last)} limit=${200} />` : "\u00A0"}</div>`;
}

function troublesOf({ state, since, reason, name, nextAttempt, failedLists = {}, listFaults = [], login }) {
  const sentence = (text) => html`<${LongText} value=${text} limit=${200} isSentence />`;
  const troubles = Object.entries(failedLists).map(([method, why]) => html`cannot be read (${method}): ${sentence(why)}`);
  if (reason) {
    const why = reason.replace(`server \`${name}\`: `, "");
    troubles.unshift(html`has been ${state} for ${duration(since)}: ${sentence(why)}${nextAttempt === 0 && "; it is being tried again"}`);
  }
  troubles.push(...listFaults.map(sentence));
  if (login?.ended) troubles.push(html`needs a new login: <code>vary login</code>`);
  return troubles;
}

/** In the order of the names, so that no row moves as calls come. */
const byName = (name) => (a, b) => name(a).localeCompare(name(b));

/** A person as the link to their calls. */
function PersonLink({ person }) {
  return html`<a href=${link("now", { person })}><${Name} value=${person} limit=${40} /></a>`;
}

function Clients({ clients }) {
  const columns = ["client", "version", "variant", "why", "#requests", "#calls", "last"];
  const sorted = clients.toSorted(byName(({ client, variant }) => [client.name, client.version, variant].join(" ")));
  const rows = sorted.map(({ client, variant, reason, rule, requests, calls, last }) => [
    client.name ? html`<a href=${linkToClient(client, { variant, reason, variantRule: rule, at: last })}><${Name} value=${client.name} limit=${60} /></a>` : html`<i class="faint">sends no name</i>`,
    client.version ? html`<${Name} value=${client.version} limit=${24} />` : "–",
    variant ? html`<${Name} value=${variant} limit=${40} />` : "–",
    html`<${Why} ...${{ client, reason }} seen=${{ variant, reason, variantRule: rule, at: last }} />`,
    count(requests),
    client.name ? html`<${CallCount} number=${calls} filters=${{ client: client.name }} what=${`calls of ${plain(client.name, 40)}`} />` : count(calls),
    timeOfDay(last),
  ]);
  const empty = html`No client yet. Connect one: <code>vary connect</code> prints the lines for it.`;
  return html`<${Table} title="Clients" ...${{ columns, rows, empty }} />`;
}

/** With `auth`: who, by the name that the operator gave. */
function People({ people }) {
  const columns = ["person", "#requests", "#calls", "#refused", "#tokens of results", "last"];
  const rows = people.toSorted(byName((it) => it.person)).map(({ person, requests, calls, refused, tokens, last }) => [
    html`<${PersonLink} person=${person} />`,
    count(requests),
    html`<${CallCount} number=${calls} filters=${{ person }} what=${`calls of ${plain(person, 40)}`} />`,
    html`<${CallCount} number=${refused} filters=${{ person, outcome: "denied" }} what=${`what was refused to ${plain(person, 40)}`} />`,
    count(tokens),
    timeOfDay(last),
  ]);
  return html`<${Table} title="People" ...${{ columns, rows }} />`;
}

/** The tokens that lists and results cost less. */
const saved = (cost) => Math.max(0, cost.without - cost.with);

/** What clients saved since the start, and all of them on each of the last days. */
function Savings({ savings: { clients, days } }) {
  const costs = (cost) => [count(cost.with), count(cost.without), count(saved(cost)), share(saved(cost), cost.without)];
  const figures = ["#tokens", "#without Vary", "#saved", "#share"];
  const sorted = clients.toSorted(byName(({ client, person }) => [client, person].join(" ")));
  const rows = sorted.map(({ client, person, ...cost }) => [
    client ? html`<${Name} value=${client} limit=${60} />` : html`<i class="faint">sends no name</i>`,
    person ? html`<${PersonLink} person=${person} />` : "–",
    ...costs(cost),
  ]);
  const byDay = Object.entries(days).reverse();
  if (rows.length === 0 && byDay.length === 0) return null;
  const sum = byDay.reduce((total, [, cost]) => total + saved(cost), 0);
  const empty = "No list and no result yet since the start.";
  return html`<${Table} title="Tokens saved" columns=${["client", "person", ...figures]} ...${{ rows, empty }} />
    ${byDay.length > 0 && html`<details>
      <summary>In the last 30 days: ${plural(sum, "token")}</summary>
      <${PlainTable} label="Tokens saved by day" columns=${["day", ...figures]} rows=${byDay.map(([day, cost]) => [day, ...costs(cost)])} />
    </details>`}`;
}

/** What selected the variant of a client, and the link to the explanation. */
function Why({ client, reason, seen }) {
  const by = reason ? `by ${reason}` : "explain";
  return html`<a href=${linkToClient(client, seen)} aria-label=${`${by}: what ${plain(client.name) || "this client"} gets`}>${by}</a>`;
}

const log = new CallLog();

class Calls extends Component {
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
  componentDidUpdate(before) {
    const { params } = this.props;
    if (before.params.toString() === params.toString()) return;
    this.setState({ open: null, calls: log.calls });
    if (!document.activeElement.closest(".choices")) this.heading.current?.focus();
  }

  /** Rows do not move under a pointer or the focus. */
  isHeld() {
    return this.state.paused || this.state.open || this.list.current?.matches(":hover, :focus-within");
  }

  pause = (event) => this.setState({ paused: event.target.checked, calls: log.calls });

  close = () => this.setState({ open: null }, () => this.grid.current?.refocus());

  render({ params }, { calls: all = [], paused, open, error }) {
    const calls = narrowed(all, params);
    return html`<section class="calls" aria-labelledby="calls">
      <h2 id="calls" tabindex="-1" ref=${this.heading}>Calls</h2>
      ${error && html`<${Problem} what="The calls are not followed at the moment." error=${error} />`}
      ${all.length > 0 && html`<${Filters} ...${{ params, all }} />`}
      ${calls.length === 0
        ? html`<p class="empty">${all.length > 0 ? "None of the calls that Vary keeps." : "No call yet. Calls appear here as clients make them."}</p>`
        : html`<${Summary} calls=${calls} all=${all} />
            <div ref=${this.list} class=${open ? "split" : ""}>
              <${Grid} handle=${this.grid} label="Calls, the latest first" columns=${columnsOf(all)} rows=${calls} cell=${callCell}
                open=${(call) => this.setState({ open: call })} selected=${(call) => call.id === open?.id} />
              ${open && html`<${CallFacts} key=${open.id} call=${open} close=${this.close} />`}
            </div>
            <div class="choices note">
              <${CheckBox} checked=${paused} onChange=${this.pause}>hold the list still (it also waits while you point at it)<//>
              <span>Vary keeps the last ${count(MOST_CALLS)}, and ${MOST_ERRORS} older errors.</span>
            </div>`}
    </section>`;
  }
}

const COLUMNS = [
  { id: "at", head: "time", kind: "c-time" },
  { id: "outcome", head: "outcome", kind: "c-short" },
  { id: "target", head: "call", kind: "c-name" },
  { id: "client", head: "client", kind: "c-client" },
  { id: "principal", head: "person", kind: "c-short" },
  { id: "variant", head: "variant", kind: "c-short" },
  { id: "durationMs", head: "time taken", kind: "c-number" },
];

/** Without `auth` there are no people. */
const columnsOf = (calls) => (calls.some((it) => it.principal) ? COLUMNS : COLUMNS.filter(({ id }) => id !== "principal"));

function callCell(call, { id }) {
  if (id === "at") return timeOfDay(call.at);
  if (id === "target") return isOfTool(call) ? html`<${ToolLink} tool=${toolOf(call)} variant=${call.variant} shown=${call.target} />` : html`<${Name} value=${call.target ?? call.method} />`;
  if (id === "client" && call.client?.name) return html`<a href=${linkToClient(call.client, call)} tabindex="-1"><${Name} value=${call.client.name} limit=${40} /></a>`;
  if (id === "client") return "–";
  if (id === "principal" && call.principal) return html`<a href=${linkWith({ person: call.principal })} tabindex="-1"><${Name} value=${call.principal} limit=${40} /></a>`;
  if (id === "outcome") return html`<span class=${`outcome ${call.outcome}`} title=${MEANINGS[call.outcome]}>${outcomeOf(call)}</span>`;
  if (id === "durationMs") return milliseconds(call.durationMs);
  return html`<${Name} value=${call[id] ?? "–"} limit=${40} />`;
}

/** Whether a tool that a server lists was called. */
const isOfTool = ({ method, server, target }) => method === "tools/call" && server && target;

/** The tool as its server names it. */
const toolOf = ({ server, upstreamName, target }) => ({ server, name: upstreamName ?? target });

const outcomeOf = ({ outcome }) => (outcome === "allowed" ? "ok" : spaced(outcome));

/** What each outcome means. */
const MEANINGS = {
  allowed: "answered with a result",
  error: "answered with an error instead of a result",
  tool_error: "the tool ran, and reports that it failed",
  denied: "Vary refused it, and sent nothing to a server",
  cancelled: "the client did not wait for the answer",
};

/** The times to choose from, by minutes. */
const TIMES = { 1: "the last minute", 5: "the last 5 minutes", 60: "the last hour" };

/** What narrows the list by a field of its own. */
const FIELDS = ["q", "client", "minutes"];

/** The fields that narrow the list, the other filters as links that take them away, and some that can be set. */
function Filters({ params, all }) {
  const chosen = filtersOf(params).filter((name) => !FIELDS.includes(name)).map(
    (name) => html`<li><a href=${linkWith({ [name]: null })} aria-label=${`${name}: ${plain(params.get(name), 40)}; remove this filter`}>${name}: <${Name} value=${params.get(name)} limit=${40} /> <b aria-hidden="true">×</b></a></li>`,
  );
  const shown = params.get("outcome") ? [] : narrowed(all, params);
  const [errors, denied] = [shown.filter(isError).length, shown.filter((it) => it.outcome === "denied").length];
  const clients = new Set([...all.map((it) => it.client?.name), params.get("client")].filter(Boolean));
  const minutes = params.get("minutes");
  const times = { ...(minutes && { [minutes]: `the last ${plain(minutes)} minutes` }), ...TIMES };
  const select = (name, label, options) =>
    html`<${Choice} label=${label} value=${params.get(name) ?? ""} options=${[["", "all"], ...options]} onChange=${(value) => replace({ [name]: value })} />`;
  return html`<div class="choices">
    <${Filter} label="Search calls" value=${params.get("q") ?? ""} onChange=${(q) => replace({ q })} hint="tool, person, error text" />
    ${select("client", "Client", [...clients].sort().map((it) => [it, plain(it, 40)]))}
    ${select("minutes", "Time", Object.entries(times))}
    <ul class="filters" aria-label="Filters of the calls">
      ${chosen}
      ${errors > 0 && html`<li><a href=${linkWith({ outcome: "error" })}>${plural(errors, "error")}</a></li>`}
      ${denied > 0 && html`<li><a href=${linkWith({ outcome: "denied" })}>${count(denied)} denied</a></li>`}
    </ul>
  </div>`;
}

/** Figures of the calls in the list, which is bounded. */
function Summary({ calls, all }) {
  const errors = calls.filter(isError).length;
  const denied = calls.filter((it) => it.outcome === "denied").length;
  const times = calls.map((it) => it.durationMs);
  const added = calls.filter((it) => typeof it.serverMs === "number").map((it) => it.durationMs - it.serverMs);
  const dropped = log.dropped > 0 ? ` · ${plural(log.dropped, "call")} came too fast to be shown` : "";
  const p = (numbers, percent) => milliseconds(percentile(numbers, percent));
  const figures = [
    `${plural(errors, "error")}${denied > 0 ? `, ${count(denied)} denied` : ""}`,
    `p50 ${p(times, 50)}, p99 ${p(times, 99)}`,
    `of that by Vary: p50 ${p(added, 50)}, p99 ${p(added, 99)}`,
  ];
  const number = `${plural(calls.length, "call")}${calls.length < all.length ? ` of ${count(all.length)}` : ""}`;
  return html`<p class="note figures">${[number, ...figures].join(" · ")}${dropped}</p>`;
}

function CallFacts({ call, close }) {
  const title = html`<${Name} value=${call.method} />${" "}${call.target && html`<${LongText} value=${call.target} limit=${120} />`}`;
  return html`<${Panel} id="call" level="h3" ...${{ title, close }}>
    <${Result} call=${call} />
    <dl class="facts">${facts(call).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
    ${isOfTool(call) && html`<${CalledTool} call=${call} />`}
    <p class="note">
      ${call.arguments ? "Results are" : "Arguments and results are"} not kept; <code>audit</code> records what it is
      ${" "}configured to.
    </p>
  <//>`;
}

/** What came of a call, and what the client read of it. */
function Result({ call }) {
  const { outcome, code, error, rule } = call;
  return html`<div class=${isError(call) || outcome === "denied" ? "problem" : ""}>
    <p><strong class=${`outcome ${outcome}`}>${outcomeOf(call)}${code ? `, code ${code}` : ""}</strong> ${MEANINGS[outcome] ?? ""}</p>
    ${outcome === "denied" && rule && html`<p>by the access rule or limit <${Rule} name=${rule} /></p>`}
    ${error && html`<h4>what the client read</h4><p class="bad"><${LongText} value=${error} limit=${400} isSentence=${!call.server} /></p>`}
  </div>`;
}

/** What the client was told of the tool that it called, beside the server's own definition. */
class CalledTool extends Component {
  tool = toolOf(this.props.call);

  async componentDidMount() {
    try {
      const [definitions, catalog] = await Promise.all([getTool(this.tool), get("/api/catalog")]);
      const row = catalog.tools.find((it) => toolKey(it) === toolKey(this.tool));
      this.setState({ definitions, fixed: row?.variants[this.props.call.variant]?.fixed ?? [] });
    } catch (error) {
      this.setState({ error });
    }
  }

  render({ call }, { definitions, fixed, error }) {
    const { variant, client } = call;
    const known = definitions && variant && Object.hasOwn(definitions.variants, variant) ? definitions.variants[variant] : null;
    const isSame = known && JSON.stringify(known) === JSON.stringify(definitions.original);
    const again = client?.name ? addressOfSeen(client) : {};
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
    value ? html`${shown} · <a href=${linkWith({ [filter]: value })} aria-label=${`only these: calls of this ${filter}`}>only these</a>` : shown;
  return [
    ["time", new Date(call.at * 1000).toISOString()],
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

/** The members of the status that count what the gateway holds. */
const HELD = [
  "sessions", "streams", "listeners", "subscriptions", "pendingServerRequests", "suspendedCalls", "proxiedTasks", "dedicatedConnections",
];

/** What the gateway holds, and what it refused. */
function Counts({ status }) {
  const rows = [
    ...HELD.map((name) => [spaced(name), count(status[name])]),
    ["memory of requests and subscriptions", `${plural(status.memory, "byte")}`],
    ["memory of shortened results", `${plural(status.resultStore, "byte")}`],
    ...Object.entries(status.counters ?? {}).map(([name, number]) => [spaced(name), count(number)]),
  ];
  return html`<details>
    <summary>Counts</summary>
    <dl class="counts">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
  </details>`;
}

/** `pendingServerRequests` as words. */
function spaced(name) {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).replaceAll("_", " ");
}
