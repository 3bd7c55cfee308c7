// The view of now: how many servers and calls there are, who makes them, and what was saved.

import { Calls } from "./call-list.js";
import { MOST_CALLS, callsWith, failuresWith, log, total } from "./calls.js";
import { OPERATOR, peopleOf } from "./client.js";
import { Component, html } from "./dom.js";
import { count, plural, share, startOf, timeOfDay } from "./format.js";
import { CallCount, Pending, PlainTable, Table } from "./parts.js";
import { Mistakes } from "./review.js";
import { link } from "./route.js";
import { ServerProblems, Servers } from "./servers.js";
import { FirstTen, Name } from "./text.js";
import { linkToClient } from "./who.js";

export class Now extends Component {
  render({ status, review, error, failed, params }) {
    if (!status) return html`<${Pending} what="status" error=${error} />`;
    const since = html` <span class="mark">since ${startOf(status)}</span>`;
    return html`
      <${Mistakes} review=${review} />
      <${Tiles} status=${status} />
      <${ServerProblems} status=${status} />
      <div class="now">
        <${Calls} ...${{ failed, params, status }} changed=${() => this.setState({})} />
        <div class="aside">
          <${Servers} status=${status} since=${since} />
          <${Clients} ...${{ status, since }} />
          ${status.people?.length > 0 && html`<${People} ...${{ status, since }} />`}
          <div><${Savings} savings=${status.savings} since=${since} /></div></div></div>
    `;
  }
}

/** The numbers that one looks at first. Each link leads to what it counts. */
function Tiles({ status }) {
  const { servers, savings } = status;
  const up = servers.filter(({ state }) => state === "up" || state === "per-user").length;
  const since = `since ${startOf(status)}`;
  const [lastMinute, failed, latest] = [{ minutes: "1" }, { outcome: "error" }, log.calls && callsWith({ minutes: "1" }).length];
  const number = (number, filters, what) => html`<${CallCount} ...${{ number, filters, what }} />`;
  const lost = total(failuresWith(status, { outcome: "session_lost" }));
  return html`<dl class="tiles">
    <div><dt>servers up now</dt><dd>${up < servers.length ? html`<a class="bad" href=${link("review")}>${count(up)} of ${count(servers.length)}</a>` : `${count(up)} of ${count(servers.length)}`}</dd></div>
    <div><dt>calls in the last minute</dt><dd>${number(latest, lastMinute, "calls of the last minute")}${latest >= MOST_CALLS && " or more"}</dd></div>
    <div><dt>calls failed ${since}${lost > 0 && `, ${count(lost)} of them as sessions were lost`}</dt><dd>${number(total(failuresWith(status, failed)), failed, `errors ${since}`)} of ${count(log.calls && (log.calls[0]?.id ?? 0))}</dd></div>
    <div><dt>tokens saved ${since}</dt><dd>${count(saved(savings.total))}</dd></div></dl>`;
}

/** In the order of the names, so that no row moves as calls come. */
const byName = (name) => (a, b) => name(a).localeCompare(name(b));

/** A row for each version and variant of a client, which leads to its own calls, and with `auth` to those of its people. */
function Clients({ status, since }) {
  const hasPeople = status.people?.length > 0;
  const columns = ["client", ...(hasPeople ? ["people"] : []), "variant", "#calls", "#failed", "#last"];
  const sorted = status.clients.toSorted(byName(({ client, variant }) => [client.name, client.version, variant].join(" ")));
  const rows = sorted.map(({ client, variant, reason, rule, calls, last }) => {
    const { name, version } = client;
    const number = (number, filters, what) => (name ? html`<${CallCount} ...${{ number, filters }} what=${`${what} of ${name} ${version}`} />` : count(number));
    const own = { client: name, version, variant, reason };
    const failed = { ...own, outcome: "error" };
    const people = [...callsWith(own), ...failuresWith(status, own)].map((it) => it.principal).filter((it) => it && it !== OPERATOR);
    const [person, another, ...others] = new Set(people.length > 0 ? people : peopleOf(status, name));
    const seen = { variant, reason, variantRule: rule, at: last, principal: another ? undefined : person };
    const shown = name ? html`<${Name} value=${name} limit=${32} />` : html`<i>sends no name</i>`;
    return [
      html`<a href=${linkToClient(client, seen)}>${shown}</a> ${version && html`<${Name} value=${version} limit=${24} />`}`,
      ...(hasPeople ? [linksOf([person, another, ...others].filter(Boolean))] : []),
      variant ? html`<span title=${`by ${reason}`}><${Name} value=${variant} limit=${24} /></span>` : "–",
      number(calls, own, "calls"),
      number(name ? total(failuresWith(status, failed)) : undefined, failed, "errors"),
      timeOfDay(last),
    ];
  });
  const empty = html`No client yet. Connect one: <code>vary connect</code> prints the lines for it.`;
  return html`<${Table} title="Clients" ...${{ since, columns, rows, empty }} />`;
}

/** A person as the link to their calls. */
const PersonLink = ({ person }) => html`<a href=${link("now", { person })}><${Name} value=${person} limit=${40} /></a>`;

const linksOf = (people) => (people.length > 0 ? html`<${FirstTen} all=${people} show=${(some) => some.map((it, at) => html`${at > 0 && ", "}<${PersonLink} person=${it} />`)} />` : "–");

/** With `auth`: who, by the name that the operator gave. */
function People({ status, since }) {
  const columns = ["person", "#calls", "#failed", "#refused", "#tokens of results", "#last"];
  const failed = (person) => ({ person, outcome: "error" });
  const rows = status.people.toSorted(byName((it) => it.person)).map(({ person, calls, refused, tokens, last }) => [
    html`<${PersonLink} person=${person} />`,
    html`<${CallCount} number=${calls} filters=${{ person }} what=${`calls of ${person}`} />`,
    html`<${CallCount} number=${total(failuresWith(status, failed(person)))} filters=${failed(person)} what=${`errors of ${person}`} />`,
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
  const sum = byDay.reduce((total, [, cost]) => total + saved(cost), 0);
  const note = "What clients read, against the same tools and results as servers send them. What a variant hides is not counted: Variants shows what that saves.";
  return html`<${Table} title="Tokens saved" columns=${["client", "person", ...figures]} ...${{ since, note, rows }} empty="No list and no result yet since the start." />
    <details>
      <summary>In the last 30 days: ${plural(sum, "token")}</summary>
      <${PlainTable} label="Tokens saved by day" columns=${["day", ...figures]} rows=${byDay.map(([day, cost]) => [day, ...costs(cost)])} />
    </details>`;
}
