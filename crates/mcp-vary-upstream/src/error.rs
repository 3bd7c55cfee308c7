//! Why a server cannot be used, and why a call to it failed.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use mcp_vary_wire::response::Failure;
use mcp_vary_wire::revision::Revision;

use crate::server_requests::MAX_UNREAD_REPLIES;

/// Why no connection to a server came about, in full, for the operator.
#[derive(Clone, Debug, thiserror::Error)]
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
    #[error("{}", .0.details())]
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
    /// It is a gateway that would serve itself.
    #[error(
        "server `{server}` is this gateway itself, or leads back to it; it is left out: take its entry out of the \
         configuration"
    )]
    Loop {
        /// The server's name.
        server: Arc<str>,
    },
    /// It did not become ready in time.
    #[error(
        "server `{server}` was not ready within {limit:?}: {observed}; \
         if it downloads or builds first, raise its `start-timeout`"
    )]
    Timeout {
        /// The server's name.
        server: Arc<str>,
        /// The limit.
        limit: Duration,
        /// What it said instead.
        observed: String,
    },
}

impl ConnectError {
    /// What happened, in words that any client may read; `Display` says all of it, to the operator.
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
            Self::Revision { .. } => self.to_string(),
            Self::Loop { server } => format!("server `{server}` is this gateway itself"),
            Self::Timeout { server, limit, .. } => {
                format!("server `{server}` was not ready within {limit:?}")
            }
        }
    }

    /// Whether trying again soon cannot help: what is wrong is not the server's, but how it was set up.
    pub(super) const fn is_permanent(&self) -> bool {
        matches!(
            self,
            Self::NotFound { .. } | Self::Start { .. } | Self::Revision { .. } | Self::Loop { .. }
        )
    }
}

impl From<UpstreamError> for ConnectError {
    fn from(error: UpstreamError) -> Self {
        Self::Failed(error)
    }
}

/// Why a call has no answer.
///
/// `Display` says what happened in words that any client may read; what a server said, where it is and
/// how it is reached stands in [`details`](Self::details), for the operator.
///
/// # Examples
///
/// ```
/// use mcp_vary_upstream::UpstreamError;
///
/// fn show(error: &UpstreamError, is_operator: bool) -> String {
///     if is_operator { error.details() } else { error.to_string() }
/// }
/// ```
#[derive(Clone, Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The connection is gone.
    #[error("server `{server}` {reason}")]
    Closed {
        /// The server's name.
        server: Arc<str>,
        /// How it ended.
        reason: Arc<str>,
        /// What it wrote last to its standard error; empty when that is nothing.
        stderr_tail: Arc<str>,
    },
    /// The endpoint cannot be reached.
    #[error("server `{server}` cannot be reached")]
    Unreachable {
        /// The server's name.
        server: Arc<str>,
        /// What went wrong.
        reason: String,
    },
    /// The request may have arrived; the connection ended before any reply.
    #[error("server `{server}` closed the connection without an answer")]
    Unanswered {
        /// The server's name.
        server: Arc<str>,
        /// What went wrong.
        reason: String,
    },
    /// The reply began and did not end.
    #[error("server `{server}` broke off its reply")]
    BrokeOff {
        /// The server's name.
        server: Arc<str>,
        /// What went wrong.
        reason: String,
    },
    /// The endpoint refused the request.
    #[error("server `{server}` answered HTTP {status}")]
    Status {
        /// The server's name.
        server: Arc<str>,
        /// The status.
        status: StatusCode,
        /// The start of the body, escaped.
        excerpt: String,
    },
    /// The endpoint points elsewhere; the gateway does not follow, since headers may be secret.
    #[error("server `{server}` answered HTTP {status}")]
    Redirect {
        /// The server's name.
        server: Arc<str>,
        /// The status.
        status: StatusCode,
        /// Where to: another origin, or how the path differs.
        location: String,
    },
    /// It said something that is no answer.
    #[error("server `{server}` broke the protocol")]
    Misbehaved {
        /// The server's name.
        server: Arc<str>,
        /// What it said, cut and escaped.
        what: String,
    },
    /// It said more than it may.
    #[error("server `{server}` sent {what} of more than {limit} bytes")]
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
    /// There is no connection to it now.
    #[error("server `{server}` is down: {reason}{}", retry_note(*.pause))]
    Unavailable {
        /// The server's name.
        server: Arc<str>,
        /// Why, in words that any client may read.
        reason: Arc<str>,
        /// The whole of it, for the operator.
        details: Arc<str>,
        /// In how long it is connected to again, where that is known.
        pause: Option<Duration>,
    },
    /// It has as many calls as it may have; this one was not sent.
    #[error("server `{server}` works at as many calls as it may ({limit}), {}", queue_note(*.waited))]
    Overloaded {
        /// The server's name.
        server: Arc<str>,
        /// How many calls it may have at once.
        limit: usize,
        /// How long the call waited for its turn; `None` when too many waited before it.
        waited: Option<Duration>,
    },
    /// The exchange is over: it was answered, or failed before.
    #[error("the call to server `{server}` is over already")]
    Finished {
        /// The server's name.
        server: Arc<str>,
    },
}

/// Whether an HTTP status may come from a server of another era than the one that was connected to.
pub(super) const fn means_other_era(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 404 | 405 | 406 | 415 | 422)
}

fn retry_note(pause: Option<Duration>) -> String {
    pause.map_or_else(String::new, |pause| match pause.as_secs_f32().ceil() {
        0.0 => "; it is being tried again".to_owned(),
        seconds => format!("; it is tried again in {seconds} s"),
    })
}

fn queue_note(waited: Option<Duration>) -> String {
    match waited {
        Some(waited) => format!("and this one did not get its turn within {waited:?}"),
        None => "and too many wait for their turn already".to_owned(),
    }
}

impl UpstreamError {
    /// Whether the connection was lost, so that nobody knows what became of the call.
    pub const fn is_loss(&self) -> bool {
        matches!(
            self,
            Self::Closed { .. }
                | Self::Unreachable { .. }
                | Self::Unanswered { .. }
                | Self::BrokeOff { .. }
        )
    }

    /// Whether the request never reached the server.
    pub const fn is_undelivered(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// That the gateway itself ended the connection to `server`.
    /// The server asks its client for more and more, and takes none of the answers.
    pub(super) fn unread_replies(server: &Arc<str>) -> Self {
        Self::Misbehaved {
            server: Arc::clone(server),
            what: format!("it goes on asking and has left {MAX_UNREAD_REPLIES} answers unread"),
        }
    }

    pub(super) fn closed_by_gateway(server: &Arc<str>) -> Self {
        Self::Closed {
            server: Arc::clone(server),
            reason: "was closed by the gateway".into(),
            stderr_tail: Arc::default(),
        }
    }

    /// The whole of it, for the operator and the log: with what the server said and what to do.
    #[must_use]
    pub fn details(&self) -> String {
        match self {
            Self::Closed { stderr_tail, .. } if !stderr_tail.is_empty() => {
                format!("{self}; its last words: {stderr_tail}")
            }
            Self::Unreachable { reason, .. }
            | Self::Unanswered { reason, .. }
            | Self::BrokeOff { reason, .. } => format!("{self}: {reason}"),
            Self::Status { excerpt, .. } if !excerpt.is_empty() => format!("{self}: {excerpt}"),
            Self::Redirect { location, .. } => format!(
                "{self} and points to {location}; \
                 redirects are not followed, configure that address if it is right"
            ),
            Self::Misbehaved { what, .. } => format!("{self}: {what}"),
            Self::TooLarge { .. } => format!("{self}; raise its limit if that is right"),
            Self::Overloaded { .. } => {
                format!("{self}; raise its limit of concurrency if it can do more at once")
            }
            Self::Unavailable {
                server,
                details,
                pause,
                ..
            } => format!("server `{server}` is down: {details}{}", retry_note(*pause)),
            Self::Closed { .. }
            | Self::Status { .. }
            | Self::Timeout { .. }
            | Self::Busy { .. }
            | Self::Finished { .. } => self.to_string(),
        }
    }
}

impl From<UpstreamError> for Failure {
    fn from(error: UpstreamError) -> Self {
        Self::internal(error.to_string())
    }
}
