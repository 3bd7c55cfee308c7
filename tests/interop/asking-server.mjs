// A server of 2025-11-25 that asks its client for what server-everything does not: samples with tools, and
// addresses to visit whose visit it says has ended.

import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const server = new Server({ name: "asking-server", version: "1.0.0" }, { capabilities: { tools: {} } });

/** Asks for a sample that may call a tool. */
async function weather(related) {
  const result = await server.createMessage(
    {
      messages: [{ role: "user", content: { type: "text", text: "Is it raining?" } }],
      maxTokens: 100,
      tools: [{ name: "look-out", inputSchema: { type: "object" } }],
      toolChoice: { mode: "required" },
    },
    related,
  );
  return [result.content].flat().map(({ type, name }) => `${type} ${name}`).join();
}

/** Asks for a visit, and says that it has ended. */
async function visit(related) {
  const elicitationId = "visit-1";
  const { action } = await server.elicitInput(
    { mode: "url", url: "https://example.org/visit", message: "Visit us.", elicitationId },
    related,
  );
  await server.createElicitationCompletionNotifier(elicitationId, related)();
  return action;
}

const TOOLS = { weather, visit };

server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: Object.keys(TOOLS).map((name) => ({ name, inputSchema: { type: "object" } })),
}));

server.setRequestHandler(CallToolRequestSchema, async ({ params }, { requestId }) => {
  const text = await TOOLS[params.name]({ relatedRequestId: requestId });
  return { content: [{ type: "text", text }] };
});

await server.connect(new StdioServerTransport());
