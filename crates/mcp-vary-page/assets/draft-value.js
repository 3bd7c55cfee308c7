// The entry of a variant in the configuration, and changes to it. Each function returns another value and leaves its own.

/** What is written for a tool: its own name, unless several servers list it. Then it is the name with all variants off. */
export function configName(catalog, { server, name }) {
  const named = catalog.tools.filter((it) => it.name === name);
  if (named.length < 2) return name;
  return named.find((it) => it.server === server)?.variants[catalog.baseline]?.name ?? name;
}

/** A name as a pattern that matches it alone. */
const pattern = (name) => name.replace(/[*?{}[\]\\]/g, "\\$&");

/** With a tool left out. */
export function hide(value, name) {
  const { include, exclude } = selection(value);
  const listed = include?.filter((it) => it !== name && it !== pattern(name));
  // What was listed by its name alone needs no second rule, but an empty list would show nothing of anything.
  if (include && listed.length < include.length && listed.length > 0) return select(value, listed, exclude);
  return select(value, include, [...exclude, pattern(name)]);
}

/** With what leaves a tool out by its name taken away. */
export function show(value, name) {
  const { include, exclude } = selection(value);
  const others = exclude.filter((it) => it !== name && it !== pattern(name));
  if (others.length < exclude.length || !include) return select(value, include, others);
  return select(value, [...include, pattern(name)], exclude);
}

/** The rules of `tools`, which can be written as a list. `include` is absent if everything is included. */
function selection({ tools }) {
  if (Array.isArray(tools)) return { include: tools, exclude: [] };
  return { include: tools?.include, exclude: tools?.exclude ?? [] };
}

function select(value, include, exclude) {
  if (exclude.length > 0) return changed(value, { tools: include ? { include, exclude } : { exclude } });
  return changed(value, { tools: include });
}

/** Whether two values are the same, in whatever order their members are. */
export const same = (a, b) => sorted(a) === sorted(b);

function sorted(value) {
  const isObject = (it) => typeof it === "object" && it !== null && !Array.isArray(it);
  return JSON.stringify(value, (_, it) => (isObject(it) ? Object.fromEntries(Object.entries(it).sort()) : it));
}

/** The override of a tool; empty without one. */
export function overrideOf(value, name) {
  const tools = value.overrides?.tools ?? {};
  return Object.hasOwn(tools, name) ? tools[name] : {};
}

/** With members of the override of a tool changed; those that are `undefined` are taken out. */
export function override(value, name, changes) {
  const tools = changed(value.overrides?.tools ?? {}, { [name]: orAbsent(changed(overrideOf(value, name), changes)) });
  return changed(value, { overrides: orAbsent(changed(value.overrides ?? {}, { tools: orAbsent(tools) })) });
}

/** With members of what an override makes of an argument changed. */
export function overrideArgument(value, name, argument, changes) {
  const known = overrideOf(value, name).arguments ?? {};
  const one = Object.hasOwn(known, argument) ? known[argument] : {};
  return override(value, name, { arguments: orAbsent(changed(known, { [argument]: orAbsent(changed(one, changes)) })) });
}

function changed(object, changes) {
  // Names of tools and arguments can be those that each object has, such as `__proto__`.
  const entries = new Map(Object.entries(object));
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) entries.delete(name);
    else entries.set(name, value);
  }
  return Object.fromEntries(entries);
}

const orAbsent = (object) => (Object.keys(object).length > 0 ? object : undefined);

/** Whether the variant shortens descriptions and schemas. One that names nothing to start from is the built-in one of its name. */
export function isCompact(id, value) {
  const starts = (value.from ?? id) === "compact";
  const schemas = value.schemas ?? (starts ? "compact" : "full");
  return schemas === "compact" && (value.descriptions ?? (starts ? "first-sentence" : "full")) === "first-sentence";
}

/** With `compact` switched on or off. */
export function setCompact(id, value, isOn) {
  const inherited = changed(value, { descriptions: undefined, schemas: undefined });
  if (isCompact(id, inherited) === isOn) return inherited;
  return { ...inherited, ...(isOn ? { descriptions: "first-sentence", schemas: "compact" } : { descriptions: "full", schemas: "full" }) };
}
