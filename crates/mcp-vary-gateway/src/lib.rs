//! MCP content negotiation and server variants in front of servers that do not know them.
