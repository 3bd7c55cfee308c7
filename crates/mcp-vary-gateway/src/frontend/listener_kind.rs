//! The two kinds of HTTP listeners.

/// What a listener is for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum ListenerKind {
    /// Clients of the MCP endpoint.
    #[default]
    Mcp,
    /// The operator.
    Admin,
}
