// The view of one call by several clients: a tool, its arguments, and what each client gets.

import { get, getTool, post } from "./api.js";
import { MOST_CALLS, isError } from "./calls.js";
import { Chooser, addressOfFirst, chosenClients, idsOf } from "./chooser.js";
import { callersOf } from "./client.js";
import { Component, createRef, html } from "./dom.js";
import { clientName } from "./draft-value.js";
import { AS_JSON, SchemaForm, readArguments } from "./form.js";
import { count, plural } from "./format.js";
import { Grid } from "./grid.js";
import { Choice, Confirm, Filter, Pending, Problem, matcher, readInto } from "./parts.js";
import { Results } from "./results.js";
import { go, linkWith, replace } from "./route.js";
import { LongText, Name, plain } from "./text.js";
import { callsByTool, effectOf, isReadOnly, openTool, toolKey } from "./tool.js";
import { causesOf } from "./who.js";

export class Compare extends Component {
  componentDidMount() {
    readInto(this, async () => ({ catalog: await get("/api/catalog"), calls: (await get("/api/last-calls")).calls }));
  }

  render({ params, status, failed }, { catalog, calls, error }) {
    if (!catalog || !status) return html`<${Pending} what="tools" error=${error ?? this.props.error} />`;
    const tool = openTool(params);
    return html`${status.calls !== true && CALLS_OFF}
      ${tool
        ? html`<${Call} key=${toolKey(tool)} ...${{ tool, catalog, calls, params, status, failed }} />`
        : html`<${ToolChoice} ...${{ catalog, calls, params }} />`}`;
  }
}

const CALLS_OFF = html`<p class="empty calls-off">
  Calls from this page are off. To let it call the servers, write <code>admin-calls: on</code> into the configuration and start Vary again.
</p>`;

const COLUMNS = [
  { id: "name", head: "tool", kind: "c-name" },
  { id: "calls", head: "calls", kind: "c-number" },
  { id: "errors", head: "errors", kind: "c-number" },
  { id: "server", head: "server", kind: "c-short" },
  { id: "effect", head: "declares", kind: "c-client" },
];

/** All tools of the servers, those that were called most first, of which one is chosen. */
function ToolChoice({ catalog, calls, params }) {
  const matches = matcher(params.get("q") ?? "");
  const byTool = callsByTool(calls);
  const counted = catalog.tools.map((tool) => {
    const all = byTool.get(toolKey(tool)) ?? [];
    return { ...tool, known: clientName(tool), calls: all.length, errors: all.filter(isError).length };
  });
  const rows = counted.filter((it) => matches(it.name) || matches(it.known)).sort((a, b) => b.calls - a.calls);
  const empty = catalog.tools.length === 0 ? "The servers list no tools yet." : "No tool matches. Clear the filter.";
  const cell = (tool, { id }) => {
    if (id === "effect") return html`<span class="faint">${effectOf(tool)}</span>`;
    if (id === "calls" || id === "errors") return tool[id] > 0 && count(tool[id]);
    return html`<${Name} value=${id === "name" ? tool.known : tool[id]} />`;
  };
  return html`<section class="tool-choice" aria-labelledby="choice">
    <h2 id="choice">Choose a tool to call</h2>
    <p class="note">Most called first. Calls and errors are those of the last ${count(MOST_CALLS)} calls.</p>
    <div class="choices">
      <${Filter} label="Filter tools" hint="delete_" value=${params.get("q") ?? ""} onChange=${(q) => replace({ q })} />
    </div>
    ${rows.length === 0
      ? html`<p class="empty">${empty}</p>`
      : html`<${Grid} label="Tools" columns=${COLUMNS} ...${{ rows, cell }} open=${(tool) => go(linkWith({ tool: toolKey(tool) }))} />`}
  </section>`;
}

/** The arguments of the call that one comes from, with its tool: the link may open another tab. They are in no address. */
let prepared;
export const prepare = (tool, text) => (prepared = { tool: toolKey(tool), text });

/** One tool: its form, the clients, and what they got. */
class Call extends Component {
  heading = createRef();
  form = createRef();
  /** `causes`: what hides the tool from each client, as far as that is known. */
  state = { texts: new Map(prepared?.text && prepared.tool === toolKey(this.props.tool) ? [[AS_JSON, prepared.text]] : []), problems: new Map(), causes: new Map() };
  /** The clients to choose from, in an order that stays. */
  seen = idsOf(callersOf(this.props.calls, this.props.status), this.props.status.keys ?? []);

  componentDidMount() {
    prepared = null;
    this.heading.current?.focus();
    this.chooseFirst();
    this.explain();
    readInto(this, async () => ({ original: (await getTool(this.props.tool)).original }));
  }

  componentDidUpdate({ params }) {
    this.chooseFirst();
    if (params.toString() !== this.props.params.toString()) this.explain();
  }

  /** Asks what hides the tool from the chosen clients, from all of them `again`. Where that fails, the call says why. */
  explain(again = false) {
    const isWanted = (client) => again || !this.state.causes.has(JSON.stringify(client));
    chosenClients(this.props.params).filter(isWanted).forEach(async (client) => {
      const hidden = await whatHides(this.props.tool, client).catch(() => []);
      this.setState(({ causes }) => ({ causes: new Map(causes).set(JSON.stringify(client), hidden) }));
    });
  }

  /** The chosen clients: those that get the tool, as far as that is known, and the others with what hides it. */
  clients() {
    const causesOf = (it) => this.state.causes.get(JSON.stringify(it)) ?? [];
    const all = chosenClients(this.props.params).map((it) => ({ ...it, causes: causesOf(it) }));
    const isRefused = ({ causes }) => causes.length > 0;
    return { getting: all.filter((it) => !isRefused(it)), refused: all.filter(isRefused) };
  }

  /** Writes the first choice, those who called the tool, into an address without one, where it stays when other clients come. */
  chooseFirst() {
    const { params } = this.props;
    if (params.has("clients") || params.has("own")) return;
    const own = callsByTool(this.props.calls.filter(({ outcome }) => outcome === "allowed")).get(toolKey(this.props.tool)) ?? [];
    const callers = idsOf(callersOf(own, {}), this.props.status.keys ?? []);
    replace(addressOfFirst(callers.length > 1 ? callers : [...callers, ...this.seen]));
  }

  changed = (texts) => this.setState({ texts, problems: new Map() });

  submit = (event) => {
    event.preventDefault();
    if (this.props.status.calls !== true || this.state.isCalling) return;
    const { texts, original } = this.state;
    const { value, problems } = readArguments(original.inputSchema, texts);
    this.setState({ problems }, () => this.form.current?.querySelector("[aria-invalid]")?.focus());
    if (problems.size > 0) return;
    if (isReadOnly(original)) return this.call(value);
    this.setState({ asked: value });
    this.explain(true);
  };

  async call(value, confirmed = false) {
    const { tool } = this.props;
    const clients = this.clients().getting.map(({ causes, ...client }) => client);
    this.setState({ asked: null, isCalling: true, error: null });
    try {
      const answer = await post("/api/call", { server: tool.server, tool: tool.name, arguments: value, clients, confirmed });
      this.setState({ answer: { clients, results: answer.clients }, isCalling: false });
    } catch (error) {
      // Its hints may have changed since they were read.
      const isAsked = error.status === 409 && !confirmed;
      this.setState({ ...(isAsked ? { asked: value } : { error }), isCalling: false });
      if (!isAsked) this.props.failed(error);
    }
  }

  render({ tool, catalog, params, status }, { original, texts, problems, error, asked, isCalling, answer }) {
    const { getting, refused } = this.clients();
    const row = catalog.tools.find((it) => toolKey(it) === toolKey(tool));
    const name = row ? clientName(row) : tool.name;
    const variants = catalog.variants.map(({ id }) => id);
    const keys = [["", "as each client has it"], ...(status.keys ?? []).map((key) => [key, plain(key, 60)])];
    return html`<section aria-labelledby="tool">
        <h2 id="tool" tabindex="-1" ref=${this.heading}><${LongText} value=${name} limit=${120} /></h2>
        <p class="note">
          <${Name} value=${tool.name} /> of the server <${Name} value=${tool.server} />${original && html`, ${effectOf(original)}`} ·${" "}
          <a href=${linkWith({ tool: "" })}>choose another tool</a></p>
        ${typeof original?.description === "string" && html`<p><${LongText} value=${original.description} limit=${240} /></p>`}
      </section>
      <div class="sides">
        <section aria-labelledby="clients">
          <h2 id="clients">Clients</h2>
          ${keys.length > 1 && html`<${Choice} label="Person, by API key" value=${params.get("key") ?? ""} options=${keys} onChange=${(key) => replace({ key })} />`}
          <${Chooser} ...${{ params, variants }} seen=${this.seen} /></section>
        ${original && html`<form ref=${this.form} onSubmit=${this.submit} aria-labelledby="arguments" class="call">
          <h2 id="arguments">Arguments</h2>
          <${SchemaForm} schema=${original.inputSchema} ...${{ texts, problems }} changed=${this.changed} />
          <p><${CallButton} ...${{ getting, refused, isCalling, isOff: status.calls !== true }} /></p>
          ${refused.length > 0 && html`<${Refused} ...${{ refused, tool }} />`}
        </form>`}</div>
      ${asked && html`<${Question} ...${{ name, getting, refused, fixed: fixedIn(row) }} annotations=${original.annotations} value=${asked}
        yes=${() => this.call(asked, true)} no=${() => this.setState({ asked: null })} />`}
      ${error && html`<${Problem} what="The call was not made." error=${error} />`}
      ${answer && html`<${Results} ...${answer} />`}`;
  }
}

function CallButton({ getting, refused, isCalling, isOff }) {
  if (isCalling) return html`<button disabled>Calling …</button>`;
  const all = getting.length + refused.length;
  const nobody = all === 0 ? "choose a client" : getting.length === 0 && "no chosen client gets this tool";
  const why = isOff ? "calls from this page are off" : nobody;
  const part = refused.length > 0 ? `${count(getting.length)} of ` : "";
  return html`<button class="main" disabled=${!!why}>Call it as ${part}${plural(all, "client")}</button>
    ${" "}<span class="note">${why || `The server gets ${plural(getting.length, "real call")}.`}</span>`;
}

/** Why a client does not get a tool: causes, or in words that it needs a person; empty if it gets it. */
async function whatHides(tool, client) {
  const { tools, steps = [], lacksCredential } = await post("/api/explain", client);
  const [refusal, pin] = ["refused", "pin"].map((name) => steps.find(({ step }) => step === name)?.detail);
  if (refusal) return [{ by: "refused", rule: null, detail: `${refusal}: ${pin}` }];
  const causes = tools.find((it) => toolKey(it) === toolKey(tool))?.hidden ?? [];
  const isNobody = !client.key && !client.claims && causes.some(({ detail }) => detail === "no access rule that applies to the client allows it");
  return lacksCredential || isNobody ? NO_PERSON : causes;
}

const NO_PERSON = "for which access rules allow nothing: choose a person above, or paste the claims of a token";

/** The chosen clients that do not get the tool, and what hides it from each. */
const Refused = ({ refused, tool }) => html`<p>Not called, since they do not get the tool:</p>
  <ul class="causes">
    ${refused.map(({ name, causes }) => html`<li>
      <${Name} value=${name} />, ${causes === NO_PERSON ? causes : causesOf({ ...tool, hidden: causes })}
    </li>`)}</ul>`;

const fixedIn = (row) => [...new Set(Object.values(row?.variants ?? {}).flatMap((it) => it?.fixed ?? []))];

/** Asks before a call that can change something: what, for whom, and with which arguments. */
function Question({ name, annotations, value, getting, refused, fixed, yes, no }) {
  const title = `Call it ${plural(getting.length, "time")}`;
  const names = (all) => all.map((it, at) => html`${at > 0 && ", "}<strong><${Name} value=${it.name} /></strong>`);
  const isSafe = annotations?.destructiveHint === false;
  return html`<${Confirm} title=${`${title}?`} button=${title} ...${{ yes, no }}>
    <code class=${!isSafe && "destroys"}><${Name} value=${name} limit=${60} /></code> ${isSafe ? "writes" : "may destroy"}, as its server
    ${" "}declares it (<code>destructiveHint: ${plain(String(annotations?.destructiveHint ?? "not set"))}</code>). It runs once for each of these:${" "}
    ${names(getting)}, with <code><${LongText} value=${JSON.stringify(value)} limit=${300} /></code>, and nothing undoes that.
    ${fixed.length > 0 && html` A variant that fixes <code>${plain(fixed.join(", "))}</code> sends its own value in place of this one.`}
    ${refused.length > 0 && html` Not for ${names(refused)}.`}<//>`;
}
