// Has whatever this process sends as a client declare both extensions: `node --import ./declare.mjs`.
//
// The official suite's own client cannot. What it sends without `fetch`, or without capabilities, stays as it is.

import { NEGOTIATION, VARIANTS } from "./checks.mjs";

const EXTENSIONS = {
  [NEGOTIATION]: { version: "1.0", features: ["agent", "format=json"] },
  [VARIANTS]: { variantHints: { description: "the official suite", hints: { useCase: "testing" } } },
};

/** `init` with the extensions among the capabilities that its body declares, if it does. */
function declaring(init) {
  let message;
  try {
    message = JSON.parse(init.body);
  } catch {
    return init;
  }
  const params = message?.params;
  const capabilities =
    message?.method === "initialize"
      ? params?.capabilities
      : params?._meta?.["io.modelcontextprotocol/clientCapabilities"];
  if (typeof capabilities !== "object" || capabilities === null) return init;
  capabilities.extensions = { ...EXTENSIONS, ...capabilities.extensions };
  return { ...init, body: JSON.stringify(message) };
}

const plain = globalThis.fetch;

globalThis.fetch = (input, init) => plain(input, typeof init?.body === "string" ? declaring(init) : init);
