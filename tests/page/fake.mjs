// A gateway that only has the operator's page, with fixtures behind it: `node fake.mjs [small|all]` prints its address.
// For work on the page; the tests drive the page of a real gateway.

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { extname, join, normalize } from "node:path";

import { FIXTURES, Refusal } from "./fixtures.mjs";

const ASSETS = fileURLToPath(new URL("../../crates/mcp-vary-page/assets/", import.meta.url));
const TOKEN = "token-of-the-fake";
const HEADERS = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'; form-action 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cache-Control": "no-store",
};
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8" };
const gateway = FIXTURES[process.argv[2] ?? "small"];

async function asset(path, response) {
  const name = path === "/" ? "index.html" : normalize(path.replace("/page/", ""));
  try {
    const text = await readFile(join(ASSETS, name));
    response.writeHead(200, { ...HEADERS, "Content-Type": TYPES[extname(name)] ?? "text/plain" }).end(text);
  } catch {
    response.writeHead(404, HEADERS).end();
  }
}

function json(response, status, value, headers = {}) {
  response.writeHead(status, { ...HEADERS, "Content-Type": "application/json", ...headers }).end(JSON.stringify(value));
}

const body = async (request) => JSON.parse((await request.toArray()).join("") || "{}");

async function api(request, url, response) {
  if (url.pathname === "/api/token") return json(response, 200, { token: TOKEN });
  if (request.headers.authorization !== `Bearer ${TOKEN}`) return json(response, 401, { error: "a token is required" });
  const route = `${request.method} ${url.pathname}`;
  if (route === "GET /api/events") return stream(response);
  if (route === "GET /api/catalog") return catalog(request, response);
  if (route === "GET /api/status") return json(response, 200, gateway.status());
  if (route === "GET /api/review") return json(response, 200, gateway.review());
  if (route === "POST /api/explain") return json(response, 200, gateway.explain(await body(request)));
  if (route === "GET /api/experiments") return json(response, 200, gateway.experiments());
  if (route === "GET /api/rules") return json(response, 200, gateway.rules());
  if (route === "GET /api/variant") return json(response, 200, gateway.entry(url.searchParams.get("id")));
  if (route === "POST /api/draft") return json(response, 200, gateway.draft(await body(request)));
  if (route === "POST /api/call") return json(response, 200, gateway.call(await body(request)));
  if (route !== "GET /api/tool") return json(response, 404, { error: "nothing is there" });
  const tool = gateway.tool(url.searchParams.get("server"), url.searchParams.get("name"));
  return tool ? json(response, 200, tool) : json(response, 404, { error: "no server lists this tool" });
}

function catalog(request, response) {
  const value = gateway.catalog();
  const etag = `"${createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 16)}"`;
  if (request.headers["if-none-match"] === etag) return response.writeHead(304, { ...HEADERS, ETag: etag }).end();
  return json(response, 200, value, { ETag: etag });
}

let calls = 0;

function stream(response) {
  response.writeHead(200, { ...HEADERS, "Content-Type": "text/event-stream" });
  response.write(": ping\n\n");
  const timer = setInterval(() => response.write(`event: call\ndata: ${JSON.stringify(gateway.event(++calls))}\n\n`), 100);
  response.on("close", () => clearInterval(timer));
}

const server = createServer((request, response) => {
  const url = new URL(request.url, "http://127.0.0.1");
  const answer = url.pathname.startsWith("/api/") ? api(request, url, response) : asset(url.pathname, response);
  answer?.catch?.((error) => json(response, error instanceof Refusal ? error.status : 400, { error: error.message }));
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/#code=any`));
