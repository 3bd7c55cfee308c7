// `vary login` at a real authorization server, from nothing but the URL of a server, and the commands that use the login.
//
// As a program with `--browser` it is the browser, and a person who says yes.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { consent } from "./consent.mjs";
import { same, told } from "./sdks.mjs";

async function open(address) {
  const callback = new URL(address).searchParams.get("redirect_uri");
  await fetch(`${callback}?${await consent(address, callback)}`);
}

async function main({ vary, url }) {
  const state = mkdtempSync(join(tmpdir(), "vary-login-"));
  const env = {
    ...process.env,
    BROWSER: `${process.execPath} ${import.meta.filename} --browser`,
    // Nobody's logins, and nobody's keyring.
    XDG_STATE_HOME: state,
    DBUS_SESSION_BUS_ADDRESS: "unix:path=/nonexistent",
  };
  /** Runs the program: its exit code, and what it printed, in which no token is. */
  const run = (...args) => {
    const { status, stdout, stderr } = spawnSync(vary, args, { env, encoding: "utf8", timeout: 50_000 });
    if (/eyJ[\w-]+\.eyJ/.test(stdout + stderr)) throw new Error(`vary ${args[0]} prints a token`);
    return { status, stdout, stderr };
  };
  const fails = (error, { status, stdout, stderr }) => {
    same([status, stdout], [2, ""]);
    if (!stderr.includes(error)) throw new Error(`${stderr} without ${error}`);
  };
  const prints = (text, { status, stdout, stderr }) => {
    if (status !== 0 || !stdout.includes(text)) throw new Error(`${status}: ${stdout}${stderr} without ${text}`);
  };
  await told("is told to log in", async () => fails(`vary login ${url}`, run("tools", url)), url);
  await told("logs in from the URL alone", async () => prints("", run("login", url)), url);
  await told("lists the tools", async () => prints("echo", run("tools", url)), url);
  await told("shows the login", async () => prints(url, run("login", "--list")), url);
  await told("has no other copy of its tokens", async () => {
    const logins = join(state, "vary", "logins");
    const tokens = readdirSync(logins).filter((name) => /"access_token"/.test(readFileSync(join(logins, name), "utf8")));
    same(tokens.length, 1);
  }, url);
  await told("logs out, and is told to log in", async () => {
    prints("", run("logout", url));
    fails(`vary login ${url}`, run("tools", url));
  }, url);
  await told("logs in within a call", async () => prints("hello", run("call", "--login", "echo", '{"said":"hello"}', url)), url);
  rmSync(state, { recursive: true });
}

const [first, second] = process.argv.slice(2);
await (first === "--browser" ? open(second) : main(JSON.parse(first)));
