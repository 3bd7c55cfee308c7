//! What a server declared about itself when the connection was opened.

use mcp_vary::error::Era;

use crate::revision::Revision;

/// The declarations of a server about itself, each part as JSON text.
#[derive(Clone, Debug)]
pub struct Handshake {
    /// The revision of the connection, which determines the era.
    pub revision: Revision,
    /// The whole result of `initialize` or `server/discover`.
    pub result: String,
    /// `serverInfo`, when it is an object.
    pub server_info: Option<String>,
    /// `capabilities`, an object.
    pub capabilities: String,
    /// `instructions`, when it is a string.
    pub instructions: Option<String>,
    /// Whether the server rejected or ignored an `initialize` at the start.
    pub refused_initialize: bool,
}

impl Handshake {
    /// The era of the connection.
    #[must_use]
    pub fn era(&self) -> Era {
        self.revision.era()
    }

    /// The same, for a server that rejected or ignored `initialize`.
    pub fn refusing_initialize(self) -> Self {
        Self {
            refused_initialize: true,
            ..self
        }
    }

    /// Whether `other` declares the same revision, server, capabilities and instructions.
    pub fn is_equivalent_to(&self, other: &Self) -> bool {
        let parts = |hello: &Self| {
            (
                hello.revision,
                hello.server_info.clone(),
                hello.capabilities.clone(),
                hello.instructions.clone(),
            )
        };
        parts(self) == parts(other)
    }

    /// Whether the server supports a revision with `initialize`, on this connection or another.
    ///
    /// > `supportedVersions`: MCP Protocol Versions this server supports. (MCP 2026-07-28, schema)
    pub fn supports_sessions(&self) -> bool {
        let result = mcp_vary::json::Members::parse(&self.result).unwrap_or_default();
        let supported = result.get("supportedVersions").unwrap_or("[]");
        let supported: Vec<String> = serde_json::from_str(supported).unwrap_or_default();
        let mut supported = supported
            .iter()
            .filter_map(|version| Revision::parse(version));
        self.era() == Era::Legacy || supported.any(|revision| revision.era() == Era::Legacy)
    }

    /// Whether the server has the capability `kind`.
    pub fn has_capability(&self, kind: &str) -> bool {
        let capabilities = mcp_vary::json::Members::parse(&self.capabilities);
        let kind = capabilities
            .ok()
            .and_then(|all| all.get(kind).map(|it| it.starts_with('{')));
        kind.unwrap_or(false)
    }

    /// Whether the capability `kind` has the flag `flag`, as in `"tools":{"listChanged":true}`.
    #[must_use]
    pub fn has_capability_flag(&self, kind: &str, flag: &str) -> bool {
        let Ok(capabilities) = mcp_vary::json::Members::parse(&self.capabilities) else {
            return false;
        };
        capabilities
            .get(kind)
            .and_then(|kind| mcp_vary::json::Members::parse(kind).ok())
            .is_some_and(|kind| kind.get(flag) == Some("true"))
    }
}
