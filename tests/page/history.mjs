// The checks of the list of calls: what narrows it, what leads to it, and what is known of calls that it has no more.

import { Visitor, check, equal, holds, newAddress } from "./browser.mjs";
import { failuresOf } from "./fixtures.mjs";

/** The beginning of a minute of today, twenty minutes ago unless that was yesterday. */
const MINUTE = Math.max(Math.floor(Date.now() / 60_000) - 20, new Date().setHours(0, 0, 0, 0) / 60_000) * 60;
/** A minute as one writes it with its day, and as an address has it. */
const WRITTEN = (seconds) => new Date(seconds * 1000).toLocaleString("sv").slice(0, 16);
const ADDRESS = (seconds) => new Date(seconds * 1000).toISOString().replace(":00.000", "");
/** Since when calls are kept, which has seconds in the last ten minutes only. */
const SINCE = (seconds) => (Date.now() / 1000 - seconds < 600 ? new Date(seconds * 1000).toLocaleTimeString("en-GB") : HERE(seconds));
const HERE = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });

/** Calls by number, the latest last: the minute and second, and what differs from an ordinary call. */
const CALLS = [
  [0, 5, {}],
  [0, 59, { principal: "bob", target: "read_file", server: "files" }],
  [1, 0, { outcome: "tool_error", error: "disk full" }],
  [1, 30, { outcome: "error", code: -32603, error: "Unknown tool: says the server", principal: "bob" }],
  [1, 59, { outcome: "error", code: -32602, error: "Unknown tool: gone", target: "gone", server: null, isUnknownTool: true }],
  [3, 0, { outcome: "denied", code: -32602, rule: "access[0]", server: null, target: "delete_file" }],
  [3, 1, { outcome: "cancelled", client: { name: "cursor", version: "1" } }],
];

const recorded = CALLS.map(([minute, second, members], at) => ({
  id: at + 1, at: MINUTE + 60 * minute + second + 0.5, method: "tools/call", target: "git_log", server: "git", upstreamName: members.target ?? "git_log",
  client: { name: "claude-code", version: "2" }, principal: "ann", variant: "compact", reason: "rule", outcome: "allowed", durationMs: 2, bytesIn: 1, bytesOut: 1, ...members,
})).reverse();

/** The members of the status of a gateway with an audit log. */
const AUDITED = { audit: { written: 7 } };

/** Runs the checks, each in a page of its own that gets these calls. */
export async function callHistory({ browser, address, token, status }) {
  const inPage = (title, run, { calls = recorded, view = "/now", auditFile = "/var/log/vary/audit.jsonl", statusOf = AUDITED, ...options } = {}) => check(title, async () => {
    const visitor = await Visitor.open(browser, await newAddress(address, token), options);
    const { page } = visitor;
    await page.route("**/api/last-calls", (route) => route.fulfill({ json: { calls, auditFile } }));
    await page.route("**/api/events", (route) => route.fulfill({ contentType: "text/event-stream", body: "" }));
    await page.route("**/api/status", (route) => route.fulfill({ json: { ...status, failures: failuresOf(calls), ...statusOf } }));
    await page.evaluate((view) => (location.hash = view), view);
    await page.reload();
    await page.waitForFunction(() => document.querySelector(".calls :is(.grid, .empty)"));
    const ids = async () => page.locator(".calls .grid tbody tr:has(td)").evaluateAll((rows) => rows.map((row) => row.innerText.split(/\s/)[0]));
    const times = (...ids) => ids.map((id) => new Date(calls.find((it) => it.id === id).at * 1000).toLocaleTimeString("en-GB"));
    const shows = async (...numbers) => {
      const expected = times(...numbers);
      // As many rows may be there before the filters hold.
      const isThere = (times) => `${[...document.querySelectorAll(".calls .grid tbody tr:has(td)")].map((row) => row.innerText.split(/\s/)[0])}` === `${times}`;
      await page.waitForFunction(isThere, expected, { timeout: 5_000 }).catch(() => {});
      equal(await ids(), expected, "the calls");
    };
    const detail = await run({ visitor, page, shows });
    equal(visitor.problems, [], "problems");
    await page.context().close();
    return detail;
  });
  const open = (page, name) => page.locator(".calls .grid tbody tr", { hasText: name }).first().locator("td").first().click();
  const hash = (page) => new URL(page.url()).hash;

  const busy = [...Array(1000)].map((_, at) => ({ ...recorded.at(-1), id: 2000 - at, at: MINUTE + 900 - at / 10 }));
  await inPage("a search that goes back to where only errors and refusals are kept says so above the rows, and in the chart", async ({ page, shows }) => {
    const gap = page.locator(".calls .recorded");
    equal(await gap.count(), 0, "the sentences about older calls without a filter");
    const since = busy.at(-1).at;
    await page.getByLabel("Search calls").fill("delete_file");
    await shows(6);
    const said = await gap.innerText();
    holds(said.startsWith(`Before ${SINCE(since)} only 100 errors and 100 refusals of all are kept.`) && said.includes("--tool delete_file"), said);
    equal(await page.getByRole("button", { name: "Copy the command" }).count(), 1, "commands");
    await page.getByLabel("Search calls").fill("");
    await page.getByLabel("At", { exact: true }).fill(`${WRITTEN(MINUTE)} to ${WRITTEN(MINUTE + 240)}`);
    await page.keyboard.press("Enter");
    await shows(6, 5, 4, 3);
    const width = await page.locator(".axis .gap").evaluate((it) => parseFloat(it.style.width));
    const bars = await page.locator(".axis a .back").evaluateAll((all) => all.map((it) => parseFloat(it.getAttribute("x"))));
    holds(width > 50 && width < 100 && bars[0] < width && bars.at(-1) > width - 10, `not kept up to ${width} %, with bars at ${bars}`);
    await page.getByLabel("At", { exact: true }).fill("");
    await page.keyboard.press("Enter");
    await gap.waitFor({ state: "hidden", timeout: 5_000 });
    await page.getByLabel("At", { exact: true }).fill(WRITTEN(MINUTE - 3_600));
    await page.keyboard.press("Enter");
    await gap.filter({ hasText: /^Vary started at [^.]*; nothing from before is here\.\s+Show them from the audit log\s*All of them:/ }).waitFor({ timeout: 5_000 });
  }, { calls: [...busy, ...recorded.filter(({ outcome }) => !["allowed", "cancelled"].includes(outcome))] });

  await inPage("the audit log shows what the filters want and is not kept, and then what others want", async ({ page, shows, visitor }) => {
    const queries = [];
    const earlier = { ...recorded.at(-1), id: 1e12, at: MINUTE - 60, target: "delete_file" };
    await page.route("**/api/recorded?*", (route) => {
      queries.push(new URL(route.request().url()).searchParams);
      // Two calls that are alike, of which Vary keeps one.
      return route.fulfill({ json: { calls: [{ ...recorded[1], id: 3e12 }, { ...recorded[1], id: 2e12 }, earlier], isCut: true } });
    });
    await page.getByLabel("Search calls").fill("delete_file");
    await shows(6);
    await page.getByRole("button", { name: "Show them from the audit log" }).click();
    await page.waitForFunction(() => document.querySelectorAll(".calls .grid tbody tr:has(td)").length === 3);
    const row = page.locator(".calls .grid tbody tr:has(td)").last();
    equal((await row.innerText()).split(/\s/)[0], new Date(earlier.at * 1000).toLocaleTimeString("en-GB"), "the call of the log");
    const said = await visitor.text(".calls .recorded");
    holds(said.startsWith(`Before ${SINCE(busy.at(-1).at)} 3 calls of the audit log, the last ones; it has no texts of errors, and “not listed” and “session lost” are “error” in it.`), said);
    await page.getByRole("button", { name: "Show earlier ones" }).click();
    await page.waitForFunction(() => document.querySelector(".calls .recorded").textContent.includes("6 calls"));
    equal(queries.map((it) => [it.get("q"), Number(it.get("to"))]), [["delete_file", busy.at(-1).at], ["delete_file", earlier.at]], "what was asked for");
    await row.locator("td").first().click();
    await page.locator(".panel #call").waitFor({ timeout: 5_000 });
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByLabel("Search calls").fill("delete_f");
    await page.waitForFunction(() => document.querySelector(".calls .recorded")?.textContent.includes("3 calls of the audit log"));
    equal([queries.length, queries.at(-1).get("q"), Number(queries.at(-1).get("to"))], [3, "delete_f", busy.at(-1).at], "what was asked for then");
    await page.getByLabel("Search calls").fill("no such tool");
    await page.locator(".calls p.empty", { hasText: "No call here matches the filters. Clear the filters" }).waitFor({ timeout: 5_000 });
  }, { calls: [...busy, recorded[1]] });

  await inPage("a call that Vary did not send on shows what decided that, and in its panel what the client read", async ({ page, visitor }) => {
    const causes = await page.locator(".calls .grid .causes-of").allInnerTexts();
    equal(causes.map((it) => it.trim()).slice(0, 2), ["by access[0]", "compact does not list it"], "the causes");
    await open(page, "delete_file");
    holds((await visitor.text(".panel")).includes("what the client read: the same as of a name that no server has"), await visitor.text(".panel"));
  }, { calls: recorded.slice(1).map((it) => ({ ...it, ...(it.error === undefined && it.outcome === "denied" && { error: "server `crm` is down: it ended" }) })) });

  const missed = { ...recorded[2], id: 9, server: "crm", target: "crm_find", outcome: "error", isUnknownTool: undefined, error: "server `crm` is down: it ended; it is tried again in 9 s" };
  const crm = { name: "crm", state: "down", since: 60, reason: "server `crm` is down: it ended", calls: { count: 0, errors: 0 } };
  await inPage("a server that is down shows whose calls did not reach it, and they are those of the server", async ({ visitor, page, shows }) => {
    holds((await visitor.text(".server-problems")).includes("1 call did not reach it (show them), of claude-code 2 · ann; the last one at "), await visitor.text(".server-problems"));
    await page.locator(".server-problems").getByRole("link", { name: "show them" }).click();
    await shows(9);
    equal(hash(page), "#/now?server=crm&outcome=error", "the address");
    const mayBe = page.locator(".server-problems").getByText("1 call of names that no server lists now may have meant it");
    await mayBe.getByRole("link").click();
    await shows(10);
  }, { calls: [{ ...missed, id: 10, at: missed.at + 1, server: null, target: "find", isUnknownTool: true }, missed, ...recorded], statusOf: { ...AUDITED, servers: [crm] } });

  const up = { ...crm, state: "up", reason: undefined };
  await inPage("a server that was down a moment ago shows whose calls did not reach it, and counts them", async ({ page }) => {
    await page.locator(".server-problems").getByText(/1 call did not reach it .*the last one at/).waitFor({ timeout: 5_000 });
    await page.locator("tbody").getByRole("link", { name: "1: show errors of crm" }).waitFor({ timeout: 5_000 });
  }, { calls: [{ ...missed, upstreamName: undefined }, ...recorded], statusOf: { ...AUDITED, servers: [up] } });

  const gone = { ...recorded[2], id: 8, server: null, isUnknownTool: undefined, error: "Session not found: begin a new one with initialize" };
  await inPage("a session that was lost is an outcome of its own, in the list, in its filter, and in the number of failed calls", async ({ page, shows, visitor }) => {
    holds((await visitor.text(".tiles")).replaceAll(/\s+/g, " ").includes(", 1 of them as sessions were lost"), await visitor.text(".tiles"));
    equal(await page.locator(".calls .grid tbody tr", { hasText: "session lost" }).count(), 1, "rows of it");
    await page.getByLabel("Outcome").selectOption("session lost");
    await shows(8);
    equal(hash(page), "#/now?outcome=session_lost", "the address");
    await page.getByLabel("Outcome").selectOption("protocol_error");
    await shows(4);
  }, { calls: [gone, ...recorded] });

  const unnamed = Array.from({ length: 3 }, (_, at) => ({ ...missed, id: 9 + at, server: undefined, client: undefined, variant: undefined, isUnknownTool: undefined, error: "the header Mcp-Session-Id is missing", principal: at ? "ann" : "bob" })).reverse();
  await inPage("calls that name no client have a card by their error, with the people, and so has a row of the table by error", async ({ page, shows }) => {
    const item = page.getByRole("list", { name: "clients that fail often" }).locator("li", { hasText: "name no client" });
    const shown = (await item.innerText()).replaceAll(/\s+/g, " ");
    holds(/^3 calls that name no client failed since .*\d\d:\d\d, of ann 2, bob 1 [\d:]{8}: the header Mcp-Session-Id is missing$/.test(shown), shown);
    await page.getByText("By error").click();
    await page.getByRole("region", { name: "Calls by error" }).getByRole("link", { name: "3: show calls of the header Mcp-Session-Id is missing" }).waitFor({ timeout: 5_000 });
    await item.getByRole("link", { name: "3: show errors of no client" }).click();
    await shows(11, 10, 9);
  }, { calls: [...unnamed, ...recorded] });

  await inPage("an open call is in the address: Back closes it, reload opens it, and its link can be copied", async ({ page, visitor }) => {
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await open(page, "read_file");
    holds((await visitor.text(".panel h3")).includes("read_file"), "another call is open");
    equal(hash(page), `#/now?call=2-${MINUTE + 59}-${recorded.find(({ id }) => id === 2).durationMs}`, "the address");
    await page.getByRole("button", { name: "Copy the link" }).click();
    await page.getByText("Copied.").waitFor({ timeout: 5_000 });
    equal(await page.evaluate(() => navigator.clipboard.readText()), page.url(), "the copied link");
    await page.reload();
    holds((await visitor.text(".panel h3")).includes("read_file"), "it is closed after a reload");
    equal(await page.locator(".calls .grid tbody tr [aria-selected=true]").first().innerText(), new Date((MINUTE + 59) * 1000).toLocaleTimeString("en-GB"), "the row");
    await page.goBack();
    await page.locator(".panel").waitFor({ state: "detached", timeout: 5_000 });
    await page.waitForFunction(() => document.activeElement.closest(".calls .grid"), null, { timeout: 5_000 });
    await open(page, "read_file");
    await page.locator(".panel #call").waitFor({ timeout: 5_000 });
    await page.keyboard.press("Escape");
    await page.locator(".panel").waitFor({ state: "detached", timeout: 5_000 });
    equal(hash(page), "#/now", "the address after it was closed");
  });

  for (const [what, key] of [["a call that is not kept", `99-${MINUTE}`], ["the number of a call of an earlier process", `2-${MINUTE - 300}`]]) {
    await inPage(`the address of ${what} says that it is not kept any more`, async ({ visitor }) => {
      // It is looked for in the audit log, which this gateway has none of.
      await visitor.page.getByText("The audit log cannot be read.").waitFor({ timeout: 5_000 }).catch(() => {});
      visitor.wanted(404);
      const shown = await visitor.text(".calls .problem");
      const command = `vary audit /var/log/vary/audit.jsonl --since ${ADDRESS(Number(key.split("-")[1])).replace("Z", ":00Z")}`;
      holds(/^The call of .*\d\d:\d\d is not kept any more\. Show earlier ones from the audit log All of them: /.test(shown) && shown.includes(command), shown);
    }, { view: `/now?call=${key}` });
  }

  await inPage("the link of a call that is in the audit log alone opens it, also where it had a number of Vary", async ({ page, visitor }) => {
    const logged = { ...recorded[0], id: 2 ** 48 + 7, at: MINUTE - 7_200.5, target: "delete_file", durationMs: 4.25 };
    const asked = [];
    await page.route("**/api/recorded?*", (route) => {
      asked.push(new URL(route.request().url()).search);
      return route.fulfill({ json: { calls: [logged, { ...logged, id: logged.id + 9, durationMs: 1 }], isCut: false } });
    });
    for (const id of [logged.id, 12]) {
      await visitor.view(`/now?call=${id}-${Math.floor(logged.at)}-4.25`);
      await page.locator(".panel #call", { hasText: "delete_file" }).waitFor({ timeout: 5_000 });
      holds((await visitor.text(".panel .facts")).includes("4.25 ms"), await visitor.text(".panel .facts"));
    }
    const second = Math.floor(logged.at);
    equal(asked, [`?from=${second - 1}&to=${second + 2}`], "what was asked for");
  });

  await inPage("a call shows its time here and in UTC", async ({ page, visitor }) => {
    await open(page, "read_file");
    const utc = new Date(recorded.at(-2).at * 1000).toISOString();
    const here = new Date(recorded.at(-2).at * 1000).toLocaleTimeString("en-GB", { timeZone: "Asia/Kolkata" });
    holds((await visitor.text(".panel .facts")).includes(`${here}; in UTC ${utc}`), `${here} and ${utc} are not among the facts`);
  }, { timezoneId: "Asia/Kolkata" });

  await inPage("a time shows the calls of five minutes before and after it, and two times those between them", async ({ page, shows, visitor }) => {
    const field = page.getByLabel("At", { exact: true });
    const write = async (text) => {
      await field.fill(text);
      await page.keyboard.press("Enter");
    };
    await write(WRITTEN(MINUTE - 300));
    await shows(2, 1);
    equal(hash(page), `#/now?${new URLSearchParams({ from: ADDRESS(MINUTE - 600), to: ADDRESS(MINUTE) })}`, "the address");
    const around = await field.inputValue();
    holds(around.endsWith(` to ${HERE(MINUTE)}`) && (await visitor.text(".figures")).startsWith(`2 calls of 7, ${around}, variant compact ·`), `the field has “${around}”`);
    await write(`${WRITTEN(MINUTE + 60)} to ${WRITTEN(MINUTE + 120)}`);
    await shows(5, 4, 3);
    await write("25:00");
    const problem = "“25:00” is not a time. Write 14:05, 2026-11-29 14:05, 10m ago or 2h ago, or 14:05 to 14:30.";
    await page.getByRole("alert").filter({ hasText: problem }).waitFor({ timeout: 5_000 });
    equal([await field.getAttribute("aria-invalid"), await field.inputValue()], ["true", "25:00"], "the mark and the text of the field");
    await shows(7, 6, 5, 4, 3, 2, 1);
    for (const [text, address] of Object.entries({ "1:05": /T..:00Z$/, "2026-11-28 14:05": /^2026-11-2[789]T..:00Z$/, "10m ago": /^....-..-..T..:..Z$/ })) {
      await write(text);
      await page.waitForFunction(() => !document.querySelector("#times"));
      const from = new URLSearchParams(hash(page).split("?")[1]).get("from");
      holds(address.test(from), `${text} is ${from}`);
    }
    await page.getByRole("combobox", { name: "Time" }).selectOption({ label: "the last hour" });
    equal(await field.inputValue(), "", "the field");
    await write("2026-11-28 14:05");
    const early = await visitor.text(".calls .recorded");
    holds(/^Vary started at .*\d\d:\d\d; nothing from before is here\.\s+Show them from the audit log\s+All of them: vary audit /.test(early), early);
    equal(await visitor.text(".calls p.empty"), "No call that Vary keeps matches the filters, and none from before its start is here. Clear the filters", "the empty list");
  });

  await inPage("a bar of the time axis has the calls of its minute, and leads to them by mouse and keyboard", async ({ page, shows }) => {
    const bars = page.getByRole("group", { name: "Calls by time" }).getByRole("link");
    const labels = await bars.evaluateAll((all) => all.map((it) => it.getAttribute("aria-label").split(": ")[1]));
    equal(labels, ["2 calls, 0 errors, 0 denied", "3 calls, 3 errors, 0 denied", "2 calls, 0 errors, 1 denied"], "the bars");
    await bars.nth(1).click();
    await shows(5, 4, 3);
    equal(await page.getByLabel("At", { exact: true }).inputValue(), HERE(MINUTE + 60), "the field");
    equal(await bars.evaluateAll((all) => all.map((it) => it.getAttribute("aria-current"))), [null, "true", null], "the marks");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Enter");
    await shows(2, 1);
    await page.keyboard.press("Enter");
    await shows(7, 6, 5, 4, 3, 2, 1);
    await page.goBack();
    await shows(2, 1);
  });

  await inPage("a bar with all calls is marked once it is chosen, and then shows them without a time", async ({ page }) => {
    const bar = page.getByRole("group", { name: "Calls by time" }).getByRole("link");
    for (const [mark, address] of [["true", /from=/], [null, /now$/]]) {
      await bar.click();
      await page.waitForFunction((mark) => document.querySelector(".axis a").getAttribute("aria-current") === mark, mark, { timeout: 5_000 });
      holds(address.test(hash(page)), hash(page));
    }
  }, { calls: recorded.slice(-2) });

  await inPage("the bars of calls that span hours are of several minutes", async ({ page, shows }) => {
    const bars = page.getByRole("group", { name: "Calls by time" }).getByRole("link");
    equal(await bars.count(), 2, "bars");
    await bars.first().click();
    await shows(1);
    holds((await bars.first().getAttribute("aria-label")).includes(" to "), "the label has one minute");
  }, { calls: [recorded[0], { ...recorded.at(-1), at: recorded.at(-1).at - 7_200 }] });

  await inPage("a person, an outcome and a server are chosen beside the client", async ({ page, shows }) => {
    const choose = (name, label) => page.getByRole("combobox", { name, exact: true }).selectOption({ label });
    await choose("Person", "bob");
    await shows(4, 2);
    await choose("Server", "files");
    await shows(2);
    await choose("Person", "all");
    await choose("Server", "all");
    const kinds = { "any error": [5, 4, 3], ok: [2, 1], "tool error": [3], error: [4], "not listed": [5], denied: [6], cancelled: [7] };
    for (const [label, numbers] of Object.entries(kinds)) {
      await choose("Outcome", label);
      await shows(...numbers);
    }
  });

  await inPage("errors and denied stay as toggles, whichever is set", async ({ page, shows }) => {
    const toggle = (text) => page.locator(".filters").getByRole("link", { name: text });
    await toggle("3 errors").click();
    await shows(5, 4, 3);
    equal(await toggle("3 errors").getAttribute("aria-current"), "true", "whether it is set");
    await toggle("1 denied").click();
    await shows(6);
    await toggle("1 denied").click();
    await shows(7, 6, 5, 4, 3, 2, 1);
  });

  await inPage("the numbers above are those of the lists that they lead to", async ({ page, shows, visitor }) => {
    holds((await visitor.text(".tiles")).includes("3 of 7"), await visitor.text(".tiles"));
    await page.getByRole("link", { name: "3: show errors since" }).click();
    await shows(5, 4, 3);
  });

  await inPage("the tools of the list are below it with who called them, and lead to their calls", async ({ page, shows, visitor }) => {
    await page.getByText("By tool").click();
    const table = page.getByRole("region", { name: "Calls by tool" });
    const rows = await table.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [0, 1, 2, 4, 5].map((at) => row.children[at].textContent.trim())));
    equal(rows[0], ["git_log", "4", "2", "claude-code 3, cursor 1", "ann 3, bob 1"], "the first row");
    await table.getByRole("link", { name: "2: show errors of git_log" }).click();
    await shows(4, 3);
    await table.getByRole("link", { name: "bob" }).click();
    await shows(4);
    equal(hash(page), "#/now?tool=git_log&outcome=error&person=bob", "the address");
    holds((await visitor.text(".filters")).includes("tool: git_log"), "the tool cannot be taken away");
  });

  await inPage("an empty list says since when there is none, and where earlier calls are", async ({ visitor }) => {
    const shown = await visitor.text(".calls .empty");
    holds(/^No call since Vary started at .*\d\d:\d\d\. .* All of them: vary audit '\/srv\/the log\.jsonl'/.test(shown), shown);
  }, { calls: [], auditFile: "/srv/the log.jsonl" });

  const notes = {
    "where the audit log is not a file that one may know": [AUDITED, "All of them are where audit in the configuration sends them."],
    "without an audit log": [{ audit: undefined }, "To keep all of them, set audit: {to: file /var/log/vary/audit.jsonl} in the configuration."],
  };
  for (const [where, [statusOf, expected]] of Object.entries(notes)) {
    await inPage(`${where}, the end of the list says what to do`, async ({ visitor }) => {
      const shown = await visitor.text(".calls .older");
      holds(shown.endsWith(expected), shown);
    }, { auditFile: null, statusOf });
  }

  await inPage("an error begins in the row of its call", async ({ page }) => {
    const cell = page.locator(".calls .grid tbody tr", { hasText: "tool error" }).locator(".c-name");
    equal(await cell.textContent(), "git_log disk full", "the cell");
  });

  const seen = { ...AUDITED, clients: [{ client: { name: "claude-code", version: "2" }, variant: "compact", reason: "rule", requests: 9, calls: 6, last: MINUTE }] };
  await inPage("a client that fails often is above the calls, and leads to its errors", async ({ page, shows }) => {
    const item = page.getByRole("list", { name: "clients that fail often" }).locator("li", { hasText: "client claude-code" });
    const shown = (await item.innerText()).replaceAll("\u00A0", " ");
    holds(/^client claude-code failed 3 of 6 calls since .*\d\d:\d\d \(50 %\): git_log 2, gone 1\n[\d:]{8}: Vary answered: the variant does not list this tool\n1 time: Unknown tool: says the server\n1 time: disk full$/.test(shown), shown);
    await item.getByRole("link", { name: "3: show errors of claude-code" }).click();
    await shows(5, 4, 3);
    equal(hash(page), "#/now?outcome=error&client=claude-code", "the address");
  }, { statusOf: seen });

  const twice = recorded.map((call) => ([3, 4].includes(call.id) ? { ...call, error: "no such file\nat line 1" } : call));
  await inPage("of a client that fails often, the most frequent error is shown", async ({ page }) => {
    const last = page.getByRole("list", { name: "clients that fail often" }).locator("li", { hasText: "client claude-code" }).locator(".last").first();
    holds(/^[\d:]{8}, 2 times: no such file$/.test(await last.innerText()), await last.innerText());
  }, { calls: twice, statusOf: seen });

  const focused = (page) => page.evaluate(() => document.activeElement.closest("tr")?.innerText.split(/\s/)[0] ?? document.activeElement.localName);
  const time = (id) => new Date(recorded.find((it) => it.id === id).at * 1000).toLocaleTimeString("en-GB");
  const isOpen = (page, id) => page.waitForFunction((key) => location.hash.includes(`call=${key}-`) && document.activeElement.id === "call", id, { timeout: 5_000 });

  const growing = [...recorded];
  await inPage("beside an open call the keys of a list open its neighbours, and Escape returns to its row though calls came", async ({ page, visitor }) => {
    await open(page, "read_file");
    await isOpen(page, 2);
    for (const [key, id] of [["ArrowUp", 3], ["k", 4], ["j", 3], ["ArrowDown", 2], ["j", 1], ["j", 1], ["k", 2]]) {
      await page.keyboard.press(key);
      await isOpen(page, id);
    }
    await page.keyboard.press("Control+k");
    growing.unshift({ ...recorded[0], id: 8, at: recorded[0].at + 1 }, { ...recorded[0], id: 9, at: recorded[0].at + 2 });
    await page.getByRole("button", { name: "show them" }).waitFor({ timeout: 9_000 });
    equal(await visitor.text(".held"), "held: 2 new show them", "what the list says");
    equal([await page.getByRole("status").filter({ hasText: "held" }).count(), new URL(page.url()).hash], [1, `#/now?call=2-${MINUTE + 59}-${recorded.find(({ id }) => id === 2).durationMs}`], "the status, and the address");
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.activeElement.closest("tr"), null, { timeout: 5_000 });
    equal(await focused(page), time(2), "the row with the focus");
    equal(await page.locator(".calls .grid tbody tr:has(td)").count(), 9, "rows");
    await page.keyboard.press("ArrowUp");
    equal(await focused(page), time(3), "the row above");
  }, { calls: growing });

  const waiting = [...recorded];
  await inPage("a list that waits for the pointer says how many calls are new, and shows them on demand", async ({ page, shows }) => {
    await page.locator(".calls .grid tbody tr:has(td)").first().hover();
    waiting.unshift({ ...recorded[0], id: 8, at: recorded[0].at + 1 });
    await page.getByRole("button", { name: "show them" }).click({ timeout: 9_000 });
    await shows(8, 7, 6, 5, 4, 3, 2, 1);
    await page.getByRole("button", { name: "show them" }).waitFor({ state: "detached", timeout: 5_000 });
  }, { calls: waiting });

  await inPage("the search is left by Escape and by the arrow, and j leads into the list from anywhere", async ({ page, shows }) => {
    await page.locator(".calls .grid tbody tr:has(td)").nth(2).locator("th").focus();
    for (const [typed, id] of [["git", 5], ["jk/?", 7]]) {
      await page.keyboard.press("/");
      await page.keyboard.type(typed);
      equal(await page.getByLabel("Search calls").inputValue(), typed, "the search");
      await page.keyboard.press("Escape");
      equal([await page.getByLabel("Search calls").inputValue(), await focused(page), hash(page)], ["", "input", "#/now"], "after one Escape");
      await page.keyboard.press("Escape");
      equal(await focused(page), time(id), "the focus after another one");
    }
    await page.keyboard.press("/");
    await page.keyboard.type("disk");
    await shows(3);
    await page.keyboard.press("ArrowDown");
    equal(await focused(page), time(3), "the focus after the arrow");
    await page.keyboard.press("/");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await page.locator("h1").focus();
    await page.keyboard.press("Control+j");
    equal(await focused(page), "h1", "the focus after a key with a modifier");
    await page.keyboard.press("j");
    equal(await page.evaluate(() => document.activeElement.matches(".calls [data-cell]")), true, "whether the list has the focus");
  });

  await inPage("on a phone a button shows the filters, and says how many are set", async ({ page, shows }) => {
    const person = page.getByRole("combobox", { name: "Person", exact: true });
    equal(await person.isVisible(), false, "whether the filters are in sight at first");
    await page.getByRole("button", { name: "Filters (1)" }).click();
    await person.selectOption("bob");
    await shows(4);
    await page.getByRole("button", { name: "Filters (2)" }).waitFor({ timeout: 5_000 });
    const outside = await page.locator(".calls .choices .field").evaluateAll((all) => all.filter((it) => !it.checkVisibility() || it.getBoundingClientRect().right > innerWidth).map((it) => it.textContent));
    equal(outside, [], "fields out of sight");
    const [needed, width] = await page.locator(".calls .choices").nth(1).evaluate((it) => [it.scrollWidth, it.clientWidth]);
    holds(needed <= width, `the filters need ${needed} pixels of ${width}`);
  }, { view: "/now?outcome=error", viewport: { width: 390, height: 800 } });

  await inPage("the command for older calls has the filters of the list, and can be copied", async ({ page }) => {
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("button", { name: "Copy the command" }).click();
    await page.getByText("Copied.").waitFor({ timeout: 5_000 });
    const command = "vary audit /var/log/vary/audit.jsonl --who ann --client 'it'\\''s' --outcome denied --since 2026-11-29T09:31:00Z --until 2026-11-29T09:32:00Z";
    equal(await page.evaluate(() => navigator.clipboard.readText()), command, "the copied text");
    equal(await page.locator(".calls .recorded code").innerText(), command, "the text");
  }, { view: `/now?${new URLSearchParams({ person: "ann", client: "it's", outcome: "denied", from: "2026-11-29T09:31Z", q: "x", tool: "a\u202Eb" })}` });

  const slow = [{ ...recorded[0], outcome: "allowed", durationMs: 9_128, waitedMs: 9_070, serverMs: 51.4 }];
  await inPage("a call that waited for its server says so", async ({ page, visitor }) => {
    await open(page, "git_log");
    const expected = "9128 ms; of that the server 51.4 ms, and 9070 ms until the server got it: it waited for a start, a turn, a connection or an answer of the client";
    holds((await visitor.text(".panel .facts")).includes(expected), await visitor.text(".panel .facts"));
  }, { calls: slow });

  const use = (version, variant, calls) => ({ client: { name: "claude-code", version }, variant, reason: "rule", rule: "clients[0]", requests: 9, calls, last: MINUTE });
  const versions = recorded.map((it) => (it.id === 3 ? { ...it, client: { name: "claude-code", version: "3" } } : it));
  const ofVersions = failuresOf(versions);
  const table = (page) => page.getByRole("region", { name: "Clients", exact: true });
  const cells = (page) => table(page).locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.children].slice(0, -1).map((it) => it.textContent)));
  await inPage("the numbers of a client lead to the calls of its version and variant, and count since the start, too, what has left the list", async ({ page, shows }) => {
    equal(await cells(page), [["claude-code 2", "compact", "5", "2"], ["claude-code 3", "compact", "1", "41"]], "the rows");
    holds(/ since .*\d\d:\d\d$/.test(await page.locator("h2", { hasText: /^Clients/ }).textContent()), "the period");
    await table(page).getByRole("link", { name: "1: show calls of claude-code 3" }).click();
    await shows(3);
    await page.goBack();
    await table(page).getByRole("link", { name: "2: show errors of claude-code 2" }).click();
    await shows(5, 4);
    equal(hash(page), "#/now?client=claude-code&version=2&variant=compact&reason=rule&outcome=error", "the address");
  }, { calls: versions, statusOf: { failures: [...ofVersions, { ...ofVersions.find(({ client }) => client.version === "3"), error: "of before", count: 40 }], clients: [use("2", "compact", 5), use("3", "compact", 1)], people: [] } });

  const savingsOf = (...people) => ({ ...status.savings, clients: people.map((person) => ({ client: "claude-code", person, with: 1, without: 2 })) });
  const people = ["ann", "ann", "bob", "carol", "dave", "erin"].map((principal, at) => ({ ...recorded[5], id: 9 - at, principal }));
  const person = { person: "ann", requests: 9, calls: 9, refused: 0, tokens: 0, last: MINUTE };
  const long = { ...use("2026.11.29-nightly", "a-variant-with-a-long-name", 0), client: { name: "<b>evil</b>\u202E" + "n".repeat(180), version: "2026.11.29-nightly" } };
  for (const width of [1440, 1920]) {
    await inPage(`at ${width} pixels, clients have their people, and nothing is out of sight`, async ({ page, shows }) => {
      equal((await cells(page)).at(-1), ["claude-code 2", "ann, bob, carol, dave, erin", "compact", "6", "0"], "the row");
      for (const name of ["Clients", "Servers"]) {
        const [needed, room] = await page.getByRole("region", { name, exact: true }).evaluate((it) => [it.scrollWidth, it.clientWidth]);
        holds(needed <= room, `${name} needs ${needed} pixels of ${room}`);
      }
      await table(page).getByRole("link", { name: "ann" }).click();
      await shows(9, 8);
    }, { calls: people, viewport: { width, height: 900 }, statusOf: { clients: [long, use("2", "compact", 6)], people: [person], savings: savingsOf("ann", "bob", "carol", "dave", "erin") } });
  }

  await inPage("a client of which no call is kept has the person of its savings, and its link chooses that", async ({ page }) => {
    equal(await cells(page), [["claude-code 2", "ann", "compact", "6", "0"]], "the row");
    const address = await table(page).getByRole("link", { name: "claude-code" }).first().getAttribute("href");
    holds(address.includes("person=ann"), address);
  }, { calls: recorded.slice(0, 1), statusOf: { clients: [use("2", "compact", 6)], people: [person], savings: savingsOf("ann") } });

  await inPage("the chart has the colours of the list, and no empty hour", async ({ page, visitor }) => {
    const [inChart, inList] = await page.evaluate(() => [getComputedStyle(document.querySelector(".axis .denied")).fill, getComputedStyle(document.querySelector(".outcome.denied")).color]);
    equal(inChart, inList, "the colour of denied calls");
    equal((await visitor.text(".axis figcaption")).replace(/\s+/g, " ").match(/calls.*bar/)?.[0], "calls errors denied · 1 minute a bar", "the legend");
    const from = await page.locator(".axis a").first().evaluate((it) => parseFloat(it.querySelector("rect").getAttribute("x")));
    equal(from, 60, "where the first of four minutes begins, in percent");
  });

  const down = (at) => ({ name: `server-${at}`, state: "down", since: 9, reason: "refused", calls: { count: 0, errors: 0 } });
  await inPage("of many servers and problems the first ones are shown, and all on demand", async ({ page }) => {
    const problems = page.locator(".server-problems li", { hasText: "refused" });
    const rows = page.getByRole("region", { name: "Servers", exact: true }).locator("tbody tr");
    equal([await problems.count(), await rows.count()], [6, 10], "at first");
    await page.getByRole("button", { name: "show all 24" }).click();
    await page.getByRole("button", { name: "show all 25 problems" }).click();
    equal([await problems.count(), await rows.count()], [24, 24], "on demand");
    equal(await page.getByRole("button", { name: "show less" }).count(), 2, "buttons");
  }, { statusOf: { servers: Array.from({ length: 24 }, (_, at) => down(at)) } });
}
