//! A whole JSON value.

use std::borrow::Cow;

use super::build::{Builder, build};
use super::error::JsonError;
use super::strings::{string_len, write_string};

/// A whole JSON value: numbers as written, members in order.
///
/// # Examples
///
/// ```
/// use mcp_vary_json::Json;
///
/// let value = Json::parse(r#"{"b": 1.10, "a": [1e5, "\u00e9"]}"#)?;
/// assert_eq!(value.to_json(), r#"{"b":1.10,"a":[1e5,"é"]}"#);
///
/// // serde_json would print 1.0; here the spelling stays.
/// assert_eq!(Json::parse("10e-1")?.to_json(), "10e-1");
/// # Ok::<(), mcp_vary_json::JsonError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "JSON has no seventh kind of value")]
pub enum Json<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as written.
    Number(Cow<'a, str>),
    /// A string, decoded.
    String(Cow<'a, str>),
    /// An array.
    Array(Vec<Self>),
    /// An object; keys are unique.
    Object(Vec<(Cow<'a, str>, Self)>),
}

impl<'a> Json<'a> {
    /// Parses a value.
    ///
    /// # Errors
    ///
    /// When `text` is not one JSON value, repeats a key within an object, or nests deeper than
    /// [`MAX_DEPTH`](super::MAX_DEPTH).
    pub fn parse(text: &'a str) -> Result<Self, JsonError> {
        build::<Tree>(text)
    }

    /// The value as compact JSON.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    /// Appends the value as compact JSON.
    pub fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(true) => out.push_str("true"),
            Self::Bool(false) => out.push_str("false"),
            Self::Number(spelling) => out.push_str(spelling),
            Self::String(text) => write_string(out, text),
            Self::Array(elements) => {
                out.push('[');
                for (at, element) in elements.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    element.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (at, (key, value)) in members.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    write_string(out, key);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// The length of [`to_json`](Self::to_json), in bytes.
    pub fn json_len(&self) -> usize {
        let separators = |count: usize| 2 + count.saturating_sub(1);
        match self {
            Self::Null | Self::Bool(true) => 4,
            Self::Bool(false) => 5,
            Self::Number(spelling) => spelling.len(),
            Self::String(text) => string_len(text),
            Self::Array(elements) => {
                let lengths = elements.iter().map(Self::json_len);
                separators(elements.len()) + lengths.sum::<usize>()
            }
            Self::Object(members) => {
                let length =
                    |(key, value): &(Cow<'_, str>, Self)| string_len(key) + 1 + value.json_len();
                separators(members.len()) + members.iter().map(length).sum::<usize>()
            }
        }
    }

    /// Whether both are the same JSON value: members in any order, numbers by value.
    ///
    /// Numbers whose exponent does not fit 64 bits are equal only if they are written alike.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_json::Json;
    ///
    /// let value = Json::parse(r#"{"a": 1.0, "b": [1e2]}"#)?;
    /// assert!(value.is_same(&Json::parse(r#"{"b": [100], "a": 1}"#)?));
    ///
    /// // Numbers are not converted to floats: these differ in the last of 17 digits.
    /// assert!(!Json::parse("10000000000000001")?.is_same(&Json::parse("10000000000000000")?));
    /// # Ok::<(), mcp_vary_json::JsonError>(())
    /// ```
    pub fn is_same(&self, other: &Json<'_>) -> bool {
        match (self, other) {
            (Self::Null, Json::Null) => true,
            (Self::Bool(this), Json::Bool(other)) => this == other,
            (Self::Number(this), Json::Number(other)) => {
                this == other || decimal(this).is_some_and(|this| Some(this) == decimal(other))
            }
            (Self::String(this), Json::String(other)) => this == other,
            (Self::Array(this), Json::Array(other)) => {
                this.len() == other.len() && this.iter().zip(other).all(|(a, b)| a.is_same(b))
            }
            (Self::Object(this), Json::Object(other)) if this.len() == other.len() => {
                let this = by_key(this);
                let other = by_key(other);
                let mut pairs = this.iter().zip(&other);
                pairs.all(|(this, other)| this.0 == other.0 && this.1.is_same(other.1))
            }
            _ => false,
        }
    }

    /// The same value, independent of the original text.
    #[must_use]
    pub fn into_owned(self) -> Json<'static> {
        let owned = |text: Cow<'a, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(value),
            Self::Number(spelling) => Json::Number(owned(spelling)),
            Self::String(text) => Json::String(owned(text)),
            Self::Array(elements) => {
                Json::Array(elements.into_iter().map(Json::into_owned).collect())
            }
            Self::Object(members) => {
                let owned = |(key, value): (_, Self)| (owned(key), value.into_owned());
                Json::Object(members.into_iter().map(owned).collect())
            }
        }
    }

    /// The member `key` of an object.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_object()?
            .iter()
            .find_map(|(name, value)| (name == key).then_some(value))
    }

    /// The members of an object.
    pub fn as_object(&self) -> Option<&[(Cow<'a, str>, Self)]> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The elements of an array.
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }
}

/// Builds a [`Json`].
struct Tree;

impl<'a> Builder<'a> for Tree {
    type Value = Json<'a>;

    fn null() -> Json<'a> {
        Json::Null
    }

    fn bool(is: bool) -> Json<'a> {
        Json::Bool(is)
    }

    fn number(spelling: &'a str) -> Json<'a> {
        Json::Number(Cow::Borrowed(spelling))
    }

    fn string(text: Cow<'a, str>) -> Json<'a> {
        Json::String(text)
    }

    fn array(elements: Vec<Json<'a>>) -> Json<'a> {
        Json::Array(elements)
    }

    fn object(members: Vec<(Cow<'a, str>, Json<'a>)>) -> Json<'a> {
        Json::Object(members)
    }
}

type Member<'m, 'a> = (&'m str, &'m Json<'a>);

fn by_key<'m, 'a>(members: &'m [(Cow<'a, str>, Json<'a>)]) -> Vec<Member<'m, 'a>> {
    let mut sorted: Vec<_> = members.iter().map(|(k, v)| (k.as_ref(), v)).collect();
    sorted.sort_unstable_by_key(|(key, _)| *key);
    sorted
}

/// The value of a number: its sign, its digits without zeros at either end, and the power of ten.
///
/// Zero has no digits and no sign. `None` if the exponent overflows.
fn decimal(spelling: &str) -> Option<(bool, String, i64)> {
    let (mantissa, exponent) = match spelling.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (spelling, 0),
    };
    let is_negative = mantissa.starts_with('-');
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole.trim_start_matches('-'), fraction].concat();
    let significant = digits.trim_end_matches('0');
    let zeros = i64::try_from(digits.len() - significant.len()).ok()?;
    let shift = zeros - i64::try_from(fraction.len()).ok()?;
    match significant.trim_start_matches('0') {
        "" => Some((false, String::new(), 0)),
        significant => Some((
            is_negative,
            significant.to_owned(),
            exponent.checked_add(shift)?,
        )),
    }
}
