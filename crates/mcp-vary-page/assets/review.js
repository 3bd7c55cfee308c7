// The view of problems: what does not work, what was refused, what is deprecated and still used, and what the configuration
// says in vain.

import { Diff } from "./diff.js";
import { html } from "./dom.js";
import { count, plural, timeOfDay } from "./format.js";
import { CallCount, Pending, Polled, Problem, Table } from "./parts.js";
import { Rule } from "./rule.js";
import { ServerProblems } from "./servers.js";
import { LongText, Name, plain } from "./text.js";
import { ClientLink } from "./who.js";

export class Review extends Polled {
  path = "/api/review";

  render({ status }, { answer: review, error }) {
    if (!review || !status) return html`<${Pending} what="review" error=${error ?? this.props.error} />`;
    const [entries, unread] = [entriesOf(review, status.people), unreadLists(status.servers)];
    const tables = TABLES.map((table) => reviewTable(table, entries, unread));
    const found = tables.filter(({ rows }) => rows.length > 0);
    return html`
      ${error && html`<${Problem} what="These figures may be old." error=${error} />`}
      <${ServerProblems} ...${{ status, most: Infinity }} />
      <div class="review">
        ${found.map((table) => html`<${Table} key=${table.label} ...${table} />`)}
        <${Fine} tables=${tables.filter((it) => !found.includes(it))} />
      </div>
    `;
  }
}

/** The entries of each table; nothing for those that are not counted. */
function entriesOf(review, people = []) {
  const counts = (byName) => Object.entries(byName).map(([what, count]) => ({ what, count }));
  const { denials, credentials, counters, failedResults } = review;
  const others = { ...counters, ...(denials && { "refused-by-access-rules": 0 }), "results-that-no-rule-could-rewrite": failedResults };
  return { ...review, people: people.filter(({ refused }) => refused > 0), credentials: credentials && counts(credentials), others: counts(others) };
}

/** A table with its sum, or else the number of its rows, at the front of its title. */
function reviewTable([label, columns, member, row, none], entries, unread) {
  const found = (entries[member] ?? []).filter((it) => it.count !== 0);
  const sum = found.reduce((sum, it) => sum + (it.count ?? 1), 0);
  const title = html`<strong class="total-of">${count(sum)}</strong> ${label}`;
  const unknown = entries[member] ? OF_LISTS.includes(member) && unread : NOT_COUNTED;
  return { label, title, columns, rows: found.map(row), empty: none, unknown };
}

/** What is only known once the lists of all servers are. */
const OF_LISTS = ["unmatched", "collisions"];

/** Why the lists of some servers are not known; nothing if all are. */
function unreadLists(servers) {
  const unread = servers.filter(({ state, tools, failedLists }) => failedLists || (state !== "up" && tools === undefined));
  const each = unread.map(({ name, state }, at) => html`${at > 0 && ", "}<code><${Name} value=${name} limit=${60} /></code> ${state === "up" ? "cannot be read" : `is ${state}`}`);
  return each.length > 0 && html`not checked while ${each}.`;
}

/** What was looked for in vain, in a line each; what is not known has no tick. */
function Fine({ tables }) {
  if (tables.length === 0) return null;
  return html`<section>
    <h2>Nothing to report</h2>
    <ul class="fine">
      ${tables.map(({ label, empty, unknown }) => html`<li class=${unknown ? "faint" : ""}>${unknown ? html`${label}: ${unknown}` : empty}</li>`)}
    </ul>
  </section>`;
}

const NOT_COUNTED = html`only metrics count these. Set <code>probes</code> in the configuration to see them.`;

const name = (value) => (value ? html`<${Name} value=${value} limit=${60} />` : "–");

const sentence = (text) => html`<div><${LongText} value=${text} limit=${300} isSentence /></div>`;

const callCount = (number, filters, what) => html`<${CallCount} ...${{ number, filters, what }} />`;

/** Each table: its title, columns, the member of the entries, a row of an entry, and what is said without entries. */
const TABLES = [
  ["Requests that access rules denied", ["#denied", "~rule"], "denials",
    ({ rule, count: denied }) => [callCount(denied, { outcome: "denied", rule }, `calls that ${rule} denied`), html`<${Rule} key=${rule} name=${rule} />`],
    "Access rules have denied nothing since the start."],
  ["People whose calls were refused", ["#refused", "person", "#calls"], "people",
    ({ person, refused, calls }) => [callCount(refused, { person, outcome: "denied" }, `refused calls of ${person}`), name(person), callCount(calls, { person }, `calls of ${person}`)],
    "No call of a person was refused since the start."],
  ["Credentials that were refused", ["#refused", "~why"], "credentials",
    ({ what, count: refused }) => [count(refused), CREDENTIALS[what] ?? name(what)],
    "No credential was refused since the start."],
  ["Requests that rate limits refused", ["#refused", "limit"], "limits",
    ({ limit, count: refused }) => [
      limit === "authentication-failures" ? count(refused) : callCount(refused, { outcome: "denied", rule: limit }, `calls that ${limit} refused`),
      html`<code><${Name} value=${limit} /></code>`,
    ],
    "Rate limits have refused nothing since they last changed."],
  ["Messages that were refused or dropped for another reason", ["#count", "~what"], "others",
    ({ what, count: number }) => [what === UNKNOWN_TOOLS ? callCount(number, NOT_LISTED, "calls of unknown tools") : count(number), name(what.replaceAll("-", " "))],
    "No message was refused or dropped for another reason since the start."],
  ["Deprecated variants in use", ["#requests", "client", "variant", "replacement", "removal"], "deprecated",
    ({ client, variant, replacement, removalDate, daysLeft, requests }) => [
      count(requests),
      client?.name ? html`<${ClientLink} client=${client} />` : "other clients",
      name(variant), name(replacement), removal(removalDate, daysLeft),
    ],
    "No client uses a deprecated variant since the start."],
  ["Parts of variants that match nothing", ["variant", "~problem"], "unmatched", ({ variant, problem }) => [name(variant), sentence(problem)],
    "Every rule and override of the variants matches something that the servers list."],
  ["Names that collide", ["list", "name", "reachable", "hidden"], "collisions",
    ({ list, id, reachable, hidden }) => [list, name(id), name(reachable), name(hidden)],
    "No two servers list the same name."],
  ["What servers changed", ["time", "server", "what", "~change"], "changes",
    ({ at, server, subject, name: item, summary, members }) => [
      timeOfDay(at), name(server), html`${subject} ${item && name(item)}`,
      html`<span class="faint">${plain(summary)}</span>
        ${members.map(({ member, before, after }) => html`<div><code>${plain(member)}</code> <${Diff} ...${{ before, after }} /></div>`)}`,
    ],
    "No server changed a tool, a prompt or its instructions since the start."],
];

/** The counter of calls of tools that are not listed, and the filters that find them. */
const UNKNOWN_TOOLS = "refused-unknown-tools";
const NOT_LISTED = { outcome: "error", q: "Unknown tool:" };

/** Why credentials are refused, by the names that metrics have. */
const CREDENTIALS = {
  invalid: "not a key or a token that is known here", expired: "a token that has expired", audience: "a token for another server",
  scope: "a token that allows too little", malformed: "a header that cannot be read",
  keys_unavailable: "a token of an issuer whose keys are not known", limited: "too many wrong ones from the same address",
};

function removal(date, days) {
  if (!date) return "–";
  if (typeof days !== "number") return date;
  return html`${date} <span class=${days < 30 ? "bad" : "faint"}>${days < 0 ? "passed" : `in ${plural(days, "day")}`}</span>`;
}
