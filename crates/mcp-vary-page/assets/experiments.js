// The view of experiments: the arms, their clients, and the value of each metric with its interval.

import { html } from "./dom.js";
import { count, milliseconds } from "./format.js";
import { Pending, Table } from "./parts.js";
import { Name, plain } from "./text.js";

const SHARES = ["failed", "invalid-arguments", "repaired"];

export function Experiments({ status, error }) {
  if (!status) return html`<${Pending} what="experiments" error=${error} />`;
  const experiments = status.experiments ?? [];
  if (experiments.length === 0) return NONE;
  return experiments.map((experiment) => html`<${Experiment} key=${experiment.name} experiment=${experiment} />`);
}

const NONE = html`<p class="empty">
  No experiment. Add <code>experiments</code> to the configuration to compare variants.
</p>`;

function Experiment({ experiment }) {
  const { name, arms, metric, anonymous } = experiment;
  const metrics = [metric, ...Object.keys(arms[0]?.metrics ?? {}).filter((it) => it !== metric)];
  return html`
    <${Table}
      title=${html`<${Name} value=${name} />`}
      label=${`Arms of ${plain(name)}`}
      note=${html`<p>
        The metric <strong>${metric}</strong> decides. <code>vary experiment</code> says whether a difference is real; do
        ${" "}not decide by intervals that do not overlap. ${anonymous && ANONYMOUS}
      </p>`}
      columns=${["arm", "#clients", "#planned", "#calls"]}
      rows=${armRows(arms)}
    />
    <${Table}
      title=${html`Metrics of <${Name} value=${name} />`}
      label=${`Metrics of ${plain(name)}`}
      columns=${["metric", "arm", "#value", "#95 % interval"]}
      rows=${metrics.flatMap((it) => metricRows(it, arms))}
      empty="Too few clients have taken part yet."
    />
  `;
}

const ANONYMOUS = html`Clients are not authenticated, and each session counts as one, so anybody can decide this
${" "}experiment; add <code>auth</code> to count principals.`;

function armRows(arms) {
  const all = arms.reduce((sum, arm) => sum + clients(arm), 0);
  const weights = arms.reduce((sum, arm) => sum + arm.weight, 0);
  return arms.map((arm, at) => [
    html`<${Name} value=${arm.variant} />${at === 0 && html` <span class="mark">control</span>`}`,
    count(clients(arm)),
    count(Math.round((all * arm.weight) / weights)),
    count(arm.metrics.calls?.x ?? 0),
  ]);
}

const clients = (arm) => arm.metrics.calls?.units ?? 0;

function shownValue(metric, value) {
  if (metric === "duration") return milliseconds(value);
  return SHARES.includes(metric) ? `${(value * 100).toFixed(1)}\u00A0%` : value.toFixed(1);
}

function metricRows(metric, arms) {
  const shown = (value) => shownValue(metric, value);
  return arms.flatMap((arm) => {
    const estimate = ratio(arm.metrics[metric]);
    if (!estimate) return [];
    const [from, to] = SHARES.includes(metric) ? shareInterval(estimate) : meanInterval(estimate);
    return [[metric, html`<${Name} value=${arm.variant} />`, shown(estimate.value), `${shown(from)} to ${shown(to)}`]];
  });
}

/** The value of a metric and its variance: `x / n`, whose parts belong to clients (`mcp-vary-experiment`). */
function ratio(sums) {
  if (!sums || sums.units < 2 || sums.n <= 0) return null;
  const value = sums.x / sums.n;
  const squares = Math.max(0, sums.xx - 2 * value * sums.nx + value * value * sums.nn);
  return { value, units: sums.units, variance: ((squares / (sums.n * sums.n)) * sums.units) / (sums.units - 1) };
}

/** The quantile of the normal distribution for intervals of 95 %. */
const Z = 1.959964;

/** Wilson's interval of a share, for as many independent calls as have this variance. */
function shareInterval({ value, variance, units }) {
  const spread = value * (1 - value);
  const n = variance > 0 ? spread / variance : units;
  const center = (value + (Z * Z) / (2 * n)) / (1 + (Z * Z) / n);
  const half = (Z / (1 + (Z * Z) / n)) * Math.sqrt(spread / n + (Z * Z) / (4 * n * n));
  return [Math.max(0, center - half), Math.min(1, center + half)];
}

/** Student's interval of a mean; the quantile by its expansion around the normal one. */
function meanInterval({ value, variance, units }) {
  const freedom = units - 1;
  const t = Z + (Z ** 3 + Z) / (4 * freedom) + (5 * Z ** 5 + 16 * Z ** 3 + 3 * Z) / (96 * freedom ** 2);
  const half = t * Math.sqrt(variance);
  return [Math.max(0, value - half), value + half];
}
