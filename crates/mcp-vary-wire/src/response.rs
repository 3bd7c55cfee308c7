//! Every answer of the gateway, from value to bytes.
//!
//! A [`Failure`] is what went wrong in the words and codes of JSON-RPC and MCP; the HTTP status follows
//! from its code and the client's era, in one place.

use std::fmt::Write as _;

use bytes::Bytes;
use http::StatusCode;
use mcp_vary::error::Era;
use mcp_vary::json;
use mcp_vary::json::edit;
use mcp_vary_base::memory_budget::Exhausted;

use crate::envelope::{WireError, WireFault};
use crate::revision::Revision;

/// A JSON-RPC error: code, message and optional data, as JSON text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    code: i64,
    message: String,
    data: Option<String>,
    /// The error as a server wrote it, which is what is sent on.
    told: Option<String>,
}

/// One whole JSON-RPC response and the HTTP status that goes with it.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The message.
    pub body: Bytes,
    /// The HTTP status that it is sent with.
    pub status: StatusCode,
}

/// JSON-RPC: the message is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: the message is not a request.
pub const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: the method does not exist.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: the params are wrong.
pub const INVALID_PARAMS: i64 = -32602;
/// JSON-RPC: the request failed through no fault of the client.
pub const INTERNAL_ERROR: i64 = -32603;
/// Resource not found, until 2025-11-25; `-32602` since.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// What SDKs answer when a session is unknown; the specification names the HTTP status only.
const SESSION_NOT_FOUND: i64 = -32001;
/// MCP 2026-07-28: a header and the body of a request disagree.
pub const HEADER_MISMATCH: i64 = -32020;
/// MCP 2026-07-28: the request needs a capability that the client did not declare.
pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// MCP 2026-07-28: the server does not speak the revision of the request.
pub const UNSUPPORTED_VERSION: i64 = -32022;
/// A URL must be visited first; 2025-11-25 only.
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

impl Failure {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
            told: None,
        }
    }

    /// The same error with `data`, JSON text.
    pub fn with_data(mut self, data: impl Into<String>) -> Self {
        let data = data.into();
        self.told = self
            .told
            .map(|told| edit::set(&told, "data", &data).into_owned());
        self.data = Some(data);
        self
    }

    /// The params are wrong.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// The message is not a valid request.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }

    /// The method does not exist.
    pub fn method_not_found(message: impl Into<String>) -> Self {
        Self::new(METHOD_NOT_FOUND, message)
    }

    /// Source: MCP 2025-11-25, basic/transports, "Session Management".
    pub fn session_not_found() -> Self {
        let message = "Session not found; send `initialize` again";
        Self::new(SESSION_NOT_FOUND, message)
    }

    /// The request failed through no fault of the client.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(INTERNAL_ERROR, message)
    }

    /// Source: MCP 2026-07-28, transports/streamable-http, "Server Validation".
    pub fn header_mismatch(message: impl std::fmt::Display) -> Self {
        Self::new(HEADER_MISMATCH, format!("Header mismatch: {message}"))
    }

    /// Source: MCP 2026-07-28, basic/versioning, "Protocol Version Negotiation".
    pub fn unsupported_version(requested: &str) -> Self {
        let cut: String = requested.chars().take(64).collect();
        Self::new(UNSUPPORTED_VERSION, "Unsupported protocol version").with_data(format!(
            r#"{{"supported":{},"requested":{}}}"#,
            supported_versions(),
            json::string(&cut)
        ))
    }

    /// The error of an upstream's answer, or one that says that it cannot be read.
    pub fn told_by_upstream(error: &str) -> Self {
        Self::from_upstream(error).unwrap_or_else(|| {
            Self::internal("the server answered with an error that cannot be read")
        })
    }

    /// The error of an upstream's answer, as it said it.
    pub fn from_upstream(error: &str) -> Option<Self> {
        let message = edit::get(error, "message").filter(|text| text.starts_with('"'))?;
        Some(Self {
            code: serde_json::from_str(edit::get(error, "code")?).ok()?,
            // A lone surrogate can be sent on, but not be a part of a string here.
            message: serde_json::from_str(message).unwrap_or_else(|_| message.to_owned()),
            data: edit::get(error, "data").map(str::to_owned),
            told: Some(error.to_owned()),
        })
    }

    /// The JSON-RPC code.
    pub fn code(&self) -> i64 {
        self.code
    }

    /// The message for a person.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Replaces the code.
    pub fn set_code(&mut self, code: i64) {
        self.code = code;
        let told = self.told.take();
        self.told = told.map(|told| edit::set(&told, "code", &code.to_string()).into_owned());
    }

    /// Replaces the message.
    pub fn set_message(&mut self, message: String) {
        let told = self.told.take();
        let text = json::string(&message);
        self.told = told.map(|told| edit::set(&told, "message", &text).into_owned());
        self.message = message;
    }

    /// `data`, JSON text.
    pub fn data(&self) -> Option<&str> {
        self.data.as_deref()
    }

    /// The HTTP status of this error.
    ///
    /// > If the server does not implement the requested RPC method, it MUST respond with
    /// > `404 Not Found` (2026-07-28); version, capability and header errors are `400 Bad Request`.
    ///
    /// What the server behind answered is an answer: to a legacy client it never says that the session
    /// is gone or that the message could not be read.
    pub fn status(&self, era: Era) -> StatusCode {
        match (self.code, era) {
            (METHOD_NOT_FOUND, Era::Modern) => StatusCode::NOT_FOUND,
            (MISSING_CLIENT_CAPABILITY, Era::Modern) => StatusCode::BAD_REQUEST,
            _ if self.told.is_some() => StatusCode::OK,
            (PARSE_ERROR | INVALID_REQUEST | UNSUPPORTED_VERSION..=HEADER_MISMATCH, _) => {
                StatusCode::BAD_REQUEST
            }
            (SESSION_NOT_FOUND, _) => StatusCode::NOT_FOUND,
            _ => StatusCode::OK,
        }
    }

    /// The response message; without an id it says `null`, as JSON-RPC 2.0 asks for.
    pub fn to_bytes(&self, id: Option<&str>) -> Bytes {
        let id = id.unwrap_or("null");
        let mut out = String::with_capacity(128 + self.message.len());
        let _ = write!(out, r#"{{"jsonrpc":"2.0","id":{id},"error":"#);
        self.write(&mut out);
        out.push('}');
        Bytes::from(out)
    }

    /// The error alone.
    pub fn to_json(&self) -> String {
        let mut out = String::with_capacity(96 + self.message.len());
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        if let Some(told) = &self.told {
            out.push_str(told);
            return;
        }
        let _ = write!(out, r#"{{"code":{},"message":"#, self.code);
        json::write_string(out, &self.message);
        if let Some(data) = &self.data {
            out.push_str(r#","data":"#);
            out.push_str(data);
        }
        out.push('}');
    }

    /// The response message with its HTTP status.
    pub fn reply(&self, id: Option<&str>, era: Era) -> Reply {
        Reply {
            body: self.to_bytes(id),
            status: self.status(era),
        }
    }
}

impl From<&WireError> for Failure {
    fn from(error: &WireError) -> Self {
        let code = match error.fault {
            WireFault::Parse => PARSE_ERROR,
            WireFault::InvalidRequest => INVALID_REQUEST,
            WireFault::InvalidParams => INVALID_PARAMS,
        };
        Self::new(code, error.reason.clone())
    }
}

impl From<Exhausted> for Failure {
    fn from(_: Exhausted) -> Self {
        Self::internal(Exhausted::REASON)
    }
}

impl From<&mcp_vary::error::Error> for Failure {
    fn from(error: &mcp_vary::error::Error) -> Self {
        let told = error.to_error_object();
        Self {
            code: i64::from(told.code),
            message: told.message,
            data: told.data.map(|data| data.to_string()),
            told: None,
        }
    }
}

/// A response whose result is `result`, JSON text that is sent as it is.
pub fn result(id: &str, result: &[u8]) -> Reply {
    result_of_parts(id, &[result])
}

/// The same, of a result in several parts: long lists are copied once only.
pub fn result_of_parts(id: &str, result: &[&[u8]]) -> Reply {
    const START: &[u8] = br#"{"jsonrpc":"2.0","id":"#;
    const MIDDLE: &[u8] = br#","result":"#;
    let size: usize = result.iter().map(|part| part.len()).sum();
    // As much as there will be: bytes with room to spare take another allocation.
    let mut out = Vec::with_capacity(START.len() + id.len() + MIDDLE.len() + size + 1);
    out.extend_from_slice(START);
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(MIDDLE);
    for part in result {
        out.extend_from_slice(part);
    }
    out.push(b'}');
    Reply {
        body: Bytes::from(out),
        status: StatusCode::OK,
    }
}

/// The revisions that the gateway serves, newest first, as a JSON array.
pub fn supported_versions() -> String {
    let all: Vec<_> = Revision::ALL
        .iter()
        .rev()
        .map(|revision| json::string(revision.as_str()))
        .collect();
    format!("[{}]", all.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn says(failure: &Failure, id: Option<&str>, text: &str) {
        assert_eq!(failure.to_bytes(id), text.as_bytes());
    }

    #[test]
    fn an_error_carries_the_id_as_written_and_its_data() {
        let failure = Failure::invalid_params("no \"x\"").with_data(r#"{"a": 1.0}"#);
        says(
            &failure,
            Some("\"\\u0041\""),
            r#"{"jsonrpc":"2.0","id":"\u0041","error":{"code":-32602,"message":"no \"x\"","data":{"a": 1.0}}}"#,
        );
        says(
            &Failure::invalid_request("x"),
            None,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}"#,
        );
    }

    #[test]
    fn the_status_follows_from_code_and_era() {
        let status = |code, era| Failure::new(code, "").status(era).as_u16();
        for (code, legacy, modern) in [
            (PARSE_ERROR, 400, 400),
            (INVALID_REQUEST, 400, 400),
            (METHOD_NOT_FOUND, 200, 404),
            (INVALID_PARAMS, 200, 200),
            (INTERNAL_ERROR, 200, 200),
            (SESSION_NOT_FOUND, 404, 404),
            (-32020, 400, 400),
            (-32021, 400, 400),
            (-32022, 400, 400),
            (-32019, 200, 200),
        ] {
            assert_eq!(status(code, Era::Legacy), legacy, "{code}");
            assert_eq!(status(code, Era::Modern), modern, "{code}");
        }
    }

    #[test]
    fn an_upstream_error_does_not_end_a_session() {
        let told = Failure::from_upstream(r#"{"code":-32001,"message":"Request timed out"}"#);
        let told = told.unwrap();
        assert_eq!(told.status(Era::Legacy), StatusCode::OK);
        assert_eq!(told.status(Era::Modern), StatusCode::OK);
    }

    #[test]
    fn a_server_cannot_end_a_session_by_an_error() {
        let told = |code| Failure::told_by_upstream(&format!(r#"{{"code":{code},"message":""}}"#));
        for code in [PARSE_ERROR, INVALID_REQUEST, SESSION_NOT_FOUND, -32022] {
            assert_eq!(told(code).status(Era::Legacy), StatusCode::OK, "{code}");
        }
        assert_eq!(
            told(METHOD_NOT_FOUND).status(Era::Modern),
            StatusCode::NOT_FOUND
        );
    }

    #[test]
    fn an_upstream_error_keeps_its_data_as_written() {
        let failure = Failure::from_upstream(r#"{"code":-32602,"message":"m","data":{"b":1.10}}"#);
        assert_eq!(failure.unwrap().data(), Some(r#"{"b":1.10}"#));
        assert!(Failure::from_upstream("7").is_none());
    }
}
