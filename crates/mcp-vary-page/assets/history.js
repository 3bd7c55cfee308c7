// The history of an experiment: for each arm the difference to the control over time, with its interval.

import { html } from "./dom.js";
import { interval, minuteOfDay as moment, signed } from "./format.js";
import { Name, plain } from "./text.js";

/** The height of a chart in its own units; its width is that of the history. */
const HEIGHT = 100;

/** `history`: points of `{at, arms}`, the arms in the order of the experiment, the control first. */
export function History({ experiment }) {
  const { arms, metric, history } = experiment;
  const compared = arms.map((arm, at) => ({ variant: arm.variant, at, points: pointsOf(history, at) })).slice(1);
  const drawn = compared.filter(({ points }) => points.length > 2 && moment(points[0].at) !== moment(points.at(-1).at));
  if (drawn.length === 0) return html`<p class="note">After some minutes, a chart here shows how the intervals move since the start of Vary.</p>`;
  const range = rangeOf(drawn.flatMap(({ points }) => points));
  return html`<section class="history">
    <h3>Over time, how <b>${metric}</b> differs from <${Name} value=${arms[0].variant} limit=${40} /></h3>
    ${drawn.map((arm) => html`<${Chart} key=${arm.variant} ...${{ arm, metric, range }} />`)}</section>`;
}

/** The points with a difference of an arm. */
const pointsOf = (history, arm) => history.flatMap(({ at, arms }) => (arms[arm]?.difference ? [{ at, ...arms[arm] }] : []));

/** The values that charts show: zero, all differences, and the intervals of the later half. The first ones are very wide. */
function rangeOf(points) {
  const late = points.filter(({ at }) => at >= (points[0].at + points.at(-1).at) / 2);
  const values = [...points.map((it) => it.difference.value), ...late.flatMap(({ difference: { from, to } }) => [from, to])];
  const [least, most] = [Math.min(0, ...values), Math.max(0, ...values)];
  return { least, most: most > least ? most : least + 1 };
}

function Chart({ arm: { variant, points }, metric, range: { least, most } }) {
  const [first, last] = [points[0], points.at(-1)];
  const width = Math.max(1, last.at - first.at);
  const y = (value) => (HEIGHT * (most - Math.min(most, Math.max(least, value)))) / (most - least);
  const line = (end) => points.map(({ at, difference }) => `${at - first.at},${y(difference[end]).toFixed(2)}`);
  const said = ({ difference }) => `${signed(metric, difference.value)} (${interval(signed, metric, difference)})`;
  const label = `${plain(variant)}: at ${moment(first.at)} ${said(first)}, at ${moment(last.at)} ${said(last)}`;
  return html`<figure>
    <figcaption><${Name} value=${variant} limit=${40} /> <span class="faint">${since(points)}</span></figcaption>
    <svg role="img" aria-label=${label} viewBox=${`0 0 ${width} ${HEIGHT}`} preserveAspectRatio="none">
      <polygon class="interval" points=${[...line("from"), ...line("to").reverse()].join(" ")} />
      <line class="zero" x1="0" x2=${width} y1=${y(0)} y2=${y(0)} />
      <polyline class="difference" points=${line("value").join(" ")} /></svg>
    <span class="most faint">${signed(metric, most)}; dashed: no difference</span>
    <span class="least faint">${signed(metric, least)}</span>
    <span class="times faint"><span>${moment(first.at)}</span><span>${moment(last.at)}</span></span>
  </figure>`;
}

/** Since when what is declared now is declared. */
function since(points) {
  const { verdict } = points.at(-1);
  if (!["better", "worse", "different", "no-difference"].includes(verdict)) return "";
  const before = points.findLastIndex((it) => it.verdict !== verdict);
  return `${verdict.replaceAll("-", " ")} since ${moment(points[before + 1].at)}`;
}
