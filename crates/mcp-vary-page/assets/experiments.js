// The view of experiments: what each declares, its arms with their clients, and how they compare by each metric.

import { get } from "./api.js";
import { Component, html } from "./dom.js";
import { count } from "./format.js";
import { History } from "./history.js";
import { probability, shownValue, signed } from "./metric.js";
import { Pending, Problem, Table } from "./parts.js";
import { LongText, Name, plain } from "./text.js";

export class Experiments extends Component {
  componentDidMount() {
    this.load();
    this.timer = setInterval(() => document.hidden || this.load(), 5000);
  }

  componentWillUnmount() {
    clearInterval(this.timer);
  }

  async load() {
    try {
      const { experiments } = await get("/api/experiments");
      this.setState({ experiments, error: null });
    } catch (error) {
      this.setState({ error });
      this.props.failed(error);
    }
  }

  render(_, { experiments, error }) {
    if (!experiments) return html`<${Pending} what="experiments" error=${error} />`;
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
  const { name, arms, metric, anonymous, comparisons, verdicts } = experiment;
  const first = comparisons.filter((it) => it.metric === metric);
  const others = comparisons.filter((it) => it.metric !== metric);
  return html`
    <${Table}
      title=${html`<${Name} value=${name} />`}
      label=${`Arms of ${plain(name)}`}
      note=${html`
        ${verdicts.map((it) => html`<p class="verdict"><${LongText} value=${it} limit=${400} isSentence /></p>`)}
        <p>The metric <strong>${metric}</strong> decides. ${anonymous && ANONYMOUS}</p>
      `}
      columns=${["arm", "#clients", "#planned", "#calls"]}
      rows=${arms.map((arm, at) => [armName(arm.variant, at === 0), ...[arm.clients, arm.planned, arm.calls].map((it) => count(Math.round(it)))])}
    />
    <${Table}
      title=${html`Metrics of <${Name} value=${name} />`}
      label=${`Metrics of ${plain(name)}`}
      columns=${["metric", "arm", "#value", "#95 % interval", "#difference", "#its interval", "#p", "#power"]}
      rows=${rowsOf([...first, ...others], arms[0]?.variant)}
      empty="Too few clients have taken part yet."
    />
    <${History} experiment=${experiment} />
  `;
}

const ANONYMOUS = html`Clients are not authenticated, and each session counts as one, so anybody can decide this
${" "}experiment; add <code>auth</code> to count principals.`;

const armName = (variant, isControl) => html`<${Name} value=${variant} />${isControl && html` <span class="mark">control</span>`}`;

/** The rows of each metric: the control, then each arm beside it. */
function rowsOf(comparisons, control) {
  return comparisons.flatMap((it, at) => {
    const isFirst = comparisons[at - 1]?.metric !== it.metric;
    const rows = isFirst ? [[it.metric, armName(control, true), ...estimate(it.metric, it.control), "", "", "", ""]] : [];
    const { value, from, to } = it.difference;
    const difference = [signed(it.metric, value), `${signed(it.metric, from)} to ${signed(it.metric, to)}`];
    return [...rows, [it.metric, armName(it.variant, false), ...estimate(it.metric, it.arm), ...difference, probability(it.p), `${Math.round(it.power * 100)}\u00A0%`]];
  });
}

const estimate = (metric, { value, from, to }) => [shownValue(metric, value), `${shownValue(metric, from)} to ${shownValue(metric, to)}`];
