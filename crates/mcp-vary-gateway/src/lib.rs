//! MCP content negotiation and server variants in front of servers that do not know them.

pub mod catalog;
pub mod revision;
pub mod upstream;
pub mod wire;
