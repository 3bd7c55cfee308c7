//! Removes the white space between JSON tokens.

use super::skip::{MAX_DEPTH, skip};

/// `text` without white space between its tokens; `None` if there is none, or if `text` is not one JSON value.
///
/// # Properties
///
/// Every other byte stays as written: numbers, escapes, the order of members, and repeated keys.
/// [`compact`](super::compact) instead writes strings in their shortest form, and rejects repeated keys.
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
pub fn minified(text: &str) -> Option<String> {
    let start = text.len() - text.trim_start_matches(is_space).len();
    let end = skip(text, start, MAX_DEPTH)?;
    if !text[end..].chars().all(is_space) {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut remaining = &text[start..end];
    while let Some(open) = remaining.find('"') {
        out.extend(remaining[..open].split(is_space));
        let length = skip(remaining, open, 1)? - open;
        out.push_str(&remaining[open..open + length]);
        remaining = &remaining[open + length..];
    }
    out.extend(remaining.split(is_space));
    (out.len() < text.len()).then_some(out)
}

/// The four characters that JSON knows as white space.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}
