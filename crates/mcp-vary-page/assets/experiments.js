// The view of experiments: what each declares, its arms with their clients, and how they compare by each metric.

import { html } from "./dom.js";
import { count, plural } from "./format.js";
import { History } from "./history.js";
import { interval, probability, shownValue, signed } from "./metric.js";
import { Pending, PlainTable, Polled, Problem } from "./parts.js";
import { LongText, Name, plain } from "./text.js";

export class Experiments extends Polled {
  path = "/api/experiments";

  render(_, { answer, error }) {
    if (!answer) return html`<${Pending} what="experiments" error=${error} />`;
    const { experiments } = answer;
    return html`
      ${error && html`<${Problem} what="These figures may be old." error=${error} />`}
      ${experiments.length === 0 && NONE}
      ${experiments.map((experiment) => html`<${Experiment} key=${experiment.name} experiment=${experiment} />`)}
    `;
  }
}

const NONE = html`<p class="empty">
  No experiment. Add <code>experiments</code> to the configuration to compare variants.
</p>`;

function Experiment({ experiment }) {
  const { name, arms, metric, anonymous, hasAuth, comparisons } = experiment;
  const sorted = [...comparisons].sort((a, b) => (b.metric === metric) - (a.metric === metric));
  const [control, arm, another] = arms.map((it) => plain(it.variant, 40));
  const columns = ["metric", "arm", `#${another === undefined ? arm : "value"}`, `#control: ${control}`, "#difference", "#p", "#power"];
  // Of two arms, the heading names both.
  const shown = (cells) => cells.filter((_, at) => at !== 1 || another !== undefined);
  return html`<section>
    <h2><${Name} value=${name} /></h2>
    <${Verdicts} experiment=${experiment} />
    <p class="note">
      The metric <strong>${metric}</strong> decides.
      ${anonymous && html` ${hasAuth ? ANONYMOUS : NO_AUTH} Each of their sessions counts as a client, so anybody can decide this experiment.`}
    </p>
    <${PlainTable}
      label=${`Arms of ${plain(name)}`}
      columns=${["arm", "#clients", "#planned", "#calls"]}
      rows=${arms.map((arm, at) => [armName(arm.variant, at === 0), ...[arm.clients, arm.planned, arm.calls].map((it) => count(Math.round(it)))])}
    />
    <h3>By each metric, with 95 % intervals</h3>
    ${comparisons.length === 0
      ? html`<p class="empty">Too few clients have taken part yet.</p>`
      : html`<${PlainTable}
          label=${`Metrics of ${plain(name)}`}
          columns=${shown(columns)}
          rows=${sorted.map((it) => shown(rowOf(it, isTooFew(comparisons, it))))}
        />`}
    <${History} experiment=${experiment} />
  </section>`;
}

const ANONYMOUS = html`Clients without a credential take part, since <code>auth</code> has <code>anonymous: on</code>.`;
const NO_AUTH = html`Clients are not authenticated, since the configuration has no <code>auth</code>.`;

/** What is declared of each arm; where that is nothing yet, how many clients it takes, and what they show so far. */
function Verdicts({ experiment: { metric, comparisons, verdicts } }) {
  const early = comparisons.filter((it) => it.verdict === "too-few");
  const declared = verdicts.filter((_, at) => early.length === 0 || comparisons.filter((it) => it.verdict)[at].verdict !== "too-few");
  return html`
    ${declared.map((it) => html`<p class="verdict"><${LongText} value=${it} limit=${400} isSentence /></p>`)}
    ${early.map(({ variant, have, need, difference }) => html`
      <p class="verdict"><${Name} value=${variant} limit=${40} />: too early, with ${count(Math.round(have))} of ${plural(need, "client")} in the smaller arm</p>
      <p>So far <code>${metric}</code> differs by ${signed(metric, difference.value)}; the true difference may be anything from ${interval(signed, metric, difference)}.</p>
    `)}
  `;
}

const armName = (variant, isControl) => html`<${Name} value=${variant} />${isControl && html` <span class="mark">control</span>`}`;

/** Whether an arm has too few clients for what its numbers would say of chance. */
const isTooFew = (comparisons, { variant }) => comparisons.some((it) => it.variant === variant && it.verdict === "too-few");

/** An arm beside the control, by one metric. */
function rowOf({ metric, variant, arm, control, difference, p, power }, isTooFew) {
  const chance = isTooFew ? ["too few clients", "too few clients"] : [probability(p), `${Math.round(power * 100)}\u00A0%`];
  return [
    metric,
    armName(variant, false),
    estimate(shownValue, metric, arm),
    estimate(shownValue, metric, control),
    estimate(signed, metric, difference),
    ...chance.map((it) => (isTooFew ? html`<span class="faint">${it}</span>` : it)),
  ];
}

/** A value above its interval. */
const estimate = (show, metric, found) => html`${show(metric, found.value)}<span class="beneath">${interval(show, metric, found)}</span>`;
