// The check of the view of experiments that follows one from its verdict to the draft of the winner.

import { Visitor, check, equal, newAddress } from "./browser.mjs";

/** Runs the check, in a page of its own that gets the answers of an experiment that has ended. */
export async function endExperiment({ browser, address, token, ask }) {
  await check("a verdict names what else is worse, and leads to a draft that puts the winner in the place of the control", async () => {
    const other = await Visitor.open(browser, await newAddress(address, token));
    const [experiment] = (await ask("/api/experiments")).experiments;
    const estimate = (value) => ({ value, from: value - 1, to: value + 1 });
    const compared = (metric, difference, p, others) => ({ metric, variant: "compact", arm: estimate(1), control: estimate(1), difference: estimate(difference), p, power: 0.8, ...others });
    const comparisons = [compared("failed", -0.2, 0.0001, { verdict: "better" }), compared("duration", 21.2, 0.042), compared("invalid-arguments", 0.068, 0.016), compared("tokens", 163.3, 0.0001), compared("repaired", -0.1, 0.4)];
    const invalid = { at: Date.now() / 1000, method: "tools/call", target: "gone", outcome: "error", code: -32602, isUnknownTool: true, variant: "compact", reason: "experiment", durationMs: 1, bytesIn: 1, bytesOut: 1 };
    const calls = ["zed", "zed", "cursor", "vscode"].map((name, at) => ({ ...invalid, id: 9 - at, client: { name } }));
    await other.page.route("**/api/last-calls", (route) => route.fulfill({ json: { calls } }));
    await other.page.route("**/api/events", (route) => route.fulfill({ contentType: "text/event-stream", body: "" }));
    let size = 282;
    await other.page.route("**/api/experiments", (route) => {
      const arms = experiment.arms.map((it) => ({ ...it, clients: size / 2, planned: size / 2 }));
      const decided = { ...experiment, metric: "failed", uneven: false, anonymous: true, hasAuth: false, arms, comparisons, verdicts: ["compact: better than the control by `failed`."] };
      return route.fulfill({ json: { experiments: [decided] } });
    });
    await other.view("/experiments");
    const said = other.page.locator("main p", { hasText: "You may stop" });
    await said.getByText("in the list").waitFor({ timeout: 9_000 });
    const text = (await said.innerText()).replaceAll("\u00A0", " ");
    equal(text, "You may stop: compact is better, but 21.2 ms slower (p 0.042) and 6.8 points more invalid calls (p 0.016; zed made 2 of 4 in the list, 4 were of gone) and 163.3 tokens more per result (p <0.001). Next: draft compact in the place of standard, save that, and delete the experiment from the configuration.", "the advice");
    size = 6;
    const forgot = other.page.getByText("and forgot the 282 sessions that had taken part.");
    await forgot.waitFor({ timeout: 10_000 });
    equal(await said.getByRole("link", { name: "4: show invalid calls of compact" }).getAttribute("href"), "#/now?variant=compact&reason=experiment&outcome=invalid", "the link to them");
    await said.getByRole("link", { name: "draft compact" }).click();
    const { value } = await ask("/api/variant?id=compact");
    await other.page.getByText("All its settings, as JSON").click();
    equal(JSON.parse(await other.page.locator(".field.json textarea").inputValue()), value, "the draft");
    equal(new URL(other.page.url()).hash, "#/draft?variant=standard", "the address");
    equal(other.problems, [], "problems");
    await other.page.context().close();
  });
}
