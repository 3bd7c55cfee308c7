//! A request as it was received.

use bytes::Bytes;
use http::HeaderMap;
use mcp_vary_wire::envelope::{self, Message};
use mcp_vary_wire::params::Params;

/// In place of the id of a notification. Requests must not have it.
const NO_ID: &str = "null";

/// A request or notification from a client, its parts as written.
#[derive(Debug)]
pub(crate) struct IncomingRequest<'a> {
    pub(crate) id: &'a str,
    pub(crate) method: &'a str,
    pub(crate) params: Params<'a>,
    /// The headers of a modern HTTP request, which must agree with the body.
    pub(crate) headers: Option<&'a HeaderMap>,
    /// The message that the parts were read from, if they may be shared with it.
    pub(crate) message: Option<&'a Bytes>,
}

impl<'a> IncomingRequest<'a> {
    /// The request or notification in a `message`, which was read from `body`.
    pub(crate) fn new(message: &'a Message<'a>, params: Params<'a>, body: &'a Bytes) -> Self {
        Self {
            id: message.id.unwrap_or(NO_ID),
            method: message.method.as_deref().unwrap_or_default(),
            params,
            headers: None,
            message: Some(body),
        }
    }

    /// Whether it has no response.
    pub(crate) fn is_notification(&self) -> bool {
        self.id == NO_ID
    }

    /// A part as it was written, owned; copied only if it cannot be shared.
    pub(crate) fn retain(&self, part: &str) -> Bytes {
        let shared = self
            .message
            .and_then(|message| envelope::slice_of(message, part));
        shared.unwrap_or_else(|| Bytes::copy_from_slice(part.as_bytes()))
    }
}
