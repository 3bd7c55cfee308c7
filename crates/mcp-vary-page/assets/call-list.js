// The list of the last calls, and the details of one.

import { get, getTool } from "./api.js";
import { MOST_CALLS, MOST_ERRORS, filtersOf, isError, isNotListed, log, narrowed, outcomeOf } from "./calls.js";
import { addressOfSeen } from "./chooser.js";
import { Component, createRef, html } from "./dom.js";
import { count, milliseconds, percentile, plural, timeOfDay } from "./format.js";
import { Grid } from "./grid.js";
import { CheckBox, Choice, Filter, Panel, Problem } from "./parts.js";
import { link, linkWith, replace } from "./route.js";
import { Rule } from "./rule.js";
import { LongText, Name, plain } from "./text.js";
import { Members } from "./tool.js";
import { ToolLink, toolKey } from "./variants.js";
import { ClientLink, linkToClient } from "./who.js";

export class Calls extends Component {
  heading = createRef();
  grid = createRef();
  list = createRef();

  componentDidMount() {
    const failed = (error) => {
      this.setState({ error });
      this.props.failed(error);
    };
    const changed = () => {
      if (!this.isHeld()) this.setState({ calls: log.calls, error: null });
      this.props.changed();
    };
    log.start(changed, failed);
    this.setState({ calls: log.calls });
  }

  componentWillUnmount() {
    log.stop();
  }

  /** A link to some calls shows them; the controls keep the focus. */
  componentDidUpdate(before) {
    const { params } = this.props;
    if (before.params.toString() === params.toString()) return;
    this.setState({ open: null, calls: log.calls });
    if (!document.activeElement.closest(".choices")) this.heading.current?.focus();
  }

  /** Rows do not move under a pointer or the focus. */
  isHeld() {
    return this.state.paused || this.state.open || this.list.current?.matches(":hover, :focus-within");
  }

  pause = (event) => this.setState({ paused: event.target.checked, calls: log.calls });

  close = () => this.setState({ open: null }, () => this.grid.current?.refocus());

  render({ params, servers }, { calls: all = [], paused, open, error }) {
    const calls = narrowed(all, params);
    return html`<section class="calls" aria-labelledby="calls">
      <h2 id="calls" tabindex="-1" ref=${this.heading}>Calls</h2>
      ${error && html`<${Problem} what="The calls are not followed at the moment." error=${error} />`}
      ${all.length > 0 && html`<${Filters} ...${{ params, all }} />`}
      ${calls.length === 0
        ? html`<p class="empty">${all.length > 0 ? "None of the calls that Vary keeps." : "No call yet. Calls appear here as clients make them."}</p>`
        : html`<${Summary} calls=${calls} all=${all} />
            <div ref=${this.list} class=${open ? "split" : ""}>
              <${Grid} handle=${this.grid} label="Calls, the latest first" columns=${columnsOf(all)} rows=${calls} cell=${callCell}
                open=${(call) => this.setState({ open: call })} selected=${(call) => call.id === open?.id} />
              ${open && html`<${CallFacts} key=${open.id} call=${open} servers=${servers} close=${this.close} />`}
            </div>
            <div class="choices note">
              <${CheckBox} checked=${paused} onChange=${this.pause}>hold the list still (it also waits while you point at it)<//>
              <span>Vary keeps the last ${count(MOST_CALLS)}, and ${MOST_ERRORS} older errors.</span>
            </div>`}
    </section>`;
  }
}

const COLUMNS = [
  { id: "at", head: "time", kind: "c-time" },
  { id: "outcome", head: "outcome", kind: "c-client" },
  { id: "target", head: "call", kind: "c-name" },
  { id: "client", head: "client", kind: "c-client" },
  { id: "principal", head: "person", kind: "c-short" },
  { id: "variant", head: "variant", kind: "c-short" },
  { id: "durationMs", head: "time taken", kind: "c-number" },
];

/** Without `auth` there are no people. */
const columnsOf = (calls) => (calls.some((it) => it.principal) ? COLUMNS : COLUMNS.filter(({ id }) => id !== "principal"));

function callCell(call, { id }) {
  if (id === "at") return timeOfDay(call.at);
  if (id === "target") return isOfTool(call) ? html`<${ToolLink} tool=${toolOf(call)} variant=${call.variant} shown=${call.target} />` : html`<${Name} value=${call.target ?? call.method} />`;
  if (id === "client" && call.client?.name) return html`<a href=${linkToClient(call.client, call)} tabindex="-1"><${Name} value=${call.client.name} limit=${40} /></a>`;
  if (id === "client") return "–";
  if (id === "principal" && call.principal) return html`<a href=${linkWith({ person: call.principal })} tabindex="-1"><${Name} value=${call.principal} limit=${40} /></a>`;
  if (id === "outcome") return html`<span class=${`outcome ${call.outcome}`} title=${meaningOf(call)}>${outcomeOf(call)}</span>`;
  if (id === "durationMs") return milliseconds(call.durationMs);
  return html`<${Name} value=${call[id] ?? "–"} limit=${40} />`;
}

/** Whether a tool that a server lists was called. */
const isOfTool = ({ method, server, target }) => method === "tools/call" && server && target;

/** The tool as its server names it. */
const toolOf = ({ server, upstreamName, target }) => ({ server, name: upstreamName ?? target });

/** What each outcome means. */
const MEANINGS = {
  allowed: "answered with a result",
  error: "answered with an error instead of a result",
  tool_error: "the tool ran, and reports that it failed",
  denied: "Vary refused it, and sent nothing to a server",
  cancelled: "the client did not wait for the answer",
};

const meaningOf = (call) => (isNotListed(call) ? "Vary answered: the variant does not list this tool" : MEANINGS[call.outcome]);

/** The times to choose from, by minutes. */
const TIMES = { 1: "the last minute", 5: "the last 5 minutes", 60: "the last hour" };

/** What narrows the list by a field of its own. */
const FIELDS = ["q", "client", "minutes"];

/** The fields that narrow the list, the other filters as links that take them away, and some that can be set. */
function Filters({ params, all }) {
  const chosen = filtersOf(params).filter((name) => !FIELDS.includes(name)).map(
    (name) => html`<li><a href=${linkWith({ [name]: null })} aria-label=${`${name}: ${plain(params.get(name), 40)}; remove this filter`}>${name}: <${Name} value=${params.get(name)} limit=${40} /> <b aria-hidden="true">×</b></a></li>`,
  );
  const shown = params.get("outcome") ? [] : narrowed(all, params);
  const [errors, denied] = [shown.filter(isError).length, shown.filter((it) => it.outcome === "denied").length];
  const clients = new Set([...all.map((it) => it.client?.name), params.get("client")].filter(Boolean));
  const minutes = params.get("minutes");
  const times = { ...(minutes && { [minutes]: `the last ${plain(minutes)} minutes` }), ...TIMES };
  const select = (name, label, options) =>
    html`<${Choice} label=${label} value=${params.get(name) ?? ""} options=${[["", "all"], ...options]} onChange=${(value) => replace({ [name]: value })} />`;
  return html`<div class="choices">
    <${Filter} label="Search calls" value=${params.get("q") ?? ""} onChange=${(q) => replace({ q })} hint="tool, person, error text" />
    ${select("client", "Client", [...clients].sort().map((it) => [it, plain(it, 40)]))}
    ${select("minutes", "Time", Object.entries(times))}
    <ul class="filters" aria-label="Filters of the calls">
      ${chosen}
      ${errors > 0 && html`<li><a href=${linkWith({ outcome: "error" })}>${plural(errors, "error")}</a></li>`}
      ${denied > 0 && html`<li><a href=${linkWith({ outcome: "denied" })}>${count(denied)} denied</a></li>`}
    </ul>
  </div>`;
}

/** Figures of the calls in the list, which is bounded. */
function Summary({ calls, all }) {
  const errors = calls.filter(isError).length;
  const denied = calls.filter((it) => it.outcome === "denied").length;
  const times = calls.map((it) => it.durationMs);
  const added = calls.filter((it) => typeof it.serverMs === "number").map((it) => it.durationMs - it.serverMs);
  const dropped = log.dropped > 0 ? ` · ${plural(log.dropped, "call")} came too fast to be shown` : "";
  const p = (numbers, percent) => milliseconds(percentile(numbers, percent));
  const figures = [
    `${plural(errors, "error")}${denied > 0 ? `, ${count(denied)} denied` : ""}`,
    `p50 ${p(times, 50)}, p99 ${p(times, 99)}`,
    `of that by Vary: p50 ${p(added, 50)}, p99 ${p(added, 99)}`,
  ];
  const number = `${plural(calls.length, "call")}${calls.length < all.length ? ` of ${count(all.length)}` : ""}`;
  return html`<p class="note figures">${[number, ...figures].join(" · ")}${dropped}</p>`;
}

function CallFacts({ call, servers, close }) {
  const title = html`<${Name} value=${call.method} />${" "}${call.target && html`<${LongText} value=${call.target} limit=${120} />`}`;
  return html`<${Panel} id="call" level="h3" ...${{ title, close }}>
    <${Result} ...${{ call, servers }} />
    <dl class="facts">${facts(call).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
    ${isOfTool(call) && html`<${CalledTool} call=${call} />`}
    <p class="note">
      ${call.arguments ? "Results are" : "Arguments and results are"} not kept; <code>audit</code> records what it is
      ${" "}configured to.
    </p>
  <//>`;
}

/** What came of a call, and what the client read of it. */
function Result({ call, servers }) {
  const { outcome, code, error, rule, client, target } = call;
  const down = isNotListed(call) && servers.find(({ name, state }) => state === "down" && target?.startsWith(`${name}_`));
  return html`<div class=${isError(call) || outcome === "denied" ? "problem" : ""}>
    <p><strong class=${`outcome ${outcome}`}>${outcomeOf(call)}${code ? `, code ${code}` : ""}</strong> ${meaningOf(call)}
      ${isNotListed(call) && client?.name && html` · <a href=${linkToClient(client, call)}>Who gets what</a>`}
      ${down && html` · <code><${Name} value=${down.name} limit=${60} /></code> is down`}
    </p>
    ${outcome === "denied" && rule && html`<p>by the access rule or limit <${Rule} name=${rule} /></p>`}
    ${error && html`<h4>what the client read</h4><p class="bad"><${LongText} value=${error} limit=${400} isSentence=${!call.server} /></p>`}
  </div>`;
}

/** What the client was told of the tool that it called, beside the server's own definition. */
class CalledTool extends Component {
  tool = toolOf(this.props.call);

  async componentDidMount() {
    try {
      const [definitions, catalog] = await Promise.all([getTool(this.tool), get("/api/catalog")]);
      const row = catalog.tools.find((it) => toolKey(it) === toolKey(this.tool));
      this.setState({ definitions, fixed: row?.variants[this.props.call.variant]?.fixed ?? [] });
    } catch (error) {
      this.setState({ error });
    }
  }

  render({ call }, { definitions, fixed, error }) {
    const { variant, client } = call;
    const known = definitions && variant && Object.hasOwn(definitions.variants, variant) ? definitions.variants[variant] : null;
    const isSame = known && JSON.stringify(known) === JSON.stringify(definitions.original);
    const again = client?.name ? addressOfSeen(client) : {};
    return html`
      <p>
        <a href=${link("calls", { tool: toolKey(this.tool), ...again })}>Call it as several clients</a> ·${" "}
        <a href=${link("variants", { tool: toolKey(this.tool), variant })}>see it in each variant</a>
      </p>
      ${fixed?.length > 0 &&
      html`<p>Vary fixed ${plural(fixed.length, "argument")}: ${fixed.map((name, at) => html`${at > 0 && ", "}<code><${Name} value=${name} limit=${60} /></code>`)}</p>`}
      ${error && html`<${Problem} what="Its definitions cannot be shown." error=${error} />`}
      ${known && isSame && html`<p class="note">The client sees the tool as the server lists it.</p>`}
      ${known && !isSame && html`<h4>What the client sees of it, beside what the server lists</h4><${Members} before=${definitions.original} after=${known} />`}
    `;
  }
}

function facts(call) {
  const text = (value) => (value ? html`<${LongText} value=${value} limit=${200} />` : "–");
  /** A value, and the link to the calls that have it, too. */
  const some = (shown, filter, value) =>
    value ? html`${shown} · <a href=${linkWith({ [filter]: value })} aria-label=${`only these: calls of this ${filter}`}>only these</a>` : shown;
  return [
    ["time", new Date(call.at * 1000).toISOString()],
    ["called as", some(text(call.target), "tool", call.target)],
    ...(typeof call.serverMs === "number" ? [["sent to the server as", text(call.upstreamName ?? call.target)]] : []),
    ...(call.server ? [["server", some(text(call.server), "server", call.server)]] : []),
    ...(call.arguments ? [["arguments", html`<code>${text(call.arguments)}</code>`]] : []),
    ["client", some(call.client?.name ? html`<${ClientLink} client=${call.client} seen=${call} />` : "–", "client", call.client?.name)],
    ...(call.principal ? [["person", some(text(call.principal), "person", call.principal)]] : []),
    ["variant", text(call.variant)],
    ["selected by", call.reason ? html`${text(call.reason)}${call.variantRule && html`: <${Rule} name=${call.variantRule} />`}` : "–"],
    ...(call.rule && call.outcome !== "denied" ? [["access rule", html`<${Rule} name=${call.rule} />`]] : []),
    ["time taken", `${milliseconds(call.durationMs)}; of that the server ${milliseconds(call.serverMs)}`],
    ["bytes", `${count(call.bytesIn)} of the request, ${count(call.bytesOut)} of the answer`],
  ];
}
