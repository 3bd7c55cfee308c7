// Between Vary and a server over HTTP: passes everything on, and returns what it passed to the server at `/received`.

import { createServer, request } from "node:http";
import { pipeline } from "node:stream";

/** The server, a URL of this machine. */
const target = new URL(process.argv[2]);

/** The last requests that are recorded. */
const MAX_RECORDED = 2_000;

const received = [];

/** Passes a request on with all its headers except `Host`, which is the server's. */
function forward({ method, url, headers }, body, response) {
  const { host, ...others } = headers;
  const { hostname, port } = target;
  const upstream = request({ hostname, port, method, path: url, headers: { ...others, host: target.host } });
  upstream.on("response", (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    pipeline(answer, response, () => {});
  });
  upstream.on("error", (error) => {
    if (!response.headersSent) response.writeHead(502);
    response.end(String(error));
  });
  response.on("close", () => upstream.destroy());
  upstream.end(body);
}

const listener = createServer(async (request, response) => {
  if (request.url === "/received") return response.end(JSON.stringify(received));
  const body = Buffer.concat(await Array.fromAsync(request));
  const { method, url, rawHeaders } = request;
  received.push({ method, url, headers: rawHeaders, body: body.toString() });
  if (received.length > MAX_RECORDED) received.shift();
  forward(request, body, response);
});

listener.listen(0, "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${listener.address().port}/mcp`);
});
