//! Base64url and JSON, read strictly: two readers of one text must never disagree about it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_vary_json::{Json, skip};

/// Decodes base64url without padding into at most `most` bytes; `None` if it is longer or not canonical.
///
/// Two texts never decode to the same bytes: unused bits must be zero (RFC 4648, section 3.5).
pub(crate) fn decode(text: &str, most: usize) -> Option<Vec<u8>> {
    // Four characters are three bytes.
    if text.len() / 4 > most.div_ceil(3) {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    (bytes.len() <= most).then_some(bytes)
}

/// Encodes base64url without padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Parses a JSON object with at most `depth` levels, whose names are unique at every level.
pub(crate) fn parse_object(text: &[u8], depth: usize) -> Option<Object<'_>> {
    let text = str::from_utf8(text).ok()?;
    // Checked first, since the parser goes deeper than any document here.
    let end = skip(text, 0, depth)?;
    let tail = text.get(end..)?;
    if !tail.bytes().all(|byte| b" \t\r\n".contains(&byte)) {
        return None;
    }
    let value = Json::parse(text).ok()?;
    matches!(value, Json::Object(_)).then_some(Object(value))
}

/// A JSON object.
pub(crate) struct Object<'a>(Json<'a>);

impl<'a> Object<'a> {
    /// The value of `name`; `null` is as good as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&Json<'a>> {
        self.0.get(name).filter(|value| **value != Json::Null)
    }

    /// Whether `name` is there, even as `null`.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.get(name).is_some()
    }

    /// The value of `name`, if it is a string.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// The value of `name` if it is a string, `Ok(None)` if it is absent.
    pub(crate) fn optional_text(&self, name: &str) -> Result<Option<&str>, NotText> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => value.as_str().map(Some).ok_or(NotText),
        }
    }

    /// The strings of `name`: of one string or of an array of at most `most` strings; `None` if it is anything else.
    pub(crate) fn texts(&self, name: &str, most: usize) -> Option<Vec<&str>> {
        match self.get(name)? {
            Json::String(text) => Some(vec![text]),
            Json::Array(all) if all.len() <= most => all.iter().map(Json::as_str).collect(),
            _ => None,
        }
    }
}

/// A value that must be a string is something else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotText;

/// Builds an object from members, for documents whose members are already parsed.
impl<'a> TryFrom<Json<'a>> for Object<'a> {
    type Error = NotText;

    fn try_from(value: Json<'a>) -> Result<Self, NotText> {
        match value {
            Json::Object(_) => Ok(Self(value)),
            _ => Err(NotText),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64url_has_one_spelling() {
        assert_eq!(decode("_w", 9), Some(vec![0xff]));
        for wrong in ["_x", "_w==", "/w", "_w\n", " _w", "_", "_w."] {
            assert_eq!(decode(wrong, 9), None, "{wrong:?}");
        }
    }

    #[test]
    fn base64url_is_bounded_before_and_after_it_is_decoded() {
        assert_eq!(decode("AAAA", 3), Some(vec![0; 3]));
        assert_eq!(decode("AAAA", 2), None);
        assert_eq!(decode(&"A".repeat(1 << 20), 3), None);
    }

    #[test]
    fn objects_have_unique_names_and_a_limited_depth() {
        let reads = |text: &str| parse_object(text.as_bytes(), 3).is_some();
        assert!(reads(r#"{"a": {"b": []}} "#));
        assert!(!reads(r#"{"a": {"b": [[]]}}"#));
        assert!(!reads(r#"{"a": 1, "a": 1}"#));
        assert!(!reads(r#"{"a": 1, "\u0061": 1}"#));
        assert!(!reads(r#"{"a": {"b": 1, "b": 1}}"#));
        assert!(!reads(r#"{"a": 1} {}"#));
        assert!(!reads("[]") && !reads("1") && !reads(""));
        assert!(parse_object(b"{\"a\": \"\xff\"}", 3).is_none());
    }
}
