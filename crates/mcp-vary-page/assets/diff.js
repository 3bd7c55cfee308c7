// What differs between two texts, by words.

import { html } from "./dom.js";
import { visible } from "./text.js";

/** Beyond this many comparisons, what lies between the common beginning and end counts as replaced. */
const MOST_COMPARISONS = 4_000_000;

/** The differences by words, or other units: `["same" | "removed" | "added", text]` in their order. */
export function diff(before, after, units = words) {
  const [a, b] = [units(before), units(after)];
  const start = commonStart(a, b);
  const end = commonStart(a.slice(start).reverse(), b.slice(start).reverse());
  const middle = difference(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const all = [["same", a.slice(0, start)], ...middle, ["same", a.slice(a.length - end)]];
  return merged(all.map(([kind, some]) => [kind, some.join("")]));
}

/** Lines with more in common than this are compared by words; a word diff of others says nothing. */
const ALIKE = 0.6;

/** The most characters of lines that are compared by words. */
const MOST_COMPARED = 4_000;

/** The differences by lines, within those that are alike by words. */
export function diffLines(before, after) {
  const hunks = diff(before, after, linesOf);
  return hunks.flatMap(([kind, text], at) => {
    const [next, added] = hunks[at + 1] ?? [];
    if (kind === "added" && hunks[at - 1]?.[0] === "removed") return [];
    return kind === "removed" && next === "added" ? replaced(text, added) : [[kind, text]];
  });
}

function replaced(before, after) {
  const pieces = before.length + after.length < MOST_COMPARED ? diff(before, after) : [];
  return likeness(pieces, before, after) < ALIKE ? [["removed", before], ["added", after]] : pieces;
}

/** The share of the longer text that both have in common, from 0 to 1, without spaces. */
export function likeness(pieces, before, after) {
  const size = (text) => text.replace(/\s/g, "").length;
  const same = pieces.reduce((sum, [kind, text]) => sum + (kind === "same" ? size(text) : 0), 0);
  return same / Math.max(1, size(before), size(after));
}

export const linesOf = (text) => text.split(/(?<=\n)/);

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
  const add = (kind, text) => {
    if (text && result.at(-1)?.[0] === kind) result.at(-1)[1] += text;
    else if (text) result.push([kind, text]);
  };
  let [removed, added] = ["", ""];
  for (const [at, [kind, text]] of pieces.entries()) {
    const isBetween = text === " " && (removed || added) && (pieces[at + 1]?.[0] ?? "same") !== "same";
    if (kind === "removed" || (kind === "same" && isBetween)) removed += text;
    if (kind === "added" || (kind === "same" && isBetween)) added += text;
    if (kind !== "same" || isBetween) continue;
    add("removed", removed);
    add("added", added);
    add("same", text);
    [removed, added] = ["", ""];
  }
  return result;
}

const ELEMENTS = { same: "span", removed: "del", added: "ins", skipped: "i" };

export const Diff = ({ before, after, pieces = diff(before, after) }) => html`<bdi class="block diff" dir="auto">
  ${pieces.map(([kind, text]) => html`<${ELEMENTS[kind]}>${visible(text, true)}</${ELEMENTS[kind]}>`)}</bdi>`;
