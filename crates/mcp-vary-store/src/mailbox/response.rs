//! What comes of a request that another replica answers.

use http::{HeaderMap, StatusCode};

use super::exchange::ReplicaBody;

/// Why another replica has not answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ForwardError {
    /// It has not got the request, and will not.
    #[error("the other replica cannot be reached")]
    NotSent,
    /// The same, since it has no connection to the store: it has ended, or is cut off.
    #[error("the other replica has ended")]
    Ended,
    /// The same, since too many requests are forwarded, of all or of this client.
    #[error("as many requests are forwarded as may be")]
    Full,
    /// It may have got the request, and handled it.
    #[error("the other replica did not answer")]
    Unanswered,
}

/// The response of another replica.
#[derive(Debug)]
pub struct ReplicaResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, as it arrives.
    pub body: ReplicaBody,
}
