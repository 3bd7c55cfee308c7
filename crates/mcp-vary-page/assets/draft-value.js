// The entry of a variant in the configuration, and changes to it. Each function returns another value and leaves its own.

/** What is written for a tool: its own name, unless several servers list it. Then it is the name with all variants off. */
export function configName(catalog, { server, name }) {
  const named = catalog.tools.filter((it) => it.name === name);
  if (named.length < 2) return name;
  return named.find((it) => it.server === server)?.variants[catalog.baseline]?.name ?? name;
}

/** A name as a pattern that matches it alone. */
export const pattern = (name) => name.replace(/[*?{}[\]\\]/g, "\\$&");

/** With tools listed, or left out. */
export function showOrHide(value, names, isShown) {
  return isShown ? show(value, names) : hide(value, names);
}

/** The names and their patterns. */
const written = (names) => new Set([...names, ...names.map(pattern)]);

/** With tools left out. */
function hide(value, names) {
  const { include, exclude } = selection(value);
  if (exclude.includes(EVERYTHING)) return value;
  const hidden = written(names);
  if (!include) return select(value, undefined, [...exclude, ...names.map(pattern).filter((it) => !exclude.includes(it))]);
  // What was listed by its name alone needs no second rule.
  const listed = include.filter((it) => !hidden.has(it));
  const byName = written(include.filter((it) => hidden.has(it)));
  const others = names.map(pattern).filter((it) => !byName.has(it) && !exclude.includes(it));
  // An empty list is not valid: that nothing is listed has a rule of its own.
  if (listed.length === 0) return changed(value, { tools: NOTHING });
  return select(value, listed, [...exclude, ...others]);
}

/** With what leaves tools out by their names taken away, and what does not include them added. */
function show(value, names) {
  const { include, exclude } = selection(value);
  if (exclude.includes(EVERYTHING)) return select(value, names.map(pattern), []);
  const shown = written(names);
  const others = exclude.filter((it) => !shown.has(it));
  const wereHidden = written(exclude.filter((it) => shown.has(it)));
  const added = include ? names.map(pattern).filter((it) => !wereHidden.has(it) && !include.includes(it)) : [];
  return select(value, include && [...include, ...added], others);
}

const EVERYTHING = "*";

/** The `tools` of a variant that lists none. */
export const NOTHING = { exclude: [EVERYTHING] };

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
