//! Why a server cannot be used, and why a call to it failed.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use crate::revision::Revision;

/// Why no connection to a server came about.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The program does not exist.
    #[error(
        "server `{server}`: the program `{program}` was not found; \
         install it, put its directory on `PATH`, or give its full path"
    )]
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
        /// What the operating system said.
        reason: String,
    },
    /// The process ended, or the endpoint cannot be reached.
    #[error("{0}")]
    Failed(UpstreamError),
    /// It said something that is no handshake.
    #[error("server `{server}` is not usable as an MCP server: {what}")]
    Handshake {
        /// The server's name.
        server: Arc<str>,
        /// What it said instead, cut and escaped, and what to do.
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
        /// What it offers.
        theirs: String,
    },
    /// It did not become ready in time.
    #[error(
        "server `{server}` was not ready within {limit:?}: {said}; \
         if it downloads or builds first, raise its handshake limit"
    )]
    Timeout {
        /// The server's name.
        server: Arc<str>,
        /// The limit.
        limit: Duration,
        /// What it said instead.
        said: String,
    },
}

impl From<UpstreamError> for ConnectError {
    fn from(error: UpstreamError) -> Self {
        Self::Failed(error)
    }
}

/// Why a call has no answer.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// The connection is gone.
    #[error("server `{server}` {reason}")]
    Closed {
        /// The server's name.
        server: Arc<str>,
        /// How it ended, with its last words.
        reason: Arc<str>,
    },
    /// The endpoint cannot be reached, or the connection broke.
    #[error("server `{server}` cannot be reached: {reason}")]
    Unreachable {
        /// The server's name.
        server: Arc<str>,
        /// What went wrong.
        reason: String,
    },
    /// The endpoint refused the request.
    #[error("server `{server}` answered HTTP {status}{}{excerpt}", if excerpt.is_empty() { "" } else { ": " })]
    Status {
        /// The server's name.
        server: Arc<str>,
        /// The status.
        status: StatusCode,
        /// The start of the body, escaped.
        excerpt: String,
    },
    /// The endpoint points elsewhere; the gateway does not follow, since headers may be secret.
    #[error(
        "server `{server}` answered HTTP {status} and points to `{location}`; \
         redirects are not followed, configure that address if it is right"
    )]
    Redirect {
        /// The server's name.
        server: Arc<str>,
        /// The status.
        status: StatusCode,
        /// Where to, without user and query.
        location: String,
    },
    /// It said something that is no answer.
    #[error("server `{server}` broke the protocol: {what}")]
    Misbehaved {
        /// The server's name.
        server: Arc<str>,
        /// What it said, cut and escaped.
        what: String,
    },
    /// It said more than it may.
    #[error(
        "server `{server}` sent {what} of more than {limit} bytes; raise its limit if that is right"
    )]
    TooLarge {
        /// The server's name.
        server: Arc<str>,
        /// What was too large.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// It gave no sign of life for too long; the call was cancelled.
    #[error("server `{server}` gave no sign of life for {limit:?}; the call was cancelled")]
    Timeout {
        /// The server's name.
        server: Arc<str>,
        /// The limit.
        limit: Duration,
    },
    /// A process does not read its input.
    #[error("server `{server}` does not read its input; {limit} bytes wait already")]
    Busy {
        /// The server's name.
        server: Arc<str>,
        /// How much may wait.
        limit: usize,
    },
    /// The exchange is over: it was answered, or failed before.
    #[error("the call to server `{server}` is over already")]
    Over {
        /// The server's name.
        server: Arc<str>,
    },
}
