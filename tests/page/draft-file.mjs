// The checks of a file that somebody else changes while a variant is drafted.

import { join } from "node:path";

import { check, equal, holds } from "./browser.mjs";
import { drafting } from "./draft.mjs";

/** Runs the checks. */
export async function draftBesideOthers({ visitor, ask, folder }) {
  const { page, undo, save, row, region, open, settled, cells } = drafting(visitor);
  const bar = region("The draft as a whole");

  await check("a variant that somebody else changes in the file while it is drafted, or before a reload, is a question, and the draft stays until the answer", async () => {
    const elsewhere = { digest: "another", value: { tools: ["git_diff"] } };
    let isChanged = false;
    await page.route("**/api/variant?id=few", async (route) => {
      const response = await route.fetch();
      return route.fulfill({ json: { ...(await response.json()), ...(isChanged && elsewhere) } });
    });
    const question = page.getByRole("alert").filter({ hasText: "Somebody changed few in the file." });
    const draftOne = async () => {
      isChanged = false;
      await open("few");
      await row("git_diff").locator("td").first().click();
      await settled();
      isChanged = true;
    };
    await draftOne();
    await question.waitFor({ timeout: 6_000 });
    const [asks, list] = await Promise.all([question, page.locator(".grid")].map((it) => it.boundingBox()));
    holds(asks.y < list.y, "it is not above the list");
    await page.screenshot({ path: join(folder, "changed-in-the-file.png") });
    await question.getByRole("button", { name: "Keep my draft" }).click();
    await question.waitFor({ state: "detached", timeout: 5_000 });
    await settled();
    equal([await undo.isEnabled(), (await cells("git_diff"))[1]], [true, "hidden"], "the draft that was kept");
    await undo.click();
    await draftOne();
    await page.reload();
    await question.getByRole("button", { name: "Discard it, take the file" }).click({ timeout: 10_000 });
    await question.waitFor({ state: "detached", timeout: 5_000 });
    await settled();
    holds(await undo.isDisabled(), "there is a draft");
    equal((await cells("git_diff"))[1], "listed", "the tool");
    await page.unrouteAll({ behavior: "wait" });
  });

  await check("a change elsewhere in the file asks nothing, and the save is for the new file", async () => {
    let digest = "before";
    await page.route("**/api/variant?id=few", async (route) => {
      const response = await route.fetch();
      return route.fulfill({ json: { ...(await response.json()), digest } });
    });
    const status = await ask("/api/status");
    await page.route("**/api/status", (route) => route.fulfill({ json: { ...status, writes: true } }));
    const review = await ask("/api/review");
    const old = { place: "vary.yaml:3", what: "`variants.a.tools[1]` matches nothing", fix: "take it out", variant: "a", kind: "setting" };
    await page.route("**/api/review", (route) => route.fulfill({ json: { ...review, setup: [old] } }));
    const sent = [];
    const lines = ["vary.yaml reloaded: 1 changed", "warning: vary.yaml:4:2: `variants.a.tools[2]` matches nothing; take it out", "warning: vary.yaml:9:2: `variants.few.tools` is new"];
    await page.route("**/api/save", (route) => {
      sent.push(route.request().postDataJSON().digest);
      return route.fulfill({ json: { isUsed: true, outcome: lines.join("\n") } });
    });
    await open("few");
    await page.waitForResponse((response) => response.url().endsWith("/api/review"), { timeout: 15_000 });
    await row("git_diff").locator("td").first().click();
    digest = "after";
    await page.waitForTimeout(3_000);
    equal(await page.getByText("Somebody changed").count(), 0, "questions");
    await save.click();
    await page.getByText("Saved.").waitFor({ timeout: 5_000 });
    equal(sent, ["after"], "the digest");
    const outcome = await bar.getByText("Saved.").locator("..").innerText();
    holds(outcome.includes("is new") && !outcome.includes("matches nothing"), outcome);
    await page.unrouteAll({ behavior: "wait" });
  });

  await check("a draft with warnings is saved when that is confirmed, and nothing else can be done until it is written", async () => {
    const sent = [];
    await page.route("**/api/draft", async (route) => {
      const response = await route.fetch();
      return route.fulfill({ json: { ...(await response.json()), warnings: ["`tools.git_log` is called `diff`, like `tools.git_diff`"] } });
    });
    let written;
    const isWritten = new Promise((resolve) => (written = resolve));
    await page.route("**/api/save", async (route) => {
      sent.push(route.request().postDataJSON().id);
      await isWritten;
      return route.fulfill({ json: { isUsed: true, outcome: "reloaded" } });
    });
    const status = await ask("/api/status");
    await page.route("**/api/status", (route) => route.fulfill({ json: { ...status, writes: true } }));
    await open("few");
    await row("git_diff").locator("td").first().click();
    await settled();
    await save.click();
    await bar.getByRole("heading", { name: "Save it in spite of this?" }).waitFor({ timeout: 5_000 });
    await bar.getByRole("button", { name: "Cancel" }).click();
    equal(sent, [], "what was saved before");
    await save.click();
    await bar.getByRole("button", { name: "Save it" }).click();
    await bar.getByText("Writing …").waitFor({ timeout: 5_000 });
    equal(await bar.getByRole("button", { disabled: true }).allInnerTexts(), ["Discard changes", "Save"], "what cannot be done while it is written");
    written();
    await bar.getByText("Saved.").waitFor({ timeout: 5_000 });
    equal(sent, ["few"], "what was saved");
    await page.unrouteAll({ behavior: "wait" });
  });
}
