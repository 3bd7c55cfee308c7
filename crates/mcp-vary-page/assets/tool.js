// One tool: its address, who may call it, and its definition in a variant, beside the server's own or that of another variant.

import { getTool, post } from "./api.js";
import { questionOf } from "./client.js";
import { Diff } from "./diff.js";
import { Component, html } from "./dom.js";
import { clientName } from "./draft-value.js";
import { count, plural } from "./format.js";
import { Choice, Panel, Pending, Problem, readInto } from "./parts.js";
import { link, replace } from "./route.js";
import { RuleText } from "./rule.js";
import { LongText, Name, plain } from "./text.js";

/** The tool whose definitions are open: `server:name` in the address. */
export function openTool(params) {
  const [server, name] = (params.get("tool") ?? "").split(/:(.*)/s);
  return name ? { server, name } : null;
}

/** The same as a text. Names of servers have no colon. */
export const toolKey = ({ server, name }) => `${server}:${name}`;

/** Calls by the tool that they are of. */
export const callsByTool = (calls) => Map.groupBy(calls, ({ server, upstreamName, target }) => toolKey({ server, name: upstreamName ?? target }));

/** How many of these a tool has, or the tools of a server. */
export const callsIn = ({ all, tools, ...row }, byTool) => count((all ?? tools ?? [row]).reduce((sum, it) => sum + (byTool.get(toolKey(it))?.length ?? 0), 0));

/** The servers whose tools are not known yet. */
export function Unknown({ status }) {
  const absent = (status?.servers ?? []).filter(({ state, tools }) => state !== "up" && tools === undefined);
  return absent.length > 0 && html`<p class="note">Not known yet: the tools of ${plain(absent.map(({ name, state }) => `${name} (${state})`).join(", "), 200)}</p>`;
}

/** What a tool does, as its server declares. */
export const isReadOnly = ({ annotations }) => annotations?.readOnlyHint === true;
export const destroys = (tool) => !isReadOnly(tool) && tool.annotations?.destructiveHint !== false;
export const effectOf = (tool) => (destroys(tool) ? html`<span class="bad">writes, may destroy</span>` : isReadOnly(tool) ? "only reads" : "writes");

/** The address of what each variant makes of a tool. */
export const linkToTool = (tool, variant) => link("variants", { tool: toolKey(tool), variant });

export class ToolPanel extends Component {
  componentDidMount = () => readInto(this, async () => ({ definitions: await getTool(this.props.tool) }));

  componentDidUpdate(before) {
    if (before.catalog !== this.props.catalog) this.componentDidMount();
  }

  render({ tool, catalog, params, close, ...callers }, { definitions, error }) {
    const row = catalog.tools.find((it) => it.server === tool.server && it.name === tool.name);
    const who = html`<details open=${!params.get("variant")}><summary><h3>Who may call it</h3></summary><${MayCall} key=${`${callers.callers.length} ${callers.keys.length}`} ...${{ tool, ...callers }} /></details>`;
    const texts = definitions && !error && html`<${Comparison} ...${{ definitions, catalog, params }} />`;
    return html`<${Panel} id="tool" title=${html`<${LongText} value=${row ? clientName(row) : tool.name} limit=${120} />`} close=${close}>
      <p class="note">
        <${Name} value=${tool.name} /> of the server <${Name} value=${tool.server} />${row && html`, ${effectOf(row)}, ${plural(row.tokens, "token")} as it lists it`} ·${" "}
        <a href=${link("calls", { tool: toolKey(tool) })}>call it as several clients</a></p>
      ${error && html`<${Problem} what="Its definitions cannot be shown." error=${error} />`}
      ${who}${texts}<//>`;
  }
}

/** The clients that are asked about, beside all people. */
const MOST_ASKED = 100;

/** Who may call a tool: each person who has a key, in any variant, and each client that was seen, in its own. Equal answers are one. */
export class MayCall extends Component {
  componentDidMount() {
    const { tool: { server, name }, callers, keys } = this.props;
    const known = callers.filter(({ principal }) => !principal || keys.includes(principal)).slice(0, MOST_ASKED);
    readInto(this, async () => ({ known, ...(await post("/api/callers", { server, tool: name, clients: known.map(questionOf) })) }));
  }

  render({ tool, callers, keys, links }, { known, people, clients, error }) {
    if (error || !people) return html`<${Pending} what="answers" error=${error} />`;
    const all = [...people.map((it) => ({ ...it, isPerson: true })), ...clients.map((it, at) => ({ ...it, ...known[at] }))];
    const groups = [...Map.groupBy(all, (it) => JSON.stringify([verdictOf(it), reasonsOf(it)])).values()].map((who) => [verdictOf(who[0]), who]);
    const unknown = callers.filter(({ principal }) => principal && !keys.includes(principal));
    const item = (verdict, who, why) => html`<li>
      <span class=${`outcome ${{ yes: "allowed", no: "denied" }[verdict] ?? ""}`}>${verdict}</span>
      <span><${Callers} who=${who.map((it) => ({ ...it, tool: tool.name }))} links=${links} /><span class="beneath">${why}</span></span>
    </li>`;
    const withKey = people.filter(({ person }) => person);
    const [may, depends] = VERDICTS.map((wanted) => withKey.filter((it) => verdictOf(it) === wanted).length);
    return html`${withKey.length > 0 && html`<p><strong>${may > 0 ? count(may) : "None"} of ${count(withKey.length)}</strong> people with a key may call it${depends > 0 && `; for ${count(depends)} that depends on the call`}.</p>`}
      <ul class="steps" aria-label="Who may call it">
        ${VERDICTS.flatMap((it) => groups.filter(([verdict]) => verdict === it)).map(([verdict, who]) => item(verdict, who, causesIn(reasonsOf(who[0]), tool)))}
        ${unknown.length > 0 && item("not known", unknown, "Vary keeps no claims of tokens. Paste them in “Who gets what”.")}
      </ul>
      <p class="note">People: in any variant that access rules leave them. Clients: in their own.</p>`;
  }
}

const VERDICTS = ["yes", "depends on the call", "no"];

function verdictOf({ hidden, rules, isAllowed }) {
  if (hidden.length > 0 || isAllowed === false) return "no";
  return isAllowed || rules.length === 0 ? "yes" : "depends on the call";
}

/** What hides it, and the access rules that allow it, allow it to others, or refuse each call of it; each with what of it does. */
export function reasonsOf({ hidden, rules, isAllowed }) {
  const decided = hidden.length === 0 || (isAllowed === false && !(hidden[0].by === "access" && hidden[0].rule)) ? rules : [];
  return [...hidden, ...decided.map((text) => text.split(/ \((.*)\)$/s)).map(([rule, detail]) => ({ rule, detail }))];
}

/** Several causes in a line. A draft helps against the only one. */
export const causesIn = (causes, tool) => causes.map((cause, at) => html`${at > 0 && "; "}<${Cause} ...${{ cause, tool }} hasOthers=${causes.length > 1} />`);

/** People, then clients, as links to what each gets. Who has no key has no name. */
function Callers({ who, links }) {
  const { true: people = [], false: clients = [] } = Object.groupBy(who, ({ isPerson }) => !!isPerson);
  const named = people.filter(({ person }) => person);
  const isAnybody = named.length < people.length && "anybody without a key";
  return html`${isAnybody}${isAnybody && named.length > 0 && ", "}${named.length > 0 && links(named)}
    ${clients.length > 0 && html`<div>${plural(clients.length, "client")}: ${links(clients)}</div>`}`;
}

/** What allows or hides a tool: a rule or a variant by its name, what of it does, and the next step. The name is not repeated. */
function Cause({ cause: { by, rule, detail, isLocked }, tool, hasOthers }) {
  const denies = `the rule \`${rule}\` denies it: `;
  const why = detail.startsWith(denies) ? detail.replace(denies, " denies ") : `${rule ? ": " : ""}${detail}`;
  const draft = { variant: rule, tool: tool && toolKey(tool) };
  const [kind, place, next] = by === "variant"
    ? ["variant ", null, !hasOthers && html` · <a href=${link("draft", draft)}>${isLocked ? "change its settings in a draft" : tool ? "add it in a draft" : "change it in a draft"}</a>`]
    : ["access rule ", html`<${RuleText} key=${rule} name=${rule} isShort />`, by && html` · <a href=${link("review")}>Problems</a>`];
  return html`${rule && html`${kind}<code><${Name} value=${rule} /></code>${place}`}<${Name} value=${why} limit=${300} isSentence />${rule && next}`;
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
  return html`${hidden && html`<p class="note">The variant <${Name} value=${hidden} /> hides this tool. This is another one:</p>`}
    <div class="choices">
      <${Choice} label="Compare" value=${variant} options=${ids} onChange=${(variant) => replace({ variant })} />
      <${Choice} label="with" value=${against} options=${[[SERVER, "the server’s original"], ...ids]} onChange=${(against) => replace({ against })} />
    </div>
    <${Members} before=${before} after=${definitions.variants[variant]} isWhole />`;
}

/** The members in which two definitions differ, and the names of the others, or if the view `isWhole` these, too. */
export function Members({ before, after, isWhole = false }) {
  const names = [...new Set(["name", "title", "description", "inputSchema", ...Object.keys(before), ...Object.keys(after)])];
  const present = names.filter((name) => Object.hasOwn(before, name) || Object.hasOwn(after, name));
  const isSame = (name) => asText(member(before, name)) === asText(member(after, name));
  const same = present.filter(isSame);
  const texts = (names) => names.map((name) => html`<${Member} key=${name} name=${name} before=${member(before, name)} after=${member(after, name)} />`);
  const isEqual = same.length === present.length;
  return html`${texts(present.filter((name) => !isSame(name)))}
    ${isEqual ? html`<p class="empty">The two definitions are the same.</p>` : html`<p class="note">The same in both: <${LongText} value=${same.join(", ") || "nothing"} limit=${200} /></p>`}
    ${isWhole && texts(same)}`;
}

/** A member of a definition. Servers choose the names, also those that each object inherits. */
const member = (definition, name) => (Object.hasOwn(definition, name) ? definition[name] : undefined);

function Member({ name, before, after }) {
  const kind = typeof (before ?? after) === "string" ? "" : "code";
  return html`<h3><${Name} value=${name} /></h3>
    <div class=${`definition ${kind}`} tabindex="0" role="region" aria-label=${`${plain(name)}, what differs`}>
      <${Diff} before=${asText(before)} after=${asText(after)} /></div>`;
}

const asText = (value = "") => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
