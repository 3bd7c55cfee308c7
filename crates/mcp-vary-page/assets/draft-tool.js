// One tool of a draft: whether it is listed, under which name, with which description, and which arguments are fixed.

import { getTool } from "./api.js";
import { Component, html } from "./dom.js";
import { clientName, configName, override, overrideArgument, overrideOf } from "./draft-value.js";
import { ArgumentInput, Wrong, argumentsOf, describedBy, readValue } from "./form.js";
import { count, saving } from "./format.js";
import { CheckBox, Panel, Problem, readInto } from "./parts.js";
import { LongText, Name, plain } from "./text.js";
import { effectOf } from "./tool.js";

export class DraftTool extends Component {
  /** The texts of values that are typed, and what is wrong with each, by the names of arguments. */
  state = { typed: new Map() };

  componentDidMount() {
    readInto(this, async () => ({ original: (await getTool(this.props.tool)).original }));
  }

  name() {
    return configName(this.props.catalog, this.props.tool);
  }

  /** An empty text leaves what the server has. */
  set = (member) => (event) =>
    this.props.change(override(this.props.value, this.name(), { [member]: event.target.value || undefined }));

  setArgument = (argument, changes) =>
    this.props.change(overrideArgument(this.props.value, this.name(), argument.name, changes));

  fix = (argument, text) => {
    const typed = { text };
    try {
      this.setArgument(argument, { fixed: text === "" ? undefined : readValue(argument, text) });
    } catch (error) {
      typed.problem = error.message;
    }
    const all = new Map(this.state.typed).set(argument.name, typed);
    this.setState({ typed: all });
    this.props.noted([...all.values()].some(({ problem }) => problem));
  };

  componentWillUnmount = () => this.props.noted(false);

  /** What stands in the field of a fixed value. */
  fixedText({ name, kind }, { fixed }) {
    if (this.state.typed.has(name)) return this.state.typed.get(name).text;
    if (fixed === undefined) return "";
    return kind === "text" && typeof fixed === "string" ? fixed : JSON.stringify(fixed);
  }

  render({ tool, value, now, error, warnings, close, toggle }, { original, error: unread }) {
    const known = overrideOf(value, this.name());
    const collision = known.name && warnings.find((it) => it.includes(`tools.${this.name()}\` is called \``));
    const { isShown, shown, tokens, hidden, isLocked } = now;
    return html`<${Panel} id="drafted" kind="draft-panel" title=${html`<${LongText} value=${clientName(tool)} limit=${120} />`} close=${close}>
      <p class="note">
        of the server <${Name} value=${tool.server} />, ${effectOf(tool)}, ${count(tool.tokens)} tokens as it lists it
        ${isShown && typeof shown === "string" && `, ${count(tokens)} in the draft (${saving(tokens, tool.tokens)})`}
      </p>
      ${(error ?? unread) && html`<${Problem} what="This cannot be." error=${error ?? unread} />`}
      <${CheckBox} checked=${isShown} disabled=${isLocked} onChange=${(event) => toggle([tool], event.target.checked)}>list this tool<//>
      ${!isShown && Object.keys(known).length > 0 && html`<p class="problem" role="status">It is hidden, so what is changed below changes nothing.</p>`}
      <p class="note">${isShown || !hidden ? "Empty fields leave what the server has." : html`It is hidden: <${LongText} value=${hidden} isSentence />`}</p>
      <label class="field wide-field">name
        <input value=${known.name ?? ""} placeholder=${plain(shown ?? tool.name, 60)} spellcheck=${false} autocomplete="off" aria-invalid=${collision ? "true" : undefined} onInput=${this.set("name")} />
      </label>
      ${collision && html`<p class="problem" role="status"><${LongText} value=${collision} isSentence /></p>`}
      ${known.name && !/^[\w-]{1,64}$/.test(known.name) && html`<p class="problem" role="status">Many models refuse this name: they take at most 64 ASCII letters, digits, <code>_</code> and <code>-</code>.</p>`}
      <label class="field wide-field">description
        <textarea class="text" rows="3" value=${known.description ?? ""} placeholder=${plain(original?.description ?? "", 300)} onInput=${this.set("description")}></textarea>
      </label>
      ${original && html`<${Arguments} ...${{ original, known, panel: this }} />`}<//>`;
  }
}

function Arguments({ original, known, panel }) {
  const all = argumentsOf(original.inputSchema);
  if (all.length === 0) return html`<p class="note">It declares no arguments.</p>`;
  return html`<h3>Arguments</h3>
    <div class="draft-arguments">${all.map((argument) => html`<${Argument} key=${argument.name} ...${{ argument, known, panel }} />`)}</div>`;
}

function Argument({ argument, known, panel }) {
  const { name, at, isRequired } = argument;
  const all = known.arguments ?? {};
  const one = (Object.hasOwn(all, name) && all[name]) || {};
  const problem = panel.state.typed.get(name)?.problem;
  const id = `fixed-${at}`;
  const text = (member) => (event) => panel.setArgument(argument, { [member]: event.target.value || undefined });
  return html`<fieldset class="draft-argument">
    <legend><${Name} value=${name} limit=${60} />${isRequired && " (required)"}</legend>
    <label class="field">fixed to
      <${ArgumentInput} ...${{ argument, none: "not fixed", described: describedBy(id, problem) }}
        text=${panel.fixedText(argument, one)} set=${(_, text) => panel.fix(argument, text)} />
    </label>
    <label class="field">name
      <input value=${one.name ?? ""} placeholder=${plain(name, 60)} spellcheck=${false} autocomplete="off" onInput=${text("name")} />
    </label>
    <${CheckBox} checked=${one.hidden === true} onChange=${(event) => panel.setArgument(argument, { hidden: event.target.checked || undefined })}>hidden<//>
    <${Wrong} id=${id} problem=${problem} /></fieldset>`;
}
