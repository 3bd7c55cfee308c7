//! Why a server cannot be used, and why a call to it failed.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use mcp_vary::error_code::{
    HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CLIENT_CAPABILITY,
    UNSUPPORTED_VERSION,
};
use mcp_vary::json::Members;
use mcp_vary_http_client::credential_source::CredentialError;
use mcp_vary_wire::response::{RETRY_NOTE, RpcError};

use crate::server_requests::MAX_UNREAD_REPLIES;

/// Why a call failed without an answer.
///
/// `Display` is for clients. [`details`](Self::details) is for the operator: it can contain output and the address of
/// the server.
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
    /// The connection is closed.
    #[error("server `{server}` {reason}")]
    Closed {
        /// The server's name.
        server: Arc<str>,
        /// Why it was closed.
        reason: Arc<str>,
        /// What its process wrote last, to be read after the reason; empty if nothing.
        output: Arc<str>,
    },
    /// The endpoint cannot be reached.
    #[error("server `{server}` cannot be reached")]
    Unreachable {
        /// The server's name.
        server: Arc<str>,
        /// The error of the operating system, which contains no address.
        cause: Option<String>,
        /// What went wrong.
        reason: String,
    },
    /// The connection ended before a response; the request may have arrived.
    #[error("server `{server}` closed the connection without an answer")]
    Unanswered {
        /// The server's name.
        server: Arc<str>,
        /// What went wrong.
        reason: String,
    },
    /// The response is incomplete.
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
        /// Its URL, without the parts that can be secret.
        endpoint: String,
        /// The status.
        status: StatusCode,
        /// The start of the body, escaped.
        excerpt: String,
        /// What to do, to be read after it; empty if nothing is known.
        advice: String,
    },
    /// The endpoint redirects to another origin, changes the method, or redirects too often. The gateway does not follow, since
    /// it would send the configured headers elsewhere.
    #[error("server `{server}` answered HTTP {status}")]
    Redirect {
        /// The server's name.
        server: Arc<str>,
        /// The status.
        status: StatusCode,
        /// The target: another origin, or the difference of the path.
        location: String,
    },
    /// The server sent something that is not an answer.
    #[error("server `{server}` broke the protocol")]
    Misbehaved {
        /// The server's name.
        server: Arc<str>,
        /// What it sent, truncated and escaped.
        what: String,
    },
    /// The answer is there, and is not a message.
    #[error("server `{server}` sent an answer that cannot be read: {why}")]
    Unreadable {
        /// The server's name.
        server: Arc<str>,
        /// Why, and how the line begins.
        why: Arc<str>,
    },
    /// The server sent more than its limit allows.
    #[error("server `{server}` sent {what} of more than {}, which is a fixed limit; ask for less at once", size(*.limit))]
    TooLarge {
        /// The server's name.
        server: Arc<str>,
        /// What was too large.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The server sent nothing for too long; the call was cancelled.
    #[error("server `{server}` sent nothing for {limit:?}; the call was cancelled")]
    Timeout {
        /// The server's name.
        server: Arc<str>,
        /// The limit.
        limit: Duration,
    },
    /// The process does not read its input.
    #[error("server `{server}` does not read its input; {limit} bytes wait already")]
    Busy {
        /// The server's name.
        server: Arc<str>,
        /// The limit of the outbox in bytes.
        limit: usize,
    },
    /// There is no connection to the server now.
    #[error("server `{server}` is down: {reason}{}", retry_note(*.pause))]
    Unavailable {
        /// The server's name.
        server: Arc<str>,
        /// Why, for clients.
        reason: Arc<str>,
        /// Why, in full, for the operator.
        details: Arc<str>,
        /// The time until the next attempt, if known.
        pause: Option<Duration>,
    },
    /// The headers of the server need claims that the client does not have.
    #[error("server `{server}` {why}")]
    UnusableClaims {
        /// The server's name.
        server: Arc<str>,
        /// Which claim, and what is wrong with it; not its value.
        why: Arc<str>,
    },
    /// A source of credentials has none for the request, which was not sent or was refused.
    #[error("server `{server}` {}: {error}", credentials_note(*.status))]
    Credentials {
        /// The server's name.
        server: Arc<str>,
        /// The status of the refusal, if the request was sent.
        status: Option<StatusCode>,
        /// What is missing, and what to do.
        error: CredentialError,
    },
    /// All connections to the server are in use by others, or all that one user may have.
    #[error(
        "server `{server}` serves each session or user on a connection of its own, and {}",
        full_note(*.limit, *.share)
    )]
    NoConnectionLeft {
        /// The server's name.
        server: Arc<str>,
        /// The limit of connections.
        limit: usize,
        /// How many one user may have, if this one has as many.
        share: Option<usize>,
    },
    /// The server has reached its concurrency limit; this call was not sent.
    #[error("server `{server}` has reached its concurrency limit ({limit}), {}", queue_note(*.waited))]
    Overloaded {
        /// The server's name.
        server: Arc<str>,
        /// The concurrency limit.
        limit: usize,
        /// How long the call was queued; `None` when the queue was full.
        waited: Option<Duration>,
    },
    /// The answer finds no room in the memory for answers.
    #[error(
        "the answer of server `{server}` finds no room: answers that were not read yet take all of `limits.memory` that is for \
         them; read those, or ask for less at once"
    )]
    NoRoom {
        /// The server's name.
        server: Arc<str>,
    },
    /// The exchange was answered or has failed before.
    #[error("the call to server `{server}` is over already")]
    Finished {
        /// The server's name.
        server: Arc<str>,
    },
}

/// The text of an error without the `server` at its beginning: in the log, that is a field of its own.
///
/// # Examples
///
/// ```
/// use mcp_vary_upstream::without_server;
///
/// assert_eq!(without_server("server `git` is down: no", "git"), "is down: no");
/// assert_eq!(without_server("server `git`: no", "git"), "no");
/// assert_eq!(without_server("too many", "git"), "too many");
/// ```
pub fn without_server<'t>(text: &'t str, server: &str) -> &'t str {
    let unquoted = text.strip_prefix("server `");
    let unnamed = unquoted.and_then(|text| text.strip_prefix(server)?.strip_prefix('`'));
    unnamed.map_or(text, |remaining| remaining.trim_start_matches([':', ' ']))
}

/// Whether an HTTP status suggests that a server of another era has replaced the one of the handshake.
pub(super) const fn means_other_era(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 404 | 405 | 406 | 415 | 422)
}

/// Before the lines of standard error in what a process wrote last.
pub(super) const STDERR_LINES: &str = "last stderr lines: ";

/// The code of a server's error.
pub(super) fn error_code(error: &Members<'_>) -> Option<i64> {
    error.get("code")?.parse().ok()
}

/// Whether the error of a server is final: it does not have the method, or rejects its parameters.
pub(super) fn is_rejection(error: &str) -> bool {
    let members = Members::parse(error).unwrap_or_default();
    matches!(
        error_code(&members),
        Some(
            INVALID_REQUEST
                | METHOD_NOT_FOUND
                | INVALID_PARAMS
                | HEADER_MISMATCH
                | MISSING_CLIENT_CAPABILITY
                | UNSUPPORTED_VERSION
        )
    )
}

/// Whether a request that failed with `status` may succeed later.
///
/// Servers answer 409 until they notice that the previous stream is broken.
pub(super) fn is_transient(status: StatusCode) -> bool {
    !status.is_client_error() || matches!(status.as_u16(), 408 | 409 | 425 | 429)
}

/// A number of bytes, in MiB where that is shorter.
pub(super) fn size(bytes: usize) -> String {
    match (bytes >> 20, bytes & ((1 << 20) - 1)) {
        (mebibytes @ 1.., 0) => format!("{mebibytes} MiB"),
        _ => format!("{bytes} bytes"),
    }
}

fn retry_note(pause: Option<Duration>) -> String {
    pause.map_or_else(String::new, |pause| match pause.as_secs_f32().ceil() {
        0.0 => "; it is being tried again".to_owned(),
        seconds => format!("{RETRY_NOTE}{seconds} s"),
    })
}

fn credentials_note(status: Option<StatusCode>) -> String {
    status.map_or_else(
        || "has no usable credentials".to_owned(),
        |status| format!("answered HTTP {status}"),
    )
}

fn full_note(limit: usize, share: Option<usize>) -> String {
    match share {
        Some(share) => format!(
            "the {share} of {limit} that one user may have are in use; end one of your other sessions, or raise its \
             `connections`"
        ),
        None => format!("all {limit} are in use; try again later"),
    }
}

fn queue_note(waited: Option<Duration>) -> String {
    match waited {
        Some(waited) => format!("and this one waited for {waited:?}"),
        None => "and too many others wait".to_owned(),
    }
}

impl UpstreamError {
    /// Whether the connection was lost, so that the outcome of the call is unknown.
    pub const fn is_loss(&self) -> bool {
        matches!(
            self,
            Self::Closed { .. }
                | Self::Unreachable { .. }
                | Self::Unanswered { .. }
                | Self::BrokeOff { .. }
        )
    }

    /// Whether the server answered 401, or there are no usable credentials for it.
    pub const fn is_unauthorized(&self) -> bool {
        match self {
            Self::Status { status, .. } => status.as_u16() == 401,
            Self::Credentials { .. } => true,
            _ => false,
        }
    }

    /// Whether the request never reached the server.
    pub const fn is_undelivered(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// The error for a server that sends requests but does not read the answers.
    pub(super) fn unread_replies(server: &Arc<str>) -> Self {
        Self::Misbehaved {
            server: Arc::clone(server),
            what: format!(
                "it keeps sending requests and has left {MAX_UNREAD_REPLIES} responses unread"
            ),
        }
    }

    pub(super) fn closed_by_gateway(server: &Arc<str>) -> Self {
        Self::Closed {
            server: Arc::clone(server),
            reason: "was closed by the gateway".into(),
            output: Arc::default(),
        }
    }

    /// The full text for the operator and the log, with output of the server and what to do.
    pub fn details(&self) -> String {
        match self {
            Self::Closed { output, .. } if !output.is_empty() => format!("{self}; {output}"),
            Self::Unreachable { reason, .. }
            | Self::Unanswered { reason, .. }
            | Self::BrokeOff { reason, .. } => format!("{self}: {reason}"),
            Self::Status {
                endpoint,
                excerpt,
                advice,
                ..
            } => {
                let colon = if excerpt.is_empty() { "" } else { ": " };
                format!("{self} at {endpoint}{colon}{excerpt}{advice}")
            }
            Self::Redirect { location, .. } => format!(
                "{self} and points to {location}; \
                 redirects are not followed, configure that address if it is right"
            ),
            Self::Misbehaved { what, .. } => format!("{self}: {what}"),
            Self::Credentials {
                server,
                status,
                error,
            } => {
                let note = credentials_note(*status);
                format!("server `{server}` {note}: {}", error.details())
            }
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
            | Self::Unreadable { .. }
            | Self::TooLarge { .. }
            | Self::NoRoom { .. }
            | Self::Timeout { .. }
            | Self::Busy { .. }
            | Self::UnusableClaims { .. }
            | Self::NoConnectionLeft { .. }
            | Self::Finished { .. } => self.to_string(),
        }
    }
}

impl From<UpstreamError> for RpcError {
    fn from(error: UpstreamError) -> Self {
        Self::internal(error.to_string())
    }
}
