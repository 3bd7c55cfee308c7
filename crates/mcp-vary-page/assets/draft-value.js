// The entry of a variant in the configuration, and changes to it. Each function returns another value and leaves its own.

/** The name of a tool in lists, with the prefix of its server if it has one; `undefined` if each variant renames or hides it. */
const listedName = ({ variants }) => Object.values(variants).find((it) => it && !it.renamed)?.name;

/** What clients call a tool, as far as variants do not rename it. */
export const clientName = (tool) => listedName(tool) ?? tool.name;

/** Whether another server lists a tool of the same name. */
const isShared = (catalog, { server, name }) => catalog.tools.some((it) => it.name === name && it.server !== server);

/** What overrides call a tool: its own name, unless that is shared. Then it is the name in lists. */
export const configName = (catalog, tool) => (isShared(catalog, tool) && listedName(tool)) || tool.name;

/** A name as a pattern that matches it alone. */
export const pattern = (name) => name.replace(/[*?{}[\]\\]/g, "\\$&");

/** The rule of a tool alone, by its name in lists, and `all` forms of it. */
export function rulesOf(catalog, tool) {
  const [listed, name] = [listedName(tool), configName(catalog, tool)];
  const ofServer = { server: pattern(tool.server), name: pattern(tool.name) };
  const include = listed === undefined ? ofServer : pattern(listed);
  return { include, all: [include, listed, name, pattern(name), ofServer] };
}

/** A test whether a rule is one of `rules`. */
const isIn = (rules, keys = new Set(rules.map(sorted))) => (rule) => keys.has(sorted(rule));

/** With the tools of these rules left out. */
export function hide(value, tools) {
  const { include, exclude } = selection(value);
  if (exclude.includes(EVERYTHING)) return value;
  const isKnown = isIn([...exclude, ...(include ?? [])]);
  // What was listed by its name alone needs no second rule.
  const others = tools.filter((it) => !it.all.some(isKnown)).map((it) => it.include);
  const isHidden = isIn(tools.flatMap((it) => it.all));
  const listed = include?.filter((it) => !isHidden(it));
  // An empty list is not valid: that nothing is listed has a rule of its own.
  if (listed?.length === 0) return changed(value, { tools: NOTHING });
  return select(value, listed, [...exclude, ...others]);
}

/** With what leaves tools out by their names taken away, and what does not include them added. */
export function show(value, tools) {
  const { include, exclude } = selection(value);
  if (exclude.includes(EVERYTHING)) return select(value, tools.map((it) => it.include), []);
  const isShown = isIn(tools.flatMap((it) => it.all));
  const [isExcluded, isIncluded] = [isIn(exclude), isIn(include ?? [])];
  const added = tools.filter((it) => !it.all.some(isExcluded)).map((it) => it.include).filter((it) => !isIncluded(it));
  return select(value, include && [...include, ...added], exclude.filter((it) => !isShown(it)));
}

const EVERYTHING = "*";
export const NOTHING = { exclude: [EVERYTHING] };

/** The rules of `tools`, which can be written as a list. `include` is absent if everything is included. */
const selection = ({ tools }) => (Array.isArray(tools) ? { include: tools, exclude: [] } : { exclude: [], ...tools });

const select = (value, include, exclude) => changed(value, { tools: exclude.length > 0 ? { include, exclude } : include });

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

export function setCompact(id, value, isOn) {
  const inherited = changed(value, { descriptions: undefined, schemas: undefined });
  if (isCompact(id, inherited) === isOn) return inherited;
  return { ...inherited, ...(isOn ? { descriptions: "first-sentence", schemas: "compact" } : { descriptions: "full", schemas: "full" }) };
}
