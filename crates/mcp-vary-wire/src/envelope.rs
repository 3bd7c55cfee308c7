//! Messages from clients: the JSON-RPC envelope, read on borrowed bytes and checked.
//!
//! Only the six members of the envelope are read; `params`, `result` and `error` stay as text. Source: JSON-RPC 2.0,
//! section 4; MCP 2026-07-28, basic/index, "Messages".

use std::borrow::Cow;
use std::str::Utf8Error;

use bytes::Bytes;
use mcp_vary::json::{self, fault};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::raw_envelope::{RawEnvelope, present};
use crate::server_message::BYTE_ORDER_MARK;

/// One JSON-RPC message: a request, a notification or a response.
///
/// # Examples
///
/// ```
/// use mcp_vary_wire::envelope::Message;
///
/// let message = Message::read(br#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#)?;
/// assert_eq!((message.id, message.method.as_deref()), (Some("7"), Some("ping")));
///
/// // A repeated key could mean one thing here and another on the server.
/// assert!(Message::read(br#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}"#).is_err());
/// # Ok::<(), mcp_vary_wire::envelope::WireError>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Message<'a> {
    /// The id as written: a JSON string or integer. `None` on a notification.
    pub id: Option<&'a str>,
    /// The method of a request or notification.
    pub method: Option<Cow<'a, str>>,
    /// The params object of a request or notification, as written.
    pub params: Option<&'a str>,
    /// The result of a response, as written.
    pub result: Option<&'a str>,
    /// The error of a response, as written.
    pub error: Option<&'a str>,
}

/// The maximum length of an id, in bytes: ids are stored while their requests are in flight.
const MAX_ID: usize = 1024;

/// Why a message is invalid, with its id for the response if it could be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{reason}")]
pub struct WireError {
    /// The kind of JSON-RPC error.
    pub kind: WireErrorKind,
    /// The reason, for a person.
    pub reason: String,
    /// The id as written, if it is valid.
    pub id: Option<String>,
}

/// The JSON-RPC error for a malformed message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC has no other such errors")]
pub enum WireErrorKind {
    /// `-32700`: the bytes are not JSON.
    Parse,
    /// `-32600`: JSON, but not a JSON-RPC message.
    InvalidRequest,
    /// `-32602`: a message whose `params` are not an object.
    InvalidParams,
}

impl<'a> Message<'a> {
    /// Reads one message.
    ///
    /// # Errors
    ///
    /// When the bytes are not UTF-8 or not JSON, nest deeper than [`json::MAX_DEPTH`], repeat a key of the envelope,
    /// or are not a JSON-RPC 2.0 message. A byte order mark is ignored, and `null` counts as absent.
    pub fn read(bytes: &'a [u8]) -> Result<Self, WireError> {
        let text = utf8(bytes)?;
        let envelope = match RawEnvelope::read_plain(text) {
            Some(envelope) => envelope,
            None => read_unusual(text)?,
        };
        Self::checked(&envelope).map_err(|error| error.with_id_of(text))
    }

    #[inline]
    pub(crate) fn checked(envelope: &RawEnvelope<'a>) -> Result<Self, WireError> {
        let method = envelope.method();
        if present(envelope.method).is_some() && method.is_none() {
            return Err(WireError::invalid("`method` must be a string"));
        }
        if envelope.repeats_jsonrpc {
            return Err(WireError::invalid("`jsonrpc` is given twice"));
        }
        if envelope.jsonrpc != Some("\"2.0\"") {
            return Err(WireError::invalid("`jsonrpc` must be \"2.0\""));
        }
        let id = match &method {
            // A request with this id is refused, since its sender waits for an answer.
            Some(method) if method.starts_with("notifications/") => present(envelope.id),
            _ => envelope.id,
        };
        if id.is_some_and(|id| !is_id(id)) {
            return Err(WireError::invalid("`id` must be a string or an integer"));
        }
        if id.is_some_and(|id| id.len() > MAX_ID) {
            let why = format!("`id` must not be longer than {MAX_ID} bytes");
            return Err(WireError::invalid(why));
        }
        let mut result = present(envelope.result);
        let mut error = present(envelope.error);
        if method.is_none() && result.or(error).is_none() {
            // A response may have the result `null`.
            result = envelope.result;
            error = result.is_none().then_some(envelope.error).flatten();
        }
        let message = Self {
            id,
            method,
            params: present(envelope.params),
            result,
            error,
        };
        match (&message.method, message.result, message.error) {
            (Some(_), None, None) => message.check_params(),
            (None, Some(_), None) | (None, None, Some(_)) => Ok(message),
            (None, None, None) => Err(WireError::invalid("`method` is missing")),
            _ => Err(WireError::invalid(
                "a message has one of `method`, `result` and `error`",
            )),
        }
    }

    fn check_params(self) -> Result<Self, WireError> {
        match self.params {
            Some(params) if !params.starts_with('{') => Err(WireError {
                kind: WireErrorKind::InvalidParams,
                reason: "`params` must be an object".to_owned(),
                id: None,
            }),
            _ => Ok(self),
        }
    }

    /// Whether this is a request, which needs a response.
    pub fn is_request(&self) -> bool {
        self.method.is_some() && self.id.is_some()
    }

    /// Whether this is a method without an id.
    pub fn is_notification(&self) -> bool {
        self.method.is_some() && self.id.is_none()
    }
}

pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, WireError> {
    let text = std::str::from_utf8(bytes).map_err(|error| not_utf8("the message", error))?;
    Ok(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text))
}

fn not_utf8(what: &str, error: Utf8Error) -> WireError {
    let at = error.valid_up_to();
    WireError::parse(format!("{what} is not UTF-8 from byte {at} on"))
}

/// `part` as a slice of `whole`, without a copy; `None` if it is not a part of it.
pub fn slice_of(whole: &Bytes, part: &str) -> Option<Bytes> {
    let start = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    let end = start.checked_add(part.len())?;
    (end <= whole.len()).then(|| whole.slice(start..end))
}

/// Reads a message that is unusual or not valid.
pub(crate) fn read_unusual(text: &str) -> Result<RawEnvelope<'_>, WireError> {
    if depth_exceeds(text.as_bytes(), json::MAX_DEPTH) {
        let reason = format!("the message nests deeper than {} levels", json::MAX_DEPTH);
        return Err(WireError::parse(reason));
    }
    RawEnvelope::read(text).map_err(|error| WireError::from_json(&error, text))
}

impl WireError {
    fn parse(reason: impl Into<String>) -> Self {
        Self {
            kind: WireErrorKind::Parse,
            reason: reason.into(),
            id: None,
        }
    }

    fn invalid(reason: impl Into<String>) -> Self {
        Self {
            kind: WireErrorKind::InvalidRequest,
            reason: reason.into(),
            id: None,
        }
    }

    fn from_json(error: &serde_json::Error, text: &str) -> Self {
        match error.classify() {
            Category::Data => Self::invalid(fault(error)).with_id_of(text),
            _ => Self::parse(format!("the message is not JSON: {}", fault(error))),
        }
    }

    /// Searches leniently for an id for the response.
    pub(crate) fn with_id_of(mut self, text: &str) -> Self {
        self.id = serde_json::from_str::<IdOnly<'_>>(text)
            .ok()
            .and_then(|message| message.id)
            .map(|id| id.get().to_owned())
            .filter(|id| is_id(id) && id.len() <= MAX_ID);
        self
    }
}

/// The id of an invalid message. A message with two ids cannot be answered.
#[derive(serde::Deserialize)]
struct IdOnly<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
}

/// Whether `id`, as written, is a JSON string or an integer.
pub fn is_id(id: &str) -> bool {
    id.starts_with('"')
        || id
            .strip_prefix('-')
            .unwrap_or(id)
            .bytes()
            .all(|byte| byte.is_ascii_digit())
}

/// Whether the containers of a JSON text nest deeper than `limit`; one pass, no allocation.
fn depth_exceeds(bytes: &[u8], limit: usize) -> bool {
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = end_of_string(bytes, at + 1),
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    false
}

/// The index of the quote that ends the string whose first byte is at `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}

/// The messages of a JSON-RPC batch (2025-03-26), each as its own text; `None` if `bytes` are not an array.
///
/// # Errors
///
/// When the array is not valid JSON or is empty.
pub fn batch(bytes: &[u8]) -> Option<Result<Vec<&str>, WireError>> {
    let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace())?;
    if *first != b'[' {
        return None;
    }
    Some(read_batch(text))
}

fn read_batch(bytes: &[u8]) -> Result<Vec<&str>, WireError> {
    let text = std::str::from_utf8(bytes).map_err(|error| not_utf8("the batch", error))?;
    if depth_exceeds(bytes, json::MAX_DEPTH) {
        let reason = format!("the batch nests deeper than {} levels", json::MAX_DEPTH);
        return Err(WireError::parse(reason));
    }
    let messages = json::elements(text)
        .map_err(|error| WireError::parse(format!("the batch cannot be read: {error}")))?;
    if messages.is_empty() {
        return Err(WireError::invalid("the batch is empty"));
    }
    Ok(messages)
}

#[cfg(test)]
mod tests {
    use mcp_vary::json::Members;

    use super::*;

    #[track_caller]
    fn refuses(text: &str, fault: WireErrorKind, id: Option<&str>) {
        let error = Message::read(text.as_bytes()).unwrap_err();
        assert_eq!((error.kind, error.id.as_deref()), (fault, id), "{error}");
    }

    #[test]
    fn a_part_of_a_message_is_not_copied() {
        let whole = Bytes::from_static(br#"{"a":{"b":1}}"#);
        let text = std::str::from_utf8(&whole).unwrap();
        let part = slice_of(&whole, &text[5..12]).unwrap();
        let expected = (&br#"{"b":1}"#[..], whole[5..].as_ptr());
        assert_eq!((&*part, part.as_ptr()), expected);
        assert_eq!(slice_of(&whole, "[]"), None);
    }

    #[test]
    fn a_request_keeps_its_id_and_params_as_written() {
        let text = r#"{ "params" : {"b": 1.0, "a":[ ]} , "id" : "x\u0041","method":"tools/call","jsonrpc":"2.0","more":1}"#;
        let message = Message::read(text.as_bytes()).unwrap();
        assert_eq!(message.id, Some(r#""x\u0041""#));
        assert_eq!(message.params, Some(r#"{"b": 1.0, "a":[ ]}"#));
        assert!(message.is_request() && !message.is_notification());
    }

    /// Keys and values.
    type Pairs = Vec<(String, String)>;

    /// The members of `params` and of `_meta` that one pass reads; `None` for params that it leaves to `Params::read`.
    fn read_in_one_pass(params: &str) -> Option<(Pairs, Pairs)> {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"params":{params},"method":"m"}}"#);
        let (message, read) = Message::read_with_params(text.as_bytes()).unwrap();
        assert_eq!(message.params, Some(params));
        let owned = |members: &Members<'_>| -> Pairs {
            let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
            members.iter().map(owned).collect()
        };
        read.map(|params| (owned(&params.members), owned(&params.meta)))
    }

    #[test]
    fn params_are_read_with_the_message() {
        let pairs = |all: &[(&str, &str)]| -> Pairs {
            let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            all.iter().map(owned).collect()
        };
        let read = read_in_one_pass(r#"{"name" : "t", "_meta":{"a": [1.0], "b":{}} ,"x":null}"#);
        let members = pairs(&[
            ("name", r#""t""#),
            ("_meta", r#"{"a": [1.0], "b":{}}"#),
            ("x", "null"),
        ]);
        assert_eq!(read, Some((members, pairs(&[("a", "[1.0]"), ("b", "{}")]))));
        assert_eq!(read_in_one_pass("{}"), Some((vec![], vec![])));
    }

    #[test]
    fn params_that_repeat_a_key_or_escape_one_are_left_to_be_explained() {
        for params in [
            r#"{"a":1,"a":2}"#,
            r#"{"\u0061":1}"#,
            r#"{"_meta":{"a":1,"a":2}}"#,
            r#"{"_meta":[]}"#,
        ] {
            assert_eq!(read_in_one_pass(params), None, "{params}");
        }
    }

    #[test]
    fn garbage_is_a_parse_error_without_an_id() {
        let torn = [r#"{"id":1}x"#, r#"{"id":1,}"#, r#""\u12""#];
        for text in ["", "{", "nonsense"].into_iter().chain(torn) {
            refuses(text, WireErrorKind::Parse, None);
        }
        let found = Message::read(b"{\"a\":\"\xff\"}").unwrap_err().kind;
        assert_eq!(found, WireErrorKind::Parse);
    }

    #[test]
    fn json_that_is_no_message_is_an_invalid_request() {
        for text in ["[]", "1", "{}"] {
            refuses(text, WireErrorKind::InvalidRequest, None);
        }
        for (members, id) in [
            (r#""jsonrpc":"1.0","id":3,"method":"m""#, Some("3")),
            (r#""jsonrpc":"2.0","id":3"#, Some("3")),
            (r#""jsonrpc":"2.0","id":3,"method":4"#, Some("3")),
            (r#""jsonrpc":"2.0","id":null,"method":"m""#, None),
            (r#""jsonrpc":"2.0","id":1.5,"method":"m""#, None),
            (
                r#""jsonrpc":"2.0","id":"a","method":"m","result":1"#,
                Some("\"a\""),
            ),
        ] {
            refuses(&format!("{{{members}}}"), WireErrorKind::InvalidRequest, id);
        }
    }

    #[test]
    fn null_is_absent() {
        for (members, method, params) in [
            (r#""id":3,"method":"m","params":null"#, Some("m"), None),
            (
                r#""id":null,"method":"notifications/x","params":{}"#,
                Some("notifications/x"),
                Some("{}"),
            ),
            (
                r#""id":3,"method":"m","result":null,"error":null"#,
                Some("m"),
                None,
            ),
            (
                r#""id":3,"method":null,"params":null,"result":{},"error":null"#,
                None,
                None,
            ),
            (
                r#""id":3,"method":null,"result":null,"error":{}"#,
                None,
                None,
            ),
            (r#""id":3,"result":null,"error":null"#, None, None),
            (r#""id":3,"result":null"#, None, None),
            (r#""id":3,"error":null"#, None, None),
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0",{members}}}"#);
            let message = Message::read(text.as_bytes()).unwrap();
            let found = (message.method.as_deref(), message.params);
            assert_eq!(found, (method, params), "{text}");
            let outcomes = [message.result, message.error].iter().flatten().count();
            assert_eq!(outcomes, usize::from(method.is_none()), "{text}");
            assert_eq!(message.is_notification(), !members.contains(":3"), "{text}");
        }
        let both = r#"{"jsonrpc":"2.0","id":3,"result":{},"error":{}}"#;
        refuses(both, WireErrorKind::InvalidRequest, Some("3"));
    }

    #[test]
    fn a_byte_order_mark_is_ignored() {
        let text = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}";
        assert_eq!(Message::read(text.as_bytes()).unwrap().id, Some("7"));
        let batched = batch("\u{feff}[1]".as_bytes()).unwrap();
        assert_eq!(batched.unwrap(), ["1"]);
    }

    #[test]
    fn a_key_given_twice_is_an_invalid_request() {
        let text = r#"{"jsonrpc":"2.0","id":3,"method":"m","m\u0065thod":"n"}"#;
        refuses(text, WireErrorKind::InvalidRequest, Some("3"));
    }

    #[test]
    fn params_that_are_no_object_are_invalid_params() {
        let text = r#"{"jsonrpc":"2.0","id":3,"method":"m","params":[1]}"#;
        refuses(text, WireErrorKind::InvalidParams, Some("3"));
    }

    #[test]
    fn deep_nesting_is_refused_and_brackets_in_strings_do_not_count() {
        let with =
            |a: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{a}}}}}"#);
        let deep = |n| with(&("[".repeat(n) + &"]".repeat(n)));
        assert!(Message::read(deep(json::MAX_DEPTH - 2).as_bytes()).is_ok());
        refuses(&deep(json::MAX_DEPTH - 1), WireErrorKind::Parse, None);
        let text = with(&format!(r#""\"{}""#, "[".repeat(999)));
        assert!(Message::read(text.as_bytes()).is_ok());
    }

    #[test]
    fn a_batch_is_told_from_a_message() {
        assert!(batch(b" {}").is_none());
        let expected = [r#"{"a":1}"#, "2"];
        assert_eq!(batch(br#" [{"a":1}, 2]"#).unwrap().unwrap(), expected);
        assert!(batch(b"[]").unwrap().is_err());
        assert!(batch(b"[1").unwrap().is_err());
    }
}
