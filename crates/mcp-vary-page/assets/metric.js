// Values of the metrics of experiments as text, each with its unit.

import { milliseconds } from "./format.js";

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
