// The view of experiments: what each declares, its arms with their clients, and how they compare by each metric.

import { html } from "./dom.js";
import { count, plural } from "./format.js";
import { History, moment } from "./history.js";
import { interval, probability, shownValue, signed } from "./metric.js";
import { Pending, PlainTable, Polled, Problem } from "./parts.js";
import { LongText, Name, plain } from "./text.js";
import { clientLinks } from "./variants.js";

export class Experiments extends Polled {
  path = "/api/experiments";

  render({ status }, { answer, error }) {
    if (!answer) return html`<${Pending} what="experiments" error=${error} />`;
    const { experiments } = answer;
    return html`
      ${error && html`<${Problem} what="These figures may be old." error=${error} />`}
      ${experiments.length === 0 && NONE}
      ${experiments.map((experiment) => html`<${Experiment} key=${experiment.name} ...${{ experiment, clients: status?.clients ?? [] }} />`)}
    `;
  }
}

const NONE = html`<p class="empty">
  No experiment. Add <code>experiments</code> to the configuration to compare variants.
</p>`;

function Experiment({ experiment, clients }) {
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
      columns=${["arm", "#clients", "#planned", "#calls", "~seen lately"]}
      rows=${arms.map((arm, at) => [
        armName(arm.variant, at === 0),
        ...[arm.clients, arm.planned, arm.calls].map((it) => count(Math.round(it))),
        clientLinks(clients.filter((it) => takesPart(it, name) && it.variant === arm.variant)),
      ])}
    />
    <${Others} clients=${clients.filter((it) => !takesPart(it, name))} all=${clients.length} />
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
function Verdicts({ experiment }) {
  const { metric, comparisons, verdicts } = experiment;
  const early = comparisons.filter((it) => it.verdict === "too-few");
  const declared = verdicts.filter((_, at) => early.length === 0 || comparisons.filter((it) => it.verdict)[at].verdict !== "too-few");
  return html`
    ${declared.map((it) => html`<p class="verdict"><${LongText} value=${it} limit=${400} isSentence /></p>`)}
    ${(early.length > 0 || comparisons.length === 0) && html`<p>${progress(experiment)}</p>`}
    ${early.map(({ variant, have, need, difference }) => html`
      <p class="verdict"><${Name} value=${variant} limit=${40} />: too early, with ${count(Math.round(have))} of ${plural(need, "client")} in the smaller arm</p>
      <p>So far <code>${metric}</code> differs by ${signed(metric, difference.value)}; the true difference may be anything from ${interval(signed, metric, difference)}.</p>
    `)}
  `;
}

const takesPart = ({ reason, rule }, name) => reason === "experiment" && rule === name;

/** Why clients are in no arm, by what selects their variants. */
const OUTSIDE = {
  selector: "their requests name a variant, and may count for an arm all the same",
  address: "their address names a variant", header: "a header names a variant",
  pin: "their credential or an access rule leaves one variant", rule: "a rule of the configuration gives them a variant",
  experiment: "they are in another experiment", model: "a model ranks the variants for them", ranking: "their hints rank the variants",
};

/** The clients that do not take part, and why. */
function Others({ clients, all }) {
  if (clients.length === 0) return null;
  const groups = [...Map.groupBy(clients, ({ reason }) => reason)];
  return html`<p class="note">${count(clients.length)} of ${plural(all, "client")} seen lately ${clients.length === 1 ? "does" : "do"} not take part:</p>
    <ul>${groups.map(([reason, uses]) => html`<li>${OUTSIDE[reason] ?? "no variant was selected"}: ${clientLinks(uses)}</li>`)}</ul>`;
}

/** The seconds after which a pace is worth a word. */
const LEAST_SPAN = 600;

/** How many of the clients that are needed take part, and when they are enough at the pace until now. */
function progress({ arms, comparisons, history: [first], fewest }) {
  const sizeOf = (arms) => arms.reduce((sum, it) => sum + it.clients, 0);
  const size = sizeOf(arms);
  const shares = arms.map(({ planned }) => planned / size).filter((it) => it > 0);
  const need = Math.ceil(Math.max(fewest, ...comparisons.map((it) => it.need ?? 0)) / Math.min(1 / arms.length, ...shares));
  const [span, joined] = [Date.now() / 1000 - first.at, size - sizeOf(first.arms)];
  const days = Math.max(1, Math.round(((need - size) * span) / joined / 86_400));
  const enough = joined > 0 ? `At this pace, they are enough in about ${plural(days, "day")}.` : "";
  const pace = `${plural(Math.round(joined), "client")} joined since ${moment(first.at)}. ${enough}`;
  return `${count(Math.round(size))} of about ${plural(need, "client")} take part. ${span < LEAST_SPAN ? "" : pace}`;
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
