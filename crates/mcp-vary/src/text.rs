//! Text that a person reads.

/// Whether `c` is invisible but can deceive a reader: it controls a terminal, changes the text direction, hides
/// itself, or looks like a blank.
///
/// Includes joiners and variation selectors, although some emoji use them: text can be hidden in them. Includes line
/// breaks and tabs, which are control characters; callers that allow them check for them first.
///
/// # Examples
///
/// ```
/// use mcp_vary::text::is_invisible;
///
/// assert!(is_invisible('\u{1b}') && is_invisible('\u{202e}') && is_invisible('\u{e0041}'));
/// assert!(!is_invisible('a') && !is_invisible('ü') && !is_invisible('世') && !is_invisible(' '));
/// ```
#[must_use]
pub fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// `text` in one line, with what is invisible escaped: also line breaks, so that no name looks like another line.
///
/// # Examples
///
/// ```
/// use mcp_vary::text::sanitize_line;
///
/// assert_eq!(sanitize_line("`a\nnote: b`\u{1b}"), "`a\\nnote: b`\\u{1b}");
/// assert_eq!(sanitize_line("größer\t世界"), "größer\\t世界");
/// ```
#[must_use]
pub fn sanitize_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_invisible(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::is_invisible;

    #[test]
    fn what_nobody_sees_is_found() {
        let bounds = [
            (0x00, 0x1f),
            (0x7f, 0x9f),
            (0xad, 0xad),
            (0x34f, 0x34f),
            (0x61c, 0x61c),
            (0x115f, 0x1160),
            (0x17b4, 0x17b5),
            (0x180b, 0x180f),
            (0x200b, 0x200f),
            (0x2028, 0x202e),
            (0x2060, 0x206f),
            (0x3164, 0x3164),
            (0xfe00, 0xfe0f),
            (0xfeff, 0xfeff),
            (0xffa0, 0xffa0),
            (0xfff9, 0xfffb),
            (0xe0000, 0xe007f),
            (0xe0100, 0xe01ef),
        ];
        for c in bounds.into_iter().flat_map(|(first, last)| first..=last) {
            let c = char::from_u32(c).unwrap();
            assert!(is_invisible(c), "{}", c.escape_unicode());
        }
    }

    #[test]
    fn what_somebody_writes_is_left_alone() {
        for c in "aZ0 ~\u{a0}ßüñ世界한ไทยहिन्दीعربيעברית€„“—😀👩".chars()
        {
            assert!(!is_invisible(c), "{}", c.escape_unicode());
        }
    }
}
