// A gateway of a script's own.

import { spawn } from "node:child_process";

const LISTENS = /(http:\/\/127\.0\.0\.1:\d+\/mcp)\s/;

/** What it prints once its servers have started, too. */
export const SERVES = /serving at (\S+)\s/;

/**
 * Starts `vary` with a configuration file or the URL of a server, and returns it with its URL as soon as it listens; its
 * servers may still be starting. What it prints goes to the log of the script.
 */
export async function startGateway(vary, configuration, listen = "127.0.0.1:0", line = LISTENS) {
  const gateway = spawn(vary, ["serve", "--listen", listen, configuration], { stdio: ["ignore", "ignore", "pipe"] });
  gateway.stderr.pipe(process.stderr);
  let printed = "";
  const url = await new Promise((resolve, reject) => {
    gateway.once("exit", () => reject(new Error(printed)));
    gateway.stderr.on("data", (chunk) => {
      printed += chunk;
      const [, url] = printed.match(line) ?? [];
      if (url) resolve(url);
    });
  });
  return { gateway, url };
}
