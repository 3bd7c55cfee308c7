// The servers behind the gateway whose page is driven: two ordinary ones, one with hostile names, and one with 2,000 tools.

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
  author: {
    type: "object",
    description: "Only commits of this person.",
    properties: {
      name: { type: "string" },
      contact: { type: "object", properties: { mail: { type: "string" }, phones: { type: "array", items: { type: "integer" } } }, required: ["mail"] },
    },
  },
  trailers: { type: "array", items: { type: "object" } },
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
  annotations: { readOnlyHint: !!readOnlyHint, destructiveHint: name.startsWith("delete_") || name === "write_file" },
  ...(name === "__proto__" && { constructor: "a member that each object inherits", toString: { a: 1 } }),
});

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

/** What the status has of these calls: those that failed or were refused, just now. */
export const failuresOf = (calls) =>
  calls.filter(({ outcome }) => ["error", "tool_error", "denied"].includes(outcome)).map(({ id, error, ...call }) => ({
    ...call, error: error?.split("\n")[0], count: 1, at: Math.floor(Date.now() / 1000), isAnswered: !/ is down/.test(error),
  }));

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

const MANY = Array.from({ length: 2_000 }, (_, at) => [`tool_${String(at).padStart(4, "0")}`, `Does the work number ${at}. It is one of very many.`, at % 2 === 0]);

const SERVERS = { git: GIT, files: FILES, hostile: HOSTILE, many: MANY };

/** The definitions of the tools of one server. */
export function toolsOf(server) {
  return SERVERS[server].map((tool) => definition(tool, tool[0].slice(0, 40)));
}
