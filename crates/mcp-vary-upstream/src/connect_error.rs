//! Why a connection to a server could not be established.

use std::sync::Arc;
use std::time::Duration;

use mcp_vary::variant::VariantId;
use mcp_vary_wire::revision::Revision;

use crate::error::UpstreamError;

/// What to do about a server of a configuration that needs longer until it is ready.
pub const RAISE_START_TIMEOUT: &str = "raise its `start-timeout`";

/// Why a connection to a server could not be established; `Display` is the full text, for the operator.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ConnectError {
    /// The program does not exist.
    #[error("server `{server}`: the program `{program}` was not found; {advice}")]
    NotFound {
        /// The server's name.
        server: Arc<str>,
        /// The program, as configured.
        program: String,
        /// What to do.
        advice: String,
    },
    /// The program exists but cannot be started.
    #[error("server `{server}`: the program `{program}` cannot be started: {reason}")]
    Start {
        /// The server's name.
        server: Arc<str>,
        /// The program, as configured.
        program: String,
        /// The error of the operating system.
        reason: String,
    },
    /// The process ended, or the endpoint cannot be reached.
    #[error("{}", .0.details())]
    Failed(UpstreamError),
    /// The way to the server is configured wrongly: its address, its `ca`, its client certificate, or a variable that names a
    /// proxy.
    #[error("server `{server}` cannot be connected to: {what}")]
    Settings {
        /// The server's name.
        server: Arc<str>,
        /// The key or the variable, what is wrong with its value, and the fix.
        what: String,
    },
    /// The server did not complete a handshake.
    #[error("server `{server}` is not usable as an MCP server: {what}")]
    Handshake {
        /// The server's name.
        server: Arc<str>,
        /// The message that it sent instead, truncated and escaped, and the fix.
        what: String,
        /// The JSON-RPC error with which it refused the handshake, if it did: JSON text.
        refusal: Option<String>,
    },
    /// No common revision.
    #[error(
        "server `{server}` speaks {theirs}, this gateway speaks {}; \
         no revision of the protocol is common to both",
        Revision::ALL.map(Revision::as_str).join(", ")
    )]
    Revision {
        /// The server's name.
        server: Arc<str>,
        /// The revisions that it offers.
        theirs: String,
    },
    /// The server is this gateway, or leads back to it.
    #[error(
        "server `{server}` is this gateway itself, or leads back to it; it is left out: take its entry out of the \
         file, or serve the configuration that has your servers"
    )]
    Loop {
        /// The server's name.
        server: Arc<str>,
    },
    /// The server does not offer the variant of its configuration.
    #[error("server `{server}` has no variant `{variant}`: {fix}")]
    UnknownVariant {
        /// The server's name.
        server: Arc<str>,
        /// The variant of its configuration.
        variant: VariantId,
        /// What it offers, and what to do.
        fix: String,
    },
    /// The headers of the server need claims that its client does not have.
    #[error("server `{server}` {why}")]
    UnusableClaims {
        /// The server's name.
        server: Arc<str>,
        /// Which claim, and what is wrong with it; not its value.
        why: Arc<str>,
    },
    /// The server did not become ready in time.
    #[error("server `{server}` was not ready within {limit:?}: {observed}")]
    Timeout {
        /// The server's name.
        server: Arc<str>,
        /// The limit.
        limit: Duration,
        /// What it sent instead.
        observed: String,
    },
}

impl ConnectError {
    /// The server did not complete a handshake, for this reason.
    pub(crate) fn unusable(server: &Arc<str>, what: impl Into<String>) -> Self {
        Self::Handshake {
            server: Arc::clone(server),
            what: what.into(),
            refusal: None,
        }
    }

    /// What happened, without details that clients must not see. The full text is `Display`.
    pub fn client_message(&self) -> String {
        match self {
            Self::NotFound { server, .. } => {
                format!("server `{server}`: its program was not found")
            }
            Self::Start { server, .. } => format!("server `{server}` cannot be started"),
            Self::Failed(error) => error.to_string(),
            Self::Settings { server, .. } => {
                format!("server `{server}` cannot be connected to, since its settings are wrong")
            }
            Self::Handshake { server, .. } => {
                format!("server `{server}` is not usable as an MCP server")
            }
            Self::Revision { .. } | Self::UnusableClaims { .. } => self.to_string(),
            Self::UnknownVariant { server, .. } => {
                format!("server `{server}` does not offer the variant that is configured for it")
            }
            Self::Loop { server } => format!("server `{server}` is this gateway itself"),
            Self::Timeout { server, limit, .. } => {
                format!("server `{server}` was not ready within {limit:?}")
            }
        }
    }

    /// What happened, for the operator, without addresses and what the server wrote, which the log has.
    pub fn status_message(&self) -> String {
        let message = self.client_message();
        match self {
            Self::Revision { .. } | Self::UnusableClaims { .. } | Self::Loop { .. } => message,
            Self::NotFound {
                server, program, ..
            } => {
                format!("server `{server}`: the program `{program}` was not found")
            }
            Self::Failed(UpstreamError::Unreachable {
                cause: Some(cause), ..
            }) => format!("{message}: {cause}; {LOG_ADVICE}"),
            _ => format!("{message}; {LOG_ADVICE}"),
        }
    }

    /// Whether the server answered 401, or there are no usable credentials for it.
    pub const fn is_unauthorized(&self) -> bool {
        matches!(self, Self::Failed(error) if error.is_unauthorized())
    }

    /// Whether a retry soon cannot help, since the setup is wrong.
    pub const fn is_permanent(&self) -> bool {
        matches!(
            self,
            Self::NotFound { .. }
                | Self::Start { .. }
                | Self::Revision { .. }
                | Self::Loop { .. }
                | Self::UnknownVariant { .. }
                | Self::UnusableClaims { .. }
        )
    }
}

/// Where the rest of an error is.
const LOG_ADVICE: &str = "the log of `vary serve` says more";

impl From<UpstreamError> for ConnectError {
    fn from(error: UpstreamError) -> Self {
        Self::Failed(error)
    }
}
