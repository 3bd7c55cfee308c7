// The view of variants side by side: what each shows of each tool, and what that costs.

import { TokenChart } from "./chart.js";
import { createRef, html } from "./dom.js";
import { count, plural, saving } from "./format.js";
import { Grid } from "./grid.js";
import { CheckBox, Choice, Filter, Pending, Polled, Problem, matcher } from "./parts.js";
import { go, link, linkWith, replace } from "./route.js";
import { Name, plain } from "./text.js";
import { ToolPanel } from "./tool.js";

export class Variants extends Polled {
  path = "/api/catalog";
  grid = createRef();

  close = () => {
    go(linkWith({ tool: "", variant: "", against: "" }));
    setTimeout(() => this.grid.current?.refocus());
  };

  render({ params, failed }, { answer: catalog, error }) {
    if (!catalog) return html`<${Pending} what="lists" error=${error} />`;
    if (catalog.variants.length === 0) return VARIANTS_OFF;
    const chosen = chosenVariants(catalog, params);
    const tool = openTool(params);
    return html`
      ${error && html`<${Problem} what="These lists may be old." error=${error} />`}
      <${TokenChart} catalog=${catalog} variants=${catalog.variants} />
      <section aria-labelledby="matrix">
        <h2 id="matrix">Tools of each variant</h2>
        <p class="note">
          Tokens of each definition, and what the variant saves of the original. A whole list also has what clients do not
          ${" "}forward to a model, such as output schemas. Access rules can hide more from a client: “Who gets what” shows that.
        </p>
        <${Choices} ...${{ catalog, chosen, params }} />
        <div class=${tool ? "split" : ""}>
          <${Matrix} ...${{ catalog, chosen, params, tool, grid: this.grid }} />
          ${tool && html`<${ToolPanel} key=${toolKey(tool)} ...${{ catalog, tool, params, failed, close: this.close }} />`}
        </div>
      </section>
    `;
  }
}

const VARIANTS_OFF = html`<p class="empty">
  Variants are off. Add <code>variants</code> to the configuration to compare lists.
</p>`;

/** The variants that the address names, or all. */
function chosenVariants(catalog, params) {
  const named = params.get("variants")?.split(",");
  const chosen = catalog.variants.filter((it) => named?.includes(it.id));
  return chosen.length > 0 ? chosen : catalog.variants;
}

/** The tool whose definitions are open: `server:name` in the address. */
export function openTool(params) {
  const [server, name] = (params.get("tool") ?? "").split(/:(.*)/s);
  return name ? { server, name } : null;
}

/** The same as a text. Names of servers have no colon. */
export const toolKey = ({ server, name }) => `${server}:${name}`;

/** The name of a tool in a cell, as the link to what each variant makes of it. */
export function ToolLink({ tool, variant, shown = tool.name }) {
  return html`<a href=${link("variants", { tool: toolKey(tool), variant })} tabindex="-1"><${Name} value=${shown} /></a>`;
}

function Choices({ catalog, chosen, params }) {
  const toggle = (id) => {
    const ids = catalog.variants.map((it) => it.id);
    const next = ids.filter((it) => (it === id) !== chosen.some((variant) => variant.id === it));
    replace({ variants: next.length === ids.length ? "" : next.join(",") });
  };
  const orders = chosen.map(({ id }) => [id, `most saved by ${plain(id, 40)}`]);
  return html`<div class="choices">
    <${Filter} label="Filter tools" hint="delete_" value=${params.get("q") ?? ""} onChange=${(q) => replace({ q })} />
    <${ServerChoice} ...${{ catalog, params }} />
    <${Choice} label="Order" value=${params.get("sort") ?? ""} options=${[["", "as servers list them"], ...orders]} onChange=${(sort) => replace({ sort })} />
    <fieldset>
      <legend>Variants</legend>
      ${catalog.variants.map(
        ({ id }) => html`<${CheckBox} checked=${chosen.some((it) => it.id === id)} onChange=${() => toggle(id)}><${Name} value=${id} limit=${40} /><//>`,
      )}
    </fieldset>
  </div>`;
}

/** The server whose tools are listed. */
export function ServerChoice({ catalog, params }) {
  const options = [["", "all servers"], ...catalog.servers.map((it) => [it, plain(it, 40)])];
  return html`<${Choice} label="Server" value=${params.get("server") ?? ""} ...${{ options }} onChange=${(server) => replace({ server })} />`;
}

function Matrix({ catalog, chosen, params, tool, grid }) {
  const rows = matrixRows(catalog, params);
  const columns = [
    { id: "tool", head: "tool", kind: "c-name" },
    { id: "server", head: "original", kind: "c-number" },
    ...chosen.map(variantColumn),
  ];
  const open = (row, column) => {
    const variant = column.variant ?? params.get("variant") ?? "";
    if (row.server !== undefined) go(linkWith({ tool: `${row.server}:${row.name}`, variant }));
  };
  const isOpen = (row) => tool && row.server === tool.server && row.name === tool.name;
  const selected = (row, column) => isOpen(row) && (column.variant ?? "") === (params.get("variant") ?? "");
  const shown = rows.filter((row) => !row.group);
  if (shown.length === 0) return html`<p class="empty">${nothingFound(catalog)}</p>`;
  return html`<${Grid}
    handle=${grid}
    label="Tools of each variant"
    ...${{ columns, rows, open, selected }}
    isHeading=${(row) => row.group}
    cell=${(row, column) => (row.group ? groupCell(row) : toolCell(row, column, !rows[0].group))}
    foot=${foot(catalog, chosen)}
  />`;
}

function variantColumn({ id }) {
  return { id: `v-${id}`, head: html`<${Name} value=${id} limit=${40} />`, kind: "c-variant", variant: id };
}

function nothingFound(catalog) {
  if (catalog.tools.length === 0) return "The servers list no tools yet. The view “now” says which servers are up.";
  return "No tool matches. Clear the filter, or choose all servers.";
}

/** A heading for each server, then its tools; or all tools of servers, first those of which the variant `sort` saves most. */
function matrixRows(catalog, params) {
  const matches = matcher(params.get("q") ?? "");
  const server = params.get("server");
  const isShown = (tool) => tool.name && namesOf(tool).some(matches);
  const servers = catalog.servers.filter((it) => !server || it === server);
  const sort = params.get("sort");
  if (catalog.variants.some(({ id }) => id === sort)) {
    const sorted = catalog.tools.filter((tool) => servers.includes(tool.server) && isShown(tool));
    return sorted.sort((a, b) => saved(b, sort) - saved(a, sort));
  }
  const groups = servers.map((it) => [it, catalog.tools.filter((tool) => tool.server === it && isShown(tool))]);
  if (!server) groups.push([undefined, catalog.own.filter(isShown)]);
  const filled = groups.filter(([, tools]) => tools.length > 0);
  return filled.flatMap(([server, tools]) => [{ group: true, server, tools: tools.length }, ...tools]);
}

/** The tokens that a variant saves of a tool of a server; all if it hides the tool. */
const saved = (tool, variant) => tool.tokens - (tool.variants[variant]?.tokens ?? 0);

/** A tool is found by each name that it has. */
function namesOf(tool) {
  const variants = Object.values(tool.variants);
  return [tool.name, ...variants.map((it) => it?.name).filter(Boolean)];
}

function groupCell({ server, tools }) {
  const name = server === undefined ? "tools of Vary itself" : html`<${Name} value=${server} limit=${60} />`;
  return html`<span class="group-name">${name} <span class="faint">${plural(tools, "tool")}</span></span>`;
}

function toolCell(row, column, namesServer) {
  if (column.id === "tool") return html`<${Name} value=${row.name} />${namesServer && html` <span class="faint"><${Name} value=${row.server} limit=${32} /></span>`}`;
  if (column.id === "server") return count(row.tokens);
  const shown = row.variants[column.variant];
  if (!shown) return html`<span class="hidden-tool">${row.server === undefined ? "–" : "hidden"}</span>`;
  return html`<span class="shown">
    <span class="marks">${marks(shown, row.tokens)}</span>
    <span class="saved faint">${shown.tokens === row.tokens ? "" : saving(shown.tokens, row.tokens)}</span><span class="tokens">${count(shown.tokens)}</span>
  </span>`;
}

/** What a variant makes of a tool, in a few words. That it changes a text is said where the tokens do not show it. */
function marks({ name, renamed, fixed = [], changed = [], tokens }, original) {
  return [
    renamed && html`<span class="mark renamed">→ <${Name} value=${name} limit=${60} /></span>`,
    fixed.length > 0 && html`<span class="mark fixed">${count(fixed.length)} fixed</span>`,
    tokens === original && changed.some((member) => member !== "name") && html`<span class="mark">changed</span>`,
  ];
}

/** The totals of whole lists, whatever the filter shows. */
function foot(catalog, chosen) {
  const base = catalog.variants.find((it) => it.id === catalog.baseline)?.tokens;
  const hasWhole = catalog.variants.some((it) => it.wholeTokens !== it.tokens);
  return [
    ...(hasWhole ? [["whole list", "", ...chosen.map((it) => count(it.wholeTokens))]] : []),
    ["for a model", "", ...chosen.map((it) => html`<span class="total">${count(it.tokens)}</span>`)],
    ["difference", "", ...chosen.map((it) => (it.id === catalog.baseline ? "baseline" : saving(it.tokens, base)))],
  ];
}
