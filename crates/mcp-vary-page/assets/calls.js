// The calls that Vary recorded: the last ones, those that follow while this page is open, and which of them are wanted.

import { events, get } from "./api.js";
import { OPERATOR } from "./client.js";
import { addressOfMinute, secondsOf, spaced } from "./format.js";
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
  session_lost: ["session lost", "Vary or the client had started again; clients begin a new one by themselves"],
  not_listed: ["not listed", "Vary answered: the variant does not list this tool"],
  denied: ["denied", "Vary refused it, and sent nothing to a server"],
  cancelled: ["cancelled", "the client did not wait for the answer"],
};

/** What came of a call, a member of `OUTCOMES`. */
export function kindOf({ outcome, isUnknownTool, serverMs, error }) {
  if (outcome === "error") return isUnknownTool ? "not_listed" : error?.startsWith("Session not found") ? "session_lost" : "protocol_error";
  return outcome === "tool_error" && typeof serverMs !== "number" && /^invalid arguments: |the tool was not called; /.test(error ?? "") ? "refused" : outcome;
}

export const outcomeOf = (call) => OUTCOMES[kindOf(call)]?.[0] ?? spaced(call.outcome);
/** The first line of what the client read of an error, without when its server is tried again. */
export const firstLine = (error) => error?.split("\n")[0].split("; it is tried again in ")[0];
/** What names a call in an address. Numbers begin anew when Vary starts, and the audit log has others: the second and the duration are the same. */
export const keyOf = ({ id, at, durationMs }) => `${id}-${Math.floor(at)}-${durationMs}`;
export const timeOfKey = (key) => Number(key.split("-")[1]);
/** The call that a key names. Each time that Vary is asked, the milliseconds may be others. */
export function callOf(calls, key) {
  const [id, , took] = key.split("-");
  const near = calls.filter((it) => Math.abs(it.at - timeOfKey(key)) < 2);
  return near.find((it) => it.id === Number(id)) ?? near.find(({ durationMs }) => String(durationMs) === took);
}
/** The periods to choose from, by their minutes. */
export const PERIODS = { 1: "the last minute", 5: "the last 5 minutes", 60: "the last hour" };
/** From when on Vary keeps each call, also one that succeeded; 0 for all since its start. */
export const keptSince = () => (log.calls?.length >= MOST_CALLS ? log.calls[MOST_CALLS - 1].at : 0);
/** The outcomes of the filter that are several: any error, and what an experiment counts as invalid (-32602 is “Invalid params”). */
const SEVERAL = { error: isError, invalid: (call) => call.code === -32602 || kindOf(call) === "refused" };

/** What narrows the list, by the parameter of the address that has what is wanted. Without `to`, `from` is one minute. A time that is not understood filters nothing; the view says so. */
const FILTERS = {
  outcome: (call, wanted) => (Object.hasOwn(SEVERAL, wanted) ? SEVERAL[wanted](call) : kindOf(call) === wanted),
  client: (call, wanted) => call.client?.name === wanted,
  version: (call, wanted) => call.client?.version === wanted,
  variant: (call, wanted) => call.variant === wanted,
  reason: (call, wanted) => call.reason === wanted,
  person: (call, wanted) => call.principal === wanted,
  server: (call, wanted) => call.server === wanted,
  rule: (call, wanted) => call.rule === wanted,
  tool: (call, wanted) => call.target === wanted,
  error: (call, wanted) => firstLine(call.error)?.startsWith(wanted.replace(/…$/, "")) === true,
  q: (call, wanted) => wanted.trim().split(/\s+/).map(matcher).every((matches) => textsOf(call).some(matches)),
  minutes: (call, wanted) => !(call.at < beginOf(wanted)),
  from: (call, wanted, params) => !(call.at < secondsOf(wanted)) && (secondsOf(params.get("to")) > 0 || !(call.at >= secondsOf(wanted) + 60)),
  to: (call, wanted) => !(call.at >= secondsOf(wanted) + 60),
};

/** When a period begins that ends now; `NaN` for what is not one. */
export const beginOf = (minutes) => Date.now() / 1000 - 60 * Number(minutes);

/** The filters that come with a link alone. */
export const FIXED = ["tool", "rule", "version", "variant", "reason", "error"];

/** An argument of a command as a shell reads it. */
export const quoted = (text) => (/[^\w./:-]/.test(text) ? `'${text.replaceAll("'", "'\\''")}'` : text);

/** The command that reads the calls of some filters from the audit log, or those of the minute of a call that is wanted and not kept. */
export function auditCommand(params) {
  const [key, from] = [params.get("call"), params.get("from") ?? ""];
  const lost = key && !callOf(log.calls ?? [], key) ? timeOfKey(key) : NaN;
  const written = (seconds) => seconds > 0 && addressOfMinute(seconds).replace("Z", ":00Z");
  const since = written(lost || secondsOf(from)) || (params.get("minutes") > 0 && `${params.get("minutes")}m`);
  const until = written((lost || secondsOf(params.get("to") || from)) + 60);
  const searched = log.calls?.find(({ target }) => target === params.get("q"))?.target;
  const [who, client, server, tool = searched] = ["person", "client", "server", "tool"].map((name) => params.get(name) ?? undefined);
  // What cannot be seen should not be pasted into a terminal.
  const outcome = ["allowed", "denied", "tool_error", "cancelled"].find((it) => it === params.get("outcome"));
  const wanted = Object.entries({ who, client, server, tool, outcome, since, until }).filter(([, value]) => value && plain(value, Infinity) === value);
  return ["vary audit", quoted(log.auditFile), ...wanted.map(([flag, value]) => `--${flag} ${quoted(value)}`)].join(" ");
}

/** What each word of a search may be a part of. */
const textsOf = (call) =>
  [call.target ?? call.method, call.upstreamName, call.server, call.client?.name, call.principal, call.variant, outcomeOf(call), call.error].filter(Boolean);

export const filtersOf = (params) => Object.keys(FILTERS).filter((name) => params.get(name));

/** The calls that an address wants, whatever it says of the filters that are left out. */
export function narrowed(calls, params, leftOut = []) {
  const names = filtersOf(params).filter((name) => !leftOut.includes(name));
  return calls.filter((call) => names.every((name) => FILTERS[name](call, params.get(name), params)));
}

/** The calls that a link with these filters leads to; or those of other `calls`. */
export const callsWith = (filters, calls = log.calls ?? []) => narrowed(calls, new URLSearchParams(Object.entries(filters).filter(([, value]) => value)));

/** The calls of clients that failed or were refused since the start, those that are alike as one with their `count` and when the last one ended. */
export const failuresWith = ({ failures = [] }, filters) => callsWith(filters, failures.filter((it) => it.principal !== OPERATOR));

/** How many calls these are, some of which may stand for several, and when the last one ended. */
export const total = (calls) => calls.reduce((sum, { count = 1 }) => sum + count, 0);
export const lastOf = (calls) => Math.max(...calls.map(({ at }) => at));

/** As many calls as Vary keeps: of older ones, only what failed or was refused. */
const kept = (calls) =>
  calls.filter((call, at) => at < MOST_CALLS || isError(call) || call.outcome === "denied").slice(0, MOST_CALLS + 2 * MOST_ERRORS);

class CallLog {
  /** The latest first; absent until they are read. */
  calls;
  /** Where the older ones are; absent without an audit log, and for those who may not know it. */
  auditFile;
  dropped = 0;
  waiting = [];
  /** What the view that shows calls does with new ones, at most four times a second, and with why they are not followed. */
  watcher = {};
  timer = setInterval(() => this.flush(), PACE);

  /** Follows the calls in all views, until `stop`: what was called last can be seen when Vary is gone. */
  start() {
    if (this.abort) return;
    this.abort = new AbortController();
    this.follow(this.abort.signal);
  }

  stop() {
    this.abort?.abort();
    this.abort = null;
  }

  async follow(signal) {
    while (!signal.aborted) {
      try {
        for await (const { event, data } of events("/api/events", signal)) {
          if (event === "open") await this.load();
          else this.take(event, data);
        }
      } catch (error) {
        if (signal.aborted) return;
        this.watcher.failed?.(error);
        if (error.status === 401) return this.stop();
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
    this.watcher.changed?.();
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
    this.watcher.changed?.();
  }
}

/** The calls that all views show. */
export const log = new CallLog();
