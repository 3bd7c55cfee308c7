//! What both sides of a connection say of themselves in `_meta`, and who the gateway says it is.
//!
//! Source: MCP 2026-07-28, basic/index, "General fields".

/// The revision of a modern request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The name and version of the client that sends a modern request.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The capabilities of the client that sends a modern request.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The name and version of the server that sends a modern result.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Of the stream on which something is told that was not asked for with each request.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Who the gateway says it is to a server, JSON text.
pub fn client_info() -> String {
    let version = mcp_vary::json::string(env!("CARGO_PKG_VERSION"));
    format!(r#"{{"name":"vary","title":"Vary","version":{version}}}"#)
}
