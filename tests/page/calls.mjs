// The checks of the view that makes one call as several clients.

import { check, equal, holds, number, withPeople } from "./browser.mjs";

const CLIENTS = "clients=claude-code,json,markdown";
const LOG = `/calls?tool=git:git_log&${CLIENTS}`;

/** Fills in what `git_log` requires, calls it, and waits for what the clients get. */
export async function makeCall(page) {
  await page.getByLabel("repo_path").fill("/srv/other");
  await page.getByRole("button", { name: /^Call it as/ }).click();
  // The first call waits until the tokens can be counted, which takes long without optimizations.
  await page.waitForSelector(".results .card", { timeout: 90_000 });
}

/** Runs the checks. `pressUntil` presses a key until a test holds in the page. */
export async function compareCalls({ visitor, ask, catalog, pressUntil }) {
  const { page } = visitor;
  const calls = [];
  page.on("request", (request) => request.url().endsWith("/api/call") && calls.push(request.postDataJSON()));
  const open = async (fragment) => {
    // Another view in between: what was typed is gone.
    await visitor.view("/now");
    await visitor.view(fragment);
    await page.waitForSelector("form.call");
    calls.length = 0;
  };
  const call = () => page.getByRole("button", { name: /^Call it as/ }).click();

  await check("a call shows the variant, the bytes and the tokens of each client", async () => {
    await open(LOG);
    await makeCall(page);
    const { clients } = await ask("/api/call", calls[0]);
    const rows = await page.locator(".results tbody tr").evaluateAll((rows) => rows.map((row) => [0, 2, 3, 5, 6].map((at) => row.children[at].firstChild.textContent.trim())));
    equal(rows, clients.map((it) => [it.name, it.variant, number(it.tokens), number(it.bytes), it.tool]), "rows");
  });

  await check("two results stand side by side, wide enough for their lines, with what differs marked", async () => {
    const cards = await page.locator(".card").evaluateAll((cards) => cards.map((card) => card.getBoundingClientRect()).map(({ top, width }) => ({ top, width })));
    holds(cards.length === 3 && cards[0].top === cards[1].top && cards.every(({ width }) => width > 500), `cards at ${JSON.stringify(cards)}`);
    holds((await page.locator(".card :is(ins, del)").count()) > 0, "no difference is marked");
    holds((await visitor.text(".card >> nth=2")).includes("in another form"), "the other format is not named as another one");
  });

  await check("JSON of results is in lines, of which those that differ are marked, and others are folded", async () => {
    const answer = (names) => `{"items":[${names.map((name, id) => `{"id":${id},"name":"${name}","of":12345678901234567890}`).join(",")}]}`;
    const names = Array.from({ length: 30 }, (_, at) => `entry ${at}`);
    const texts = [answer(names), answer(names.with(12, "another 12").slice(0, 29))];
    const results = texts.map((text, at) => ({ content: [{ type: "text", text }], ...(at === 0 && { structuredContent: { a: 1 } }) }));
    await page.route("**/api/call", (route) => {
      const clients = results.map((result, at) => ({ name: `client ${at}`, variant: "few", tool: "git_log", bytes: 9 + at, tokens: 10, ms: 1, result }));
      return route.fulfill({ json: { clients } });
    });
    await open(LOG);
    await makeCall(page);
    const part = page.getByRole("region", { name: "content for client 1", exact: true });
    equal(await part.locator("del, ins").evaluateAll((all) => all.map((it) => it.textContent.trim().replaceAll(/\s+/g, " "))),
      ["entry", "another", '"of": 12345678901234567890 }, { "id": 29, "name": "entry 29",'], "the marks");
    equal(await part.locator("i").allTextContents(), ["… 58 lines that are the same …\n", "… 74 lines that are the same …\n"], "what is folded");
    holds((await part.evaluate((it) => getComputedStyle(it).fontFamily)).includes("monospace"), "the font");
    holds((await visitor.text(".card >> nth=1")).includes("2 differences"), "the number of differences");
    await part.getByRole("button", { name: /^show all/ }).click();
    equal(await part.locator("i").count(), 0, "what is folded, of the whole");
    equal(await page.locator(".results tbody td:nth-child(6)").allTextContents(), ["9", "10"], "the bytes");
    await page.unrouteAll({ behavior: "wait" });
    await open(LOG);
    await makeCall(page);
  });

  await check("a result can be copied", async () => {
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const { clients } = await ask("/api/call", calls[0]);
    await page.getByRole("button", { name: "Copy the result" }).first().click();
    await page.getByText("Copied.").waitFor({ timeout: 5_000 });
    const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    equal(copied, clients[0].result, "the text");
  });

  await check("without a choice, a call is made as the clients that were seen", async () => {
    await open("/calls?tool=git:git_log");
    await makeCall(page);
    const seen = (await ask("/api/status")).clients.map(({ client }) => client.name);
    const chosen = calls[0].clients.map((it) => it.initialize.clientInfo.name);
    holds(chosen.length > 0 && chosen.every((it) => seen.includes(it)), `${chosen} of ${seen}`);
    await open(LOG);
    await makeCall(page);
  });

  await check("the first choice are clients with their people, and the address has no JSON", async () => {
    await withPeople(page, ["ann"]);
    await open("/calls?tool=git:git_log");
    holds(await page.getByLabel("claude-code 2.1.4 · ann", { exact: true }).isChecked(), "it is not chosen");
    await call();
    await page.getByText("This argument is required.").first().waitFor({ timeout: 5_000 });
    const { hash } = new URL(page.url());
    holds(hash.startsWith("#/calls?tool=git%3Agit_log&clients=*claude-code*2.1.4*ann") && hash.length < 120, hash);
    await page.unrouteAll({ behavior: "wait" });
  });

  await check("a client that named its variant by the address is called with that", async () => {
    const seen = { server: "git", target: "git_log", method: "tools/call", outcome: "allowed", at: 1, durationMs: 1 };
    const clients = ["by-address", "by-meta"].map((name, id) => ({ ...seen, id, client: { name }, variant: "few", reason: ["address", "selector"][id] }));
    await page.route("**/api/last-calls", (route) => route.fulfill({ json: { calls: clients } }));
    await open("/calls?tool=git:git_log");
    await makeCall(page);
    const sent = calls[0].clients.map(({ name, path, meta }) => [name, path, meta]);
    equal(sent, [["by-address", "/mcp/v/few", undefined], ["by-meta", undefined, { "io.modelcontextprotocol/server-variant": "few" }]], "what is sent");
    equal(await page.locator(".results tbody td:nth-child(3)").allTextContents(), ["few", "few"], "the variants");
    await page.unrouteAll({ behavior: "wait" });
    await open(LOG);
    await makeCall(page);
  });

  await check("the tools that were called most come first, by the names that clients know, with calls and errors", async () => {
    const known = ({ server, name, variants }) => Object.fromEntries(Object.entries(variants).map(([id, it]) => [id, it && { ...it, name: `${server}_${name}` }]));
    const json = { ...catalog, tools: catalog.tools.map((it) => ({ ...it, variants: known(it) })) };
    await page.route("**/api/catalog", (route) => route.fulfill({ json }));
    const ofTool = { server: "git", upstreamName: "git_branch", target: "git_git_branch", method: "tools/call", at: 1 };
    await page.route("**/api/last-calls", (route) => route.fulfill({ json: { calls: [{ ...ofTool, outcome: "error" }, { ...ofTool, outcome: "allowed" }] } }));
    await visitor.view("/now");
    await visitor.view("/calls");
    const first = page.locator(".grid tbody tr").first();
    equal(await first.locator("th, td").allTextContents(), ["git_git_branch", "2", "1", "git", "only reads"], "the first row");
    await page.getByLabel("Filter tools").fill("git_git_log");
    await first.locator("th", { hasText: /^git_git_log$/ }).click();
    await page.locator("h2", { hasText: /^git_git_log$/ }).waitFor({ timeout: 5_000 });
    await page.unrouteAll({ behavior: "wait" });
  });

  await check("where the server's answers differ, no percentage says what a variant costs", async () => {
    const answer = (records) => ({ content: [{ type: "text", text: JSON.stringify({ records }) }], structuredContent: { records } });
    const results = [answer([{ id: 1 }]), answer([{ id: 1 }, { id: 2 }]), { content: [{ type: "text", text: "| id |" }] }];
    await page.route("**/api/call", (route) => {
      const clients = results.map((result, at) => ({ name: `client ${at}`, variant: "few", tool: "git_log", bytes: 9, tokens: 10 * (at + 1), ms: 1, result }));
      return route.fulfill({ json: { clients } });
    });
    await open(LOG);
    await makeCall(page);
    equal(await page.locator(".results tbody td:nth-child(5)").allTextContents(), ["–", "the server’s answers differ", "the server’s answers differ"], "the column");
    equal(await page.getByText("* In another form").count(), 0, "notes of other forms");
    equal(await visitor.text(".verdict"), "The server’s answers differ, so the tokens cannot be compared.", "the verdict");
    await page.unrouteAll({ behavior: "wait" });
    await open(LOG);
    await makeCall(page);
  });

  await check("the first line of the results says who pays least for the same answer, or who failed", async () => {
    const result = { content: [{ type: "text", text: "the same" }] };
    const answers = [{ result, tokens: 40 }, { result, tokens: 30 }].map((it, at) => ({ name: `client ${at}`, variant: "few", tool: "git_log", bytes: 9, ms: 1, ...it }));
    await page.route("**/api/call", (route) => route.fulfill({ json: { clients: answers } }));
    const verdict = page.locator("#results + p");
    for (const expected of ["client 1 gets 30 tokens, −25 %: client 0 gets 40: the same answer.", "All 2 clients get 30 tokens: the same answer.", "1 of 2 calls failed: client 0"]) {
      await open(LOG);
      await makeCall(page);
      equal((await verdict.innerText()).replaceAll("\u00A0", " "), expected, "the verdict");
      if (answers[0].tokens === 40) answers[0].tokens = 30;
      else answers[0].result = { ...result, isError: true };
    }
    await page.unrouteAll({ behavior: "wait" });
    await open(LOG);
    await makeCall(page);
  });

  await check("results are compared with the client that one chooses", async () => {
    await page.getByLabel("Compare with").selectOption({ label: "human, format=markdown" });
    const marked = page.locator(".card", { has: page.locator("h3 .mark", { hasText: "baseline" }) });
    holds((await marked.locator("h3").innerText()).startsWith("human"), "it is not the chosen one");
    equal(await marked.locator("ins, del").count(), 0, "marks in it");
  });

  await check("the form of a tool has a field for each argument of its schema", async () => {
    const { original } = await ask("/api/tool?server=git&name=git_log");
    const fields = await page.locator("form.call .argument").evaluateAll((all) =>
      all.map((it) => [it.querySelector("bdi").textContent, it.querySelector("input, select, textarea").localName]),
    );
    const expected = { repo_path: "textarea", max_count: "input", order: "select", merges: "select", similarity: "input", paths: "textarea" };
    const ofAuthor = { name: "textarea", mail: "textarea", phones: "textarea" };
    equal(Object.fromEntries(fields), { ...expected, ...ofAuthor, trailers: "textarea" }, "the fields");
    equal([...Object.keys(expected), "author", "trailers"].sort(), Object.keys(original.inputSchema.properties).sort(), "the arguments");
  });

  await check("arguments of each kind reach the server as what they are", async () => {
    await open(LOG);
    await page.getByLabel("max_count").fill("3");
    await page.getByLabel("order").selectOption({ label: "topology" });
    await page.getByLabel("merges").selectOption({ label: "false" });
    await page.getByLabel("similarity").fill("0.5");
    await page.getByLabel("paths").fill("src\ntests");
    const contact = page.getByRole("group", { name: "author" }).getByRole("group", { name: "contact" });
    await contact.getByLabel("mail").fill("ada@example.org");
    await contact.getByLabel("phones").fill("1\n2");
    await page.getByLabel("trailers").fill('[{"key": "Fixes"}]');
    await makeCall(page);
    const author = { contact: { mail: "ada@example.org", phones: [1, 2] } };
    const expected = { repo_path: "/srv/other", max_count: 3, order: "topology", merges: false, similarity: 0.5, paths: ["src", "tests"], author, trailers: [{ key: "Fixes" }] };
    equal(calls[0].arguments, expected, "the arguments");
    holds((await visitor.text(".card")).includes("topology"), "the server did not get them");
  });

  await check("arguments that do not fit are refused at their fields, and no call is made", async () => {
    await open(LOG);
    const wrong = {
      max_count: ["1.5", "“1.5” is not a whole number."],
      paths: ["[src", "This is not JSON"],
      trailers: ["{}", "This is not a list."],
      phones: ["1\nmany", "“many” is not a number."],
      mail: ["", "This argument is required."],
      repo_path: ["", "This argument is required."],
    };
    for (const [name, [text]] of Object.entries(wrong)) await page.getByLabel(name).fill(text);
    await call();
    for (const [name, [, why]] of Object.entries(wrong)) {
      const field = page.getByLabel(name);
      const described = await field.evaluate((it) => document.getElementById(it.getAttribute("aria-describedby"))?.textContent ?? "");
      holds(described.startsWith(why), `${name}: “${described}”`);
    }
    holds(await page.evaluate(() => document.activeElement.matches("[aria-invalid]")), "the focus is not on the first of them");
    equal(calls.length, 0, "calls");
  });

  await check("arguments can be written as JSON, with what the fields had", async () => {
    await open(LOG);
    await page.getByLabel("repo_path").fill("/srv/site");
    await page.getByLabel("write the arguments as JSON").check();
    const field = page.getByLabel("arguments, as JSON");
    equal(JSON.parse(await field.inputValue()), { repo_path: "/srv/site" }, "what the fields had");
    await field.fill("[1]");
    await call();
    await page.getByText("This is not an object.").waitFor({ timeout: 5_000 });
    await field.fill('{"repo_path": ".", "unknown": null}');
    await call();
    await page.waitForSelector(".card");
    equal(calls[0].arguments, { repo_path: ".", unknown: null }, "the arguments");
  });

  await check("the address of a call has its tool and its clients, and not its arguments", async () => {
    await open(LOG);
    await page.getByLabel("Cursor", { exact: true }).check();
    await page.getByLabel("Claude Code", { exact: true }).uncheck();
    await page.getByLabel("read-only", { exact: true }).check();
    await makeCall(page);
    holds(!page.url().includes("srv"), page.url());
    const link = new URL(page.url()).hash.slice(1);
    equal(link, "/calls?tool=git%3Agit_log&clients=json%2Cmarkdown%2Ccursor%2Cv%253Aread-only", "the address");
    await open(link);
    await makeCall(page);
    equal(calls[0].clients.map((it) => it.name), ["agent, format=json", "human, format=markdown", "Cursor", "at the address of read-only"], "the clients");
  });

  await check("a tool without readOnlyHint is called after a question only", async () => {
    await open(`/calls?tool=git:git_commit&${CLIENTS}`);
    await page.getByLabel("repo_path").fill(".");
    await call();
    await page.waitForFunction(() => document.activeElement.id === "confirm");
    equal(calls.length, 0, "calls before the answer");
    await page.keyboard.press("Escape");
    await page.locator("#confirm").waitFor({ state: "detached", timeout: 5_000 });
    equal(calls.length, 0, "calls after “no”");
    await call();
    await page.getByRole("button", { name: "Call it 3 times" }).click();
    await page.waitForSelector(".card");
    equal(calls.map((it) => it.confirmed), [true], "calls after “yes”");
  });

  await check("the question before a call says what it can do, for whom, and with which arguments", async () => {
    await open("/calls?tool=git:git_commit&clients=claude-code,json,v%3Aread-only");
    await page.getByLabel("repo_path").fill(".");
    await page.getByRole("button", { name: "Call it as 2 of 3 clients" }).click();
    const [question, names] = [page.locator("section.problem", { has: page.locator("#confirm") }), "Claude Code, agent, format=json"];
    equal(await question.locator("#confirm").textContent(), "Call it 2 times?", "the question");
    const text = (await question.locator("p").first().innerText()).replaceAll("\u00A0", " ");
    equal(text, `git_commit writes, as its server declares it (destructiveHint: false). It runs once for each of these: ${names}, with {"repo_path":"."}, and nothing undoes that. Not for at the address of read-only.`, "what it says");
    await page.getByRole("button", { name: "Call it 2 times" }).click();
    await page.waitForSelector(".card");
    equal(calls[0].clients.map(({ name }) => name), ["Claude Code", "agent, format=json"], "the clients");
  });

  await check("clients that do not get the tool are named with what hides it, and are not called", async () => {
    await open("/calls?tool=git:delete_branch&clients=claude-code");
    const cause = page.locator("form.call .causes li");
    await cause.waitFor({ timeout: 5_000 });
    const text = (await cause.innerText()).replaceAll("\u00A0", " ");
    holds(text.startsWith("Claude Code, hidden: access rule access[0]") && text.includes("denies delete_*"), text);
    holds(await page.getByRole("button", { name: "Call it as 0 of 1 client" }).isDisabled(), "the button can be pressed");
    equal(calls.length, 0, "calls");
  });

  await check("clients without a person that no access rule allows anything are asked for one", async () => {
    const tools = [{ server: "git", name: "git_log", shown: "git_log", hidden: [] }];
    await page.route("**/api/explain", (route) => route.fulfill({ json: { lacksCredential: !route.request().postDataJSON().key, tools } }));
    await page.route("**/api/status", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), keys: ["ann"] } });
    });
    await open(LOG);
    const asks = page.getByText("choose a person above, or paste the claims of a token");
    await asks.first().waitFor({ timeout: 5_000 });
    await page.getByLabel("Person, by API key").selectOption("ann");
    await asks.first().waitFor({ state: "detached", timeout: 5_000 });
    await page.getByRole("button", { name: "Call it as 3 clients" }).waitFor({ timeout: 5_000 });
    await page.unrouteAll({ behavior: "wait" });
  });

  await check("on a phone, the tools to call have their names on a line of their own", async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await visitor.view("/now");
    await visitor.view("/calls?q=git");
    const cell = page.locator(".tool-choice tbody .c-name, .tool-choice tbody tr > :first-child").first();
    await cell.waitFor({ timeout: 5_000 });
    holds(await cell.evaluate((it) => it.clientWidth > 300 && it.scrollWidth <= it.clientWidth), "the name is cut");
    await visitor.fits();
    await page.setViewportSize({ width: 1400, height: 900 });
  });

  await check("a client can be pasted, and its credentials stay out of the address", async () => {
    await open(LOG);
    await page.getByText("Paste what another client sends").click();
    await page.getByLabel("its name, for this page").fill("<b>pasted</b>");
    await page.getByLabel("headers, one a line").fill("MCP-Server-Variant: directory\nAuthorization: Bearer of-a-person");
    await page.getByRole("button", { name: "Add the client" }).click();
    holds(await page.getByLabel("<b>pasted</b>").isChecked(), "it is not chosen");
    holds(!decodeURIComponent(page.url()).includes("of-a-person"), page.url());
    await makeCall(page);
    const { name, headers } = calls[0].clients.at(-1);
    equal([name, headers], ["<b>pasted</b>", { "MCP-Server-Variant": "directory" }], "the client");
    holds((await visitor.text(".results tbody tr:last-child")).includes("directory"), "its variant is not in the table");
  });

  await check("what cannot be a client is refused at its field", async () => {
    await page.getByLabel("claims of its token").fill("{");
    await page.getByRole("button", { name: "Add the client" }).click();
    await page.getByText("This cannot be a client.").waitFor({ timeout: 5_000 });
  });

  await check("a ninth client cannot be added", async () => {
    const ids = ["claude-code", "cursor", "claude-ai", "codex", "vs-code", "json", "markdown", "any"];
    await open(`/calls?tool=git:git_log&clients=${ids.join(",")}`);
    await page.getByText("Vary makes at most 8 calls at once").waitFor({ timeout: 5_000 });
    holds(await page.getByLabel("read-only", { exact: true }).isDisabled(), "it can");
  });

  await check("a client that was seen can be chosen", async () => {
    await open("/calls?tool=git:git_log&clients=json");
    await page.getByRole("group", { name: "Clients that were seen, or pasted" }).getByLabel(/^claude-code/).first().check();
    await makeCall(page);
    equal(calls[0].clients.map((it) => it.initialize.clientInfo.name), ["agent", "claude-code"], "the clients");
  });

  await check("the tools and results of hostile servers are text", async () => {
    for (const tool of catalog.tools.filter((it) => it.server === "hostile")) {
      await open(`/calls?${new URLSearchParams({ tool: `${tool.server}:${tool.name}`, clients: "any" })}`);
      await page.getByLabel("repo_path").fill("<img src=x onerror=alert(1)>");
      await call();
      await page.getByRole("button", { name: "Call it 1 time" }).click();
      await page.waitForSelector(".results .card");
      equal(await page.locator("main :is(img, script, b, iframe)").count(), 0, "elements of its names");
      await visitor.fits();
    }
  });

  await check("when calls are off, the view shows how to switch them on, and makes none", async () => {
    await page.route("**/api/status", async (route) => {
      const response = await route.fetch();
      const { calls, ...status } = await response.json();
      await route.fulfill({ response, json: status });
    });
    await visitor.view("/calls?tool=git:git_log");
    await page.getByText("admin-calls: on").waitFor({ timeout: 5_000 });
    holds(await page.getByRole("button", { name: /^Call it as/ }).isDisabled(), "the button can be pressed");
    await page.unrouteAll({ behavior: "wait" });
    await page.locator(".calls-off").waitFor({ state: "detached", timeout: 5_000 });
  });

  await check("the keyboard alone makes a call", async () => {
    await visitor.view("/now");
    await visitor.view("/calls");
    await pressUntil("Tab", () => document.activeElement.type === "search");
    await page.keyboard.type("git_log");
    await pressUntil("Tab", () => document.activeElement.matches("[data-cell]"));
    await page.keyboard.press("Enter");
    await page.waitForSelector("form.call");
    await pressUntil("Tab", () => document.activeElement.matches("form.call textarea"));
    await page.keyboard.type(".");
    await pressUntil("Tab", () => document.activeElement.matches("button.main"));
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement.id === "results");
  });
}
