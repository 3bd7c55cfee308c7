//! A message to a server, and what the server sends back.

use http::header::HeaderValue;
use serde_json::Value;

use crate::answer::{Answer, ErrorAnswer};
use crate::era::Era;

/// A JSON-RPC message to the server.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) era: Era,
    pub(crate) method: &'a str,
    pub(crate) params: &'a Value,
    /// `None` for notifications.
    pub(crate) id: Option<u64>,
    /// The variant that the header selects, over HTTP.
    pub(crate) variant_header: Option<&'a str>,
    pub(crate) text: String,
}

/// What the server sent back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub(crate) session: Option<HeaderValue>,
    /// The JSON-RPC response, if there is one for the request.
    pub(crate) message: Option<Value>,
    /// The HTTP status of 400 to 499 that refuses a request without a JSON-RPC response.
    pub(crate) refusal: Option<u16>,
    /// The HTTP status, or another word for what came instead of a response.
    pub(crate) status: String,
    /// What was received, as far as it was read.
    pub(crate) body: String,
}

impl Reply {
    /// The result or error; none if the request was not answered.
    pub(crate) fn answer(&self) -> Option<Answer> {
        if let Some(message) = &self.message {
            return Some(Answer::from_response(message));
        }
        // An HTTP server may refuse what it cannot read without a JSON-RPC response.
        self.refusal.map(|status| {
            Answer::Error(ErrorAnswer {
                code: None,
                message: self.status.clone(),
                data: Value::Null,
                http_status: Some(status),
            })
        })
    }
}

/// `json` as a message, if it is the response to the request `id`. An error without an id is one, too: the server could
/// not read the request's.
pub(crate) fn response_to(json: &[u8], id: Option<u64>) -> Option<Value> {
    let message: Value = serde_json::from_slice(json).ok()?;
    let is_error = message.get("error").is_some();
    let is_response = is_error || message.get("result").is_some();
    let answered = message.get("id").and_then(Value::as_u64);
    let matches_request = answered == id || (answered.is_none() && is_error);
    (is_response && matches_request).then_some(message)
}
