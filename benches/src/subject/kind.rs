//! The kinds of programs that are measured.

use std::fmt;

/// A program that is measured.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Subject {
    /// The limit of a list.
    Fixed,
    /// The limit of a notification to many.
    Fan,
    /// The limit of a call.
    Forward,
    /// Vary with one variant, which is the limit of Vary with many.
    Alone,
    /// Vary with a client that negotiates nothing: the limit for a client that does.
    Unshaped,
    /// Vary without the section of a configuration that the row measures.
    Without,
    /// Vary on one core with one worker thread, which is the limit of Vary on two cores with two.
    OneWorker,
    /// Vary on two cores with one worker thread: what the second core costs without the second thread.
    OneOfTwo,
    /// Another build of Vary, with which this one is compared.
    Before,
    Vary,
    /// A proxy made of rmcp's server and client.
    Rmcp,
    /// `mcp-proxy` of crates.io.
    McpProxy,
    /// The proxy of FastMCP.
    FastMcp,
    /// `supergateway` of npm.
    Supergateway,
    /// A handler on rmcp's own server, which is the limit of the library.
    Bare,
    /// That handler, with content negotiation by the library.
    Negotiating,
    /// That handler in four variants, without content negotiation.
    Variants,
    /// That handler on a pipe, and the gateway in the same process in place of rmcp's server over HTTP.
    Embedded,
}

impl Subject {
    /// Whether it is only an upper bound, not a product.
    pub(crate) const fn is_limit(self) -> bool {
        matches!(
            self,
            Self::Fixed
                | Self::Fan
                | Self::Forward
                | Self::Alone
                | Self::Unshaped
                | Self::Without
                | Self::OneWorker
                | Self::Bare
        )
    }

    /// Whether it is Vary, as a limit or not, with the same upstream servers.
    pub(crate) const fn is_vary(self) -> bool {
        matches!(
            self,
            Self::Alone
                | Self::Unshaped
                | Self::Without
                | Self::OneWorker
                | Self::OneOfTwo
                | Self::Before
                | Self::Vary
        )
    }

    /// Whether it could be used instead of Vary.
    pub(crate) const fn is_peer(self) -> bool {
        matches!(
            self,
            Self::Rmcp | Self::McpProxy | Self::FastMcp | Self::Supergateway
        )
    }

    /// Whether it gets fewer requests, because it is hundreds of times slower than the others.
    pub(crate) const fn is_slow(self) -> bool {
        matches!(self, Self::FastMcp | Self::Supergateway)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed body",
            Self::Fan => "plain fan-out",
            Self::Forward => "forwarding proxy",
            Self::Alone => "vary, 1 variant",
            Self::Unshaped => "vary, unshaped",
            Self::Without => "vary, without it",
            Self::OneWorker => "vary, 1 worker",
            Self::OneOfTwo => "1 worker, 2 cores",
            Self::Before => "vary, before",
            Self::Vary => "vary",
            Self::Rmcp => "rmcp proxy",
            Self::McpProxy => "mcp-proxy",
            Self::FastMcp => "FastMCP proxy",
            Self::Supergateway => "supergateway",
            Self::Bare => "rmcp handler",
            Self::Negotiating => "with negotiation",
            Self::Variants => "with 4 variants",
            Self::Embedded => "embedded gateway",
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
