// The servers of the view of now: which work, why others do not, and what their operator should do.

import { post } from "./api.js";
import { isError, log, outcomeOf } from "./calls.js";
import { Component, html } from "./dom.js";
import { count, duration, milliseconds, plural, share, timeOfDay } from "./format.js";
import { CallCount, PlainTable, Problem, Table } from "./parts.js";
import { LongText, Name, plain, visible } from "./text.js";

/** The most servers that are all shown, whatever their state. */
const FEW_SERVERS = 10;

/** Servers with problems come first, then those with errors. Of many, the others are folded. */
export function Servers({ servers }) {
  const columns = servers.some(({ skills }) => skills) ? [...SERVER_COLUMNS, "skills"] : SERVER_COLUMNS;
  const row = (server) => serverRow(server).slice(0, columns.length);
  const sorted = servers.toSorted((a, b) => kindOf(a) - kindOf(b));
  const shown = sorted.filter((it) => servers.length <= FEW_SERVERS || kindOf(it) < KINDS.length);
  const others = sorted.slice(shown.length);
  const empty = servers.length > 0 ? "All servers work." : html`The configuration names no server. Add one to <code>servers</code>, then run <code>vary reload</code>.`;
  return html`
    <${Table} title="Servers" rows=${shown.map(row)} ...${{ columns, empty }} />
    ${others.length > 0 &&
    html`<details>
      <summary>${plural(others.length, "server")} without problems</summary>
      <${PlainTable} label="Servers without problems" rows=${others.map(row)} columns=${columns} />
    </details>`}
  `;
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

/** The most servers whose errors are shown above the calls. */
const MOST_WITH_ERRORS = 4;

/** Why servers are down and when Vary tries again, what else their operator should do, and which servers have errors. */
export class ServerProblems extends Component {
  /** By the name of a server: when somebody had Vary try it, and why it was down then. */
  state = { tried: {} };

  retry = async ({ name, reason }) => {
    const note = (outcome) => this.setState(({ tried }) => ({ tried: { ...tried, [name]: { at: Date.now() / 1000, reason, ...outcome } } }));
    note({});
    await post(`/api/retry?${new URLSearchParams({ server: name })}`, {}).catch((error) => note({ error }));
  };

  render({ status: { servers, retries, missingKeys = [] }, most = MOST_WITH_ERRORS }, { tried }) {
    const isShown = (server) => tried[server.name] || problemsOf(server).length > 0;
    const failing = servers.filter((it) => hasErrors(it) && !isShown(it)).slice(0, most);
    const shown = [...servers.filter(isShown), ...failing];
    const retry = retries && this.retry;
    return html`
      ${missingKeys.map((why) => html`<p class="problem"><strong>Keys of an issuer are missing.</strong> <${LongText} value=${why} /></p>`)}
      ${shown.length > 0
        ? html`<ul class="server-problems" aria-label="Server problems">${shown.map((server) => html`<${ServerProblem} key=${server.name} ...${{ server, retry }} tried=${tried[server.name]} />`)}</ul>`
        : servers.length > 0 && html`<p class="note">All servers can be used.</p>`}
    `;
  }
}

/** The problems and errors of a server, and the button that has Vary try it at once. */
function ServerProblem({ server, retry, tried }) {
  const { name, state, stderr, nextAttempt } = server;
  const problems = problemsOf(server);
  const sentences = [...problems, ...(hasErrors(server) ? [errorsOf(server)] : [])];
  return html`<li class=${problems.length > 0 ? "" : "errors"}>
    <div>
      ${(sentences.length > 0 ? sentences : [`is ${state}`]).map((it) => html`<div><strong><${Name} value=${name} /></strong> ${it}</div>`)}
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
function errorsOf({ name, calls }) {
  const last = log.calls?.find((it) => it.server === name && isError(it));
  const number = html`<${CallCount} number=${calls.errors} filters=${{ server: name, outcome: "error" }} what=${`errors of ${name}`} />`;
  return html`failed ${number} of ${plural(calls.count, "call")} (${share(calls.errors, calls.count)})
    <div class="last">${last ? html`${timeOfDay(last.at)} <${Name} value=${last.error ?? outcomeOf(last)} limit=${200} />` : "\u00A0"}</div>`;
}

/** What does not work at a server, in sentences without its name. */
function problemsOf({ state, since, reason, name, nextAttempt, failedLists = {}, listFaults = [], login }) {
  const sentence = (text) => html`<${LongText} value=${text} limit=${200} isSentence />`;
  const problems = Object.entries(failedLists).map(([method, why]) => html`cannot be read (${method}): ${sentence(why)}`);
  if (reason) {
    const prefix = `server \`${name}\``;
    const why = reason.startsWith(prefix) ? reason.slice(prefix.length).replace(/^:? /, "") : reason;
    problems.unshift(html`has been ${state} for ${duration(since)}: ${sentence(why)}${nextAttempt === 0 && "; it is being tried again"}`);
  }
  problems.push(...listFaults.map(sentence));
  if (login?.ended) problems.push(html`needs a new login: <code>vary login</code>`);
  return problems;
}

const hasErrors = ({ calls }) => calls?.errors > 0;

/** The kinds of servers that an operator looks at first. */
const KINDS = ["down", "with problems", "with errors"];

/** The place of a server among the kinds; after them if it works. */
function kindOf(server) {
  if (problemsOf(server).length > 0) return server.state === "down" ? 0 : 1;
  return hasErrors(server) ? 2 : KINDS.length;
}

/** How many servers have problems or had errors, and that in words. */
export function problemSummary({ servers }) {
  const numbers = KINDS.map((kind, at) => [servers.filter((it) => kindOf(it) === at).length, kind]).filter(([number]) => number > 0);
  const label = numbers.map(([number, kind], at) => `${at === 0 ? plural(number, "server") : count(number)} ${kind}`).join(", ");
  return { number: numbers.reduce((sum, [number]) => sum + number, 0), label };
}
