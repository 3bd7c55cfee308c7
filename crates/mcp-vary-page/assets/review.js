// The view of problems: what to repair or change now, then what was refused, is deprecated and still used, or has changed.

import { get } from "./api.js";
import { failuresWith, lastOf, total } from "./calls.js";
import { Diff, diff, likeness } from "./diff.js";
import { Component, html } from "./dom.js";
import { count, plural, startOf, timeOfDay } from "./format.js";
import { CallCount, Pending, Table } from "./parts.js";
import { link } from "./route.js";
import { Rule } from "./rule.js";
import { RULE_OF_CARDS, ServerProblems, actionsOf, hasProblem, weight } from "./servers.js";
import { FirstTen, Folded, Name, plain, sentence } from "./text.js";
import { effectOf, toolKey } from "./tool.js";
import { draftLink } from "./variants.js";
import { ClientLink, callerLinks } from "./who.js";

export class Review extends Component {
  /** The lists say which of the tools that clients wanted exist. */
  componentDidMount() {
    get("/api/catalog").then(({ tools }) => {
      const names = tools.flatMap(({ variants }) => Object.values(variants).map((it) => it?.name ?? ""));
      this.setState({ catalog: { tools, byWords: new Map(names.map((it) => [wordsOf(it), it])) } });
    }, this.props.failed);
  }

  render({ status, review, error }, { catalog }) {
    if (!review || !status) return html`<${Pending} what="review" error=${error} />`;
    const calls = Map.groupBy(failuresWith(status, NOT_LISTED), ({ target }) => target);
    const unlisted = [...calls].map(([target, all]) => ({ target, calls: all, count: total(all), status, catalog, meant: review.meant }));
    const { setting, note, file } = Object.groupBy(review.setup ?? [], ({ kind }) => kind);
    const entries = { ...review, setup: setting, file, refused: refusals(review, status), unlisted: unlisted.sort((a, b) => b.count - a.count) };
    const tables = TABLES.map((table) => reviewTable(table, entries, status));
    const [found, empty] = [true, false].map((isFound) => tables.filter(({ rows }) => rows.length > 0 === isFound));
    const fine = empty.filter(({ member }) => !unreadLists(status.servers) || !OF_ALL_LISTS.includes(member));
    const { number, label } = actionsOf(status, review);
    const { true: failing = [], false: working = [] } = Object.groupBy(status.servers, (it) => hasProblem(it, status));
    failing.sort((a, b) => (b.state === "down") - (a.state === "down") || weight(b, status) - weight(a, status));
    const actions = html`<strong class="total-of">${count(number)}</strong> ${number === 1 ? "needs" : "need"} an action: ${label}.`;
    return html`<p class="figures">${number > 0 ? actions : "Nothing needs an action."}</p>
      <${Mistakes} review=${review} />
      <${FirstTen} all=${failing} show=${(some) => html`<${ServerProblems} status=${{ ...status, servers: [...some, ...working] }} most=${Infinity} />`} />
      <div class="review">
        ${found.map((table) => html`<${Table} key=${table.label} ...${table} />`)}
        <${Unchecked} ...${{ status, notes: note }} />
        ${fine.length > 0 && html`<p class="fine figures">Checked, with nothing to report: ${fine.map(({ label }) => label).join(" · ")}</p>`}
        <p class="note">${RULE_OF_CARDS}</p>
      </div>`;
  }
}

/** The mistakes for which Vary could not start again, as red as a server that is down. */
export function Mistakes({ review }) {
  const { what, fix } = review?.setup?.find(({ kind }) => kind === "file") ?? {};
  if (!what) return null;
  const line = (text) => {
    const [, place, mistake = text] = text.match(/^(.+?:\d+):\d+: (.*)$/) ?? [];
    return html`<div><${Place} ...${{ place }} /> ${sentence(mistake)}</div>`;
  };
  return html`<ul class="server-problems" aria-label="Mistakes in the configuration">
    <li><div><strong>The configuration cannot be used</strong>; ${sentence(fix)}${what.split("\n").map(line)}</div></li>
  </ul>`;
}

/** What rules and limits refused, then credentials and other messages. */
function refusals({ denials, limits, credentials, refusedCredentials: latest, counters, failedResults }, status) {
  const byRule = Map.groupBy(failuresWith(status, { outcome: "denied" }), ({ rule }) => rule);
  byRule.delete(undefined);
  const kept = [...byRule].map(([rule, calls]) => [rule, total(calls)]);
  const counted = [...(denials ?? []), ...limits].map(({ rule, limit, count }) => [rule ?? limit, count]);
  const rules = [...new Map([...kept, ...counted])].sort(([, a], [, b]) => b - a);
  const last = latest && [[`the last one at ${timeOfDay(Date.now() / 1000 - latest.lastSecondsAgo)}; to see why, set \`probes\`: its metrics say`, latest.count]];
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
  return { member, label, title, isMain: member === "setup", note: note(status, entries), columns, rows: found.map(row) };
}

/** What could not be checked, and why; and what needs nothing now. */
function Unchecked({ status, notes = [] }) {
  const [unread, down] = [status.servers, status.servers.filter(({ state }) => state === "down")].map(unreadLists);
  const reasons = [
    unread && html`Parts of variants that match nothing, and names that collide: not checked in full while ${unread}`,
    down && html`Calls of tools that are not in the client’s list: cannot be known in full while ${down}`,
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

/** What is looked for in the lists of all servers. */
const OF_ALL_LISTS = ["unlisted", "collisions"];

/** The servers of which some lists are not known, as a part of a sentence; nothing if all are. */
function unreadLists(servers) {
  const unread = servers.filter(({ state, tools, failedLists }) => failedLists || (state !== "up" && tools === undefined));
  const each = unread.map(({ name, state }, at) => html`${at > 0 && ", "}<code><${Name} value=${name} limit=${60} /></code> ${state === "up" ? "cannot be read" : `is ${state}`}`);
  return each.length > 0 && each;
}

/** A place in the configuration, as editors open it. */
const Place = ({ place }) => place && html`<code title=${plain(place, 200)}><${Name} value=${place.split(/[/\\]/).at(-1)} limit=${60} /></code>`;

const name = (value) => (value ? html`<${Name} value=${value} limit=${60} />` : "–");

const toolLink = (tool, shown = tool.name) => html`<a href=${link("variants", { tool: toolKey(tool) })}><${Name} value=${shown} limit=${48} /></a>`;

/** Each table, the worst first: title, columns, member of the entries, a row of an entry, what to do. */
const TABLES = [
  ["Settings to change", ["~what is wrong", "where", "~what to do"], "setup",
    ({ what, place, fix, variant }) => [
      sentence(what), html`<${Place} ...${{ place }} />`,
      html`${fix && sentence(fix)}${variant && html` (draft of ${draftLink(variant)})`}`,
    ],
    (status, { file }) => `${file ? "In the file that Vary could use last" : "In the file as it is now"}. Vary started at ${startOf(status)}.`],
  ["Calls of tools that are not in the client’s list", ["#calls", "tool", "~what to do", "~by", "last"], "unlisted", unlistedRow,
    (status) => `Since ${startOf(status)}. A client leads to what it gets, and why.`],
  ["Names that collide", ["list", "name", "reachable", "hidden"], "collisions",
    ({ list, id, reachable, hidden }) => [list, name(id), name(reachable), name(hidden)],
    () => html`Clients reach only one of them. For tools and prompts, <code>naming: on-collision</code> gives both the prefix of their server.`],
  ["Refused", ["#times", "~by what", "~whose calls"], "refused", refusalRow,
    (status) => html`Since ${startOf(status)}. To allow more, change the rule in <code>access</code>, the limit in <code>rates</code>, or compare the credential with <code>auth</code>.
      ${status.audit && " The audit log has the address of each credential."}`],
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
  if (what) return [count(times), sentence(what), "–"];
  const people = [...Map.groupBy(calls, ({ principal }) => principal)].map(([person, some], at) => {
    const filters = { ...(person && { person }), outcome: "denied", rule };
    return html`${at > 0 && ", "}${person ? name(person) : "no person"} <${CallCount} number=${total(some)} filters=${filters} what=${`refused calls of ${person}`} />`;
  });
  return [count(times), html`<${Rule} key=${rule} name=${rule} />${rule === "access: default" && html` <span class="faint">no rule of <code>access</code> allows it</span>`}`, people];
}

/** The characters of a change in about five lines. */
const FIVE_LINES = 500;

function Change({ member, before, after }) {
  const length = before.length + after.length;
  const show = (isWhole) => html`<div class=${isWhole ? "" : "five-lines"}><code>${plain(member)}</code> <${Diff} ...${{ before, after }} /></div>`;
  return html`<${Folded} isLong=${length > FIVE_LINES} all=${`${count(length)} characters`}>${show}<//>`;
}

function unlistedRow({ target, calls, count, status, catalog, meant = {} }) {
  const down = status.servers.find(({ name, state }) => state === "down" && target.startsWith(`${name}_`));
  const next = down ? html`<code>${name(down.name)}</code> is down` : catalog && whyUnlisted(target, calls, catalog, meant);
  const number = html`<${CallCount} number=${count} filters=${{ ...NOT_LISTED, tool: target }} what=${`calls of ${target}`} />`;
  return [number, name(target), next, callerLinks(calls), timeOfDay(lastOf(calls))];
}

/** Why a tool is not in lists by the name with which it was called, and what to do. */
function whyUnlisted(target, calls, { tools, byWords }, meant) {
  const tool = tools.find(({ variants }) => Object.values(variants).some((it) => it?.name === target))
    ?? tools.find((it) => [it.name, `${it.server}_${it.name}`].includes(target));
  if (!tool) {
    const nearest = Object.hasOwn(meant, target) && isNear(target, meant[target]) && meant[target];
    const guess = nearest || byWords.get(wordsOf(target));
    const has = (word) => tools.some((it) => it.name.toLowerCase().includes(word));
    const word = !guess && wordsOf(target).split(" ").sort((a, b) => b.length - a.length).find((it) => it.length > 3 && !target.startsWith(it) && has(it));
    return html`no server lists it${guess && html`; did the client mean <code>${name(guess)}</code>?`}${word && html` · <a href=${link("variants", { q: word })}>tools with “${word}”</a>`}`;
  }
  const ids = [...new Set(calls.map(({ variant }) => variant))].filter(Boolean);
  const lacking = ids.filter((id) => !tool.variants[id]);
  const draft = (id, at) => html`${at > 0 && ", "}<a href=${link("draft", { variant: id, tool: toolKey(tool) })}>draft of ${name(id)}</a>`;
  if (lacking.length > 0) return html`${effectOf(tool)} · leave it hidden, or ${lacking.map(draft)}`;
  const shown = tool.variants[ids[0]] ?? Object.values(tool.variants).find(Boolean);
  if (!shown || shown.name === target) return "its list has it now";
  return html`<code>${name((shown.renamed && ids[0]) || tool.server)}</code> lists it as ${toolLink(tool, shown.name)}`;
}

/** Whether two names have most letters in common, without the server with which both begin. */
function isNear(one, other) {
  const begin = other.slice(0, other.indexOf("_") + 1);
  const [a, b] = [one, other].map((it) => (one.startsWith(begin) ? it.slice(begin.length) : it));
  const alike = (a, b, least) => likeness(diff(a, b, (text) => [...text]), a, b) >= least;
  // `list_issues` is not what is meant by `get_issues`.
  return alike(a, b, 0.75) && alike(...[a, b].map((it) => it.split(/[_.-]/)[0]), 0.6);
}

/** The words of a name, in whatever order they are. */
const wordsOf = (name) => name.replace(/([a-z])(?=[A-Z])/g, "$1_").toLowerCase().split(/[_.\s-]+/).sort().join(" ");

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
