// The view of variants side by side: what each shows of each tool, and what that costs.

import { TokenChart } from "./chart.js";
import { get } from "./api.js";
import { keptSince } from "./calls.js";
import { callersOf } from "./client.js";
import { createRef, html } from "./dom.js";
import { clientName } from "./draft-value.js";
import { count, minuteOfDay, plural, saving } from "./format.js";
import { Grid } from "./grid.js";
import { Choice, Filter, Pending, Polled, Problem, Table, matcher } from "./parts.js";
import { go, link, linkWith, replace } from "./route.js";
import { Name, plain } from "./text.js";
import { ToolPanel, Unknown, callsByTool, callsIn, openTool, toolKey } from "./tool.js";
import { clientLinks } from "./who.js";

export class Variants extends Polled {
  path = "/api/catalog";
  grid = createRef();

  componentDidMount() {
    super.componentDidMount();
    get("/api/last-calls").then(({ calls }) => this.setState({ calls }), this.props.failed);
  }

  close = () => {
    go(linkWith({ tool: "", variant: "", against: "" }));
    setTimeout(() => this.grid.current?.refocus());
  };

  render({ params, failed, status }, { answer: catalog, calls = [], error }) {
    if (!catalog) return html`<${Pending} what="lists" error=${error} />`;
    if (catalog.variants.length === 0) return VARIANTS_OFF;
    const tool = openTool(params);
    const { clients = [], keys = [] } = status ?? {};
    const callers = callersOf(calls, status ?? {});
    return html`${error && html`<${Problem} what="These lists may be old." error=${error} />`}
      <section aria-labelledby="matrix">
        <h2 id="matrix">Tools of each variant, in tokens</h2>
        <${Choices} ...${{ catalog, params }} />
        <${Unknown} status=${status} />
        <div class=${tool ? "split" : ""} style=${{ "--longest": longest(catalog.tools.map((it) => clientName(it) + (params.get("sort") ? it.server : ""))) }}>
          <${Matrix} ...${{ catalog, params, tool, grid: this.grid }} calls=${callsByTool(calls)} />
          ${tool && html`<${ToolPanel} key=${toolKey(tool)} ...${{ catalog, tool, params, failed, callers, keys, links: clientLinks, close: this.close }} />`}
        </div>
        <p class="note">Choose a tool for its texts and who may call it: access rules can hide more than variants do. ${calls.length > 0 && `Calls are all since ${minuteOfDay(keptSince() || calls.at(-1).at)}${calls.at(-1).at < keptSince() ? ", and errors and refusals from before" : ""}.`}</p>
      </section>
      <div class="sides">
        <${TokenChart} catalog=${catalog} variants=${catalog.variants} />
        ${status && html`<${Uses} ...${{ catalog, clients, callers }} />`}</div>`;
  }
}

export const VARIANTS_OFF = html`<p class="empty">Variants are off. Add <code>variants</code> to the configuration to compare and draft them.</p>`;

/** Who gets each variant: each client and person in the variant that it got last, and all calls since the start. */
function Uses({ catalog, clients, callers }) {
  const rows = catalog.variants.map(({ id }) => {
    const calls = clients.filter(({ variant }) => variant === id).reduce((sum, it) => sum + it.calls, 0);
    return [draftLink(id), count(calls), clientLinks(callers.filter(({ variant }) => variant === id))];
  });
  return html`<${Table} title="Who gets each variant" note="All calls since the start, and the clients that got it last." columns=${["variant", "#calls", "~clients"]} rows=${rows} />`;
}

/** A variant as the link to its draft. */
export const draftLink = (id) => html`<a href=${link("draft", { variant: id })} title=${`${plain(id)}: draft it`}><${Name} value=${id} limit=${40} /></a>`;

function Choices({ catalog, params }) {
  const others = catalog.variants.filter(({ id }) => id !== catalog.baseline);
  const orders = [[".tokens", "most tokens first"], [".calls", "least called first"], ...others.map(({ id }) => [id, `most saved by ${plain(id, 40)}`])];
  return html`<div class="choices">
    <${Filter} label="Filter tools" hint="delete_" value=${params.get("q") ?? ""} onChange=${(q) => replace({ q })} />
    <${ServerChoice} ...${{ catalog, params }} />
    <${Choice} label="Order" value=${params.get("sort") ?? ""} options=${[["", "as servers list them"], ...orders]} onChange=${(sort) => replace({ sort })} />
  </div>`;
}

export function ServerChoice({ catalog, params }) {
  const options = [["", "all servers"], ...catalog.servers.map((it) => [it, plain(it, 40)])];
  return html`<${Choice} label="Server" value=${params.get("server") ?? ""} ...${{ options }} onChange=${(server) => replace({ server })} />`;
}

function Matrix({ catalog, params, tool, grid, calls }) {
  const callsOf = (tool) => calls.get(toolKey(tool))?.length ?? 0;
  const rows = matrixRows(catalog, params, callsOf);
  const empty = catalog.tools.length === 0 ? "The servers list no tools yet. “Now” says which are up." : "No tool matches. Clear the filter, or choose all servers.";
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`;
  const columns = [
    { id: "tool", head: "tool", kind: "c-name" },
    { id: "server", head: "original", kind: "c-number" },
    { id: "calls", head: "calls", kind: "c-number", width: tool && "3.2rem" },
    ...catalog.variants.map(({ id }) => ({ id: `v-${id}`, head: draftLink(id), kind: "c-variant", variant: id, width: tool || hasMarks(rows, id) ? null : "8.8rem" })),
  ];
  const open = (row, column) => {
    const variant = column.variant ?? params.get("variant") ?? "";
    if (row.isFolded !== undefined) replace({ server: row.isFolded ? row.server : "", tool: "" });
    else if (!row.tools && row.server !== undefined) go(linkWith({ tool: toolKey(row), variant }));
  };
  const isOpen = (row) => tool && row.server === tool.server && row.name === tool.name;
  const selected = (row, column) => isOpen(row) && (column.variant ?? "") === (params.get("variant") ?? "");
  return html`<${Grid} handle=${grid} label="Tools of each variant" ...${{ columns, rows, open, selected }}
    cell=${(row, column) => (column.id === "calls" ? callsIn(row, calls) : row.tools ? groupCell(row, column) : toolCell(row, column, !rows[0].tools && !params.get("server") && row.server))}
    foot=${foot(catalog)} />`;
}

const longest = (texts) => texts.reduce((most, { length }) => Math.max(most, length), 0);

/** Whether a column says more than tokens: it gets what the others leave. */
const hasMarks = (rows, id) => rows.some(({ variants }) => variants?.[id]?.renamed || variants?.[id]?.fixed?.length > 0);

/** A row for each server with its sums, then its tools unless they are folded; or all tools, in the order of `sort`. */
function matrixRows(catalog, params, callsOf) {
  const matches = matcher(params.get("q") ?? "");
  const server = params.get("server");
  // A tool is found by each name that it has.
  const isShown = ({ name, variants }) => name && [name, ...Object.values(variants).map((it) => it?.name ?? "")].some(matches);
  const canFold = catalog.tools.length > MOST_UNFOLDED && catalog.servers.length > 1 && !params.get("q");
  const servers = catalog.servers.filter((it) => !server || canFold || it === server);
  const sort = params.get("sort");
  if (sort?.startsWith(".") || catalog.variants.some(({ id }) => id === sort)) {
    const sorted = catalog.tools.filter((tool) => (!server || tool.server === server) && isShown(tool));
    const order = { ".tokens": (a, b) => b.tokens - a.tokens, ".calls": (a, b) => callsOf(a) - callsOf(b) || b.tokens - a.tokens };
    return sorted.sort(order[sort] ?? ((a, b) => saved(b, sort) - saved(a, sort)));
  }
  const groups = servers.map((it) => [it, catalog.tools.filter((tool) => tool.server === it && isShown(tool))]);
  if (!server) groups.push([undefined, catalog.own.filter(isShown)]);
  const filled = groups.filter(([, tools]) => tools.length > 0);
  return filled.flatMap(([group, tools]) => {
    const isFolded = canFold && group !== undefined ? ![server, openTool(params)?.server].includes(group) : undefined;
    return [{ server: group, tools, isFolded }, ...(isFolded ? [] : tools)];
  });
}

/** The most tools that are all listed. Of more, those of the chosen server and what a filter finds. */
const MOST_UNFOLDED = 40;

/** The tokens that a variant saves of a tool of a server; all if it hides the tool. */
const saved = (tool, variant) => tool.tokens - (tool.variants[variant]?.tokens ?? 0);

/** The sums of a server: what its tools cost one by one, in the variants without those that are hidden. */
function groupCell({ server, tools, isFolded }, { id, variant }) {
  if (id === "tool") {
    const name = server === undefined ? "tools of Vary itself" : html`<${Name} value=${server} limit=${60} />`;
    const sign = isFolded === undefined ? "" : html`<span aria-hidden="true">${isFolded ? "▸" : "▾"} </span>`;
    return html`${sign}${name} <span class="faint">${plural(tools.length, "tool")}</span>`;
  }
  const sum = (tokens) => tools.reduce((sum, tool) => sum + (tokens(tool) ?? 0), 0);
  const original = sum((tool) => tool.tokens);
  if (variant === undefined) return server === undefined ? "–" : count(original);
  const shown = sum((tool) => tool.variants[variant]?.tokens);
  return shown > 0 ? tokensCell(shown, original) : hiddenCell(server);
}

/** A number of tokens, and how much that differs from the original. */
const tokensCell = (tokens, original, marked, kind = "") => html`<span class="shown">
  <span class="marks">${marked}</span><span class=${`tokens ${kind}`}>${count(tokens)}</span>
  <span class="saved faint">${isMuch(tokens, original) && saving(tokens, original)}</span></span>`;

const isMuch = (tokens, original) => original > 0 && Math.abs(tokens / original - 1) >= 0.05;

const hiddenCell = (server) => html`<span class="hidden-tool">${server === undefined ? "–" : "hidden"}</span>`;

function toolCell(row, column, beside) {
  const ofServer = beside && html` <span class="faint"><${Name} value=${beside} limit=${48} /></span>`;
  if (column.id === "tool") return html`<${Name} value=${clientName(row)} />${ofServer}`;
  if (column.id === "server") return count(row.tokens);
  const shown = row.variants[column.variant];
  if (!shown) return hiddenCell(row.server);
  return tokensCell(shown.tokens, row.tokens, marks(shown, row.tokens));
}

/** What a variant makes of a tool, in a few words. That it changes a text is said where the tokens do not show it. */
const marks = ({ name, renamed, fixed = [], changed = [], tokens }, original) => [
  renamed && html`<span class="mark renamed">→ <${Name} value=${name} limit=${60} /></span>`,
  fixed.length > 0 && html`<span class="mark fixed">${count(fixed.length)} fixed</span>`,
  tokens === original && changed.some((member) => member !== "name") && html`<span class="mark">changed</span>`,
];

/** The totals of whole lists, whatever the filter shows. */
function foot({ variants, baseline }) {
  const base = variants.find((it) => it.id === baseline)?.tokens;
  const hasWhole = variants.some((it) => it.wholeTokens !== it.tokens);
  return [
    ...(hasWhole ? [[html`<span title="with what no model reads, such as output schemas">whole list</span>`, "", "", ...variants.map((it) => tokensCell(it.wholeTokens))]] : []),
    ["for a model", "", "", ...variants.map((it) => tokensCell(it.tokens, base, "", "total"))],
  ];
}
