// What several clients got of the same call, side by side, with what differs.

import { clientTexts } from "./client.js";
import { Diff, diffLines, likeness, linesOf } from "./diff.js";
import { Component, createRef, html } from "./dom.js";
import { count, milliseconds, plural, saving } from "./format.js";
import { Choice, Copy, PlainTable } from "./parts.js";
import { link } from "./route.js";
import { Folded, LongText, Name, plain } from "./text.js";

/** Texts that have less in common are shown as they are. */
const ALIKE = 0.3;

/** The characters of a part that are shown before one asks for all, and the lines around what differs. */
const [MOST_SHOWN, AROUND] = [4_000, 3];

/** `clients` are those of the request, `results` what came, in the same order. */
export class Results extends Component {
  heading = createRef();

  componentDidMount = () => this.show();

  componentDidUpdate(before) {
    if (before.results !== this.props.results) this.show();
  }

  /** The form above can be longer than the window. */
  show() {
    this.heading.current.focus({ preventScroll: true });
    this.heading.current.scrollIntoView({ block: "start" });
  }

  render({ clients, results }, { base }) {
    const answered = results.findIndex((it) => it.result && !isFailed(it));
    const at = results[base]?.result ? base : answered < 0 ? results.findIndex((it) => it.result) : answered;
    const compared = results[at];
    const options = results.flatMap(({ name, result }, it) => (result ? [[it, plain(name, 60)]] : []));
    return html`<section class="results" aria-labelledby="results">
      <h2 id="results" tabindex="-1" ref=${this.heading}>What each client gets</h2>
      <${Verdict} ...${{ results, compared }} />
      ${compared && html`<div class="choices">
        <${Choice} label="Compare with" value=${at} options=${options} onChange=${(it) => this.setState({ base: Number(it) })} />
      </div>`}
      <${Figures} ...${{ clients, results, compared }} />
      <div class="cards">
        ${results.map((it, index) => html`<${Card} key=${index} id=${`result-${index}`} answer=${it} compared=${compared} isCompared=${it === compared} />`)}
      </div></section>`;
  }
}

function valueOf({ content }) {
  try {
    return content.length === 1 ? JSON.parse(content[0].text) : undefined;
  } catch {
    return undefined;
  }
}

const isEqual = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** The names and kinds in a value, where each list has its first element only. */
const shapeOf = (value) => JSON.stringify(value, (_, it) => (Array.isArray(it) ? it.slice(0, 1) : it && typeof it === "object" ? it : typeof it));

/** Whether the server answered the same; `null` if that cannot be known, since a variant can have another form, and Vary can cut a result. */
function isSameAnswer(one, other) {
  const [value, before] = [one, other].map((it) => it.structuredContent ?? valueOf(it));
  if (isEqual(one, other) || (value && isEqual(value, before))) return true;
  const isCut = JSON.stringify([one, other]).includes("vary://result/");
  return value && before && !isCut && shapeOf(value) === shapeOf(before) ? false : null;
}

/** The tokens of a result beside those of the baseline. */
function tokensBeside({ result, tokens }, compared, isOther) {
  const isSame = isSameAnswer(result, compared.result);
  return isSame === false || (isOther && !isSame) ? "the server’s answers differ" : `${saving(tokens, compared.tokens)}${isSame ? "" : " *"}`;
}

const isFailed = ({ result, error }) => error !== undefined || result?.isError === true;

/** What the results show together: who failed, or else who pays least for the same answer. */
function Verdict({ results, compared }) {
  const failed = results.filter(isFailed);
  const names = failed.map(({ name }, at) => html`${at > 0 && ", "}<${Name} value=${name} limit=${60} />`);
  if (failed.length > 0) return html`<p class="problem">${count(failed.length)} of ${plural(results.length, "call")} failed: ${names}</p>`;
  const all = results.filter(({ result }) => result);
  if (all.length < 2) return null;
  const same = all.map(({ result }) => isSameAnswer(result, compared.result));
  if (same.includes(false)) return html`<p class="verdict">The server’s answers differ, so the tokens cannot be compared.</p>`;
  const [least, most] = [Math.min, Math.max].map((best) => best(...all.map(({ tokens }) => tokens)));
  const what = !same.includes(null) && ": the same answer";
  if (!what && least !== most && all.every(({ variant }) => variant === compared.variant)) {
    return html`<p class="verdict">All get <${Name} value=${compared.variant} limit=${60} />, so what differs is what the server answered.</p>`;
  }
  if (least === most) return html`<p class="verdict">All ${plural(all.length, "client")} get ${plural(least, "token")}${what}.</p>`;
  const of = (tokens) => html`<${Name} value=${all.find((it) => it.tokens === tokens).name} limit=${60} /> gets ${count(tokens)}`;
  return html`<p class="verdict">${what ? "" : "Perhaps of other answers: "}${of(least)} tokens, ${saving(least, most)}: ${of(most)}${what}.</p>`;
}

/** A row for each client: what it gets, and what that costs. */
function Figures({ clients, results, compared }) {
  const isOther = results.some(({ result }) => result && isSameAnswer(result, compared.result) === false);
  const rows = results.map((it, at) => [
    html`<${Name} value=${it.name} limit=${60} />`,
    html`<${Outcome} ...${it} />`,
    it.variant ? html`<a href=${link("who", clientTexts(clients[at] ?? {}))}><${Name} value=${it.variant} limit=${40} /></a>` : "–",
    it.result ? count(it.tokens) : "–",
    it.result && it !== compared ? (isFailed(it) ? "failed" : tokensBeside(it, compared, isOther)) : "–",
    it.result ? count(it.bytes) : "–",
    it.tool ? html`<code><${Name} value=${it.tool} limit=${48} /></code>` : "–",
    milliseconds(it.ms),
  ]);
  const columns = ["client", "outcome", "variant", "#tokens", "#compared", "#bytes", "called as", "#time taken"];
  const isUnknown = !isOther && results.some((it) => it.result && !isFailed(it) && isSameAnswer(it.result, compared.result) === null);
  return html`<${PlainTable} label="Bytes and tokens for each client" ...${{ columns, rows }} />
    ${isUnknown && html`<p class="note">* In another form: nothing shows whether the server answered the same.</p>`}`;
}

/** What came of the call of one client, in a word. */
function Outcome({ result, error, tool }) {
  if (!tool) return html`<span class="outcome denied">not listed</span>`;
  if (error !== undefined) return html`<span class="outcome error">failed</span>`;
  return result?.isError === true ? html`<span class="outcome tool_error">tool error</span>` : html`<span class="outcome allowed">answered</span>`;
}

class Card extends Component {
  box = createRef();

  /** Large results are not written again with each reading of the status. */
  shouldComponentUpdate = (next) => next.answer !== this.props.answer || next.compared !== this.props.compared;

  render({ id, answer, isCompared, compared }) {
    const { name, error, result } = answer;
    return html`<article class="card" aria-labelledby=${id}>
      <h3 id=${id}><${Name} value=${name} limit=${60} />${" "}${isCompared && html`<span class="mark">baseline</span>`}</h3>
      ${isFailed(answer) && html`<p><${Outcome} ...${answer} /></p>`}
      ${error !== undefined && html`<p class="problem"><${LongText} value=${error} limit=${400} isSentence /></p>`}
      ${result && html`<div ref=${this.box}><${Result} result=${result} compared=${isCompared ? null : compared?.result} of=${name} /></div>
        <${Copy} button="Copy the result" text=${JSON.stringify(result, null, 2)} box=${this.box} />`}
    </article>`;
  }
}

/** The parts of a result, beside those of the one that it is compared with. */
function Result({ result, compared, of }) {
  const parts = partsOf(result);
  const before = compared && partsOf(compared);
  const names = [...new Set([...parts.keys(), ...(before?.keys() ?? [])])];
  return names.map((name) => {
    const [text, other] = [parts.get(name), before ? before.get(name) ?? null : undefined];
    const part = html`<${Part} key=${name} ...${{ name, text, of }} before=${other} />`;
    const isContent = () => name === "structuredContent" && isEqual(valueOf(result) ?? null, result.structuredContent);
    const same = text === other ? "in the baseline" : isContent() && "content";
    return same ? html`<details key=${name}><summary><${Name} value=${name} limit=${60} />, the same as ${same}</summary>${part}</details>` : part;
  });
}

/** The members of a result as texts, by their names. */
function partsOf(result) {
  const members = Object.entries(result).filter(([, value]) => value !== undefined);
  return new Map(members.map(([name, value]) => [name, name === "content" && Array.isArray(value) ? contentText(value) : JSON.stringify(value, null, 2)]));
}

function contentText(blocks) {
  const isText = (block) => block?.type === "text" && typeof block.text === "string";
  return blocks.map((block) => (isText(block) ? laidOut(block.text) : JSON.stringify(block, null, 2))).join("\n\n");
}

/** A text that is an object or a list as JSON, in lines. Numbers stay as they are written, where browsers can do that. */
function laidOut(text) {
  const isExact = (value) => typeof value === "number" && JSON.rawJSON;
  const exact = (_, value, { source } = {}) => (isExact(value) ? JSON.rawJSON(source) : value);
  try {
    return /^\s*[[{]/.test(text) ? JSON.stringify(JSON.parse(text, exact), null, 2) : text;
  } catch {
    return text;
  }
}

/** One part. `text` is absent if the result has none, `before` is `null` if the other one has none. */
function Part({ name, text, before, of }) {
  const title = html`<${Name} value=${name} limit=${60} />`;
  if (!text) return html`<h4>${title}</h4><p class="note">${text === "" ? "Empty." : "Only in the baseline."}</p>`;
  const { pieces, relation } = comparison(text, before);
  const short = shortened(pieces);
  const isLong = JSON.stringify(short) !== JSON.stringify(pieces);
  const show = (isWhole) => html`<${Diff} pieces=${isWhole ? pieces : short} />`;
  return html`<h4>${title}${" "}<span class="mark">${relation}</span></h4>
    <div class=${`definition code ${name === "isError" ? "bad" : ""}`} tabindex="0" role="region"
      aria-label=${`${plain(name)} for ${plain(of)}`}>
      <${Folded} isLong=${isLong} all=${`${count(text.length)} characters`}>${show}<//></div>`;
}

/** The differences to the other text, if that is alike, and how the two relate in words. */
function comparison(text, before) {
  const whole = [["same", text]];
  if (typeof before !== "string") return { pieces: whole, relation: before === null ? "only here" : "" };
  if (text === before) return { pieces: whole, relation: "the same" };
  const pieces = diffLines(before, text);
  if (likeness(pieces, before, text) < ALIKE) return { pieces: whole, relation: "in another form" };
  const begins = ([kind], at) => kind !== "same" && (pieces[at - 1]?.[0] ?? "same") === "same";
  return { pieces, relation: plural(pieces.filter(begins).length, "difference") };
}

/** The first pieces, without most of the lines between those that differ. */
function shortened(pieces) {
  const shown = pieces.length === 1 ? pieces : pieces.flatMap(withoutMost);
  let left = MOST_SHOWN;
  return shown.flatMap(([kind, text]) => {
    const begin = text.slice(0, left);
    left -= begin.length;
    return begin ? [[kind, begin]] : [];
  });
}

function withoutMost([kind, text]) {
  const lines = linesOf(text);
  const skipped = lines.length - 2 * AROUND;
  if (kind !== "same" || skipped < AROUND) return [[kind, text]];
  const note = `… ${plural(skipped, "line")} that are the same …\n`;
  return [["same", lines.slice(0, AROUND).join("")], ["skipped", note], ["same", lines.slice(-AROUND).join("")]];
}
