// The checks of the view that drafts a variant.

import { check, equal, holds, number } from "./browser.mjs";

/** What the checks do with the view, and `asked`: the drafts that it sent. */
export function drafting(visitor) {
  const { page } = visitor;
  const asked = [];
  page.on("request", (request) => request.url().endsWith("/api/draft") && asked.push(request.postDataJSON()));
  const button = (name) => page.getByRole("button", { name });
  const undo = button("Discard changes");
  const save = page.getByRole("button", { name: "Save", exact: true });
  const row = (name) => page.locator(".grid tbody tr", { has: page.getByText(name, { exact: true }) }).first();
  const region = (name) => page.getByRole("region", { name, exact: true });

  /** Opens the draft of a variant, as the file has it. */
  async function open(variant, params = {}) {
    await visitor.view("/now");
    await visitor.view(`/draft?${new URLSearchParams({ variant, ...params })}`);
    await settled();
    if (await undo.isEnabled()) await undo.click();
    await settled();
    asked.length = 0;
  }

  /** Waits until the figures are those of the last change. */
  async function settled() {
    await page.waitForFunction(() => document.querySelector(".totals[aria-busy=false]"), null, { timeout: 20_000 });
  }

  /** Drafts a new variant from the one that is open. */
  async function copyAs(id) {
    await page.getByLabel("New variant from this one").fill(id);
    await button("Draft a copy").click();
    await page.waitForFunction((id) => location.hash.includes(`variant=${id}`), id);
    await settled();
    await page.locator("option:checked", { hasText: `${id} (draft)` }).waitFor({ state: "attached", timeout: 5_000 });
  }

  const cells = async (name) => (await row(name).locator("th, td").allTextContents()).map((it) => it.trim());

  return { page, asked, button, undo, save, row, region, open, settled, copyAs, cells };
}

/** Checks of servers whose tools have prefixes in lists: `git`, `mirror` with the same tools, and `files`. */
export async function draftPrefixed({ visitor, ask }) {
  const { page, asked, button, undo, save, row, region, open, settled, copyAs } = drafting(visitor);
  const bar = region("The draft as a whole");

  /** Checks the rules of the draft, the tools that it lists, and the boxes that are checked. */
  async function lists(rules, tools) {
    await settled();
    equal(asked.at(-1).value.tools, rules, "the rules");
    const drafted = await ask("/api/draft", asked.at(-1));
    const listed = drafted.tools.filter((it) => it.shown !== null).map((it) => `${it.server}:${it.name}`);
    equal([listed.toSorted(), drafted.warnings], [tools.toSorted(), []], "the tools and what matches nothing");
    await filter({});
    const rows = page.locator(".grid tbody tr:not(.group)", { has: page.locator("input:checked") });
    const checked = (await rows.locator("th").allTextContents()).map((it) => it.trim());
    equal(checked.toSorted(), tools.map((it) => it.replace(":", "_")).toSorted(), "the boxes");
  }

  /** Shows the tools of the draft that these parameters leave. */
  const filter = (params) => visitor.view(`/draft?${new URLSearchParams({ variant: asked.at(-1)?.id ?? "standard", ...params })}`);

  /** Hides or lists a tool of a server. */
  async function toggle(server, name) {
    await filter({ server });
    await row(`${server}_${name}`).locator("td").first().click();
    await settled();
  }

  await check("a draft waits for servers that start, and reads their lists once these have answered", async () => {
    await open("standard");
    const { servers, ...status } = await ask("/api/status");
    const starting = servers.map((it, at) => (at === 0 ? { ...it, state: "starting", tools: undefined } : it));
    await page.route("**/api/status", (route) => route.fulfill({ json: { ...status, writes: true, servers: starting } }));
    await page.getByLabel("Description").first().fill("for those who wait");
    await page.locator("#unready", { hasText: `${servers.length - 1} of ${servers.length} servers have answered` }).waitFor({ timeout: 10_000 });
    equal(await save.isDisabled(), true, "whether it cannot be saved");
    await page.getByText(`Not known yet: the tools of ${servers[0].name} (starting)`).waitFor({ timeout: 5_000 });
    const read = page.waitForRequest((request) => request.url().endsWith("/api/catalog"), { timeout: 10_000 });
    await page.unroute("**/api/status");
    await read;
    await undo.click();
  });

  await check("a tool is found by the name that clients see, and its row has it", async () => {
    await open("standard", { q: "mirror_git_l*" });
    const names = await page.locator(".grid tbody tr:not(.group) th").allInnerTexts();
    equal(names, ["mirror_git_log"], "the rows");
    await row("mirror_git_log").locator("th").click();
    equal(await visitor.text(".panel h2"), "mirror_git_log", "the name of what opens");
  });

  await check("“Only these” lists these tools of several servers", async () => {
    await open("standard", { q: "git_log" });
    await button("Only these").click();
    await lists(["git_git_log", "mirror_git_log"], ["git:git_log", "mirror:git_log"]);
    await undo.click();
  });

  await check("a tool that is checked after “Hide all” is listed", async () => {
    await open("standard");
    await button("Hide all").click();
    await settled();
    await toggle("files", "read_file");
    await toggle("mirror", "git_log");
    await lists(["files_read_file", "mirror_git_log"], ["files:read_file", "mirror:git_log"]);
    await toggle("files", "read_file");
    await lists(["mirror_git_log"], ["mirror:git_log"]);
    await undo.click();
  });

  await check("a tool that is hidden is one of its server alone", async () => {
    await open("standard");
    await toggle("files", "read_file");
    await toggle("mirror", "git_log");
    equal(asked.at(-1).value.tools, { exclude: ["files_read_file", "mirror_git_log"] }, "the rules");
    const hidden = (await ask("/api/draft", asked.at(-1))).tools.filter((it) => it.shown === null);
    equal(hidden.map((it) => `${it.server}:${it.name}`).toSorted(), ["files:read_file", "mirror:git_log"], "the tools");
    await toggle("files", "read_file");
    await toggle("mirror", "git_log");
    holds(await undo.isDisabled(), "a rule is left");
  });

  await check("a copy of a variant keeps its tools when one is hidden", async () => {
    await open("few");
    await copyAs("fewer");
    await toggle("git", "git_log");
    await lists(["files_read_file"], ["files:read_file"]);
    await undo.click();
  });

  await check("a variant without tools is saved after a question, and what differs from no file is not saved", async () => {
    const status = await ask("/api/status");
    await page.route("**/api/status", (route) => route.fulfill({ json: { ...status, writes: true } }));
    const sent = [];
    await page.route("**/api/save", (route) => {
      sent.push(route.request().postDataJSON().value);
      return route.fulfill({ json: { isUsed: true, outcome: "reloaded" } });
    });
    await open("few");
    await save.waitFor({ timeout: 5_000 });
    holds(await save.isDisabled(), "a variant without changes can be saved");
    await copyAs("fewer");
    holds(await save.isDisabled(), "a copy without changes can be saved");
    await undo.click();
    await open("few");
    await button("Hide all").click();
    await bar.getByText("This variant lists no tool.").waitFor({ timeout: 5_000 });
    await settled();
    await save.click();
    const question = page.getByRole("region", { name: "Save a variant without tools?" });
    await question.getByRole("button", { name: "Cancel" }).click();
    equal([sent, await question.count()], [[], 0], "what was sent, and the question");
    await save.click();
    await question.getByRole("button", { name: "Save it" }).click();
    await page.getByText("Saved.").waitFor({ timeout: 5_000 });
    equal(sent, [{ tools: { exclude: ["*"] } }], "what was sent");
    await page.unrouteAll({ behavior: "wait" });
  });

  await check("rules that match nothing are named beside the figures", async () => {
    await open("few");
    await page.getByText("All its settings, as JSON").click();
    await page.getByLabel("such as features").fill('{"tools": ["read_file", "files_write_file"]}');
    await bar.getByText("matches nothing that clients see: the item is read_file on server files").waitFor({ timeout: 5_000 });
    equal(await bar.locator(".problem").count(), 1, "problems");
    await undo.click();
  });
}

/** Runs the checks. `pressUntil` presses a key until a test holds in the page. */
export async function draftVariants({ visitor, ask, catalog, pressUntil }) {
  const { page, asked, button, undo, save, row, region, open, settled, copyAs, cells } = drafting(visitor);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const bar = region("The draft as a whole");
  const totals = () => visitor.text(".totals strong");

  await check("a draft without changes costs what its variant costs", async () => {
    await open("few");
    const { value } = await ask("/api/variant?id=few");
    const { tokens, before } = await ask("/api/draft", { id: "few", value });
    equal([await totals(), tokens], [`${number(before)} tokens`, before], "the tokens");
    holds(await undo.isDisabled(), "there is something to undo");
  });

  await check("the list of a draft is there before its tokens are counted", async () => {
    await page.route("**/api/draft", async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      await route.continue();
    });
    await visitor.view("/now");
    await visitor.view("/draft?variant=few");
    await page.locator(".totals", { hasText: "Counting …" }).waitFor({ timeout: 5_000 });
    equal((await cells("git_log")).filter((_, at) => [0, 1, 5].includes(at)), ["git_log", "listed", "log"], "a row");
    await page.unrouteAll({ behavior: "wait" });
    await settled();
  });

  await check("a tool that is hidden leaves the list and the tokens at once", async () => {
    await open("few");
    const before = await cells("git_diff");
    await row("git_diff").locator("td").first().click();
    await page.waitForFunction(() => [...document.querySelectorAll(".grid tbody tr")].some((it) => it.textContent.startsWith("git_diff") && it.textContent.includes("hidden")), null, { timeout: 2_000 });
    await settled();
    equal(await cells("git_diff"), ["git_diff", "hidden", "–", before[3], before[4], ""], "its row");
    equal(asked.at(-1).value.tools, { exclude: ["tool_*", "long-*", "git_diff"] }, "the rule");
    equal(await totals(), `${number((await ask("/api/draft", asked.at(-1))).tokens)} tokens`, "the tokens");
    await row("git_diff").locator("td").first().click();
    await settled();
    equal(await cells("git_diff"), before, "its row, shown again");
    holds(await undo.isDisabled(), "a rule is left");
  });

  await check("a draft opens the first variant, and then the last one that was shown, with its tools by server", async () => {
    await open("few", {});
    await visitor.view("/now");
    await visitor.view("/draft");
    await settled();
    equal(await page.getByRole("combobox", { name: "Variant", exact: true }).inputValue(), "few", "the variant that was shown last");
    await visitor.view("/now");
    await page.reload();
    await visitor.view("/draft");
    await settled();
    equal(await page.getByRole("combobox", { name: "Variant", exact: true }).inputValue(), catalog.variants[0].id, "the variant");
    const headings = await page.locator(".grid .group").allTextContents();
    holds(headings[0].includes(catalog.servers[0]) && headings[0].includes(" of "), headings[0]);
  });

  await check("two clicks list the tools of a filter alone, and hide all", async () => {
    await open("few", { q: "git_l*" });
    await button("Only these").click();
    await settled();
    equal(asked.at(-1).value.tools, ["git_log"], "the rules");
    const listed = (await ask("/api/draft", asked.at(-1))).tools.filter((it) => it.shown !== null);
    equal(listed.map((it) => it.name), ["git_log"], "the tools");
    await visitor.view("/draft?variant=few");
    await button("Hide all").click();
    await settled();
    equal(asked.at(-1).value.tools, { exclude: ["*"] }, "the rules of none");
    await row("git_diff").locator("td").first().click();
    await settled();
    equal(asked.at(-1).value.tools, ["git_diff"], "the rules of one");
    await undo.click();
  });

  await check("all tools of a server are listed and hidden at its heading", async () => {
    await open("few", { server: "git" });
    await page.locator(".grid .group th").click();
    await settled();
    const { tools } = await ask("/api/draft", asked.at(-1));
    equal(tools.filter((it) => it.server === "git" && it.shown !== null).length, 0, "tools of the server");
    await button("Only these").click();
    await settled();
    equal(asked.at(-1).value.tools, [{ server: "git" }], "the rules");
    await undo.click();
  });

  await check("another variant can be drafted from one", async () => {
    await open("few");
    await copyAs("fewer");
    equal(asked.at(-1), { id: "fewer", value: { from: "few" } }, "the draft");
    holds((await visitor.text(".totals")).includes("as few"), "it is not compared with its parent");
    holds((await region("YAML of the variant").innerText()).startsWith("fewer:"), "the YAML is another");
    holds((await region("What changes in the file").innerText()).includes("fewer:"), "it is not added to the file");
    const description = page.getByLabel("Description");
    await description.fill("Less of it.");
    await settled();
    equal(asked.at(-1).value, { from: "few", description: "Less of it." }, "the draft, described");
    await undo.click();
    await page.waitForFunction(() => location.hash.includes("variant=few") && !location.hash.includes("fewer"));
    equal(await page.locator(".choices option", { hasText: "fewer" }).count(), 0, "variants that were discarded");
  });

  await check("what a client called becomes the draft of a variant for it", async () => {
    await open("few", { q: "nothing" });
    const select = page.getByLabel("suggest one from what a client called");
    const names = await select.locator("option").evaluateAll((all) => all.map((it) => it.value));
    const { clients } = await ask("/api/status");
    const most = clients.filter((it) => it.calls > 0 && it.client.name).sort((a, b) => b.calls - a.calls);
    equal(names[0], most[0].client.name, "the first of the clients, with most calls");
    const client = "claude-code";
    await select.selectOption(client);
    // The page reads the status every two seconds.
    for (let read = 0; read < 2; read++) await page.waitForResponse((response) => response.url().endsWith("/api/status"));
    equal(await select.inputValue(), client, "the choice");
    const proposed = page.waitForResponse((response) => response.url().includes("/api/suggest"));
    await page.getByRole("button", { name: "Suggest a variant" }).click();
    const { id, calls, tools, value, since } = await (await proposed).json();
    await page.waitForFunction((id) => document.querySelector(".choices select")?.value === id, id, { timeout: 5_000 });
    await settled();
    const drafted = asked.at(-1);
    equal([drafted.id, drafted.value.tools, drafted.clients], [id, value.tools, [client]], "the draft");
    equal([await select.inputValue(), await page.getByLabel("Filter tools").inputValue()], [client, ""], "the choice and the filter");
    const { tokens } = await ask("/api/draft", drafted);
    equal(await totals(), `${number(tokens)} tokens`, "the tokens");
    const before = catalog.variants.find((it) => it.id === (drafted.value.from ?? catalog.baseline)).tokens;
    const [toolNoun, callNoun] = [tools === 1 ? "tool" : "tools", calls === 1 ? "call" : "calls"];
    const time = new Date(since * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
    const message = `${number(tools)} ${toolNoun}, from ${number(calls)} ${callNoun} since ${time}; less than a day: look for what it lacks: ${number(before)} → ${number(tokens)} tokens`;
    equal(await visitor.text(".step p[role=status]"), message, "what it saves");
    await undo.click();
  });

  await check("a suggestion says how often each of its tools was called, by how many people, and what it does", async () => {
    const used = [
      { server: "git", name: "git_log", calls: 12, people: 2 },
      { server: "git", name: "git_commit", calls: 1, people: 1 },
    ];
    used.push({ server: "git", name: "delete_branch", calls: 2, people: 0 });
    const value = { tools: ["git_log", "git_commit", "delete_branch"] };
    const proposal = { id: "robot", calls: 15, tools: 3, since: 1_800_000_000, used, value, clients: [] };
    await page.route("**/api/suggest?*", (route) => route.fulfill({ json: proposal }));
    await open("few");
    await button("Suggest a variant").click();
    await row("git_commit").getByText("writes · 1 call, by 1 person").waitFor({ timeout: 5_000 });
    await row("git_log").getByText("only reads · 12 calls, by 2 people").waitFor({ timeout: 5_000 });
    equal(await page.locator(".grid .bad").allTextContents(), ["writes, may destroy"], "what is marked");
    const drafted = page.waitForRequest((request) => request.url().endsWith("/api/draft"), { timeout: 5_000 });
    await row("git_commit").locator("td").first().click();
    await drafted;
    equal(asked.at(-1).value.tools, ["git_log", "delete_branch"], "the tools without the one that was taken out");
    await page.unrouteAll({ behavior: "wait" });
    await undo.click();
  });

  await check("a draft that a suggestion replaces, or that is discarded, comes back with one click", async () => {
    const { id } = await ask("/api/suggest?client=claude-code");
    await open("few");
    await copyAs(id);
    await page.getByLabel("Description").fill("Mine.");
    await settled();
    const mine = asked.at(-1);
    await page.getByLabel("suggest one from what a client called").selectOption("claude-code");
    const ofClients = page.waitForRequest((request) => request.url().endsWith("/api/draft") && request.postData().includes("clients"));
    await button("Suggest a variant").click();
    await ofClients;
    await settled();
    equal(asked.at(-1).clients, ["claude-code"], "the clients of what is suggested");
    const back = button(`Bring back the draft of ${id}`);
    const comesBack = async () => {
      await back.click();
      await page.waitForFunction((id) => document.querySelector(".choices select")?.value === id, id, { timeout: 5_000 });
      await settled();
      equal(asked.at(-1), mine, "the draft");
    };
    await comesBack();
    await undo.click();
    await page.waitForFunction(() => location.hash.includes("variant=few"));
    await comesBack();
    await undo.click();
    await settled();
    await row("git_diff").locator("td").first().click();
    await settled();
    await undo.click();
    await settled();
    await button("Bring back the draft of few").click();
    await settled();
    equal(asked.at(-1).value.tools, { exclude: ["tool_*", "long-*", "git_diff"] }, "the draft of a variant of the file");
    await undo.click();
  });

  await check("a suggestion that comes after the view was left changes neither the address nor a draft", async () => {
    await open("few");
    let answer;
    const arrived = new Promise((resolve) => (answer = resolve));
    await page.route("**/api/suggest?*", async (route) => {
      const response = await route.fetch();
      await arrived;
      await route.fulfill({ response });
    });
    await page.getByLabel("suggest one from what a client called").selectOption("claude-code");
    const proposed = page.waitForResponse((response) => response.url().includes("/api/suggest"));
    await button("Suggest a variant").click();
    await visitor.view("/variants");
    answer();
    await proposed;
    await page.waitForTimeout(200);
    equal(new URL(page.url()).hash, "#/variants", "the address");
    await visitor.view("/draft");
    equal(await page.getByRole("combobox", { name: "Variant", exact: true }).locator("option", { hasText: "claude-code" }).count(), 0, "drafts of it");
    await page.unrouteAll({ behavior: "wait" });
  });

  await check("a new variant that is saved is what the file has, and undoing that gives the draft back", async () => {
    await open("few");
    const status = await ask("/api/status");
    await page.route("**/api/status", (route) => route.fulfill({ json: { ...status, writes: true } }));
    let lastSave = null;
    await page.route("**/api/variant?id=fewer", (route) =>
      route.fulfill({ json: { id: "fewer", value: { from: "few", tools: ["git_log"] }, yaml: "", clients: ["vs-code"], digest: "", lastSave } }),
    );
    for (const what of ["save", "undo"]) {
      await page.route(`**/api/${what}`, (route) => {
        lastSave = what === "save" ? { variant: "fewer", at: 1_795_941_000, isNew: true } : null;
        return route.fulfill({ json: { isUsed: true, outcome: what } });
      });
    }
    await copyAs("fewer");
    const field = page.getByLabel("Clients that get it");
    await visitor.view("/draft?variant=fewer&q=git_log");
    await button("Only these").click();
    await field.fill("vs-code");
    await settled();
    const draft = asked.at(-1);
    await save.click();
    await page.getByText("Saved.").waitFor({ timeout: 5_000 });
    await settled();
    equal([await field.inputValue(), asked.at(-1)], ["vs-code", { id: "fewer", value: draft.value }], "what is saved");
    holds(await undo.isDisabled(), "something is left");
    await page.getByText("See what these get now:").waitFor({ timeout: 5_000 });
    equal(await bar.getByRole("link", { name: "vs-code" }).getAttribute("href"), "#/who?initialize=%7B%22clientInfo%22%3A%7B%22name%22%3A%22vs-code%22%7D%7D", "the link");
    await button(/^Undo the save of fewer at \d\d:\d\d:\d\d$/).click();
    await page.getByText("Undone.").waitFor({ timeout: 5_000 });
    await settled();
    equal([await field.inputValue(), asked.at(-1)], ["vs-code", draft], "the draft");
    await page.unrouteAll({ behavior: "wait" });
    await undo.click();
  });

  await check("a draft is saved where that is allowed, and the page says what came of it", async () => {
    await open("few");
    await page.getByText("admin-writes: on").waitFor({ timeout: 5_000 });
    const status = await ask("/api/status");
    await page.route("**/api/status", (route) => route.fulfill({ json: { ...status, writes: true } }));
    const sent = [];
    let answer = { status: 409, json: { error: "the file was changed since the page read it" } };
    let lastSave = null;
    let isUnreadable = false;
    await page.route("**/api/variant?*", async (route) => {
      if (isUnreadable) return route.fulfill({ status: 500, json: { error: "vary.yaml: permission denied" } });
      const response = await route.fetch();
      return route.fulfill({ json: { ...(await response.json()), lastSave } });
    });
    await page.route("**/api/save", (route) => {
      sent.push(route.request().postDataJSON());
      return route.fulfill(answer);
    });
    await row("git_diff").locator("td").first().click();
    await settled();
    await save.click();
    holds((await visitor.text("main .problem")).includes("was changed since"), "the reason is not there");
    isUnreadable = true;
    await button("Read the file again").click();
    await page.getByText("Vary.yaml: permission denied.").waitFor({ timeout: 5_000 });
    equal(await page.locator("main .problem").allInnerTexts(), ["The file cannot be read again. Vary.yaml: permission denied."], "what is wrong");
    isUnreadable = false;
    // The page reads it by itself, too.
    await page.getByText("The file cannot be read again.").waitFor({ state: "detached", timeout: 5_000 });
    await settled();
    answer = { json: { isUsed: true, outcome: "vary.yaml reloaded: <b>1 changed</b>" } };
    lastSave = { variant: "few", at: 1_795_941_000, isNew: false };
    await save.click();
    await page.getByText("Saved.").waitFor({ timeout: 5_000 });
    await page.getByText("reloaded: <b>1 changed</b>").waitFor({ timeout: 5_000 });
    const undoSave = button(/^Undo the save of few at/);
    await undoSave.waitFor({ timeout: 5_000 });
    // The gateway has it, not the page.
    await page.reload();
    await undoSave.waitFor({ timeout: 10_000 });
    const { value, digest } = await ask("/api/variant?id=few");
    equal(sent.at(-1), { id: "few", value: { ...value, tools: { exclude: [...value.tools.exclude, "git_diff"] } }, digest }, "what was sent");
    await page.route("**/api/undo", (route) => {
      lastSave = null;
      return route.fulfill({ json: { isUsed: false, outcome: "`listen` needs a restart" } });
    });
    await undoSave.click();
    await undoSave.waitFor({ state: "detached", timeout: 5_000 });
    equal(await visitor.text("main .problem"), "Undone. Vary does not use it: listen needs a restart", "the outcome");
    await page.unrouteAll({ behavior: "wait" });
    visitor.wanted(409);
    visitor.wanted(500);
  });

  await check("a variant can be given to clients, and the difference has their rules", async () => {
    await open("few");
    const field = page.getByLabel("Clients that get it");
    equal(await field.inputValue(), "", "the clients of the file");
    await field.fill("cursor*\nvs-code");
    await settled();
    equal(asked.at(-1).clients, ["cursor*", "vs-code"], "what was sent");
    const text = await region("What changes in the file").innerText();
    holds(text.includes('+  - {name: "cursor*", variant: few}') && text.includes("+  - {name: vs-code, variant: few}"), text);
    await undo.click();
    await settled();
    equal([await field.inputValue(), asked.at(-1).clients], ["", undefined], "the clients, undone");
    await page.getByRole("group", { name: "Clients that were seen" }).getByText("claude-code").click();
    await settled();
    equal([await field.inputValue(), asked.at(-1).clients], ["claude-code", ["claude-code"]], "a client that was seen");
    await undo.click();
  });

  await check("who keeps another variant is named beside the clients, in the review, and after the save", async () => {
    const status = await ask("/api/status");
    await page.route("**/api/status", (route) => route.fulfill({ json: { ...status, writes: true } }));
    await page.route("**/api/save", async (route) => {
      const { rules } = await ask("/api/rules");
      await page.route("**/api/rules", (route) => route.fulfill({ json: { rules: rules.map((it) => ({ ...it, line: 77 })) } }));
      await route.fulfill({ json: { isUsed: true, outcome: "reloaded" } });
    });
    const now = { variant: "read-only", by: "pin", rule: "access[0]" };
    const dave = { client: { name: "vs-code", version: "1.99" }, principal: "dave", variant: "read-only", reason: "pin", at: 1_795_941_000, now, stays: true };
    const ann = { ...dave, principal: "ann", now: { variant: "compact", by: "ranking", rule: null }, stays: false };
    await page.route("**/api/draft", async (route) => {
      const response = await route.fetch();
      const isNamed = route.request().postDataJSON().clients?.includes("vs-code");
      await route.fulfill({ json: { ...(await response.json()), callers: isNamed ? [dave, ann] : [] } });
    });
    await open("few");
    const stays = page.getByText("vs-code 1.99 · dave stays with read-only: pin, access[0] (gateway.yaml:");
    equal(await stays.count(), 0, "before it is given to clients");
    await page.getByLabel("Clients that get it").fill("vs-code");
    await settled();
    await stays.nth(1).waitFor({ timeout: 5_000 });
    equal(await stays.count(), 2, "beside the clients, and in the review");
    const [compact, drafted] = [catalog.variants.find((it) => it.id === "compact").tokens, (await ask("/api/draft", asked.at(-1))).tokens];
    const cost = await page.getByText("vs-code 1.99 · ann: from").innerText();
    holds(cost.startsWith(`vs-code 1.99 · ann: from ${number(compact)} tokens of compact to ${number(drafted)}, `), cost);
    await page.unroute("**/api/draft");
    await page.route("**/api/draft", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ json: { ...(await response.json()), callers: [dave, ann] } });
    });
    await save.click();
    await bar.getByText("See what these get now:").waitFor({ timeout: 5_000 });
    await bar.getByText("dave stays with read-only: pin").waitFor({ timeout: 5_000 });
    await bar.getByText("(gateway.yaml:77)").waitFor({ timeout: 5_000 });
    const to = await bar.getByRole("link", { name: "vs-code 1.99 · ann" }).getAttribute("href");
    equal(new URLSearchParams(to.split("?")[1]).get("person"), "ann", "who the link is for");
    await page.unrouteAll({ behavior: "wait" });
    await open("few");
  });

  await check("a box that cannot list its tool is disabled and says why, and no click does nothing silently", async () => {
    await open("read-only", { tool: "git:git_commit" });
    const why = "it starts from read-only, and the tool does not declare readOnlyHint: true";
    equal(await cells("git_commit"), ["git_commit", `hidden: ${why}`, "", "", "", ""], "its row");
    holds(await row("git_commit").locator("input").isDisabled(), "its box can be checked");
    holds(await page.locator(".panel").getByLabel("list this tool").isDisabled(), "the box of its panel can be checked");
    await page.locator(".panel").getByText(`It is hidden: ${why}`).waitFor({ timeout: 5_000 });
    const note = page.getByRole("status").filter({ hasText: "stays hidden" });
    for (const act of [() => row("git_commit").locator("td").first().click(), () => page.locator(".grid .group th").click(), () => page.getByRole("button", { name: /^List (all|[1-9])/ }).click()]) {
      await visitor.view("/draft?variant=few");
      await visitor.view(`/draft?${new URLSearchParams({ variant: "read-only", q: "git_commit" })}`);
      await settled();
      await act();
      equal(await note.innerText(), `git_commit stays hidden: ${why}. Change that in “All its settings, as JSON”.`, "what is said");
      holds(await undo.isDisabled(), "something is changed");
    }
    await visitor.view("/draft?variant=read-only");
    await page.locator("summary", { hasText: "All its settings, as JSON" }).click();
    await page.getByLabel("such as features").fill('{"servers": ["files"]}');
    await settled();
    equal((await cells("git_log"))[1], "hidden: its servers do not have git", "a tool of another server");
    await row("git_log").locator("td").first().click();
    equal(await note.innerText(), "git_log stays hidden: its servers do not have git. Check its server above.", "what is said");
    await page.getByRole("group", { name: "Servers of this variant" }).getByLabel("git", { exact: true }).check();
    await settled();
    equal((await cells("git_log"))[1], "listed", "with its server");
    await undo.click();
    equal(await page.getByRole("group", { name: "Servers of this variant" }).count(), 0, "boxes of a variant with all servers");
  });

  await check("what is changed of a hidden tool is said to change nothing, until it is listed", async () => {
    await open("few", { tool: "git:git_branch" });
    const panel = page.locator(".panel");
    const nothing = panel.getByText("It is hidden, so what is changed below changes nothing.");
    await panel.getByLabel("name", { exact: true }).first().fill("branches");
    await settled();
    equal(await nothing.count(), 0, "of a tool that is listed");
    await panel.getByLabel("list this tool").uncheck();
    await nothing.waitFor({ timeout: 5_000 });
    await panel.getByLabel("list this tool").check();
    await nothing.waitFor({ state: "hidden", timeout: 5_000 });
    await settled();
    await undo.click();
  });

  await check("the heading of a server counts all of its tools, also where the list has some", async () => {
    await open("few", { q: "git_l*", state: "listed" });
    equal((await page.locator(".grid .group :is(th, td)").allInnerTexts()).slice(0, 2).map((it) => it.trim()), ["git", "6 of 6"], "the heading");
    await visitor.view("/draft?variant=few&q=git_log&state=hidden");
    equal(await visitor.text(".step .empty"), "No tool matches. Clear the filter, choose all servers, or show all tools.", "what to do");
  });

  await check("on a phone, each tool of a draft has its whole name", async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await open("few", { server: "git" });
    const cut = await page.locator(".step .grid th .name").evaluateAll((all) => all.filter((it) => it.scrollWidth > it.clientWidth).map((it) => it.textContent));
    equal(cut, [], "names that are cut");
    equal(await page.locator(".step .grid .c-number:visible").first().evaluate((it) => getComputedStyle(it, "::after").content), '" tokens"', "the unit");
    await visitor.fits();
    await page.setViewportSize({ width: 1400, height: 900 });
  });

  await check("a tool can be renamed and described", async () => {
    await open("few", { tool: "git:git_diff" });
    await page.locator(".panel").getByLabel("name", { exact: true }).first().fill("changes");
    await page.locator(".panel").getByLabel("description").fill("What changed.");
    await page.getByText("changes", { exact: true }).first().waitFor({ timeout: 5_000 });
    await settled();
    const shown = await cells("git_diff");
    equal([shown[1], shown[5]], ["listed", "changes"], "its row");
    const text = await region("YAML of the variant").innerText();
    holds(text.includes("changes") && text.includes("What changed."), text);
    const { tokens } = await ask("/api/draft", asked.at(-1));
    equal(await totals(), `${number(tokens)} tokens`, "the tokens");
  });

  await check("an open tool stands below the list, whose columns stay as they are", async () => {
    const widths = () => page.locator(".grid thead th").evaluateAll((all) => all.map((it) => Math.round(it.getBoundingClientRect().width)));
    for (const width of [380, 1400]) {
      await page.setViewportSize({ width, height: 900 });
      await open("few");
      const before = await widths();
      await row("git_diff").locator("th").click();
      await page.locator(".panel").waitFor({ timeout: 5_000 });
      equal(await widths(), before, "the widths of the columns");
      const [list, panel] = await Promise.all([".grid", ".panel"].map((it) => page.locator(it).boundingBox()));
      holds(list.y + list.height <= panel.y, `the list ends at ${list.y + list.height}, the tool begins at ${panel.y}`);
      await page.locator(".panel").getByRole("button", { name: "Close" }).click();
    }
  });

  await check("an argument can be fixed, renamed and hidden", async () => {
    await open("few", { tool: "git:git_log" });
    const argument = (name) => page.locator(".draft-argument", { hasText: name });
    await argument("max_count").getByLabel("fixed to").fill("5");
    await argument("order").getByLabel("fixed to").selectOption({ label: "topology" });
    await argument("author").getByLabel("hidden").check();
    await argument("repo_path").getByLabel("name").fill("path");
    await settled();
    const expected = { max_count: { fixed: 5 }, order: { fixed: "topology" }, author: { hidden: true }, repo_path: { name: "path" } };
    equal(asked.at(-1).value.overrides.tools.git_log.arguments, expected, "what the draft has");
    const [, , now, before] = await cells("git_log");
    holds(Number(now) < Number(before), `${now} tokens, ${before} before`);
  });

  await check("a fixed value that the argument cannot have is refused at its field", async () => {
    await open("few", { tool: "git:git_log" });
    const field = page.locator(".draft-argument", { hasText: "max_count" }).getByLabel("fixed to");
    await field.fill("many");
    const why = await field.evaluate((it) => document.getElementById(it.getAttribute("aria-describedby")).textContent);
    equal(why, "“many” is not a number.", "the reason");
    equal(asked.length, 0, "drafts with it");
  });

  await check("compact can be switched on and off", async () => {
    await open("few");
    await page.getByLabel("compact: first sentences").check();
    await settled();
    equal(asked.at(-1).value.schemas, "compact", "the schemas");
    const { tokens, before } = await ask("/api/draft", asked.at(-1));
    equal(await totals(), `${number(tokens)} tokens`, "the tokens");
    holds((await visitor.text(".totals")).includes(`−${Math.round((1 - tokens / before) * 100)} %`), "the share is not there");
    await page.getByLabel("compact: first sentences").uncheck();
    await settled();
    holds(await undo.isDisabled(), "something is left");
  });

  await check("letters that are typed fast are one question", async () => {
    await open("few", { tool: "git:git_diff" });
    await page.locator(".panel").getByLabel("description").pressSequentially("Shows what changed.", { delay: 15 });
    await settled();
    holds(asked.length <= 2, `${asked.length} questions`);
    equal(asked.at(-1).value.overrides.tools.git_diff.description, "Shows what changed.", "the last one");
  });

  await check("an error of one tool is shown where that tool is", async () => {
    await open("few", { tool: "git:git_diff" });
    await page.getByText("All its settings, as JSON").click();
    const value = { overrides: { tools: { git_diff: { nme: "changes" } } } };
    await page.getByLabel("such as features").fill(JSON.stringify(value));
    const why = await visitor.text(".panel .problem");
    holds(why.includes("overrides.tools.git_diff.nme"), why);
    equal(await page.locator("main .problem").count(), 1, "problems");
    await undo.click();
    visitor.wanted(400);
  });

  await check("the review of the arm of an experiment says that what was counted is of another list", async () => {
    const warning = page.locator(".drafting").getByText("It is an arm of the experiment short-descriptions: what was counted so far is of another list.", { exact: true });
    for (const [variant, expected] of [["few", 0], ["compact", 1]]) {
      await open(variant);
      equal(await warning.count(), 0, `before ${variant} is changed`);
      await row("git_diff").locator("td").first().click();
      await settled();
      equal(await warning.count(), expected, `once ${variant} is changed`);
      await page.locator(".drafting").getByText("It hides git_diff.", { exact: true }).waitFor({ timeout: 5_000 });
      await undo.click();
      await settled();
    }
  });

  await check("an error of the variant has the words of Vary, and the last figures stay", async () => {
    await open("few");
    const before = await totals();
    await page.getByText("All its settings, as JSON").click();
    await page.getByLabel("such as features").fill('{"tols": []}');
    const why = await visitor.text("main .problem");
    holds(why.includes("variants.few.tols") && why.includes("tools"), why);
    equal(await totals(), before, "the figures");
    await page.getByLabel("such as features").fill("{");
    await page.getByText("This is not JSON").waitFor({ timeout: 5_000 });
    await undo.click();
    visitor.wanted(400);
  });

  await check("the YAML and the diff of a draft mark letters that look like others, and can be copied as they are", async () => {
    await open("few");
    await page.getByLabel("Description", { exact: true }).fill("g\u0456t");
    await row("git_diff").locator("td").first().click();
    await settled();
    const { yaml, diff } = await ask("/api/draft", asked.at(-1));
    const copied = () => page.evaluate(() => navigator.clipboard.readText());
    await page.getByRole("button", { name: "Copy the YAML" }).click();
    await page.getByText("Copied.").waitFor({ timeout: 5_000 });
    equal(await copied(), yaml, "the YAML");
    await page.getByRole("button", { name: "Copy the diff" }).click();
    await page.getByText("Copied.").nth(1).waitFor({ timeout: 5_000 });
    equal(await copied(), diff, "the diff");
    holds(diff.includes("+") && diff.includes("git_diff"), diff);
    for (const [title, text] of [["YAML of the variant", yaml], ["What changes in the file", diff]]) {
      holds(text.includes("g\u0456t") && (await region(title).innerText()).includes("gU+0456t"), text);
    }
    await undo.click();
    await settled();
  });

  await check("a draft writes nothing, and no list changes", async () => {
    equal(await ask("/api/catalog"), catalog, "the lists");
    const { value } = await ask("/api/variant?id=few");
    holds(!JSON.stringify(value).includes("git_diff"), JSON.stringify(value));
  });

  await check("a draft stays while one looks at another view", async () => {
    await open("few");
    await row("git_diff").locator("td").first().click();
    await settled();
    await visitor.view("/variants");
    await visitor.view("/draft?variant=few");
    await settled();
    equal((await cells("git_diff"))[1], "hidden", "the tool");
    await undo.click();
    await settled();
    equal((await cells("git_diff"))[1], "listed", "the tool, after “undo”");
  });

  await check("a draft outlasts a reload of the page, in the storage of the tab, without the token", async () => {
    await open("few");
    await row("git_diff").locator("td").first().click();
    await settled();
    await page.reload();
    await page.locator(".totals").waitFor({ timeout: 10_000 });
    await settled();
    equal((await cells("git_diff"))[1], "hidden", "the tool");
    const [stored, token] = await page.evaluate(() => ["vary-drafts", "vary-token"].map((it) => sessionStorage.getItem(it)));
    holds(stored.includes("git_diff") && !stored.includes(token), stored);
    await undo.click();
    await page.reload();
    await page.locator(".totals").waitFor({ timeout: 10_000 });
    await settled();
    equal(await page.evaluate(() => sessionStorage.getItem("vary-drafts")), "[]", "what is stored of a draft that was discarded");
  });

  await check("a link to a tool of a variant opens it, with its row in sight", async () => {
    await open("few", { tool: "git:git_diff" });
    const panel = page.locator(".panel");
    await panel.getByRole("heading", { name: "git_diff" }).waitFor({ timeout: 5_000 });
    equal(await page.locator(".grid [aria-selected=true]").innerText(), "git_diff", "the row");
    await panel.getByLabel("list this tool").uncheck();
    await settled();
    equal((await cells("git_diff"))[1], "hidden", "the tool");
    await undo.click();
  });

  await check("the tools take the height of the window, and the difference is beside them where there is room", async () => {
    for (const [width, isBeside] of [[1400, true], [1100, false], [380, false]]) {
      await page.setViewportSize({ width, height: 900 });
      await open("few");
      const [list, review] = await Promise.all([".grid", ".texts"].map((it) => page.locator(it).boundingBox()));
      holds(list.height > 700, `the list is ${list.height} pixels high`);
      equal(review.x > list.x + list.width, isBeside, `beside the list at ${width} pixels`);
      await visitor.fits();
    }
    await page.setViewportSize({ width: 1400, height: 900 });
  });

  await check("hostile tools can be drafted, and are text", async () => {
    const hostile = catalog.tools.filter((it) => it.server === "hostile" && it.name.length < 200);
    await open("few");
    for (const tool of hostile) {
      await visitor.view(`/draft?${new URLSearchParams({ variant: "few", tool: `hostile:${tool.name}` })}`);
      await page.locator(".panel").getByLabel("description").fill("<img src=x onerror=alert(1)>");
      await settled();
      equal(Object.entries(asked.at(-1).value.overrides.tools).at(-1), [tool.name, { description: "<img src=x onerror=alert(1)>" }], "the override");
      equal(await page.locator("main :is(img, script, b, iframe)").count(), 0, "elements of its names");
    }
    equal(Object.keys(asked.at(-1).value.overrides.tools).length, hostile.length + 1, "overrides, with that of git_log");
    await undo.click();
    return `${hostile.length} tools`;
  });

  await check("the keyboard alone drafts a variant", async () => {
    await open("few");
    await page.evaluate(() => document.querySelector("h1").focus());
    await pressUntil("Tab", () => document.activeElement.matches("[data-cell]"));
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement.textContent === "hidden");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement.closest(".panel"));
    await pressUntil("Tab", () => document.activeElement.matches("textarea.text"));
    await page.keyboard.type("By keys.");
    await settled();
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.activeElement.matches("[data-cell]"));
    await undo.click();
  });
}
