//! Responses of the gateway, from value to bytes.
//!
//! An [`RpcError`] has a code and a message of JSON-RPC or MCP; the HTTP status follows from its code and the
//! client's era.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use mcp_vary::error::Era;
use mcp_vary::error_code::{
    HEADER_MISMATCH, INSUFFICIENT_SCOPE, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST,
    METHOD_NOT_FOUND, MISSING_CLIENT_CAPABILITY, PARSE_ERROR, RATE_LIMITED, SESSION_NOT_FOUND,
    STORE_AWAY, UNSUPPORTED_VERSION,
};
use mcp_vary::json::{self, edit};
use mcp_vary_base::memory_budget::{Exhausted, Lease};
use serde_json::{Value, json};

use crate::envelope::{WireError, WireErrorKind};
use crate::revision::Revision;

/// What stands in an error before the time after which its server is tried again, such as `7 s`.
pub const RETRY_NOTE: &str = "; it is tried again in ";

/// A JSON-RPC error: code, message and optional data, as JSON text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RpcError {
    code: i64,
    message: String,
    data: Option<String>,
    /// The error as a server wrote it, which is forwarded.
    upstream_raw: Option<String>,
    /// The scopes that the call needs, if the token lacks one.
    scopes: Option<Arc<[String]>>,
    /// The seconds after which a limit allows the request again.
    retry_after: Option<u64>,
}

/// A JSON-RPC response with its HTTP status.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The message.
    pub body: Bytes,
    /// The HTTP status.
    pub status: StatusCode,
    /// The scopes that the call needs, if the token lacks one: for the challenge.
    pub scopes: Option<Arc<[String]>>,
    /// The seconds after which a limit allows the request again: for the header `Retry-After`.
    pub retry_after: Option<u64>,
    /// The memory that the body takes until the client has it.
    pub memory: Option<Arc<Lease>>,
}

impl Reply {
    /// The body, which keeps its memory.
    pub fn into_body(self) -> Bytes {
        in_memory(self.body, self.memory)
    }
}

/// `bytes`, which keep `memory` for as long as anybody has them.
pub fn in_memory(bytes: Bytes, memory: Option<Arc<Lease>>) -> Bytes {
    struct Owner(
        Bytes,
        #[expect(dead_code, reason = "it is released with the bytes")] Arc<Lease>,
    );
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    match memory {
        Some(memory) => Bytes::from_owner(Owner(bytes, memory)),
        None => bytes,
    }
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
            upstream_raw: None,
            scopes: None,
            retry_after: None,
        }
    }

    /// The same error with `data`, JSON text.
    pub fn with_data(mut self, data: impl Into<String>) -> Self {
        let data = data.into();
        self.upstream_raw = self
            .upstream_raw
            .map(|error_object| edit::set(&error_object, "data", &data).into_owned());
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

    /// The call needs scopes that the token lacks: HTTP status 403 (RFC 6750, section 3.1).
    pub fn insufficient_scope<'s>(scopes: impl Iterator<Item = &'s str>) -> Self {
        let scopes: Arc<[String]> = scopes.map(str::to_owned).collect();
        let data = json!({"scopes": *scopes}).to_string();
        let message = "the token lacks a scope that this call needs";
        let error = Self::new(INSUFFICIENT_SCOPE, message).with_data(data);
        Self {
            scopes: Some(scopes),
            ..error
        }
    }

    /// A limit is reached, which allows the request again after this many seconds: HTTP status 429 with `Retry-After`
    /// (RFC 6585, section 4).
    pub fn rate_limited(message: impl Into<String>, retry_after: u64) -> Self {
        Self {
            retry_after: Some(retry_after),
            ..Self::new(RATE_LIMITED, message)
        }
    }

    /// A limit applies, and the store that counts for all replicas is away: HTTP status 503.
    pub fn store_away() -> Self {
        let message = "the store that counts for rate limits is away; retry later";
        Self::new(STORE_AWAY, message)
    }

    /// The error of a server's response, or an internal error if it cannot be read.
    pub fn from_upstream_or_internal(error: &str) -> Self {
        Self::from_upstream(error).unwrap_or_else(|| {
            Self::internal("the server answered with an error that cannot be read")
        })
    }

    /// The error of a server's response; `None` if it cannot be read.
    pub fn from_upstream(error: &str) -> Option<Self> {
        let message = edit::get(error, "message").filter(|text| text.starts_with('"'))?;
        let code = serde_json::from_str(edit::get(error, "code")?).ok()?;
        // A lone surrogate can be forwarded, but not stored in a string here.
        let message = serde_json::from_str(message).unwrap_or_else(|_| message.to_owned());
        Some(Self {
            data: edit::get(error, "data").map(str::to_owned),
            upstream_raw: Some(error.to_owned()),
            ..Self::new(code, message)
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
        let error_object = self.upstream_raw.take();
        self.upstream_raw = error_object
            .map(|error_object| edit::set(&error_object, "code", &code.to_string()).into_owned());
    }

    /// Replaces the message.
    pub fn set_message(&mut self, message: String) {
        let error_object = self.upstream_raw.take();
        let text = json::string(&message);
        self.upstream_raw = error_object
            .map(|error_object| edit::set(&error_object, "message", &text).into_owned());
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
    /// An error of a server is an ordinary response: for a legacy client it never means that the session is gone or
    /// that the message could not be read.
    pub fn status(&self, era: Era) -> StatusCode {
        if self.retry_after.is_some() {
            return StatusCode::TOO_MANY_REQUESTS;
        }
        match (self.code, era) {
            (METHOD_NOT_FOUND, Era::Modern) => StatusCode::NOT_FOUND,
            (MISSING_CLIENT_CAPABILITY, Era::Modern) => StatusCode::BAD_REQUEST,
            _ if self.upstream_raw.is_some() => StatusCode::OK,
            (PARSE_ERROR | INVALID_REQUEST | UNSUPPORTED_VERSION..=HEADER_MISMATCH, _) => {
                StatusCode::BAD_REQUEST
            }
            (SESSION_NOT_FOUND, _) => StatusCode::NOT_FOUND,
            (INSUFFICIENT_SCOPE, _) => StatusCode::FORBIDDEN,
            (STORE_AWAY, _) => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::OK,
        }
    }

    /// The response message; without an id it has `null`, as JSON-RPC 2.0 requires.
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
        if let Some(error_object) = &self.upstream_raw {
            out.push_str(error_object);
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
            scopes: self.scopes.clone(),
            retry_after: self.retry_after,
            memory: None,
        }
    }
}

impl From<&WireError> for RpcError {
    fn from(error: &WireError) -> Self {
        let code = match error.kind {
            WireErrorKind::Parse => PARSE_ERROR,
            WireErrorKind::InvalidRequest => INVALID_REQUEST,
            WireErrorKind::InvalidParams => INVALID_PARAMS,
        };
        Self::new(code, error.reason.clone())
    }
}

impl From<Exhausted> for RpcError {
    fn from(_: Exhausted) -> Self {
        Self::internal(Exhausted::REASON)
    }
}

impl From<&mcp_vary::error::Error> for RpcError {
    fn from(error: &mcp_vary::error::Error) -> Self {
        let object = error.to_error_object();
        Self {
            data: object.data.map(|data| data.to_string()),
            retry_after: match error {
                mcp_vary::error::Error::TooManySwitches { retry_after, .. } => Some(*retry_after),
                _ => None,
            },
            ..Self::new(object.code, object.message)
        }
    }
}

/// A response with `result`, JSON text that is sent unchanged.
pub fn result(id: &str, result: &[u8]) -> Reply {
    result_of_parts(id, &[result])
}

/// The same for a result in several parts, so that long lists are copied only once.
pub fn result_of_parts(id: &str, result: &[&[u8]]) -> Reply {
    const START: &[u8] = br#"{"jsonrpc":"2.0","id":"#;
    const MIDDLE: &[u8] = br#","result":"#;
    let size: usize = result.iter().map(|part| part.len()).sum();
    // The exact size: `Bytes` would reallocate a vector with spare capacity.
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
        scopes: None,
        retry_after: None,
        memory: None,
    }
}

/// The supported revisions, newest first, as a JSON array.
pub fn supported_versions() -> String {
    let all: Value = Revision::ALL
        .iter()
        .rev()
        .map(|revision| revision.as_str())
        .collect();
    all.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn says(failure: &RpcError, id: Option<&str>, text: &str) {
        assert_eq!(failure.to_bytes(id), text.as_bytes());
    }

    #[test]
    fn an_error_carries_the_id_as_written_and_its_data() {
        let failure = RpcError::invalid_params("no \"x\"").with_data(r#"{"a": 1.0}"#);
        says(
            &failure,
            Some("\"\\u0041\""),
            r#"{"jsonrpc":"2.0","id":"\u0041","error":{"code":-32602,"message":"no \"x\"","data":{"a": 1.0}}}"#,
        );
        let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}"#;
        says(&RpcError::invalid_request("x"), None, text);
    }

    #[test]
    fn the_status_follows_from_code_and_era() {
        let status = |code, era| RpcError::new(code, "").status(era).as_u16();
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

    /// The code alone does not decide: servers use `-32000` and `-32005` as they like.
    #[test]
    fn a_limit_of_the_gateway_is_429_and_a_code_of_a_server_is_not() {
        let switches = RpcError::from(&mcp_vary::error::Error::TooManySwitches {
            active: "compact".parse().unwrap(),
            retry_after: 7,
        });
        let limited = RpcError::rate_limited("the limit `a` is reached", 7);
        assert_eq!((switches.code(), limited.code()), (-32000, -32005));
        for era in [Era::Legacy, Era::Modern] {
            for failure in [&switches, &limited] {
                let reply = failure.reply(Some("1"), era);
                assert_eq!((reply.status.as_u16(), reply.retry_after), (429, Some(7)));
            }
            for code in [-32000, -32005] {
                let told = format!(r#"{{"code":{code},"message":""}}"#);
                let reply = RpcError::from_upstream_or_internal(&told).reply(Some("1"), era);
                assert_eq!((reply.status.as_u16(), reply.retry_after), (200, None));
            }
        }
    }

    #[test]
    fn an_upstream_error_does_not_end_a_session() {
        let told = RpcError::from_upstream(r#"{"code":-32001,"message":"Request timed out"}"#);
        let told = told.unwrap();
        assert_eq!(told.status(Era::Legacy), StatusCode::OK);
        assert_eq!(told.status(Era::Modern), StatusCode::OK);
    }

    #[test]
    fn a_server_cannot_end_a_session_by_an_error() {
        let told = |code| {
            RpcError::from_upstream_or_internal(&format!(r#"{{"code":{code},"message":""}}"#))
        };
        for code in [PARSE_ERROR, INVALID_REQUEST, SESSION_NOT_FOUND, -32022] {
            assert_eq!(told(code).status(Era::Legacy), StatusCode::OK, "{code}");
        }
        let found = told(METHOD_NOT_FOUND).status(Era::Modern);
        assert_eq!(found, StatusCode::NOT_FOUND);
    }

    #[test]
    fn an_upstream_error_keeps_its_data_as_written() {
        let failure = RpcError::from_upstream(r#"{"code":-32602,"message":"m","data":{"b":1.10}}"#);
        assert_eq!(failure.unwrap().data(), Some(r#"{"b":1.10}"#));
        assert!(RpcError::from_upstream("7").is_none());
    }
}
