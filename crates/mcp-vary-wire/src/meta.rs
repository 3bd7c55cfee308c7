//! The keys of `_meta` with which both sides describe themselves, and the gateway's own client info.
//!
//! Source: MCP 2026-07-28, basic/index, "General fields".

use mcp_vary::json::{Members, string};

/// The revision of a modern request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The name and version of the client that sends a modern request.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The capabilities of the client that sends a modern request.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The name and version of the server that sends a modern result.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The key of `_meta` under which a modern request names its log level.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The key of `_meta` that requests progress.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// The stream of a notification that belongs to a subscription.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// The `clientInfo` that the gateway sends to servers, JSON text.
pub fn client_info() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let info = [("name", "vary"), ("title", "Vary"), ("version", version)];
    Members::from_iter(info.map(|(key, text)| (key, string(text)))).to_json()
}
