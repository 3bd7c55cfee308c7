// The view of problems: what to repair or change now, then what was refused, is deprecated and still used, or has changed.

import { get } from "./api.js";
import { callsWith, log } from "./calls.js";
import { Diff } from "./diff.js";
import { Component, html } from "./dom.js";
import { count, plural, startOf, timeOfDay } from "./format.js";
import { CallCount, Pending, Table } from "./parts.js";
import { link } from "./route.js";
import { Rule } from "./rule.js";
import { RULE_OF_CARDS, ServerProblems, actionsOf, hasProblem, weight } from "./servers.js";
import { FirstTen, Folded, Name, plain, sentence } from "./text.js";
import { toolKey } from "./tool.js";
import { draftLink } from "./variants.js";
import { ClientLink, callerLinks } from "./who.js";

export class Review extends Component {
  /** The calls behind the numbers are followed, and the lists say which of the tools that clients wanted exist. */
  componentDidMount() {
    log.start(() => this.setState({}), this.props.failed);
    get("/api/catalog").then((catalog) => this.setState({ catalog }), this.props.failed);
  }

  componentWillUnmount = () => log.stop();

  render({ status, review, error }, { catalog }) {
    if (!review || !status) return html`<${Pending} what="review" error=${error} />`;
    const calls = Map.groupBy(callsWith(NOT_LISTED), ({ target }) => target);
    const unlisted = [...calls].map(([target, all]) => ({ target, calls: all, count: all.length, status, catalog, meant: review.meant }));
    const setup = Map.groupBy(review.setup ?? [], ({ isNote }) => isNote);
    const entries = { ...review, setup: setup.get(false), refused: refusals(review), unlisted: unlisted.sort((a, b) => b.count - a.count) };
    const tables = TABLES.map((table) => reviewTable(table, entries, status));
    const [found, fine] = [true, false].map((isFound) => tables.filter(({ rows }) => rows.length > 0 === isFound));
    const { number, label } = actionsOf(status, review);
    const { true: failing = [], false: working = [] } = Object.groupBy(status.servers, hasProblem);
    failing.sort((a, b) => (b.state === "down") - (a.state === "down") || weight(b) - weight(a));
    const actions = html`<strong class="total-of">${count(number)}</strong> ${number === 1 ? "needs" : "need"} an action: ${label}.`;
    return html`
      <p class="figures">${number > 0 ? actions : "Nothing needs an action."} <span class="faint">${RULE_OF_CARDS}</span></p>
      <${FirstTen} all=${failing} show=${(some) => html`
        <${ServerProblems} status=${{ ...status, servers: [...some, ...working] }} most=${Infinity} />`} />
      <div class="review">
        ${found.map((table) => html`<${Table} key=${table.label} ...${table} />`)}
        <${Unchecked} ...${{ status, notes: setup.get(true) }} />
        ${fine.length > 0 && html`<p class="fine figures">Checked, with nothing to report: ${fine.map(({ label }) => label).join(" · ")}</p>`}
      </div>
    `;
  }
}

/** What rules and limits refused, as far as it is counted, or else in the calls that Vary keeps; then credentials and other messages. */
function refusals({ denials, limits, credentials, refusedCredentials: latest, counters, failedResults }) {
  const byRule = Map.groupBy(callsWith({ outcome: "denied" }), ({ rule }) => rule);
  byRule.delete(undefined);
  const kept = [...byRule].map(([rule, calls]) => [rule, calls.length]);
  const counted = [...(denials ?? []), ...limits].map(({ rule, limit, count }) => [rule ?? limit, count]);
  const rules = [...new Map([...kept, ...counted])].sort(([, a], [, b]) => b - a);
  const last = latest && [[`the last one at ${timeOfDay(Date.now() / 1000 - latest.lastSecondsAgo)}; \`probes\` count why`, latest.count]];
  const others = { ...counters, "refused-unknown-tools": 0, "refused-by-access-rules": 0, "results-that-no-rule-could-rewrite": failedResults };
  return [
    ...rules.map(([rule, count]) => ({ rule, count, calls: byRule.get(rule) ?? [] })),
    ...(credentials ? Object.entries(credentials) : (last ?? [])).map(([why, count]) => ({ what: `a credential: ${CREDENTIALS[why] ?? why}`, count })),
    ...Object.entries(others).map(([why, count]) => ({ what: `a message: ${why.replaceAll("-", " ")}`, count })),
  ].filter(({ count }) => count > 0);
}

/** A table with its sum, or else the number of its rows, at the front of its title. */
function reviewTable([label, columns, member, row, note], entries, status) {
  const found = entries[member] ?? [];
  const sum = found.reduce((sum, it) => sum + (it.count ?? 1), 0);
  const title = html`<strong class="total-of">${count(sum)}</strong> ${label}`;
  return { label, title, note: note(status, entries), columns, rows: found.map(row) };
}

/** What could not be checked, and why; and what needs nothing now. */
function Unchecked({ status, notes = [] }) {
  const unread = unreadLists(status.servers);
  const reasons = [
    unread && html`Parts of variants that match nothing, and names that collide: not checked in full while ${unread}`,
    !status.audit && html`Calls from before the start of Vary: set <code>audit</code> in the configuration to keep them in a file`,
    ...notes.map(({ place, what, fix }) => html`<${Place} ...${{ place }} /> ${sentence(what)}; ${
      unread && !fix.startsWith("it will ") ? html`not certain while ${unread}` : fix && sentence(fix)}`),
  ].filter(Boolean);
  if (reasons.length === 0) return null;
  return html`<section>
    <h2>Not checked, or for later</h2>
    <${FirstTen} all=${reasons} show=${(some) => html`<ul class="faint">${some.map((why) => html`<li>${why}.</li>`)}</ul>`} />
  </section>`;
}

/** The servers of which some lists are not known, as a part of a sentence; nothing if all are. */
function unreadLists(servers) {
  const unread = servers.filter(({ state, tools, failedLists }) => failedLists || (state !== "up" && tools === undefined));
  const each = unread.map(({ name, state }, at) => html`${at > 0 && ", "}<code><${Name} value=${name} limit=${60} /></code> ${state === "up" ? "cannot be read" : `is ${state}`}`);
  return each.length > 0 && each;
}

/** A place in the configuration, as editors open it. */
const Place = ({ place }) => place && html`<code title=${plain(place, 200)}><${Name} value=${place.split(/[/\\]/).at(-1)} limit=${60} /></code>`;

const name = (value) => (value ? html`<${Name} value=${value} limit=${60} />` : "–");

const toolLink = (tool) => html`<a href=${link("variants", { tool: toolKey(tool) })}><${Name} value=${tool.name} limit=${32} /></a>`;

const callCount = (filters, what) => html`<${CallCount} number=${callsWith(filters).length} ...${{ filters, what }} />`;

/** Each table, the worst first: title, columns, member of the entries, a row of an entry, what to do. */
const TABLES = [
  ["Settings to change", ["~what is wrong", "where", "~what to do"], "setup",
    ({ what, place, fix, variant }) => [
      sentence(what), html`<${Place} ...${{ place }} />`,
      html`${fix && sentence(fix)}${variant && html` (draft of ${draftLink(variant)})`}`,
    ],
    (status) => `In the file as it is now. Vary started at ${startOf(status)}.`],
  ["Calls of tools that are not in the client’s list", ["#calls", "tool", "~what to do", "~by", "last"], "unlisted", unlistedRow,
    () => "Of the calls that Vary keeps. A client leads to what it gets, and why."],
  ["Names that collide", ["list", "name", "reachable", "hidden"], "collisions",
    ({ list, id, reachable, hidden }) => [list, name(id), name(reachable), name(hidden)],
    () => html`Clients reach only one of them. For tools and prompts, <code>naming: on-collision</code> gives both the prefix of their server.`],
  ["Refused", ["#times", "~by what", "~whose calls", "#in the list"], "refused", refusalRow,
    ({ audit }, { denials }) => html`Since the start${!denials && html`; of access rules, the calls that Vary keeps (with <code>probes</code>, all)`}.
      ${" "}To allow more, change the rule in <code>access</code>, the limit in <code>rates</code>, or compare the credential with <code>auth</code>.
      ${audit && " The audit log has the address of each credential."}`],
  ["Deprecated variants in use", ["#requests", "client", "variant", "replacement", "removal"], "deprecated",
    ({ client, variant, replacement, removalDate, daysLeft, requests }) => [
      count(requests),
      client?.name ? html`<${ClientLink} client=${client} />` : "other clients",
      name(variant), replacement ? draftLink(replacement) : "–", removal(removalDate, daysLeft),
    ],
    () => "The draft of the replacement has the field “Clients that get it”."],
  ["What servers changed", ["time", "server", "what", "~change"], "changes",
    ({ at, server, subject, name: item, summary, members }) => [
      timeOfDay(at), name(server),
      html`${subject} ${subject === "tool" ? toolLink({ server, name: item }) : item && html`<${Name} value=${item} limit=${32} />`}`,
      html`<span class="faint">${plain(summary)}</span>${members.map((member) => html`<${Change} ...${member} />`)}`,
    ],
    () => "Look whether the texts and arguments of your variants still fit."],
];

function refusalRow({ rule, what, count: times, calls = [] }) {
  if (what) return [count(times), sentence(what), "–", "–"];
  const people = [...Map.groupBy(calls, ({ principal }) => principal)].map(([person, { length }], at) => {
    const filters = { ...(person && { person }), outcome: "denied", rule };
    return html`${at > 0 && ", "}${person ? name(person) : "no person"} <${CallCount} number=${length} filters=${filters} what=${`refused calls of ${person}`} />`;
  });
  return [count(times), html`<${Rule} key=${rule} name=${rule} />`, people, callCount({ outcome: "denied", rule }, `calls that ${rule} refused`)];
}

/** The characters of a change in about five lines. */
const FIVE_LINES = 500;

function Change({ member, before, after }) {
  const length = before.length + after.length;
  const show = (isWhole) => html`<div class=${isWhole ? "" : "five-lines"}><code>${plain(member)}</code> <${Diff} ...${{ before, after }} /></div>`;
  return html`<${Folded} isLong=${length > FIVE_LINES} all=${`${count(length)} characters`}>${show}<//>`;
}

function unlistedRow({ target, calls, status, catalog, meant = {} }) {
  const down = status.servers.find(({ name, state }) => state === "down" && target.startsWith(`${name}_`));
  const tool = catalog?.tools.find(({ variants }) => Object.values(variants).some((it) => it?.name === target));
  const lacking = [...new Set(calls.map(({ variant }) => variant))].filter((id) => tool && id && !tool.variants[id]);
  const draft = (variant) => html`<a href=${link("draft", { variant, tool: toolKey(tool) })}>draft of ${name(variant)}</a>`;
  const next = [
    down && html`<code>${name(down.name)}</code> is down`,
    lacking.length > 0 && lacking.map((variant, at) => html`${at > 0 && ", "}${draft(variant)}`),
    catalog && !tool && html`no server lists it${Object.hasOwn(meant, target) && html`; did the client mean <code>${name(meant[target])}</code>?`}`,
    tool && "its list has it now",
  ];
  return [callCount({ ...NOT_LISTED, tool: target }, `calls of ${target}`), name(target), next.find(Boolean), callerLinks(calls), timeOfDay(calls[0].at)];
}

/** The filters that find calls of tools that are not listed. */
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
