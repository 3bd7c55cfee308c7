// What several clients got of the same call, side by side, with what differs.

import { clientTexts } from "./client.js";
import { Diff, likeness } from "./diff.js";
import { Component, createRef, html } from "./dom.js";
import { count, milliseconds, saving } from "./format.js";
import { Choice, Copy, PlainTable } from "./parts.js";
import { link } from "./route.js";
import { Folded, LongText, Name, plain, visible } from "./text.js";

/** Texts that have less in common are shown as they are: a word diff of them says nothing. */
const ALIKE = 0.6;

/** The characters of a part that are shown before one asks for all. */
const MOST_SHOWN = 4_000;

/** `clients` are those of the request, `results` what came, in the same order. */
export class Results extends Component {
  heading = createRef();
  cards = createRef();
  state = { base: 0 };

  componentDidMount() {
    this.show();
  }

  componentDidUpdate(before) {
    if (before.results !== this.props.results) this.show();
  }

  /** The form above can be longer than the window. */
  show() {
    this.heading.current.focus({ preventScroll: true });
    this.heading.current.scrollIntoView({ block: "start" });
  }

  /** The same part of all results scrolls with the one that somebody scrolls. */
  scrolled = ({ target }) => {
    if (!target.matches(".definition:is(:hover, :focus)")) return;
    for (const it of this.cards.current.querySelectorAll(".definition")) {
      if (it !== target && it.dataset.part === target.dataset.part) it.scrollTop = target.scrollTop;
    }
  };

  render({ clients, results }, { base }) {
    const at = results[base]?.result ? base : results.findIndex((it) => it.result);
    const compared = results[at];
    const options = results.flatMap(({ name, result }, it) => (result ? [[it, plain(name, 60)]] : []));
    return html`<section class="results" aria-labelledby="results">
      <h2 id="results" tabindex="-1" ref=${this.heading}>What each client gets</h2>
      ${compared &&
      html`<div class="choices">
        <${Choice} label="Compare with" value=${at} options=${options} onChange=${(it) => this.setState({ base: Number(it) })} />
      </div>`}
      ${lacksPerson({ clients, results }) &&
      html`<p class="problem">Choose a person: without one, access rules allow nothing. Choose an API key among the clients above, or paste the claims of a token.</p>`}
      <${Figures} ...${{ clients, results, compared }} />
      <div class="cards" ref=${this.cards} onScrollCapture=${this.scrolled}>
        ${results.map((it, index) => html`<${Card} key=${index} id=${`result-${index}`} answer=${it} compared=${compared} isCompared=${it === compared} />`)}
      </div>
    </section>`;
  }
}

const NO_RULE = "no access rule that applies to the client allows it";

/** Whether no client has the tool, since none has a person. */
const lacksPerson = ({ clients, results }) =>
  clients.every(({ key, claims }) => !key && !claims) && results.every(({ tool, error }) => !tool && error?.includes(NO_RULE));

/** The value that the only text of a result is. */
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
function tokensBeside({ result, tokens }, compared) {
  const isSame = isSameAnswer(result, compared.result);
  return isSame === false ? "the server’s answers differ" : `${saving(tokens, compared.tokens)}${isSame ? "" : " *"}`;
}

/** A row for each client: what it gets, and what that costs. */
function Figures({ clients, results, compared }) {
  const rows = results.map((it, at) => [
    html`<${Name} value=${it.name} limit=${60} />`,
    html`<${Outcome} ...${it} />`,
    it.variant ? html`<a href=${link("who", clientTexts(clients[at] ?? {}))}><${Name} value=${it.variant} limit=${40} /></a>` : "–",
    it.result ? count(it.tokens) : "–",
    it.result && it !== compared ? tokensBeside(it, compared) : "–",
    it.result ? count(it.bytes) : "–",
    it.tool ? html`<code><${Name} value=${it.tool} limit=${48} /></code>` : "–",
    milliseconds(it.ms),
  ]);
  const columns = ["client", "outcome", "variant", "#tokens", "#compared", "#bytes", "called as", "#time taken"];
  const isUnknown = results.some(({ result }) => result && isSameAnswer(result, compared.result) === null);
  return html`<${PlainTable} label="Bytes and tokens for each client" ...${{ columns, rows }} />
    ${isUnknown && html`<p class="note">* These results have another form, so nothing shows whether the server answered the same.</p>`}`;
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
  shouldComponentUpdate(next) {
    return next.answer !== this.props.answer || next.compared !== this.props.compared;
  }

  render({ id, answer, isCompared, compared }) {
    const { name, error, result, tool, variant } = answer;
    return html`<article class="card" aria-labelledby=${id}>
      <h3 id=${id}><${Name} value=${name} limit=${60} />${" "}${isCompared && html`<span class="mark">baseline</span>`}</h3>
      <p><${Outcome} ...${answer} /></p>
      ${!tool && variant && html`<p>The list of this client, which gets <${Name} value=${variant} limit=${40} />, does not have the tool:</p>`}
      ${error !== undefined && html`<p class="problem"><${LongText} value=${error} limit=${400} isSentence /></p>`}
      ${result &&
      html`<div ref=${this.box}><${Result} result=${result} compared=${isCompared ? null : compared?.result} of=${name} /></div>
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
    const part = html`<${Part} key=${name} name=${name} text=${parts.get(name)} before=${before ? before.get(name) ?? null : undefined} of=${of} />`;
    if (name !== "structuredContent" || !isEqual(valueOf(result), result.structuredContent)) return part;
    return html`<details key=${name}><summary>structuredContent, the same as content</summary>${part}</details>`;
  });
}

/** The members of a result as texts, by their names. */
function partsOf(result) {
  const members = Object.entries(result).filter(([, value]) => value !== undefined);
  return new Map(members.map(([name, value]) => [name, name === "content" && Array.isArray(value) ? contentText(value) : JSON.stringify(value, null, 2)]));
}

/** The blocks of a result as one text. */
function contentText(blocks) {
  return blocks.map((block) => (block?.type === "text" && typeof block.text === "string" ? block.text : JSON.stringify(block, null, 2))).join("\n\n");
}

/** One part. `text` is absent if the result has none, `before` is `null` if the other one has none. */
class Part extends Component {
  /** Words are not compared again with each reading of the status. */
  shouldComponentUpdate(next) {
    return next.text !== this.props.text || next.before !== this.props.before;
  }

  render({ name, text, before, of }) {
    const title = html`<${Name} value=${name} limit=${60} />`;
    if (text === undefined) return html`<h4>${title}</h4><p class="note">Only in the baseline.</p>`;
    if (text === "") return html`<h4>${title}</h4><p class="note">Empty${before ? "; not in the baseline" : ""}.</p>`;
    const isLong = text.length > MOST_SHOWN || (before?.length ?? 0) > MOST_SHOWN;
    const isDiff = typeof before === "string" && text !== before && likeness(before.slice(0, MOST_SHOWN), text.slice(0, MOST_SHOWN)) >= ALIKE;
    const show = (isWhole) => {
      const [old, shown] = [before, text].map((it) => (isWhole ? it : it?.slice(0, MOST_SHOWN)));
      return isDiff ? html`<${Diff} before=${old} after=${shown} />` : html`<bdi class="block" dir="auto">${visible(shown, true)}</bdi>`;
    };
    return html`
      <h4>${title}${" "}<span class="mark">${relation(text, before, isDiff)}</span></h4>
      <div class=${`definition ${name === "content" ? "" : "code"} ${name === "isError" ? "bad" : ""}`} data-part=${name} tabindex="0" role="region" aria-label=${`${plain(name)} for ${plain(of)}`}>
        <${Folded} isLong=${isLong} all=${`${count(text.length)} characters`}>${show}<//>
      </div>
    `;
  }
}

function relation(text, before, isDiff) {
  if (before === undefined) return "";
  if (before === null) return "only here";
  if (text === before) return "the same";
  return isDiff ? "differs" : "different";
}
