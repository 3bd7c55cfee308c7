// The view of now: how many servers and calls there are, who makes them, and what was saved.

import { Calls } from "./call-list.js";
import { MOST_CALLS, PERIODS, callsWith, log, longestPeriod, longestPeriodName } from "./calls.js";
import { Component, html } from "./dom.js";
import { count, plural, share, spaced, startOf, timeOfDay } from "./format.js";
import { CallCount, Pending, PlainTable, Table } from "./parts.js";
import { link } from "./route.js";
import { ServerProblems, Servers } from "./servers.js";
import { Name } from "./text.js";
import { linkToClient } from "./who.js";

export class Now extends Component {
  render({ status, error, failed, params }) {
    if (!status) return html`<${Pending} what="status" error=${error} />`;
    const since = html` <span class="mark">counted since ${startOf(status)}</span>`;
    return html`
      <${Tiles} status=${status} />
      <${ServerProblems} status=${status} />
      <div class="now">
        <${Calls} ...${{ failed, params, status }} changed=${() => this.setState({})} />
        <div class="aside">
          <${Servers} servers=${status.servers} since=${since} />
          <${Clients} clients=${status.clients} since=${since} />
          ${status.people?.length > 0 && html`<${People} people=${status.people} since=${since} />`}
        </div>
        <div>
          <${Savings} savings=${status.savings} since=${since} />
          <${Counts} status=${status} />
        </div>
      </div>
    `;
  }
}

const LAST_MINUTE = { minutes: "1" };

/** The numbers that one looks at first. Each link leads to what it counts. */
function Tiles({ status }) {
  const { servers, savings } = status;
  const up = servers.filter(({ state }) => state === "up" || state === "per-user").length;
  const period = { minutes: longestPeriod() };
  const name = PERIODS[period.minutes];
  const number = (filters, what) => html`<${CallCount} number=${log.calls && callsWith(filters).length} ...${{ filters, what }} />`;
  const isCut = callsWith(LAST_MINUTE).length >= MOST_CALLS;
  return html`<dl class="tiles">
    <div><dt>servers up now</dt><dd>${count(up)} of ${count(servers.length)}</dd></div>
    <div><dt>calls in the last minute${isCut && ", at least"}</dt><dd>${number(LAST_MINUTE, "calls of the last minute")}</dd></div>
    <div><dt>calls failed in ${longestPeriodName()}</dt><dd>${number({ outcome: "error", ...period }, `errors of ${name}`)} of ${number(period, `calls of ${name}`)}</dd></div>
    <div><dt>tokens saved since ${startOf(status)}</dt><dd>${count(saved(savings.total))}</dd></div>
  </dl>`;
}

/** In the order of the names, so that no row moves as calls come. */
const byName = (name) => (a, b) => name(a).localeCompare(name(b));

/** A person as the link to their calls. */
const PersonLink = ({ person }) => html`<a href=${link("now", { person })}><${Name} value=${person} limit=${40} /></a>`;

/** A row for each version and variant of a client, which leads to its own calls. Failed calls are counted in the list. */
function Clients({ clients, since }) {
  const columns = ["client", "variant", "#requests", "#calls", "#failed", "#last"];
  const minutes = longestPeriod();
  const sorted = clients.toSorted(byName(({ client, variant }) => [client.name, client.version, variant].join(" ")));
  const rows = sorted.map(({ client, variant, reason, rule, requests, calls, last }) => {
    const { name, version } = client;
    const number = (number, filters, what) => (name ? html`<${CallCount} ...${{ number, filters }} what=${`${what} of ${name} ${version}`} />` : count(number));
    const own = { client: name, version, variant, reason };
    const failed = { ...own, outcome: "error", minutes };
    const shown = name ? html`<${Name} value=${name} limit=${32} />` : html`<i>sends no name</i>`;
    return [
      html`<a href=${linkToClient(client, { variant, reason, variantRule: rule, at: last })}>${shown}</a> ${version && html`<${Name} value=${version} limit=${24} />`}`,
      variant ? html`<span title=${`by ${reason}`}><${Name} value=${variant} limit=${24} /></span>` : "–",
      count(requests),
      number(calls, own, "calls"),
      number(log.calls && name ? callsWith(failed).length : undefined, failed, "errors"),
      timeOfDay(last),
    ];
  });
  const empty = html`No client yet. Connect one: <code>vary connect</code> prints the lines for it.`;
  const mark = html`${since}<span class="mark">, failed in ${longestPeriodName()}</span>`;
  return html`<${Table} title="Clients" ...${{ columns, rows, empty }} since=${mark} />`;
}

/** With `auth`: who, by the name that the operator gave. */
function People({ people, since }) {
  const columns = ["person", "#requests", "#calls", "#refused calls", "#tokens of results", "last"];
  const rows = people.toSorted(byName((it) => it.person)).map(({ person, requests, calls, refused, tokens, last }) => [
    html`<${PersonLink} person=${person} />`,
    count(requests),
    html`<${CallCount} number=${calls} filters=${{ person }} what=${`calls of ${person}`} />`,
    html`<${CallCount} number=${refused} filters=${{ person, outcome: "denied" }} what=${`refused calls of ${person}`} />`,
    count(tokens),
    timeOfDay(last),
  ]);
  return html`<${Table} title="People" ...${{ since, columns, rows }} />`;
}

/** The tokens that lists and results cost less. */
const saved = (cost) => Math.max(0, cost.without - cost.with);

/** What clients saved since the start, and all of them on each of the last days. */
function Savings({ savings: { clients, days }, since }) {
  const costs = (cost) => [count(cost.with), count(cost.without), count(saved(cost)), share(saved(cost), cost.without)];
  const figures = ["#tokens", "#without Vary", "#saved", "#share"];
  const sorted = clients.toSorted(byName(({ client, person }) => [client, person].join(" ")));
  const rows = sorted.map(({ client, person, ...cost }) => [
    client ? html`<${Name} value=${client} limit=${32} />` : html`<i class="faint">sends no name</i>`,
    person ? html`<${PersonLink} person=${person} />` : "–",
    ...costs(cost),
  ]);
  const byDay = Object.entries(days).reverse();
  if (rows.length === 0 && byDay.length === 0) return null;
  const sum = byDay.reduce((total, [, cost]) => total + saved(cost), 0);
  const empty = "No list and no result yet since the start.";
  const note = "What clients read, against the same tools and results as servers send them. What a variant hides is not counted: Variants shows what that saves.";
  return html`<${Table} title="Tokens saved" columns=${["client", "person", ...figures]} ...${{ since, note, rows, empty }} />
    ${byDay.length > 0 && html`<details>
      <summary>In the last 30 days: ${plural(sum, "token")}</summary>
      <${PlainTable} label="Tokens saved by day" columns=${["day", ...figures]} rows=${byDay.map(([day, cost]) => [day, ...costs(cost)])} />
    </details>`}`;
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
