//! MCP content negotiation and server variants on the official Rust SDK, [`rmcp`].
//!
//! Servers: [`server`]. Clients: [`client`].

pub mod client;
pub mod server;
