//! Reads a value into a representation that the caller chooses.

use std::borrow::Cow;

use super::error::JsonError;
use super::read::{Reader, Start};

/// A representation of JSON values, for [`build`].
pub trait Builder<'a> {
    /// The type of the values.
    type Value;

    /// `null`
    fn null() -> Self::Value;
    /// `true` or `false`
    fn bool(is: bool) -> Self::Value;
    /// A number, as written.
    fn number(spelling: &'a str) -> Self::Value;
    /// A string, decoded.
    fn string(text: Cow<'a, str>) -> Self::Value;
    /// An array.
    fn array(elements: Vec<Self::Value>) -> Self::Value;
    /// An object; keys are unique.
    fn object(members: Vec<(Cow<'a, str>, Self::Value)>) -> Self::Value;
}

/// Reads a value without a [`Json`](super::Json) in between. Accepts the same texts as [`Json::parse`](super::Json::parse).
///
/// # Errors
///
/// When `text` is not one JSON value, repeats a key within an object, or nests deeper than
/// [`MAX_DEPTH`](super::MAX_DEPTH).
///
/// # Examples
///
/// ```
/// use std::borrow::Cow;
///
/// use mcp_vary_json::{Builder, build};
///
/// /// Counts strings.
/// struct Strings;
///
/// impl<'a> Builder<'a> for Strings {
///     type Value = usize;
///
///     fn null() -> usize {
///         0
///     }
///     fn bool(_: bool) -> usize {
///         0
///     }
///     fn number(_: &'a str) -> usize {
///         0
///     }
///     fn string(_: Cow<'a, str>) -> usize {
///         1
///     }
///     fn array(elements: Vec<usize>) -> usize {
///         elements.into_iter().sum()
///     }
///     fn object(members: Vec<(Cow<'a, str>, usize)>) -> usize {
///         members.into_iter().map(|(_, count)| count).sum()
///     }
/// }
///
/// assert_eq!(build::<Strings>(r#"{"a": ["x", 1], "b": "y"}"#)?, 2);
///
/// // A repeated key is refused before the builder sees the object.
/// assert!(build::<Strings>(r#"{"a": "x", "a": "y"}"#).is_err());
/// # Ok::<(), mcp_vary_json::JsonError>(())
/// ```
pub fn build<'a, B: Builder<'a>>(text: &'a str) -> Result<B::Value, JsonError> {
    let mut reader = Reader { text, at: 0 };
    let value = read::<B>(&mut reader, 0)?;
    reader.end()?;
    Ok(value)
}

fn read<'a, B: Builder<'a>>(reader: &mut Reader<'a>, depth: usize) -> Result<B::Value, JsonError> {
    Ok(match reader.start(depth)? {
        Start::Object => {
            let mut members = Vec::new();
            let mut is_open = reader.opens(b'}');
            while is_open {
                let key = reader.key()?;
                members.push((key, read::<B>(reader, depth + 1)?));
                is_open = reader.goes_on(b'}')?;
            }
            reader.unique(&members)?;
            B::object(members)
        }
        Start::Array => {
            let mut elements = Vec::new();
            let mut is_open = reader.opens(b']');
            while is_open {
                elements.push(read::<B>(reader, depth + 1)?);
                is_open = reader.goes_on(b']')?;
            }
            B::array(elements)
        }
        Start::String => B::string(reader.string()?),
        Start::Number => B::number(reader.number()?),
        Start::Word(word) => match reader.word(word)? {
            "null" => B::null(),
            word => B::bool(word == "true"),
        },
    })
}
