//! Indexes the positions of a value's parts in its text, so that consecutive pages are read in one pass.

use std::ops::Range;

use super::part::{
    DEFAULT_PAGE, DEFAULT_TEXT_PAGE, MAX_PAGE_BYTES, Page, Part, PartError, text_end,
};
use crate::ignored::for_display;
use crate::json::{Json, MAX_DEPTH, skip};

/// The positions of the elements, members or characters of one value in its JSON text.
///
/// # Properties
///
/// Its [pages](Self::page) equal those of [`read`](super::read). Reading a page takes time proportional to the page
/// plus 4 KiB of the text, wherever it begins, so all pages together take linear time. The index takes 16 bytes for
/// every 4 KiB of the text.
///
/// # Examples
///
/// ```
/// use mcp_vary::render::{Index, Part};
///
/// let json = r#"{"rows": [{"id": 1}, {"id": 2.0}, {"id": 3}]}"#;
/// let index = Index::of(json, "/rows")?;
/// let page = index.page(json, &Part::at("/rows").with_offset(1).with_limit(1))?;
/// assert_eq!((page.value.to_json().as_str(), page.total, page.next), (r#"[{"id":2.0}]"#, 3, Some(2)));
///
/// // An index covers one value.
/// assert!(index.page(json, &Part::at("")).is_err());
/// # Ok::<(), mcp_vary::render::PartError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Index {
    pointer: String,
    kind: Kind,
    /// The position of the value.
    span: Range<usize>,
    total: usize,
    /// Marks: the number of an element, member or byte, and its position in the text.
    marks: Vec<Mark>,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    number: usize,
    at: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Array,
    Object,
    Text,
    Scalar,
}

/// An element or member of a container.
struct Entry<'t> {
    /// The key of a member, as written.
    key: Option<&'t str>,
    value: Range<usize>,
    /// Its start.
    at: usize,
}

impl Index {
    /// Indexes the value at `pointer` in `json`.
    ///
    /// # Errors
    ///
    /// [`PartError::NotFound`] if there is no such value, or if the text is not JSON.
    pub fn of(json: &str, pointer: &str) -> Result<Self, PartError> {
        let found = find(json, pointer).and_then(|span| Self::within(json, pointer, span));
        found.ok_or_else(|| PartError::NotFound(for_display(pointer)))
    }

    fn within(json: &str, pointer: &str, span: Range<usize>) -> Option<Self> {
        let kind = match json.as_bytes().get(span.start)? {
            b'[' => Kind::Array,
            b'{' => Kind::Object,
            b'"' => Kind::Text,
            _ => Kind::Scalar,
        };
        let mut index = Self {
            pointer: pointer.to_owned(),
            kind,
            span: span.clone(),
            total: 1,
            marks: Vec::new(),
        };
        match kind {
            Kind::Array | Kind::Object => {
                let mut entries = Entries::of(json, span.start + 1, kind);
                index.total = 0;
                for entry in entries.by_ref() {
                    index.mark(index.total, entry.at);
                    index.total += 1;
                }
                entries.is_at_end.then_some(index)
            }
            Kind::Text => {
                index.mark_text(&json[span.start + 1..span.end - 1], span.start + 1);
                Some(index)
            }
            Kind::Scalar => Some(index),
        }
    }

    /// The pointer to the value.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// The approximate memory of the index, in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.pointer.len() + self.marks.capacity() * size_of::<Mark>()
    }

    /// Reads `part` of the value. `json` must be the text of the index.
    ///
    /// # Errors
    ///
    /// [`PartError::PastEnd`], and [`PartError::NotFound`] if `part` or `json` belongs to another value.
    pub fn page(&self, json: &str, part: &Part) -> Result<Page<'static>, PartError> {
        let nowhere = || PartError::NotFound(for_display(&part.pointer));
        if part.pointer != self.pointer {
            return Err(nowhere());
        }
        let (offset, total) = (part.offset, self.total);
        if offset > 0 && offset >= total {
            return Err(PartError::PastEnd { offset, total });
        }
        let page = match self.kind {
            Kind::Array | Kind::Object => {
                self.entries(json, offset, part.limit.unwrap_or(DEFAULT_PAGE))
            }
            Kind::Text => self.text(json, offset, part.limit.unwrap_or(DEFAULT_TEXT_PAGE)),
            Kind::Scalar => json.get(self.span.clone()).and_then(|scalar| {
                let value = Json::parse(scalar).ok()?.into_owned();
                Some((value, offset, total))
            }),
        };
        let (value, offset, end) = page.ok_or_else(nowhere)?;
        Ok(Page {
            value,
            offset,
            total,
            next: (end < total).then_some(end),
        })
    }

    /// One page of elements or members from `offset`, and the number after the last.
    fn entries(
        &self,
        json: &str,
        offset: usize,
        limit: usize,
    ) -> Option<(Json<'static>, usize, usize)> {
        let mark = self.mark_before(offset);
        let (mut elements, mut members) = (Vec::new(), Vec::new());
        let mut room = MAX_PAGE_BYTES;
        let mut end = offset;
        let entries = mark.map(|mark| Entries::of(json, mark.at, self.kind));
        let before = offset - mark.map_or(0, |mark| mark.number);
        for entry in entries.into_iter().flatten().skip(before).take(limit) {
            let value = Json::parse(json.get(entry.value)?).ok()?;
            let length = value.json_len();
            let key = match entry.key {
                Some(key) => Some(string(key)?),
                None => None,
            };
            let size = length + key.as_ref().map_or(1, |key| key.len() + 4);
            if end > offset && size > room {
                break;
            }
            room = room.saturating_sub(size);
            end += 1;
            match key {
                Some(key) => members.push((key.into(), value.into_owned())),
                None => elements.push(value.into_owned()),
            }
        }
        let value = match self.kind {
            Kind::Object => Json::Object(members),
            _ => Json::Array(elements),
        };
        Some((value, offset, end))
    }

    /// One page of the text from `offset`, with its start and end.
    fn text(
        &self,
        json: &str,
        offset: usize,
        limit: usize,
    ) -> Option<(Json<'static>, usize, usize)> {
        let Some(mark) = self.mark_before(offset) else {
            return Some((Json::String("".into()), 0, 0));
        };
        // A character has at most four bytes.
        let enough = offset.saturating_add(limit.min(MAX_PAGE_BYTES)) + 4;
        let next = self.marks.partition_point(|mark| mark.number < enough);
        let last = self.span.end - 1;
        let end = self.marks.get(next).map_or(last, |mark| mark.at);
        let written = json.get(mark.at..end)?;
        let text = string(written)?;
        let start = text.floor_char_boundary(offset - mark.number);
        let end = text_end(&text, start, limit);
        let page = Json::String(text.get(start..end)?.to_owned().into());
        Some((page, mark.number + start, mark.number + end))
    }

    fn mark_before(&self, number: usize) -> Option<Mark> {
        let next = self.marks.partition_point(|mark| mark.number <= number);
        self.marks.get(next.checked_sub(1)?).copied()
    }

    fn mark(&mut self, number: usize, at: usize) {
        let is_due = self.marks.last().is_none_or(|last| at - last.at >= STRIDE);
        if is_due {
            self.marks.push(Mark { number, at });
        }
    }

    /// Counts the bytes of the string `written` at `from`, and adds marks.
    fn mark_text(&mut self, written: &str, from: usize) {
        let mut number = 0;
        let mut remaining = written;
        while !remaining.is_empty() {
            self.mark(number, from + written.len() - remaining.len());
            let (length, used) = character(remaining);
            number += length;
            remaining = &remaining[used..];
        }
        self.total = number;
    }
}

/// The length of the first character of a string in bytes, decoded and as written; an escaped surrogate pair counts
/// as one character.
fn character(written: &str) -> (usize, usize) {
    let bytes = written.as_bytes();
    let unit = |at: usize| {
        let digits = written.get(at + 2..at + 6)?;
        let is_escape = bytes.get(at..at + 2)? == b"\\u";
        let code = u32::from_str_radix(digits, 16).ok()?;
        is_escape.then_some(code)
    };
    match (bytes[0], unit(0)) {
        (b'\\', Some(0xd800..=0xdbff)) => (4, 12.min(written.len())),
        (b'\\', Some(code)) => (char::from_u32(code).map_or(3, char::len_utf8), 6),
        (b'\\', None) => (1, 2.min(written.len())),
        _ => {
            let length = written.chars().next().map_or(1, char::len_utf8);
            (length, length)
        }
    }
}

/// Decodes the string `written`, without quotes.
fn string(written: &str) -> Option<String> {
    let quoted = format!("\"{written}\"");
    match Json::parse(&quoted).ok()? {
        Json::String(text) => Some(text.into_owned()),
        _ => None,
    }
}

/// Iterates over the elements or members of a container.
struct Entries<'t> {
    text: &'t str,
    at: usize,
    kind: Kind,
    /// Whether the end of the container was reached.
    is_at_end: bool,
}

impl<'t> Entries<'t> {
    fn of(text: &'t str, at: usize, kind: Kind) -> Self {
        Self {
            text,
            at,
            kind,
            is_at_end: false,
        }
    }

    /// Skips white space.
    fn space(&mut self) -> Option<u8> {
        let remaining = self.text.as_bytes().get(self.at..)?;
        let space = remaining
            .iter()
            .position(|byte| !b" \t\n\r".contains(byte))?;
        self.at += space;
        remaining.get(space).copied()
    }

    fn entry(&mut self) -> Option<Entry<'t>> {
        if matches!(self.space()?, b']' | b'}') {
            self.is_at_end = true;
            return None;
        }
        let at = self.at;
        let mut key = None;
        if self.kind == Kind::Object {
            let end = skip(self.text, at, MAX_DEPTH)?;
            key = Some(self.text.get(at + 1..end - 1)?);
            self.at = end;
            self.space().filter(|byte| *byte == b':')?;
            self.at += 1;
            self.space()?;
        }
        let start = self.at;
        self.at = skip(self.text, start, MAX_DEPTH)?;
        let value = start..self.at;
        if self.space()? == b',' {
            self.at += 1;
        }
        Some(Entry { key, value, at })
    }
}

impl<'t> Iterator for Entries<'t> {
    type Item = Entry<'t>;

    fn next(&mut self) -> Option<Entry<'t>> {
        if self.is_at_end { None } else { self.entry() }
    }
}

/// The position of the value at `pointer` in `json`.
fn find(json: &str, pointer: &str) -> Option<Range<usize>> {
    let start = json.len() - json.trim_start_matches([' ', '\t', '\n', '\r']).len();
    let whole = start..skip(json, start, MAX_DEPTH)?;
    if pointer.is_empty() {
        return Some(whole);
    }
    let mut tokens = pointer.strip_prefix('/')?.split('/');
    tokens.try_fold(whole, |span, token| {
        match json.as_bytes().get(span.start)? {
            b'{' => {
                let name = token.replace("~1", "/").replace("~0", "~");
                let mut members = Entries::of(json, span.start + 1, Kind::Object);
                let found = members.find(|entry| {
                    let key = entry.key.unwrap_or_default();
                    key == name || key.contains('\\') && string(key).as_deref() == Some(&*name)
                });
                found.map(|entry| entry.value)
            }
            b'[' => {
                let is_number = token.bytes().all(|byte| byte.is_ascii_digit());
                let is_plain = is_number && (token == "0" || !token.starts_with('0'));
                let number = is_plain.then(|| token.parse::<usize>().ok()).flatten()?;
                let mut elements = Entries::of(json, span.start + 1, Kind::Array);
                elements.nth(number).map(|entry| entry.value)
            }
            _ => None,
        }
    })
}

/// The minimum number of bytes between two marks.
const STRIDE: usize = 4096;
