// examples/configurations/README.md: its commands print what it says that they print, and no configuration has a mistake.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

import { told } from "./sdks.mjs";

const { vary, root, targets } = JSON.parse(process.argv[2]);
const page = readFileSync(join(root, "examples/configurations/README.md"), "utf8");
const env = { ...process.env, PATH: dirname(vary) + delimiter + process.env.PATH };

/** What a command printed; on one line of the page `...` stands for any lines. */
function prints(command, wanted) {
  const { stdout, stderr } = spawnSync("sh", ["-c", command], { cwd: root, env, encoding: "utf8" });
  const found = `${stdout}${stderr}`.trim().split("\n");
  if (!matches(found.map((line) => line.trimEnd()), wanted.split("\n"))) {
    throw new Error(`it prints\n${found.join("\n")}`);
  }
}

function matches(found, wanted) {
  if (wanted.length === 0) return found.length === 0;
  if (wanted[0] === "...") {
    const rests = Array.from({ length: found.length + 1 }, (_, at) => found.slice(at));
    return rests.some((rest) => matches(rest, wanted.slice(1)));
  }
  return found[0] === wanted[0] && matches(found.slice(1), wanted.slice(1));
}

/** `vary config check` finds nothing wrong. */
function checks(example, directory) {
  const file = join(root, "examples/configurations", `${example}.yaml`);
  const { status, stdout, stderr } = spawnSync(vary, ["config", "check", file], { cwd: directory, env, encoding: "utf8" });
  if (status !== 0) throw new Error(`${stdout}${stderr}`);
}

for (const [example, { directory }] of Object.entries(targets)) {
  await told(`${example} has no mistake`, async () => checks(example, directory));
}
const commands = [...page.matchAll(/```sh\n(vary [^\n]*)\n```\n+```text\n(.*?)\n```/gs)];
await told("the page has commands", async () => {
  if (commands.length < Object.keys(targets).length) throw new Error(`only ${commands.length}`);
});
for (const [, command, wanted] of commands) {
  await told(command, async () => prints(command, wanted));
}
