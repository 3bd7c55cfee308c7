//! What both sides of a connection say of themselves in `_meta`, and who the gateway says it is.
//!
//! Source: MCP 2026-07-28, basic/index, "General fields".

pub(crate) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Of the stream on which something is told that was not asked for with each request.
pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Who the gateway says it is to a server, JSON text.
pub(crate) fn client_info() -> String {
    let version = mcp_vary::json::string(env!("CARGO_PKG_VERSION"));
    format!(r#"{{"name":"vary","title":"Vary","version":{version}}}"#)
}
