// What a draft is as text, what it changes in the file, and the bar that saves it.

import { mostOf } from "./call-list.js";
import { keptSince } from "./calls.js";
import { Component, createRef, html } from "./dom.js";
import { count, minuteOfDay, plural, saving, timeOfDay } from "./format.js";
import { Confirm, Copy, Problem } from "./parts.js";
import { RuleText } from "./rule.js";
import { FirstTen, LongText, Name, plain, visible } from "./text.js";
import { callsByTool, toolKey } from "./tool.js";
import { clientLinks } from "./who.js";

/** What the draft changes, and the variant as YAML. */
export function DraftTexts({ answer, calls, error, isChanged, isPending, status, callers, experiments, catalog, parent }) {
  if (!answer) return html`<p class="note">${error ? "It cannot be counted: see the error below." : "Counting …"}</p>`;
  const why = isChanged && !isPending && answer.unsavable;
  const leaving = isChanged ? callers.filter(({ leaves }) => leaves) : [];
  const ofArm = ({ name }) => html`<p class="problem">It is an arm of the experiment <${Name} value=${name} limit=${60} />: what was counted so far is of another list.</p>`;
  return html`${experiments.map(ofArm)}${leaving.length > 0 && html`<p class="problem">A rule is asked before an experiment, so these leave theirs: ${clientLinks(leaving)}</p>`}${isChanged && html`<${Stay} callers=${callers} />${costs(callers, answer, catalog.variants, calls)}<${ToolChanges} ...${{ answer, catalog, parent, calls }} />`}
    <div class="sides texts">
      <${CopyText} title="What changes in the file" button="Copy the diff" text=${isChanged ? answer.diff : ""} ...${{ isPending }} isDiff />
      <${CopyText} title="YAML of the variant" button="Copy the YAML" text=${answer.yaml} /></div>
    ${why && html`<p class="note">This page cannot write it: <${LongText} value=${why} isSentence />. The difference is that of the entry.</p>`}
    ${status && !status.writes && html`<p class="note">To save drafts from this page, write <code>admin-writes: on</code> into the configuration and start Vary again.</p>`}`;
}

/** What the draft does to the tools of the variant, in words, those first that are called most. */
function ToolChanges({ answer, catalog, parent, calls }) {
  const byTool = callsByTool(calls);
  const numberOf = (it) => byTool.get(toolKey(it))?.length ?? 0;
  const before = new Map(catalog.tools.map((it) => [toolKey(it), it.variants[parent?.id]]));
  const kindOf = ({ shown, tokens }, was) => (was ? (shown === null ? "hides" : shown !== was.name ? "renames" : tokens !== was.tokens && "changes") : shown !== null && "lists");
  const kinds = Object.groupBy(answer.tools.toSorted((a, b) => numberOf(b) - numberOf(a)), (it) => kindOf(it, before.get(toolKey(it))));
  const one = (kind) => (it, at) => html`${at > 0 && ", "}<code><${Name} value=${before.get(toolKey(it))?.name ?? it.shown} limit=${48} /></code>
    ${kind === "renames" && html` to <code><${Name} value=${it.shown} limit=${48} /></code>`}`;
  const all = (kind) => kinds[kind] && html`<p>It <strong>${kind}</strong> <${FirstTen} all=${kinds[kind]} show=${(some) => some.map(one(kind))} />.</p>`;
  return ["hides", "lists", "renames", "changes"].map(all);
}

/** What the callers who come to the draft read in their variant, and in the draft, and which of the tools that they called it hides. */
function costs(callers, { tokens, tools }, variants, calls) {
  const hidden = new Set(tools.filter(({ shown }) => shown === null).map(toolKey));
  const isLost = (it) => !it.isUnknownTool && it.outcome !== "denied" && hidden.has(toolKey({ server: it.server, name: it.upstreamName ?? it.target }));
  const lost = ({ client, principal }) => mostOf(calls.filter((it) => it.client?.name === client.name && it.principal === principal && isLost(it)),
    (it) => it.target, (tool) => ({ client: client.name, person: principal, tool }));
  const tokensOf = ({ now }) => variants.find(({ id }) => id === now.variant)?.tokens;
  const one = (it) => html`<p>${clientLinks([it])}: from ${count(tokensOf(it))} tokens of <${Name} value=${it.now.variant} limit=${40} /> to ${count(tokens)}, ${saving(tokens, tokensOf(it))}
    ${lost(it) === "–" ? `; hides nothing that it called since ${minuteOfDay(keptSince() || Math.min(...calls.map(({ at }) => at), Date.now() / 1000))}` : html`; <strong class="bad">hides what it called lately:</strong> ${lost(it)}`}</p>`;
  return html`<${FirstTen} all=${callers.filter((it) => !it.stays && tokensOf(it))} show=${(some) => some.map(one)} />`;
}

/** Those of the callers who keep another variant, and what selects that. */
export function Stay({ callers }) {
  const one = (caller) => {
    const { variant, by, rule } = caller.now;
    return html`<p class="problem">
      ${clientLinks([caller])} stays with <${Name} value=${variant} limit=${40} />:
      ${" "}${by}${rule && html`, <${Name} value=${rule} /><${RuleText} key=${rule} name=${rule} isShort />`}
    </p>`;
  };
  return html`<div role="status"><${FirstTen} all=${callers.filter((it) => it.stays)} show=${(some) => some.map(one)} /></div>`;
}

/** What stays in sight: the totals, what is wrong, and what can be done with the `draft`, the component of the view. */
export function DraftBar({ children, draft, isChanged, unready, error, callers }) {
  const { answer, unread, dropped, lastSave, isWriting, isAsking, outcome, unwritten } = draft.state;
  const { writes } = draft.props.status ?? {};
  const ask = (isAsking) => draft.setState({ isAsking });
  const isDoubtful = answer?.warnings?.length > 0;
  const isEmpty = answer?.tools.length > 0 && answer.tools.every((it) => it.shown === null);
  return html`<div class="draft-bar" role="region" aria-label="The draft as a whole">
    ${children}
    <div class="buttons">
      ${(unwritten ?? unread) && html`<button type="button" onClick=${() => draft.setState({ unwritten: null }, draft.reread)}>Read the file again</button>`}
      ${writes && lastSave && html`<button type="button" disabled=${isWriting} onClick=${draft.undoSave}>
        Undo the save of <${Name} value=${lastSave.variant} limit=${40} /> at ${timeOfDay(lastSave.at)}
      </button>`}
      ${dropped && html`<button type="button" disabled=${isWriting} onClick=${() => draft.put(dropped)}>
        Bring back the draft of <${Name} value=${dropped.id} limit=${40} />
      </button>`}
      <button type="button" disabled=${!isChanged || isWriting} onClick=${draft.discard}>Discard changes</button>
      ${writes && html`<button type="button" class="main" disabled=${unready || isWriting} aria-describedby="unready" onClick=${isEmpty || isDoubtful ? () => ask(true) : draft.save}>Save</button>
        <span id="unready" class="note">${unready}</span>`}</div>
    <div class="outcomes">
      ${isEmpty && html`<p class="problem">This variant lists no tool.</p>`}
      <${FirstTen} all=${answer?.warnings ?? []} show=${(some) => some.map((it) => html`<p class="problem"><${LongText} value=${it} isSentence /></p>`)} />
      ${isAsking && !unready && (isEmpty || isDoubtful) && html`<${Confirm} title=${isEmpty ? "Save a variant without tools?" : "Save it in spite of this?"} button="Save it" yes=${draft.save}
        no=${() => ask(false)}>${isEmpty ? "Its clients get none of the servers’ tools." : "What is said above holds for its clients, too."}<//>`}
      ${error && html`<${Problem} what=${error.status !== 400 ? "The draft cannot be checked." : isElsewhere(error, draft.state.id) ? "Another part of the file is wrong." : "This is not a valid variant."} error=${error} />`}
      ${unread && html`<${Problem} what="The file cannot be read again." error=${unread} />`}
      ${unwritten && html`<${Problem} what="Nothing is written." error=${unwritten} />`}
      <div role="status">${isWriting && "Writing …"}${outcome && html`<${Outcome} ...${{ ...outcome, callers }} />`}</div>
    </div></div>`;
}

const isElsewhere = ({ message }, id) => message.startsWith("`variants.") && !message.startsWith(`\`variants.${id}`);

function Outcome({ title, isUsed, lines, client, callers }) {
  return html`<p class=${isUsed ? "note" : "problem"}>
      <strong>${title}</strong> ${!isUsed && "Vary does not use it:"} ${lines.map((it) => html`<${LongText} value=${it} isSentence /> `)}
      ${client && html` · See what these get now: ${clientLinks(callers.length > 0 ? callers : [{ client: { name: client } }])}`}
    </p>
    ${client && html`<${Stay} callers=${callers} />`}`;
}

/** What the draft costs, and what the variant costs now, or of a new one what it starts from. */
export function Totals({ answer, before, parent, isNew, isPending, error }) {
  if (!answer) return html`<p class="figures totals" role="status" aria-busy=${String(!error)}>${error ? "–" : "Counting …"}</p>`;
  const { tokens, tools } = answer;
  const shown = tools.filter((it) => it.shown !== null).length;
  const baseline = isNew ? plain(parent?.id ?? "", 40) : "before";
  const difference = tokens === before ? `as ${baseline}` : `${saving(tokens, before)} (${baseline}: ${count(before)})`;
  const state = error ? " (of the last valid draft)" : isPending ? " …" : "";
  return html`<p class="figures totals" role="status" aria-busy=${String(!!isPending)}>
    <strong>${plural(tokens, "token")}</strong>, ${difference} · ${count(shown)} of ${plural(tools.length, "tool")}${state}
  </p>`;
}

class CopyText extends Component {
  box = createRef();

  render({ title, button, text, isDiff, isPending }) {
    if (!text) return html`<section><h3>${title}</h3><p class="empty">${isPending ? "Counting …" : "Nothing is changed yet."}</p></section>`;
    const lines = isDiff ? text.split(/(?<=\n)/).map(diffLine) : visible(text, true);
    return html`<section>
      <h3>${title}</h3>
      <div class="definition code" tabindex="0" role="region" aria-label=${title}>
        <bdi class="block" dir="ltr" ref=${this.box}>${lines}</bdi></div>
      <${Copy} ...${{ button, text, box: this.box }} /></section>`;
  }
}

function diffLine(line) {
  const element = /^(\+\+\+|---) /.test(line) ? "span" : ({ "+": "ins", "-": "del" }[line[0]] ?? "span");
  return html`<${element}>${visible(line, true)}</${element}>`;
}
