// A form made of the JSON schema of a tool's arguments.

import { Component, html } from "./dom.js";
import { plural } from "./format.js";
import { CheckBox } from "./parts.js";
import { LongText, Name, plain } from "./text.js";

/** `$ref` that lead to each other are followed no further. */
const MOST_REFERENCES = 16;

/** How deep objects in objects have fields of their own, and how many such fields there are at most. */
const DEEPEST = 3;
const MOST_MEMBERS = 200;

/**
 * The arguments of a schema: `{name, at, kind, schema, choices, isRequired, item, members}` each, those that are required first.
 * `kind` is `text`, `number`, `integer`, `boolean`, `choice`, `list` of `item`s, or `json` for all that has no field of its own.
 * `members` are the arguments of an object; `at` is the place of an argument in the schema.
 */
export function argumentsOf(schema, root = schema, within = [], budget = { members: MOST_MEMBERS }) {
  const { required, properties } = isObject(schema) ? schema : {};
  const all = Object.entries(isObject(properties) ? properties : {}).map(([name, property], index) => {
    const schema = resolved(property, root);
    const choices = "const" in schema ? [schema.const] : schema.enum;
    const place = [...within, index];
    const kind = kindOf(schema, choices);
    const item = kind === "json" ? itemOf(schema, root) : null;
    const size = isObject(schema.properties) ? Object.keys(schema.properties).length : 0;
    const isObjectOfFields = kind === "json" && (schema.type ?? "object") === "object";
    const hasMembers = isObjectOfFields && place.length <= DEEPEST && size <= budget.members;
    if (hasMembers) budget.members -= size;
    const members = hasMembers ? argumentsOf(schema, root, place, budget) : [];
    const isRequired = Array.isArray(required) && required.includes(name);
    return { name, at: place.join("-"), schema, isRequired, choices, kind: item ? "list" : kind, item, members };
  });
  return [...all.filter((it) => it.isRequired), ...all.filter((it) => !it.isRequired)];
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

function kindOf({ type }, choices) {
  if (Array.isArray(choices) && choices.length > 0) return "choice";
  return { string: "text", number: "number", integer: "integer", boolean: "boolean" }[type] ?? "json";
}

/** What a line of a list is; nothing if it takes more than a line. */
function itemOf({ type, items }, root) {
  const schema = resolved(items, root);
  const kind = kindOf(schema);
  return type === "array" && ["text", "number", "integer"].includes(kind) ? { kind, schema } : null;
}

/** A schema without references, and without `null` as a second type: an argument that is `null` can be left out. */
function resolved(property, root) {
  let schema = isObject(property) ? property : {};
  for (let followed = 0; followed < MOST_REFERENCES; followed++) {
    const one = onlyOne(schema.anyOf) ?? onlyOne(schema.oneOf) ?? onlyOne(schema.allOf) ?? target(schema.$ref, root);
    if (!one) break;
    const { anyOf, oneOf, allOf, $ref, ...others } = schema;
    schema = { ...one, ...others };
  }
  const types = Array.isArray(schema.type) ? schema.type.filter((it) => it !== "null") : [];
  return types.length === 1 ? { ...schema, type: types[0] } : schema;
}

/** The only schema of a list that is not about `null`. */
function onlyOne(schemas) {
  const others = Array.isArray(schemas) ? schemas.filter((it) => isObject(it) && it.type !== "null") : [];
  return others.length === 1 ? others[0] : null;
}

/** What a reference of the same document leads to. */
function target(reference, root) {
  if (typeof reference !== "string" || !reference.startsWith("#/")) return null;
  const keys = reference.slice(2).split("/").map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
  const found = keys.reduce((at, key) => (isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined), root);
  return isObject(found) ? found : null;
}

/** The value that a text means for an argument. Fails with what to write instead. */
export function readValue({ kind, schema, item }, text) {
  if (kind === "text") return text;
  if (kind === "number" || kind === "integer") return readNumber(kind, text);
  if (kind === "list" && !text.trimStart().startsWith("[")) {
    return text.split("\n").filter((line) => line.trim()).map((line) => readValue(item, line));
  }
  if (kind !== "json" && kind !== "list") return JSON.parse(text);
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`This is not JSON: ${error.message}. ${EXAMPLES[schema.type] ?? "A text needs quotes."}`);
  }
  if (schema.type === "array" && !Array.isArray(value)) throw new Error(`This is not a list. ${EXAMPLES.array}`);
  if (schema.type === "object" && !isObject(value)) throw new Error(`This is not an object. ${EXAMPLES.object}`);
  return value;
}

const EXAMPLES = { array: 'Write a list such as ["a", "b"].', object: 'Write an object such as {"a": 1}.' };

function readNumber(kind, text) {
  const number = Number(text);
  if (!Number.isFinite(number)) throw new Error(`“${plain(text, 40)}” is not a number.`);
  if (kind === "integer" && !Number.isInteger(number)) throw new Error(`“${plain(text, 40)}” is not a whole number.`);
  if (Math.abs(number) > Number.MAX_SAFE_INTEGER) throw new Error("This is more than a browser can send exactly.");
  return number;
}

/**
 * Reads the texts of a form, by the places of arguments: `{value, problems}`. An argument without a text is left out. The
 * text of `AS_JSON`, if there is one, is all arguments.
 */
export function readArguments(schema, texts) {
  const problems = new Map();
  if (texts.has(AS_JSON)) {
    try {
      return { value: readValue({ kind: "json", schema: { type: "object" } }, texts.get(AS_JSON)), problems };
    } catch (error) {
      return { problems: problems.set(AS_JSON, error.message) };
    }
  }
  return { value: readMembers(argumentsOf(schema), texts, problems), problems };
}

function readMembers(members, texts, problems) {
  const given = members.map((it) => [it.name, readArgument(it, texts, problems)]);
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

/** The value of an argument; `undefined` without one. What is wrong with it is added to `problems`. */
function readArgument(argument, texts, problems) {
  const { at, isRequired, members } = argument;
  if (!isRequired && !hasText(argument, texts)) return undefined;
  if (members.length > 0) return readMembers(members, texts, problems);
  const text = texts.get(at) ?? "";
  try {
    if (text === "") throw new Error("This argument is required.");
    return readValue(argument, text);
  } catch (error) {
    problems.set(at, error.message);
    return undefined;
  }
}

/** Whether something is typed for an argument, or for one of its members. */
const hasText = ({ at, members }, texts) => (members.length > 0 ? members.some((it) => hasText(it, texts)) : !!texts.get(at));

/** The key of the text that is all arguments as JSON. No argument has it, since places are strings. */
export const AS_JSON = Symbol("all arguments as JSON");

/** The fields of a schema. `texts` and `problems` are maps by the places of arguments; `changed` gets the next texts. */
export class SchemaForm extends Component {
  set = (key, text) => this.props.changed(new Map(this.props.texts).set(key, text));

  /** Between fields and JSON, with what was typed so far. */
  toggle = () => {
    const { schema, texts, changed } = this.props;
    const next = new Map(texts);
    if (!next.delete(AS_JSON)) next.set(AS_JSON, JSON.stringify(readArguments(schema, texts).value, null, 2));
    changed(next);
  };

  render({ schema, texts, problems }) {
    const all = argumentsOf(schema);
    const isJson = texts.has(AS_JSON);
    const field = (argument) => html`<${ArgumentField} key=${argument.at} ...${{ argument, texts, problems, set: this.set }} />`;
    const { true: required = [], false: optional = [] } = Object.groupBy(all, (it) => it.isRequired);
    const folded = optional.length > 8 && html`<details open=${optional.some((it) => hasProblem(it, problems))}>
      <summary>${plural(optional.length, "argument")} that can be left out</summary>
      <div class="fields">${optional.map(field)}</div></details>`;
    const fields = html`<div class="fields">${(folded ? required : all).map(field)}</div>${folded}`;
    return html`
      ${isJson && html`<${JsonField} text=${texts.get(AS_JSON)} problem=${problems.get(AS_JSON)} changed=${(text) => this.set(AS_JSON, text)}>arguments, as JSON<//>`}
      ${!isJson && (all.length > 0 ? fields : html`<p class="note">This tool declares no arguments.</p>`)}
      <${CheckBox} checked=${isJson} onChange=${this.toggle}>write the arguments as JSON<//>
    `;
  }
}

/** What is wrong with a field, which names it as its description. */
export const Wrong = ({ id, problem }) => problem && html`<span class="wrong" id=${id}>${problem}</span>`;

export const describedBy = (id, problem) => ({ "aria-invalid": problem ? "true" : undefined, "aria-describedby": problem ? id : undefined });

/** A field for JSON, with what it is for. */
export const JsonField = ({ text, problem, changed, children }) => html`<label class="field json"><span>${children}</span>
  <textarea name="arguments" rows="10" value=${text} spellcheck=${false} ...${describedBy("wrong-json", problem)}
    onInput=${(event) => changed(event.target.value)}></textarea>
  <${Wrong} id="wrong-json" problem=${problem} /></label>`;

const hasProblem = ({ at, members }, problems) => problems.has(at) || members.some((it) => hasProblem(it, problems));

/** The field of an argument; of an object, those of its members. */
function ArgumentField({ argument, texts, problems, set }) {
  const { name, at, schema, isRequired, members } = argument;
  const id = `wrong-${at}`;
  const title = html`<${Name} value=${name} limit=${60} />${isRequired && " (required)"}`;
  const note = typeof schema.description === "string" && html`<span class="note"><${LongText} value=${schema.description} limit=${120} /></span>`;
  if (members.length > 0) {
    const fields = members.map((member) => html`<${ArgumentField} key=${member.at} ...${{ argument: member, texts, problems, set }} />`);
    return html`<fieldset class="members"><legend>${title}</legend>${note}<div class="fields">${fields}</div></fieldset>`;
  }
  return html`<div class="argument">
    <label class="field"><span>${title}</span>
      <${ArgumentInput} ...${{ argument, text: texts.get(at) ?? "", set, described: describedBy(id, problems.get(at)) }} />
    </label>
    <${Wrong} id=${id} problem=${problems.get(at)} />
    ${note}</div>`;
}

const KINDS = { number: "a number", integer: "a whole number", text: "", list: "one a line", json: "JSON" };

/** The field of an argument. `none` says what it means to choose nothing. */
export function ArgumentInput({ argument: { at, kind, schema, choices, isRequired }, text, set, described, none }) {
  const typed = (event) => set(at, event.target.value);
  const options = kind === "boolean" ? [true, false] : kind === "choice" ? choices : null;
  if (options) {
    const nothing = none ?? ("default" in schema ? `default: ${shown(schema.default)}` : isRequired ? "choose one" : "left out");
    return html`<select ...${described} onChange=${typed}>
      <option value="">${nothing}</option>
      ${options.map((it) => html`<option value=${JSON.stringify(it)} selected=${JSON.stringify(it) === text}>${shown(it)}</option>`)}
    </select>`;
  }
  const example = kind === "list" ? KINDS.list : EXAMPLES[schema.type];
  const hint = none ? (example ?? none) : "default" in schema ? `default: ${shown(schema.default)}` : (example ?? KINDS[kind]);
  const common = { value: text, placeholder: hint, spellcheck: false, autocomplete: "off", onInput: typed, ...described };
  if (kind === "json" || kind === "list") return html`<textarea rows="2" ...${common}></textarea>`;
  if (kind === "text") return html`<textarea class="text" rows="1" ...${common}></textarea>`;
  return html`<input inputmode="decimal" ...${common} />`;
}

/** A value in one line of an attribute. */
const shown = (value) => plain(typeof value === "string" ? value : JSON.stringify(value), 40);
