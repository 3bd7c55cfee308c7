//! Parses JSON with the position of each value. Comments and trailing commas are ignored, as editors do for such files.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{DEEPEST, Diagnostic, Entry, Lines, Node, Position, Value};

/// Parses one JSON document.
pub(super) fn read(text: &str) -> Result<Node, Vec<Diagnostic>> {
    let lines = Lines::of(text);
    let blanked = plain(text).map_err(|open| vec![unclosed(&lines, open)])?;
    let raw: &RawValue =
        serde_json::from_str(&blanked).map_err(|error| vec![no_json(text, &error)])?;
    let file = File {
        lines,
        start: blanked.as_ptr().addr(),
    };
    file.node(raw, DEEPEST)
        .map_err(|diagnostic| vec![diagnostic])
}

/// The comment at `open` has no end.
pub(super) fn unclosed(lines: &Lines<'_>, open: usize) -> Diagnostic {
    let what = "is not JSON: a comment is not closed";
    let diagnostic = Diagnostic::new(lines.position(open), "", what);
    diagnostic.with_fix("write `*/` where it ends")
}

/// Replaces comments and trailing commas with spaces. All other bytes keep their positions. Fails with the position of
/// a comment that does not end.
pub(super) fn plain(text: &str) -> Result<Cow<'_, str>, usize> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let blank = |out: &mut Vec<u8>, range: Range<usize>| {
        if out.is_empty() {
            out.extend_from_slice(bytes);
        }
        let is_line_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
        for byte in out[range].iter_mut().filter(|byte| !is_line_break(byte)) {
            *byte = b' ';
        }
    };
    // The last comma if no value has followed it yet, and whether the previous token ends a value.
    let mut comma = None;
    let mut after_value = false;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let end = match (byte, bytes.get(at + 1)) {
            (b'"', _) => end_of_string(bytes, at),
            (b'/', Some(b'/')) => end_of_line(bytes, at),
            (b'/', Some(b'*')) => end_of_comment(bytes, at).ok_or(at)?,
            _ => at + 1,
        };
        match byte {
            b'/' if end > at + 1 => blank(&mut out, at..end),
            byte if byte.is_ascii_whitespace() => {}
            b',' => (comma, after_value) = (after_value.then_some(at), false),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    blank(&mut out, comma..comma + 1);
                }
                after_value = true;
            }
            _ => (comma, after_value) = (None, !matches!(byte, b'{' | b'[' | b':')),
        }
        at = end;
    }
    if out.is_empty() {
        return Ok(Cow::Borrowed(text));
    }
    // Only whole characters were replaced, each with as many spaces as it has bytes, so this is still UTF-8.
    Ok(String::from_utf8(out).map_or(Cow::Borrowed(text), Cow::Owned))
}

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn end_of_line(bytes: &[u8], start: usize) -> usize {
    let following = bytes[start..].iter();
    let line = following.take_while(|byte| **byte != b'\n').count();
    start + line
}

fn end_of_comment(bytes: &[u8], start: usize) -> Option<usize> {
    let inner = bytes.get(start + 2..)?;
    let length = inner.windows(2).position(|pair| pair == b"*/")?;
    Some(start + 2 + length + 2)
}

pub(super) fn no_json(text: &str, error: &serde_json::Error) -> Diagnostic {
    let at = Position {
        line: error.line().max(1),
        column: error.column().max(1),
    };
    // The text of the error ends with its position.
    let message = error.to_string();
    let what = message.split(" at line ").next().unwrap_or_default();
    if what.starts_with("EOF") {
        return unfinished(text, at, what.ends_with("string"));
    }
    let is_of_control = what.starts_with("control character");
    let shown = match what {
        "key must be a string" => "a key has to begin with a double quotation mark",
        _ if is_of_control => "a text goes on in the next line, or has another control character",
        what => what,
    };
    let diagnostic = Diagnostic::new(at, "", format!("is not JSON: {shown}"));
    let line = text.lines().nth(at.line - 1).unwrap_or_default();
    // The column of the parser counts bytes.
    match line.as_bytes().get(at.column - 1) {
        Some(b'/' | b'#') => diagnostic.with_fix("comments begin with `//`"),
        Some(b'\'') => diagnostic.with_fix("write `\"` for `'`"),
        _ if is_of_control => {
            diagnostic.with_fix("look for a quotation mark that is missing in this line")
        }
        _ if what.starts_with("invalid escape") => {
            diagnostic.with_fix("write `\\\\` for each backslash, as in `C:\\\\Users`")
        }
        _ => diagnostic
            .with_fix("look for a comma, colon, quote or bracket that is missing just before"),
    }
}

/// Why `text` ends too early, `at` its end, which may be within a string.
fn unfinished(text: &str, at: Position, is_in_string: bool) -> Diagnostic {
    let lines = Lines::of(text);
    let blanked = plain(text).unwrap_or(Cow::Borrowed(text));
    let bytes = blanked.as_bytes();
    let mut open = Vec::new();
    let mut next = 0;
    while let Some(byte) = bytes.get(next) {
        let end = match byte {
            b'"' => end_of_string(bytes, next),
            _ => next + 1,
        };
        match byte {
            b'{' => open.push((next, "{", '}')),
            b'[' => open.push((next, "[", ']')),
            b'}' | b']' => _ = open.pop(),
            b'"' if is_in_string && end == bytes.len() => {
                let what = "is not JSON: the text that begins here has no end";
                let diagnostic = Diagnostic::new(lines.position(next), "", what);
                return diagnostic.with_fix("write its closing quotation mark");
            }
            _ => {}
        }
        next = end;
    }
    let (what, fix) = match open.last() {
        None if blanked.trim().is_empty() => (
            "the file is empty".to_owned(),
            "write `{}`, or name another file".to_owned(),
        ),
        None => (
            "the file ends within a value".to_owned(),
            "write the whole value".to_owned(),
        ),
        Some((start, bracket, _)) => {
            let Position { line, column } = lines.position(*start);
            let closing: String = open.iter().rev().map(|(.., closing)| closing).collect();
            let is = if open.len() == 1 { "it is" } else { "they are" };
            (
                format!(
                    "the file ends before the `{bracket}` in line {line}, column {column} is closed"
                ),
                format!("write `{closing}` where {is} missing"),
            )
        }
    };
    Diagnostic::new(at, "", format!("is not JSON: {what}")).with_fix(fix)
}

/// The text that contains the raw values.
struct File<'a> {
    lines: Lines<'a>,
    start: usize,
}

impl File<'_> {
    fn position(&self, raw: &RawValue) -> Position {
        let offset = raw.get().as_ptr().addr().saturating_sub(self.start);
        self.lines.position(offset)
    }

    fn node(&self, raw: &RawValue, depth: usize) -> Result<Node, Diagnostic> {
        let at = self.position(raw);
        let failed = |error: serde_json::Error| {
            Diagnostic::new(at, "", error.to_string()).with_fix("write it as JSON has it")
        };
        let inner_depth = depth
            .checked_sub(1)
            .ok_or_else(|| Diagnostic::too_deep(at, DEEPEST))?;
        let text = raw.get();
        let value = match text.bytes().next() {
            Some(b'{') => {
                let read = serde_json::Deserializer::from_str(text).deserialize_map(Members);
                let members = read.map_err(failed)?;
                let entries = members.into_iter().map(|(key, value)| {
                    Ok(Entry {
                        key: serde_json::from_str(key.get()).map_err(failed)?,
                        at: self.position(key),
                        node: self.node(value, inner_depth)?,
                    })
                });
                Value::Table(entries.collect::<Result<_, Diagnostic>>()?)
            }
            Some(b'[') => {
                let read = serde_json::Deserializer::from_str(text).deserialize_seq(Items);
                let elements = read.map_err(failed)?.into_iter();
                let nodes = elements.map(|element| self.node(element, inner_depth));
                Value::List(nodes.collect::<Result<_, Diagnostic>>()?)
            }
            Some(b'"') => Value::Text(serde_json::from_str(text).map_err(failed)?),
            _ if text == "null" => Value::Null,
            _ => Value::Scalar(text.to_owned()),
        };
        Ok(Node { at, value })
    }
}

/// Deserializes the members of an object as raw text.
pub(super) struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(&'de RawValue, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

/// Deserializes the items of an array as raw text.
struct Items;

impl<'de> Visitor<'de> for Items {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(items)
    }
}
