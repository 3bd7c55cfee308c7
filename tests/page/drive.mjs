// Drives the operator's page of a gateway: `node drive.mjs ADDRESS FOLDER ENDPOINT METRICS PREFIXED`, where ADDRESS has a code,
// FOLDER is for screenshots, calls are made at ENDPOINT, METRICS is the address of a scrape, and PREFIXED is another gateway's
// ADDRESS. Prints a line of JSON for each check. `gateway.yaml` and `prefixed.yaml` have what the checks need of the gateways;
// a check without it fails.

import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

import { Visitor, check, equal, failures, holds, launch, newAddress, number, tokenOf, withPeople } from "./browser.mjs";
import { compareCalls, makeCall } from "./calls.mjs";
import { callAllTheTime } from "./client.mjs";
import { draftBesideOthers } from "./draft-file.mjs";
import { draftPrefixed, draftVariants } from "./draft.mjs";
import { endExperiment } from "./experiments.mjs";
import { failuresOf, historyOf } from "./fixtures.mjs";
import { callHistory } from "./history.mjs";
import { compareWithMetrics } from "./metrics.mjs";
import { checkPictures } from "./picture-files.mjs";
import { whoGetsWhat } from "./who.mjs";

const [address, folder, endpoint, metrics, prefixed] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const [token, prefixedToken] = [await tokenOf(address), await tokenOf(prefixed)];
const VIEWS = ["now", "variants", "calls", "draft", "who", "review", "experiments"];
const SIZES = [[1400, 900], [380, 800]];

/** What the page of a gateway itself asks for. */
const asker = (address, token) => async (path, body) => {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const response = await fetch(new URL(path, address), { headers, ...(body && { method: "POST", body: JSON.stringify(body) }) });
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response.json();
};
const [ask, askPrefixed] = [asker(address, token), asker(prefixed, prefixedToken)];

/** Waits until each server has connected and listed its tools, or failed, and the variants have the tools. */
async function isStarted(ask) {
  for (let waited = 0; waited < 600; waited++) {
    const { servers } = await ask("/api/status");
    const isKnown = servers.every(({ state, tools }) => (state === "up" ? tools !== undefined : state !== "starting"));
    const { tools } = isKnown ? await ask("/api/catalog") : {};
    if (tools?.every(({ variants }) => Object.values(variants).some((it) => it))) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("servers are still starting after a minute");
}

await isStarted(ask);
await isStarted(askPrefixed);
const stopCalls = await callAllTheTime(endpoint);
const [catalog, status] = [await ask("/api/catalog"), await ask("/api/status")];
const variant = (id) => catalog.variants.find((it) => it.id === id);
const named = (test) => catalog.tools.find((it) => test.test(it.name)) ?? missing(test);
const missing = (what) => {
  throw new Error(`the gateway has none that the check needs: ${what}`);
};
/** The address of a tool's definitions. */
const toolView = (tool, params = {}) => `/variants?${new URLSearchParams({ server: tool.server, tool: `${tool.server}:${tool.name}`, ...params })}`;

/** A client that was seen, and a `delete_` tool that a rule hides from it. */
async function clientWithoutDelete() {
  for (const { client } of status.clients.filter((it) => it.client.name)) {
    const { tools } = await ask("/api/explain", { initialize: { clientInfo: client } });
    const hidden = tools.find((it) => it.hidden.length && it.name.startsWith("delete_"));
    if (hidden) return { client, hidden };
  }
  return missing("a client that was seen, without a delete_ tool");
}

mkdirSync(folder, { recursive: true });
const browser = await launch();
const visitor = await Visitor.open(browser, await newAddress(address, token));
const { page } = visitor;
await visitor.first();

/** A question of an operator, answered from the first view by at most three clicks. */
async function question(title, answer) {
  await check(title, async () => {
    await visitor.first();
    await answer();
    await page.screenshot({ path: join(folder, `${title.toLowerCase().replace(/[^a-z]+/g, "-").replace(/^-|-$/g, "")}.png`) });
    holds(visitor.clicks <= 3, `${visitor.clicks} clicks`);
    return `${visitor.clicks} clicks`;
  });
}

const openClient = (client) => visitor.click("main tr th a", { has: page.locator(`xpath=self::*[contains(@href, ${JSON.stringify(encodeURIComponent(client.name))})]`) });

await question("Which variant did my client get, and why?", async () => {
  const { client } = await clientWithoutDelete();
  const { variant, steps } = await ask("/api/explain", { initialize: { clientInfo: client } });
  await openClient(client);
  holds((await visitor.text(".answer h2")).includes(variant), "the variant is not in the heading");
  const decided = steps.find((it) => it.decided);
  holds((await visitor.text(".steps .decided")).includes(decided.step), "the step that decided is not marked");
});

await question("What does each list cost?", async () => {
  await visitor.click("nav a", { hasText: "Variants" });
  await page.waitForSelector(".chart tbody tr");
  const rows = await page.locator(".chart tbody tr").evaluateAll((rows) => rows.map((row) => [row.querySelector("bdi").textContent, row.querySelector("td").textContent]));
  equal(rows, catalog.variants.map((it) => [it.id, number(it.tokens)]), "the costs");
});

await question("Why has this client no delete_* tool?", async () => {
  const { client, hidden } = await clientWithoutDelete();
  await openClient(client);
  await page.getByLabel("Tool", { exact: true }).fill("delete_*");
  const causes = await visitor.text(".causes");
  holds(causes.includes(hidden.hidden[0].rule), `the rule is not in “${causes}”`);
  holds(causes.includes(hidden.name), `the tool is not in “${causes}”`);
});

await question("What would compact save?", async () => {
  await visitor.click("nav a", { hasText: "Variants" });
  await page.waitForSelector(".chart tbody tr");
  const row = page.locator(".chart tbody tr", { has: page.getByText("compact", { exact: true }) });
  const saved = Math.round((1 - variant("compact").tokens / variant(catalog.baseline).tokens) * 100);
  holds((await row.innerText()).includes(`−${saved}\u00A0%`), `−${saved} % is not in the row`);
});

await question("What differs in this tool between variants?", async () => {
  await visitor.click("nav a", { hasText: "Variants" });
  await visitor.click(".grid tbody .group th", { hasText: "git" });
  await visitor.click(".grid tbody td", { has: page.locator(".mark") });
  await page.waitForSelector(".panel .diff :is(ins, del)");
});

await question("Which servers are down, and why?", async () => {
  const down = status.servers.find((it) => it.state === "down") ?? missing("a server that is down");
  const problems = await page.getByRole("list", { name: "Server problems" }).innerText();
  // Names in backticks are shown as code, and the name of the server only once.
  const reason = down.reason.replace(/^server `[^`]+`:? /, "").replaceAll("`", "");
  holds(problems.includes(down.name) && problems.includes(`: ${reason}`), `it shows “${problems}”`);
});

await check("a server that is down shows its last lines, and is tried when one says so", async () => {
  await visitor.first();
  const item = page.locator(".server-problems li", { hasText: "broken" });
  holds(!(await item.innerText()).includes("server broken"), "its name is repeated");
  equal(await item.locator("pre").innerText(), "the <b>database</b> is locked", "the lines");
  const retried = page.waitForResponse((it) => it.url().endsWith("/api/retry?server=broken"));
  await item.getByRole("button", { name: "Try now: broken" }).click();
  equal((await retried).status(), 200, "the answer");
  await item.getByText("trying …").waitFor({ timeout: 5_000 });
  holds(!(await item.locator(".try").innerText()).includes("next attempt"), "both are shown");
  await item.getByText("the same error").waitFor({ timeout: 20_000 });
});

await check("calls are listed as they come, and one opens", async () => {
  await visitor.first();
  await visitor.click(".calls .grid tbody td");
  const facts = await visitor.text(".panel .facts");
  for (const fact of ["client", "called as", "2026-07-28, over HTTP", "variant", "selected by", "of that the server"]) holds(facts.includes(fact), `${fact} is missing`);
  await page.keyboard.press("Escape");
});

await check("calls from before the page was opened are listed, and numbers lead to those behind them", async () => {
  const { calls } = await ask("/api/last-calls");
  holds(calls.length > 1 && calls.every(({ method }) => method === "tools/call"), "what is kept is not calls alone");
  const failed = calls.find(({ error, server }) => error && server) ?? missing("a call that failed");
  const other = await Visitor.open(browser, await newAddress(address, token));
  await other.page.locator("tbody").getByRole("link", { name: `: show errors of ${failed.server}` }).click({ timeout: 5_000 });
  await other.page.locator(".filters a[aria-current]", { hasText: "error" }).waitFor({ timeout: 5_000 });
  equal(new URL(other.page.url()).hash, `#/now?server=${failed.server}&outcome=error`, "the link");
  const outcomes = await other.page.locator(".calls .grid tbody .outcome").allTextContents();
  holds(outcomes.length > 0 && outcomes.every((it) => /error/.test(it)), `outcomes: ${outcomes}`);
  await other.click(".calls .grid tbody td");
  holds((await other.text(".panel .problem")).includes("what the client read"), "the text of the error is missing");
  await other.click(".filters a[aria-current]", { hasText: "error" });
  await other.page.waitForSelector(".outcome.allowed");
  equal(other.problems, [], "problems");
  await other.page.context().close();
});

await check("a search and a client narrow the calls, and the numbers beside them", async () => {
  const { calls } = await ask("/api/last-calls");
  const failed = calls.filter(({ error, outcome }) => error && /error/.test(outcome)).at(-1) ?? missing("a call that failed");
  const other = await Visitor.open(browser, await newAddress(address, token));
  await other.page.getByLabel("Search calls").fill(failed.target);
  await other.page.getByRole("combobox", { name: "Client" }).selectOption(failed.client.name);
  await other.page.waitForFunction((target) => [...document.querySelectorAll(".calls .grid tbody td:nth-child(3) > .name")].every((it) => it.textContent === target), failed.target);
  holds(/^\d+ errors?$/m.test(await other.text(".filters")), "the errors are not counted");
  equal(new URL(other.page.url()).hash, `#/now?${new URLSearchParams({ q: failed.target, client: failed.client.name })}`, "the address");
  equal(other.problems, [], "problems");
  await other.page.context().close();
});

await check("calls that cannot be read are not counted as none, and counted as soon as they are read", async () => {
  const other = await Visitor.open(browser, await newAddress(address, token));
  await other.page.route("**/api/last-calls", (route) => route.abort());
  await other.page.reload();
  await other.page.getByText("The calls are not followed at the moment.").waitFor({ timeout: 5_000 });
  // Calls go on failing, and the page reads the status every two seconds.
  const failed = async () => (await ask("/api/status")).failures.reduce((sum, { outcome, count }) => sum + (outcome !== "denied" && count), 0);
  const before = await failed();
  await other.page.waitForResponse((response) => response.url().endsWith("/api/status"));
  const [lastMinute, errors] = (await other.page.locator(".tiles dd").allTextContents()).slice(1, 3);
  const shown = Number(errors.match(/^([\d,]+) of –$/)?.[1].replaceAll(",", ""));
  holds(lastMinute === "–" && before <= shown && shown <= (await failed()), `${lastMinute}, and ${errors} between ${before} and ${await failed()}`);
  await other.page.unroute("**/api/last-calls");
  await other.page.getByRole("link", { name: /: show errors since \d\d:\d\d/ }).waitFor({ timeout: 10_000 });
  await other.page.context().close();
});

await check("calls that end while another view is open are in the list when the gateway is gone", async () => {
  const other = await Visitor.open(browser, await newAddress(address, token));
  await other.view("/variants");
  const begin = Date.now() / 1000;
  await other.page.waitForTimeout(1_500);
  await other.page.route("**/api/**", (route) => route.abort());
  await other.view("/now");
  await other.page.waitForSelector(".calls tbody [data-cell='0-0']");
  await other.page.locator(".calls tbody [data-cell='0-2']").click();
  const at = Number(new URLSearchParams(new URL(other.page.url()).hash.split("?")[1]).get("call").split("-")[1]);
  holds(at >= Math.floor(begin), `the last call is ${Math.round(begin - at)} seconds older`);
  await other.page.context().close();
});

await check("what a gateway said that is gone is grey until it answers again", async () => {
  const other = await Visitor.open(browser, await newAddress(address, token));
  await other.page.route("**/api/status", (route) => route.abort());
  await other.page.waitForSelector("main.gone", { timeout: 10_000 });
  const silent = await other.text(".silent");
  holds(/^Vary has not answered since \d\d:\d\d:\d\d; the page shows its state at that time\. Start it, with its other flags if there were any: vary serve \S*gateway\.yaml --directory \S+\s*Copy the command$/.test(silent), silent);
  await other.page.unroute("**/api/status");
  await other.page.waitForSelector("main:not(.gone)", { timeout: 10_000 });
  await other.page.context().close();
});

await check("views that were on the screen stay while Vary does not answer, and begin anew once it does", async () => {
  const other = await Visitor.open(browser, await newAddress(address, token));
  const shown = { "/variants": ".chart tbody tr", "/draft": ".step", "/who": ".plain tbody tr", "/experiments": "main section h2" };
  const visit = async (view) => {
    await other.view(view);
    await other.page.locator(shown[view]).first().waitFor({ timeout: 15_000 });
  };
  for (const view of Object.keys(shown)) await visit(view);
  await other.page.route("**/api/**", (route) => route.abort());
  await other.page.waitForSelector("main.gone", { timeout: 10_000 });
  for (const view of Object.keys(shown)) await visit(view);
  await visit("/variants");
  await other.page.unroute("**/api/**");
  const catalog = other.page.waitForResponse((it) => it.url().endsWith("/api/catalog"));
  await other.page.waitForSelector("main:not(.gone) .chart", { timeout: 10_000 });
  await catalog;
  await other.page.context().close();
});

/** Opens a call that a client made under another name than the server's. */
async function openRenamed() {
  await visitor.first();
  // The list waits while somebody points at it, or has the focus in it: closing a call puts that back.
  await page.mouse.move(0, 0);
  await page.evaluate(() => document.activeElement?.blur());
  await clickRenamed(page);
}

/** Clicks the latest call of `log`. Rows move as calls come, until the pointer is over one of them. */
async function clickRenamed(page) {
  const renamed = page.locator(".calls .grid tbody tr", { has: page.getByText("log", { exact: true }) }).first();
  await renamed.waitFor({ timeout: 5_000 });
  await page.locator(".calls .grid tbody tr").first().hover();
  // In the middle of the row may be the link to its client.
  await renamed.getByText("ok", { exact: true }).click({ timeout: 5_000 });
  await page.waitForSelector(".panel .diff");
}

await check("a call shows under which names it was made and sent, and which rule selected its variant", async () => {
  await openRenamed();
  const facts = await visitor.text(".panel .facts");
  holds(/called as\s+log · only these\s+sent to the server as\s+git_log\s/.test(facts), facts);
  holds(/selected by\s+rule: clients\[0\] \{name: claude-code, variant: compact\}\s/.test(facts), facts);
});

await check("a call shows what its client sees of the tool, beside what the server lists", async () => {
  await openRenamed();
  holds((await page.locator(".panel .diff :is(ins, del)").count()) > 0, "no difference is marked");
  holds((await visitor.text(".panel")).includes("Vary fixed 1 argument: repo_path"), "the fixed argument is not named");
});

await check("from a call one click leads to the same call by its client and others", async () => {
  await openRenamed();
  await visitor.click(".panel a", { hasText: "Call it as several clients" });
  await page.waitForSelector("form.call");
  equal(await visitor.text("main h2"), "git_log", "the tool");
  holds(await page.getByLabel(/^claude-code/).first().isChecked(), "its client is not chosen");
});

await check("an experiment shows its arms, and what Vary declares of them", async () => {
  const { experiments } = await ask("/api/experiments");
  const [{ name, arms, verdicts, comparisons }] = experiments.length > 0 ? experiments : missing("an experiment");
  await visitor.view("/experiments");
  const region = page.getByRole("region", { name: `Arms of ${name}` });
  const rows = await region.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [row.querySelector("bdi").textContent, ...[...row.querySelectorAll("td")].map((it) => it.textContent)]));
  equal(rows, arms.map((it) => [it.variant, ...[it.clients, it.planned, it.calls].map((it) => number(Math.round(it)))]), "the arms");
  const early = comparisons.filter((it) => it.verdict === "too-few").map((it) => `${it.variant}: too early, with ${it.have} of ${number(it.need)} sessions in the smaller arm`);
  const declared = comparisons.length > 0 ? verdicts.map((it) => it.replaceAll("`", "")) : [];
  equal(await page.locator(".verdict").allTextContents(), early.length > 0 ? early : declared, "the sentences");
  holds((await visitor.text("main section")).includes("Wait for about"), "what to do is missing");
});

await check("an experiment says what to do, how many people or sessions it needs and when it has them, and why others do not take part", async () => {
  const other = await Visitor.open(browser, await newAddress(address, token));
  const [experiment] = (await ask("/api/experiments")).experiments;
  const now = Math.round(Date.now() / 1000);
  const arms = (clients) => experiment.arms.map((it) => ({ ...it, clients, planned: clients, difference: null }));
  const history = [{ at: now - 4 * 86_400, arms: arms(10) }, { at: now, arms: arms(50) }];
  const answer = { ...experiment, arms: arms(50), comparisons: [], verdicts: [], fewest: 100, history };
  await other.page.route("**/api/experiments", (route) => route.fulfill({ json: { experiments: [answer] } }));
  const use = (name, reason, rule) => ({ client: { name }, variant: "compact", reason, rule, requests: 1, calls: 1, last: now });
  const clients = [use("taking-part", "experiment", experiment.name), use("by-rule", "rule", "clients[0]"), use("by-address", "address")];
  await other.page.route("**/api/status", (route) => route.fulfill({ json: { ...status, clients } }));
  await other.page.route("**/api/last-calls", (route) => route.fulfill({ json: { calls: [] } }));
  await other.page.reload();
  await other.view("/experiments");
  await other.page.getByText("Wait for about 100 more sessions (at this pace 5 days).").waitFor({ timeout: 5_000 });
  const taking = await other.text("main p:has-text('A restart forgets')");
  equal(taking, "A restart forgets all who took part, unless there is a store. Sessions without a credential count, so anybody can decide this experiment.", "what a restart does");
  const groups = await other.page.locator("main li").allTextContents();
  const others = ["given by a rule of the configuration: by-rule", "named by the address: by-address"];
  equal(groups.filter((it) => it.includes("by-")).sort(), others.map((it) => `not in it, as the variant is ${it}`), "those that take no part");
  equal(groups.filter((it) => it.startsWith("compact")), ["compact: taking-part"], "the clients of the arm");
  await other.page.context().close();
});

await check("an experiment counts people where all have credentials, and says when it cannot end, may stop, or differs by chance", async () => {
  const other = await Visitor.open(browser, await newAddress(address, token));
  const [experiment] = (await ask("/api/experiments")).experiments;
  const at = Math.round(Date.now() / 1000) - 7_200;
  const arms = experiment.arms.map((it, index) => ({ ...it, clients: 2 + index, planned: 2.5 }));
  const few = { ...experiment, hasAuth: true, anonymous: false, uneven: false, p: 0.42, arms, comparisons: [], verdicts: [], fewest: 100, history: [{ at, arms }] };
  const estimate = { value: 0.1, from: 0.05, to: 0.15 };
  const worse = { metric: experiment.metric, variant: "compact", arm: estimate, control: estimate, difference: estimate, p: 0.01, power: 0.55, verdict: "worse" };
  const ended = { ...few, name: "ended", isShared: true, comparisons: [worse], verdicts: ["compact: worse than the control by `failed`."] };
  await other.page.route("**/api/experiments", (route) => route.fulfill({ json: { experiments: [few, ended] } }));
  await other.page.route("**/api/status", (route) => route.fulfill({ json: { ...status, people: ["ann", "ben"].map((person) => ({ person })) } }));
  await other.page.reload();
  await other.view("/experiments");
  const section = (name) => other.page.locator("main section", { has: other.page.getByRole("heading", { name, exact: true }) });
  const text = async (name) => (await section(name).innerText()).replaceAll("\u00A0", " ");
  // Who was seen is in the status, which comes apart.
  await section(experiment.name).getByText("With the 2 people").waitFor({ timeout: 5_000 });
  await section("ended").getByText("What the terms mean").click();
  const [open, stopped] = [await text(experiment.name), await text("ended")];
  for (const part of ["With the 2 people seen lately it cannot end: it needs about 200 people.", "Taking part: 5 people since", "The arms differ from the plan by chance (p 0.420)."]) {
    holds(open.includes(part), `“${part}” is not in “${open}”`);
  }
  holds(stopped.includes("You may stop: compact is worse.") && !stopped.includes("a restart"), stopped);
  holds(stopped.includes("by failed (share of calls; less is better)") && stopped.includes("power: how probable"), "the terms are not explained");
  holds(stopped.includes("compact is behind the control: 10.0 % against 10.0 %, +10.0 points (95 % interval: +5.0 to +15.0 points)."), stopped);
  equal(await section("ended").locator(".verdict").getAttribute("class"), "verdict outcome error", "the colour");
  await other.page.context().close();
});

await endExperiment({ browser, address, token, ask });

/** The view of experiments with the history of weeks, which no test waits for. */
async function openHistory(page) {
  await page.route("**/api/experiments", async (route) => {
    const response = await route.fetch();
    const answer = await response.json();
    for (const experiment of answer.experiments) experiment.history = historyOf(240);
    await route.fulfill({ response, json: answer });
  });
  await page.waitForSelector(".history polyline");
  await page.unrouteAll({ behavior: "wait" });
}

await check("an experiment shows how its interval moved, as a drawing and as a text", async () => {
  const [{ arms, history }] = (await ask("/api/experiments")).experiments;
  equal(history.at(-1).arms.map(({ clients, calls }) => [clients, calls]), arms.map(({ clients, calls }) => [clients, calls]), "the last point");
  await visitor.view("/now");
  await visitor.view("/experiments");
  await openHistory(page);
  const points = await page.locator(".history polyline").getAttribute("points");
  equal(points.split(" ").length, 240, "points");
  const label = await page.locator(".history svg").getAttribute("aria-label");
  holds(/^compact: at .+ \(.+ to .+\), at .+ −\d+\.\d\u00A0points \(.+ to .+\)$/.test(label), label);
  holds((await visitor.text(".history figcaption")).includes("better since"), "since when it is better is missing");
});

await check("the figures of the matrix are those of the catalog and of the last calls", async () => {
  // The client goes on calling, so what counts is what this view has read.
  await visitor.view("/experiments");
  const read = page.waitForResponse((response) => response.url().endsWith("/api/last-calls"));
  await visitor.view("/variants?q=*");
  const { calls } = await (await read).json();
  await page.getByText("Calls are all since ").waitFor({ timeout: 5_000 });
  const callsOf = ({ server, name }) => calls.filter((it) => it.server === server && (it.upstreamName ?? it.target) === name).length;
  const rows = await page.locator(".grid tbody tr:not(.group):has(td[data-cell])").evaluateAll((rows) =>
    rows.map((row) => [...row.querySelectorAll("td")].map((cell) => (cell.querySelector(".tokens") ?? cell).textContent)),
  );
  const expected = catalog.servers.flatMap((server) => catalog.tools.filter((it) => it.server === server)).map((tool) => [
    number(tool.tokens),
    number(callsOf(tool)),
    ...catalog.variants.map(({ id }) => (tool.variants[id] ? number(tool.variants[id].tokens) : "hidden")),
  ]);
  equal(rows, expected.slice(0, rows.length), "rows");
  const totals = await page.locator(".grid tfoot .total").allTextContents();
  equal(totals, catalog.variants.map((it) => number(it.tokens)), "totals");
  await page.getByLabel("Filter tools").fill("git_log");
  const called = callsOf(named(/^git_log$/));
  holds(called > 0, "the tool was not called");
  equal(await page.locator(".grid tbody tr:not(.group) td").nth(1).textContent(), number(called), "the calls of git_log");
  return `${rows.length} rows`;
});

await check("of many tools, each server is a row with sums until it is chosen", async () => {
  await visitor.view("/variants");
  const rows = page.locator(".grid tbody tr");
  const tools = catalog.tools.filter(({ server }) => server === "git");
  const sum = (tokens) => number(tools.reduce((sum, tool) => sum + tokens(tool), 0));
  const git = rows.filter({ hasText: /git 6 tools/ });
  equal(await rows.locator("th[aria-expanded=false]").count(), new Set(catalog.tools.map(({ server }) => server)).size, "rows");
  const cells = await git.locator("td").evaluateAll((cells) => cells.map((cell) => (cell.querySelector(".tokens") ?? cell).textContent));
  equal([...cells.slice(0, 1), ...cells.slice(2)], [sum((it) => it.tokens), ...catalog.variants.map(({ id }) => sum((it) => it.variants[id]?.tokens ?? 0))], "the sums");
  await git.locator("th").click();
  await rows.filter({ hasText: "git_status" }).waitFor({ timeout: 5_000 });
  equal([new URL(page.url()).hash, await git.locator("th").getAttribute("aria-expanded")], ["#/variants?server=git", "true"], "the address, and whether it is expanded");
  await git.locator("th").click();
  await rows.filter({ hasText: "git_status" }).waitFor({ state: "detached", timeout: 5_000 });
});

await check("six variants are in view, each leads to its draft, and small differences have no percentage", async () => {
  const other = await Visitor.open(browser, await newAddress(address, token));
  const id = "a-sixth-variant-whose-name-is-long";
  const [tool] = catalog.tools;
  const small = { ...tool, tokens: 1_000, variants: { ...tool.variants, [id]: { name: tool.name, tokens: 1_049 }, standard: { name: tool.name, tokens: 1_050 } } };
  const six = { ...catalog, tools: [small, ...catalog.tools.slice(1)], variants: [...catalog.variants, { ...variant("standard"), id }] };
  await other.page.route("**/api/catalog", (route) => route.fulfill({ json: six }));
  await other.page.reload();
  await other.view(`/variants?server=${tool.server}`);
  const [needed, width] = await other.page.locator(".grid").evaluate((grid) => [grid.scrollWidth, grid.clientWidth]);
  holds(needed <= width, `the columns need ${needed} pixels of ${width}`);
  const head = other.page.locator(".grid thead").getByRole("link", { name: id });
  equal([await head.getAttribute("href"), await head.getAttribute("title")], [`#/draft?variant=${id}`, `${id}: draft it`], "the head");
  const cells = await other.page.locator(".grid tbody tr:not(.group)", { hasText: "1,049" }).locator("td").allTextContents();
  equal([cells[2], cells.at(-1)].map((it) => it.replace(/\s+/g, " ").trim()), ["1,050+5 %", "1,049"], "the cells");
  await other.page.context().close();
});

await check("each variant has the clients and people that get it", async () => {
  const { calls } = await ask("/api/last-calls");
  const { client } = calls.find(({ variant }) => variant === "compact") ?? missing("a call in compact");
  await visitor.view("/variants");
  const row = page.getByRole("region", { name: "Who gets each variant" }).locator("tbody tr", { hasText: "compact" });
  await row.getByRole("link", { name: client.name }).click({ timeout: 5_000 });
  holds((await visitor.text(".answer h2")).includes(client.name), "the client is not explained");
});

await check("j and k move between the rows of a list", async () => {
  await visitor.view("/variants?server=git");
  await page.locator(".grid tbody tr").nth(1).locator("th").focus();
  const row = () => page.evaluate(() => document.activeElement.closest("tr").rowIndex);
  const before = await row();
  for (const key of ["j", "j", "k"]) await page.keyboard.press(key);
  equal(await row(), before + 1, "the row");
  equal(await page.locator(".grid thead").getAttribute("title"), "Keys: j, k and the arrows move, Enter opens, Escape closes.", "the title");
});

await check("the tools come first, and the panel of one stands beside them, in sight, with whole names", async () => {
  await visitor.view("/variants?server=git&tool=git:git_log&variant=few");
  await page.locator(".panel").getByText("Who may call it").waitFor({ timeout: 5_000 });
  const [list, panel, chart] = await Promise.all([".grid", ".panel", ".chart"].map((it) => page.locator(it).first().boundingBox()));
  holds(panel.x >= list.x + list.width && panel.y < 900 / 2 && list.y < 300, `the list at ${JSON.stringify(list)}, the panel at ${JSON.stringify(panel)}`);
  holds(chart.y > list.y + list.height, "the chart is above the list");
  await page.locator(".panel").getByRole("button", { name: "Close" }).click();
  const cut = await page.locator(".grid :is(tbody th .name, .marks)").evaluateAll((all) => all.filter((it) => it.scrollWidth > it.clientWidth).map((it) => it.textContent));
  equal(cut.filter((it) => it.length < 30), [], "what is cut");
});

await check("tools are sorted by what a variant saves of each", async () => {
  await visitor.view("/variants");
  await page.getByLabel("Order").selectOption({ label: "most saved by compact" });
  const saved = (tool) => tool.tokens - (tool.variants.compact?.tokens ?? 0);
  const expected = catalog.tools.toSorted((a, b) => saved(b) - saved(a)).slice(0, 10);
  const rows = page.locator(".grid tbody tr:has(td[data-cell])");
  equal(await rows.locator("td:nth-child(2)").allTextContents().then((all) => all.slice(0, 10)), expected.map((it) => number(it.tokens)), "originals");
  const tool = named(/^git_log$/);
  await page.getByLabel("Filter tools").fill("git_log");
  const at = catalog.variants.findIndex(({ id }) => id === "compact") + 4;
  const percent = Math.round((1 - tool.variants.compact.tokens / tool.tokens) * 100);
  holds((await rows.first().locator(`:nth-child(${at}) .saved`).textContent()) === `−${percent}\u00A0%`, `−${percent} % is not in the cell`);
  await visitor.view("/variants");
});

await check("names in the lists lead to the tool, and to what a client gets", async () => {
  const { client, hidden } = await clientWithoutDelete();
  await visitor.first();
  await page.locator(".calls .grid tbody tr").first().hover();
  await page.locator(".calls .grid tbody").getByText("log", { exact: true }).first().click();
  await visitor.click(".panel a", { hasText: "see it in each variant" });
  equal(await visitor.text(".panel h2"), "git_log", "the tool of a call");
  await visitor.first();
  await visitor.click("main tr th a", { hasText: client.name });
  holds((await visitor.text(".answer h2")).includes(client.name), "the client is not explained");
  const name = page.locator(".causes a", { hasText: hidden.name }).first();
  await name.focus();
  await page.keyboard.press("Enter");
  equal(await visitor.text(".panel h2"), hidden.name, "the tool that is hidden");
});

await check("each word of a search is looked for, and a search that finds nothing leads back to all calls", async () => {
  const { client } = await clientWithoutDelete();
  const rows = page.locator(".calls .grid tbody tr");
  await visitor.view(`/now?${new URLSearchParams({ q: `log ${client.name}` })}`);
  await rows.first().waitFor({ timeout: 5_000 });
  await visitor.view(`/now?${new URLSearchParams({ q: `log ${client.name} nobody` })}`);
  await visitor.click(".empty a", { hasText: "Clear the filters" });
  await rows.first().waitFor({ timeout: 5_000 });
});

await check("a rule that has only a position shows what it says", async () => {
  await visitor.first();
  await openClient((await clientWithoutDelete()).client);
  await page.locator(".rules .rule").first().waitFor({ timeout: 5_000 });
  holds((await visitor.text(".rules")).includes('deny: ["delete_*"]'), "the access rule");
  holds((await visitor.text(".steps .decided")).includes("{name: claude-code, variant: compact}"), "the rule of the client");
});

await check("a link from a call shows what was recorded of it, and the answer for the same client", async () => {
  const { calls } = await ask("/api/last-calls");
  const { client, variant } = calls.find((it) => it.reason === "rule") ?? missing("a call of a client with a rule");
  await visitor.first();
  await page.locator(".calls .grid tbody tr").first().hover();
  await page.locator(".calls .grid tbody").getByText(client.name, { exact: true }).first().click();
  await visitor.click(".panel dd a", { hasText: client.name });
  holds((await visitor.text(".answer h2")).includes(`gets ${variant}`), "the variant is not in the heading");
  holds(/^The call at \d\d:\d\d:\d\d got the same\.$/.test(await visitor.text(".answer h2 + p")), await visitor.text(".answer h2 + p"));
  const initialize = JSON.stringify({ clientInfo: client });
  await visitor.view(`/who?${new URLSearchParams({ initialize, got: "few", by: "experiment", at: 1, person: "ann" })}`);
  await page.locator(".answer p", { hasText: /got few, by experiment: the fields lack ann, who called\.$/ }).waitFor({ timeout: 5_000 });
});

await check("clients are listed with their people, and choosing one chooses both", async () => {
  const { client } = await clientWithoutDelete();
  await withPeople(page, ["ann", "ben"]);
  await page.route("**/api/explain", async (route) => {
    const { key, brief, ...question } = route.request().postDataJSON();
    const answer = await ask("/api/explain", question);
    await route.fulfill({ json: { ...answer, lacksCredential: !key, listed: brief && 41 } });
  });
  await visitor.view("/now");
  await visitor.view("/who");
  const rows = page.getByRole("region", { name: "Clients that were seen" }).locator("tbody tr");
  const row = rows.filter({ hasText: `${client.name} ${client.version} · ann` });
  await row.getByText("41").waitFor({ timeout: 5_000 });
  equal(await rows.count(), 2, "rows");
  await row.getByRole("link").first().click();
  const heading = page.locator(".answer h2", { hasText: `${client.name} ${client.version} · ann gets compact` });
  await heading.waitFor({ timeout: 5_000 });
  await page.waitForFunction(() => document.activeElement.matches(".answer h2"), null, { timeout: 5_000 });
  equal(await page.getByLabel("Person, by API key").inputValue(), "ann", "the person");
});

await check("where a key is required, a client without one gets no answer but what to do", async () => {
  await page.getByLabel("Person, by API key").selectOption("");
  await page.getByText("Without a key Vary refuses this client; choose a person.").waitFor({ timeout: 5_000 });
  equal(await page.locator(".answer").count(), 0, "answers");
  await page.getByLabel("Person, by API key").selectOption("ben");
  await visitor.view("/who?key=ben");
  await page.locator(".answer h2", { hasText: "A client of ben gets" }).waitFor({ timeout: 5_000 });
  await page.unrouteAll({ behavior: "wait" });
});

await check("one tool is answered in a line: whether a client gets it, what hides it, and what to do", async () => {
  await visitor.view(`/who?${new URLSearchParams({ path: "/mcp/v/few", q: "many_tool_0001" })}`);
  const line = page.locator(".answer [role=status]");
  await line.filter({ hasText: "tool_0001 of many: hidden: variant few" }).waitFor({ timeout: 5_000 });
  const next = await line.getByRole("link", { name: "change its settings in a draft" }).getAttribute("href");
  equal(next, "#/draft?variant=few&tool=many%3Atool_0001", "the next step");
  await page.getByLabel("Tool", { exact: true }).fill("delete_file");
  await line.filter({ hasText: "denies delete_*" }).waitFor({ timeout: 5_000 });
  equal(await line.getByRole("link", { name: "Problems" }).getAttribute("href"), "#/review", "the next step of an access rule");
  await page.getByLabel("Tool", { exact: true }).fill("git_log");
  await line.filter({ hasText: "git_log of git: it gets log" }).waitFor({ timeout: 5_000 });
});

await check("a tool whose calls are all refused is listed as that, by the rule that refuses them", async () => {
  await page.route("**/api/explain", async (route) => {
    const { tools = [], ...answer } = await ask("/api/explain", route.request().postDataJSON());
    const refused = (it) => (it.name === "git_log" ? { ...it, isAllowed: false, rules: ["no logs (deny git_log, if claims.temp)"] } : it);
    await route.fulfill({ json: { ...answer, tools: tools.map(refused) } });
  });
  await visitor.view("/now");
  await visitor.view(`/who?${new URLSearchParams({ path: "/mcp/v/few", q: "git_log" })}`);
  const line = page.locator(".answer [role=status]");
  await line.filter({ hasText: "git_log of git: listed, but each call is refused: access rule no logs: deny git_log, if claims.temp" }).waitFor({ timeout: 20_000 });
  await page.locator(".answer h3", { hasText: /^[\d,]+ tools listed, of which 1 always refused, [\d,]+ hidden$/ }).waitFor({ timeout: 20_000 });
  await page.getByLabel("Tool", { exact: true }).fill("");
  await page.locator(".causes li", { hasText: /^1 tool listed, but each call is refused: access rule no logs/ }).waitFor({ timeout: 20_000 });
  await page.unrouteAll({ behavior: "wait" });
});

await check("the steps come before the tools, which are one line for each reason and named on demand", async () => {
  await visitor.view("/who?path=/mcp/v/read-only");
  const { tools } = await ask("/api/explain", { path: "/mcp/v/read-only" });
  const hidden = tools.filter((it) => it.hidden.length > 0);
  const expected = ["The steps of the decision", `${number(tools.length - hidden.length)} tools listed, ${number(hidden.length)} hidden`];
  const headings = page.locator(".answer h3");
  await headings.filter({ hasText: expected[1] }).waitFor({ timeout: 5_000 });
  equal(await headings.allTextContents(), expected, "the headings");
  const reasons = new Set(tools.map((it) => JSON.stringify(it.hidden)));
  const lines = page.locator(".causes li");
  equal(await lines.count(), reasons.size, "lines");
  const line = lines.filter({ hasText: "hidden: variant read-only" }).first();
  const size = Number((await line.locator("strong").textContent()).replace(/\D/g, ""));
  equal(await line.locator("div a").count(), 0, "names at first");
  await line.getByRole("button", { name: `show all ${number(size)}` }).click();
  equal(await line.locator("div a").count(), size, "names");
});

/** Opens the view of problems for which the paths have other answers. */
async function problemsWith(answers, options) {
  const other = await Visitor.open(browser, await newAddress(address, token), options);
  for (const [path, json] of Object.entries(answers)) await other.page.route(`**${path}`, (route) => route.fulfill({ json }));
  await other.page.route("**/api/events", (route) => route.fulfill({ contentType: "text/event-stream", body: "" }));
  await other.page.reload();
  await other.view("/review");
  return other;
}

const setup = [
  { place: "/etc/vary/vary.yaml:61", what: "`access[3].when` applies to nobody: no key of `auth.keys` has `groups: qa`", fix: "give it to the `claims` of a key, or remove the rule", variant: null, kind: "setting" },
  { place: "/etc/vary/vary.yaml:20", what: "`variants.few.tools[0]` matches nothing: `qa_*`", fix: "did you mean `git_*`?", variant: "few", kind: "setting" },
  { place: "/etc/vary/vary.yaml:70", what: "`access[0].deny[0]` matches nothing now: `drop_*`", fix: "it will deny what the servers add later", variant: null, kind: "note" },
];

await check("servers that are down have their reason, their last lines and a button", async () => {
  await visitor.first();
  await visitor.click("nav a", { hasText: "Problems" });
  const problem = (name) => page.getByRole("list", { name: "Server problems" }).locator("li", { hasText: name });
  holds((await problem("tickets").innerText()).includes("no-such-program-of-tickets"), "why it is down");
  equal(await problem("broken").locator("pre").innerText(), "the <b>database</b> is locked", "its last lines");
  // There is none while Vary itself tries.
  await problem("broken").getByRole("button", { name: "Try now: broken" }).waitFor({ timeout: 30_000 });
});

await check("the tab has the number of servers, clients and settings that need an action, as the view has it; few failed calls, those of a server that has one, and sessions lost by a start need none", async () => {
  const server = (name, count, errors) => ({ name, state: "up", since: 9, tools: 1, calls: { count, errors } });
  const down = status.servers.find(({ state }) => state === "down");
  const servers = [server("few", 9, 2), server("seldom", 400, 12), server("much", 100, 20), server("often", 10, 4), down];
  const review = { ...(await ask("/api/review")), setup };
  const call = { at: 1, method: "tools/call", target: "git_log", outcome: "tool_error", client: { name: "cursor" }, durationMs: 1, bytesIn: 1, bytesOut: 1 };
  const three = (member) => [1, 2, 3].map((id) => ({ ...call, id, ...member }));
  const calls = [...three(), ...three({ client: { name: "zed" }, server: "much" }), ...three({ client: undefined, error: "Session not found; send `initialize` again" })];
  const other = await problemsWith({ "/api/status": { ...status, uptime: 60, servers, failures: failuresOf(calls) }, "/api/review": review });
  const label = "1 server down, 2 failing often, 1 client failing often, 2 settings";
  await other.page.getByText(`6 need an action: ${label}.`).waitFor({ timeout: 5_000 });
  await other.page.locator("nav .badge", { hasText: /^6$/ }).waitFor({ timeout: 5_000 });
  equal(await other.page.getByRole("navigation").getByRole("img").getAttribute("aria-label"), label, "what it counts");
  const names = await other.page.getByRole("list", { name: "Server problems" }).locator("li strong").allTextContents();
  equal(names.slice(-3), ["much", "often", "cursor"], "the worst first");
  await other.page.getByRole("link", { name: "20: show errors of much" }).click({ timeout: 5_000 });
  equal(new URL(other.page.url()).hash, "#/now?server=much&outcome=error", "the link");
  await other.page.context().close();
});

await check("each setting to change has its place and what to do in sight, on a phone, too", async () => {
  for (const width of [1400, 390]) {
    const other = await problemsWith({ "/api/review": { ...(await ask("/api/review")), setup } }, { viewport: { width, height: 900 } });
    const rows = other.page.getByRole("region", { name: "Settings to change" }).locator("tbody tr");
    await rows.first().waitFor({ timeout: 5_000 });
    const texts = (await rows.allTextContents()).map((it) => it.replaceAll(/\s+/g, " ").trim());
    equal(texts, [
      "access[3].when applies to nobody: no key of auth.keys has groups: qavary.yaml:61give it to the claims of a key, or remove the rule",
      "variants.few.tools[0] matches nothing: qa_*vary.yaml:20did you mean git_*? (draft of few)",
    ], "the rows");
    const ends = await rows.locator(":is(th, td)").evaluateAll((all) => all.map((it) => it.getBoundingClientRect().right));
    holds(ends.every((it) => it <= width), `${width}: the cells end at ${ends}`);
    await isAccessible(other.page);
    await other.page.screenshot({ path: join(folder, `settings-${width}.png`), fullPage: true });
    await other.page.context().close();
  }
});

await check("a file that cannot be used comes first with the line of each mistake, and the settings from before stay", async () => {
  const review = { ...(await ask("/api/review")), setup };
  const other = await problemsWith({ "/api/review": review });
  const rows = other.page.getByRole("region", { name: "Settings to change" }).locator("tbody tr");
  await rows.first().waitFor({ timeout: 5_000 });
  const what = "vary.yaml has 2 mistakes\n/etc/vary.yaml:58:1: `variantz` is not a known key\n/etc/vary.yaml:60:3: `b` is not a variant";
  const broken = { place: "", what, fix: "correct the file: Vary cannot reload it, nor start with it", variant: null, kind: "file" };
  await other.page.route("**/api/review", (route) => route.fulfill({ json: { ...review, setup: [broken, ...setup] } }));
  const card = other.page.getByRole("list", { name: "Mistakes in the configuration" });
  await card.getByText("variantz").waitFor({ timeout: 15_000 });
  for (const text of ["vary.yaml has 2 mistakes", "vary.yaml:58 variantz is not a known key", "vary.yaml:60 b is not a variant", broken.fix]) {
    holds((await card.innerText()).includes(text), `“${text}” is not in “${await card.innerText()}”`);
  }
  equal(await rows.count(), 2, "the settings from before");
  equal(await card.locator("li").evaluate((it) => getComputedStyle(it).borderInlineStartColor), "rgb(168, 35, 27)", "the colour");
  holds(await card.evaluate((it) => !!(it.compareDocumentPosition(document.querySelector("[aria-label^='Server problems']")) & 4)), "it is not first");
  await other.page.screenshot({ path: join(folder, "mistakes.png") });
  await other.view("/now");
  await other.page.locator("h1 + [aria-label='Mistakes in the configuration']").getByText("variantz").waitFor({ timeout: 5_000 });
  await other.page.context().close();
});

await check("what was not checked has the reason, and what was refused without probes is one table", async () => {
  const review = { ...(await ask("/api/review")), setup, denials: null, credentials: null, limits: [{ limit: "bursts", count: 7 }], refusedCredentials: { count: 3, lastSecondsAgo: 40 } };
  const denied = { at: Date.now() / 1000, method: "tools/call", target: "drop", outcome: "denied", rule: "access[0]", durationMs: 1, bytesIn: 1, bytesOut: 1 };
  const calls = ["ann", "ann", undefined].map((principal, at) => ({ ...denied, id: 3 - at, principal }));
  const other = await problemsWith({ "/api/status": { ...status, audit: undefined, failures: failuresOf(calls) }, "/api/review": review });
  const unchecked = other.page.locator("section", { has: other.page.getByRole("heading", { name: "Not checked, or for later" }) }).locator("li");
  await unchecked.first().waitFor({ timeout: 5_000 });
  equal((await unchecked.allTextContents()).map((it) => it.replaceAll(/\s+/g, " ").trim()), [
    "Parts of variants that match nothing, and names that collide: not checked in full while tickets is down, broken is down.",
    "Calls of tools that are not in the client’s list: cannot be known in full while tickets is down, broken is down.",
    "Calls from before the start of Vary: set audit in the configuration to keep them in a file.",
    "vary.yaml:70 access[0].deny[0] matches nothing now: drop_*; it will deny what the servers add later.",
  ], "the list");
  const fine = await other.text(".fine");
  holds(!/Calls of tools|Names that collide/.test(fine), fine);
  const rows = other.page.getByRole("region", { name: "Refused" }).locator("tbody tr");
  await rows.getByText("gateway.yaml:28").waitFor({ timeout: 5_000 });
  const cells = await rows.evaluateAll((all) => all.map((row) => [...row.cells].map((it) => it.textContent.replaceAll(/\s+/g, " ").trim())));
  equal(cells.find(([, by]) => by.startsWith("access[0]")).toSpliced(1, 1), ["3", "ann 2, no person 1"], "the rule");
  equal(cells.find(([, by]) => by === "bursts"), ["7", "bursts", ""], "the limit");
  holds(cells.some(([times, by]) => times === "3" && by.startsWith("a credential: the last one at ")), cells.join("; "));
  await other.page.getByRole("link", { name: "2: show refused calls of ann" }).click({ timeout: 5_000 });
  equal(new URL(other.page.url()).hash, "#/now?person=ann&outcome=denied&rule=access%5B0%5D", "the link");
  await other.page.context().close();
});

await check("a hostile change of a server hides none, and its long text is cut", async () => {
  const long = "do this ".repeat(400);
  const change = (name, after) => ({ at: 1, server: "hostile", subject: "tool", name, summary: "its description changed", members: [{ member: "description", before: "", after }] });
  const changes = [change("t".repeat(180), long), change("small", "short")];
  const other = await problemsWith({ "/api/review": { ...(await ask("/api/review")), changes } }, { viewport: { width: 1400, height: 900 } });
  const cells = other.page.getByRole("region", { name: "What servers changed" }).locator("tbody tr td:last-child");
  await cells.first().waitFor({ timeout: 5_000 });
  const boxes = await cells.evaluateAll((all) => all.map((it) => it.getBoundingClientRect()).map(({ right, height }) => [right <= 1400, height < 200]));
  equal(boxes, [[true, true], [true, true]], "in sight, and low");
  await cells.first().getByRole("button", { name: "show all 3,200 characters" }).click();
  holds((await cells.first().boundingBox()).height > 200, "it stays cut");
  await other.page.context().close();
});

await check("a call of a tool that is not listed says that Vary answered, and which server is down, which drafts can add it, how it is listed or what was meant", async () => {
  const call = { at: Date.now() / 1000, method: "tools/call", outcome: "error", code: -32602, error: "Unknown tool", isUnknownTool: true, client: { name: "claude-code" }, reason: "rule", durationMs: 1, bytesIn: 1, bytesOut: 1 };
  const partner = { server: "partner", name: "g\u0435t", tokens: 9, variants: { few: { name: "partner_g_t_1f", tokens: 9 } } };
  const tools = [...catalog.tools, partner];
  const hidden = tools.find(({ name, variants }) => name.length < 32 && variants.standard && !variants.few && !variants["read-only"]) ?? missing("a tool that two variants hide");
  const tool = hidden.variants.standard.name;
  const targets = [["tickets_list", "few"], [tool, "read-only"], [tool, "few"], ["git_loog", "few"], ["close_status", "few"], ["commit_git", "few"]];
  targets.push(["partner_g\u0435t", "few"], ["git_log", "few"]);
  const calls = targets.map(([target, variant], at) => ({ ...call, id: 9 - at, target, variant }));
  const review = { ...(await ask("/api/review")), meant: { git_loog: "git_log", close_status: "git_status" } };
  const other = await problemsWith({ "/api/status": { ...status, failures: failuresOf(calls) }, "/api/last-calls": { calls }, "/api/review": review, "/api/catalog": { ...catalog, tools } });
  const rows = other.page.getByRole("region", { name: "Calls of tools that are not in the client’s list" }).locator("tbody tr");
  await rows.getByText("tickets is down").waitFor({ timeout: 30_000 });
  await rows.getByText("git_loog").waitFor({ timeout: 30_000 });
  const next = await rows.evaluateAll((all) => all.map(({ cells: [, tool, next] }) => [tool.textContent, next.textContent]));
  equal(next, [
    [tool, "writes · leave it hidden, or draft of read-only, draft of few"],
    ["tickets_list", "tickets is down"],
    ["git_loog", "no server lists it; did the client mean git_log?"],
    ["close_status", "no server lists it · tools with “status”"],
    ["commit_git", "no server lists it; did the client mean git_commit?"],
    ["partner_gU+0435t", "partner lists it as partner_g_t_1f"],
    ["git_log", "few lists it as log"],
  ], "what is to do");
  await rows.getByRole("link", { name: "1: show calls of tickets_list" }).click({ timeout: 5_000 });
  const outcome = other.page.locator(".calls .grid tbody .outcome");
  await outcome.waitFor({ timeout: 5_000 });
  equal([await outcome.textContent(), await outcome.getAttribute("title")], ["not listed", "Vary answered: the variant does not list this tool"], "the row");
  await outcome.click();
  const shown = await other.text(".panel .problem");
  holds(shown.includes("Vary answered: the variant does not list this tool · Who gets what · it may be one of tickets, which is down"), shown);
  await other.page.context().close();
});

await whoGetsWhat({ browser, address, token, ask, status });
await callHistory({ browser, address, token, status });

await check("the columns of the calls fit beside the servers", async () => {
  await visitor.first();
  await page.waitForSelector(".calls .grid");
  const [needed, width] = await page.locator(".calls .grid").evaluate((grid) => [grid.scrollWidth, grid.clientWidth]);
  holds(needed <= width, `the columns need ${needed} pixels of ${width}`);
  // Rows change as calls come, unless somebody points at them. The first words of an error have the room that is left.
  await page.locator(".calls .grid tbody tr").first().hover();
  const cut = await page.locator(".calls .grid :is(th, td:not(:has(.causes-of)), .name)").evaluateAll((all) => all.filter((it) => it.scrollWidth > it.clientWidth).map((it) => it.textContent));
  equal(cut, [], "cells that are cut");
});

await check("cards of problems are as high as what they say, and so is a list of no calls", async () => {
  await visitor.first();
  const cards = page.locator(".server-problems li");
  const empty = await cards.evaluateAll((all) => all.map((it) => {
    // What a program wrote is below, as wide as the card.
    const { true: [written] = [], false: beside } = Object.groupBy(it.children, ({ localName }) => localName === "pre");
    return it.clientHeight - Math.max(...beside.map((part) => part.offsetHeight)) - (written?.offsetHeight ?? 0);
  }));
  holds(empty.length > 2 && empty.every((pixels) => pixels < 24), `empty pixels: ${empty}`);
  await visitor.view("/now?q=no-such-call");
  await page.locator(".calls .empty").waitFor({ timeout: 5_000 });
  const beneath = await page.locator(".calls").evaluate((it) => it.getBoundingClientRect().bottom - it.lastElementChild.getBoundingClientRect().bottom);
  holds(beneath < 32, `${beneath} pixels`);
});

await check("on a phone, all views, and who called what, are in sight", async () => {
  const other = await Visitor.open(browser, await newAddress(address, token), { viewport: { width: 390, height: 800 } });
  await other.page.locator("nav .badge").waitFor({ timeout: 5_000 });
  // What is seen in the middle of an element, and not what covers it. Experiments may be cut: the row scrolls to the side.
  const covered = await other.page.locator("nav :is(li:not(:last-child) a, .badge)").evaluateAll((all) =>
    all.filter((it) => {
      const { x, y, width, height } = it.getBoundingClientRect();
      return !it.contains(document.elementFromPoint(x + width / 2, y + height / 2));
    }).map((it) => it.textContent),
  );
  equal(covered, [], "out of sight");
  holds((await other.page.locator("nav").boundingBox()).height <= 48, "the names of the views have more than one row");
  await other.page.waitForSelector(".calls .grid");
  const row = other.page.locator(".calls .grid tbody tr:has(td)").first();
  const boxes = await row.locator(":is(th, td):visible").evaluateAll((all) => all.map((it) => [it.className, Math.round(it.getBoundingClientRect().top), it.getBoundingClientRect().right <= innerWidth]));
  const line = (name) => boxes.find(([kind]) => kind === name)[1];
  equal(boxes.filter(([, , isInSight]) => !isInSight), [], "cells out of sight");
  equal([line("c-name"), line("c-time")], [line("c-outcome"), line("c-client")], "what is in one line");
  holds(line("c-name") < line("c-client"), "the client is not below the call");
  const small = await other.page.locator("main :is(button, select, summary, .plain a, .filters a, .calls .grid tbody tr:has(td)), nav a").evaluateAll((all) =>
    all.filter((it) => it.checkVisibility() && it.getBoundingClientRect().height < 40).map((it) => it.outerHTML.slice(0, 80)),
  );
  equal(small, [], "what is too small for a finger");
  await other.page.context().close();
});

await check("g and a letter go to a view, and a letter after another one does not", async () => {
  await visitor.view("/now");
  await page.locator("h1").focus();
  for (const [key, view] of Object.entries({ v: "variants", c: "calls", d: "draft", w: "who", p: "review", e: "experiments", n: "now" })) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await page.waitForFunction((view) => location.hash.startsWith(`#/${view}`) && document.activeElement.matches("h1, h2"), view);
  }
  for (const key of ["g", "x", "v"]) await page.keyboard.press(key);
  holds(new URL(page.url()).hash.startsWith("#/now"), "it left the view");
});

await check("keys lead to the search and show what there is, and characters that are typed do not", async () => {
  await visitor.view("/variants");
  await page.getByLabel("Filter tools").waitFor({ timeout: 5_000 });
  await page.keyboard.press("/");
  await page.keyboard.type("/?");
  equal(await page.getByLabel("Filter tools").inputValue(), "/?", "what is typed");
  await visitor.view("/review");
  await page.locator("h1").focus();
  await page.keyboard.press("?");
  const dialog = page.getByRole("dialog", { name: "Keys" });
  const keys = await dialog.locator("dt").allTextContents();
  equal([...keys.slice(0, 2), keys.at(-1)], ["/", "j, k", "g e"], "the keys");
  await isAccessible(page);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "hidden", timeout: 5_000 });
  equal(await page.evaluate(() => document.activeElement.localName), "h1", "the focus after Escape");
  await page.getByRole("button", { name: "Keys" }).click();
  await dialog.getByRole("button", { name: "Close" }).click();
  await dialog.waitFor({ state: "hidden", timeout: 5_000 });
  equal(await page.evaluate(() => document.activeElement.textContent), "Keys", "the focus after Close");
});

await check("j and k go through the rows of views without a grid, and Enter follows the link of a row", async () => {
  const row = () => page.evaluate(() => document.activeElement.closest("tr, li")?.textContent);
  for (const view of ["review", "experiments"]) {
    await visitor.view(`/${view}`);
    const rows = page.locator("main :is(.plain tbody tr, .server-problems li):visible");
    await rows.nth(1).waitFor({ timeout: 15_000 });
    await page.locator("h1").focus();
    for (const [key, at] of [["j", 0], ["j", 1], ["k", 0]]) {
      await page.keyboard.press(key);
      equal(await row(), await rows.nth(at).textContent(), `${view}: the row after ${key}`);
    }
  }
  await visitor.view("/who");
  await page.locator("main .plain tbody tr").first().waitFor({ timeout: 15_000 });
  await page.locator("h1").focus();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".answer");
});

await check("a tool that may destroy is confirmed by a button in the colour of danger, and one that only writes is not", async () => {
  const colors = [];
  for (const tool of ["files:write_file", "git:git_commit"]) {
    await visitor.view(`/calls?${new URLSearchParams({ tool, clients: "claude-code" })}`);
    await page.locator("main h2", { hasText: tool.split(":")[1] }).first().waitFor({ timeout: 5_000 });
    await page.getByLabel("repo_path").fill("/srv/site");
    await page.getByRole("button", { name: /^Call it as/ }).click();
    const confirm = page.getByRole("button", { name: "Call it 1 time" });
    colors.push(await confirm.evaluate((it) => getComputedStyle(it).backgroundColor));
    await isAccessible(page);
    await page.getByRole("button", { name: "Cancel" }).click();
  }
  equal(colors, ["rgb(168, 35, 27)", "rgb(11, 92, 173)"], "the colours");
});

await check("refused calls of a person are as many as the list has that the number leads to", async () => {
  const other = await Visitor.open(browser, await newAddress(address, token));
  const denied = { at: Date.now() / 1000, outcome: "denied", principal: "ann", rule: "access[0]", durationMs: 1, bytesIn: 1, bytesOut: 1 };
  const calls = ["tools/call", "prompts/get"].map((method, at) => ({ ...denied, id: 2 - at, method, target: `hidden-${at}` }));
  await other.page.route("**/api/last-calls", (route) => route.fulfill({ json: { calls } }));
  await other.page.route("**/api/status", (route) => route.fulfill({ json: { ...status, failures: failuresOf(calls) } }));
  await other.page.route("**/api/events", (route) => route.fulfill({ contentType: "text/event-stream", body: "" }));
  await other.page.reload();
  await other.view("/review");
  await other.page.getByRole("link", { name: "2: show refused calls of ann" }).click({ timeout: 5_000 });
  equal(new URL(other.page.url()).hash, "#/now?person=ann&outcome=denied&rule=access%5B0%5D", "the link");
  const shown = other.page.locator(".calls .grid tbody .outcome");
  await shown.first().waitFor({ timeout: 5_000 });
  equal(await shown.allTextContents(), ["denied", "denied"], "the calls");
  await other.page.context().close();
});

await check("names with markup are text", async () => {
  const tool = named(/<[a-z]/);
  await visitor.view(toolView(tool));
  holds((await visitor.text(".panel h2")).includes(tool.name), "the heading does not show the name");
  equal(await page.locator("main :is(img, script, b, iframe)").count(), 0, "elements of the name");
});

await check("characters that cannot be seen are visible, and text stays in its place", async () => {
  for (const [pattern, shown] of [[/\u200B/, "U+200B"], [/\u202E/, "U+202E"]]) {
    const tool = named(pattern);
    await visitor.view(toolView(tool));
    const heading = page.locator(".panel h2 bdi");
    await heading.filter({ hasText: shown }).waitFor({ timeout: 5_000 });
    equal(await heading.evaluate((it) => [it.dir, getComputedStyle(it).unicodeBidi]), ["auto", "isolate"], "its isolation");
    holds(!pattern.test(await page.locator("main").innerText()), `${shown} itself is in the page`);
  }
  // A word of another script is as it is written; one that mixes two looks like what it is not.
  equal(await page.evaluate(async () => (await import("/page/text.js")).plain("g\u0435t мир")), "g<U+0435>t мир", "a letter that looks like another");
});

await check("a name of 10,000 characters is cut, and shown whole on demand", async () => {
  const tool = named(/^.{10000}/su);
  await visitor.view(toolView(tool));
  await page.waitForFunction(() => document.querySelector(".panel h2 button"));
  holds((await visitor.text(".panel h2")).length < 300, "it is not cut");
  await page.locator(".panel h2 button").click();
  holds((await visitor.text(".panel h2")).includes(tool.name), "it is not whole");
  await visitor.fits();
});

await check("2,000 tools scroll at once", async () => {
  const server = catalog.servers.find((it) => catalog.tools.filter((tool) => tool.server === it).length >= 2_000) ?? missing("a server with 2,000 tools");
  const last = catalog.tools.filter((it) => it.server === server).at(-1);
  await visitor.view(`/variants?server=${server}`);
  const slowest = await page.locator(".grid").evaluate(async (grid) => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    let slowest = 0;
    for (let part = 1; part <= 20; part++) {
      const before = performance.now();
      grid.scrollTop = (grid.scrollHeight * part) / 20;
      await frame();
      slowest = Math.max(slowest, performance.now() - before);
      const { left, top, height } = grid.getBoundingClientRect();
      const middle = document.elementFromPoint(left + 20, Math.min(innerHeight, top + height) - 150);
      if (!middle?.closest("[data-cell]")) throw new Error(`no row at ${part * 5} %`);
    }
    return slowest;
  });
  holds((await page.locator(".grid tbody").innerText()).includes(last.name), "the last tool is not there");
  const rows = await page.locator(".grid tbody tr").count();
  holds(rows < 200, `${rows} rows are in the document`);
  return `${rows} rows in the document, at most ${Math.round(slowest)} ms a step`;
});

await check("a filter after scrolling shows what it finds", async () => {
  await visitor.view("/variants");
  await page.locator(".grid").evaluate((grid) => (grid.scrollTop = grid.scrollHeight));
  const tool = catalog.tools.find((it) => it.name.startsWith("delete_")) ?? missing("a delete_ tool");
  await page.getByLabel("Filter tools").fill("delete_");
  await page.locator(".grid tbody th").filter({ hasText: tool.name }).waitFor({ timeout: 5_000 });
});

await check("each hostile tool opens", async () => {
  const hostile = catalog.tools.filter((it) => /[^\w.-]|^__|.{200}/u.test(it.name));
  for (const tool of hostile.slice(0, 20)) {
    await visitor.view(toolView(tool, { variant: "compact" }));
    await page.waitForSelector(".panel .diff");
    await visitor.view("/variants");
  }
  return `${hostile.length} tools`;
});

await check("the keyboard alone opens a tool and returns from it", async () => {
  await visitor.first();
  await pressUntil("Tab", () => document.activeElement.textContent === "Variants");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement.matches("h1"));
  await pressUntil("Tab", () => document.activeElement.type === "search");
  await page.keyboard.type("delete_");
  await pressUntil("Tab", () => document.activeElement.matches("[data-cell]"));
  for (const key of ["ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
  const cell = await page.evaluate(() => document.activeElement.dataset.cell);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement.closest(".panel"));
  await page.keyboard.press("Escape");
  await page.waitForFunction((cell) => document.activeElement.dataset.cell === cell, cell);
});

/** Presses a key until the page is so, and checks that each stop can be seen. */
async function pressUntil(key, test) {
  for (let pressed = 0; pressed < 60; pressed++) {
    await page.keyboard.press(key);
    const isVisible = await page.evaluate(() => document.activeElement === document.body || getComputedStyle(document.activeElement).outlineStyle !== "none");
    holds(isVisible, `the focus is not visible on ${await page.evaluate(() => document.activeElement.outerHTML.slice(0, 90))}`);
    if (await page.evaluate(test)) return;
  }
  throw new Error(`${key} does not lead there`);
}

for (const view of VIEWS) {
  await check(`the keyboard reaches all of ${view}`, async () => {
    await visitor.view(`/${view}`);
    await page.evaluate(() => document.querySelector("h1").focus());
    const wanted = await page.locator("main :is(a[href], button, input, select, textarea, summary, [tabindex='0']):not([tabindex='-1'])").evaluateAll((all) => {
      const shown = all.filter((it) => it.checkVisibility() && !it.disabled);
      shown.forEach((it) => it.addEventListener("focus", () => (it.dataset.reached = "yes")));
      return shown.length;
    });
    for (let at = 0; at < wanted + 3; at++) await page.keyboard.press("Tab");
    const reached = await page.locator("main [data-reached]").count();
    holds(reached >= wanted, `${reached} of ${wanted} controls`);
  });
}

await check("what is typed stays while the status is read again", async () => {
  await visitor.view("/who");
  await page.getByText("All that the client sends").click();
  await page.getByLabel("name of its API key").fill("typed");
  const reads = () => page.waitForResponse((response) => response.url().endsWith("/api/status"));
  await reads();
  await reads();
  equal(await page.getByLabel("name of its API key").inputValue(), "typed", "the field");
});

await compareCalls({ visitor, ask, catalog, pressUntil });
await draftVariants({ visitor, ask, catalog, pressUntil });
await draftBesideOthers({ visitor, ask, folder });
const prefixedVisitor = await Visitor.open(browser, await newAddress(prefixed, prefixedToken));
await prefixedVisitor.first();
await draftPrefixed({ visitor: prefixedVisitor, ask: askPrefixed });
await check("tools have the names that clients see, and are found by them", async () => {
  const prefixed = await askPrefixed("/api/catalog");
  const { variants, name } = prefixed.tools[0];
  const shown = variants[prefixed.baseline].name;
  holds(shown !== name, `${name} has no prefix`);
  await prefixedVisitor.view(`/variants?${new URLSearchParams({ q: shown })}`);
  equal(await prefixedVisitor.text(".grid tbody tr:not(.group) th"), shown, "the name");
});
await check("drafts with prefixes cause no error", async () => equal(prefixedVisitor.problems, [], "problems"));
await prefixedVisitor.page.context().close();

/** What is looked at: each view, and what opens in it. The address, or the address and what is done there. */
const LOOKS = {
  ...Object.fromEntries(VIEWS.map((view) => [view, () => `/${view}`])),
  tool: () => toolView(named(/^git_log$/), { variant: "compact" }),
  narrowed: () => "/now?outcome=error",
  history: () => ["/experiments", openHistory],
  call: () => `/calls?${new URLSearchParams({ tool: "git:git_log" })}`,
  results: () => [`/calls?${new URLSearchParams({ tool: "git:git_log" })}`, makeCall],
  opened: () => [
    "/now",
    async (page) => {
      // The list waits while somebody points at it.
      await page.mouse.move(0, 0);
      await clickRenamed(page);
    },
  ],
  drafted: () => [
    `/draft?${new URLSearchParams({ variant: "few", tool: "git:git_log" })}`,
    (page) => page.waitForSelector(".totals[aria-busy=false]"),
  ],
  answer: async () => {
    const { client } = await clientWithoutDelete();
    return `/who?${new URLSearchParams({ initialize: JSON.stringify({ clientInfo: client }) })}`;
  },
};

for (const colorScheme of ["light", "dark"]) {
  for (const [width, height] of SIZES) {
    await look(colorScheme, width, height);
  }
}

/** Fails with what axe finds. */
async function isAccessible(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run({ resultTypes: ["violations"] }));
  const found = violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)}`));
  equal(found.slice(0, 4), [], "axe");
}

/** Opens each view in a window of a size: a picture, and what axe finds. */
async function look(colorScheme, width, height) {
  const other = await Visitor.open(browser, await newAddress(address, token), { viewport: { width, height }, colorScheme });
  for (const [name, address] of Object.entries(LOOKS)) {
    await check(`${name}, ${width} pixels wide, ${colorScheme}: it fits, and axe finds nothing`, async () => {
      const [fragment, act] = [await address()].flat();
      await other.view(fragment);
      await act?.(other.page);
      await other.page.waitForTimeout(400);
      await other.page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`) });
      await other.fits();
      await isAccessible(other.page);
    });
  }
  visitor.problems.push(...other.problems);
  await other.page.context().close();
}

await check("nothing moves while calls come", async () => {
  const other = await Visitor.open(browser, await newAddress(address, token));
  await other.page.waitForSelector(".calls .grid");
  const moved = await other.page.evaluate(async () => {
    let sum = 0;
    new PerformanceObserver((list) => list.getEntries().forEach((it) => (sum += it.value))).observe({ type: "layout-shift" });
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    return sum;
  });
  visitor.problems.push(...other.problems);
  await other.page.context().close();
  holds(moved < 0.02, `things moved by ${moved}`);
});

await check("without a token there is a field for it, and a wrong one is refused", async () => {
  const stranger = await Visitor.open(browser, new URL("/#/variants", address).href);
  const field = stranger.page.getByLabel("Token");
  await field.fill("wrong");
  await stranger.page.keyboard.press("Enter");
  await stranger.page.getByText("this is not the token;").waitFor({ timeout: 5_000 });
  await stranger.page.screenshot({ path: join(folder, "without-token.png") });
  await isAccessible(stranger.page);
  await field.fill(token);
  await stranger.page.keyboard.press("Enter");
  await stranger.page.waitForSelector(".chart");
  // The field takes what `vary open --print` prints, too.
  for (const typed of [await newAddress(address, token), new URL(await newAddress(address, token)).hash.replace("#code=", "")]) {
    await stranger.page.evaluate(() => sessionStorage.clear());
    await stranger.page.reload();
    await field.fill(typed);
    await stranger.page.keyboard.press("Enter");
    await stranger.page.waitForSelector(".chart");
  }
  const other = stranger.problems.filter((it) => !it.includes("401"));
  equal(other, [], "problems");
  await stranger.page.context().close();
});

await check("a new tab gets the token of one that is open, and shows the view of its address", async () => {
  const tab = await visitor.page.context().newPage();
  await tab.goto(new URL("/#/variants", address).href);
  await tab.waitForSelector(".chart");
  equal(tab.url(), new URL("/#/variants", address).href, "address");
  equal(await tab.locator(".locked").count(), 0, "fields for a token");
  await tab.close();
});

await check("an address opens the page once, and keeps no code", async () => {
  const once = await newAddress(address, token);
  const other = await Visitor.open(browser, once);
  await other.page.waitForSelector(".live");
  equal(other.page.url(), new URL("/", address).href, "address");
  await other.page.context().close();
  const late = await Visitor.open(browser, once);
  const problem = "the address has been opened already, or is older than a minute; run `vary open` again";
  equal(await late.text(".problem"), problem, "problem");
  // The tab goes on with an address that works.
  await late.page.evaluate((next) => location.assign(next), await newAddress(address, token));
  await late.page.waitForSelector(".live");
  await late.page.context().close();
});

await check("an address of no view shows what there is", async () => {
  for (const name of ["constructor", "__proto__", "nothing"]) {
    await visitor.view(`/${name}`);
    equal(await visitor.text("main .empty"), "There is no such view. The views are above.", name);
  }
  await visitor.first();
});

await check("all files of the page are at most 120 KB, compressed", async () => {
  const files = await page.evaluate(async () => {
    const loaded = performance.getEntriesByType("resource").map(({ name }) => name).filter((it) => it.includes("/page/"));
    return Promise.all([location.origin, ...new Set(loaded)].map(async (file) => (await fetch(file)).text()));
  });
  const bytes = files.reduce((sum, text) => sum + gzipSync(text).length, 0);
  holds(files.length > 20 && bytes <= 120_000, `${bytes} bytes in ${files.length} files`);
  return `${bytes} bytes in ${files.length} files`;
});

await stopCalls();
await visitor.first();
// The page reads the status every two seconds.
for (let read = 0; read < 2; read++) await page.waitForResponse((response) => response.url().endsWith("/api/status"));
await compareWithMetrics({ visitor, ask, metrics, variants: catalog.variants.map(({ id }) => id) });

await checkPictures();

await check("no error, no report of the policy, no request to others, no dialog", async () => equal(visitor.problems, [], "problems"));

await browser.close();
process.exit(failures() > 0 ? 1 : 0);
