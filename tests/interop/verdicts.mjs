// Judges calls of every recorded tool with the package `ajv`, whose verdicts must be those of Vary.
//
// verdicts.py does the same with `jsonschema`. `cargo run -p mcp-vary-view --example verdicts` prints the calls.

import { readFileSync } from "node:fs";

import { Ajv } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";

import { told } from "./sdks.mjs";

const { calls } = JSON.parse(process.argv[2]);

/** Like Vary, without formats; `strict` would refuse unknown keywords. */
const options = { strict: false, validateFormats: false, logger: false, allErrors: true, verbose: true };

function compiled(schema) {
  const is7 = /draft-07/.test(schema.$schema ?? "");
  const { $schema, ...rest } = schema;
  return new (is7 ? Ajv : Ajv2020)(options).compile(is7 ? rest : schema);
}

/** The arguments without each `null` of a property that the schema rejects: Vary takes them for left out. */
function meant(accepts, given) {
  const copy = structuredClone(given);
  accepts(copy);
  for (const { data, instancePath } of [...(accepts.errors ?? [])]) {
    const path = instancePath.split("/").slice(1).map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
    const name = path.pop();
    const parent = path.reduce((value, key) => value?.[key], copy);
    if (data === null && name !== undefined && parent && !Array.isArray(parent)) delete parent[name];
  }
  return copy;
}

/** The calls that Vary judges in another way, without those that only Vary refuses: with arguments that the schema does
 * not name. */
function different({ schema, calls }) {
  const accepts = compiled(schema);
  return calls
    .map((call) => ({ ...call, theirs: accepts(call.arguments) || (call.accepted && accepts(meant(accepts, call.arguments))) }))
    .filter(({ theirs, accepted, only_names }) => theirs !== accepted && !(theirs && only_names))
    .map(({ theirs, errors, ...call }) => {
      const ours = errors.length > 0 ? errors.join("; ") : "accepted";
      return `${JSON.stringify(call.arguments)}: ${theirs}, and Vary: ${ours}`;
    });
}

for (const line of readFileSync(calls, "utf8").trim().split("\n")) {
  const tool = JSON.parse(line);
  await told(tool.tool, async () => {
    if (tool.unchecked) throw new Error(tool.unchecked);
    const found = different(tool);
    if (found.length > 0) {
      throw new Error(`${found.length} of ${tool.calls.length} differ; the first: ${found[0].slice(0, 600)}`);
    }
  });
}
