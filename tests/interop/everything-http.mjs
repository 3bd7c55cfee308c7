// The official server over HTTP, on a port of the system's choice, which it says. With `sse` over the transport of
// 2024-11-05, and then on the port that follows, if there is one.

import { Server } from "node:http";

const isSse = process.argv[2] === "sse";
const [path, script] = isSse ? ["sse", "sse"] : ["mcp", "streamableHttp"];
const { listen } = Server.prototype;
Server.prototype.listen = function (_port, ...rest) {
  this.once("listening", () => console.log(`listening on http://127.0.0.1:${this.address().port}/${path}`));
  return listen.call(this, Number(process.argv[3] ?? 0), "127.0.0.1", ...rest);
};

await import(`./node_modules/@modelcontextprotocol/server-everything/dist/transports/${script}.js`);
