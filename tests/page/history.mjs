// The checks of the list of calls: what narrows it, what leads to it, and what is known of calls that it has no more.

import { Visitor, check, equal, holds, newAddress } from "./browser.mjs";

/** The beginning of a minute of today, twenty minutes ago unless that was yesterday. */
const MINUTE = Math.max(Math.floor(Date.now() / 60_000) - 20, new Date().setHours(0, 0, 0, 0) / 60_000) * 60;
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
    await page.route("**/api/status", (route) => route.fulfill({ json: { ...status, ...statusOf } }));
    await page.evaluate((view) => (location.hash = view), view);
    await page.reload();
    await page.waitForFunction(() => document.querySelector(".calls :is(.grid, .empty)"));
    const ids = async () => page.locator(".calls .grid tbody tr:has(td)").evaluateAll((rows) => rows.map((row) => row.innerText.split(/\s/)[0]));
    const times = (...ids) => ids.map((id) => new Date(calls.find((it) => it.id === id).at * 1000).toLocaleTimeString("en-GB"));
    const shows = async (...numbers) => {
      const expected = times(...numbers);
      await page.waitForFunction((all) => document.querySelectorAll(".calls .grid tbody tr:has(td)").length === all, expected.length, { timeout: 5_000 });
      equal(await ids(), expected, "the calls");
    };
    const detail = await run({ visitor, page, shows });
    equal(visitor.problems, [], "problems");
    await page.context().close();
    return detail;
  });
  const open = (page, name) => page.locator(".calls .grid tbody tr", { hasText: name }).first().locator("td").first().click();
  const hash = (page) => new URL(page.url()).hash;

  await inPage("an open call is in the address: Back closes it, reload opens it, and its link can be copied", async ({ page, visitor }) => {
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await open(page, "read_file");
    holds((await visitor.text(".panel h3")).includes("read_file"), "another call is open");
    equal(hash(page), `#/now?call=2-${MINUTE + 59}`, "the address");
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
      const shown = await visitor.text(".calls .problem");
      holds(/^The call of .*\d\d:\d\d is not kept any more\. Older calls: vary audit \/var\/log\/vary\/audit\.jsonl reads them from the audit log\.$/.test(shown), shown);
    }, { view: `/now?call=${key}` });
  }

  await inPage("a call shows its time here and in UTC", async ({ page, visitor }) => {
    await open(page, "read_file");
    const utc = new Date(recorded.at(-2).at * 1000).toISOString();
    const here = new Date(recorded.at(-2).at * 1000).toLocaleTimeString("en-GB", { timeZone: "Asia/Kolkata" });
    holds((await visitor.text(".panel .facts")).includes(`${here}; in UTC ${utc}`), `${here} and ${utc} are not among the facts`);
  }, { timezoneId: "Asia/Kolkata" });

  await inPage("the calls of a minute are shown, and those until another", async ({ page, shows }) => {
    const write = async (label, text) => {
      await page.getByLabel(label, { exact: true }).fill(text);
      await page.keyboard.press("Enter");
    };
    await write("At", HERE(MINUTE));
    await shows(2, 1);
    equal(hash(page), `#/now?${new URLSearchParams({ from: new Date(MINUTE * 1000).toISOString().replace(":00.000", "") })}`, "the address");
    await write("until", HERE(MINUTE + 60));
    await shows(5, 4, 3, 2, 1);
    await write("until", "25:00");
    const problem = "“25:00” is not a time. Write 14:05, 2026-11-29 14:05, 10m ago or 2h ago.";
    await page.getByRole("alert").filter({ hasText: problem }).waitFor({ timeout: 5_000 });
    equal(await page.getByLabel("until").getAttribute("aria-invalid"), "true", "the mark of the field");
    await shows(2, 1);
    const times = { "1:05": /T..:05Z$/, "2026-11-28 14:05": /^2026-11-2[789]T..:05Z$/, "10m ago": /^....-..-..T..:..Z$/ };
    for (const [text, address] of Object.entries(times)) {
      await write("until", text);
      await page.waitForFunction(() => !document.querySelector("#times"));
      const to = new URLSearchParams(hash(page).split("?")[1]).get("to");
      holds(address.test(to), `${text} is ${to}`);
    }
    await page.getByRole("combobox", { name: "Time" }).selectOption({ label: "the last hour" });
    equal(await page.getByLabel("At", { exact: true }).inputValue(), "", "the field");
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
    holds((await visitor.text(".tiles")).includes("3 of 7"), "they are not in the tile");
    await page.getByRole("link", { name: "3: show errors of the last hour", exact: true }).click();
    await shows(5, 4, 3);
    await page.getByRole("link", { name: "7: show calls of the last hour" }).click();
    await shows(7, 6, 5, 4, 3, 2, 1);
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
    holds(/^No call since Vary started at .*\d\d:\d\d\. .* Older calls: vary audit '\/srv\/the log\.jsonl' reads them/.test(shown), shown);
  }, { calls: [], auditFile: "/srv/the log.jsonl" });

  const notes = {
    "where the audit log is not a file that one may know": [AUDITED, "Older calls are where audit in the configuration sends them."],
    "without an audit log": [{ audit: undefined }, "To keep older calls, set audit: {to: file /var/log/vary/audit.jsonl} in the configuration."],
  };
  for (const [where, [statusOf, expected]] of Object.entries(notes)) {
    await inPage(`${where}, the end of the list says what to do`, async ({ visitor }) => {
      const shown = await visitor.text(".calls .choices.note");
      holds(shown.endsWith(expected), shown);
    }, { auditFile: null, statusOf });
  }

  await inPage("an error begins in the row of its call", async ({ page }) => {
    const cell = page.locator(".calls .grid tbody tr", { hasText: "tool error" }).locator(".c-name");
    equal(await cell.textContent(), "git_log disk full", "the cell");
  });

  await inPage("a client that fails often is above the calls, and leads to its errors", async ({ page, shows }) => {
    const item = page.getByRole("list", { name: "clients that fail often" }).locator("li", { hasText: "claude-code" });
    const shown = (await item.innerText()).replaceAll("\u00A0", " ");
    holds(/^client claude-code failed 3 of 6 calls in the last hour \(50 %\)\n.* Unknown tool: gone$/.test(shown), shown);
    await item.getByRole("link", { name: "3: show errors of claude-code" }).click();
    await shows(5, 4, 3);
    equal(hash(page), "#/now?client=claude-code&outcome=error&minutes=60", "the address");
  });

  const twice = recorded.map((call) => ([3, 4].includes(call.id) ? { ...call, error: "no such file\nat line 1" } : call));
  await inPage("of a client that fails often, the most frequent error is shown", async ({ page }) => {
    const last = page.getByRole("list", { name: "clients that fail often" }).locator(".last");
    equal(await last.innerText(), `${new Date((MINUTE + 90) * 1000).toLocaleTimeString("en-GB")} no such file (2 of them)`, "its error");
  }, { calls: twice });

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
