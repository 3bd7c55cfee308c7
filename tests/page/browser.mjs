// A browser, and the checks that it makes: each prints a line of JSON.

import chromium from "@sparticuz/chromium";
import { chromium as browserType } from "playwright-core";

/** Chromium as npm has it. Its own flags would switch the rules of origins off. */
export async function launch() {
  return browserType.launch({ executablePath: await chromium.executablePath(), args: ["--no-sandbox", "--disable-gpu"] });
}

/** The token that `address` of `vary open` exchanges its code for. */
export async function tokenOf(address) {
  return (await post(address, "/api/token", new URL(address).hash.replace("#code=", ""))).token;
}

/** An address that opens the page once, as `vary open` prints it. */
export async function newAddress(address, token) {
  return new URL(`/#code=${(await post(address, "/api/code", token)).code}`, address).href;
}

async function post(address, path, token) {
  const response = await fetch(new URL(path, address), { method: "POST", headers: { Authorization: `Bearer ${token}` } });
  return response.json();
}

/** Has the last calls of the page made by people in turn, who have keys of these names. */
export async function withPeople(page, keys) {
  const change = (path, by) =>
    page.route(path, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: by(await response.json()) });
    });
  const ofClients = (calls) => calls.filter(({ principal }) => !principal);
  await change("**/api/last-calls", ({ calls }) => ({ calls: ofClients(calls).map((call, at) => ({ ...call, principal: keys[at % keys.length] })) }));
  await change("**/api/status", (status) => ({ ...status, keys }));
  // The page may read the old status at this moment.
  for (let read = 0; read < 2; read++) await page.waitForResponse((response) => response.url().endsWith("/api/status"));
}

let failed = 0;

/** Runs a check, and prints what came of it. */
export async function check(title, run) {
  try {
    const detail = await run();
    console.log(JSON.stringify({ title, ok: true, detail: detail ?? null }));
  } catch (error) {
    failed += 1;
    console.log(JSON.stringify({ title, ok: false, detail: String(error.message ?? error) }));
  }
}

export const failures = () => failed;

/** The characters of a value in a message: the lists of 2,000 tools are long. */
const MOST_SHOWN = 2_000;

/** A number as the page shows it. */
export const number = (value) => value.toLocaleString("en");

export function equal(found, expected, what) {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: ${a.slice(0, MOST_SHOWN)}, not ${b.slice(0, MOST_SHOWN)}`);
}

export function holds(condition, what) {
  if (!condition) throw new Error(what);
}

/** A page that records what no view may cause: errors, reports of the policy, requests to others, dialogs. */
export class Visitor {
  problems = [];
  clicks = 0;

  static async open(browser, address, options = {}) {
    const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, ...options });
    const visitor = new Visitor(await context.newPage(), address);
    await visitor.watch();
    await visitor.page.goto(address);
    await visitor.page.waitForSelector("h1");
    return visitor;
  }

  constructor(page, address) {
    this.page = page;
    this.origin = new URL(address).origin;
  }

  async watch() {
    const note = (kind) => (value) => this.problems.push(`${kind}: ${value}`);
    this.page.on("console", (message) => message.type() === "error" && note("console")(message.text()));
    this.page.on("pageerror", (error) => note("error")(error.message));
    this.page.on("request", (request) => this.isOurs(request.url()) || note("request")(request.url()));
    this.page.on("dialog", (dialog) => {
      note("dialog")(dialog.message());
      dialog.dismiss();
    });
    await this.page.exposeFunction("noteReport", note("policy"));
    await this.page.addInitScript(() => {
      addEventListener("securitypolicyviolation", (event) => window.noteReport(`${event.violatedDirective} ${event.blockedURI}`));
    });
  }

  /** Forgets what the browser itself reports of a refusal that a check wanted. */
  wanted(status) {
    this.problems = this.problems.filter((it) => !it.includes(`responded with a status of ${status}`));
  }

  isOurs(url) {
    return url.startsWith("data:") || new URL(url).origin === this.origin;
  }

  /** Goes to a view by its address, as a link that a colleague sent. */
  async view(fragment) {
    await this.page.evaluate((fragment) => {
      location.hash = fragment;
    }, fragment);
    await this.page.waitForFunction(() => !document.body.textContent.includes("Loading"));
  }

  /** The first view, with no click made yet. */
  async first() {
    await this.view("/now");
    this.clicks = 0;
  }

  async click(selector, options = {}) {
    this.clicks += 1;
    await this.page.locator(selector).filter(options).first().click({ timeout: 5_000 });
  }

  async text(selector) {
    const found = this.page.locator(selector).first();
    await found.waitFor({ timeout: 5_000 });
    return (await found.innerText()).replaceAll("\u00A0", " ");
  }

  /** Whether nothing is wider than the window. */
  async fits() {
    const [needed, width] = await this.page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    holds(needed <= width, `the page needs ${needed} pixels of ${width}`);
  }
}
