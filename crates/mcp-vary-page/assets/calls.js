// The calls that Vary recorded: the last ones, those that follow while this page is open, and which of them are wanted.

import { events, get } from "./api.js";
import { addressOfMinute, count, secondsOf, spaced } from "./format.js";
import { matcher } from "./parts.js";
import { plain } from "./text.js";

/** What Vary keeps: the last calls, and of older ones as many errors, and as many that it refused. */
export const MOST_CALLS = 1000;
export const MOST_ERRORS = 100;
/** Milliseconds between two drawings of the list, however many calls come. */
const PACE = 250;
/** Milliseconds until a stream that ended is opened again. */
const RETRY = 3000;

/** Whether the server failed, or the tool said that it did (`tool_error`). */
export const isError = ({ outcome }) => outcome === "error" || outcome === "tool_error";

/** How many of the calls failed, and how many Vary refused. */
export const failures = (calls) => ({ errors: calls.filter(isError).length, denied: calls.filter((it) => it.outcome === "denied").length });

/** What can come of a call, in words, and what that means. */
export const OUTCOMES = {
  allowed: ["ok", "answered with a result"],
  tool_error: ["tool error", "the tool reports that it failed"],
  refused: ["arguments refused", "Vary refused the arguments; the server was not called"],
  protocol_error: ["error", "answered with an error instead of a result"],
  not_listed: ["not listed", "Vary answered: the variant does not list this tool"],
  denied: ["denied", "Vary refused it, and sent nothing to a server"],
  cancelled: ["cancelled", "the client did not wait for the answer"],
};

/** What came of a call, a member of `OUTCOMES`. */
export function kindOf({ outcome, isUnknownTool, serverMs, error }) {
  if (outcome === "error") return isUnknownTool ? "not_listed" : "protocol_error";
  return outcome === "tool_error" && typeof serverMs !== "number" && error?.includes("the tool was not called; ") ? "refused" : outcome;
}

export const outcomeOf = (call) => OUTCOMES[kindOf(call)]?.[0] ?? spaced(call.outcome);
/** The server of a call, also of one that did not reach it since it was down. */
export const serverOf = ({ server, error }) => server ?? error?.match(/^server `(.+?)` is down/)?.[1];
/** The first line of what the client read of an error. */
export const firstLine = (error) => error?.split("\n")[0];
/** What names a call in an address. Numbers begin anew when Vary starts, so the second is a part of it. */
export const keyOf = ({ id, at }) => `${id}-${Math.floor(at)}`;
export const timeOfKey = (key) => Number(key.split("-")[1]);
/** The call that a key names. Each time that Vary is asked, the milliseconds may be others. */
export const callOf = (calls, key) => calls.find((it) => it.id === Number(key.split("-")[0]) && Math.abs(it.at - timeOfKey(key)) < 2);
/** The periods to choose from, by their minutes, and the longest of which the list has each call. */
export const PERIODS = { 1: "the last minute", 5: "the last 5 minutes", 60: "the last hour" };
export const longestPeriod = () => Object.keys(PERIODS).findLast((minutes) => callsWith({ minutes }).length < MOST_CALLS) ?? "1";
/** The longest period in words, and why it is no longer one. */
export const longestPeriodName = () => `${PERIODS[longestPeriod()]}${longestPeriod() === "60" ? "" : `: the history holds ${count(MOST_CALLS)} calls`}`;

/** What narrows the list, by the parameter of the address that has what is wanted. Without `to`, `from` is one minute. A time that is not understood filters nothing; the view says so. */
const FILTERS = {
  outcome: (call, wanted) => (wanted === "error" ? isError(call) : kindOf(call) === wanted),
  client: (call, wanted) => call.client?.name === wanted,
  version: (call, wanted) => call.client?.version === wanted,
  variant: (call, wanted) => call.variant === wanted,
  reason: (call, wanted) => call.reason === wanted,
  person: (call, wanted) => call.principal === wanted,
  server: (call, wanted) => serverOf(call) === wanted,
  rule: (call, wanted) => call.rule === wanted,
  tool: (call, wanted) => call.target === wanted,
  q: (call, wanted) => wanted.trim().split(/\s+/).map(matcher).every((matches) => textsOf(call).some(matches)),
  minutes: (call, wanted) => !(call.at < Date.now() / 1000 - 60 * Number(wanted)),
  from: (call, wanted, params) => !(call.at < secondsOf(wanted)) && (secondsOf(params.get("to")) > 0 || !(call.at >= secondsOf(wanted) + 60)),
  to: (call, wanted) => !(call.at >= secondsOf(wanted) + 60),
};

/** The filters that come with a link alone. */
export const FIXED = ["tool", "rule", "version", "variant", "reason"];

/** The command that reads the calls of some filters from the audit log, or those since the call that is wanted. */
export function auditCommand(params) {
  const quoted = (text) => (/[^\w./:-]/.test(text) ? `'${text.replaceAll("'", "'\\''")}'` : text);
  const minute = params.has("call") ? addressOfMinute(timeOfKey(params.get("call"))) : (params.get("from") ?? "");
  const since = secondsOf(minute) > 0 ? minute.replace("Z", ":00Z") : params.get("minutes") > 0 && `${params.get("minutes")}m`;
  const searched = log.calls?.find(({ target }) => target === params.get("q"))?.target;
  const [who, client, server, tool = searched] = ["person", "client", "server", "tool"].map((name) => params.get(name) ?? undefined);
  // What cannot be seen should not be pasted into a terminal.
  const wanted = Object.entries({ who, client, server, tool, since }).filter(([, value]) => value && plain(value, Infinity) === value);
  const flags = wanted.map(([flag, value]) => `--${flag} ${quoted(value)}`);
  return ["vary audit", quoted(log.auditFile), ...flags].join(" ");
}

/** What each word of a search may be a part of. */
const textsOf = (call) =>
  [call.target ?? call.method, call.upstreamName, call.server, call.client?.name, call.principal, call.variant, outcomeOf(call), call.error].filter(Boolean);

/** The filters that the address has. */
export const filtersOf = (params) => Object.keys(FILTERS).filter((name) => params.get(name));

/** The calls that an address wants, whatever it says of the filters that are left out. */
export function narrowed(calls, params, leftOut = []) {
  const names = filtersOf(params).filter((name) => !leftOut.includes(name));
  return calls.filter((call) => names.every((name) => FILTERS[name](call, params.get(name), params)));
}

/** The calls that a link with these filters leads to. */
export const callsWith = (filters) => narrowed(log.calls ?? [], new URLSearchParams(filters));

/** The calls that Vary keeps, too. */
function kept(calls) {
  const older = { errors: 0, denied: 0 };
  return calls.filter((call, at) => {
    const kind = isError(call) ? "errors" : call.outcome;
    if (kind in older) older[kind] += 1;
    return at < MOST_CALLS || older[kind] <= MOST_ERRORS;
  });
}

class CallLog {
  /** The latest first; absent until they are read. */
  calls;
  /** Where the older ones are; absent without an audit log, and for those who may not know it. */
  auditFile;
  dropped = 0;
  waiting = [];

  /** Follows the calls until `stop`; `changed` is called at most four times a second. */
  start(changed, failed) {
    this.abort = new AbortController();
    this.changed = changed;
    this.timer = setInterval(() => this.flush(), PACE);
    this.follow(this.abort.signal, failed);
  }

  stop() {
    this.abort.abort();
    clearInterval(this.timer);
  }

  async follow(signal, failed) {
    while (!signal.aborted) {
      try {
        for await (const { event, data } of events("/api/events", signal)) {
          if (event === "open") await this.load();
          else this.take(event, data);
        }
      } catch (error) {
        if (signal.aborted) return;
        failed(error);
        if (error.status === 401) return;
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY));
    }
  }

  /** Gets the calls that ended before the stream began. After a restart they are those of the new process. */
  async load() {
    const { calls, auditFile } = await get("/api/last-calls");
    this.loaded = new Set(calls.map(({ id }) => id));
    Object.assign(this, { calls, auditFile });
    this.waiting = [];
    this.dropped = 0;
    this.changed();
  }

  take(event, data) {
    if (event === "dropped") this.dropped += data.count;
    // Those that ended while the list was read are in it.
    if (event !== "call" || this.loaded?.has(data.id)) return;
    this.waiting.push(data);
    if (this.waiting.length > MOST_CALLS) this.waiting.shift();
  }

  flush() {
    if (this.waiting.length === 0 || document.hidden) return;
    this.calls = kept([...this.waiting.reverse(), ...this.calls]);
    this.waiting = [];
    this.changed();
  }
}

/** The calls that all views show. */
export const log = new CallLog();
