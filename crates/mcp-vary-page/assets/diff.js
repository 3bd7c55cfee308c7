// What differs between two texts, by words.

import { html } from "./dom.js";
import { visible } from "./text.js";

/** Beyond this many comparisons, what lies between the common beginning and end counts as replaced. */
const MOST_COMPARISONS = 4_000_000;

/** The differences: `["same" | "removed" | "added", text]` in their order. */
export function diff(before, after) {
  const [a, b] = [words(before), words(after)];
  const start = commonStart(a, b);
  const end = commonStart(a.slice(start).reverse(), b.slice(start).reverse());
  const middle = difference(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const all = [["same", a.slice(0, start)], ...middle, ["same", a.slice(a.length - end)]];
  return merged(all.map(([kind, words]) => [kind, words.join("")]));
}

/** The share of the longer text that both have in common, from 0 to 1. */
export function likeness(before, after) {
  const same = diff(before, after).filter(([kind]) => kind === "same");
  return same.reduce((sum, [, text]) => sum + text.trim().length, 0) / Math.max(1, before.length, after.length);
}

const words = (text) => text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];

function commonStart(a, b) {
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at++;
  return at;
}

/** By a longest common subsequence. */
function difference(a, b) {
  if (a.length * b.length > MOST_COMPARISONS) return [["removed", a], ["added", b]];
  const lengths = commonLengths(a, b);
  const pieces = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (a[i] === b[j]) {
      pieces.push(["same", [a[i++]]]);
      j++;
    } else if (j === b.length || (i < a.length && lengths[i + 1][j] >= lengths[i][j + 1])) {
      pieces.push(["removed", [a[i++]]]);
    } else {
      pieces.push(["added", [b[j++]]]);
    }
  }
  return pieces;
}

/** The length of the longest common subsequence of what begins at each pair of places. */
function commonLengths(a, b) {
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i][j] = a[i] === b[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  return lengths;
}

/** Neighbours of one kind as one piece: what was removed before what was added, and single spaces with both. */
function merged(pieces) {
  const result = [];
  let [removed, added] = ["", ""];
  const flush = () => {
    if (removed) result.push(["removed", removed]);
    if (added) result.push(["added", added]);
    [removed, added] = ["", ""];
  };
  for (const [at, [kind, text]] of pieces.entries()) {
    const isBetweenChanges = text === " " && (removed || added) && pieces[at + 1] && pieces[at + 1][0] !== "same";
    if (kind === "removed" || (kind === "same" && isBetweenChanges)) removed += text;
    if (kind === "added" || (kind === "same" && isBetweenChanges)) added += text;
    if (kind !== "same" || isBetweenChanges || text === "") continue;
    flush();
    const last = result.at(-1);
    if (last?.[0] === "same") last[1] += text;
    else result.push(["same", text]);
  }
  flush();
  return result;
}

/** A text with what was removed and added in it. */
export function Diff({ before, after }) {
  const elements = { same: "span", removed: "del", added: "ins" };
  const pieces = diff(before, after);
  return html`<bdi class="block diff" dir="auto">
    ${pieces.map(([kind, text]) => html`<${elements[kind]}>${visible(text, true)}</${elements[kind]}>`)}
  </bdi>`;
}
