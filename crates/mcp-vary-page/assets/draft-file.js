// What a draft is as text, what it changes in the file, and saving that.

import { post } from "./api.js";
import { Component, createRef, html } from "./dom.js";
import { Copy, Problem } from "./parts.js";
import { LongText, visible } from "./text.js";

/** Whether a save can be undone: it stays so while one looks at another view. */
let hasSaved = false;

/** `save` writes the draft. `reread` reads the file, which is another than the page has read. */
export class DraftFile extends Component {
  save = () => this.write("Saved.", this.props.save());

  undo = () => this.write("Undone.", post("/api/undo", {}));

  /** Waits for what is written, then for the file. */
  async write(title, writing) {
    this.setState({ isWriting: true, outcome: null, error: null });
    try {
      const outcome = await writing;
      hasSaved = title === "Saved.";
      await this.props.reread();
      this.setState({ outcome: { ...outcome, title } });
    } catch (error) {
      this.setState({ error });
      this.props.failed(error);
    }
    this.setState({ isWriting: false });
  }

  reread = () => {
    this.setState({ error: null });
    this.props.reread();
  };

  render({ answer, isChanged, canSave, status }, { isWriting, outcome, error }) {
    const { yaml, diff, unsavable } = answer;
    const why = isChanged && unsavable;
    return html`<div class="sides texts">
        <${CopyText} title="What changes in the file" button="Copy the diff" text=${isChanged ? diff : ""} isDiff />
        <${CopyText} title="YAML of the variant" button="Copy the YAML" text=${yaml} />
      </div>
      ${why && html`<p class="note">This page cannot write it: <${LongText} value=${why} isSentence />. The difference is that of the entry.</p>`}
      ${status?.writes
        ? html`<p class="buttons">
            <button type="button" disabled=${!canSave || !!unsavable || isWriting} onClick=${this.save}>Save</button>
            ${hasSaved && html`<button type="button" disabled=${isWriting} onClick=${this.undo}>Undo the last save</button>`}
          </p>`
        : status && html`<p class="note">To save drafts from this page, write <code>admin-writes: on</code> into the configuration and start Vary again.</p>`}
      <div role="status">${isWriting && "Writing …"}${outcome && html`<${Outcome} ...${outcome} />`}</div>
      ${error &&
      html`<${Problem} what="Nothing is written." error=${error} />
        <p class="buttons"><button type="button" onClick=${this.reread}>Read the file again</button></p>`}`;
  }
}

/** What the reload said of a file that was written. */
function Outcome({ title, isUsed, outcome }) {
  return html`<p class=${isUsed ? "note" : "problem"}>
    <strong>${title}</strong> ${!isUsed && "Vary does not use it:"} <${LongText} value=${outcome} isSentence />
  </p>`;
}

class CopyText extends Component {
  box = createRef();

  render({ title, button, text, isDiff }) {
    if (!text) return html`<section><h2>${title}</h2><p class="empty">Nothing is changed yet.</p></section>`;
    const lines = isDiff ? text.split(/(?<=\n)/).map(diffLine) : visible(text, true);
    return html`<section>
      <h2>${title}</h2>
      <div class="definition code" tabindex="0" role="region" aria-label=${title}>
        <bdi class="block" dir="ltr" ref=${this.box}>${lines}</bdi>
      </div>
      <${Copy} ...${{ button, text, box: this.box }} />
    </section>`;
  }
}

const DIFF_LINES = { "+": "ins", "-": "del" };

/** A line of a unified diff. */
function diffLine(line) {
  const element = /^(\+\+\+|---) /.test(line) ? "span" : (DIFF_LINES[line[0]] ?? "span");
  return html`<${element}>${visible(line, true)}</${element}>`;
}
