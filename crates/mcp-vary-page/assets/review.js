// The view of problems: what is deprecated and still used, and what the configuration says in vain.

import { get } from "./api.js";
import { Diff } from "./diff.js";
import { Component, html } from "./dom.js";
import { count, plural, timeOfDay } from "./format.js";
import { Pending, Problem, Table } from "./parts.js";
import { Rule } from "./rule.js";
import { LongText, Name, plain } from "./text.js";

export class Review extends Component {
  componentDidMount() {
    this.load();
    this.timer = setInterval(() => document.hidden || this.load(), 5000);
  }

  componentWillUnmount() {
    clearInterval(this.timer);
  }

  async load() {
    try {
      this.setState({ review: await get("/api/review"), error: null });
    } catch (error) {
      this.setState({ error });
      this.props.failed(error);
    }
  }

  render(_, { review, error }) {
    if (!review) return html`<${Pending} what="review" error=${error} />`;
    const tables = [...TABLES.map((table) => reviewTable(table, review)), counters(review)];
    const found = tables.filter(({ rows }) => rows.length > 0);
    return html`
      ${error && html`<${Problem} what="These figures may be old." error=${error} />`}
      ${found.length === 0 && html`<p class="empty">Nothing to clean up.</p>`}
      ${found.map((table) => html`<${Table} key=${table.title} ...${table} />`)}
      <${Empty} tables=${tables.filter((it) => !found.includes(it))} />
    `;
  }
}

function reviewTable([title, columns, member, row, none], review) {
  const rows = (review[member] ?? []).filter((it) => it.count !== 0).map(row);
  return { title, columns, rows, empty: review[member] ? none : NOT_COUNTED };
}

/** What was looked for in vain, in a line each. */
function Empty({ tables }) {
  if (tables.length === 0) return null;
  return html`<section>
    <h2>Nothing to report</h2>
    <dl>${tables.map(({ title, empty }) => html`<dt>${title}</dt><dd class="faint">${empty}</dd>`)}</dl>
  </section>`;
}

const NOT_COUNTED = html`Only metrics count these. Set <code>probes</code> in the configuration to see them.`;

const name = (value) => (value ? html`<${Name} value=${value} limit=${60} />` : "–");

/** Each table: its title, columns, the member of the review, a row of an entry, and what is said without entries. */
const TABLES = [
  [
    "What servers changed",
    ["time", "server", "what", "~change"],
    "changes",
    ({ at, server, subject, name: item, summary, members }) => [
      timeOfDay(at),
      name(server),
      html`${subject} ${item && name(item)}`,
      html`<span class="faint">${plain(summary)}</span>
        ${members.map(({ member, before, after }) => html`<div><code>${plain(member)}</code> <${Diff} ...${{ before, after }} /></div>`)}`,
    ],
    "No server changed a tool, a prompt or its instructions since the start.",
  ],
  [
    "Deprecated variants in use",
    ["client", "version", "variant", "replacement", "removal", "#requests"],
    "deprecated",
    ({ client, variant, replacement, removalDate, daysLeft, requests }) => [
      client ? name(client.name) : "other clients",
      name(client?.version),
      name(variant),
      name(replacement),
      removal(removalDate, daysLeft),
      count(requests),
    ],
    "No client uses a deprecated variant since the start.",
  ],
  [
    "Parts of variants that match nothing",
    ["variant", "~problem"],
    "unmatched",
    ({ variant, problem }) => [name(variant), html`<${LongText} value=${problem} limit=${300} isSentence />`],
    "Every rule and override of the variants matches something that the servers list.",
  ],
  [
    "Names that collide",
    ["list", "name", "reachable", "hidden"],
    "collisions",
    ({ list, id, reachable, hidden }) => [list, name(id), name(reachable), name(hidden)],
    "No two servers list the same name.",
  ],
  [
    "Requests that access rules denied",
    ["~rule", "#denied"],
    "denials",
    ({ rule, count: denied }) => [html`<${Rule} key=${rule} name=${rule} />`, count(denied)],
    "Access rules have denied nothing since the start.",
  ],
  [
    "Requests that rate limits refused",
    ["limit", "#refused"],
    "limits",
    ({ limit, count: refused }) => [html`<code><${Name} value=${limit} /></code>`, count(refused)],
    "Rate limits have refused nothing since they last changed.",
  ],
];

function removal(date, days) {
  if (!date) return "–";
  if (typeof days !== "number") return date;
  return html`${date} <span class=${days < 30 ? "bad" : "faint"}>${days < 0 ? "passed" : `in ${plural(days, "day")}`}</span>`;
}

function counters(review) {
  const all = Object.entries(review.counters ?? {}).filter(([, number]) => number > 0);
  if (review.failedResults > 0) all.push(["results with isError", review.failedResults]);
  const rows = all.map(([counter, number]) => [name(counter), count(number)]);
  return { title: "Refused and failed", columns: ["what", "#count"], rows, empty: "Nothing was refused since the start." };
}
