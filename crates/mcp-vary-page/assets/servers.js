// The servers of the view of now: which work, why others do not, and what their operator should do.

import { post } from "./api.js";
import { grouped, mostOf } from "./call-list.js";
import { OUTCOMES, failuresWith, lastOf, outcomeOf, total } from "./calls.js";
import { Component, html } from "./dom.js";
import { count, duration, milliseconds, plural, share, startOf, timeOfDay } from "./format.js";
import { CallCount, Problem, Table } from "./parts.js";
import { link } from "./route.js";
import { Folded, LongText, Name, plain, sentence, visible } from "./text.js";
import { callerLinks, linkToClient } from "./who.js";

/** Servers with problems come first, then those with errors. */
export function Servers({ status, since }) {
  const columns = ["server", "state", "for", "#tools", "#calls", "#errors", "#p50", "#p95"];
  const rows = status.servers.toSorted((a, b) => kindOf(a, status) - kindOf(b, status)).map((it) => serverRow(it, status));
  const empty = html`The configuration names no server. Add one to <code>servers</code>, then run <code>vary reload</code>.`;
  return html`<${Table} title="Servers" ...${{ since, columns, rows, empty }} />`;
}

function serverRow({ name, state, since, tools, calls }, status) {
  // Calls from before it was up for the first time are its errors, too.
  const missed = total(failuresWith(status, { server: name, outcome: "error" }).filter(({ method, upstreamName }) => method === "tools/call" && !upstreamName));
  return [
    html`<${Name} value=${name} />`,
    html`<span class=${`state ${state}`}>${state}</span>`,
    duration(since),
    count(tools),
    html`<${CallCount} number=${calls && calls.count + missed} filters=${{ server: name }} what=${`calls of ${name}`} />`,
    html`<${CallCount} number=${calls && calls.errors + missed} filters=${{ server: name, outcome: "error" }} what=${`errors of ${name}`} />`,
    milliseconds(calls?.p50),
    milliseconds(calls?.p95),
  ];
}

/** The problems that are shown at first, and above the calls the most servers and clients with errors only. */
const [FIRST_PROBLEMS, MOST_WITH_ERRORS] = [6, 4];

/** Why servers are down and when Vary tries again, what else their operator should do, and which servers have errors. */
export class ServerProblems extends Component {
  /** By the name of a server: when somebody had Vary try it, and why it was down then. */
  state = { tried: {} };

  retry = async ({ name, reason }) => {
    const note = (outcome) => this.setState(({ tried }) => ({ tried: { ...tried, [name]: { at: Date.now() / 1000, reason, ...outcome } } }));
    note({});
    await post(`/api/retry?${new URLSearchParams({ server: name })}`, {}).catch((error) => note({ error }));
  };

  render({ status, most = MOST_WITH_ERRORS }, { tried }) {
    const { servers, retries, missingKeys = [], audit } = status;
    const isShown = (server) => tried[server.name] || problemsOf(server).length > 0 || isRecent(missedBy(server, status));
    const failing = servers.filter((it) => failsOften(it, status) && !isShown(it)).sort((a, b) => weight(b, status) - weight(a, status)).slice(0, most);
    const retry = retries && this.retry;
    const items = [...servers.filter(isShown), ...failing].map(
      (server) => html`<${ServerProblem} key=${server.name} ...${{ server, retry, status }} tried=${tried[server.name]} />`,
    );
    items.push(...failingClients(status).slice(0, most).map((it) => html`<${ClientProblem} key=${`client ${it.name} ${it.error}`} ...${{ ...it, status }} />`));
    const show = (isWhole) =>
      html`<ul class="server-problems" aria-label="Server problems, and clients that fail often">${isWhole ? items : items.slice(0, FIRST_PROBLEMS)}</ul>`;
    return html`
      ${missingKeys.map((why) => html`<p class="problem"><strong>Keys of an issuer are missing.</strong> <${LongText} value=${why} /></p>`)}
      ${audit?.error && html`<p class="problem"><strong>The audit log cannot be written.</strong> <${LongText} value=${audit.error} /></p>`}
      ${items.length > 0
        ? html`<${Folded} isLong=${most < Infinity && items.length > FIRST_PROBLEMS + 2} all=${`${items.length} problems`}>${show}<//>`
        : servers.length > 0 && html`<p class="note">All servers can be used.</p>`}
    `;
  }
}

/** From so many failed calls on, and from these shares of the calls, a server or a client fails often; of clients, for so many seconds after the last one, but not for a session that was lost so many seconds after a start: they begin new ones by themselves. */
const [FEWEST_ERRORS, SHARE_OF_SERVER, SHARE_OF_CLIENT, LATELY, RECONNECTING] = [3, 0.05, 0.25, 900, 120];
export const RULE_OF_CARDS = `A server fails often from ${FEWEST_ERRORS} failed calls on that are 5 % of its calls of the last 5 minutes, or of all if these are fewer than ${FEWEST_ERRORS}; a client from 25 % at other servers, if one was in the last 15 minutes.`;

const isRecent = (calls) => lastOf(calls) > Date.now() / 1000 - LATELY;

/** The clients that fail often at servers without problems, and the errors of requests that name no client, those with the most first. */
function failingClients(status) {
  const ofServers = new Set((status.servers ?? []).filter((it) => hasProblem(it, status)).map(({ name }) => name));
  const isKnown = ({ server, error, at }) => ofServers.has(server) || (at < status.begun + RECONNECTING && error?.startsWith("Session not found"));
  const errors = failuresWith(status, { outcome: "error" }).map((it) => ({ ...it, name: it.client?.name }));
  const groups = Map.groupBy(errors, ({ name, error }) => name || `\0${error}`);
  const all = [...groups.values()].map((failed) => ({ ...failed[0], failed, number: total(failed), others: failed.filter((it) => !isKnown(it)) }));
  const callsOf = (name) => status.clients.reduce((sum, { client, calls }) => sum + (client?.name === name ? calls : 0), 0);
  const often = all.map((it) => ({ ...it, calls: it.name ? Math.max(callsOf(it.name), it.number) : 0 }));
  return often
    .filter(({ others, calls }) => total(others) >= Math.max(FEWEST_ERRORS, SHARE_OF_CLIENT * calls) && isRecent(others))
    .sort((a, b) => b.number - a.number);
}

function ClientProblem({ name, calls, number, error, failed, status }) {
  const filters = { outcome: "error", ...(name ? { client: name } : { error }) };
  const link = html`<${CallCount} ...${{ number, filters }} what=${`errors of ${name || "no client"}`} />`;
  const tools = name && mostOf(failed, (it) => it.target, (tool) => ({ ...filters, tool }));
  const people = mostOf(failed, (it) => it.principal, (person) => ({ ...filters, person }));
  const what = name
    ? html`client <strong><a href=${linkToClient(failed[0].client, failed[0])}><${Name} value=${name} limit=${60} /></a></strong> failed ${link} of ${plural(calls, "call")} since ${startOf(status)} (${share(number, calls)}): ${tools}`
    : html`${link} calls that name no client failed since ${startOf(status)}${people !== "–" && html`, of ${people}`}`;
  return html`<li class="errors"><div>${what}${commonError(failed)}</div></li>`;
}

/** The problems and errors of a server, and the button that has Vary try it at once. */
function ServerProblem({ server, retry, status, tried }) {
  const { name, state, stderr, nextAttempt } = server;
  const problems = problemsOf(server);
  const missed = missedBy(server, status);
  const sentences = [...problems, ...(server.calls?.errors > (state === "up" ? 0 : total(missed)) ? [errorsOf(server, status)] : [])];
  const itsName = { outcome: "not_listed", error: `server \`${name}\`` };
  const mayBe = state === "down" ? failuresWith(status, itsName) : [];
  return html`<li class=${problems.length > 0 ? "" : "errors"}>
    <div>
      ${(sentences.length > 0 ? sentences : [`is ${state}`]).map((it) => html`<div><strong><${Name} value=${name} /></strong> ${it}</div>`)}
      ${missed.length > 0 && html`<div>${plural(total(missed), "call")} did not reach it (<a href=${link("now", { server: name, outcome: "error" })}>show them</a>), of ${callerLinks(missed)}; the last one at ${timeOfDay(lastOf(missed))}</div>`}
      ${mayBe.length > 0 && html`<div><a href=${link("now", itsName)}>${plural(total(mayBe), "call")}</a> of names that no server lists now may have meant it</div>`}
      ${tried?.error && html`<${Problem} what="It was not tried." error=${tried.error} />`}</div>
    ${(state === "down" || tried) &&
    html`<div class="try">
      ${state === "down" && retry && html`<button type="button" aria-label=${`Try now: ${plain(name, 40)}`} onClick=${() => retry(server)}>Try now</button>`}
      <div role="status">${tried && !tried.error && outcomeOfTry(server, tried)}</div>
      ${nextAttempt > 0 && !isTrying(server, tried) && `next attempt in ${nextAttempt}\u00A0s`}</div>`}
    ${stderr && html`<pre title="the last lines of its standard error">${visible(stderr.join("\n"), true)}</pre>`}
  </li>`;
}

/** The calls that failed while a server was down. */
const missedBy = ({ name }, status) => failuresWith(status, { server: name, outcome: "error" }).filter(({ isAnswered }) => !isAnswered);

/** Seconds until the status has what came of a try that fails at once. */
const TRY = 1.5;

const isTrying = ({ state, nextAttempt }, tried) => tried && !tried.error && state === "down" && (nextAttempt === 0 || Date.now() / 1000 - tried.at < TRY);

function outcomeOfTry(server, tried) {
  if (isTrying(server, tried)) return "trying …";
  const { state, reason } = server;
  const outcome = state !== "down" ? `it is ${state}` : reason === tried.reason ? "the same error" : "another error";
  return html`${outcome},<br />tried at ${timeOfDay(tried.at)}`;
}

/** How many calls of a server failed, and what the last of them answered. */
function errorsOf({ name, calls }, status) {
  const number = html`<${CallCount} number=${calls.errors} filters=${{ server: name, outcome: "error" }} what=${`errors of ${name}`} />`;
  const { count: last, errors } = recentOf(name, status);
  const lately = last > 0 && html`<strong>${count(errors)} of its last ${plural(last, "call")}</strong> (${share(errors, last)}), and `;
  const failed = failuresWith(status, { server: name, outcome: "error" });
  const clients = mostOf(failed, (it) => it.client?.name, (client) => ({ server: name, outcome: "error", client }));
  return html`failed ${lately}${number} of ${plural(calls.count, "call")} since ${startOf(status)} (${share(calls.errors, calls.count)}): ${clients}${commonError(failed)}`;
}

/** What most of the calls that failed answered, and when the last of them did; a line in any case, so that nothing moves. */
function commonError(calls) {
  const byText = grouped(calls, (it) => (it.isUnknownTool ? OUTCOMES.not_listed[1] : (it.error ?? outcomeOf(it))));
  const [most, ...others] = byText;
  const also = others.slice(0, 2).map(([text, some]) => html`<div class="last faint">${plural(total(some), "time")}: <${Name} value=${text} limit=${120} /></div>`);
  const often = byText.length > 1 && total(most[1]) > 1 && `, ${count(total(most[1]))} times`;
  return html`<div class="last">${most ? html`${timeOfDay(lastOf(most[1]))}${often}: <${Name} value=${most[0]} limit=${200} />` : "\u00A0"}</div>${also}`;
}

/** What does not work at a server, in sentences without its name. */
function problemsOf({ state, since, reason, name, nextAttempt, failedLists = {}, listFaults = [], login }) {
  const short = (text) => sentence(text, 200);
  const problems = Object.entries(failedLists).map(([method, why]) => html`cannot be read (${method}): ${short(why)}`);
  if (reason) {
    const prefix = `server \`${name}\``;
    const why = reason.startsWith(prefix) ? reason.slice(prefix.length).replace(/^:? /, "") : reason;
    problems.unshift(html`has been ${state} for ${duration(since)}: ${short(why)}${nextAttempt === 0 && "; it is being tried again"}`);
  }
  problems.push(...listFaults.map(short));
  if (login?.ended) problems.push(html`needs a new login: <code>vary login</code>`);
  return problems;
}

/** The calls of a server in the last minutes, of those that are kept. */
const recentOf = (name, status) => status.recent?.[name] ?? { count: 0, errors: 0 };

/** Whether enough of its last calls failed, or if there are too few, of all. */
function failsOften({ name, calls }, status) {
  const recent = recentOf(name, status);
  const judged = recent.count >= FEWEST_ERRORS ? recent : calls;
  return judged?.errors >= FEWEST_ERRORS && judged.errors >= SHARE_OF_SERVER * judged.count;
}

/** How bad the errors of a server are: many weigh more, and so does a large share. */
export const weight = ({ name, calls }, status) => {
  const { count, errors } = recentOf(name, status);
  return errors > 0 ? 1e6 * (errors ** 2 / count) : calls?.errors ? calls.errors ** 2 / calls.count : 0;
};

/** The kinds of servers that an operator looks at first. */
const KINDS = ["down", "with problems", "failing often"];

/** The place of a server among the kinds; after them if it works. */
function kindOf(server, status) {
  if (problemsOf(server).length > 0) return server.state === "down" ? 0 : 1;
  return failsOften(server, status) ? 2 : KINDS.length;
}

export const hasProblem = (server, status) => kindOf(server, status) < KINDS.length;

/** How many servers, clients and settings need an action of the operator, and that in words. */
export function actionsOf(status, { setup = [] } = {}) {
  const { servers = [] } = status;
  const numbers = KINDS.map((kind, at) => [servers.filter((it) => kindOf(it, status) === at).length, kind]).filter(([number]) => number > 0);
  const labels = numbers.map(([number, kind], at) => `${at === 0 ? plural(number, "server") : count(number)} ${kind}`);
  const [clients, settings] = [failingClients(status).length, setup.filter(({ kind }) => kind !== "note").length];
  if (clients > 0) labels.push(`${plural(clients, "client")} failing often`);
  if (settings > 0) labels.push(plural(settings, "setting"));
  return { number: numbers.reduce((sum, [number]) => sum + number, clients + settings), label: labels.join(", ") };
}
