//! The two kinds of HTTP listeners.

/// What a listener is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum ListenerKind {
    /// Clients of the MCP endpoint.
    Mcp,
    /// The operator.
    Admin,
}
