// The view of problems: what does not work, was refused, is deprecated and still used, or is configured in vain.

import { get } from "./api.js";
import { log, narrowed } from "./calls.js";
import { Diff } from "./diff.js";
import { html } from "./dom.js";
import { count, plural, timeOfDay } from "./format.js";
import { FirstTen } from "./more.js";
import { CallCount, Pending, PlainTable, Polled, Problem } from "./parts.js";
import { link } from "./route.js";
import { Rule } from "./rule.js";
import { ServerProblems, failedShare, problemSummary } from "./servers.js";
import { LongText, Name, plain } from "./text.js";
import { toolKey } from "./tool.js";
import { draftLink } from "./variants.js";
import { ClientLink, clientLinks } from "./who.js";

export class Review extends Polled {
  path = "/api/review";

  /** The calls behind the numbers are followed, too, and the lists say which of the tools that clients wanted exist. */
  componentDidMount() {
    super.componentDidMount();
    log.start(() => this.setState({}), this.props.failed);
    get("/api/catalog").then((catalog) => this.setState({ catalog }), this.props.failed);
  }

  componentWillUnmount() {
    super.componentWillUnmount();
    log.stop();
  }

  render({ status }, { answer: review, catalog, error }) {
    if (!review || !status) return html`<${Pending} what="review" error=${error ?? this.props.error} />`;
    const [entries, unread] = [entriesOf(review, status, catalog), unreadLists(status.servers)];
    const tables = TABLES.map((table) => reviewTable(table, entries, unread));
    const found = tables.filter(({ rows }) => rows.length > 0);
    const unknown = tables.filter((it) => it.rows.length === 0 && it.unknown);
    if (!status.audit) unknown.push({ label: "Calls from before the start of Vary", unknown: UNAUDITED });
    const servers = status.servers.toSorted((a, b) => (b.state === "down") - (a.state === "down") || failedShare(b) - failedShare(a));
    const working = servers.filter((it) => problemSummary({ servers: [it] }).number === 0);
    return html`
      ${error && html`<${Problem} what="These figures may be old." error=${error} />`}
      <${FirstTen} all=${servers.filter((it) => !working.includes(it))} show=${(some) => html`
        <${ServerProblems} status=${{ ...status, servers: [...some, ...working] }} most=${Infinity} />`} />
      <div class="review">
        ${found.map((table) => html`<${Found} key=${table.label} ...${table} />`)}
        <${Fine} title="Nothing to report" tables=${tables.filter((it) => it.rows.length === 0 && !it.unknown)} />
        <${Fine} title="Not known" tables=${unknown} />
      </div>
    `;
  }
}

/** The entries of each table; nothing for those that are not counted. */
function entriesOf(review, { people = [], servers }, catalog) {
  const counts = (byName) => Object.entries(byName).map(([what, count]) => ({ what, count }));
  const { denials, credentials, counters, failedResults, refusedCredentials: latest } = review;
  const unexplained = latest ? { [`not known without \`probes\`; the last one at ${timeOfDay(Date.now() / 1000 - latest.lastSecondsAgo)}`]: latest.count } : {};
  const others = { ...counters, [UNKNOWN_TOOLS]: 0, ...(denials && { "refused-by-access-rules": 0 }), "results-that-no-rule-could-rewrite": failedResults };
  return {
    ...review,
    people: people.filter(({ refused }) => refused > 0).sort((a, b) => b.refused - a.refused),
    credentials: counts(credentials ?? unexplained),
    others: counts(others),
    unlisted: unlistedTools(servers, catalog),
  };
}

/** The tools that clients called and that their lists do not have, the most called first. */
function unlistedTools(servers, catalog) {
  const groups = [...Map.groupBy(keptCalls(NOT_LISTED), ({ target }) => target)].sort(([, a], [, b]) => b.length - a.length);
  return groups.map(([target, calls]) => {
    const down = servers.find(({ name, state }) => state === "down" && target.startsWith(`${name}_`));
    const tool = catalog?.tools.find(({ variants }) => Object.values(variants).some((it) => it?.name === target));
    return { target, calls, count: calls.length, down, tool, isUnknown: catalog && !tool };
  });
}

/** A table with its sum, or else the number of its rows, at the front of its title, and what to do next. */
function reviewTable([label, columns, member, row, none, note], entries, unread) {
  const found = (entries[member] ?? []).filter((it) => it.count !== 0);
  const sum = found.reduce((sum, it) => sum + (it.count ?? 1), 0);
  const title = html`<strong class="total-of">${count(sum)}</strong> ${label}`;
  const unknown = entries[member] ? OF_LISTS.includes(member) && unread : NOT_COUNTED;
  return { label, title, note, columns, rows: found.map(row), empty: none, unknown };
}

/** What is only known once the lists of all servers are. */
const OF_LISTS = ["unmatched", "collisions"];

/** Why the lists of some servers are not known; nothing if all are. */
function unreadLists(servers) {
  const unread = servers.filter(({ state, tools, failedLists }) => failedLists || (state !== "up" && tools === undefined));
  const each = unread.map(({ name, state }, at) => html`${at > 0 && ", "}<code><${Name} value=${name} limit=${60} /></code> ${state === "up" ? "cannot be read" : `is ${state}`}`);
  return each.length > 0 && html`not checked while ${each}.`;
}

const Found = ({ title, note, rows, label, columns }) => html`<section>
  <h2>${title}</h2>
  ${note && html`<div class="note">${note}</div>`}
  <${FirstTen} all=${rows} show=${(rows) => html`<${PlainTable} ...${{ label, columns, rows }} />`} />
</section>`;

/** What was looked for in vain, in a line each; what is not known has no tick. */
function Fine({ title, tables }) {
  if (tables.length === 0) return null;
  return html`<section>
    <h2>${title}</h2>
    <ul class="fine">
      ${tables.map(({ label, empty, unknown }) => html`<li class=${unknown ? "faint" : ""}>${unknown ? html`${label}: ${unknown}` : empty}</li>`)}
    </ul>
  </section>`;
}

const NOT_COUNTED = html`only metrics count these. Set <code>probes</code> in the configuration to see them.`;
const UNAUDITED = html`set <code>audit</code> in the configuration to keep them in a file.`;

const name = (value) => (value ? html`<${Name} value=${value} limit=${60} />` : "–");

const toolLink = (tool) => html`<a href=${link("variants", { tool: toolKey(tool) })}><${Name} value=${tool.name} limit=${32} /></a>`;

/** The calls that Vary keeps and that the filters of the address leave: as many as the list of them has. */
const keptCalls = (filters) => narrowed(log.calls ?? [], new URLSearchParams(filters));

const callCount = (filters, what) => html`<${CallCount} number=${keptCalls(filters).length} ...${{ filters, what }} />`;

/** Who made the calls: each person with each client once. */
const callersOf = (calls) => clientLinks([...new Map(calls.map((it) => [JSON.stringify([it.principal, it.client?.name]), it])).values()]);

/** Each table, the worst first: title, columns, member of the entries, a row of an entry, what is said without entries, what to do. */
const TABLES = [
  ["Calls of tools that are not in the client’s list", ["#calls", "tool", "~by", "last", "~next"], "unlisted", unlistedRow,
    "None of the calls that Vary keeps is of a tool that its client’s list does not have.",
    "Of the calls that Vary keeps. A client leads to what it gets, and why; a draft can add the tool."],
  ["Requests that access rules denied", ["#denied", "~rule", "#calls in the list"], "denials",
    ({ rule, count: denied }) => [count(denied), html`<${Rule} key=${rule} name=${rule} />`, callCount({ outcome: "denied", rule }, `calls that ${rule} denied`)],
    "Access rules have denied nothing since the start.",
    html`Of all requests, of which the list has calls. To allow more, change the rule in <code>access</code>.`],
  ["People whose calls were refused", ["#refused", "person"], "people",
    ({ person, refused }) => [html`<${CallCount} number=${refused} filters=${{ person, outcome: "denied" }} what=${`refused calls of ${person}`} />`, name(person)],
    "No call of a person was refused since the start.",
    "Each call in the list names the rule or the limit that refused it."],
  ["Credentials that were refused", ["#refused", "~why"], "credentials",
    ({ what, count: refused }) => [count(refused), CREDENTIALS[what] ?? name(what)],
    "No credential was refused since the start.",
    html`Compare the key or the token of the client with <code>auth</code>.`],
  ["Requests that rate limits refused", ["#refused", "limit", "#calls in the list"], "limits",
    ({ limit, count: refused }) => [count(refused), html`<code>${name(limit)}</code>`, callCount({ outcome: "denied", rule: limit }, `calls that ${limit} refused`)],
    "Rate limits have refused nothing since they last changed.",
    html`Of all requests, of which the list has calls. Ask who makes so many, or raise the limit in <code>rates</code>.`],
  ["Parts of variants that match nothing", ["variant", "~problem"], "unmatched", ({ variant, problem }) => [draftLink(variant), html`<${LongText} value=${problem} limit=${300} isSentence />`],
    "Every rule and override of the variants matches something that the servers list.",
    "Correct the entry in a draft of the variant."],
  ["Names that collide", ["list", "name", "reachable", "hidden"], "collisions",
    ({ list, id, reachable, hidden }) => [list, name(id), name(reachable), name(hidden)],
    "No two servers list the same name.",
    html`Clients reach only one of them. For tools and prompts, <code>naming: on-collision</code> gives both the prefix of their server.`],
  ["Deprecated variants in use", ["#requests", "client", "variant", "replacement", "removal"], "deprecated",
    ({ client, variant, replacement, removalDate, daysLeft, requests }) => [
      count(requests),
      client?.name ? html`<${ClientLink} client=${client} />` : "other clients",
      name(variant), replacement ? draftLink(replacement) : "–", removal(removalDate, daysLeft),
    ],
    "No client uses a deprecated variant since the start.",
    "The draft of the replacement has the field “Clients that get it”."],
  ["Messages that were refused or dropped for another reason", ["#count", "~what"], "others",
    ({ what, count: number }) => [count(number), name(what.replaceAll("-", " "))],
    "No message was refused or dropped for another reason since the start."],
  ["What servers changed", ["time", "server", "what", "~change"], "changes",
    ({ at, server, subject, name: item, summary, members }) => [
      timeOfDay(at), name(server),
      html`${subject} ${subject === "tool" ? toolLink({ server, name: item }) : item && html`<${Name} value=${item} limit=${32} />`}`,
      html`<span class="faint">${plain(summary)}</span>
        ${members.map(({ member, before, after }) => html`<div><code>${plain(member)}</code> <${Diff} ...${{ before, after }} /></div>`)}`,
    ],
    "No server changed a tool, a prompt or its instructions since the start.",
    "Look whether the texts and arguments of your variants still fit."],
];

function unlistedRow({ target, calls, down, tool, isUnknown }) {
  const [{ at, variant }] = calls;
  const next = [
    down && html`<code>${name(down.name)}</code> is down`,
    tool && html`<a href=${link("draft", { variant, tool: toolKey(tool) })}>draft of ${name(variant)}</a>`,
    isUnknown && "no server lists it",
  ];
  return [callCount({ ...NOT_LISTED, tool: target }, `calls of ${target}`), name(target), callersOf(calls), timeOfDay(at), next.find(Boolean)];
}

/** The counter of calls of tools that are not listed, and the filters that find them. */
const UNKNOWN_TOOLS = "refused-unknown-tools";
const NOT_LISTED = { outcome: "not_listed" };

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
