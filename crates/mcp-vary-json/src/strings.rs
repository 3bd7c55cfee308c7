//! Strings of JSON text: where they end, and which text they are.

use std::borrow::Cow;

use memchr::{memchr, memmem};
use wide::u8x16;

/// The text of a JSON string, borrowed if it has no escapes; `None` if the value is not a string or not valid
/// Unicode.
#[inline]
pub fn unquoted(value: &str) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.as_bytes().contains(&b'\\') {
        return Some(Cow::Borrowed(inner));
    }
    decoded(value, inner).map(Cow::Owned)
}

/// Whether `value`, which must be JSON, is the string `text`: the same as comparing what [`unquoted`] returns, without
/// a copy.
///
/// # Examples
///
/// ```
/// use mcp_vary_json::is_string_of;
///
/// assert!(is_string_of(r#""say \"hi\"""#, r#"say "hi""#));
/// assert!(is_string_of(r#""\u00e9\/""#, "é/"));
/// assert!(!is_string_of("1", "1"));
/// ```
pub fn is_string_of(value: &str, text: &str) -> bool {
    let inner = value.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    let is_same = inner.map(|inner| decodes_to(inner.as_bytes(), text.as_bytes()));
    match is_same {
        None => false,
        Some(Some(is_same)) => is_same,
        Some(None) => unquoted(value).is_some_and(|native| native == text),
    }
}

/// Whether the text between the quotes of a string decodes to `text`; `None` if that takes more to find out, as for a
/// code point by number.
///
/// JSON in a string has an escape every few bytes. Blocks say where all of them are at once, so what lies between two is
/// compared without looking for its end.
fn decodes_to(inner: &[u8], text: &[u8]) -> Option<bool> {
    let mut at = 0;
    let mut in_text = 0;
    let mut is_first_escaped = 0;
    while let Some(block) = SpecialBytes::of_block(inner, at) {
        let (escaped, is_next_escaped) = block.escaped(is_first_escaped);
        let mut escapes = block.backslashes & !escaped;
        // The last block may have ended after a backslash.
        let mut from = at + is_first_escaped as usize;
        while escapes != 0 {
            let escape = at + escapes.trailing_zeros() as usize;
            if !is_same_part(inner, from, escape, text, in_text) {
                return Some(false);
            }
            in_text += escape - from;
            let decoded = named_escape(*inner.get(escape + 1)?)?;
            if text.get(in_text) != Some(&decoded) {
                return Some(false);
            }
            (from, in_text) = (escape + 2, in_text + 1);
            escapes &= escapes - 1;
        }
        at += BLOCK;
        if from < at {
            if !is_same_part(inner, from, at, text, in_text) {
                return Some(false);
            }
            in_text += at - from;
        }
        is_first_escaped = is_next_escaped;
    }
    at += is_first_escaped as usize;
    while let Some(byte) = inner.get(at) {
        let (decoded, length) = match byte {
            b'\\' => (named_escape(*inner.get(at + 1)?)?, 2),
            byte => (*byte, 1),
        };
        if text.get(in_text) != Some(&decoded) {
            return Some(false);
        }
        (at, in_text) = (at + length, in_text + 1);
    }
    Some(in_text == text.len())
}

/// Whether `inner[from..to]` stands in `text` at `at`; it has at most a block of bytes.
#[inline]
fn is_same_part(inner: &[u8], from: usize, to: usize, text: &[u8], at: usize) -> bool {
    let mut done = 0;
    let length = to - from;
    while let (Some(lanes), Some(other)) = (lanes_at(inner, from + done), lanes_at(text, at + done))
    {
        let same = first_lane(!lanes.simd_eq(other).to_bitmask());
        done += LANES;
        if done >= length {
            return done - LANES + same >= length;
        }
        if same < LANES {
            return false;
        }
    }
    text.get(at + done..at + length) == Some(&inner[from + done..to])
}

/// The text of the string `value`, which has an escape between its quotes.
fn decoded(value: &str, inner: &str) -> Option<String> {
    unescaped(inner.as_bytes()).or_else(|| serde_json::from_str(value).ok())
}

/// Decodes the text between the quotes of a string; `None` if an escape is invalid or is a code point by number.
fn unescaped(inner: &[u8]) -> Option<String> {
    // Whole lanes are copied, also where an escape ends the text that is used of them.
    let mut text = vec![0; inner.len() + LANES];
    let mut at = 0;
    let mut end = 0;
    while at < inner.len() {
        if let Some(lanes) = inner.get(at..at + LANES) {
            text[end..end + LANES].copy_from_slice(lanes);
            let plain = lanes_at(inner, at).map_or(0, |lanes| first_lane(special_lanes(lanes)));
            (at, end) = (at + plain, end + plain);
            if plain == LANES {
                continue;
            }
        }
        text[end] = match inner[at] {
            b'\\' => {
                at += 1;
                named_escape(*inner.get(at)?)?
            }
            byte if is_special(byte) => return None,
            byte => byte,
        };
        (at, end) = (at + 1, end + 1);
    }
    text.truncate(end);
    String::from_utf8(text).ok()
}

/// Whether a string in the JSON text `text` may contain `word`, plainly or with escapes. Most texts contain neither, and
/// this is much quicker than to parse them.
///
/// ```
/// use mcp_vary_json::may_contain;
///
/// assert!(may_contain(r#"{"taskId": 1}"#, "taskId"));
/// assert!(!may_contain(r#"{"note": "a\nb"}"#, "taskId"));
/// // Any escaped character may be one of the word.
/// assert!(may_contain(r#"{"\u0074askId": 1}"#, "taskId"));
/// // PHP escapes slashes.
/// assert!(may_contain(r#"{"a\/b": 1}"#, "a/b"));
/// ```
pub fn may_contain(text: &str, word: &str) -> bool {
    // In a short text, the search takes less than what `memmem` prepares for it.
    let contains = |word: &str| match text.len() {
        ..SHORT_TEXT => text.contains(word),
        _ => memmem::find(text.as_bytes(), word.as_bytes()).is_some(),
    };
    if contains(word) {
        return true;
    }
    let has_short_escape = |byte: u8| matches!(byte, b'"' | b'\\' | b'/') || byte < b' ';
    memchr(b'\\', text.as_bytes()).is_some()
        && (word.bytes().any(has_short_escape) || contains(r"\u"))
}

/// The bytes of a text below which a plain search is quicker.
const SHORT_TEXT: usize = 1 << 10;

/// The character of an escape letter.
const fn named_escape(letter: u8) -> Option<u8> {
    Some(match letter {
        b'"' | b'\\' | b'/' => letter,
        b'b' => 0x8,
        b'f' => 0xc,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        _ => return None,
    })
}

/// Writes `text` as a JSON string, quotes included.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut from = 0;
    loop {
        let at = next_special(text.as_bytes(), from);
        out.push_str(&text[from..at]);
        match text.as_bytes().get(at) {
            None => break,
            Some(b'"') => out.push_str("\\\""),
            Some(b'\\') => out.push_str("\\\\"),
            Some(b'\n') => out.push_str("\\n"),
            Some(b'\r') => out.push_str("\\r"),
            Some(b'\t') => out.push_str("\\t"),
            Some(control) => out.push_str(&format!("\\u{control:04x}")),
        }
        from = at + 1;
    }
    out.push('"');
}

/// The length of what [`write_string`] writes, in bytes.
pub(crate) fn string_len(text: &str) -> usize {
    let mut length = text.len() + 2;
    let mut at = next_special(text.as_bytes(), 0);
    while let Some(special) = text.as_bytes().get(at) {
        length += match special {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 1,
            _ => 5,
        };
        at = next_special(text.as_bytes(), at + 1);
    }
    length
}

/// `text` as a JSON string, quotes included.
pub fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    out
}

/// The position after the closing quote of the string whose first byte, after its opening quote, is at `at`; `None` if
/// the string is invalid or does not end.
#[inline]
pub(super) fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    match short_string_end(bytes, at) {
        Ok(end) => Some(end),
        Err(at) => other_string_end(bytes, at),
    }
}

/// Like [`string_end`], and `None` if the string has an escape.
#[inline]
pub(super) fn plain_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    match short_string_end(bytes, at) {
        Ok(end) => Some(end),
        Err(at) => {
            let end = next_special(bytes, at);
            (bytes.get(end) == Some(&b'"')).then_some(end + 1)
        }
    }
}

/// Like [`string_end`], for nearly all strings: short ones without escapes. For others a position in the string that is
/// not inside an escape.
#[inline]
fn short_string_end(bytes: &[u8], mut at: usize) -> Result<usize, usize> {
    let long = at + 4 * LANES;
    while at < long
        && let Some(lanes) = lanes_at(bytes, at)
    {
        let special = special_lanes(lanes);
        if special != 0 {
            let end = at + special.trailing_zeros() as usize;
            return match bytes.get(end) {
                Some(b'"') => Ok(end + 1),
                _ => Err(end),
            };
        }
        at += LANES;
    }
    Err(at)
}

/// Like [`string_end`], for long strings and those with escapes.
#[inline(never)]
fn other_string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at = next_special(bytes, at);
        match *bytes.get(at)? {
            b'"' => return Some(at + 1),
            // Text with one escape, such as JSON in a string, often has many.
            b'\\' => match skip_blocks(bytes, at)? {
                Skipped::All(end) => return Some(end),
                Skipped::Until(next) if next > at => at = next,
                Skipped::Until(_) => at = escape_end(bytes, at + 1)?,
            },
            _ => return None,
        }
    }
}

/// How far blocks of a string were skipped.
enum Skipped {
    /// To the position after the closing quote.
    All(usize),
    /// To a position that is not inside an escape.
    Until(usize),
}

/// Skips whole blocks of a string with escapes, from a position that is not inside an escape. `None` if an escape is
/// invalid.
fn skip_blocks(bytes: &[u8], mut at: usize) -> Option<Skipped> {
    let mut is_first_escaped = 0;
    while let Some(block) = SpecialBytes::of_block(bytes, at) {
        let (escaped, is_next_escaped) = block.escaped(is_first_escaped);
        let ends = block.quotes & !escaped;
        let before_end = ends.wrapping_sub(1) & !ends;
        let mut letters = escaped & before_end & !(block.quotes | block.backslashes);
        while letters != 0 {
            escape_end(bytes, at + letters.trailing_zeros() as usize)?;
            letters &= letters - 1;
        }
        if ends != 0 {
            let end = at + ends.trailing_zeros() as usize + 1;
            return Some(Skipped::All(end));
        }
        at += BLOCK;
        is_first_escaped = is_next_escaped;
    }
    Some(Skipped::Until(at - is_first_escaped as usize))
}

/// The special bytes in a block: a bit for each byte, the lowest for the first.
struct SpecialBytes {
    quotes: u64,
    backslashes: u64,
}

impl SpecialBytes {
    /// `None` if fewer bytes than a block remain, or if the block has a control character.
    fn of_block(bytes: &[u8], at: usize) -> Option<Self> {
        let block = bytes.get(at..at + BLOCK)?;
        let mut quotes = 0;
        let mut backslashes = 0;
        let mut control = u8x16::splat(0);
        for (index, lanes) in block.as_chunks().0.iter().enumerate() {
            let lanes = u8x16::new(*lanes);
            let mask = |byte| u64::from(lanes.simd_eq(u8x16::splat(byte)).to_bitmask());
            quotes |= mask(b'"') << (index * LANES);
            backslashes |= mask(b'\\') << (index * LANES);
            control |= lanes.min(u8x16::splat(0x1f)).simd_eq(lanes);
        }
        (control.to_bitmask() == 0).then_some(Self {
            quotes,
            backslashes,
        })
    }

    /// The bytes behind a backslash that is not escaped itself, and whether (1) the first byte of the next block is
    /// one; `is_first_escaped` is that of this block.
    ///
    /// In a row of backslashes every other one begins an escape. The subtraction carries over each row, and so finds
    /// rows that begin at an even position, as in simdjson (`json_escape_scanner`).
    const fn escaped(&self, is_first_escaped: u64) -> (u64, u64) {
        const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
        let candidates = self.backslashes & !is_first_escaped;
        let behind = (candidates << 1) | ODD;
        let begin_or_end = behind.wrapping_sub(candidates) ^ ODD;
        let escaped = begin_or_end ^ (self.backslashes | is_first_escaped);
        (escaped, (begin_or_end & self.backslashes) >> (BLOCK - 1))
    }
}

/// The first position from `at` of a byte that is special in a string, or the end. Most strings are short: compares
/// 16 bytes at a time first, blocks only for longer strings, and words where fewer than 16 bytes remain.
pub(super) fn next_special(bytes: &[u8], mut at: usize) -> usize {
    let short = at + 4 * LANES;
    while let Some(lanes) = lanes_at(bytes, at) {
        let special = special_lanes(lanes);
        if special != 0 {
            return at + special.trailing_zeros() as usize;
        }
        at += LANES;
        if at == short {
            at = plain_blocks(bytes, at);
        }
    }
    while let Some(word) = word_at(bytes, at) {
        let marks = special(word);
        if marks != 0 {
            return at + marks.trailing_zeros() as usize / 8;
        }
        at += WORD;
    }
    let remaining = bytes.get(at..).unwrap_or_default();
    let plain = remaining
        .iter()
        .take_while(|byte| !is_special(**byte))
        .count();
    at + plain
}

const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

const LANES: usize = size_of::<u8x16>();

fn lanes_at(bytes: &[u8], at: usize) -> Option<u8x16> {
    let lanes: [u8; LANES] = bytes.get(at..at + LANES)?.try_into().ok()?;
    Some(u8x16::new(lanes))
}

/// A bit for each byte that is a quote, a backslash or a control character; the lowest bit is the first byte.
fn special_lanes(lanes: u8x16) -> u32 {
    let control = lanes.min(u8x16::splat(0x1f)).simd_eq(lanes);
    let quote = lanes.simd_eq(u8x16::splat(b'"'));
    let backslash = lanes.simd_eq(u8x16::splat(b'\\'));
    (control | quote | backslash).to_bitmask()
}

/// The index of the lowest bit that is set, [`LANES`] if none is.
const fn first_lane(mask: u32) -> usize {
    (mask | 1 << LANES).trailing_zeros() as usize
}

const WORD: usize = size_of::<u64>();

fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at + WORD)?.try_into().ok()?;
    Some(u64::from_le_bytes(word))
}

/// Skips blocks of plain bytes from `at`.
fn plain_blocks(bytes: &[u8], mut at: usize) -> usize {
    // Branch-free, so that the compiler can compare many bytes at once.
    let is_plain = |block: &[u8]| {
        !block
            .iter()
            .fold(false, |found, byte| found | is_special(*byte))
    };
    while bytes.get(at..at + BLOCK).is_some_and(is_plain) {
        at += BLOCK;
    }
    at
}

const BLOCK: usize = 64;

/// Sets the highest bit of the first byte that is a quote, a backslash or a control character; higher bits are
/// undefined.
const fn special(word: u64) -> u64 {
    let quotes = word ^ (ONES * b'"' as u64);
    let backslashes = word ^ (ONES * b'\\' as u64);
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let quote = quotes.wrapping_sub(ONES) & !quotes;
    let backslash = backslashes.wrapping_sub(ONES) & !backslashes;
    (control | quote | backslash) & (ONES * 0x80)
}

/// The byte 1 in each position.
const ONES: u64 = u64::MAX / 255;

/// The end of the escape whose backslash is before `at`.
fn escape_end(bytes: &[u8], at: usize) -> Option<usize> {
    match *bytes.get(at)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 1),
        b'u' => {
            let digits = bytes.get(at + 1..at + 5)?;
            digits.iter().all(u8::is_ascii_hexdigit).then_some(at + 5)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of a string, byte by byte.
    fn plain_end(bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            at = match *bytes.get(at)? {
                b'"' => return Some(at + 1),
                b'\\' => escape_end(bytes, at + 1)?,
                0..0x20 => return None,
                _ => at + 1,
            };
        }
    }

    /// Rows of backslashes of every length, at every position of a block and over its end.
    #[test]
    fn rows_of_backslashes_are_read_in_pairs() {
        for before in 0..2 * BLOCK {
            for backslashes in 1..6 {
                for end in ["\"", "x", "\"x", "u00e9\"", "u00g9\"", "n\\\"\"", "\n\""] {
                    let row = "\\".repeat(backslashes);
                    for rest in [0, 1, 70, 200] {
                        let text =
                            format!("\\n{}{row}{end}{}", "a".repeat(before), "b".repeat(rest));
                        let bytes = text.as_bytes();
                        assert_eq!(string_end(bytes, 0), plain_end(bytes), "{text}");
                    }
                }
            }
        }
    }

    /// At every distance from the end, and with text that differs in one byte.
    #[test]
    fn a_string_is_compared_with_a_text_as_if_it_were_decoded() {
        for unit in [
            "a",
            "\"",
            "abc\n",
            "{\"key\":1}",
            "\\",
            "é\u{8}\u{c}\r\t",
            "\u{1}",
        ] {
            for length in 0..40 {
                let text = unit.repeat(length);
                let value = string(&text);
                assert!(is_string_of(&value, &text), "{value}");
                assert_eq!(unquoted(&value).as_deref(), Some(&*text));
                for other in [
                    format!("{text}b"),
                    format!("b{text}"),
                    text.replacen(unit, "b", 1),
                ] {
                    assert!(
                        !is_string_of(&value, &other) || text == other,
                        "{value} {other}"
                    );
                }
                for (at, c) in text.char_indices() {
                    assert!(!is_string_of(&value, &text[..at]), "{value}");
                    let behind = &text[at + c.len_utf8()..];
                    let other = [&text[..at], "Z", behind].concat();
                    assert!(!is_string_of(&value, &other), "{value} {other}");
                }
            }
        }
        assert!(is_string_of(r#""\u0061\/""#, "a/"));
        assert!(!is_string_of(r#""\u0061""#, r"\u0061"));
        assert!(!is_string_of(r#""\ud800""#, r"\ud800"));
        assert!(!is_string_of("1", "1"));
        assert!(!is_string_of("\"", ""));
    }

    /// In lanes, blocks and words alike, and at every distance from the end. Mutants of the faster ways would still give
    /// the right results for whole documents, only slower.
    #[test]
    fn a_special_byte_is_found_at_every_position() {
        for length in (1..=2 * LANES + 1).chain([4 * BLOCK]) {
            for at in 0..length.min(3 * BLOCK) {
                for special in (0..0x20).chain([b'"', b'\\']) {
                    let mut bytes = vec![b'a'; length];
                    bytes[at] = special;
                    assert_eq!(next_special(&bytes, 0), at, "{special} of {length}");
                    assert_eq!(next_special(&bytes, at), at, "{special} of {length}");
                    let found = next_special(&bytes, at + 1);
                    assert_eq!(found, length, "{special} of {length}");
                }
            }
        }
    }

    /// Every byte that a string may contain as it is, in every lane: none stops the faster ways.
    #[test]
    fn lanes_pass_over_every_plain_byte() {
        for byte in 0..=u8::MAX {
            let expected = byte < 0x20 || byte == b'"' || byte == b'\\';
            for at in 0..LANES {
                let mut bytes = [b'a'; LANES];
                bytes[at] = byte;
                let end = if expected { at } else { LANES };
                assert_eq!(next_special(&bytes, 0), end, "{byte:#x} at {at}");
                let mask = special_lanes(u8x16::new(bytes));
                assert_eq!(mask, u32::from(expected) << at, "{byte:#x} at {at}");
            }
        }
    }
}
