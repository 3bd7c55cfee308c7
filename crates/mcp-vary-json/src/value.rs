//! A value with converted numbers, for libraries that take a [`serde_json::Value`].

use serde_json::{Map, Value};

use super::error::JsonError;
use super::read::{Reader, Start};

/// Parses a value as a [`serde_json::Value`]: the same value that other parsers read.
///
/// # Properties
///
/// Of members with the same key the last one counts, at the place of the first. A number that an `f64` cannot hold is
/// an error. Numbers lose their spelling; use [`Json`](super::Json) to keep it.
///
/// `serde_json::from_str::<Value>` reads objects with a member `$serde_json::private::RawValue` as the value in the
/// *text* of that member (`$serde_json::private::Number` in some builds). No other parser does, so a peer could show the
/// gateway another value than the one that its receiver reads, nested deeper than [`MAX_DEPTH`](super::MAX_DEPTH). Use
/// this function for text that a peer wrote.
///
/// # Errors
///
/// When `text` is not one JSON value, has a number beyond `f64`, or nests deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
///
/// # Examples
///
/// ```
/// use mcp_vary_json::to_value;
/// use serde_json::json;
///
/// assert_eq!(to_value(r#"{"a": [1, 2.50], "a": [true]}"#)?, json!({"a": [true]}));
///
/// let text = r#"{"$serde_json::private::RawValue": "7"}"#;
/// assert!(to_value(text)?.is_object());
/// assert_eq!(serde_json::from_str::<serde_json::Value>(text).ok(), Some(json!(7)));
/// # Ok::<(), mcp_vary_json::JsonError>(())
/// ```
pub fn to_value(text: &str) -> Result<Value, JsonError> {
    let mut reader = Reader { text, at: 0 };
    let read = value(&mut reader, 0)?;
    reader.end()?;
    Ok(read)
}

/// Like [`to_value`], for an object.
///
/// # Errors
///
/// As [`to_value`], and when the value is not an object.
pub fn to_map(text: &str) -> Result<Map<String, Value>, JsonError> {
    match to_value(text)? {
        Value::Object(members) => Ok(members),
        _ => Err(JsonError::new("it must be an object")),
    }
}

fn value(reader: &mut Reader<'_>, depth: usize) -> Result<Value, JsonError> {
    match reader.start(depth)? {
        Start::Object => object(reader, depth),
        Start::Array => array(reader, depth),
        Start::String => Ok(Value::String(reader.string()?.into_owned())),
        Start::Number => number(reader),
        Start::Word(word) => Ok(match reader.word(word)? {
            "null" => Value::Null,
            word => Value::Bool(word == "true"),
        }),
    }
}

fn object(reader: &mut Reader<'_>, depth: usize) -> Result<Value, JsonError> {
    let mut members = Map::new();
    let mut is_open = reader.opens(b'}');
    while is_open {
        let key = reader.key()?.into_owned();
        members.insert(key, value(reader, depth + 1)?);
        is_open = reader.goes_on(b'}')?;
    }
    Ok(Value::Object(members))
}

fn array(reader: &mut Reader<'_>, depth: usize) -> Result<Value, JsonError> {
    let mut elements = Vec::new();
    let mut is_open = reader.opens(b']');
    while is_open {
        elements.push(value(reader, depth + 1)?);
        is_open = reader.goes_on(b']')?;
    }
    Ok(Value::Array(elements))
}

fn number(reader: &mut Reader<'_>) -> Result<Value, JsonError> {
    let spelling = reader.number()?;
    match spelling.parse() {
        Ok(number) => Ok(Value::Number(number)),
        Err(_) => Err(reader.error("a number out of range")),
    }
}
