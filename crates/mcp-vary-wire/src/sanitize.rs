//! Sanitizes a peer's text for a log line or an error.

use mcp_vary::text::is_invisible;

/// The start of `bytes` as one printable line of at most `limit` characters.
///
/// Invisible characters are escaped, invalid UTF-8 is replaced, and a cut is shown as `…`.
pub fn excerpt(bytes: &[u8], limit: usize) -> String {
    let head = &bytes[..bytes.len().min(limit.saturating_mul(4).saturating_add(4))];
    let decoded = String::from_utf8_lossy(head);
    let text = decoded.trim();
    let mut out = String::with_capacity(text.len().min(limit));
    for (at, c) in text.chars().enumerate() {
        if at == limit {
            out.push('…');
            return out;
        }
        if is_invisible(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    if head.len() < bytes.len() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::excerpt;

    #[test]
    fn control_characters_are_escaped_and_long_text_is_cut() {
        assert_eq!(excerpt(b"\x1b[31mred\n", 20), "\\u{1b}[31mred");
        assert_eq!(excerpt("größer als drei".as_bytes(), 6), "größer…");
        assert_eq!(excerpt(b"\xff\xfe", 9), "\u{fffd}\u{fffd}");
        assert_eq!(excerpt(b"", 9), "");
    }
}
