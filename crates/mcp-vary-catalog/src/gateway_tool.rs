//! The tools that the gateway itself adds to lists of tools.

/// A tool that the gateway itself adds to lists of tools.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GatewayTool {
    /// Describes tools whose schemas are on demand.
    Describe,
    /// Searches the tools of a long list whose schemas are on demand.
    Search,
    /// Reads what was left out of results.
    ReadResult,
}

impl GatewayTool {
    /// Its name, unless a server has a tool of that name.
    #[must_use]
    pub const fn usual_name(self) -> &'static str {
        match self {
            Self::Describe => "describe_tools",
            Self::Search => "search_tools",
            Self::ReadResult => "read_result",
        }
    }
}
