// README.md and the tutorial: their commands work as printed, one after the other, in an empty directory. Recorded lists
// play the servers that npx and uvx would download, and the program that was built stands for `cargo run --`.

import { spawn, spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { told } from "./sdks.mjs";

const { vary, replay, root } = JSON.parse(process.argv[2]);
const PAGES = ["README.md", "docs/tutorial/first-steps.md"];
const SERVERS = { uvx: "git", npx: "filesystem" };
/** What the tutorial shows to fail, and how. */
const REFUSED = {
  '"repo_path":"/"': "there is no argument `repo_path`",
  write_file: "Unknown tool: write_file",
};

/** An empty directory with the programs that the pages name. */
function place() {
  const home = mkdtempSync(join(tmpdir(), "vary-readme-"));
  const bin = join(home, "bin");
  const folder = join(home, "project");
  for (const created of [bin, folder, join(home, ".cursor")]) mkdirSync(created);
  copyFileSync(vary, join(bin, "vary"));
  for (const [program, list] of Object.entries(SERVERS)) {
    const recorded = join(root, `crates/mcp-vary-view/tests/fixtures/tool-lists/${list}.json`);
    writeFileSync(join(bin, program), `#!/bin/sh\nexec '${replay}' '${recorded}'\n`);
    chmodSync(join(bin, program), 0o755);
  }
  // The service of the person who runs this is not touched: `vary up` starts a process in the background.
  for (const manager of ["systemctl", "launchctl"]) writeFileSync(join(bin, manager), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  const folders = { HOME: home, XDG_CONFIG_HOME: join(home, ".config"), XDG_STATE_HOME: join(home, "state") };
  return { home, folder, env: { ...process.env, ...folders, PATH: `${bin}:${process.env.PATH}` } };
}

/** The commands and files of a page, in its order. */
function steps(page) {
  const blocks = [...readFileSync(join(root, page), "utf8").matchAll(/```(sh|json|yaml)\n(.*?)```/gs)];
  return blocks.flatMap(([, language, text]) => {
    if (language === "json") return text.includes("mcpServers") ? [{ file: ".mcp.json", text }] : [];
    if (language === "yaml") return [{ file: "vary.yaml", text }];
    const lines = text.split("\n").map((line) => line.replace(/\s+# .*/, "").trim());
    const commands = lines.map((line) => line.replace(/^cargo run -- /, "vary "));
    return commands.filter((line) => line.startsWith("vary ")).map((command) => ({ command }));
  });
}

let serving;

async function stop() {
  const running = serving;
  serving = undefined;
  if (!running) return;
  const ended = new Promise((done) => running.once("exit", done));
  running.kill("SIGINT");
  await ended;
}

/** Starts `vary serve`, in place of the one before, and waits until it serves. */
async function serve(command, { folder, env }) {
  await stop();
  serving = spawn("sh", ["-c", `exec ${command}`], { cwd: folder, env });
  let said = "";
  await new Promise((done, failed) => {
    const hear = (part) => {
      said += part;
      if (said.includes("serving at http://")) done();
    };
    serving.stdout.on("data", hear);
    serving.stderr.on("data", hear);
    serving.once("exit", () => failed(new Error(said)));
  });
}

async function run(command, where) {
  if (command.startsWith("vary serve")) return serve(command, where);
  // Nobody is there to answer its question.
  const typed = command.replace(/^vary up$/, "vary up --yes");
  const { status, stdout, stderr } = spawnSync("sh", ["-c", typed], { cwd: where.folder, env: where.env, encoding: "utf8" });
  const refusal = Object.entries(REFUSED).find(([part]) => command.includes(part));
  const found = `${stdout}${stderr}`;
  const isRight = refusal ? found.includes(refusal[1]) : status === 0;
  if (!isRight) throw new Error(`exit code ${status}: ${found}`);
}

for (const page of PAGES) {
  const where = place();
  const all = steps(page);
  await told(`${page} has commands`, async () => {
    if (all.filter(({ command }) => command).length < 8) throw new Error(`only ${all.length} steps`);
  });
  // The first commands of the README use a file that it shows later.
  const listed = all.find(({ file }) => file === ".mcp.json");
  if (listed) {
    writeFileSync(join(where.folder, ".mcp.json"), listed.text);
    writeFileSync(join(where.home, ".cursor/mcp.json"), listed.text);
  }
  for (const { command, file, text } of all) {
    if (file) writeFileSync(join(where.folder, file), text);
    else await told(`${page}: ${command}`, () => run(command, where));
  }
  await stop();
  rmSync(where.home, { recursive: true, force: true });
}
