//! Why a connection to a server could not be established.

use std::sync::Arc;
use std::time::Duration;

use mcp_vary::variant::VariantId;
use mcp_vary_wire::revision::Revision;

use crate::error::UpstreamError;

/// Why a connection to a server could not be established; `Display` is the full text, for the operator.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ConnectError {
    /// The program does not exist.
    #[error("server `{server}`: the program `{program}` was not found; {}", missing_program_advice(.program))]
    NotFound {
        /// The server's name.
        server: Arc<str>,
        /// The program, as configured.
        program: String,
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
    /// The server did not complete a handshake.
    #[error("server `{server}` is not usable as an MCP server: {what}")]
    Handshake {
        /// The server's name.
        server: Arc<str>,
        /// The message that it sent instead, truncated and escaped, and the fix.
        what: String,
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
         configuration"
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
    /// What happened, without details that clients must not see. The full text is `Display`.
    #[must_use]
    pub fn client_message(&self) -> String {
        match self {
            Self::NotFound { server, .. } => {
                format!("server `{server}`: its program was not found")
            }
            Self::Start { server, .. } => format!("server `{server}` cannot be started"),
            Self::Failed(error) => error.to_string(),
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

    /// What happened, for the operator, without addresses and what the server wrote.
    #[must_use]
    pub fn status_message(&self) -> String {
        match self {
            Self::Failed(UpstreamError::Unreachable {
                cause: Some(cause), ..
            }) => format!("{}: {cause}", self.client_message()),
            _ => self.client_message(),
        }
    }

    /// Whether a retry soon cannot help, since the setup is wrong.
    #[must_use]
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

impl From<UpstreamError> for ConnectError {
    fn from(error: UpstreamError) -> Self {
        Self::Failed(error)
    }
}

/// What to do about a program that does not exist.
fn missing_program_advice(program: &str) -> &'static str {
    let program = program.trim();
    let is_drive = |start: &str| matches!(start, ":\\" | ":/");
    let is_absolute = program.starts_with('/') || program.get(1..3).is_some_and(is_drive);
    match program.contains(char::is_whitespace) {
        true if is_absolute && !program.contains(" -") => {
            "there is no file with this path; check it, or write only the name of the program if it is on `PATH`"
        }
        true => {
            "it has spaces: write only the program as `command`, and put the arguments into `args` (on a command line, \
             leave out the quotes)"
        }
        false => "install it, put its directory on `PATH`, or give its full path",
    }
}
