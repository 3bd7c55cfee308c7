// A server of both eras on the TypeScript SDK 2.x: its tools ask the client, count per session and add tools.
// Over stdio, or with `http` over HTTP on a port that the system chooses.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from "@modelcontextprotocol/node";
import { McpServer, acceptedContent, createMcpHandler, inputRequired, isLegacyRequest } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const text = (said) => ({ content: [{ type: "text", text: String(said) }] });
const NAME = z.object({ name: z.string() });
const asks = (request) => inputRequired({ inputRequests: { it: request } });

/** The tools that were added for clients of 2026-07-28, which have no session. */
const addedForAll = new Set();

/** Notifies clients without a session that the list changed; the server of a session notifies its client itself. */
let announce = () => {};

/** A server for one session, or for one request of 2026-07-28 over HTTP. */
function server({ era }) {
  const server = new McpServer(
    { name: "typescript-sdk-server", version: "1.0.0" },
    { capabilities: { tools: { listChanged: true } } },
  );
  let count = 0;
  const addTool = (name) => {
    server.registerTool(name, { description: "Added later." }, () => text(`${name} was called`));
  };
  server.registerTool("fill_form", { description: "Asks for a name." }, ({ mcpReq }) => {
    const response = mcpReq.inputResponses?.it;
    if (!response) return asks(inputRequired.elicit({ message: "Who?", requestedSchema: NAME }));
    const content = acceptedContent(mcpReq.inputResponses, "it", NAME);
    return text(content ? `hello ${content.name}` : response.action);
  });
  server.registerTool("ask_model", { description: "Asks for a sample." }, ({ mcpReq }) => {
    const response = mcpReq.inputResponses?.it;
    const messages = [{ role: "user", content: { type: "text", text: "What is it?" } }];
    if (!response) return asks(inputRequired.createMessage({ messages, maxTokens: 100 }));
    return text([response.content].flat()[0].text);
  });
  server.registerTool("show_roots", { description: "Asks for the roots." }, ({ mcpReq }) => {
    const response = mcpReq.inputResponses?.it;
    if (!response) return asks(inputRequired.listRoots());
    return text(response.roots.map(({ uri }) => uri).join());
  });
  server.registerTool("count", { description: "Counts the calls of this session." }, () => text((count += 1)));
  const enable = { description: "Adds a tool.", inputSchema: NAME };
  server.registerTool("enable_toolset", enable, ({ name }) => {
    if (era === "modern") addedForAll.add(name);
    addTool(name);
    announce();
    return text(`${name} was added`);
  });
  if (era === "modern") for (const name of addedForAll) addTool(name);
  return server;
}

/** Sessions of 2025-11-25 beside requests of 2026-07-28. */
function serveHttp() {
  const modern = createMcpHandler(server, { legacy: "reject" });
  announce = () => modern.notify.toolsChanged();
  const modernHandler = toNodeHandler(modern);
  const sessions = new Map();
  const session = async (request, response, body) => {
    const id = request.headers["mcp-session-id"];
    if (id !== undefined && !sessions.has(id)) return response.writeHead(404).end();
    let transport = sessions.get(id);
    if (!transport) {
      transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, transport),
      });
      await server({ era: "legacy" }).connect(transport);
    }
    await transport.handleRequest(request, response, body);
  };
  const listener = createServer(async (request, response) => {
    const chunks = await Array.fromAsync(request);
    const body = chunks.length ? JSON.parse(Buffer.concat(chunks)) : undefined;
    const isLegacy = await isLegacyRequest(await toWebRequest(request, body));
    await (isLegacy ? session : modernHandler)(request, response, body);
  });
  listener.listen(0, "127.0.0.1", () => {
    console.log(`listening on http://127.0.0.1:${listener.address().port}/mcp`);
  });
}

if (process.argv[2] === "http") serveHttp();
else serveStdio(server);
