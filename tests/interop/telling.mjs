// Lines for what was checked, and what it is checked against, with whichever SDK.

import { isDeepStrictEqual } from "node:util";

/** The texts of a result, as one. */
export function textOf({ content }) {
  return content.filter(({ type }) => type === "text").map(({ text }) => text).join("\n");
}

export function holds(found, ...parts) {
  for (const part of parts) {
    if (!found.includes(part)) throw new Error(`no ${part} in ${found}`);
  }
}

/** What `promise` fails with. */
export async function failure(promise) {
  return promise.then(
    (found) => Promise.reject(new Error(`no error but ${JSON.stringify(found)}`)),
    (error) => error,
  );
}

export function same(found, wanted) {
  if (isDeepStrictEqual(found, wanted)) return;
  throw new Error(`${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`);
}

/** Does `action` with `server`, and prints how it went. */
export async function told(name, action, server) {
  const limit = new Promise((_, reject) => setTimeout(reject, 60_000, "still not done after a minute").unref());
  const line = await Promise.race([action(), limit]).then(
    () => ({ name, server, ok: true }),
    (error) => ({ name, server, ok: false, detail: String(error) }),
  );
  console.log(JSON.stringify(line));
  return line.ok;
}

/** Prints what the SDK has no way to do. */
export function lacks(name, why, server) {
  console.log(JSON.stringify({ name, server, lacks: why }));
}
