// The view of experiments: what each declares, its arms with their clients, and how they compare by each metric.

import { get } from "./api.js";
import { grouped } from "./call-list.js";
import { narrowed } from "./calls.js";
import { callersOf } from "./client.js";
import { html } from "./dom.js";
import { count, interval, minuteOfDay as moment, plural, probability, shownValue, signed } from "./format.js";
import { History } from "./history.js";
import { CallCount, Pending, PlainTable, Polled, Problem, readInto } from "./parts.js";
import { link } from "./route.js";
import { LongText, Name, plain } from "./text.js";
import { REASONS, clientLinks } from "./who.js";

export class Experiments extends Polled {
  path = "/api/experiments";

  load() {
    readInto(this, async () => ({ answer: await get(this.path), calls: (await get("/api/last-calls")).calls }));
  }

  render({ status }, { answer, calls, error }) {
    if (!answer) return html`<${Pending} what="experiments" error=${error} />`;
    const { experiments } = answer;
    const { people = [], keys = [] } = status ?? {};
    return html`
      ${error && html`<${Problem} what="These figures may be old." error=${error} />`}
      ${experiments.length === 0 && NONE}
      ${experiments.map((experiment) => html`<${Experiment} key=${experiment.name} experiment=${{ ...experiment, calls, keys }} ...${{ people }} clients=${callersOf(calls, status ?? {})} />`)}
    `;
  }
}

const NONE = html`<p class="empty">No experiment. To compare two variants by what clients do with them, add to the configuration, for example:
  ${" "}<code>experiments: [{name: short-lists, arms: {standard: 50, compact: 50}, salt: any text}]</code></p>`;

/** What each metric is, whether more of it is better (1), less (-1), or neither (0), and what an arm is that is worse. */
const METRICS = {
  failed: ["share of calls", -1, "more failed calls"],
  "invalid-arguments": ["share of calls", -1, "more invalid calls"],
  repaired: ["share of failed calls", 1, "fewer repaired calls"],
  duration: ["mean of a call", -1, "slower"],
  tokens: ["mean of a result", -1, "more per result"],
  calls: ["mean of a client", 0],
};

/** The largest number that took part in each experiment, as this tab has seen it. */
const most = new Map();

function Experiment({ experiment, clients, people }) {
  const { name, arms, metric, comparisons, isShared, history: [first] } = experiment;
  const [control, arm, another] = arms.map((it) => plain(it.variant, 40));
  const size = sizeOf(arms);
  most.set(name, Math.max(size, most.get(name) ?? 0));
  const columns = ["metric", "arm", `#${another === undefined ? arm : "value"}`, `#control: ${control}`, "#difference", "#p", "#power"];
  // An arm can be too small for what its numbers would say of chance.
  const small = comparisons.filter((it) => it.verdict === "too-few").map((it) => it.variant);
  // Of two arms, the heading names both.
  const areSmall = comparisons.every((it) => small.includes(it.variant));
  const shown = (cells) => cells.filter((_, at) => (at !== 1 || another !== undefined) && (at < 5 || !areSmall));
  return html`<section>
    <h2><${Name} value=${name} /></h2>
    <p class="note">
      ${arms.slice(1).map(({ variant }, at) => html`${at > 0 && ", "}<strong><${Name} value=${variant} limit=${40} /></strong>`)} against the control${" "}
      <strong>${control}</strong>, by <code>${metric}</code> (${METRICS[metric][0]}; ${["less", "neither", "more"][METRICS[metric][1] + 1]} is better).
    </p>
    <${Verdicts} ...${{ experiment, people }} />
    ${!isShared && most.get(name) > size && html`<p class="problem">
      Vary started again at ${moment(first.at)} and forgot the ${units(most.get(name), experiment)} that had taken part.
    </p>`}
    <div class="cards" style=${{ "--column": "44rem" }}>
      <div>
        <h3>By each metric</h3>
        ${comparisons.length === 0
          ? html`<p class="empty">Too few ${unitsOf(experiment)} have taken part yet.</p>`
          : html`<${PlainTable} label=${`Metrics of ${plain(name)}`} columns=${shown(columns)}
              rows=${comparisons.toSorted((a, b) => (b.metric === metric) - (a.metric === metric)).map((it) => shown(rowOf(it, small.includes(it.variant))))} />${TERMS}`}
      </div>
      <div>
        <h3>Taking part: ${units(size, experiment)}${!isShared && ` since ${moment(first.at)}`}</h3>
        <${Arms} experiment=${experiment} />
        <${Clients} ...${{ clients, arms, name }} /></div></div>
    <${History} experiment=${experiment} /></section>`;
}

/** The size of each arm, and what counts in it. */
function Arms({ experiment: { name, arms, anonymous, hasAuth, isShared, uneven, p } }) {
  const isUnequal = !uneven && arms.some((it) => Math.round(it.clients) !== Math.round(it.planned));
  const rows = arms.map((arm, at) => [html`<${Name} value=${arm.variant} />${at === 0 && html` <span class="mark">control</span>`}`, ...[arm.clients, arm.planned, arm.calls].map((it) => count(Math.round(it)))]);
  return html`<${PlainTable} label=${`Arms of ${plain(name)}`} columns=${["arm", "#so far", "#by the shares", "#calls"]} rows=${rows} />
    <p class="note">
      ${isUnequal && `The arms differ from the plan by chance (p\u00A0${probability(p)}). `}
      ${isShared ? "All replicas count together. " : html`A restart forgets all who took part, unless there is a <code>store</code>. `}
      ${hasAuth && "A person counts once, with any number of clients. "}
      ${anonymous && html`Sessions without a credential count${hasAuth && " too"}, so anybody can decide this experiment.`}
    </p>`;
}

const TERMS = html`<details>
  <summary>What the terms mean</summary>
  <p class="note">
    Beneath each value is its 95 % interval. <code>invalid-arguments</code>: arguments that were refused, and tools that are not listed or
    ${" "}denied. <code>repaired</code>: other arguments worked within a minute. <code>p</code>: how probable such a difference is by chance.
    ${" "}<code>power</code>: how probable it is to find one of the size in <code>effect</code>, if there is one.
  </p></details>`;

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
  return html`<div class=${isDecided(compared) ? "recorded" : ""}>
    ${compared.map((it, at) => html`
      ${sentence(it.verdict === "too-few" ? early(it) : verdicts[at], it.verdict)}
      <${Standing} metric=${metric} compared=${it} />
    `)}
    <p>${adviceOf(experiment, compared, people)}${isDecided(compared) && html` <${NextStep} ...${{ arms: experiment.arms, compared }} />`}</p>
  </div>`;
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
    ${shownValue(metric, control.value)}, ${signed(metric, difference.value)} (95 % interval: ${interval(signed, metric, difference)}).
    ${isEarly && " That is not enough to decide."}</p>`;
}

const takesPart = ({ reason, variantRule }, name) => reason === "experiment" && variantRule === name;

/** The clients of each arm, and those that do not take part, by what selects their variants. */
function Clients({ clients, arms, name }) {
  if (clients.length === 0) return null;
  const inArms = arms.map(({ variant }) => [plain(variant, 40), clients.filter((it) => takesPart(it, name) && it.variant === variant)]);
  const others = Map.groupBy(clients.filter((it) => !takesPart(it, name)), ({ reason }) => `not in it, as the variant is ${REASONS[reason] ?? "not selected"}`);
  return html`<h4>${plural(clients.length, "client")} seen lately</h4>
    <ul class="causes">${[...inArms, ...others].map(([what, uses]) => html`<li>${what}: ${clientLinks(uses)}</li>`)}</ul>`;
}

const FINDINGS = { better: "is better", worse: "is worse", different: "differs", "no-difference": "does not differ" };

/** The seconds from which on a pace is worth a word, and the probability by chance up to which a difference is. */
const [LEAST_SPAN, CHANCE] = [600, 0.05];

const sizeOf = (arms) => arms.reduce((sum, it) => sum + it.clients, 0);

/** By what else an arm is worse than the control, as the end of a sentence; invalid calls with those that made most of them. */
function drawbacks({ comparisons, calls }, { variant, metric, verdict }) {
  const isWorse = (it) => it.p < CHANCE && METRICS[it.metric][1] * it.difference.value < 0;
  const others = comparisons.filter((it) => it.variant === variant && it.metric !== metric && isWorse(it));
  const amountOf = (it) => signed(it.metric, it.difference.value).slice(1);
  const filters = { variant, reason: "experiment", outcome: "invalid" };
  const invalid = narrowed(calls, new URLSearchParams(filters));
  const [[client, made] = []] = grouped(invalid, (it) => it.client?.name);
  const [[tool, ofTool] = []] = grouped(invalid, (it) => it.target);
  const ofInvalid = client && html`; <a href=${link("now", { ...filters, client })}><${Name} value=${client} limit=${32} /></a> made ${count(made.length)}
    ${" "}of <${CallCount} number=${invalid.length} filters=${filters} what=${`invalid calls of ${variant}`} /> in the list, ${count(ofTool.length)} were of <${Name} value=${tool} limit=${48} />`;
  return others.map((it, at) => html`${at > 0 ? " and " : `, ${verdict === "worse" ? "and" : "but"} `}${amountOf(it)} ${METRICS[it.metric][2]}${" "}
    (p\u00A0${probability(it.p)}${it.metric === "invalid-arguments" && ofInvalid})`);
}

/** Whether one may stop, or how long to wait. The pace is that of the later half: many were there at the start. */
function adviceOf(experiment, compared, people) {
  const { arms, history, fewest, anonymous, hasAuth, keys } = experiment;
  if (isDecided(compared)) {
    const findings = compared.map((it, at) => html`${at > 0 && "; "}${plain(it.variant, 40)} ${FINDINGS[it.verdict]}${drawbacks(experiment, it)}`);
    return html`<strong>You may stop:</strong> ${findings}.`;
  }
  const size = sizeOf(arms);
  const shares = arms.map(({ planned }) => planned / size).filter((it) => it > 0);
  const need = Math.ceil(Math.max(fewest, ...compared.map((it) => it.need ?? 0)) / Math.min(1 / arms.length, ...shares));
  const more = Math.max(1, Math.round(need - size));
  const now = Date.now() / 1000;
  const from = history.findLast(({ at }) => at <= (history[0].at + now) / 2) ?? history[0];
  const [span, joined] = [now - from.at, Math.round(size - sizeOf(from.arms))];
  const areKeys = hasAuth && !anonymous && people.every(({ person }) => keys.includes(person));
  if (areKeys && keys.length > 0 && keys.length < need) {
    return `With ${plural(keys.length, "key")} it cannot end: it needs about ${units(need, experiment)}. Make more keys, or end it.`;
  }
  const wait = `Wait for about ${count(more)} more ${unitsOf(experiment, more === 1)}`;
  if (span < LEAST_SPAN) return `${wait}.`;
  if (joined > 0) return `${wait} (at this pace ${plural(Math.max(1, Math.round((more * span) / joined / 86_400)), "day")}).`;
  if (anonymous) return `${wait}; none joined since ${moment(from.at)}.`;
  return `With the ${units(people.length, experiment)} seen lately it cannot end: it needs about ${units(need, experiment)}.`;
}

/** An arm beside the control, by one metric. */
const rowOf = ({ metric, variant, arm, control, difference, p, power }, isTooFew) => [
  html`${metric}<span class="beneath">${METRICS[metric][0]}</span>`,
  html`<${Name} value=${variant} />`,
  estimate(shownValue, metric, arm),
  estimate(shownValue, metric, control),
  estimate(signed, metric, difference),
  ...(isTooFew ? ["–", "–"] : [probability(p), `${Math.round(power * 100)}\u00A0%`]),
];

/** A value above its interval. */
const estimate = (show, metric, found) => html`${show(metric, found.value)}<span class="beneath">${interval(show, metric, found)}</span>`;
