// Numbers and times as text.

const NUMBERS = new Intl.NumberFormat("en");

/** A whole number with separators; `–` for what is not known. */
export const count = (number) => (typeof number === "number" ? NUMBERS.format(number) : "–");

/** A number with its noun: `1 tool`, `2 tools`. */
export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** A number of milliseconds with three digits that count. */
export function milliseconds(ms) {
  if (typeof ms !== "number") return "–";
  if (ms < 10) return `${ms.toFixed(2)}\u00A0ms`;
  if (ms < 100) return `${ms.toFixed(1)}\u00A0ms`;
  return ms < 10_000 ? `${ms.toFixed(0)}\u00A0ms` : `${(ms / 1000).toFixed(1)}\u00A0s`;
}

/** A number of seconds in its two largest units. */
export function duration(seconds) {
  if (typeof seconds !== "number") return "–";
  const units = [["d", 86_400], ["h", 3_600], ["min", 60], ["s", 1]];
  const first = units.findIndex(([, length]) => seconds >= length);
  if (first < 0) return "0\u00A0s";
  let left = Math.floor(seconds);
  const parts = units.slice(first, first + 2).map(([unit, length]) => {
    const whole = Math.floor(left / length);
    left -= whole * length;
    return whole ? `${whole}\u00A0${unit}` : "";
  });
  return parts.filter(Boolean).join(" ");
}

/** The time of day of a moment in seconds since 1970. */
export const timeOfDay = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB");

/** A minute as `09:31`, with its day unless that is today. */
export function minuteOfDay(seconds) {
  const at = new Date(seconds * 1000);
  const day = at.toDateString() !== new Date().toDateString() && { day: "numeric", month: "short" };
  return at.toLocaleString("en-GB", { ...day, hour: "2-digit", minute: "2-digit" });
}

/** A moment of the last ten minutes as `09:31:07`, an earlier one as its minute. */
export const momentOfDay = (seconds) => (Date.now() / 1000 - seconds < 600 ? timeOfDay : minuteOfDay)(seconds);

/** When Vary started, which is when what it counts begins. */
export const startOf = ({ begun }) => minuteOfDay(begun);

/** A minute as an address has it, `2026-11-29T09:31Z`, and the second at which it begins; `NaN` for another text. */
export const addressOfMinute = (seconds) => `${new Date(seconds * 1000).toISOString().slice(0, 16)}Z`;
export const secondsOf = (text) => (/^[-\d]{10}T[:\d]{5}Z$/.test(text) ? Date.parse(text) / 1000 : NaN);

/** A minute as a person may write it, with its day unless that is today; nothing for `NaN`. */
export function writtenMinute(seconds) {
  const [day, time] = new Date(seconds * 1000).toLocaleString("sv").slice(0, 16).split(" ");
  return seconds > 0 ? [day !== new Date().toLocaleDateString("sv") && day, time].filter(Boolean).join(" ") : "";
}

/** What a person may write for a minute, as a sentence has it. */
export const TIMES = "14:05, 2026-11-29 14:05, 10m ago or 2h ago";

/** The second at which the minute begins that a person wrote as one of `TIMES`; `NaN` for another text. */
export function secondsOfWritten(text) {
  const [, number, unit] = text.match(/^(\d{1,4}) ?(m|min|h) ago$/) ?? [];
  if (number) return Math.floor(Date.now() / 60_000 - number * (unit === "h" ? 60 : 1)) * 60;
  const [, day = new Date().toLocaleDateString("sv"), time] = text.match(/^(\d{4}-\d\d-\d\d)?[ T]?(\d?\d:\d\d)$/) ?? [];
  return Date.parse(`${day}T${time?.padStart(5, "0")}`) / 1000;
}

/** From here on, a multiple says more than a percentage. */
const MANIFOLD = 10;

/** How a count relates to a baseline: `41 %`, or `42 ×`. */
export function share(part, whole) {
  if (!whole || typeof part !== "number") return "–";
  if (part / whole > MANIFOLD) return `${count(Math.round(part / whole))}\u00A0×`;
  return `${((part / whole) * 100).toFixed(part / whole < 0.1 ? 1 : 0)}\u00A0%`;
}

/** How many tokens differ from those of a baseline: `−59 %`, `same`, or `42 ×`. */
export function saving(part, whole) {
  if (typeof whole !== "number" || typeof part !== "number") return "–";
  if (part === whole) return "same";
  if (whole === 0) return "no tokens before";
  if (part / whole > MANIFOLD) return share(part, whole);
  const percent = (part / whole - 1) * 100;
  const size = Math.abs(percent);
  const digits = size < 0.1 ? "<0.1" : size.toFixed(size < 1 ? 1 : 0);
  return `${percent > 0 ? "+" : "−"}${digits}\u00A0%`;
}

/** The value that `percent` of the numbers do not exceed; `undefined` without numbers. */
export function percentile(numbers, percent) {
  const sorted = numbers.filter((it) => typeof it === "number").sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)];
}

/** `pendingServerRequests` as words. */
export const spaced = (name) => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).replaceAll("_", " ");

/** The metrics of experiments that are shares; the values of others have units. */
const SHARES = ["failed", "invalid-arguments", "repaired"];

export function shownValue(metric, value) {
  if (metric === "duration") return milliseconds(value);
  return SHARES.includes(metric) ? `${(value * 100).toFixed(1)}\u00A0%` : `${value.toFixed(1)}\u00A0${metric}`;
}

/** A difference; of shares in percentage points. */
export function signed(metric, difference) {
  const isShare = SHARES.includes(metric);
  const size = Math.abs(isShare ? difference * 100 : difference).toFixed(1);
  const sign = size === "0.0" ? "±" : difference < 0 ? "−" : "+";
  return `${sign}${size}\u00A0${isShare ? "points" : metric === "duration" ? "ms" : metric}`;
}

/** Both ends of an interval; `show` is one of the functions above. A unit that both have is named once. */
export function interval(show, metric, { from, to }) {
  const [least, most] = [show(metric, from), show(metric, to)];
  const [number, unit] = least.split("\u00A0");
  return `${most.endsWith(`\u00A0${unit}`) ? number : least} to ${most}`;
}

export const probability = (p) => (p < 0.001 ? "<0.001" : p.toFixed(3));
