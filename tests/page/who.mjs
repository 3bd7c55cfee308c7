// Checks who gets what: the client once, the rule with its place, the clients of a tool, and long lists.

import { Visitor, check, equal, holds, newAddress } from "./browser.mjs";

/** The lines of `gateway.yaml` that have the rule of claude-code and the access rule. */
const [CLIENT_RULE, ACCESS_RULE] = ["gateway.yaml:26", "gateway.yaml:28"];

export async function whoGetsWhat({ browser, address, token, ask, status }) {
  /** Opens a view for which the paths have other answers. */
  async function openWith(view, answers) {
    const visitor = await Visitor.open(browser, await newAddress(address, token));
    for (const [path, json] of Object.entries(answers)) await visitor.page.route(`**${path}`, (route) => route.fulfill({ json }));
    await visitor.page.reload();
    await visitor.view(view);
    return visitor;
  }

  await check("a client that was seen in two variants is listed once, with the one that it gets now and the line of the rule", async () => {
    const use = (variant, last) => ({ client: { name: "claude-code", version: "9" }, variant, reason: "ranking", requests: 1, calls: 0, last });
    const clients = [use("few", 1_000), use("standard", 2_000)];
    const { page } = await openWith("/who", { "/api/last-calls": { calls: [] }, "/api/status": { ...status, clients } });
    const rows = page.getByRole("region", { name: "Clients that were seen" }).locator("tbody tr");
    await rows.getByText(CLIENT_RULE).first().waitFor({ timeout: 5_000 });
    equal(await rows.count(), 1, "rows");
    const [variant, , why] = await rows.locator("td").allTextContents();
    holds(/^compactstandard at /.test(variant), variant);
    equal(why.trim(), `given by clients[0] (${CLIENT_RULE})`, "why");
    await page.context().close();
  });

  await check("the answer names the line of each rule", async () => {
    const initialize = JSON.stringify({ clientInfo: { name: "claude-code" } });
    const visitor = await openWith(`/who?${new URLSearchParams({ initialize, q: "delete_file" })}`, {});
    const heading = visitor.page.locator(".answer h2", { hasText: CLIENT_RULE });
    await heading.waitFor({ timeout: 5_000 });
    equal(await heading.innerText(), `claude-code gets compact, given by clients[0] (${CLIENT_RULE})`, "the heading");
    const line = visitor.page.locator(".answer [role=status]", { hasText: ACCESS_RULE });
    await line.waitFor({ timeout: 5_000 });
    holds((await line.innerText()).includes(`access rule access[0] (${ACCESS_RULE}) denies delete_*`), await line.innerText());
    await visitor.page.context().close();
  });

  /** The lines of who may call a tool, each without the signs of layout. */
  async function mayCall(page) {
    const lines = page.getByRole("list", { name: "Who may call it" }).getByRole("listitem");
    await lines.filter({ hasText: /gateway.yaml|without a key/ }).first().waitFor({ timeout: 5_000 });
    return (await lines.allInnerTexts()).map((it) => it.replace(/\s+/g, " ").trim());
  }

  await check("the panel of a tool says who may call it, by which rule, and each client leads to its answer", async () => {
    const visitor = await openWith("/variants?server=git&tool=git:git_log&variant=compact", {});
    const { page } = visitor;
    await page.locator("summary", { hasText: "Who may call it" }).click({ timeout: 5_000 });
    await page.getByRole("list", { name: "Who may call it" }).getByText(ACCESS_RULE).first().waitFor({ timeout: 5_000 });
    const [line, ...others] = await mayCall(page);
    holds(/^yes anybody without a key\s+\d clients?: claude-code/.test(line), line);
    holds(line.includes(`access rule access[0] (${ACCESS_RULE}): allow *`), line);
    equal(others, [], "other lines");
    await page.getByRole("list", { name: "Who may call it" }).getByRole("link", { name: "claude-code" }).click({ timeout: 5_000 });
    await page.locator(".answer [role=status]", { hasText: "git_log of git: it gets log" }).waitFor({ timeout: 5_000 });
    await page.context().close();
  });

  await check("“Who gets what” answers who may call a tool: people and clients in groups, each with the rule that refuses it", async () => {
    const people = Array.from({ length: 14 }, (_, at) => `dev-${at}`);
    const access = [{ by: "access", rule: "access[0]", detail: "the rule `access[0]` denies it: delete_*" }];
    const answers = {
      people: [
        ...people.map((person) => ({ person, hidden: access, rules: [], isAllowed: false })),
        { person: "carol", hidden: [], rules: ["sre (allow *)"], isAllowed: true },
        { person: "erin", hidden: [], rules: ["by mail (allow *, if args.draft == true)"], isAllowed: null },
        { person: null, hidden: [{ by: "refused", rule: null, detail: "Vary refuses clients without a key or a token" }], rules: [] },
      ],
      clients: [],
    };
    const none = { ...answers, people: answers.people.filter(({ isAllowed }) => isAllowed === false) };
    const keys = [...people, "carol", "erin"];
    const clients = [];
    const { page } = await openWith("/who", { "/api/callers": answers, "/api/last-calls": { calls: [] }, "/api/status": { ...status, keys, clients } });
    await page.getByLabel("Who may call a tool?").fill("delete_");
    await page.getByRole("heading", { name: "Who may call a tool" }).waitFor({ timeout: 5_000 });
    await page.getByLabel("Who may call a tool?").fill("delete_file");
    await page.getByRole("heading", { name: "Who may call delete_file" }).waitFor({ timeout: 5_000 });
    await page.getByRole("list", { name: "Who may call it" }).getByText(ACCESS_RULE).waitFor({ timeout: 5_000 });
    const lines = await mayCall(page);
    equal(lines.map((it) => it.split(" ")[0]), ["yes", "depends", "no", "no"], "the verdicts");
    holds(lines[2].includes("no dev-0, dev-1, dev-2") && lines[2].includes("4 more"), lines[2]);
    holds(lines[2].includes(`access rule access[0] (${ACCESS_RULE}) denies delete_*`), lines[2]);
    holds(lines[3].includes("Vary refuses clients without a key or a token"), lines[3]);
    equal(await page.getByRole("link", { name: "carol" }).getAttribute("href"), "#/who?key=carol&q=delete_file", "the link of a person");
    await page.getByText("1 of 16 people with a key may call it; for 1 that depends on the call.").waitFor({ timeout: 5_000 });
    await page.route("**/api/callers", (route) => route.fulfill({ json: none }));
    await page.getByLabel("Who may call a tool?").fill("git_log");
    await page.getByText("None of 14 people with a key may call it.").waitFor({ timeout: 5_000 });
    await page.context().close();
  });

  await check("a client of an experiment has its name, the arm and the way to it", async () => {
    const use = { client: { name: "codex", version: "9" }, variant: "compact", reason: "experiment", rule: "short-descriptions", requests: 1, calls: 0, last: 1_000 };
    const { page } = await openWith("/who", { "/api/last-calls": { calls: [] }, "/api/status": { ...status, clients: [use] } });
    const row = page.getByRole("region", { name: "Clients that were seen" }).locator("tbody tr");
    const link = row.getByRole("link", { name: "short-descriptions" });
    await link.waitFor({ timeout: 5_000 });
    const [variant, , why] = await row.locator("td").allInnerTexts();
    equal([variant, why.trim()], ["compact", "an arm of the experiment short-descriptions"], "the arm, and why");
    equal(await link.getAttribute("href"), "#/experiments", "the link");
    await page.context().close();
  });

  await check("a client whose calls are not kept any more keeps its person, and without one the call is not the same", async () => {
    const client = { name: "cursor-vscode", version: "9" };
    const clients = [{ client, variant: "few", reason: "rule", requests: 1, calls: 9, last: 1_000 }];
    const savings = { ...status.savings, clients: [{ client: client.name, person: "bob", with: 1, without: 2 }] };
    const explained = { ...(await ask("/api/explain", { initialize: { clientInfo: client } })), variant: "few", reason: "rule", lacksCredential: true };
    const answers = { "/api/last-calls": { calls: [] }, "/api/status": { ...status, clients, savings, keys: ["bob"] }, "/api/explain": explained };
    const visitor = await openWith("/who", answers);
    const { page } = visitor;
    const row = page.getByRole("region", { name: "Clients that were seen" }).getByRole("link", { name: "cursor-vscode 9 · bob" });
    await row.waitFor({ timeout: 5_000 });
    holds((await row.getAttribute("href")).includes("person=bob"), "the link has no person");
    await visitor.view(`/who?${new URLSearchParams({ initialize: JSON.stringify({ clientInfo: client }), got: "few", by: "rule", at: 1_000 })}`);
    const told = page.locator("main p", { hasText: /^The call at \d\d:\d\d:\d\d got few, by rule: its person is not known any more\.$/ });
    await told.waitFor({ timeout: 5_000 });
    await page.context().close();
  });

  await check("of many problems of a kind, ten are listed until somebody wants the others", async () => {
    const changes = Array.from({ length: 14 }, (_, at) => ({ at, server: "git", subject: "tool", name: `tool-${at}`, summary: "changed", members: [] }));
    const servers = Array.from({ length: 13 }, (_, at) => ({ name: `server-${at}`, state: "down", since: 9, reason: "the program ended" }));
    const { page } = await openWith("/review", { "/api/review": { ...(await ask("/api/review")), changes }, "/api/status": { ...status, servers } });
    const rows = page.getByRole("region", { name: "What servers changed" }).locator("tbody tr");
    await rows.first().waitFor({ timeout: 5_000 });
    equal(await rows.count(), 10, "rows");
    await page.getByRole("button", { name: "show all 14" }).click();
    equal(await rows.count(), 14, "rows of all");
    const down = page.getByRole("list", { name: "Server problems" }).locator("li");
    equal(await down.count(), 10, "servers");
    await page.getByRole("button", { name: "3 more" }).click();
    equal(await down.count(), 13, "all servers");
    await page.context().close();
  });
}
