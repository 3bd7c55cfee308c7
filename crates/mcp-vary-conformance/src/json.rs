//! Reading JSON of a peer, and showing it.

use serde_json::{Map, Value};

/// The most characters of a peer's value in a message.
const SHOWN: usize = 200;

/// The value below `keys`, one object after the other.
pub(crate) fn at<'a>(value: &'a Value, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().try_fold(value, |value, key| value.get(key))
}

/// The text below `keys`.
pub(crate) fn text_at<'a>(value: &'a Value, keys: &[&str]) -> Option<&'a str> {
    at(value, keys).and_then(Value::as_str)
}

/// The elements of the array below `keys`; none if there is no array.
pub(crate) fn array_at<'a>(value: &'a Value, keys: &[&str]) -> &'a [Value] {
    at(value, keys)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// `value` as JSON, cut to a length that fits in a sentence.
pub(crate) fn brief(value: &Value) -> String {
    cut(&value.to_string(), SHOWN)
}

/// The first `limit` characters of `text`, with a sign if there were more.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}

/// The members of the object below `keys`.
pub(crate) fn object_at<'a>(value: &'a Value, keys: &[&str]) -> Option<&'a Map<String, Value>> {
    at(value, keys).and_then(Value::as_object)
}
