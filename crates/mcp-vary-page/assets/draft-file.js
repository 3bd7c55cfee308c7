// What a draft is as text, what it changes in the file, and the bar that saves it.

import { Component, createRef, html } from "./dom.js";
import { count, plural, saving, share, timeOfDay } from "./format.js";
import { Confirm, Copy, Problem } from "./parts.js";
import { RuleText } from "./rule.js";
import { FirstTen, LongText, Name, plain, visible } from "./text.js";
import { clientLinks } from "./who.js";

/** What the draft changes, and the variant as YAML. */
export function DraftTexts({ answer, isChanged, status, callers, variants }) {
  if (!answer) return null;
  const why = isChanged && answer.unsavable;
  return html`${isChanged && html`<${Stay} callers=${callers} />${costs(callers, answer.tokens, variants)}`}
    <div class="sides texts">
      <${CopyText} title="What changes in the file" button="Copy the diff" text=${isChanged ? answer.diff : ""} isDiff />
      <${CopyText} title="YAML of the variant" button="Copy the YAML" text=${answer.yaml} />
    </div>
    ${why && html`<p class="note">This page cannot write it: <${LongText} value=${why} isSentence />. The difference is that of the entry.</p>`}
    ${status && !status.writes && html`<p class="note">To save drafts from this page, write <code>admin-writes: on</code> into the configuration and start Vary again.</p>`}`;
}

/** What the callers who come to the draft from another variant read there, and in the draft. */
function costs(callers, tokens, variants) {
  const tokensOf = ({ now }) => variants.find(({ id }) => id === now.variant)?.tokens;
  const one = (it) => html`<p>${clientLinks([it])}: from ${count(tokensOf(it))} tokens of <${Name} value=${it.now.variant} limit=${40} /> to ${count(tokens)}, ${saving(tokens, tokensOf(it))}</p>`;
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

/**
 * What stays in sight: the totals, what is wrong, and what can be done with the draft. `save` writes it, and `undo` takes
 * back the `lastSave`; `reread` reads the file, which is another than the page has read.
 */
export class DraftBar extends Component {
  save = () => this.write("Saved.", this.props.save);

  undo = () => this.write("Undone.", this.props.undo);

  /** Waits for what is written and read again. */
  async write(title, run) {
    this.setState({ isWriting: true, isAsking: false, outcome: null, unwritten: null });
    const next = await run().then((outcome) => ({ outcome: { ...outcome, title } }), (unwritten) => ({ unwritten }));
    if (next.unwritten) this.props.failed(next.unwritten);
    this.setState({ ...next, isWriting: false });
  }

  render({ children, answer, status, isChanged, unready, error, unread, callers, ...draft }, { isWriting, isAsking, outcome, unwritten }) {
    const { discard, dropped, restore, lastSave, reread } = draft;
    const isEmpty = answer?.tools.length > 0 && answer.tools.every((it) => it.shown === null);
    const save = () => (isEmpty ? this.setState({ isAsking: true }) : this.save());
    return html`<div class="draft-bar" role="region" aria-label="The draft as a whole">
      ${children}
      <div class="buttons">
        ${(unwritten ?? unread) && html`<button type="button" onClick=${() => this.setState({ unwritten: null }, reread)}>Read the file again</button>`}
        ${status?.writes && lastSave && html`<button type="button" disabled=${isWriting} onClick=${this.undo}>
          Undo the save of <${Name} value=${lastSave.variant} limit=${40} /> at ${timeOfDay(lastSave.at)}
        </button>`}
        ${dropped && html`<button type="button" disabled=${isWriting} onClick=${restore}>
          Bring back the draft of <${Name} value=${dropped.id} limit=${40} />
        </button>`}
        <button type="button" disabled=${!isChanged || isWriting} onClick=${discard}>Discard changes</button>
        ${status?.writes && html`<button type="button" class="main" disabled=${unready || isWriting} aria-describedby="unready" onClick=${save}>Save</button>
          <span id="unready" class="note">${unready}</span>`}
      </div>
      <div class="outcomes">
        ${isEmpty && html`<p class="problem">This variant lists no tool.</p>`}
        <${FirstTen} all=${answer?.warnings ?? []} show=${(some) => some.map((it) => html`<p class="problem"><${LongText} value=${it} isSentence /></p>`)} />
        ${isAsking && !unready && isEmpty && html`<${Confirm} title="Save a variant without tools?" button="Save it" yes=${this.save}
          no=${() => this.setState({ isAsking: false })}>Its clients get none of the servers’ tools.<//>`}
        ${error && html`<${Problem} what=${error.status === 400 ? "This is not a valid variant." : "The draft cannot be checked."} error=${error} />`}
        ${unread && html`<${Problem} what="The file cannot be read again." error=${unread} />`}
        ${unwritten && html`<${Problem} what="Nothing is written." error=${unwritten} />`}
        <div role="status">${isWriting && "Writing …"}${outcome && html`<${Outcome} ...${{ ...outcome, callers }} />`}</div>
      </div>
    </div>`;
  }
}

/** What the reload said of a file that was written. */
function Outcome({ title, isUsed, outcome, client, callers }) {
  return html`<p class=${isUsed ? "note" : "problem"}>
      <strong>${title}</strong> ${!isUsed && "Vary does not use it:"} ${outcome.split("\n").map((it) => html`<${LongText} value=${it} isSentence /> `)}
      ${client && html` · See what these get now: ${clientLinks(callers.length > 0 ? callers : [{ client: { name: client } }])}`}
    </p>
    ${client && html`<${Stay} callers=${callers} />`}`;
}

/** What the draft costs, and what the variant costs now, or of a new one what it starts from. */
export function Totals({ answer, before, parent, isNew, isPending, error }) {
  if (!answer) return html`<p class="figures totals" role="status" aria-busy=${String(!error)}>${error ? "–" : "Counting …"}</p>`;
  const { tokens, tools } = answer;
  const shown = tools.filter((it) => it.shown !== null).length;
  const size = tokens < before / 100 ? `${share(tokens, before)} of` : `${saving(tokens, before)} against`;
  const baseline = isNew ? `${plain(parent?.id ?? "", 40)} with ${count(before)}` : `${count(before)} before`;
  const difference = tokens === before ? `as ${isNew ? plain(parent.id, 40) : "before"}` : before ? `${size} ${baseline}` : "nothing before";
  const state = error ? " (of the last valid draft)" : isPending ? " …" : "";
  return html`<p class="figures totals" role="status" aria-busy=${String(!!isPending)}>
    <strong>${plural(tokens, "token")}</strong>, ${difference} · ${count(shown)} of ${plural(tools.length, "tool")}${state}
  </p>`;
}

class CopyText extends Component {
  box = createRef();

  render({ title, button, text, isDiff }) {
    if (!text) return html`<section><h3>${title}</h3><p class="empty">Nothing is changed yet.</p></section>`;
    const lines = isDiff ? text.split(/(?<=\n)/).map(diffLine) : visible(text, true);
    return html`<section>
      <h3>${title}</h3>
      <div class="definition code" tabindex="0" role="region" aria-label=${title}>
        <bdi class="block" dir="ltr" ref=${this.box}>${lines}</bdi>
      </div>
      <${Copy} ...${{ button, text, box: this.box }} />
    </section>`;
  }
}

/** A line of a unified diff. */
function diffLine(line) {
  const element = /^(\+\+\+|---) /.test(line) ? "span" : ({ "+": "ins", "-": "del" }[line[0]] ?? "span");
  return html`<${element}>${visible(line, true)}</${element}>`;
}
