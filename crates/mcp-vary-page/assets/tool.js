// One tool: its address, and its definition in a variant, beside the server's own or that of another variant.

import { getTool } from "./api.js";
import { Diff } from "./diff.js";
import { Component, html } from "./dom.js";
import { clientName } from "./draft-value.js";
import { count, plural, saving } from "./format.js";
import { Choice, Panel, PlainTable, Problem } from "./parts.js";
import { link, linkWith, replace } from "./route.js";
import { LongText, Name, plain } from "./text.js";

/** The tool whose definitions are open: `server:name` in the address. */
export function openTool(params) {
  const [server, name] = (params.get("tool") ?? "").split(/:(.*)/s);
  return name ? { server, name } : null;
}

/** The same as a text. Names of servers have no colon. */
export const toolKey = ({ server, name }) => `${server}:${name}`;

/** The address of what each variant makes of a tool. */
export const linkToTool = (tool, variant) => link("variants", { tool: toolKey(tool), variant });

/** The name of a tool in a cell, as the link to it. */
export const ToolLink = ({ tool, variant }) => html`<a href=${linkToTool(tool, variant)} tabindex="-1"><${Name} value=${tool.name} /></a>`;

/** Reads members of a component's state; `error` says why that failed. */
export async function readInto(component, read) {
  try {
    component.setState({ ...(await read()), error: null });
  } catch (error) {
    component.setState({ error });
    component.props.failed(error);
  }
}

export class ToolPanel extends Component {
  componentDidMount() {
    readInto(this, async () => ({ definitions: await getTool(this.props.tool) }));
  }

  componentDidUpdate(before) {
    if (before.catalog !== this.props.catalog) this.componentDidMount();
  }

  render({ tool, catalog, params, callers, links, close }, { definitions, error }) {
    const row = catalog.tools.find((it) => it.server === tool.server && it.name === tool.name);
    return html`<${Panel} id="tool" title=${html`<${LongText} value=${row ? clientName(row) : tool.name} limit=${120} />`} close=${close}>
      <p class="note">
        <${Name} value=${tool.name} /> of the server <${Name} value=${tool.server} />${row && `, ${plural(row.tokens, "token")} as it lists it`} ·${" "}
        <a href=${link("calls", { tool: `${tool.server}:${tool.name}` })}>call it as several clients</a>
      </p>
      ${error && html`<${Problem} what="Its definitions cannot be shown." error=${error} />`}
      ${row && html`<${InVariants} ...${{ row, catalog, params, callers, links }} />`}
      ${definitions && !error && html`<${Comparison} ...${{ definitions, catalog, params }} />`}
    <//>`;
  }
}

/** What each variant makes of the tool, and its clients, as `links` shows them. A link chooses the variant to compare. */
function InVariants({ row, catalog, params, callers, links }) {
  const rows = catalog.variants.map(({ id }) => {
    const shown = row.variants[id];
    const isChosen = id === params.get("variant") ? "true" : undefined;
    if (!shown) return [html`<${Name} value=${id} limit=${40} />`, "hidden", "", "", "", ""];
    return [
      html`<a href=${linkWith({ variant: id })} aria-current=${isChosen}><${Name} value=${id} limit=${40} /></a>`,
      html`<${Name} value=${shown.name} limit=${48} />`,
      count(shown.tokens),
      saving(shown.tokens, row.tokens),
      links(callers.filter((it) => it.variant === id).map((it) => ({ ...it, tool: row.name }))),
      html`<${Changes} ...${shown} />`,
    ];
  });
  const columns = ["variant", "shown as", "#tokens", "#saved", "~clients of the variant", "~changed"];
  return html`<${PlainTable} label="The tool in each variant" ...${{ columns, rows }} />
    <p class="note">An access rule can refuse it to any of these clients, who then do not get it: choose one to see.</p>`;
}

function Changes({ changed = [], fixed = [] }) {
  const names = fixed.map((name, at) => html`${at > 0 && ", "}<${Name} value=${name} limit=${40} />`);
  return html`${changed.join(", ")}${changed.length > 0 && fixed.length > 0 && "; "}${fixed.length > 0 && html`fixed: ${names}`}`;
}

const SERVER = "";

function Comparison({ definitions, catalog, params }) {
  const shown = catalog.variants.map((it) => it.id).filter((id) => definitions.variants[id]);
  if (shown.length === 0) return html`<p class="empty">No variant shows this tool, so there is nothing to compare.</p>`;
  const variant = shown.includes(params.get("variant")) ? params.get("variant") : shown[0];
  const against = shown.includes(params.get("against")) ? params.get("against") : SERVER;
  const hidden = params.get("variant") !== variant && params.get("variant");
  const ids = shown.map((id) => [id, plain(id)]);
  const before = against === SERVER ? definitions.original : definitions.variants[against];
  return html`
    ${hidden && html`<p class="note">The variant <${Name} value=${hidden} /> hides this tool. This is another one:</p>`}
    <div class="choices">
      <${Choice} label="Compare" value=${variant} options=${ids} onChange=${(variant) => replace({ variant })} />
      <${Choice} label="with" value=${against} options=${[[SERVER, "the server’s original"], ...ids]} onChange=${(against) => replace({ against })} />
    </div>
    <${Members} before=${before} after=${definitions.variants[variant]} />
  `;
}

/** The members in which two definitions differ, and the names of the others. */
export function Members({ before, after }) {
  const names = [...new Set(["name", "title", "description", "inputSchema", ...Object.keys(before), ...Object.keys(after)])];
  const present = names.filter((name) => Object.hasOwn(before, name) || Object.hasOwn(after, name));
  const isSame = (name) => asText(member(before, name)) === asText(member(after, name));
  const same = present.filter(isSame);
  if (same.length === present.length) return html`<p class="empty">The two definitions are the same.</p>`;
  return html`
    ${present.filter((name) => !isSame(name)).map((name) => html`<${Member} key=${name} name=${name} before=${member(before, name)} after=${member(after, name)} />`)}
    <p class="note">The same in both: <${LongText} value=${same.join(", ") || "nothing"} limit=${200} /></p>
  `;
}

/** A member of a definition. Servers choose the names, also those that each object inherits. */
const member = (definition, name) => (Object.hasOwn(definition, name) ? definition[name] : undefined);

function Member({ name, before, after }) {
  const kind = typeof (before ?? after) === "string" ? "" : "code";
  return html`<h3><${Name} value=${name} /></h3>
    <div class=${`definition ${kind}`} tabindex="0" role="region" aria-label=${`${plain(name)}, what differs`}>
      <${Diff} before=${asText(before)} after=${asText(after)} />
    </div>`;
}

function asText(value) {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
