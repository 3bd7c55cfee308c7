// A client that calls tools all the time, so that the page has something to show.

const VERSION = "2025-11-25";
const INFO = { name: "claude-code", version: "2.1.4" };
const CALLS = ["git_status", "log", "git_commit", "read_file", "delete_file"];

/** Connects, and calls a tool every 200 ms. Resolves after the first call with a function that ends this, and waits for the last one. */
export async function callAllTheTime(endpoint) {
  const headers = { "Content-Type": "application/json", Accept: "application/json, text/event-stream" };
  let id = 0;
  const post = async (method, params) => {
    const message = { jsonrpc: "2.0", method, params, ...(!method.startsWith("notifications/") && { id: ++id }) };
    const response = await fetch(endpoint, { method: "POST", headers, body: JSON.stringify(message) });
    await response.text();
    return response;
  };
  const opened = await post("initialize", { protocolVersion: VERSION, capabilities: {}, clientInfo: INFO });
  Object.assign(headers, { "Mcp-Session-Id": opened.headers.get("Mcp-Session-Id"), "MCP-Protocol-Version": VERSION });
  await post("notifications/initialized", {});
  const call = () => {
    const name = CALLS[id % CALLS.length];
    // `log` has its repository fixed, so that nobody may give it.
    return post("tools/call", { name, arguments: name === "log" ? { max_count: 1 } : { repo_path: ".", path: "a" } });
  };
  let last = call();
  await last;
  const timer = setInterval(() => (last = Promise.all([last, call()]).catch(() => {})), 200);
  timer.unref();
  return () => {
    clearInterval(timer);
    return last;
  };
}
