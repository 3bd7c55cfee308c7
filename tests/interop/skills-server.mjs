// A server on stdio, of both eras, with two skills (SEP-2640). Each has a folder with a file in JSON, whose digest is wrong as
// soon as somebody renders it.

import { createHash } from "node:crypto";
import { createInterface } from "node:readline";

const name = process.argv[2];
const SKILLS = "io.modelcontextprotocol/skills";
const capabilities = { tools: {}, resources: {}, extensions: { [SKILLS]: { directoryRead: true } } };
const serverInfo = { name: `skills-${name}`, version: "1.0.0" };

const files = new Map();
for (const skill of [`${name}-pdf`, `${name}-guide`]) {
  const description = `What ${name} knows of it.`;
  const root = `skill://${skill}`;
  files.set(`${root}/SKILL.md`, `---\nname: ${skill}\ndescription: ${description}\n---\n\nRead [data](data/table.json).\n`);
  files.set(`${root}/data/table.json`, `{"of": "${name}",   "value": 1.10}\n`);
}

function skill(uri) {
  const root = uri.slice(0, -"SKILL.md".length);
  const resources = [...files.keys()].filter((file) => file.startsWith(root)).map((file) => {
    const text = files.get(file);
    const digest = `sha256:${createHash("sha256").update(text).digest("hex")}`;
    return { uri: file, digest, size: Buffer.byteLength(text) };
  });
  const [, skillName, description] = files.get(uri).match(/name: (.*)\ndescription: (.*)\n/);
  return { uri, frontmatter: { name: skillName, description }, resources };
}

const skills = [...files.keys()].filter((uri) => uri.endsWith("/SKILL.md"));
const mimeType = (uri) => (uri.endsWith(".md") ? "text/markdown" : "application/json");

/** The children of a directory; none of a file. */
function children(directory) {
  const below = [...files.keys()].filter((uri) => uri.startsWith(`${directory}/`));
  const names = new Set(below.map((uri) => uri.slice(directory.length + 1).split("/")[0]));
  return [...names].map((child) => {
    const uri = `${directory}/${child}`;
    return { uri, name: child, mimeType: files.has(uri) ? mimeType(uri) : "inode/directory" };
  });
}

const described = (uri) => ({ uri, name: uri.split("/").at(-2), description: `What ${name} knows of it.`, mimeType: "text/markdown" });
const found = (items) => (items.length > 0 ? items : undefined);

const methods = {
  initialize: () => ({ protocolVersion: "2025-11-25", capabilities, serverInfo }),
  "server/discover": () => ({ supportedVersions: ["2026-07-28"], capabilities, serverInfo }),
  ping: () => ({}),
  "tools/list": () => ({ tools: [{ name: `tool-${name}`, inputSchema: { type: "object" } }] }),
  "resources/list": () => ({ resources: skills.map(described) }),
  "resources/templates/list": () => ({ resourceTemplates: [] }),
  // One skill on each page.
  "skills/list": ({ cursor = "0" }) => {
    const at = Number(cursor);
    return { skills: [skill(skills[at])], ...(at + 1 < skills.length && { nextCursor: `${at + 1}` }) };
  },
  "skills/get": ({ uri }) => skills.includes(uri) && { skill: skill(uri) },
  "resources/read": ({ uri }) => files.has(uri) && { contents: [{ uri, mimeType: mimeType(uri), text: files.get(uri) }] },
  "resources/directory/read": ({ uri }) => found(children(uri)) && { resources: children(uri) },
};

/** The response to a message; none to a notification. */
function respond({ id, method, params = {} }) {
  if (id === undefined) return undefined;
  const known = methods[method];
  if (!known) return { jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } };
  const result = known(params);
  if (!result) return { jsonrpc: "2.0", id, error: { code: -32602, message: "no such URI" } };
  const isModern = params._meta?.["io.modelcontextprotocol/protocolVersion"];
  const modern = isModern && { resultType: "complete", ttlMs: 0, cacheScope: "private" };
  return { jsonrpc: "2.0", id, result: { ...result, ...modern } };
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const response = respond(JSON.parse(line));
  if (response) console.log(JSON.stringify(response));
});
