// A server of 2025-11-25 that asks its client for what server-everything does not: samples with tools, and
// addresses to visit, before or in the middle of a call, whose visit it says has ended.

import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import {
  CallToolRequestSchema,
  ListToolsRequestSchema,
  UrlElicitationRequiredError,
} from "@modelcontextprotocol/sdk/types.js";

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

const admitted = new Set();

/** Does nothing before an address was visited, and says later that it was. */
async function enter(_related, { who }) {
  if (admitted.has(who)) return `welcome ${who}`;
  admitted.add(who);
  const elicitationId = `ticket-${who}`;
  setTimeout(server.createElicitationCompletionNotifier(elicitationId), 50);
  const url = "https://example.org/ticket";
  throw new UrlElicitationRequiredError([{ mode: "url", url, message: "Get a ticket.", elicitationId }]);
}

const TOOLS = { weather, visit, enter };

server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: Object.keys(TOOLS).map((name) => ({ name, inputSchema: { type: "object" } })),
}));

server.setRequestHandler(CallToolRequestSchema, async ({ params }, { requestId }) => {
  const text = await TOOLS[params.name]({ relatedRequestId: requestId }, params.arguments);
  return { content: [{ type: "text", text }] };
});

await server.connect(new StdioServerTransport());
