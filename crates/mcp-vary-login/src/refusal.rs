//! Requests that a server refused.

use http::{HeaderValue, StatusCode};

use crate::challenge::Challenge;

/// A refusal that another authorization may avoid.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) sent: Option<HeaderValue>,
    pub(crate) challenge: Challenge,
    pub(crate) kind: RefusalKind,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RefusalKind {
    /// 401.
    Unauthorized,
    /// 403 with `insufficient_scope`.
    InsufficientScope,
}

impl Refusal {
    pub(crate) fn new(
        sent: Option<&HeaderValue>,
        status: StatusCode,
        challenges: &[HeaderValue],
    ) -> Option<Self> {
        let challenge = Challenge::parse(challenges);
        let kind = match status {
            StatusCode::UNAUTHORIZED => RefusalKind::Unauthorized,
            StatusCode::FORBIDDEN if challenge.is_insufficient_scope() => {
                RefusalKind::InsufficientScope
            }
            _ => return None,
        };
        Some(Self {
            sent: sent.cloned(),
            challenge,
            kind,
        })
    }
}
