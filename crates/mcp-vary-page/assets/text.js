// Text that servers and clients sent. It is hostile: it is shown as text, isolated from the text around it, with what
// cannot be seen made visible, and cut if it is long.

import { Component, html } from "./dom.js";
import { count } from "./format.js";

/** Controls but those that are `allowed`, all that is invisible or moves other characters, and letters of Cyrillic in a word of Latin ones. U+FE0F alone can say nothing, and emoji need it. */
const unseen = (allowed) => new RegExp(String.raw`((?![\uFE0F${allowed}])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?<=\p{sc=Latn})\p{sc=Cyrl}|\p{sc=Cyrl}(?=\p{sc=Latn}))`, "u");
/** Line breaks and tabs lay out a block of text. */
const [UNSEEN, UNSEEN_IN_BLOCK] = ["", "\n\t"].map(unseen);

/** The code point of a character, as the Unicode standard writes it. */
const codePoint = (character) => `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

/** The text in pieces: strings, and marks for characters that cannot be seen. */
export function visible(text, isBlock = false) {
  const pieces = String(text).split(isBlock ? UNSEEN_IN_BLOCK : UNSEEN);
  return pieces.map((piece, at) =>
    at % 2 ? html`<span class="unseen" title="a character that cannot be seen, or looks like another one">${codePoint(piece)}</span>` : piece,
  );
}

/** The same for attributes, which have no elements. */
export function plain(text, limit = 80) {
  const pieces = cut(String(text), limit).split(UNSEEN);
  return pieces.map((piece, at) => (at % 2 ? `<${codePoint(piece)}>` : piece)).join("");
}

/** At most `limit` characters of a text. */
const cut = (text, limit) => (text.length <= limit ? text : `${text.slice(0, limit).replace(/[\uD800-\uDBFF]$/u, "")}…`);

/** A name, or a sentence of Vary, in one line of fixed height; what does not fit is left out. */
export function Name({ value, limit = 80, isSentence = false }) {
  if (value === "") return html`<i class="faint">empty</i>`;
  const shown = cut(String(value), limit);
  return html`<bdi class="name" dir="auto">${isSentence ? withCode(shown) : visible(shown)}</bdi>`;
}

/** A sentence with names in backticks. Whoever wrote it can choose what looks like code, and nothing else. */
function withCode(text) {
  const parts = text.split(/`([^`]+)`/);
  return parts.map((part, at) => (at % 2 ? html`<code>${visible(part)}</code>` : visible(part)));
}

/** A text of any length: the beginning, and a button that shows everything. `isSentence` is for what Vary wrote. */
export function LongText({ value, limit = 600, isSentence = false }) {
  const text = String(value);
  const show = (isWhole) => html`<${Name} ...${{ value: text, isSentence }} limit=${isWhole ? Infinity : limit} />`;
  return html`<${Folded} isLong=${text.length > limit} all=${`${count(text.length)} characters`}>${show}<//>`;
}

/** A sentence of Vary, in a list or a table. */
export const sentence = (text, limit = 300) => html`<${LongText} value=${text} limit=${limit} isSentence />`;

/** A text or a list, of which a button shows all, as it does at first if `isOpenFirst`. `children` draws it, whole or not. */
export class Folded extends Component {
  render({ isLong, all, more = `show all ${all}`, less = "show less", isOpenFirst = false, children: show }, { isOpen = isOpenFirst }) {
    const toggle = () => this.setState({ isOpen: !isOpen });
    const button = html` <button type="button" class="quiet" onClick=${toggle} aria-expanded=${String(isOpen)}>
      ${isOpen ? less : more}</button>`;
    return html`${show(isOpen || !isLong)}${isLong && button}`;
  }
}

const MOST = 10;
/** `show(some)` makes the elements of the first ten, or of all once they are wanted, as they are at first if one `isChosen`. */
export const FirstTen = ({ all, show, isChosen = () => false }) =>
  html`<${Folded} isLong=${all.length > MOST + 2} isOpenFirst=${all.slice(MOST).some(isChosen)}
    more=${`${count(all.length - MOST)} more`} less="only the first ten">${(isWhole) => show(isWhole ? all : all.slice(0, MOST))}<//>`;
