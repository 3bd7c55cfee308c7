//! Messages from servers: their kind, read from the envelope only.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use bytes::{Buf as _, Bytes};
use mcp_vary::error_code::{INVALID_REQUEST, METHOD_NOT_FOUND};
use mcp_vary::json::{self, MAX_DEPTH, fault, skip, span};

use crate::raw_envelope::{RawEnvelope, present};

/// A JSON-RPC message from a server.
#[derive(Debug)]
pub enum ServerMessage<'a> {
    /// A request from the server.
    Request {
        /// JSON text.
        id: &'a str,
        /// The method.
        method: Cow<'a, str>,
        /// JSON text.
        params: Option<&'a str>,
    },
    /// A notification from the server.
    Notification {
        /// The method.
        method: Cow<'a, str>,
        /// JSON text.
        params: Option<&'a str>,
        /// Whether a strict client would read the message as it was written.
        is_strict: bool,
    },
    /// A response.
    Response {
        /// The id of our request; `None` when the server could not read the request.
        id: Option<u64>,
        /// The payload of the response.
        outcome: ResponseOutcome,
        /// Whether it can be a line of a log in JSON: it has no `jsonrpc`, and members that no response has.
        may_be_log: bool,
    },
    /// A response that nests deeper than [`MAX_DEPTH`] and is not forwarded.
    TooDeep {
        /// The id of our request.
        id: u64,
    },
}

/// The payload of a response.
#[derive(Clone, Debug)]
pub struct ResponseOutcome {
    /// Whether the payload is the `error`, not the `result`.
    pub is_error: bool,
    /// The position of the payload in the message.
    pub payload: Range<usize>,
}

impl<'a> ServerMessage<'a> {
    /// Reads the envelope of `bytes`, which may begin with a byte order mark.
    ///
    /// # Errors
    ///
    /// A sentence that says why `bytes` is not a message: not UTF-8, not JSON, not an object, a repeated key of the
    /// envelope, too deep, or an object that is neither request, notification nor response.
    pub fn read(bytes: &'a [u8]) -> Result<Self, String> {
        let whole = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
        let text = whole.strip_prefix(BYTE_ORDER_MARK).unwrap_or(whole);
        if !text.trim_start().starts_with('{') {
            return Err(NOT_AN_OBJECT.to_owned());
        }
        // The fast reader rejects text that nests too deep, so only rejected text is measured.
        if let Some(envelope) = RawEnvelope::read_plain(text) {
            return Self::classify(&envelope, whole);
        }
        let envelope = RawEnvelope::read(text)
            .map_err(|error| format!("it is not JSON: {}", fault(&error)))?;
        let message = Self::classify(&envelope, whole)?;
        match (skip(text, 0, MAX_DEPTH), message) {
            (Some(_), message) => Ok(message),
            (None, Self::Response { id: Some(id), .. }) => Ok(Self::TooDeep { id }),
            (None, _) => Err(format!("it nests deeper than {MAX_DEPTH} levels")),
        }
    }

    fn classify(envelope: &RawEnvelope<'a>, whole: &'a str) -> Result<Self, String> {
        let id = present(envelope.id);
        if present(envelope.method).is_some() {
            let method = envelope.method().ok_or("its `method` is not a string")?;
            let params = present(envelope.params);
            return Ok(match id {
                Some(id) => Self::Request { id, method, params },
                None => Self::Notification {
                    method,
                    params,
                    is_strict: envelope.is_strict_notification(),
                },
            });
        }
        let (is_error, payload) = match (envelope.error, envelope.result) {
            (Some(error), _) if error != "null" => (true, error),
            (_, Some(result)) => (false, result),
            (Some(error), None) => (true, error),
            (None, None) => return Err("it has no `method`, `result` or `error`".to_owned()),
        };
        let id = match id {
            Some(id) => Some(own_number(id).ok_or("its `id` is not one of ours")?),
            None => None,
        };
        let payload = span(whole, payload);
        Ok(Self::Response {
            id,
            outcome: ResponseOutcome { is_error, payload },
            may_be_log: envelope.jsonrpc.is_none() && envelope.has_others,
        })
    }
}

/// The number that Vary chose as an id or a token, from what a peer sent back: `7`, or as some write it, `"7"` or `7.0`.
///
/// But for white space around it, a text must be exactly the decimal form, so that no other id of a peer is taken for one of
/// ours.
pub fn own_number(token: &str) -> Option<u64> {
    if let Some(text) = json::unquoted(token) {
        let trimmed = text.trim();
        let number: u64 = trimmed.parse().ok()?;
        return (number.to_string() == trimmed).then_some(number);
    }
    let whole = token.trim_end_matches('0').strip_suffix('.');
    whole.unwrap_or(token).parse().ok()
}

/// The canonical spelling of a token that Vary chose, as a peer sent it back.
pub fn own_token(token: &str) -> String {
    own_number(token).map_or_else(|| canonical_token(token), |number| number.to_string())
}

/// Why a text that does not begin as an object is not a message.
pub const NOT_AN_OBJECT: &str = "it is not a JSON object";

/// Some programs write it before UTF-8.
///
/// > [Parsers] MAY ignore the presence of a byte order mark rather than treating it as an error. (RFC 8259, 8.1)
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

/// The messages in `bytes`: one message, or the elements of a batch (2025-03-26). A byte order mark is left out.
pub fn messages(mut bytes: Bytes) -> impl Iterator<Item = Bytes> {
    if bytes.starts_with("\u{feff}".as_bytes()) {
        bytes.advance(BYTE_ORDER_MARK.len_utf8());
    }
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let batch = (first == Some(&b'[')).then(|| batch(&bytes)).flatten();
    let single = batch.is_none().then_some(bytes);
    single.into_iter().chain(batch.into_iter().flatten())
}

/// The elements of an array.
fn batch(bytes: &Bytes) -> Option<Vec<Bytes>> {
    let text = std::str::from_utf8(bytes).unwrap_or("");
    let elements = json::elements(text).ok()?;
    let part = |element| bytes.slice(span(text, element));
    Some(elements.into_iter().map(part).collect())
}

/// A JSON-RPC request, or a notification when `id` is `None`, on one line.
pub fn write_request(id: Option<u64>, method: &str, params: Option<&str>) -> Bytes {
    let mut out = String::with_capacity(params.map_or(0, str::len) + method.len() + 64);
    out.push_str(r#"{"jsonrpc":"2.0","#);
    if let Some(id) = id {
        let _ = write!(out, r#""id":{id},"#);
    }
    out.push_str(r#""method":"#);
    json::write_string(&mut out, method);
    if let Some(params) = params {
        out.push_str(r#","params":"#);
        out.push_str(&on_one_line(params));
    }
    out.push('}');
    Bytes::from(out)
}

/// A notification that every client can read: `message`, or if it is not strict, its method and params written anew.
pub fn strict(message: &Bytes, is_strict: bool, method: &str, params: Option<&str>) -> Bytes {
    if is_strict {
        message.clone()
    } else {
        write_request(None, method, params)
    }
}

/// The answer to a server that sends a client's request: it is read as the refusal of that request, which it repeated.
pub const REPEATED_REQUEST: &str = "it repeats what it is sent";

/// The response to a server request on a connection without a client: `{}` to a `ping`, no roots, and an error for
/// anything else.
pub fn write_default_response(id: &str, method: &str) -> Bytes {
    match method {
        "ping" => write_response(id, Ok("{}")),
        "roots/list" => write_response(id, Ok(r#"{"roots":[]}"#)),
        // A program that repeats what it reads sends this back, too, and it is read as the refusal.
        "initialize" | "server/discover" => {
            write_response(id, Err(&error_json(INVALID_REQUEST, REPEATED_REQUEST)))
        }
        _ => {
            let method = crate::sanitize::excerpt(method.as_bytes(), 60);
            let message =
                format!("there is no client on this connection, so `{method}` cannot be answered");
            write_response(id, Err(&error_json(METHOD_NOT_FOUND, &message)))
        }
    }
}

/// A response to the request `id` of a server, on one line; both are JSON text.
pub fn write_response(id: &str, outcome: Result<&str, &str>) -> Bytes {
    let (key, value) = match outcome {
        Ok(result) => ("result", result),
        Err(error) => ("error", error),
    };
    let value = on_one_line(value);
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"{key}":{value}}}"#))
}

/// The JSON text of an error.
pub fn error_json(code: i64, message: &str) -> String {
    format!(r#"{{"code":{code},"message":{}}}"#, json::string(message))
}

/// Replaces line breaks, which are white space in JSON and would end the message on stdio.
fn on_one_line(text: &str) -> Cow<'_, str> {
    match memchr::memchr2(b'\n', b'\r', text.as_bytes()) {
        Some(_) => Cow::Owned(text.replace(['\n', '\r'], " ")),
        None => Cow::Borrowed(text),
    }
}

/// The canonical spelling of a token: servers may escape the characters of a string differently.
pub fn canonical_token(token: &str) -> String {
    if !token.contains('\\') {
        return token.to_owned();
    }
    match serde_json::from_str::<String>(token) {
        Ok(text) => json::string(&text),
        Err(_) => token.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(text: &str, expected: &str) {
        let read = match ServerMessage::read(text.as_bytes()) {
            Ok(ServerMessage::Request { id, method, params }) => {
                format!("request {id} {method} {params:?}")
            }
            Ok(ServerMessage::Notification {
                method,
                params,
                is_strict,
            }) => {
                let tells = if is_strict { "tells" } else { "hints" };
                format!("{tells} {method} {params:?}")
            }
            Ok(ServerMessage::Response { id, outcome, .. }) => {
                let kind = if outcome.is_error { "error" } else { "result" };
                format!("{kind} {id:?} {}", &text[outcome.payload])
            }
            Ok(ServerMessage::TooDeep { id }) => format!("too deep {id}"),
            Err(why) => why,
        };
        assert!(read.starts_with(expected), "{read}");
    }

    #[test]
    fn the_envelope_says_what_a_message_is() {
        let text = r#"{"id":7,"result":{"a": 1.10}}"#;
        reads(text, r#"result Some(7) {"a": 1.10}"#);
        reads(r#"{"result":null,"id":7}"#, "result Some(7) null");
        reads(r#"{"id":7,"error":null,"result":{}}"#, "result Some(7) {}");
        let text = r#"{"id":7,"error":{"code":1}}"#;
        reads(text, r#"error Some(7) {"code":1}"#);
        reads(r#"{"id":null,"error":{}}"#, "error None {}");
        reads(r#" {"id":"x","method":"ping"}"#, r#"request "x" ping None"#);
        let told = r#"{"jsonrpc":"2.0","method":"a\/b"}"#;
        reads(told, "tells a/b None");
        let told = r#"{"jsonrpc":"2.0","method":"a","params":{}}"#;
        reads(told, r#"tells a Some("{}")"#);
    }

    #[test]
    fn null_is_absent() {
        for members in [
            r#""method":"a""#,
            r#""jsonrpc":"2.0","id":null,"method":"a""#,
            r#""jsonrpc":"2.0","method":"a","params":null"#,
            r#""jsonrpc":"2.0","method":"a","result":null"#,
            r#""jsonrpc":"2.0","method":"a","error":null"#,
            r#""jsonrpc":"2.0","jsonrpc":"2.0","method":"a""#,
        ] {
            reads(&format!("{{{members}}}"), "hints a None");
        }
        let asked = r#"{"id":"x","method":"ping","params":null,"result":null}"#;
        reads(asked, r#"request "x" ping None"#);
        let answer = r#"{"id":7,"method":null,"params":null,"error":null,"result":{}}"#;
        reads(answer, "result Some(7) {}");
        let error = r#"{"id":7,"method":null,"result":null,"error":{}}"#;
        reads(error, "error Some(7) {}");
    }

    #[test]
    fn an_id_of_ours_may_come_back_as_a_text_or_with_a_fraction_of_zero() {
        for id in [
            "7",
            r#""7""#,
            r#"" 7""#,
            r#""7\n""#,
            r#""\u0037""#,
            "7.0",
            "7.00",
        ] {
            let text = format!(r#"{{"id":{id},"result":{{}}}}"#);
            reads(&text, "result Some(7) {}");
            assert_eq!(own_token(id), "7", "{id}");
        }
        for id in [
            "07",
            "7 7",
            "7x",
            "+7",
            "-7",
            "7.0",
            "",
            "18446744073709551616",
        ] {
            let id = json::string(id);
            let text = format!(r#"{{"id":{id},"result":{{}}}}"#);
            reads(&text, "its `id` is not one of ours");
            assert_eq!(own_token(&id), canonical_token(&id));
        }
        for id in ["7.5", "-7", "[7]", "true"] {
            let text = format!(r#"{{"id":{id},"result":{{}}}}"#);
            reads(&text, "its `id` is not one of ours");
        }
    }

    #[test]
    fn an_object_without_jsonrpc_that_has_other_members_may_be_a_line_of_a_log() {
        for (text, expected) in [
            (r#"{"level":30,"id":7,"result":"ok"}"#, true),
            (r#"{"id":7,"error":{"code":1},"\u0061":1}"#, true),
            (r#"{"id":7,"result":{"level":30},"params":null}"#, false),
            (r#"{"jsonrpc":"2.0","level":30,"id":7,"result":{}}"#, false),
        ] {
            let read = ServerMessage::read(text.as_bytes()).unwrap();
            let ServerMessage::Response { may_be_log, .. } = read else {
                panic!("{text}: {read:?}");
            };
            assert_eq!(may_be_log, expected, "{text}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_ignored() {
        reads("\u{feff}{\"id\":7,\"result\":[1]}", "result Some(7) [1]");
        let marked = Bytes::from_static("\u{feff}[{\"a\":1}]".as_bytes());
        let all: Vec<_> = messages(marked).collect();
        assert_eq!(all, [r#"{"a":1}"#]);
    }

    #[test]
    fn what_is_no_message_is_refused() {
        reads("Server started", "it is not a JSON object");
        reads("{", "it is not JSON");
        reads(r#"{"level":30,"msg":"up"}"#, "it has no `method`");
        let expected = "it is not JSON: `id` is given twice";
        reads(r#"{"id":1,"id":2,"result":{}}"#, expected);
        reads(r#"{"method":1}"#, "its `method` is not a string");
    }

    #[test]
    fn what_nests_too_deep_is_not_passed_on() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let answer = |levels| format!(r#"{{"id":7,"result":{}}}"#, nested(levels));
        reads(&answer(MAX_DEPTH - 1), "result Some(7) [[");
        reads(&answer(MAX_DEPTH), "too deep 7");
        reads(&answer(100_000), "too deep 7");
        let error = format!(r#"{{"id":7,"error":{{"data":{}}}}}"#, nested(MAX_DEPTH));
        reads(&error, "too deep 7");
        // Also where the slow reader is needed for another reason.
        let escaped = format!(r#"{{"i\u0064":7,"result":{}}}"#, nested(MAX_DEPTH));
        reads(&escaped, "too deep 7");
        let told = format!(r#"{{"method":"a","params":{}}}"#, nested(MAX_DEPTH));
        reads(&told, "it nests deeper than 128 levels");
        reads(&nested(100_000), "it is not a JSON object");
    }

    #[test]
    fn a_message_is_one_line() {
        let line = write_request(Some(3), "a\"b", Some("{\n\"x\":\r1}"));
        let expected = r#"{"jsonrpc":"2.0","id":3,"method":"a\"b","params":{ "x": 1}}"#;
        assert_eq!(line, expected);
    }

    #[test]
    fn a_batch_is_its_elements() {
        let all: Vec<_> = messages(Bytes::from_static(br#" [{"a":1}, 2]"#)).collect();
        assert_eq!(all, [&br#"{"a":1}"#[..], b"2"]);
    }

    #[test]
    fn a_token_is_found_however_it_is_escaped() {
        assert_eq!(canonical_token(r#""a\/b""#), canonical_token(r#""a/b""#));
        assert_ne!(canonical_token("1"), canonical_token(r#""1""#));
    }
}
