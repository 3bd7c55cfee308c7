//! Values on one line.

use std::borrow::Cow;

use super::columns::KeyOnlyRows;
use crate::json::Json;

/// Replaces line breaks in a value on one line.
const LINE_BREAK: &str = " ↵ ";

/// A list of strings of at most this many bytes is written on one line.
const MAX_SHORT_LIST: usize = 120;

/// How a value is written on one line.
pub(super) struct Line {
    /// Writes a string.
    pub(super) string: fn(&mut String, &str),
    /// Writes a key.
    pub(super) key: fn(&mut String, &str),
    /// Opens an array within an array or object.
    pub(super) open_array: &'static str,
}

impl Line {
    /// Writes `value` on one line; false if it takes `room` bytes or more (a part is written then).
    pub(super) fn write(&self, out: &mut String, value: &Json<'_>, room: usize) -> bool {
        let end = out.len().saturating_add(room);
        self.write_until(out, value, end)
    }

    pub(super) fn write_until(&self, out: &mut String, value: &Json<'_>, end: usize) -> bool {
        match value {
            Json::Array(elements) if !elements.is_empty() => self.list(out, elements, end),
            Json::Object(members) if !members.is_empty() => {
                for (at, (key, value)) in members.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    if !has_room(out, key, end) {
                        return false;
                    }
                    (self.key)(out, key);
                    out.push_str(": ");
                    if !self.nested(out, value, end) {
                        return false;
                    }
                }
                true
            }
            Json::String(text) => {
                let fits = has_room(out, text, end);
                if fits {
                    (self.string)(out, text);
                }
                fits && out.len() < end
            }
            Json::Number(spelling) if !has_room(out, spelling, end) => false,
            scalar_or_empty => {
                scalar_or_empty.write(out);
                out.len() < end
            }
        }
    }

    pub(super) fn list(&self, out: &mut String, elements: &[Json<'_>], end: usize) -> bool {
        // Quotes distinguish a comma inside of an element from those between elements.
        let has_comma = |element: &Json<'_>| element.as_str().is_some_and(|it| it.contains(','));
        let quote = if elements.iter().any(has_comma) {
            "\""
        } else {
            ""
        };
        for (at, element) in elements.iter().enumerate() {
            out.push_str(if at > 0 { ", " } else { "" });
            let quote = if element.as_str().is_some() {
                quote
            } else {
                ""
            };
            out.push_str(quote);
            if !self.nested(out, element, end) {
                return false;
            }
            out.push_str(quote);
        }
        true
    }

    /// Writes keys, with commas between them.
    pub(super) fn keys(&self, out: &mut String, keys: &[impl AsRef<str>]) {
        for (at, key) in keys.iter().enumerate() {
            out.push_str(if at > 0 { ", " } else { "" });
            (self.key)(out, key.as_ref());
        }
    }

    /// Writes the keys of key-only rows: a list, or a list of lists if the key has several members.
    pub(super) fn key_only_rows(&self, out: &mut String, others: &KeyOnlyRows<'_>) {
        self.keys(out, &others.keys);
        out.push_str(": ");
        let rows = others.rows.iter();
        match others.keys.len() {
            1 => self.list(
                out,
                &rows.flatten().cloned().collect::<Vec<_>>(),
                usize::MAX,
            ),
            _ => self.list(out, &others.cells(), usize::MAX),
        };
    }

    pub(super) fn nested(&self, out: &mut String, value: &Json<'_>, end: usize) -> bool {
        let (open, close) = match value {
            Json::Array(elements) if !elements.is_empty() => (self.open_array, "]"),
            Json::Object(members) if !members.is_empty() => ("{", "}"),
            _ => ("", ""),
        };
        out.push_str(open);
        let fits = self.write_until(out, value, end);
        out.push_str(close);
        fits
    }

    /// `value` on one line, however long.
    pub(super) fn whole(&self, value: &Json<'_>) -> String {
        let mut out = String::new();
        self.write(&mut out, value, usize::MAX);
        out
    }
}

/// Whether `text` could fit. Checked before writing: a megabyte must not be copied once per level of nesting only to
/// learn that it does not fit.
pub(super) fn has_room(out: &str, text: &str, end: usize) -> bool {
    text.len() < end.saturating_sub(out.len())
}

/// Whether `value` reads well on one line: a scalar, an empty container, or a short list of scalars.
pub(super) fn fits_line(value: &Json<'_>) -> bool {
    match value {
        Json::Object(members) => members.is_empty(),
        Json::Array(elements) => is_short_list(elements),
        Json::String(text) => !is_multiline(text),
        _ => true,
    }
}

/// Whether `elements` are scalars that read well side by side: with little text or none.
pub(super) fn is_short_list(elements: &[Json<'_>]) -> bool {
    let strings = elements.iter().filter_map(Json::as_str);
    elements.iter().all(|element| !is_container(element))
        && strings.clone().map(str::len).sum::<usize>() <= MAX_SHORT_LIST
        && strings
            .clone()
            .all(|text| !text.contains([',', '\n', '\r']))
}

/// Whether every element of `elements` reads well on a line of its own.
pub(super) fn are_lines(elements: &[Json<'_>]) -> bool {
    elements.iter().all(|element| match element {
        Json::String(_) => true,
        other => fits_line(other),
    })
}

pub(super) fn is_container(value: &Json<'_>) -> bool {
    matches!(value, Json::Array(_) | Json::Object(_))
}

pub(super) fn is_multiline(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// The lines of `text`, with any line ending; a final line break does not begin another line.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let body = text
        .strip_suffix("\r\n")
        .or_else(|| text.strip_suffix(['\n', '\r']))
        .unwrap_or(text);
    body.split('\n')
        .flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

/// `text` without line breaks.
pub(super) fn on_one_line(text: &str) -> Cow<'_, str> {
    if is_multiline(text) {
        Cow::Owned(lines(text).collect::<Vec<_>>().join(LINE_BREAK))
    } else {
        Cow::Borrowed(text)
    }
}
