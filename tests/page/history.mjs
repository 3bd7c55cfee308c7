// The checks of the list of calls: what narrows it, what leads to it, and what is known of calls that it has no more.

import { Visitor, check, equal, holds, newAddress } from "./browser.mjs";

/** The beginning of a minute of today, twenty minutes ago unless that was yesterday. */
const MINUTE = Math.max(Math.floor(Date.now() / 60_000) - 20, new Date().setHours(0, 0, 0, 0) / 60_000) * 60;
/** A minute as one writes it with its day, and as an address has it. */
const WRITTEN = (seconds) => new Date(seconds * 1000).toLocaleString("sv").slice(0, 16);
const ADDRESS = (seconds) => new Date(seconds * 1000).toISOString().replace(":00.000", "");
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

  const busy = [...Array(1000)].map((_, at) => ({ ...recorded.at(-1), id: 2000 - at, at: MINUTE + 900 - at / 10 }));
  await inPage("where only errors and refusals are kept, the list says that calls which succeeded are missing", async ({ page, shows }) => {
    const gap = page.locator(".calls .recorded");
    equal(await gap.count(), 1, "the sentences about older calls");
    const since = new Date(busy.at(-1).at * 1000).toLocaleTimeString("en-GB");
    holds((await gap.innerText()).startsWith(`Of the calls before ${since}, only errors and refusals are kept here: those that succeeded are missing.`), "the time");
    await page.getByLabel("Search calls").fill("delete_file");
    await shows(6);
    holds((await gap.innerText()).includes("--tool delete_file"), "the command does not name the tool");
    await page.getByLabel("Search calls").fill("");
    await page.getByRole("combobox", { name: "Time" }).selectOption({ index: 1 });
    await gap.waitFor({ state: "hidden", timeout: 5_000 });
  }, { calls: [...busy, ...recorded.filter(({ outcome }) => !["allowed", "cancelled"].includes(outcome))] });

  const missed = { ...recorded[2], id: 9, server: undefined, target: "crm_find", outcome: "error", error: "server `crm` is down: it ended; it is tried again in 9 s" };
  const crm = { name: "crm", state: "down", since: 60, reason: "server `crm` is down: it ended", calls: { count: 0, errors: 0 } };
  await inPage("a server that is down shows whose calls did not reach it, and they are those of the server", async ({ visitor, page, shows }) => {
    holds((await visitor.text(".server-problems")).includes("1 call did not reach it (show them), of claude-code 2 · ann"), await visitor.text(".server-problems"));
    await page.locator(".server-problems").getByRole("link", { name: "show them" }).click();
    await shows(9);
    equal(hash(page), "#/now?server=crm&outcome=error", "the address");
  }, { calls: [missed, ...recorded], statusOf: { ...AUDITED, servers: [crm] } });

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
      const command = `vary audit /var/log/vary/audit.jsonl --since ${ADDRESS(Number(key.split("-")[1])).replace("Z", ":00Z")}`;
      holds(/^The call of .*\d\d:\d\d is not kept any more\. Older calls: /.test(shown) && shown.includes(`${command} reads them from the audit log.`), shown);
    }, { view: `/now?call=${key}` });
  }

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

  const focused = (page) => page.evaluate(() => document.activeElement.closest("tr")?.innerText.split(/\s/)[0] ?? document.activeElement.localName);
  const time = (id) => new Date(recorded.find((it) => it.id === id).at * 1000).toLocaleTimeString("en-GB");
  const isOpen = (page, id) => page.waitForFunction((key) => location.hash.includes(`call=${key}-`) && document.activeElement.id === "call", id, { timeout: 5_000 });

  const growing = [...recorded];
  await inPage("beside an open call the keys of a list open its neighbours, and Escape returns to its row though calls came", async ({ page, visitor }) => {
    await open(page, "read_file");
    for (const [key, id] of [["ArrowUp", 3], ["k", 4], ["j", 3], ["ArrowDown", 2], ["j", 1], ["j", 1], ["k", 2]]) {
      await page.keyboard.press(key);
      await isOpen(page, id);
    }
    await page.keyboard.press("Control+k");
    growing.unshift({ ...recorded[0], id: 8, at: recorded[0].at + 1 }, { ...recorded[0], id: 9, at: recorded[0].at + 2 });
    await page.getByRole("button", { name: "show them" }).waitFor({ timeout: 9_000 });
    equal(await visitor.text(".held"), "held: 2 new show them", "what the list says");
    equal([await page.getByRole("status").filter({ hasText: "held" }).count(), new URL(page.url()).hash], [1, `#/now?call=2-${MINUTE + 59}`], "the status, and the address");
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
    const command = "vary audit /var/log/vary/audit.jsonl --who ann --client 'it'\\''s' --since 2026-11-29T09:31:00Z";
    equal(await page.evaluate(() => navigator.clipboard.readText()), command, "the copied text");
    equal(await page.locator(".calls .choices.note code").innerText(), command, "the text");
  }, { view: `/now?${new URLSearchParams({ person: "ann", client: "it's", from: "2026-11-29T09:31Z", q: "x", tool: "a\u202Eb" })}` });

  const slow = [{ ...recorded[0], outcome: "allowed", durationMs: 9_128, waitedMs: 9_070, serverMs: 51.4 }];
  await inPage("a call that waited for its server says so", async ({ page, visitor }) => {
    await open(page, "git_log");
    const expected = "9128 ms; of that the server 51.4 ms, and 9070 ms until the server got it: it waited for a start, a turn, a connection or an answer of the client";
    holds((await visitor.text(".panel .facts")).includes(expected), await visitor.text(".panel .facts"));
  }, { calls: slow });

  const use = (version, variant, calls) => ({ client: { name: "claude-code", version }, variant, reason: "rule", rule: "clients[0]", requests: 9, calls, last: MINUTE });
  const versions = recorded.map((it) => (it.id === 3 ? { ...it, client: { name: "claude-code", version: "3" } } : it));
  await inPage("the numbers of a client lead to the calls of its version and variant, and say which period they have", async ({ page, shows }) => {
    const table = page.getByRole("region", { name: "Clients", exact: true });
    const rows = await table.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [0, 1, 3, 4].map((at) => row.children[at].textContent)));
    equal(rows, [["claude-code 2", "compact", "5", "2"], ["claude-code 3", "compact", "1", "1"]], "the rows");
    equal(await page.locator("h2", { hasText: /^Clients/ }).locator(".mark").allTextContents().then((all) => all.at(-1)), ", failed in the last hour", "the period");
    const [needed, width] = await table.evaluate((it) => [it.scrollWidth, it.clientWidth]);
    holds(needed <= width, `the table needs ${needed} pixels of ${width}`);
    await table.getByRole("link", { name: "1: show calls of claude-code 3" }).click();
    await shows(3);
    await page.goBack();
    await table.getByRole("link", { name: "2: show errors of claude-code 2" }).click();
    await shows(5, 4);
    equal(hash(page), "#/now?client=claude-code&version=2&variant=compact&reason=rule&outcome=error&minutes=60", "the address");
  }, { calls: versions, statusOf: { clients: [use("2", "compact", 5), use("3", "compact", 1)], people: [] } });

  await inPage("the chart has the colours of the list, and no empty hour", async ({ page, visitor }) => {
    const [inChart, inList] = await page.evaluate(() => [getComputedStyle(document.querySelector(".axis .denied")).fill, getComputedStyle(document.querySelector(".outcome.denied")).color]);
    equal(inChart, inList, "the colour of denied calls");
    equal((await visitor.text(".axis figcaption")).replace(/\s+/g, " ").split(" ").slice(1, -1).join(" "), "calls errors denied · 1 minute a bar", "the legend");
    const from = await page.locator(".axis a").first().evaluate((it) => parseFloat(it.querySelector("rect").getAttribute("x")));
    equal(from, 60, "where the first of four minutes begins, in percent");
  });

  const many = Array.from({ length: 1_000 }, (_, at) => ({ ...recorded[0], id: 2_000 - at, at: Date.now() / 1000 - 100 - at / 10 }));
  await inPage("a period that is shorter since there were too many calls says why", async ({ visitor }) => {
    const shown = await visitor.text(".tiles");
    holds(shown.includes("calls failed in the last minute: the history holds 1,000 calls"), shown);
  }, { calls: many });

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
