// Small parts that all views use.

import { get } from "./api.js";
import { Component, createRef, html } from "./dom.js";
import { count } from "./format.js";
import { link } from "./route.js";
import { Folded, plain } from "./text.js";

/** Reads members of a component's state; `failure` is the member that says why that failed. */
export async function readInto(component, read, failure = "error") {
  try {
    component.setState({ ...(await read()), [failure]: null });
  } catch (error) {
    component.setState({ [failure]: error });
    component.props.failed(error);
  }
}

/** A view of what Vary answers at its `path`, which is read every five seconds. */
export class Polled extends Component {
  componentDidMount() {
    this.load();
    this.timer = setInterval(() => document.hidden || this.load(), 5000);
  }

  componentWillUnmount = () => clearInterval(this.timer);

  load() {
    readInto(this, async () => ({ answer: await get(this.path) }));
  }
}

/** What failed, and what to do. */
export const Problem = ({ what, error }) => html`<p class="problem" role="alert"><strong>${what}</strong> ${sentence(error.message)}</p>`;

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}`.replace(/[^.?!]$/, "$&.");

/** A view without its data: it is loading, or that failed. */
export function Pending({ what, error }) {
  if (error) return html`<${Problem} what=${`The ${what} cannot be shown.`} error=${error} />`;
  return html`<p class="note">Loading the ${what} …</p>`;
}

/** A table with a heading; `empty` says what to do as long as it has no rows. `label` is the title without elements. On a phone it is folded, unless it `isMain`. */
export function Table({ title, label = title, since, note, columns, rows, empty, isMain }) {
  const heading = html`<h2>${title}${since}</h2>`;
  const content = html`${note && html`<div class="note">${note}</div>`}
    ${rows.length === 0 ? html`<p class="empty">${empty}</p>` : html`<${PlainTable} ...${{ label, columns, rows }} />`}`;
  const isFolded = !isMain && matchMedia("(max-width: 40rem)").matches;
  return html`<section>${isFolded ? html`<details><summary>${heading}</summary>${content}</details>` : [heading, content]}</section>`;
}

/** The rows of a long table that are shown at first; it would be strange to hide only one or two. */
const FIRST_ROWS = 10;

/** What the first character of a column's name says of its cells. */
const KINDS = { "#": "number", "~": "prose" };

/**
 * The columns are names: one that begins with `#` has numbers, one with `~` sentences. The first cell of each row is its
 * heading.
 */
export function PlainTable({ label, columns, rows }) {
  const cellClass = (at) => KINDS[columns[at][0]] ?? "";
  const nameOf = (column) => column.replace(/^[#~]/, "");
  const cellOf = (cell, at) =>
    at === 0 ? html`<th scope="row">${cell}</th>` : html`<td class=${cellClass(at)} data-column=${nameOf(columns[at])}>${cell}</td>`;
  const show = (isWhole) => html`<div class="wide" tabindex="0" role="region" aria-label=${label}>
    <table class="plain">
      <thead><tr>${columns.map((name, at) => html`<th scope="col" class=${cellClass(at)}>${nameOf(name)}</th>`)}</tr></thead>
      <tbody>${rows.slice(0, isWhole ? rows.length : FIRST_ROWS).map((cells) => html`<tr>${cells.map(cellOf)}</tr>`)}</tbody>
    </table></div>`;
  return html`<${Folded} isLong=${rows.length > FIRST_ROWS + 2} all=${rows.length}>${show}<//>`;
}

/** A number of calls as the link to them. */
export function CallCount({ number, filters, what }) {
  if (!number) return count(number);
  return html`<a href=${link("now", filters)} aria-label=${`${count(number)}: show ${plain(what, 60)}`}>${count(number)}</a>`;
}

/** A field that filters as one types. */
export const Filter = ({ label, value, onChange, hint }) => html`<label class="field">${label}
  <input type="search" value=${value} placeholder=${hint} spellcheck=${false} autocomplete="off" onInput=${(event) => onChange(event.target.value)} />
</label>`;

/** A list to choose from; `options` are values with their texts. */
export const Choice = ({ label, name, value, options, onChange }) => html`<label class="field">${label}
  <select name=${name} onChange=${(event) => onChange?.(event.target.value)}>
    ${options.map(([id, text]) => html`<option key=${id} value=${id} selected=${id === value}>${text}</option>`)}
  </select></label>`;

/** A box to check, and what that means. */
export const CheckBox = ({ children, ...properties }) => html`<label class="choice"><input type="checkbox" ...${properties} />${children}</label>`;

/** A button that copies a text; `box` refers to the element that shows it. */
export class Copy extends Component {
  copy = async () => {
    const { text, box } = this.props;
    try {
      await navigator.clipboard.writeText(text);
      this.setState({ outcome: "Copied." });
    } catch {
      // Without HTTPS, browsers let a page of another machine select the text, but not copy it.
      getSelection().selectAllChildren(box.current);
      this.setState({ outcome: "The text is selected. Press Ctrl+C or ⌘C." });
    }
  };

  componentDidUpdate(before) {
    if (before.text !== this.props.text && this.state.outcome) this.setState({ outcome: "" });
  }

  render({ button }, { outcome }) {
    return html`<p class="buttons"><button type="button" onClick=${this.copy}>${button}</button><span role="status" class="note">${outcome}</span></p>`;
  }
}

/** Asks before what cannot be undone. */
export class Confirm extends Component {
  heading = createRef();

  componentDidMount = () => this.heading.current.focus();

  render({ title, button, yes, no, children }) {
    return html`<section class="problem" aria-labelledby="confirm" onKeyDown=${(event) => event.key === "Escape" && no()}>
      <h2 id="confirm" tabindex="-1" ref=${this.heading}>${title}</h2>
      <p>${children}</p>
      <p class="buttons">
        <button type="button" class="main" onClick=${yes}>${button}</button>
        <button type="button" onClick=${no}>Cancel</button></p></section>`;
  }
}

/** Details below a list: they get the focus, as much of them as fits is shown, and Escape closes them. */
export class Panel extends Component {
  heading = createRef();

  componentDidMount() {
    const heading = this.heading.current;
    heading.focus({ preventScroll: true });
    heading.closest(".panel").scrollIntoView({ block: "nearest" });
  }

  render({ id, kind = "", level = "h2", title, close, children }) {
    return html`<section class=${`panel ${kind}`} aria-labelledby=${id} onKeyDown=${(event) => event.key === "Escape" && close()}>
      <header>
        <${level} id=${id} tabindex="-1" ref=${this.heading}>${title}</${level}>
        <button type="button" onClick=${close}>Close</button></header>
      ${children}</section>`;
  }
}

/** Whether a filter matches a text: by a part of it, or by a pattern with `*` as a whole. */
export function matcher(filter) {
  const wanted = filter.trim().toLowerCase();
  if (!wanted.includes("*")) return (text) => text.toLowerCase().includes(wanted);
  const [first, ...others] = wanted.split("*");
  const [last, between] = [others.pop(), others.filter(Boolean)];
  return (text) => {
    const name = text.toLowerCase();
    /** Where a part ends that follows; a regular expression would try all places of all parts. */
    const after = (from, part) => (name.includes(part, from) ? name.indexOf(part, from) + part.length : Infinity);
    return name.startsWith(first) && name.endsWith(last) && between.reduce(after, first.length) <= name.length - last.length;
  };
}
