// The servers of the view of now: which work, why others do not, and what their operator should do.

import { post } from "./api.js";
import { PERIODS, callsWith, failures, firstLine, isError, longestPeriod, outcomeOf } from "./calls.js";
import { Component, html } from "./dom.js";
import { count, duration, milliseconds, plural, share, startOf, timeOfDay } from "./format.js";
import { CallCount, Problem, Table } from "./parts.js";
import { link } from "./route.js";
import { Folded, LongText, Name, plain, sentence, visible } from "./text.js";
import { callerLinks } from "./who.js";

/** Servers with problems come first, then those with errors. */
export function Servers({ servers, since }) {
  const columns = servers.some(({ skills }) => skills) ? [...SERVER_COLUMNS, "skills"] : SERVER_COLUMNS;
  const rows = servers.toSorted((a, b) => kindOf(a) - kindOf(b)).map((server) => serverRow(server).slice(0, columns.length));
  const empty = html`The configuration names no server. Add one to <code>servers</code>, then run <code>vary reload</code>.`;
  return html`<${Table} title="Servers" ...${{ since, columns, rows, empty }} />`;
}

const SERVER_COLUMNS = ["server", "state", "for", "#tools", "#calls", "#errors", "#p50", "#p95"];

function serverRow({ name, state, since, tools, calls, skills }) {
  return [
    html`<${Name} value=${name} />`,
    html`<span class=${`state ${state}`}>${state}</span>`,
    duration(since),
    count(tools),
    html`<${CallCount} number=${calls?.count} filters=${{ server: name }} what=${`calls of ${name}`} />`,
    html`<${CallCount} number=${calls?.errors} filters=${{ server: name, outcome: "error" }} what=${`errors of ${name}`} />`,
    milliseconds(calls?.p50),
    milliseconds(calls?.p95),
    skills ? "yes" : "–",
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
    const isShown = (server) => tried[server.name] || problemsOf(server).length > 0;
    const failing = servers.filter((it) => failsOften(it) && !isShown(it)).sort((a, b) => weight(b) - weight(a)).slice(0, most);
    const retry = retries && this.retry;
    const items = [...servers.filter(isShown), ...failing].map(
      (server) => html`<${ServerProblem} key=${server.name} ...${{ server, retry }} since=${startOf(status)} tried=${tried[server.name]} />`,
    );
    items.push(...failingClients().slice(0, most));
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

/** From so many failed calls on, and from these shares of the calls, a server or a client fails often. */
const [FEWEST_ERRORS, SHARE_OF_SERVER, SHARE_OF_CLIENT] = [3, 0.05, 0.25];
export const RULE_OF_CARDS = `A server fails often from ${FEWEST_ERRORS} failed calls on that are 5 % of its calls, a client from 25 %.`;

/** The clients that fail often lately, those with the most errors first. */
function failingClients() {
  const minutes = longestPeriod();
  const byClient = [...Map.groupBy(callsWith({ minutes }), ({ client }) => client?.name)].map(([name, calls]) => ({ name, calls, ...failures(calls) }));
  const often = byClient.filter(({ name, calls, errors }) => name && errors >= FEWEST_ERRORS && errors >= SHARE_OF_CLIENT * calls.length);
  return often.sort((a, b) => b.errors - a.errors).map(({ name, calls, errors }) => html`<li key=${`client ${name}`} class="errors"><div>
    client <strong><${Name} value=${name} limit=${60} /></strong> failed
    ${" "}<${CallCount} number=${errors} filters=${{ client: name, outcome: "error", minutes }} what=${`errors of ${name}`} />
    ${" "}of ${plural(calls.length, "call")} in ${PERIODS[minutes]} (${share(errors, calls.length)})
    ${commonError(calls)}
  </div></li>`);
}

/** The problems and errors of a server, and the button that has Vary try it at once. */
function ServerProblem({ server, retry, since, tried }) {
  const { name, state, stderr, nextAttempt } = server;
  const problems = problemsOf(server);
  const sentences = [...problems, ...(server.calls?.errors > 0 ? [errorsOf(server, since)] : [])];
  return html`<li class=${problems.length > 0 ? "" : "errors"}>
    <div>
      ${(sentences.length > 0 ? sentences : [`is ${state}`]).map((it) => html`<div><strong><${Name} value=${name} /></strong> ${it}</div>`)}
      ${state === "down" && html`<${Missed} name=${name} />`}
      ${stderr && html`<pre title="the last lines of its standard error">${visible(stderr.join("\n"), true)}</pre>`}
      ${tried?.error && html`<${Problem} what="It was not tried." error=${tried.error} />`}
    </div>
    ${(state === "down" || tried) &&
    html`<div class="try">
      ${state === "down" && retry && html`<button type="button" aria-label=${`Try now: ${plain(name, 40)}`} onClick=${() => retry(server)}>Try now</button>`}
      <div role="status">${tried && !tried.error && outcomeOfTry(server, tried)}</div>
      ${nextAttempt > 0 && !isTrying(server, tried) && `next attempt in ${nextAttempt}\u00A0s`}
    </div>`}
  </li>`;
}

/** How many calls failed since a server is down, and whose. */
function Missed({ name, filters = { server: name, outcome: "error" } }) {
  const calls = callsWith(filters).filter(({ serverMs }) => typeof serverMs !== "number");
  return calls.length > 0 && html`<div>${plural(calls.length, "call")} did not reach it (<a href=${link("now", filters)}>show them</a>), of ${callerLinks(calls)}</div>`;
}

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
function errorsOf({ name, calls }, since) {
  const number = html`<${CallCount} number=${calls.errors} filters=${{ server: name, outcome: "error" }} what=${`errors of ${name}`} />`;
  return html`failed ${number} of ${plural(calls.count, "call")} since ${since} (${share(calls.errors, calls.count)})${commonError(callsWith({ server: name }))}`;
}

/** What most of the calls that failed answered, and when the last of them did; a line in any case, so that nothing moves. */
function commonError(calls) {
  const byText = Map.groupBy(calls.filter(isError), (it) => firstLine(it.error) ?? outcomeOf(it));
  const [most] = [...byText].sort(([, a], [, b]) => b.length - a.length);
  const often = byText.size > 1 && most[1].length > 1 && ` (${count(most[1].length)} of them)`;
  return html`<div class="last">${most ? html`${timeOfDay(most[1][0].at)} <${Name} value=${most[0]} limit=${200} />${often}` : "\u00A0"}</div>`;
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

const failsOften = ({ calls }) => calls?.errors >= FEWEST_ERRORS && calls.errors >= SHARE_OF_SERVER * calls.count;

/** How bad the errors of a server are: many weigh more, and so does a large share. */
export const weight = ({ calls }) => (calls?.errors ? calls.errors ** 2 / calls.count : 0);

/** The kinds of servers that an operator looks at first. */
const KINDS = ["down", "with problems", "failing often"];

/** The place of a server among the kinds; after them if it works. */
function kindOf(server) {
  if (problemsOf(server).length > 0) return server.state === "down" ? 0 : 1;
  return failsOften(server) ? 2 : KINDS.length;
}

export const hasProblem = (server) => kindOf(server) < KINDS.length;

/** How many servers and settings need an action of the operator, and that in words. */
export function actionsOf({ servers = [] } = {}, { setup = [] } = {}) {
  const numbers = KINDS.map((kind, at) => [servers.filter((it) => kindOf(it) === at).length, kind]).filter(([number]) => number > 0);
  const labels = numbers.map(([number, kind], at) => `${at === 0 ? plural(number, "server") : count(number)} ${kind}`);
  const settings = setup.filter((it) => !it.isNote).length;
  if (settings > 0) labels.push(plural(settings, "setting"));
  return { number: numbers.reduce((sum, [number]) => sum + number, settings), label: labels.join(", ") };
}
