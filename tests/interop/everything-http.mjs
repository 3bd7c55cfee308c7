// The official server over HTTP, on a port of the system's choice, which it says.

import { Server } from "node:http";

const { listen } = Server.prototype;
Server.prototype.listen = function (_port, ...rest) {
  this.once("listening", () => console.log(`listening on http://127.0.0.1:${this.address().port}/mcp`));
  return listen.call(this, 0, "127.0.0.1", ...rest);
};

await import("./node_modules/@modelcontextprotocol/server-everything/dist/transports/streamableHttp.js");
