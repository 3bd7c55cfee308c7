//! One feature tag.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest tag, in bytes.
pub const MAX_TAG: usize = 128;

/// One feature tag as a client declares it.
///
/// # Grammar
///
/// ```text
/// tag   = key / "!" key / key "=" value / key "!=" value
/// key   = alnum *( alnum / "." / "_" / "/" / "-" )
/// value = 1*( printable ASCII without space, "=", "!", "," and ";" )
/// ```
///
/// In the value of a key that starts with `x-`, spaces may occur between other characters, and `=` anywhere but
/// first: the Swift reference returns everything after the first `=` of a vendor's tag. Its helper also accepts keys
/// that start with `_` or `-`; they are not tags here.
///
/// `!=` is tried before `=`. Tags are case-sensitive and have at most [`MAX_TAG`] bytes.
///
/// # Properties
///
/// A tag prints as written, and its parts do not overlap.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::{FeatureTag, Form};
///
/// let tag: FeatureTag = "format!=xml".parse()?;
/// assert_eq!((tag.form(), tag.key(), tag.value()), (Form::Inequality, "format", Some("xml")));
///
/// // An absence or an exclusion, never an absent equality.
/// assert!("!format=json".parse::<FeatureTag>().is_err());
/// assert!("format==json".parse::<FeatureTag>().is_err());
///
/// // A vendor's value may be a phrase.
/// let tag: FeatureTag = "x-acme-hint=a = b".parse()?;
/// assert_eq!(tag.value(), Some("a = b"));
/// # Ok::<(), mcp_vary::feature::TagError>(())
/// ```
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct FeatureTag {
    text: String,
    form: Form,
    /// Where the key ends.
    end: usize,
}

/// The four forms of a tag.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(clippy::exhaustive_enums, reason = "a fifth form changes the grammar")]
pub enum Form {
    /// `key`
    Presence,
    /// `!key`
    Negation,
    /// `key=value`
    Equality,
    /// `key!=value`
    Inequality,
}

/// Why a text is not a feature tag.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TagError {
    /// There is no text.
    #[error("a tag is not empty")]
    Empty,
    /// The text is longer than [`MAX_TAG`] bytes.
    #[error("a tag has at most {MAX_TAG} bytes")]
    TooLong,
    /// The key is missing.
    #[error("a key is missing before `=` or after `!`")]
    NoKey,
    /// The value is missing.
    #[error("a value is missing after `=`")]
    NoValue,
    /// `!key=value`
    #[error("an absent tag has no value; write `key!=value` to exclude one")]
    NegatedEquality,
    /// A character that keys cannot have, or cannot start with.
    #[error("a key starts with a letter or digit and holds letters, digits, `.`, `_`, `/` and `-`, not '{}'", .0.escape_default())]
    Key(char),
    /// A character that values cannot have.
    #[error("a value holds only printable ASCII without `=`, `!`, `,`, `;`, not '{}'", .0.escape_default())]
    Value(char),
}

impl FeatureTag {
    /// The tag as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Which of the four forms it has.
    pub fn form(&self) -> Form {
        self.form
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &str {
        let start = usize::from(self.form == Form::Negation);
        &self.text[start..self.end]
    }

    /// The value of an equality or inequality.
    #[must_use]
    pub fn value(&self) -> Option<&str> {
        match self.form {
            Form::Presence | Form::Negation => None,
            Form::Equality => Some(&self.text[self.end + 1..]),
            Form::Inequality => Some(&self.text[self.end + 2..]),
        }
    }
}

impl FromStr for FeatureTag {
    type Err = TagError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(TagError::Empty);
        }
        if text.len() > MAX_TAG {
            return Err(TagError::TooLong);
        }
        let (form, key, value) = split(text)?;
        check_key(key)?;
        value.map_or(Ok(()), |value| check_value(key, value))?;
        Ok(Self {
            text: text.to_owned(),
            form,
            end: usize::from(form == Form::Negation) + key.len(),
        })
    }
}

impl TryFrom<String> for FeatureTag {
    type Error = TagError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<FeatureTag> for String {
    fn from(tag: FeatureTag) -> Self {
        tag.text
    }
}

impl fmt::Display for FeatureTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn split(text: &str) -> Result<(Form, &str, Option<&str>), TagError> {
    let mut pairs = text.as_bytes().windows(2);
    if let Some(at) = pairs.position(|pair| pair == b"!=") {
        return Ok((Form::Inequality, &text[..at], Some(&text[at + 2..])));
    }
    match (text.strip_prefix('!'), text.split_once('=')) {
        (Some(_), Some(_)) => Err(TagError::NegatedEquality),
        (Some(key), None) => Ok((Form::Negation, key, None)),
        (None, Some((key, value))) => Ok((Form::Equality, key, Some(value))),
        (None, None) => Ok((Form::Presence, text, None)),
    }
}

fn check_key(key: &str) -> Result<(), TagError> {
    let first = key.chars().next().ok_or(TagError::NoKey)?;
    let bad = |c: &char| !(c.is_ascii_alphanumeric() || "._/-".contains(*c));
    match key.chars().find(bad) {
        Some(c) => Err(TagError::Key(c)),
        None if !first.is_ascii_alphanumeric() => Err(TagError::Key(first)),
        None => Ok(()),
    }
}

fn check_value(key: &str, value: &str) -> Result<(), TagError> {
    if value.is_empty() {
        return Err(TagError::NoValue);
    }
    let last = value.len() - 1;
    let is_allowed = |(at, c): (usize, char)| match c {
        '!' | ',' | ';' => false,
        '=' => key.starts_with(VENDOR) && at > 0,
        ' ' => key.starts_with(VENDOR) && at > 0 && at < last,
        c => c.is_ascii_graphic(),
    };
    match value.char_indices().find(|place| !is_allowed(*place)) {
        Some((_, c)) => Err(TagError::Value(c)),
        None => Ok(()),
    }
}

/// The prefix of vendor keys.
const VENDOR: &str = "x-";

#[cfg(test)]
mod tests {
    use super::*;

    /// CN-1: every invalid form says what is wrong with it.
    #[track_caller]
    fn refuses(text: &str, expected: &str) {
        let found = text.parse::<FeatureTag>().unwrap_err().to_string();
        assert_eq!(found, expected);
    }

    #[test]
    fn errors_are_sentences() {
        refuses("", "a tag is not empty");
        refuses(&"a".repeat(129), "a tag has at most 128 bytes");
        refuses("=x", "a key is missing before `=` or after `!`");
        refuses("x=", "a value is missing after `=`");
        let expected = "an absent tag has no value; write `key!=value` to exclude one";
        refuses("!format=json", expected);
    }

    #[test]
    fn errors_name_the_character() {
        let key =
            "a key starts with a letter or digit and holds letters, digits, `.`, `_`, `/` and `-`";
        refuses("@#$%", &format!("{key}, not '@'"));
        refuses(".a", &format!("{key}, not '.'"));
        refuses("a\u{202e}b", &format!("{key}, not '\\u{{202e}}'"));
        let value = "a value holds only printable ASCII without `=`, `!`, `,`, `;`";
        refuses("format==json", &format!("{value}, not '='"));
        refuses("format=\n", &format!("{value}, not '\\n'"));
    }

    /// CN-1: JSON goes through the same door.
    #[test]
    fn json_is_checked_too() {
        let tag: FeatureTag = serde_json::from_str("\"format=json\"").unwrap();
        assert_eq!(serde_json::to_string(&tag).unwrap(), "\"format=json\"");
        assert!(serde_json::from_str::<FeatureTag>("\"format==json\"").is_err());
    }
}
