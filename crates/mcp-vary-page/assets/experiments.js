// The view of experiments: what each declares, its arms with their clients, and how they compare by each metric.

import { html } from "./dom.js";
import { count, interval, minuteOfDay as moment, plural, probability, shownValue, signed } from "./format.js";
import { History } from "./history.js";
import { Pending, PlainTable, Polled, Problem } from "./parts.js";
import { link } from "./route.js";
import { LongText, Name, plain } from "./text.js";
import { REASONS, clientLinks } from "./who.js";

export class Experiments extends Polled {
  path = "/api/experiments";

  render({ status }, { answer, error }) {
    if (!answer) return html`<${Pending} what="experiments" error=${error} />`;
    const { experiments } = answer;
    const { clients = [], people = [] } = status ?? {};
    return html`
      ${error && html`<${Problem} what="These figures may be old." error=${error} />`}
      ${experiments.length === 0 && NONE}
      ${experiments.map((experiment) => html`<${Experiment} key=${experiment.name} ...${{ experiment, clients, people }} />`)}
    `;
  }
}

const NONE = html`<p class="empty">
  No experiment. To compare two variants by what clients do with them, add one to the configuration, such as
  ${" "}<code>experiments: [{name: short-lists, arms: {standard: 50, compact: 50}, salt: any text}]</code>
</p>`;

/** What each metric is, whether more of it is better (1), less (-1), or neither (0), and what an arm is that is worse. */
const METRICS = {
  failed: ["share of calls", -1, "more failed calls"],
  "invalid-arguments": ["share of calls", -1, "more calls with invalid arguments or of unknown tools"],
  repaired: ["share of failed calls", 1, "fewer repaired calls"],
  duration: ["mean of a call", -1, "slower"],
  tokens: ["mean of a result", -1, "more per result"],
  calls: ["mean of a client", 0],
};

/** The largest number that took part in each experiment, as this tab has seen it. */
const most = new Map();

const better = (metric) => ["less is better", "neither is better", "more is better"][METRICS[metric][1] + 1];

function Experiment({ experiment, clients, people }) {
  const { name, arms, metric, anonymous, hasAuth, comparisons, uneven, p, isShared, history: [first] } = experiment;
  const isUnequal = !uneven && arms.some((it) => Math.round(it.clients) !== Math.round(it.planned));
  const [control, arm, another] = arms.map((it) => plain(it.variant, 40));
  const size = sizeOf(arms);
  most.set(name, Math.max(size, most.get(name) ?? 0));
  const columns = ["metric", "arm", `#${another === undefined ? arm : "value"}`, `#control: ${control}`, "#difference", "#p", "#power"];
  // Of two arms, the heading names both.
  const shown = (cells) => cells.filter((_, at) => at !== 1 || another !== undefined);
  return html`<section>
    <h2><${Name} value=${name} /></h2>
    <p>
      ${arms.slice(1).map(({ variant }, at) => html`${at > 0 && ", "}<strong><${Name} value=${variant} limit=${40} /></strong>`)} against the control${" "}
      <strong>${control}</strong>, by <code>${metric}</code> (${METRICS[metric][0]}; ${better(metric)}).
    </p>
    <${Verdicts} ...${{ experiment, people }} />
    ${!isShared && most.get(name) > size && html`<p class="problem">
      Vary started again at ${moment(first.at)} and forgot the ${units(most.get(name), experiment)} that had taken part.
    </p>`}
    <h3>Taking part: ${units(size, experiment)}${!isShared && ` since ${moment(first.at)}`}</h3>
    ${!isShared && html`<p>
      Vary counts from its start: a restart forgets all who took part, unless there is a <code>store</code>.
    </p>`}
    <p class="note">
      ${isShared && "All replicas count together."}${" "}
      ${hasAuth && "A person counts once, with any number of clients."}
      ${anonymous && html` ${hasAuth ? ANONYMOUS : NO_AUTH} Each of their sessions counts, so anybody can decide this experiment.`}
    </p>
    <${PlainTable} label=${`Arms of ${plain(name)}`} columns=${["arm", "#so far", "#planned", "#calls"]}
      rows=${arms.map((arm, at) => [armName(arm.variant, at === 0), ...[arm.clients, arm.planned, arm.calls].map((it) => count(Math.round(it)))])} />
    ${isUnequal && html`<p class="note">That the arms are not as large as planned is chance (p\u00A0${probability(p)}).</p>`}
    <${Clients} ...${{ clients, arms, name }} />
    <h3>By each metric</h3>
    ${comparisons.length === 0
      ? html`<p class="empty">Too few ${unitsOf(experiment)} have taken part yet.</p>`
      : html`<${PlainTable} label=${`Metrics of ${plain(name)}`} columns=${shown(columns)}
          rows=${comparisons.toSorted((a, b) => (b.metric === metric) - (a.metric === metric)).map((it) => shown(rowOf(it, isTooFew(comparisons, it))))} />${TERMS}`}
    <${History} experiment=${experiment} />
  </section>`;
}

const ANONYMOUS = html`Clients without a credential take part, since <code>auth</code> has <code>anonymous: on</code>.`;
const NO_AUTH = html`Clients are not authenticated, since the configuration has no <code>auth</code>.`;

const TERMS = html`<p class="note">
  Beneath each value is its 95 % interval. <code>repaired</code>: other arguments worked within a minute. <code>p</code>: how probable
  ${" "}such a difference is by chance. <code>power</code>: how probable it is to find one of the size in <code>effect</code>, if there is one.
</p>`;

/** Whom an arm counts: people by their credentials, others by their sessions. */
function unitsOf({ anonymous, hasAuth }, isOne = false) {
  if (!hasAuth) return isOne ? "session" : "sessions";
  if (anonymous) return isOne ? "person or session" : "people and sessions";
  return isOne ? "person" : "people";
}

const units = (number, experiment) => `${count(Math.round(number))} ${unitsOf(experiment, Math.round(number) === 1)}`;

/** The colour of what is declared. */
const COLORS = { better: "outcome allowed", worse: "outcome error" };

/** What is declared of each arm, or how many that takes, how it stands, and what to do. */
function Verdicts({ experiment, people }) {
  const { metric, comparisons, verdicts, uneven } = experiment;
  const compared = comparisons.filter((it) => it.verdict);
  const sentence = (text, verdict) => html`<p class=${`verdict ${COLORS[verdict] ?? ""}`}><${LongText} value=${text} limit=${400} isSentence /></p>`;
  if (uneven) return verdicts.map((text) => sentence(text));
  const early = ({ variant, have, need }) => `${variant}: too early, with ${count(Math.round(have))} of ${units(need, experiment)} in the smaller arm`;
  return html`
    ${compared.map((it, at) => html`
      ${sentence(it.verdict === "too-few" ? early(it) : verdicts[at], it.verdict)}
      <${Standing} metric=${metric} compared=${it} />
    `)}
    <p>${adviceOf(experiment, compared, people)}${isDecided(compared) && html` <${NextStep} ...${{ arms: experiment.arms, compared }} />`}</p>
  `;
}

const isDecided = (compared) => compared.length > 0 && compared.every((it) => FINDINGS[it.verdict]);

/** How to end an experiment: with the best arm, if one is better, in the place of the control. */
function NextStep({ arms: [{ variant: control }], compared }) {
  const gain = ({ metric, difference }) => METRICS[metric][1] * difference.value;
  const [best] = compared.filter((it) => it.verdict === "better").sort((a, b) => gain(b) - gain(a));
  const end = html`delete the experiment from the configuration`;
  if (!best) return html`Then ${end}: all get <${Name} value=${control} limit=${40} /> again.`;
  return html`Next: <a href=${link("draft", { variant: control, from: best.variant })}>draft <${Name} value=${best.variant} limit=${40} />
    ${" "}in the place of <${Name} value=${control} limit=${40} /></a>, save that, and ${end}.`;
}

/** Which arm is ahead, by how much, and whether that is enough to decide. */
function Standing({ metric, compared: { variant, verdict, arm, control, difference } }) {
  const isEarly = verdict === "too-few";
  const gain = METRICS[metric][1] * difference.value;
  const stands = gain > 0 ? "ahead of" : gain < 0 ? "behind" : difference.value === 0 ? "level with" : "unlike";
  return html`<p>
    ${isEarly && "So far "}<${Name} value=${variant} limit=${40} /> is ${stands} the control: ${shownValue(metric, arm.value)} against${" "}
    ${shownValue(metric, control.value)}, a difference of ${signed(metric, difference.value)}.
    ${isEarly ? " That is not enough to decide: the true difference may be anything" : " The true one is"} from ${interval(signed, metric, difference)} (95 % interval).
  </p>`;
}

const takesPart = ({ reason, rule }, name) => reason === "experiment" && rule === name;

/** The clients of each arm, and those that do not take part, by what selects their variants. */
function Clients({ clients, arms, name }) {
  if (clients.length === 0) return null;
  const inArms = arms.map(({ variant }) => [plain(variant, 40), clients.filter((it) => takesPart(it, name) && it.variant === variant)]);
  const others = Map.groupBy(clients.filter((it) => !takesPart(it, name)), ({ reason }) => `not in it, as the variant is ${REASONS[reason] ?? "not selected"}`);
  return html`<p class="note">${plural(clients.length, "client")} seen lately:</p>
    <ul>${[...inArms, ...others].map(([what, uses]) => html`<li>${what}: ${clientLinks(uses)}</li>`)}</ul>`;
}

const FINDINGS = { better: "is better", worse: "is worse", different: "differs", "no-difference": "does not differ" };

/** The seconds after which a pace is worth a word. */
const LEAST_SPAN = 600;

const sizeOf = (arms) => arms.reduce((sum, it) => sum + it.clients, 0);

/** A difference that is less probable by chance is worth a word. */
const CHANCE = 0.05;

/** By what else an arm is worse than the control, as the end of a sentence. */
function drawbacks({ comparisons }, { variant, metric, verdict }) {
  const isWorse = (it) => it.p < CHANCE && METRICS[it.metric][1] * it.difference.value < 0;
  const others = comparisons.filter((it) => it.variant === variant && it.metric !== metric && isWorse(it));
  const amountOf = (it) => signed(it.metric, it.difference.value).slice(1);
  const texts = others.map((it) => `${amountOf(it)} ${METRICS[it.metric][2]} (p\u00A0${probability(it.p)})`);
  if (texts.length === 0) return "";
  return `, ${verdict === "worse" ? "and" : "but"} ${texts.join(" and ")}`;
}

/** Whether one may stop, or how long to wait. The pace is that of the later half: many were there at the start. */
function adviceOf(experiment, compared, people) {
  const { arms, history, fewest, anonymous } = experiment;
  if (isDecided(compared)) {
    const findings = compared.map((it) => `${plain(it.variant, 40)} ${FINDINGS[it.verdict]}${drawbacks(experiment, it)}`);
    return `You may stop: ${findings.join("; ")}.`;
  }
  const size = sizeOf(arms);
  const shares = arms.map(({ planned }) => planned / size).filter((it) => it > 0);
  const need = Math.ceil(Math.max(fewest, ...compared.map((it) => it.need ?? 0)) / Math.min(1 / arms.length, ...shares));
  const more = Math.max(1, Math.round(need - size));
  const now = Date.now() / 1000;
  const from = history.findLast(({ at }) => at <= (history[0].at + now) / 2) ?? history[0];
  const [span, joined] = [now - from.at, Math.round(size - sizeOf(from.arms))];
  const wait = `Wait for about ${count(more)} more ${unitsOf(experiment, more === 1)}`;
  if (span < LEAST_SPAN) return `${wait}.`;
  if (joined > 0) return `${wait} (at this pace ${plural(Math.max(1, Math.round((more * span) / joined / 86_400)), "day")}).`;
  if (anonymous) return `${wait}; none joined since ${moment(from.at)}.`;
  return `With the ${units(people.length, experiment)} seen lately it cannot end: it needs about ${units(need, experiment)}.`;
}

const armName = (variant, isControl) => html`<${Name} value=${variant} />${isControl && html` <span class="mark">control</span>`}`;

/** Whether an arm is too small for what its numbers would say of chance. */
const isTooFew = (comparisons, { variant }) => comparisons.some((it) => it.variant === variant && it.verdict === "too-few");

const TOO_FEW = html`<span class="faint">too few</span>`;

/** An arm beside the control, by one metric. */
function rowOf({ metric, variant, arm, control, difference, p, power }, isTooFew) {
  return [
    html`${metric}<span class="beneath">${METRICS[metric][0]}</span>`,
    armName(variant, false),
    estimate(shownValue, metric, arm),
    estimate(shownValue, metric, control),
    estimate(signed, metric, difference),
    ...(isTooFew ? [TOO_FEW, TOO_FEW] : [probability(p), `${Math.round(power * 100)}\u00A0%`]),
  ];
}

/** A value above its interval. */
const estimate = (show, metric, found) => html`${show(metric, found.value)}<span class="beneath">${interval(show, metric, found)}</span>`;
