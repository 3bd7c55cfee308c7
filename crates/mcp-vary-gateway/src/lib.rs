//! MCP content negotiation and server variants in front of servers that do not know them.

pub mod revision;
pub mod wire;
