// What a gateway would answer under `/api/`, without one: an ordinary gateway, and one with hostile names and 2,000 tools.

const GIT = [
  ["git_status", "Shows the working tree status. Use it before a commit, to see what would be in it.", true],
  ["git_log", "Shows the commit logs, newest first. The start and end may be dates or relative times such as `2 weeks ago`.", true],
  ["git_diff", "Shows differences between branches or commits, as a unified diff.", true],
  ["git_commit", "Records changes to the repository. The message must not be empty.", false],
  ["git_branch", "Lists the branches of the repository.", true],
  ["delete_branch", "Deletes a branch. Commits that no other branch has are lost.", false],
];
const FILES = [
  ["read_file", "Reads the complete contents of a file as text. Handles various text encodings.", true],
  ["write_file", "Creates a new file or completely overwrites an existing one. Use with caution.", false],
  ["list_directory", "Lists all files and directories in a path, with sizes.", true],
  ["delete_file", "Deletes a file. There is no way to restore it.", false],
];

const HOSTILE = [
  ["<img src=x onerror=alert(1)>", "<script>alert(1)</script> & <b>bold</b>"],
  ["\u202Egnp.eteled", "Right to left: \u05D0\u05D1\u05D2 \u202E reversed \u202C end"],
  ["zero\u200Bwidth\u200D\uFEFF\u00AD", "tags \u{E0041}\u{E0042} and selectors \u{E0101}"],
  ["control\u0000\u0007\u001B[31m", "line\nbreak\r\n\ttab \u0085 \u2028 end"],
  ["long-" + "n".repeat(9_995), "long description " + "word ".repeat(4_000)],
  ["__proto__", "a name that objects have"],
  ["شجرة", "أداة باسم عربي"],
];

/** Arguments of each kind that a form has. */
const OF_GIT_LOG = {
  order: { type: "string", enum: ["date", "topology"], default: "date", description: "What the commits are sorted by." },
  merges: { type: "boolean", description: "Whether merges are among them." },
  similarity: { anyOf: [{ type: "number" }, { type: "null" }], default: null },
  paths: { $ref: "#/$defs/Paths", description: "Only commits that change one of these." },
  author: { type: "object", properties: { name: { type: "string" } } },
};

const definition = ([name, description, readOnlyHint], title) => ({
  name,
  title,
  description,
  inputSchema: {
    type: "object",
    properties: {
      repo_path: { type: "string", description: "The path of the repository, absolute or relative to the root that the server was started with." },
      max_count: { type: "integer", default: 10, title: "Max Count" },
      ...(name === "git_log" && OF_GIT_LOG),
    },
    required: ["repo_path"],
    ...(name === "git_log" && { $defs: { Paths: { type: "array", items: { type: "string" } } } }),
  },
  annotations: { readOnlyHint: !!readOnlyHint, destructiveHint: name.startsWith("delete_") },
  ...(name === "__proto__" && { constructor: "a member that each object inherits", toString: { a: 1 } }),
});

const tokens = (value) => Math.ceil(JSON.stringify(value).length / 4);

/** What each variant makes of a definition; `null` where it hides the tool. */
const VARIANTS = {
  standard: (it) => it,
  compact: (it) => ({
    name: it.name.replace(/^git_/, ""),
    description: it.description.split(/(?<=\.)\s/)[0],
    inputSchema: { type: "object", properties: { max_count: { type: "integer" } } },
  }),
  "read-only": (it) => (it.annotations.readOnlyHint ? it : null),
  directory: (it) => ({ name: it.name, description: it.description.slice(0, 24), inputSchema: { type: "object" } }),
  few: (it) => drafted(it, "few", VALUES.few),
};

const entry = (original, shown) => {
  if (!shown) return null;
  const members = Object.keys({ ...original, ...shown });
  const changed = members.filter((it) => JSON.stringify(original[it]) !== JSON.stringify(shown[it]));
  const result = { name: shown.name, tokens: tokens(shown) };
  if (shown.name !== original.name) result.renamed = true;
  if (changed.length > 0) result.changed = changed;
  if (changed.includes("inputSchema") && !shown.inputSchema.properties?.repo_path && shown.inputSchema.properties) result.fixed = ["repo_path"];
  return result;
};

const COMMITS = [
  { id: "4f0d515", author: "Ada", date: "2026-11-20", subject: "Settle fifty subscriptions in a row" },
  { id: "b737b91", author: "Grace", date: "2026-11-19", subject: "Lose no check when another program writes to the log" },
  { id: "61157a9", author: "Ada", date: "2026-11-19", subject: "A class for each client\u202E, even <b>hostile</b> ones" },
];

/** What a server answers to a call: with a value for `git_log`, otherwise with the name and arguments that arrived. */
export function resultOf(name, given) {
  if (name !== "git_log") return { content: [{ type: "text", text: `${name} ${JSON.stringify(given)}` }], isError: name === "git_commit" };
  const value = { arguments: given, commits: COMMITS };
  return { content: [{ type: "text", text: JSON.stringify(value, null, 2) }], structuredContent: value };
}

/** What Vary makes of the result of a server for a client that declares features. */
function shaped(result, features) {
  if (!result.structuredContent) return result;
  if (features.includes("format=json")) return { content: [], structuredContent: result.structuredContent };
  if (!features.includes("format=markdown")) return result;
  const rows = result.structuredContent.commits.map(({ id, author, subject }) => `| ${id} | ${author} | ${subject} |`);
  return { content: [{ type: "text", text: ["| id | author | subject |", "|---|---|---|", ...rows].join("\n") }] };
}

/** A question that a gateway does not answer, with the status of its refusal. */
export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** What stands in the configuration under the name of each variant. */
const VALUES = {
  standard: {},
  compact: { from: "compact", overrides: { tools: { git_log: { name: "log", arguments: { repo_path: { fixed: "/srv/site" } } } } } },
  "read-only": { from: "read-only" },
  directory: { from: "directory" },
  few: { tools: { exclude: ["tool_*", "long-*"] }, overrides: { tools: { git_log: { name: "log" } } } },
};

/** What a variant would make of a definition if this stood in the configuration; `null` where it hides the tool. */
function drafted(definition, id, value) {
  const { name, description, arguments: given = {} } = value.overrides?.tools?.[definition.name] ?? {};
  const matches = (pattern) => (pattern.endsWith("*") ? definition.name.startsWith(pattern.slice(0, -1)) : definition.name === pattern);
  if (value.tools?.exclude?.some(matches)) return null;
  const isCompact = (value.schemas ?? ((value.from ?? id) === "compact" ? "compact" : "")) === "compact";
  const base = (isCompact ? VARIANTS.compact : ["read-only", "directory"].includes(id) ? VARIANTS[id] : VARIANTS.standard)(definition);
  if (!base) return null;
  const properties = Object.entries(base.inputSchema.properties ?? {}).filter(([it]) => given[it]?.fixed === undefined && !given[it]?.hidden);
  return { ...base, name: name ?? base.name, description: description ?? base.description, inputSchema: { ...base.inputSchema, properties: Object.fromEntries(properties) } };
}

const KEYS = ["from", "description", "tools", "descriptions", "schemas", "overrides", "features", "hints", "result"];

/** A value as lines of YAML, well enough for a fixture. */
function yaml(value, indent) {
  if (typeof value !== "object" || value === null) return ` ${JSON.stringify(value)}\n`;
  if (Array.isArray(value) || Object.keys(value).length === 0) return ` ${JSON.stringify(value)}\n`;
  return `\n${Object.entries(value).map(([key, it]) => `${" ".repeat(indent)}${key}:${yaml(it, indent + 2)}`).join("")}`;
}

/** The lines that only one of two texts has. */
function lineDiff(before, after) {
  const [a, b] = [before.split("\n"), after.split("\n")];
  const all = [...a.filter((it) => !b.includes(it)).map((it) => `-${it}`), ...b.filter((it) => !a.includes(it)).map((it) => `+${it}`)];
  return all.length > 0 ? ["--- vary.yaml", "+++ draft", "@@ -1 +1 @@", ...all, ""].join("\n") : "";
}

class Gateway {
  constructor(servers) {
    this.servers = servers;
    this.definitions = servers.flatMap(([server, tools]) => tools.map((tool) => [server, definition(tool, tool[0].slice(0, 40))]));
  }

  catalog() {
    const tools = this.definitions.map(([server, original]) => ({
      server,
      name: original.name,
      tokens: tokens(original),
      annotations: original.annotations,
      variants: Object.fromEntries(Object.entries(VARIANTS).map(([id, of]) => [id, entry(original, of(original))])),
    }));
    const own = [{ name: "describe_tools", variants: { directory: { tokens: 62 } } }];
    const variants = Object.keys(VARIANTS).map((id) => this.variant(id, tools, own));
    return { encoding: "o200k_base", servers: this.servers.map(([name]) => name), baseline: "standard", variants, tools, own };
  }

  variant(id, tools, own) {
    const byServer = {};
    const shown = tools.filter((it) => it.variants[id]);
    for (const tool of shown) byServer[tool.server] = (byServer[tool.server] ?? 0) + tool.variants[id].tokens;
    const ofVary = own.reduce((sum, it) => sum + (it.variants[id]?.tokens ?? 0), 0);
    const sum = Object.values(byServer).reduce((a, b) => a + b, ofVary);
    const status = id === "directory" ? "experimental" : "stable";
    return { id, description: `The variant ${id}.`, status, hints: {}, deprecationInfo: null, tokens: sum, wholeTokens: sum + 100, byServer, tools: shown.length };
  }

  tool(server, name) {
    const found = this.definitions.find(([of, it]) => of === server && it.name === name);
    if (!found) return null;
    const variants = Object.entries(VARIANTS).map(([id, of]) => [id, of(found[1])]);
    return { server, name, original: found[1], variants: Object.fromEntries(variants.filter(([, it]) => it)) };
  }

  explain({ initialize, headers }) {
    const named = headers?.["MCP-Server-Variant"];
    const client = initialize?.clientInfo ?? initialize?.params?.clientInfo ?? {};
    const variant = named ?? (client.name === "claude-code" ? "compact" : "standard");
    const steps = [
      { step: "address", decided: false, detail: "the address names no variant" },
      { step: "header", decided: !!named, detail: named ? `MCP-Server-Variant names \`${named}\`` : "no header MCP-Server-Variant" },
      { step: "rule", decided: !named && client.name === "claude-code", detail: `clients[0]: name \`claude-code\`; the client is ${client.name ?? "unnamed"}` },
      { step: "ranking", decided: !named && client.name !== "claude-code", detail: "without hints, the order of the file" },
    ];
    const tools = this.definitions.map(([server, it]) => ({ server, name: it.name, ...this.fate(it, variant) }));
    return { variant, reason: steps.find((it) => it.decided).step, steps, client, features: ["agent"], ranking: [{ id: variant, points: 10, why: [`contextSize=${variant}: +10`] }], rules: [{ rule: "access.rules[1]" }], tools };
  }

  call({ server, tool, arguments: given, clients, confirmed }) {
    const [, original] = this.definitions.find(([of, it]) => of === server && it.name === tool) ?? [];
    if (!original) throw new Refusal(404, `no server lists \`${tool}\``);
    if (clients.length > 8) throw new Refusal(400, "`clients` has more than 8 entries");
    if (!original.annotations.readOnlyHint && !confirmed) throw new Refusal(409, `\`${tool}\` does not declare \`readOnlyHint: true\`; confirm the call`);
    return { clients: clients.map((client) => this.callAs(client, original, given)) };
  }

  entry(id) {
    if (!Object.hasOwn(VALUES, id)) throw new Refusal(404, `there is no variant \`${id}\``);
    return { id, value: VALUES[id], yaml: `${id}:${yaml(VALUES[id], 2)}` };
  }

  draft({ id, value }) {
    const unknown = Object.keys(value).find((key) => !KEYS.includes(key));
    if (unknown) throw new Refusal(400, `\`variants.${id}.${unknown}\` is not a known key; did you mean \`tools\`?`);
    for (const [name, change] of Object.entries(value.overrides?.tools ?? {})) {
      const other = Object.keys(change).find((key) => !["name", "title", "description", "annotations", "arguments"].includes(key));
      if (other) throw new Refusal(400, `\`variants.${id}.overrides.tools.${name}.${other}\` is not a known key; did you mean \`name\`?`);
    }
    const listed = this.definitions.map(([server, it]) => {
      const shown = drafted(it, id, value);
      return { server, name: it.name, shown: shown?.name ?? null, tokens: shown ? tokens(shown) : 0 };
    });
    const before = this.variant(id, this.catalog().tools, []).tokens;
    const text = `${id}:${yaml(value, 2)}`;
    return { id, tools: listed, tokens: listed.reduce((sum, it) => sum + it.tokens, 0), before, yaml: text, diff: lineDiff(this.entry(id).yaml, text) };
  }

  callAs(client, original, given) {
    const variant = client.path?.replace("/mcp/v/", "") ?? this.explain(client).variant;
    const { shown, hidden } = this.fate(original, variant);
    if (hidden) return { name: client.name, variant, tool: null, error: `hidden by ${hidden.rule}: ${hidden.detail}`, bytes: 0, tokens: 0, ms: 0 };
    const features = client.initialize?.capabilities?.extensions?.["io.modelcontextprotocol/content-negotiation"]?.features ?? [];
    const { repo_path, ...others } = given;
    const result = shaped(resultOf(original.name, variant === "compact" ? { repo_path: "/srv/site", ...others } : given), features);
    return { name: client.name, variant, tool: shown, result, bytes: JSON.stringify(result).length, tokens: tokens(result), ms: 12.5 };
  }

  fate(definition, variant) {
    if (definition.name.startsWith("delete_")) return { shown: null, hidden: [{ by: "access", rule: "access.rules[1]", detail: "hide `delete_*` for everybody but the group `ops`" }] };
    const shown = VARIANTS[variant]?.(definition);
    if (shown) return { shown: shown.name, hidden: [] };
    return { shown: null, hidden: [{ by: "variant", rule: variant, detail: `the variant \`${variant}\` leaves it out: it is not readOnlyHint` }] };
  }

  status() {
    const up = this.servers.map(([name, tools], at) => ({ name, state: "up", since: 4000 + at, revisions: ["2025-11-25"], tools: tools.length, connections: { open: 1, limit: 8, evicted: 0 }, calls: { count: 120 + at, errors: at, cancelled: 0, p50: 12.3, p95: 80.1 } }));
    const down = { name: "tickets", state: "down", since: 95, reason: "cannot connect to tickets.example.com:443: connection refused", nextAttempt: 12, revisions: [], connections: { open: 0, limit: 8, evicted: 0 }, calls: { count: 3, errors: 3, cancelled: 0 } };
    const now = Math.floor(Date.now() / 1000);
    const clients = [
      { client: { name: "claude-code", version: "2.1.4" }, variant: "compact", reason: "rule", requests: 240, calls: 201, last: now - 2 },
      { client: { name: "cursor", version: "1.9" }, variant: "standard", reason: "ranking", requests: 12, calls: 3, last: now - 64 },
      { client: { name: "ci-agent", version: "0.3" }, variant: "read-only", reason: "header", requests: 7, calls: 4, last: now - 600 },
      { client: { name: "", version: "" }, variant: "standard", reason: "ranking", requests: 1, calls: 0, last: now - 900 },
    ];
    return { version: "0.1.0", uptime: 4120, servers: [...up, down], variants: [], clients, calls: true, deprecatedUse: [], sessions: 3, streams: 2, listeners: 0, subscriptions: 1, pendingServerRequests: 0, suspendedCalls: 0, proxiedTasks: 0, dedicatedConnections: 0, memory: 18234, resultStore: 0, tasks: 31, rankings: 4, counters: { invalid_requests: 2 } };
  }

  experiments() {
    return experiments();
  }

  rules() {
    return { rules: [{ rule: "clients[0]", text: "{name: claude-code, variant: compact}" }, { rule: "access.rules[1]", text: '{when: {groups: "*"}, deny: ["delete_*"]}' }] };
  }

  review() {
    return {
      deprecated: [{ client: { name: "old-agent", version: "0.9" }, variant: "old", replacement: "compact", removalDate: "2027-01-01", daysLeft: 28, requests: 41 }],
      unmatched: [{ variant: "compact", problem: "overrides.git_push: no tool matches `git_push`" }],
      collisions: [],
      denials: [{ rule: "access.rules[1]", count: 3 }],
      limits: [],
      counters: { unauthorized: 3 },
      failedResults: 2,
    };
  }

  event(id) {
    const [server, it] = this.definitions[id % Math.min(24, this.definitions.length)];
    const outcome = id % 17 === 0 ? "error" : id % 23 === 0 ? "denied" : "allowed";
    const serverMs = 4 + ((id * 7919) % 90) + 0.4;
    const isOfClaude = id % 3 !== 0;
    const target = isOfClaude ? it.name.replace(/^git_/, "") : it.name;
    return { id, at: Date.now() / 1000, method: "tools/call", target, server, upstreamName: it.name, variantRule: isOfClaude ? "clients[0]" : null, rule: outcome === "denied" ? "access[0]" : null, client: { name: isOfClaude ? "claude-code" : "cursor", version: "2.1.4" }, principal: null, variant: isOfClaude ? "compact" : "standard", reason: isOfClaude ? "rule" : "ranking", outcome, code: outcome === "denied" ? -32602 : 0, durationMs: serverMs + 0.3, serverMs, bytesIn: 180, bytesOut: 2400 };
  }
}

function experiments() {
  const around = (value, by) => ({ value, from: value - by, to: value + by });
  const comparison = (metric, control, arm, by) => ({ metric, variant: "compact", control: around(control, by), arm: around(arm, by), difference: around(arm - control, 1.4 * by), p: 0.0004, power: 0.86 });
  const comparisons = [comparison("failed", 0.115, 0.089, 0.012), comparison("duration", 31.5, 30.2, 2.1), comparison("calls", 4, 4.1, 0.3)];
  const arms = [
    { variant: "standard", clients: 412, planned: 405, calls: 1648 },
    { variant: "compact", clients: 398, planned: 405, calls: 1632 },
  ];
  const verdicts = ["compact: better than the control by `failed`."];
  return { experiments: [{ name: "short-descriptions", metric: "failed", effect: 0.05, anonymous: true, uneven: false, p: 0.62, arms, comparisons, verdicts, history: historyOf(240) }] };
}

/** The history of an experiment of two arms whose interval narrows until something is declared. */
export function historyOf(length) {
  const begin = Math.floor(Date.now() / 1000) - 600 * length;
  return Array.from({ length }, (_, at) => {
    const clients = 4 * (at + 1);
    const [value, half] = [-0.026 + 0.03 * Math.cos(at / 9) / (1 + at / 20), 0.6 / Math.sqrt(clients)];
    const difference = { value, from: value - half, to: value + half };
    const verdict = value + half < 0 ? "better" : "too-few";
    return { at: begin + 600 * at, arms: [{ clients, calls: 4 * clients, difference: null }, { clients, calls: 4 * clients, difference, verdict }] };
  });
}

const many = Array.from({ length: 2_000 }, (_, at) => [`tool_${String(at).padStart(4, "0")}`, `Does the work number ${at}. It is one of very many.`, at % 2 === 0]);

const servers = Object.entries({ git: GIT, files: FILES, hostile: HOSTILE, many });

export const FIXTURES = {
  small: new Gateway(servers.slice(0, 2)),
  all: new Gateway(servers),
};

/** The definitions of the tools of one server. */
export function toolsOf(server) {
  return FIXTURES.all.definitions.filter(([of]) => of === server).map(([, definition]) => definition);
}
