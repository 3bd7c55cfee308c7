// The view of now: servers, clients, and the last calls as they come.

import { get, post } from "./api.js";
import { CallLog, MOST_CALLS, MOST_ERRORS, filtersOf, isError, narrowed } from "./calls.js";
import { addressOfSeen } from "./chooser.js";
import { Component, createRef, html } from "./dom.js";
import { count, duration, milliseconds, percentile, plural, timeOfDay } from "./format.js";
import { Grid } from "./grid.js";
import { Pending, PlainTable, Problem, Table, showPanel } from "./parts.js";
import { link, linkWith } from "./route.js";
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
      <${Servers} servers=${status.servers} canRetry=${status.retries} />
      <${Clients} clients=${status.clients} />
      ${status.people?.length > 0 && html`<${People} people=${status.people} />`}
      <${Savings} savings=${status.savings} />
      <${Calls} ...${{ failed, params }} changed=${() => this.setState({})} />
      <${Counts} status=${status} />
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
const FEW_SERVERS = 6;

/** Servers with a trouble come first. Of many, the others are folded. */
function Servers({ servers, canRetry }) {
  const isTroubled = (server) => troublesOf(server).length > 0;
  const [troubled, healthy] = [servers.filter(isTroubled), servers.filter((it) => !isTroubled(it))];
  const isFolded = servers.length > FEW_SERVERS;
  const rows = (isFolded ? troubled : [...troubled, ...healthy]).map(serverRow);
  const empty = isFolded ? "No server needs you." : html`The configuration names no server. Add one to <code>servers</code>, then run <code>vary reload</code>.`;
  return html`
    <${Table} title="Servers" columns=${SERVER_COLUMNS} note=${html`<${Troubles} ...${{ servers, canRetry }} />`} ...${{ rows, empty }} />
    ${isFolded &&
    html`<details>
      <summary>${plural(healthy.length, "server")} without a trouble</summary>
      <${PlainTable} label="Servers without a trouble" columns=${SERVER_COLUMNS} rows=${healthy.map(serverRow)} />
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

/** Why servers are down and when Vary tries again, and what else their operator should do. */
function Troubles({ servers, canRetry }) {
  const item = (name, why) => html`<li><strong><${Name} value=${name} /></strong> ${why}</li>`;
  const troubles = servers.flatMap((server) => troublesOf(server, canRetry).map((why) => item(server.name, why)));
  if (troubles.length === 0) return servers.length > 0 ? "All servers can be used." : null;
  return html`<ul class="troubles">${troubles}</ul>`;
}

function troublesOf({ name, state, since, reason, stderr, nextAttempt, failedLists = {}, listFaults = [], login }, canRetry) {
  const sentence = (text) => html`<${LongText} value=${text} limit=${200} isSentence />`;
  const troubles = Object.entries(failedLists).map(([method, why]) => html`cannot be read (${method}): ${sentence(why)}`);
  if (reason) {
    const why = reason.replace(`server \`${name}\`: `, "");
    troubles.unshift(html`is ${state} for ${duration(since)}: ${sentence(why)}${again(nextAttempt)}
      ${state === "down" && canRetry && html`<${TryNow} server=${name} />`}
      ${stderr && html`<pre title="the last lines of its standard error">${visible(stderr.join("\n"), true)}</pre>`}`);
  }
  troubles.push(...listFaults.map(sentence));
  if (login?.ended) troubles.push(html`needs a new login: <code>vary login</code>`);
  return troubles;
}

/** Has Vary try a server at once. The status shows the outcome. */
class TryNow extends Component {
  retry = async () => {
    try {
      await post(`/api/retry?${new URLSearchParams({ server: this.props.server })}`, {});
      this.setState({ error: null });
    } catch (error) {
      this.setState({ error });
    }
  };

  render({ server }, { error }) {
    return html`<button type="button" class="quiet" aria-label=${`Try now: ${plain(server, 40)}`} onClick=${this.retry}>Try now</button>
      ${error && html`<${Problem} what="It was not tried." error=${error} />`}`;
  }
}

function again(seconds) {
  if (seconds === undefined) return "";
  return seconds === 0 ? "; it is being tried again" : `; next attempt in ${seconds}\u00A0s`;
}

function Clients({ clients }) {
  const columns = ["client", "version", "variant", "why", "#requests", "#calls", "last"];
  const rows = clients.map(({ client, variant, reason, rule, requests, calls, last }) => [
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
  const rows = people.map(({ person, requests, calls, refused, tokens, last }) => [
    html`<${Name} value=${person} limit=${60} />`,
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
  const costs = (cost) => [count(cost.with), count(cost.without), count(saved(cost))];
  const figures = ["#tokens", "#without Vary", "#saved"];
  const rows = clients.map(({ client, person, ...cost }) => [
    client ? html`<${Name} value=${client} limit=${60} />` : html`<i class="faint">sends no name</i>`,
    person ? html`<${Name} value=${person} limit=${40} />` : "–",
    ...costs(cost),
  ]);
  const byDay = Object.entries(days).reverse();
  if (rows.length === 0 && byDay.length === 0) return null;
  const sum = byDay.reduce((total, [, cost]) => total + saved(cost), 0);
  const empty = "No list and no result yet since the start.";
  return html`<${Table} title="Tokens saved" columns=${["client", "person", ...figures]} ...${{ rows, empty }} />
    ${byDay.length > 0 && html`<details>
      <summary>In the last 30 days: ${count(sum)} tokens</summary>
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

  /** A link to some calls shows them. */
  componentDidUpdate(before) {
    const { params } = this.props;
    if (before.params.toString() === params.toString()) return;
    this.setState({ open: null, calls: log.calls });
    this.heading.current?.focus();
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
            <label class="choice">
              <input type="checkbox" checked=${paused} onChange=${this.pause} /> hold the list still (it also waits while
              ${" "}you point at it)
            </label>
            <div ref=${this.list} class=${open ? "split" : ""}>
              <${Grid} handle=${this.grid} label="Calls, the latest first" columns=${columnsOf(all)} rows=${calls} cell=${callCell}
                open=${(call) => this.setState({ open: call })} selected=${(call) => call.id === open?.id} />
              ${open && html`<${CallFacts} key=${open.id} call=${open} close=${this.close} />`}
            </div>`}
    </section>`;
  }
}

const COLUMNS = [
  { id: "at", head: "time", kind: "c-time" },
  { id: "target", head: "call", kind: "c-name" },
  { id: "client", head: "client", kind: "c-client" },
  { id: "principal", head: "person", kind: "c-client" },
  { id: "variant", head: "variant", kind: "c-short" },
  { id: "outcome", head: "outcome", kind: "c-short" },
  { id: "durationMs", head: "time taken", kind: "c-number" },
];

/** Without `auth` there are no people. */
const columnsOf = (calls) => (calls.some((it) => it.principal) ? COLUMNS : COLUMNS.filter(({ id }) => id !== "principal"));

function callCell(call, { id }) {
  if (id === "at") return timeOfDay(call.at);
  if (id === "target") return isOfTool(call) ? html`<${ToolLink} tool=${toolOf(call)} variant=${call.variant} shown=${call.target} />` : html`<${Name} value=${call.target ?? call.method} />`;
  if (id === "client" && call.client?.name) return html`<a href=${linkToClient(call.client, call)} tabindex="-1"><${Name} value=${call.client.name} limit=${40} /></a>`;
  if (id === "client") return "–";
  if (id === "outcome") return html`<span class=${`outcome ${call.outcome}`}>${outcomeOf(call)}</span>`;
  if (id === "durationMs") return milliseconds(call.durationMs);
  return html`<${Name} value=${call[id] ?? "–"} limit=${40} />`;
}

/** Whether a tool that a server lists was called. */
const isOfTool = ({ method, server, target }) => method === "tools/call" && server && target;

/** The tool as its server names it. */
const toolOf = ({ server, upstreamName, target }) => ({ server, name: upstreamName ?? target });

const outcomeOf = ({ outcome }) => (outcome === "allowed" ? "ok" : spaced(outcome));

/** The filters of the list, each as a link that takes it away, and some that can be set. */
function Filters({ params, all }) {
  const chosen = filtersOf(params).map(
    (name) => html`<li><a href=${linkWith({ [name]: null })} aria-label=${`${name}: ${plain(params.get(name), 40)}; remove this filter`}>${name}: <${Name} value=${params.get(name)} limit=${40} /> <b aria-hidden="true">×</b></a></li>`,
  );
  const denied = all.filter((it) => it.outcome === "denied").length;
  const offered = [
    [all.filter(isError).length, "errors", { outcome: "error" }],
    [denied, "denied", { outcome: "denied" }],
    [narrowed(all, new URLSearchParams({ minutes: 5 })).length, "in the last 5 minutes", { minutes: "5" }],
  ].filter(([number, , filter]) => number > 0 && !params.get(Object.keys(filter)[0]));
  return html`<ul class="filters" aria-label="Filters of the calls">
    ${chosen}
    ${offered.map(([number, what, filter]) => html`<li><a href=${linkWith(filter)}>${count(number)} ${what}</a></li>`)}
  </ul>`;
}

/** Figures of the calls in the list, which is bounded. */
function Summary({ calls, all }) {
  const errors = calls.filter(isError).length;
  const denied = calls.filter((it) => it.outcome === "denied").length;
  const times = calls.map((it) => it.durationMs);
  const added = calls.filter((it) => typeof it.serverMs === "number").map((it) => it.durationMs - it.serverMs);
  const dropped = log.dropped > 0 ? ` ${plural(log.dropped, "call")} came too fast to be shown.` : "";
  const p = (numbers, percent) => milliseconds(percentile(numbers, percent));
  const figures = [
    `${plural(errors, "error")}${denied > 0 ? `, ${count(denied)} denied` : ""}`,
    `p50 ${p(times, 50)}, p99 ${p(times, 99)}`,
    `of that by Vary: p50 ${p(added, 50)}, p99 ${p(added, 99)}`,
  ];
  return html`<p class="note figures">
    ${plural(calls.length, "call")}${calls.length < all.length ? ` of ${count(all.length)}` : ""}; Vary keeps the last
    ${` ${count(MOST_CALLS)}, and of older ones ${MOST_ERRORS} errors.${dropped} ${figures.join(" · ")}`}
  </p>`;
}

class CallFacts extends Component {
  heading = createRef();

  componentDidMount() {
    showPanel(this.heading.current);
  }

  render({ call, close }) {
    const pressed = (event) => event.key === "Escape" && close();
    return html`<section class="panel" aria-labelledby="call" onKeyDown=${pressed}>
      <header>
        <h3 id="call" tabindex="-1" ref=${this.heading}>
          <${Name} value=${call.method} />${" "}${call.target && html`<${LongText} value=${call.target} limit=${120} />`}
        </h3>
        <button type="button" onClick=${close}>Close</button>
      </header>
      <dl class="facts">${facts(call).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
      ${isOfTool(call) && html`<${CalledTool} call=${call} />`}
      <p class="note">
        ${call.arguments ? "Results are" : "Arguments and results are"} not kept; <code>audit</code> records what it is
        ${" "}configured to.
      </p>
    </section>`;
  }
}

/** What the client was told of the tool that it called, beside the server's own definition. */
class CalledTool extends Component {
  tool = toolOf(this.props.call);

  async componentDidMount() {
    try {
      const { server, name } = this.tool;
      const [definitions, catalog] = await Promise.all([get(`/api/tool?${new URLSearchParams({ server, name })}`), get("/api/catalog")]);
      const row = catalog.tools.find((it) => toolKey(it) === toolKey(this.tool));
      this.setState({ definitions, fixed: row?.variants[this.props.call.variant]?.fixed ?? [] });
    } catch (error) {
      this.setState({ error });
    }
  }

  render({ call }, { definitions, fixed, error }) {
    const { variant, client } = call;
    const known = definitions && variant && Object.hasOwn(definitions.variants, variant) ? definitions.variants[variant] : null;
    const again = client?.name ? addressOfSeen(client) : {};
    return html`
      <p>
        <a href=${link("calls", { tool: toolKey(this.tool), ...again })}>Call it as several clients</a> ·${" "}
        <a href=${link("variants", { tool: toolKey(this.tool), variant })}>see it in each variant</a>
      </p>
      ${fixed?.length > 0 &&
      html`<p>Vary fixed ${plural(fixed.length, "argument")}: ${fixed.map((name, at) => html`${at > 0 && ", "}<code><${Name} value=${name} limit=${60} /></code>`)}</p>`}
      ${error && html`<${Problem} what="Its definitions cannot be shown." error=${error} />`}
      ${known && html`<h4>What the client sees of it, beside what the server lists</h4><${Members} before=${definitions.original} after=${known} />`}
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
    ...(call.error ? [["what the client read", text(call.error)]] : []),
    ["server", some(text(call.server), "server", call.server)],
    ["called as", some(text(call.target), "tool", call.target)],
    ["sent to the server as", text(call.upstreamName ?? call.target)],
    ...(call.arguments ? [["arguments", html`<code>${text(call.arguments)}</code>`]] : []),
    ["client", some(call.client?.name ? html`<${ClientLink} client=${call.client} seen=${call} />` : "–", "client", call.client?.name)],
    ["person", some(text(call.principal), "person", call.principal)],
    ["variant", text(call.variant)],
    ["selected by", call.reason ? html`${text(call.reason)}${call.variantRule && html`: <${Rule} name=${call.variantRule} />`}` : "–"],
    ["access rule or limit", call.rule ? html`<${Rule} name=${call.rule} />` : "–"],
    ["outcome", `${outcomeOf(call)}${call.code ? `, code ${call.code}` : ""}`],
    ["time taken", milliseconds(call.durationMs)],
    ["of that the server", milliseconds(call.serverMs)],
    ["bytes of the request", count(call.bytesIn)],
    ["bytes of the answer", count(call.bytesOut)],
  ];
}

/** The members of the status that count what the gateway holds. */
const HELD = [
  "sessions",
  "streams",
  "listeners",
  "subscriptions",
  "pendingServerRequests",
  "suspendedCalls",
  "proxiedTasks",
  "dedicatedConnections",
];

/** What the gateway holds, and what it refused. */
function Counts({ status }) {
  const rows = [
    ...HELD.map((name) => [spaced(name), count(status[name])]),
    ["memory of requests and subscriptions", `${count(status.memory)} bytes`],
    ["memory of shortened results", `${count(status.resultStore)} bytes`],
    ...Object.entries(status.counters ?? {}).map(([name, number]) => [spaced(name), count(number)]),
  ];
  return html`<section aria-labelledby="counts">
    <h2 id="counts">Counts</h2>
    ${(status.missingKeys ?? []).map(
      (why) => html`<p class="problem"><strong>Keys of an issuer are missing.</strong> <${LongText} value=${why} /></p>`,
    )}
    <dl class="counts">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
  </section>`;
}

/** `pendingServerRequests` as words. */
function spaced(name) {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).replaceAll("_", " ");
}
