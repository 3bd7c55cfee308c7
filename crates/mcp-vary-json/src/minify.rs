//! JSON text without the white space between its tokens.

use super::{MAX_DEPTH, skip};

/// `text` without the white space that stands between its tokens; none where there is no such white space, or where `text`
/// is not one JSON value.
///
/// # Properties
///
/// Every other byte stays as it was written: numbers, escapes, the order of members, and keys that an object has twice.
/// [`compact`](super::compact) writes strings in their shortest form instead, and refuses a repeated key.
///
/// # Examples
///
/// ```
/// use mcp_vary_json::minified;
///
/// let text = "{\n  \"b\": 1.10,\n  \"a\": \"\\u00e9  \",\n  \"b\": 2e0\n}";
/// assert_eq!(minified(text).as_deref(), Some(r#"{"b":1.10,"a":"\u00e9  ","b":2e0}"#));
///
/// assert_eq!(minified(r#"{"a":1}"#), None);
/// assert_eq!(minified("not JSON"), None);
/// ```
#[must_use]
pub fn minified(text: &str) -> Option<String> {
    let start = text.len() - text.trim_start_matches(is_space).len();
    let end = skip(text, start, MAX_DEPTH)?;
    if !text[end..].chars().all(is_space) {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = &text[start..end];
    while let Some(open) = rest.find('"') {
        out.extend(rest[..open].split(is_space));
        let length = skip(rest, open, 1)? - open;
        out.push_str(&rest[open..open + length]);
        rest = &rest[open + length..];
    }
    out.extend(rest.split(is_space));
    (out.len() < text.len()).then_some(out)
}

/// The four characters that JSON knows as white space.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}
