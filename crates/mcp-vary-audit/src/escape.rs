//! JSON whose strings show all that they have.

use std::io::{self, Write};

use mcp_vary::text::is_invisible;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

/// Writes compact JSON in which invisible characters are escaped. The JSON means the same.
struct Escaping;

impl Formatter for Escaping {
    /// Writes a part of a string that has nothing which JSON must escape.
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        // The search does not stop at the first other byte, so that the processor compares many at once.
        let has_others = |found, byte: u8| found | !matches!(byte, b' '..=b'~');
        if !fragment.bytes().fold(false, has_others) {
            return CompactFormatter.write_string_fragment(writer, fragment);
        }
        for c in fragment.chars() {
            let mut buffer = [0; 4];
            if !is_invisible(c) {
                writer.write_all(c.encode_utf8(&mut buffer).as_bytes())?;
                continue;
            }
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
        }
        Ok(())
    }
}

/// `value` as one line of JSON.
pub(crate) fn to_json(value: &impl Serialize) -> Vec<u8> {
    let mut line = Vec::with_capacity(512);
    let mut serializer = Serializer::with_formatter(&mut line, Escaping);
    // Writing to memory does not fail, and all keys are texts.
    if value.serialize(&mut serializer).is_err() {
        line.clear();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::to_json;

    #[track_caller]
    fn is_written(text: &str, expected: &str) {
        let json = String::from_utf8(to_json(&text)).unwrap();
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }

    #[test]
    fn invisible_characters_are_escaped_and_visible_ones_are_not() {
        is_written("git_push", r#""git_push""#);
        is_written("größer 世界 🦀", r#""größer 世界 🦀""#);
        is_written("a\n\"b\\", r#""a\n\"b\\""#);
        is_written("\u{1b}[2J\u{7f}\u{9b}", r#""\u001b[2J\u007f\u009b""#);
        is_written("a\u{202e}b\u{2028}c", r#""a\u202eb\u2028c""#);
        is_written("\u{e0041}", r#""\udb40\udc41""#);
    }
}
