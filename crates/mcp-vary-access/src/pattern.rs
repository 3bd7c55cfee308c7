//! What a pattern may match, by the text that it begins with.

use mcp_vary_view::Pattern;

/// Whether some text that begins with `prefix` may match.
pub(crate) fn may_begin_with(pattern: &Pattern, prefix: &str) -> bool {
    let (start, is_whole) = literal_start(pattern);
    start.starts_with(prefix) || !is_whole && prefix.starts_with(start)
}

/// Whether some URI may match: text that begins with a scheme (RFC 3986, section 3.1).
pub(crate) fn may_be_uri(pattern: &Pattern) -> bool {
    let (start, is_whole) = literal_start(pattern);
    let (scheme, has_colon) = match start.split_once(':') {
        Some((scheme, _)) => (scheme, true),
        None => (start, false),
    };
    let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '%');
    (has_colon || !is_whole) && scheme.chars().all(is_of_scheme)
}

/// The text before the first special character, and whether it is the whole pattern.
fn literal_start(pattern: &Pattern) -> (&str, bool) {
    let text = pattern.as_str();
    match text.find(['*', '?', '[', '{', '\\']) {
        Some(end) => (&text[..end], false),
        None => (text, true),
    }
}
