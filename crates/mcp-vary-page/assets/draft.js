// The view of a draft: a variant that is changed here, and what that would save.

import { get, post } from "./api.js";
import { failuresWith, log } from "./calls.js";
import { Component, createRef, html } from "./dom.js";
import { DraftBar, DraftTexts, Stay, Totals } from "./draft-file.js";
import { DraftTool } from "./draft-tool.js";
import { DraftTools } from "./draft-tools.js";
import { clientName, configName, hide, isCompact, pattern, rulesOf, same, setCompact, show } from "./draft-value.js";
import { JsonField, readValue } from "./form.js";
import { count, minuteOfDay, plural } from "./format.js";
import { CheckBox, Choice, Pending, Problem, matcher, readInto } from "./parts.js";
import { go, linkWith, replace } from "./route.js";
import { forget } from "./rule.js";
import { FirstTen, LongText, Name, plain } from "./text.js";
import { Unknown, openTool, toolKey } from "./tool.js";
import { VARIANTS_OFF } from "./variants.js";

/** Milliseconds after the last change until its figures are asked for. */
const PACE = 300;
/** The seconds of calls from which a suggestion needs no warning. */
const A_DAY = 86_400;

const STORED = "vary-drafts";
/** What is changed, by variant: `{value, clients, saved}`, where `clients` is a text, and `saved` is what the file had before. */
const drafts = new Map(JSON.parse(sessionStorage.getItem(STORED) ?? "[]"));
addEventListener("pagehide", () => sessionStorage.setItem(STORED, JSON.stringify([...drafts])));
/** The ids of variants that are drafted here, and whether the file has them by now. */
const created = new Map([...drafts.keys()].map((id) => [id, false]));

/** The variant that the view has, or had. */
let latest;

export class Draft extends Component {
  grid = createRef();
  /** The number of the last question; answers to earlier ones are old. */
  asked = 0;
  /** `toggled`: whether tools are to be listed, until the answer says so. `tried`: those that were to be listed last. */
  state = { toggled: new Map(), tried: [] };

  componentDidMount = () => this.start();

  async start() {
    try {
      const lists = [get("/api/catalog"), log.calls ? log : get("/api/last-calls")];
      const [catalog, { calls }, { experiments = [] }] = await Promise.all([...lists, get("/api/experiments").catch(() => ({}))]);
      // A file that somebody else wrote can lack what was saved here.
      [...drafts.keys(), ...created.keys()].forEach((id) => created.set(id, false));
      catalog.variants.forEach((it) => created.delete(it.id));
      this.setState({ catalog, calls, experiments });
      if (this.id() === this.state.id) await this.read(this.id());
    } catch (error) {
      this.fail(error);
    }
  }

  /** What Vary did not answer is asked again once it answers for its status. */
  componentDidUpdate({ status }) {
    const isLater = status !== this.props.status;
    if (isLater && (this.state.error?.status === 0 || (status && status.begun !== this.props.status?.begun))) this.start();
    else if (this.state.catalog && this.id() !== this.state.id) this.load();
    else if (isLater && this.state.value && listsOf(status) !== listsOf(this.props.status)) this.reread();
    else if (isLater && this.state.value) this.watch();
  }

  /** Reads the variant again once the file is another. */
  async watch() {
    if (this.isWatching) return;
    this.isWatching = true;
    await readInto(this, async () => {
      const { id } = this.state;
      const { digest } = await written(this.inFile(id));
      if (digest !== this.state.digest && id === this.state.id && !this.state.isWriting) await this.reread();
    }, "unread");
    this.isWatching = false;
  }

  /** The variant, or if it is new another one: the file has a digest and a last save in any case. */
  inFile(id) {
    return isNew(id) ? this.state.catalog.variants[0].id : id;
  }

  componentWillUnmount() {
    this.isGone = true;
    clearTimeout(this.timer);
    this.asked += 1;
  }

  ids() {
    return [...new Set([...this.state.catalog.variants.map((it) => it.id), ...created.keys()])];
  }

  /** The variant of the address, or else the one that was shown last, or the first one. */
  id() {
    const ids = this.ids();
    const named = this.props.params.get("variant");
    return [named, latest].find((id) => ids.includes(id)) ?? ids[0];
  }

  load() {
    const id = this.id();
    if (id === undefined) return;
    clearTimeout(this.timer);
    latest = id;
    // What Vary answers now is of the variant before.
    this.asked += 1;
    this.setState({ id, saved: null, value: null, clients: "", answer: null, error: null, unread: null, tried: [] });
    this.read(id).catch((error) => this.fail(error));
  }

  /** Reads the variant as the file has it; what was changed here stays. */
  async read(id) {
    const { value, clients, digest, lastSave } = await written(this.inFile(id));
    const saved = isNew(id) ? { value: {}, clients: "" } : { value, clients: clients.join("\n") };
    const known = drafts.get(id);
    // A draft that was changed back is none.
    if (known?.saved && same(known, { ...known, ...known.saved })) drafts.delete(id);
    const from = this.props.params.get("from");
    if (from && !drafts.has(id)) drafts.set(id, { ...saved, value: await inPlaceOf(id, saved.value, from) });
    const inherited = await inheritedBy(id, (drafts.get(id) ?? saved).value, this.state.catalog);
    if (this.id() !== id) return;
    if (from) replace({ from: "" });
    const draft = drafts.get(id);
    if (draft) drafts.set(id, { ...draft, saved: draft.saved ?? saved });
    this.setState({ ...saved, ...draft, saved, digest, lastSave, inherited, isPending: true }, () => this.ask());
  }

  /** Reads everything again, for a file that was written. */
  reread = () =>
    readInto(this, async () => {
      this.setState({ catalog: await get("/api/catalog") });
      await this.read(this.id());
    }, "unread");

  /** Writes the draft into the file. What is changed meanwhile stays. */
  save = () => {
    const { id, digest, clients } = this.state;
    const [sent, draft] = [this.sent(), drafts.get(id)];
    return this.write({ title: "Saved.", client: names(clients)[0]?.replaceAll("*", "") }, async () => {
      const answer = await post("/api/save", { ...sent, digest });
      if (same(drafts.get(id), draft)) drafts.delete(id);
      if (isNew(id)) created.set(id, true);
      rebase(id);
      return answer;
    });
  };

  /** Takes the last save out of the file. What it wrote is an unsaved draft again. */
  undoSave = () =>
    this.write({ title: "Undone." }, async () => {
      const { variant: id, isNew: wasNew } = this.state.lastSave;
      const { value, clients } = await written(id);
      const answer = await post("/api/undo", {});
      if (wasNew) created.set(id, false);
      if (!drafts.has(id)) drafts.set(id, { value, clients: clients.join("\n") });
      rebase(id);
      return answer;
    });

  /** Has Vary write by `run`, and reads the file again. The outcome has no warnings that Vary had before. */
  async write(action, run) {
    this.setState({ isWriting: true, isAsking: false, outcome: null, unwritten: null });
    const withoutPositions = (text) => text.replace(/\[\d+\]/g, "[]");
    const known = (this.props.review?.setup ?? []).map(({ what }) => withoutPositions(what));
    const isNews = (line) => !line.startsWith("warning: ") || !known.some((what) => withoutPositions(line).includes(what));
    await readInto(this, async () => {
      const { outcome, isUsed } = await run();
      forget();
      await this.reread();
      return { outcome: { ...action, isUsed, lines: outcome.split("\n").filter(isNews) } };
    }, "unwritten");
    this.setState({ isWriting: false });
  }

  /** The draft for Vary. Without `clients`, their rules stay as they are. */
  sent() {
    const { id, value, clients, saved } = this.state;
    return { id, value, clients: same(names(clients), names(saved.clients)) ? undefined : names(clients) };
  }

  fail(error) {
    this.setState({ error, isPending: false, toggled: new Map() });
    this.props.failed(error);
  }

  change = (value, clients = this.state.clients) => {
    const { id, saved } = this.state;
    drafts.set(id, { saved, ...drafts.get(id), value, clients });
    this.setState({ value, clients, isPending: true, outcome: null });
    this.asked += 1;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), PACE);
  };

  /** Drafts another variant that starts from this one, or has what this one has if no file has it yet. */
  create = (id) => {
    const value = isNew(this.state.id) ? this.state.value : { from: this.state.id };
    if (!this.ids().includes(id)) drafts.set(id, { value, clients: "" });
    this.show(id);
  };

  /** Drafts the variant that Vary suggests for a client. */
  suggest = async (event) => {
    event.preventDefault();
    const name = event.target.elements.client.value;
    this.setState({ isSuggesting: true });
    try {
      const { value, clients, calls, tools, since, ...proposed } = await get(`/api/suggest?${new URLSearchParams({ client: name })}`);
      // The view may be gone meanwhile.
      if (this.isGone) return;
      const isUsed = ({ server, target, upstreamName }) => proposed.used.some((it) => it.name === (upstreamName ?? target) && [it.server, undefined, null].includes(server));
      const failed = failuresWith(this.props.status ?? {}, { client: name, outcome: "error" }).filter((it) => it.method === "tools/call" && !isUsed(it));
      const left = [...new Set(failed.map((it) => plain(it.isAnswered || it.isUnknownTool ? it.target : `${it.target} (${it.server} is down)`)))];
      const of = html`${plural(tools, "tool")}, from ${plural(calls, "call")} since ${minuteOfDay(since)}${left.length > 0 && html`; without what failed each time: ${left.slice(0, 9).join(", ")}`}${Date.now() / 1000 - since < A_DAY && "; less than a day: look for what it lacks"}${proposed.unread && html`; <${LongText} value=${proposed.unread} limit=${200} />`}`;
      this.setState({ unsuggested: null, suggestion: { ...proposed, value, of, name } });
      const names = [...new Set([...clients, pattern(name)])].join("\n");
      this.put({ id: proposed.id, value, clients: names }, { q: "", server: "", state: "listed" });
    } catch (unsuggested) {
      this.setState({ unsuggested });
      this.props.failed(unsuggested);
    }
    this.setState({ isSuggesting: false });
  };

  /** Shows this draft of a variant in place of the one that there is, which can come back. */
  put({ id, value, clients }, params) {
    this.drop(id);
    if (id === this.state.id) this.change(value, clients);
    else drafts.set(id, { value, clients });
    this.show(id, params);
  }

  drop(id) {
    const draft = drafts.get(id);
    this.setState({ dropped: draft && { id, ...draft } });
    drafts.delete(id);
  }

  /** Shows the draft of a variant, which may be new. */
  show(id, params = {}) {
    if (!this.ids().includes(id)) created.set(id, false);
    replace({ variant: id, tool: "", ...params });
  }

  /** Keeps the draft on what somebody else wrote into the file. */
  keep = () => {
    rebase(this.state.id);
    this.setState({});
  };

  /** Goes back to what the file has; a new variant is gone, until the draft is put back. */
  discard = () => {
    const { id, value } = this.state;
    this.drop(id);
    if (isNew(id)) {
      created.delete(id);
      return replace({ variant: value.from ?? "", tool: "" });
    }
    clearTimeout(this.timer);
    this.setState(({ saved, undone = 0 }) => ({ ...saved, isPending: true, undone: undone + 1 }), () => this.ask());
  };

  async ask() {
    const number = ++this.asked;
    try {
      const answer = await post("/api/draft", this.sent());
      if (number === this.asked) this.setState({ answer, error: null, isPending: false, toggled: new Map() });
    } catch (error) {
      if (number === this.asked) this.fail(error);
    }
  }

  toggle = (tools, isShown) => {
    const { catalog, value, inherited, toggled } = this.state;
    const now = this.figures();
    const able = tools.filter((it) => !isShown || !now(it).isLocked);
    const rules = able.map((it) => rulesOf(catalog, it));
    this.setState({ toggled: new Map([...toggled, ...able.map((it) => [toolKey(it), isShown])]), tried: isShown ? tools : [] });
    if (able.length > 0) this.change((isShown ? show : hide)({ ...value, tools: value.tools ?? inherited.tools }, rules));
  };

  /**
   * What the draft makes of a tool: as Vary answered last, or before that what the variant makes of it. A tool that was just
   * switched has no name and no tokens yet.
   */
  figures() {
    const { answer, toggled } = this.state;
    const { parent } = this.compared();
    const drafted = new Map((answer?.tools ?? []).map((it) => [toolKey(it), it]));
    return (row) => {
      const saved = row.variants[parent?.id];
      const found = answer ? drafted.get(toolKey(row)) : { shown: saved?.name, tokens: saved?.tokens };
      return { ...found, isShown: toggled.get(toolKey(row)) ?? typeof found?.shown === "string" };
    };
  }

  /** Lists these tools alone, by these `tools` of the variant. */
  only = (tools, rules) => {
    const others = this.state.catalog.tools.map((it) => [toolKey(it), false]);
    this.setState({ toggled: new Map([...others, ...tools.map((it) => [toolKey(it), true])]), tried: tools });
    this.change({ ...this.state.value, tools: rules ?? (this.state.inherited.tools && ["*"]) });
  };

  close = () => {
    go(linkWith({ tool: "" }));
    setTimeout(() => this.grid.current?.refocus());
  };

  render({ params, status }, { catalog, calls, experiments, id, value, saved, clients, error, answer, isPending }) {
    if (catalog?.variants.length === 0) return VARIANTS_OFF;
    if (!value) return html`<${Pending} what="variant" error=${error} />`;
    const tool = openTool(params);
    const row = tool && catalog.tools.find((it) => toolKey(it) === toolKey(tool));
    const isOfTool = row && error?.message.includes(`overrides.tools.${configName(catalog, row)}`);
    const compared = this.compared();
    const callers = answer?.callers ?? [];
    const changed = same(value, saved.value) ? [] : experiments.filter(({ arms }) => arms.some(({ variant }) => variant === id));
    return html`<p class="note">Change a variant and see what that would save. Clients do not see it until you save it.</p>
      <div class="drafting">
        <div>
          <${Step} number="1" title="Start from">${this.renderStart(compared)}<//>
          <${Step} number="2" title="Tools">${this.renderTools(compared, tool, row, isOfTool && error)}<//>
          <${Step} number="3" title="Clients">
            <${Clients} text=${clients} seen=${status?.clients ?? []} callers=${callers} set=${(text) => this.change(value, text)} />
          <//></div>
        <${Step} number="4" title="Review"><${DraftTexts} ...${{ answer, calls, error, isPending, status, ...compared, callers }} experiments=${changed} catalog=${catalog} /><//>
      </div>
      ${this.renderBar(compared, callers, isOfTool ? null : error)}`;
  }

  /** What the draft is compared with, the variant itself or of a new one what it starts from, and whether it differs from the file, or the file from what was drafted. */
  compared() {
    const { catalog, id, value, saved, answer } = this.state;
    const parent = catalog.variants.find((it) => it.id === (isNew(id) ? (value.from ?? catalog.baseline) : id));
    const isChanged = !same(value, saved.value) || this.sent().clients !== undefined;
    const { saved: drafted = saved } = drafts.get(id) ?? {};
    return { parent, before: (!isNew(id) && answer?.before) || parent?.tokens, isChanged, isMoved: !same(drafted, saved) };
  }

  renderStart({ before }) {
    const { id, value, answer, error, isPending, suggestion, unsuggested } = this.state;
    const now = answer && !isPending && !error ? plural(answer.tokens, "token") : "…";
    return html`<div class="choices">
        <${Start} ...${{ id, create: this.create }} ids=${this.ids()} />
        <${Suggest} clients=${this.props.status?.clients ?? []} suggest=${this.suggest} chosen=${suggestion?.name} isBusy=${this.state.isSuggesting} /></div>
      <label class="field wide-field">Description
        <input value=${value.description ?? ""} placeholder="for whom or what it is" autocomplete="off"
          onInput=${(event) => this.change({ ...value, description: event.target.value || undefined })} />
      </label>
      ${unsuggested && html`<${Problem} what="Nothing is suggested." error=${unsuggested} />`}
      ${suggestion?.value === value && html`<p role="status">${suggestion.of}: ${count(before)} → <strong>${now}</strong></p>`}`;
  }

  renderTools({ parent, isMoved }, tool, row, error) {
    const { catalog, calls, id, value, inherited, isPending, tried, undone, suggestion } = this.state;
    const { params, failed } = this.props;
    const servers = value.servers ?? inherited.servers;
    const { change, toggle, only, close, grid } = this;
    const noted = (isWrong) => this.setState({ isWrong });
    const now = this.figures();
    const still = isPending ? [] : tried.filter((it) => now(it).hidden);
    const used = suggestion?.id === id ? new Map(suggestion.used.map((it) => [toolKey(it), it])) : null;
    return html`<${Unknown} status=${this.props.status} />
      <div role="alert">${isMoved && html`<${Moved} ...${{ id }} keep=${this.keep} discard=${this.discard} />`}</div>
      <${CheckBox} checked=${isCompact(id, value)} onChange=${(event) => change(setCompact(id, value, event.target.checked))}>
        compact: first sentences and short schemas
      <//>
      ${servers && html`<${Boxes} legend="Servers of this variant" all=${catalog.servers} chosen=${servers} set=${(servers) => change({ ...value, servers })} />`}
      <div role="status">${still.length > 0 && html`<p class="problem">
        <${Name} value=${clientName(still[0])} />${still.length > 1 ? ` and ${count(still.length - 1)} more stay` : " stays"} hidden:
        ${" "}<${LongText} value=${now(still[0]).hidden} isSentence />. ${/^its .servers/.test(now(still[0]).hidden) ? "Check its server above." : "Change that in “All its settings, as JSON”."}
      </p>`}</div>
      <div class=${row ? "split" : ""}>
        <${DraftTools} id=${parent?.id} ...${{ catalog, calls, now, params, tool, grid, toggle, only, used }} />
        ${row && html`<${DraftTool} key=${`${toolKey(row)} ${undone}`} tool=${row} now=${now(row)} ...${{ catalog, value, error, failed, close, change, toggle, noted }} warnings=${this.state.answer?.warnings ?? []} />`}
      </div>
      <${Whole} key=${`${id} ${undone}`} ...${{ value, change }} />`;
  }

  /** Why the draft cannot be saved; nothing if it can. */
  unready({ isChanged, isMoved }) {
    const { id, value, answer, error, isPending, isWrong } = this.state;
    if (isWrong) return "see the value that is wrong";
    if (!isChanged) return "nothing is changed";
    const { servers = [] } = this.props.status ?? {};
    const number = servers.filter(({ state, tools }) => state === "starting" && tools === undefined).length;
    if (number > 0) return `${servers.length - number} of ${plural(servers.length, "server")} have answered`;
    if (isMoved) return "the file has changed, see above";
    if (isNew(id) && same(value, { from: value.from }) && this.sent().clients === undefined) return "the same as what it starts from";
    if (error || isPending || !answer) return error ? "see the error" : "counting …";
    return answer.unsavable ? "this page cannot write it" : answer.diff === "" && "the file stays the same";
  }

  /** `error`: what is wrong with the variant as a whole. */
  renderBar(compared, callers, error) {
    return html`<${DraftBar} draft=${this} ...${{ ...compared, callers, error }} unready=${this.unready(compared)}>
      <${Totals} ...${{ ...this.state, ...compared }} isNew=${isNew(this.state.id)} />
    <//>`;
  }
}

/** How many tools the servers list, as far as it is known, as one text. */
const listsOf = (status) => JSON.stringify(status?.servers.map(({ tools }) => tools));

/** Whether a variant is drafted here and in no file yet. */
const isNew = (id) => created.get(id) === false;

/** Has a draft, if there is one, start from what is read next of the file. */
function rebase(id) {
  const { saved, ...draft } = drafts.get(id) ?? {};
  if (saved) drafts.set(id, draft);
}

/** Somebody else changed a variant in the file since it was drafted. */
const Moved = ({ id, keep, discard }) => html`<div class="problem">
  <strong>Somebody changed <${Name} value=${id} limit=${40} /> in the file.</strong> The review shows what your draft would change there now.
  <p class="buttons"><button type="button" onClick=${keep}>Keep my draft</button><button type="button" onClick=${discard}>Discard it, take the file</button></p>
</div>`;

/** A variant as the file has it. */
const written = (id) => get(`/api/variant?${new URLSearchParams({ id })}`);

/** What another variant has, to be that of `id`, as a link can want it. If it starts from that, with what that had. */
async function inPlaceOf(id, before, from) {
  const { status, ...value } = (await written(from)).value;
  return value.from === id ? { ...before, ...value, from: before.from } : value;
}

/** What a variant has as long as it sets it not itself: what those have that it starts from. */
async function inheritedBy(id, { from }, catalog) {
  if (from === id || !catalog.variants.some((it) => it.id === from)) return {};
  const { value } = await written(from);
  return { ...(await inheritedBy(from, value, catalog)), ...value };
}

/** The names in a text, one a line. */
const names = (text) => [...new Set(text.split("\n").map((line) => line.trim()).filter(Boolean))];

const Step = ({ number, title, children }) =>
  html`<section class="step"><h2><span class="step-number">${number}</span> ${title}</h2>${children}</section>`;

function Start({ ids, id, create }) {
  const submit = (event) => {
    event.preventDefault();
    const field = event.target.elements.id;
    field.setCustomValidity(ids.includes(field.value.trim()) ? "There is a variant of this name already." : "");
    if (!field.reportValidity()) return;
    create(field.value.trim());
    event.target.reset();
  };
  return html`<${Choice} label="Variant" value=${id} options=${ids.map((it) => [it, `${plain(it, 40)}${isNew(it) ? " (draft)" : drafts.has(it) ? " (changed)" : ""}`])} onChange=${(variant) => replace({ variant })} />
    <form class="buttons" onSubmit=${submit}>
      <label class="field">New variant from this one <input name="id" required placeholder="a new name" spellcheck=${false} autocomplete="off" onInput=${({ target }) => target.setCustomValidity("")} /></label>
      <button>Draft a copy</button></form>`;
}

/** The clients that made calls, to choose one for which Vary suggests a variant; in an order in which none moves. */
function Suggest({ clients, suggest, chosen, isBusy }) {
  const names = [...new Set(clients.filter(({ calls }) => calls > 0).map(({ client }) => client.name))].filter(Boolean).sort();
  return names.length > 0 && html`<form class="buttons" onSubmit=${suggest}>
    <${Choice} label="or suggest one from what a client called" name="client" value=${chosen} options=${names.map((it) => [it, plain(it, 40)])} />
    <button disabled=${isBusy}>${isBusy ? "Reading its calls …" : "Suggest a variant"}</button></form>`;
}

/** Boxes for names, of which some are chosen. */
function Boxes({ legend, all, chosen, set }) {
  const byPattern = (name) => chosen.find((it) => it.includes("*") && matcher(it)(name));
  const isChosen = (name) => chosen.includes(name) || !!byPattern(name);
  const toggle = (name) => set(isChosen(name) ? chosen.filter((it) => it !== name) : [...chosen, name]);
  const box = (it) => html`<${CheckBox} key=${it} checked=${isChosen(it)} disabled=${!!byPattern(it)} onChange=${() => toggle(it)}><${Name} value=${it} limit=${40} />
    ${byPattern(it) && html` <span class="faint">by ${byPattern(it)}</span>`}<//>`;
  return html`<fieldset><legend>${legend}</legend><${FirstTen} ...${{ all, isChosen }} show=${(some) => some.map(box)} /></fieldset>`;
}

/** The clients that get a variant: boxes for those that were seen, and a text of names or patterns. */
function Clients({ text, seen, callers, set }) {
  const chosen = names(text);
  // A name that is not one line cannot be in the text.
  const known = [...new Set(seen.map((it) => pattern(it.client.name ?? "")))].filter((it) => same(names(it), [it]));
  return html`${known.length > 0 && html`<${Boxes} legend="Clients that were seen" all=${known.sort()} chosen=${chosen} set=${(all) => set(all.join("\n"))} />`}
    <${Stay} callers=${callers} />
    <label class="field wide-field">Clients that get it, a name a line
      <textarea rows=${Math.max(2, chosen.length)} value=${text} placeholder="e.g. claude*" spellcheck=${false} onInput=${(event) => set(event.target.value)}></textarea>
    </label>`;
}

/** The variant as JSON, for what has no field here. */
class Whole extends Component {
  typed = (text) => {
    try {
      const value = readValue({ kind: "json", schema: { type: "object" } }, text);
      this.setState({ text, typed: value, error: null });
      this.props.change(value);
    } catch (error) {
      this.setState({ text, error });
    }
  };

  render({ value }, { text, typed, error }) {
    // What is typed stays as it is, until something else changes the variant.
    const isTyped = error || typed === value;
    return html`<details class="question">
      <summary>All its settings, as JSON</summary>
      <${JsonField} text=${isTyped ? text : JSON.stringify(value, null, 2)} problem=${error?.message} changed=${this.typed}>
        such as <code>features</code>, <code>result</code> and <code>hints</code>
      <//></details>`;
  }
}
