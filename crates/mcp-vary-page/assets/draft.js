// The view of a draft: a variant that is changed here, and what that would save. Nothing is written.

import { get, post } from "./api.js";
import { Component, createRef, html } from "./dom.js";
import { DraftTool } from "./draft-tool.js";
import { configName, hide, isCompact, same, setCompact, show } from "./draft-value.js";
import { count, plural, saving } from "./format.js";
import { Grid } from "./grid.js";
import { Filter, Pending, Problem, matcher } from "./parts.js";
import { go, linkWith, replace } from "./route.js";
import { Name, plain, visible } from "./text.js";
import { openTool, toolKey } from "./variants.js";

/** Milliseconds after the last change until its figures are asked for. */
const PACE = 300;

/** The changed values, by variant: they last until the page is loaded again. */
const drafts = new Map();

export class Draft extends Component {
  grid = createRef();
  /** The number of the last question; answers to earlier ones are old. */
  asked = 0;
  /** `toggled`: whether tools are to be listed, until the answer says so. */
  state = { toggled: new Map() };

  async componentDidMount() {
    try {
      this.setState({ catalog: await get("/api/catalog") });
    } catch (error) {
      this.fail(error);
    }
  }

  componentDidUpdate() {
    if (this.state.catalog && this.id() !== this.state.id) this.load();
  }

  componentWillUnmount() {
    clearTimeout(this.timer);
    this.asked += 1;
  }

  /** The variant of the address, or else the last one: it is more often the one that somebody works on. */
  id() {
    const ids = this.state.catalog.variants.map((it) => it.id);
    const named = this.props.params.get("variant");
    return ids.includes(named) ? named : ids.at(-1);
  }

  async load() {
    const id = this.id();
    if (id === undefined) return;
    this.setState({ id, saved: null, value: null, answer: null, error: null });
    try {
      const { value } = await get(`/api/variant?${new URLSearchParams({ id })}`);
      if (this.id() !== id) return;
      this.setState({ saved: value, value: drafts.get(id) ?? value }, () => this.ask());
    } catch (error) {
      this.fail(error);
    }
  }

  fail(error) {
    this.setState({ error, isPending: false, toggled: new Map() });
    this.props.failed(error);
  }

  change = (value) => {
    drafts.set(this.state.id, value);
    this.setState({ value, isPending: true });
    this.asked += 1;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), PACE);
  };

  undo = () => {
    drafts.delete(this.state.id);
    clearTimeout(this.timer);
    this.setState(({ saved, undone = 0 }) => ({ value: saved, isPending: true, undone: undone + 1 }), () => this.ask());
  };

  async ask() {
    const { id, value } = this.state;
    const number = ++this.asked;
    try {
      const answer = await post("/api/draft", { id, value });
      if (number === this.asked) this.setState({ answer, error: null, isPending: false, toggled: new Map() });
    } catch (error) {
      if (number === this.asked) this.fail(error);
    }
  }

  toggle = (tool, isShown) => {
    const { catalog, value, toggled } = this.state;
    this.setState({ toggled: new Map(toggled).set(toolKey(tool), isShown) });
    this.change((isShown ? show : hide)(value, configName(catalog, tool)));
  };

  close = () => {
    go(linkWith({ tool: "" }));
    setTimeout(() => this.grid.current?.refocus());
  };

  render({ params }, { catalog, id, saved, value, answer, error, isPending, undone, toggled }) {
    if (catalog?.variants.length === 0) return NO_VARIANT;
    if (!value) return html`<${Pending} what="variant" error=${error} />`;
    const tool = openTool(params);
    const row = tool && catalog.tools.find((it) => toolKey(it) === toolKey(tool));
    const isOfTool = row && concerns(error, configName(catalog, row));
    const isChanged = !same(value, saved);
    const now = figures(id, answer, toggled);
    return html`
      <p class="note">
        Change a variant and see what that would save. Nothing is written: at the end, copy the YAML into the configuration.
      </p>
      <${Settings} ...${{ catalog, id, value, isChanged }} change=${this.change} undo=${this.undo} />
      <${Totals} ...${{ answer, catalog, id, isPending, error }} />
      ${error && !isOfTool && html`<${Problem} what="This is not a valid variant." error=${error} />`}
      <${ToolFilter} params=${params} />
      <div class=${row ? "split" : ""}>
        <${Tools} ...${{ catalog, id, now, params, tool, grid: this.grid, toggle: this.toggle }} />
        ${row &&
        html`<${DraftTool} key=${`${toolKey(row)} ${undone}`} ...${{ catalog, value, failed: this.props.failed, close: this.close }}
          tool=${row} now=${now(row)} error=${isOfTool ? error : null} change=${this.change} toggle=${this.toggle} />`}
      </div>
      ${answer && html`<${Texts} ...${{ answer, isChanged }} />`}
      <${Whole} key=${`${id} ${undone}`} value=${value} change=${this.change} />
    `;
  }
}

const NO_VARIANT = html`<p class="empty">Variants are off. Add <code>variants</code> to the configuration to draft one.</p>`;

/** Whether an error is about the override of a tool. */
const concerns = (error, name) => error?.message.includes(`overrides.tools.${name}`) ?? false;

/**
 * What the draft makes of a tool, `{isShown, shown, tokens}`: as Vary answered last, or before that what the variant makes of
 * it. A tool that was just switched has no name and no tokens yet.
 */
function figures(id, answer, toggled) {
  const drafted = new Map((answer?.tools ?? []).map((it) => [toolKey(it), it]));
  return (row) => {
    const saved = row.variants[id];
    const { shown, tokens } = answer ? (drafted.get(toolKey(row)) ?? {}) : { shown: saved?.name, tokens: saved?.tokens };
    return { isShown: toggled.get(toolKey(row)) ?? typeof shown === "string", shown, tokens };
  };
}

function Settings({ catalog, id, value, isChanged, change, undo }) {
  const choose = (event) => replace({ variant: event.target.value });
  const compact = (event) => change(setCompact(id, value, event.target.checked));
  return html`<div class="choices">
    <label class="field"
      >Variant
      <select onChange=${choose}>
        ${catalog.variants.map((it) => html`<option value=${it.id} selected=${it.id === id}>${plain(it.id, 40)}</option>`)}
      </select>
    </label>
    <label class="choice"
      ><input type="checkbox" checked=${isCompact(id, value)} onChange=${compact} /> compact: first sentences and short schemas</label
    >
    <button type="button" disabled=${!isChanged} onClick=${undo}>Undo all changes</button>
  </div>`;
}

/** What the draft costs, and what the variant costs now. */
function Totals({ answer, catalog, id, isPending, error }) {
  if (!answer) return html`<p class="figures totals" role="status" aria-busy=${String(!error)}>${error ? "–" : "Counting …"}</p>`;
  const shown = answer.tools.filter((it) => it.shown !== null).length;
  const difference =
    answer.tokens === answer.before ? "as many as" : `${saving(answer.tokens, answer.before)} against the ${count(answer.before)} of`;
  const state = error ? " (of the last valid draft)" : isPending ? " …" : "";
  return html`<p class="figures totals" role="status" aria-busy=${String(!!isPending)}>
    <strong>${count(answer.tokens)} tokens</strong>, ${difference} <${Name} value=${id} limit=${40} /> as it is ·${" "}
    ${count(shown)} of ${plural(answer.tools.length || catalog.tools.length, "tool")}${state}
  </p>`;
}

function ToolFilter({ params }) {
  return html`<div class="choices">
    <${Filter} label="Filter tools" hint="delete_" value=${params.get("q") ?? ""} onChange=${(q) => replace({ q })} />
    <p class="note">A click on “listed” or “hidden” switches it, except where what the variant starts from (“from”), or a condition in it, leaves the tool out; one on the tool changes its name, description and arguments.</p>
  </div>`;
}

const COLUMNS = [
  { id: "name", head: "tool", kind: "c-name" },
  { id: "listed", head: "it is", kind: "c-short" },
  { id: "shown", head: "shown as", kind: "c-client" },
  { id: "tokens", head: "tokens", kind: "c-number" },
  { id: "before", head: "before", kind: "c-number" },
];

function Tools({ catalog, id, now, params, tool, grid, toggle }) {
  const matches = matcher(params.get("q") ?? "");
  const rows = catalog.tools.filter((it) => it.name && matches(it.name));
  if (rows.length === 0) return html`<p class="empty">No tool matches. Clear the filter.</p>`;
  const cell = (row, { id: column }) => {
    const { isShown, shown, tokens } = now(row);
    if (column === "name") return html`<${Name} value=${row.name} />`;
    if (column === "before") return row.variants[id] ? count(row.variants[id].tokens) : "–";
    if (column === "listed") return isShown ? "listed" : html`<span class="hidden-tool">hidden</span>`;
    if (!isShown) return "–";
    if (typeof shown !== "string") return "…";
    if (column === "tokens") return count(tokens);
    return html`<span class=${shown === row.name ? "faint" : "mark renamed"}><${Name} value=${shown} /></span>`;
  };
  const open = (row, { id: column }) =>
    column === "listed" ? toggle(row, !now(row).isShown) : go(linkWith({ tool: toolKey(row) }));
  return html`<${Grid} handle=${grid} label="Tools of the draft" columns=${COLUMNS} ...${{ rows, cell, open }}
    selected=${(row, column) => column.id === "name" && tool && toolKey(row) === toolKey(tool)} />`;
}

/** What to copy. */
function Texts({ answer, isChanged }) {
  return html`<div class="sides texts">
    <${CopyText} title="YAML of the variant" button="Copy the YAML" text=${answer.yaml} />
    <${CopyText} title="What changes" button="Copy the diff" text=${isChanged ? answer.diff : ""} isDiff />
  </div>`;
}

class CopyText extends Component {
  box = createRef();

  copy = async () => {
    try {
      await navigator.clipboard.writeText(this.props.text);
      this.setState({ said: "Copied." });
    } catch {
      // Without HTTPS, browsers let a page of another machine select the text, but not copy it.
      getSelection().selectAllChildren(this.box.current);
      this.setState({ said: "The text is selected. Press Ctrl+C or ⌘C." });
    }
  };

  componentDidUpdate(before) {
    if (before.text !== this.props.text && this.state.said) this.setState({ said: "" });
  }

  render({ title, button, text, isDiff }, { said }) {
    if (!text) return html`<section><h2>${title}</h2><p class="empty">Nothing is changed yet.</p></section>`;
    const lines = isDiff ? text.split(/(?<=\n)/).map(diffLine) : visible(text, true);
    return html`<section>
      <h2>${title}</h2>
      <div class="definition code" tabindex="0" role="region" aria-label=${title}>
        <bdi class="block" dir="ltr" ref=${this.box}>${lines}</bdi>
      </div>
      <p class="buttons"><button type="button" onClick=${this.copy}>${button}</button><span role="status" class="note">${said}</span></p>
    </section>`;
  }
}

const DIFF_LINES = { "+": "ins", "-": "del" };

/** A line of a unified diff. */
function diffLine(line) {
  const element = /^(\+\+\+|---) /.test(line) ? "span" : (DIFF_LINES[line[0]] ?? "span");
  return html`<${element}>${visible(line, true)}</${element}>`;
}

/** The variant as JSON, for what has no field here. */
class Whole extends Component {
  typed = (event) => {
    const text = event.target.value;
    try {
      const value = JSON.parse(text);
      if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("a variant is an object");
      this.setState({ text, error: null });
      this.props.change(value);
    } catch (error) {
      this.setState({ text, error });
    }
  };

  render({ value }, { text, error }) {
    // What is typed stays as it is, until something else changes the variant.
    const isTyped = error || (text && means(text, value));
    return html`<details class="question">
      <summary>All its settings, as JSON</summary>
      <label class="field json"
        >such as <code>features</code>, <code>result</code> and <code>hints</code>
        <textarea rows="12" spellcheck=${false} value=${isTyped ? text : JSON.stringify(value, null, 2)} onInput=${this.typed}
          aria-invalid=${error ? "true" : undefined} aria-describedby=${error ? "whole-wrong" : undefined}></textarea>
        ${error && html`<span class="wrong" id="whole-wrong">This cannot be read: ${error.message}.</span>`}
      </label>
    </details>`;
  }
}

/** Whether a text is this value as JSON. */
function means(text, value) {
  try {
    return same(JSON.parse(text), value);
  } catch {
    return false;
  }
}
