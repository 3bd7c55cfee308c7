// The tools of a draft by server: which are listed, and the choice of many at once.

import { html } from "./dom.js";
import { NOTHING, clientName, pattern, rulesOf } from "./draft-value.js";
import { count, plural } from "./format.js";
import { Grid } from "./grid.js";
import { Choice, Filter, matcher } from "./parts.js";
import { go, linkWith, replace } from "./route.js";
import { Name, plain } from "./text.js";
import { callsByTool, callsIn, destroys, effectOf, toolKey } from "./tool.js";
import { ServerChoice } from "./variants.js";

const COLUMNS = [
  { id: "name", head: "tool", kind: "c-name" },
  { id: "listed", head: "state", kind: "c-short" },
  { id: "tokens", head: "tokens", kind: "c-number" },
  { id: "before", head: "before", kind: "c-number" },
  { id: "calls", head: "calls", kind: "c-number" },
  { id: "shown", head: "shown as", kind: "c-client" },
];
/** For a suggestion, with how its tools were called. */
const SUGGESTED = [...COLUMNS.filter(({ id }) => id !== "before" && id !== "calls"), { id: "use", head: "called", kind: "c-wide" }];

/**
 * `now(tool)`: what the draft makes of it. `toggle(tools, isShown)` lists or hides them, and `only(tools, rules)` lists them
 * alone, by the rules. `calls`: the last ones of all tools. `used`: for a suggestion, the calls and people of each tool.
 */
export function DraftTools({ catalog, calls, id, now, params, tool, grid, toggle, only, used }) {
  const groups = grouped(catalog, params, now);
  const rows = groups.flatMap((group) => [group, ...group.tools]);
  const tools = groups.flatMap((group) => group.tools);
  const isAll = tools.length === catalog.tools.filter((it) => it.name).length;
  const byTool = callsByTool(calls);
  const cell = (row, column) => (column.id === "calls" && (row.tools || !now(row).isLocked) ? callsIn(row, byTool) : row.tools ? groupCell(row, column, now, id) : toolCell(row, column, now(row), id, used?.get(toolKey(row))));
  const open = (row, { id: column }) => {
    if (row.tools) return set(row.tools, row.tools.every(isAbsent) || row.tools.some((it) => isAbsent(it) && !now(it).isLocked));
    return column === "listed" ? toggle([row], !now(row).isShown) : go(linkWith({ tool: toolKey(row) }));
  };
  const isAbsent = (it) => !now(it).isShown;
  const set = (tools, isShown) => toggle(tools.filter((it) => now(it).isShown !== isShown), isShown);
  const selected = (row, column) => column.id === "name" && tool && toolKey(row) === toolKey(tool);
  return html`<section aria-label="Tools">
    <${ToolChoices} ...${{ catalog, params, isAll, count: tools.length }}
      list=${() => (isAll ? only(tools, undefined) : set(tools, true))}
      hide=${() => (isAll ? only([], NOTHING) : set(tools, false))}
      only=${() => only(tools, rules(catalog, params, tools))} />
    ${tools.length === 0
      ? html`<p class="empty">${catalog.tools.length > 0 ? "No tool matches. Clear the filter, choose all servers, or show all tools." : "The servers list no tools yet."}</p>`
      : html`<${Grid} handle=${grid} label="Tools of the draft" columns=${used ? SUGGESTED : COLUMNS} ...${{ rows, cell, open, selected }} />`}
  </section>`;
}

/** The tools that the filters leave, by server. A tool is found by each of its names. */
function grouped(catalog, params, now) {
  const matches = matcher(params.get("q") ?? "");
  const server = params.get("server");
  const state = params.get("state");
  const isFound = (it) => [it.name, clientName(it), now(it).shown ?? ""].some(matches);
  const isIn = (it) => isFound(it) && (!state || (state === "destroys" ? destroys(it) : now(it).isShown === (state === "listed")));
  const groups = catalog.servers.filter((it) => !server || it === server).map((name) => {
    const all = catalog.tools.filter((it) => it.server === name && it.name);
    return { server: name, all, tools: all.filter(isIn) };
  });
  return groups.filter((it) => it.tools.length > 0);
}

/** Rules of a variant that list these tools alone. */
function rules(catalog, params, tools) {
  const server = params.get("server");
  const isWhole = server && tools.length === catalog.tools.filter((it) => it.server === server && it.name).length;
  return isWhole ? [{ server: pattern(server) }] : tools.map((it) => rulesOf(catalog, it).include);
}

function ToolChoices({ catalog, params, isAll, count: shown, list, hide, only }) {
  const states = [["", "all"], ["listed", "listed"], ["hidden", "hidden"], ["destroys", "what may destroy"]];
  return html`<div class="choices">
      <${Filter} label="Filter tools" hint="e.g. *issue*" value=${params.get("q") ?? ""} onChange=${(q) => replace({ q })} />
      <${ServerChoice} ...${{ catalog, params }} />
      <${Choice} label="Show" value=${params.get("state") ?? ""} options=${states} onChange=${(state) => replace({ state })} />
      <div class="buttons" role="group" aria-label=${`${plural(shown, "tool")} of the filter`}>
        <button type="button" disabled=${shown === 0 || isAll} onClick=${only}>Only these ${isAll ? "" : count(shown)}</button>
        <button type="button" disabled=${shown === 0} onClick=${hide}>Hide ${isAll ? "all" : count(shown)}</button>
        <button type="button" disabled=${shown === 0} onClick=${list}>List ${isAll ? "all" : count(shown)}</button>
      </div></div>
    <p class="note">Check what is listed. Choose a name to change it, its description and arguments.</p>`;
}

/** A server: its box, how many of its tools are listed, and what they cost one by one. */
function groupCell({ server, all, tools }, { id: column }, now, id) {
  const sum = (tokens) => count(all.reduce((sum, it) => sum + (tokens(it) ?? 0), 0));
  if (column === "listed") return `${count(all.filter((it) => now(it).isShown).length)} of ${count(all.length)}`;
  if (column === "tokens") return sum((it) => now(it).isShown && now(it).tokens);
  if (column === "before") return sum((it) => it.variants[id]?.tokens);
  if (column !== "name") return null;
  const [isChecked, isSome] = ["every", "some"].map((some) => all[some]((it) => now(it).isShown));
  return html`<${Box} label=${`all tools of ${plain(server, 40)}`} ...${{ isChecked, isSome, isLocked: tools.every((it) => now(it).isLocked) }} />
    <${Name} value=${server} limit=${60} />`;
}

function toolCell(row, { id: column }, { isShown, shown, tokens, hidden, isLocked }, id, use) {
  if (column === "name") return html`<${Name} value=${clientName(row)} />`;
  // What locks it takes the place of the figures.
  if (isLocked && column !== "listed") return null;
  if (column === "use") return use && useOf(use, row);
  if (column === "before") return row.variants[id] ? count(row.variants[id].tokens) : "–";
  if (column === "listed") {
    const why = isLocked && html`: <${Name} value=${hidden} limit=${200} isSentence />`;
    return html`<${Box} label=${plain(clientName(row), 60)} isChecked=${isShown} isLocked=${isLocked} />
      ${isShown ? "listed" : html`<span class="hidden-tool">hidden${why}</span>`}`;
  }
  if (!isShown) return column === "tokens" && "–";
  if (typeof shown !== "string") return "…";
  if (column === "tokens") return count(tokens);
  return shown !== clientName(row) && html`<span class="mark renamed"><${Name} value=${shown} /></span>`;
}

/** How often a tool of a suggestion was called, by how many people, and what it does as its server declares. */
function useOf({ calls, people }, { annotations }) {
  const callers = people > 0 && `, by ${count(people)} ${people === 1 ? "person" : "people"}`;
  return html`${effectOf({ annotations })} · ${plural(calls, "call")}${callers}`;
}

/** A check box in a cell: the cell is what Tab and Enter reach, and its table what a click does. */
function Box({ label, isChecked, isSome, isLocked }) {
  const state = { checked: isChecked, indeterminate: !isChecked && !!isSome, disabled: isLocked };
  return html`<input type="checkbox" tabindex="-1" aria-label=${label} ...${state} />`;
}
