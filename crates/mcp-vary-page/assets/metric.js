// Values of the metrics of experiments as text.

import { milliseconds } from "./format.js";

const SHARES = ["failed", "invalid-arguments", "repaired"];

export function shownValue(metric, value) {
  if (metric === "duration") return milliseconds(value);
  return SHARES.includes(metric) ? `${(value * 100).toFixed(1)}\u00A0%` : value.toFixed(1);
}

/** A difference; of shares in percentage points. */
export function signed(metric, difference) {
  const number = SHARES.includes(metric) ? difference * 100 : difference;
  const text = `${number < 0 ? "−" : "+"}${Math.abs(number).toFixed(1)}`;
  return metric === "duration" ? `${text}\u00A0ms` : text;
}

export const probability = (p) => (p < 0.001 ? "<0.001" : p.toFixed(3));
