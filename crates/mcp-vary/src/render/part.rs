//! Reads a value in parts.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::ignored::for_display;
use crate::json::Json;

/// The default number of elements or members on a page.
pub const DEFAULT_PAGE: usize = 100;

/// The default number of bytes of a text on a page.
pub const DEFAULT_TEXT_PAGE: usize = 16 * 1024;

/// The maximum number of bytes of a page as JSON, unless a single element is larger.
pub const MAX_PAGE_BYTES: usize = 64 * 1024;

/// A part of a value: from `offset` on, of the value at `pointer`.
///
/// # Examples
///
/// ```
/// use mcp_vary::render::Part;
///
/// let part = Part::parse("pointer=/rows/0/a%20b&offset=500&limit=50")?;
/// assert_eq!((part.pointer.as_str(), part.offset, part.limit), ("/rows/0/a b", 500, Some(50)));
/// assert_eq!(part.to_query(), "pointer=/rows/0/a%20b&offset=500&limit=50");
///
/// // An empty query is the beginning of the whole value.
/// assert_eq!(Part::parse("")?, Part::default());
/// # Ok::<(), mcp_vary::render::PartError>(())
/// ```
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Part {
    /// A JSON pointer (RFC 6901); empty for the root value.
    pub pointer: String,
    /// The number of elements, members or bytes to skip.
    pub offset: usize,
    /// The maximum number to read; [`DEFAULT_PAGE`] or [`DEFAULT_TEXT_PAGE`] if `None`.
    pub limit: Option<usize>,
}

/// Why a part cannot be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PartError {
    /// The query does not describe a part.
    #[error("`{0}` does not describe a part of a value; write `pointer=/rows&offset=0&limit=50`")]
    Malformed(String),
    /// There is no value at the pointer.
    #[error("there is no value at `{0}`; omit the pointer to read the whole value")]
    NotFound(String),
    /// There is nothing at or after the offset.
    #[error("`offset` is {offset}, and there are {total}; begin before that")]
    PastEnd {
        /// The requested offset.
        offset: usize,
        /// The number of elements, members or bytes.
        total: usize,
    },
}

impl Part {
    /// The beginning of the value at `pointer`.
    #[must_use]
    pub fn at(pointer: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            ..Self::default()
        }
    }

    /// Skips `offset` elements, members or bytes.
    #[must_use]
    pub fn with_offset(mut self, offset: usize) -> Self {
        self.offset = offset;
        self
    }

    /// Reads at most `limit` elements, members or bytes.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Parses the query of a URI: `pointer`, `offset` and `limit`, each at most once.
    ///
    /// # Errors
    ///
    /// [`PartError::Malformed`] if there is anything else, if `limit` is 0, or if an escape is not UTF-8.
    pub fn parse(query: &str) -> Result<Self, PartError> {
        let mut part = Self::default();
        let mut seen = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let malformed = || PartError::Malformed(for_display(pair));
            let (name, value) = pair.split_once('=').ok_or_else(malformed)?;
            if seen.contains(&name) {
                return Err(malformed());
            }
            seen.push(name);
            match name {
                "pointer" => part.pointer = unescaped(value).ok_or_else(malformed)?,
                "offset" => part.offset = value.parse().map_err(|_| malformed())?,
                "limit" => {
                    let limit = value.parse().map_err(|_| malformed())?;
                    part.limit = Some(limit).filter(|limit| *limit > 0);
                    part.limit.ok_or_else(malformed)?;
                }
                _ => return Err(malformed()),
            }
        }
        Ok(part)
    }

    /// The query for this part; empty for the whole value.
    #[must_use]
    pub fn to_query(&self) -> String {
        let mut pairs = Vec::new();
        if !self.pointer.is_empty() {
            pairs.push(format!("pointer={}", escaped(&self.pointer)));
        }
        if self.offset > 0 {
            pairs.push(format!("offset={}", self.offset));
        }
        if let Some(limit) = self.limit {
            pairs.push(format!("limit={limit}"));
        }
        pairs.join("&")
    }
}

/// A part of a value, and the start of the next one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Page<'a> {
    /// The elements of an array, members of an object, or bytes of a text; any other value itself.
    pub value: Json<'a>,
    /// The start of the page, which is moved back to the start of a character.
    pub offset: usize,
    /// The number of elements, members or bytes on all pages.
    pub total: usize,
    /// The start of the next page; `None` after the last.
    pub next: Option<usize>,
}

/// Reads `part` of `value`.
///
/// # Properties
///
/// Pages follow each other without a gap: starting at 0 and continuing at each `next`, they are the whole array,
/// object or text, element by element. A nonempty page has at least one element, and at most [`MAX_PAGE_BYTES`]
/// bytes unless that element is larger. Total; linear in the value.
///
/// # Errors
///
/// [`PartError::NotFound`] and [`PartError::PastEnd`].
///
/// # Examples
///
/// ```
/// use mcp_vary::json::Json;
/// use mcp_vary::render::{Part, read};
///
/// let value = Json::parse(r#"{"rows": [{"id": 1}, {"id": 2.0}, {"id": 3}], "note": "Zürich"}"#)?;
/// let page = read(&value, &Part::at("/rows").with_limit(2))?;
/// assert_eq!(page.value.to_json(), r#"[{"id":1},{"id":2.0}]"#);
/// assert_eq!((page.total, page.next), (3, Some(2)));
///
/// // An offset inside of a character moves to its start.
/// let page = read(&value, &Part::at("/note").with_offset(2))?;
/// assert_eq!((page.value.to_json().as_str(), page.offset), (r#""ürich""#, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read<'a>(value: &Json<'a>, part: &Part) -> Result<Page<'a>, PartError> {
    let nowhere = || PartError::NotFound(for_display(&part.pointer));
    let value = find(value, &part.pointer).ok_or_else(nowhere)?;
    let total = match value {
        Json::Array(elements) => elements.len(),
        Json::Object(members) => members.len(),
        Json::String(text) => text.len(),
        _ => 1,
    };
    let is_past = part.offset > 0 && part.offset >= total;
    if is_past {
        return Err(PartError::PastEnd {
            offset: part.offset,
            total,
        });
    }
    let limit = part.limit.unwrap_or(match value {
        Json::String(_) => DEFAULT_TEXT_PAGE,
        _ => DEFAULT_PAGE,
    });
    let mut offset = part.offset;
    let (page, end) = match value {
        Json::Array(elements) => {
            let end = offset + fitting(&elements[offset..], limit, |one| one.json_len());
            (Json::Array(elements[offset..end].to_vec()), end)
        }
        Json::Object(members) => {
            let size = |(key, value): &(Cow<'_, str>, Json<'_>)| key.len() + value.json_len() + 3;
            let end = offset + fitting(&members[offset..], limit, size);
            (Json::Object(members[offset..end].to_vec()), end)
        }
        Json::String(text) => {
            offset = text.floor_char_boundary(offset);
            let end = text_end(text, offset, limit);
            (Json::String(text[offset..end].to_owned().into()), end)
        }
        scalar => (scalar.clone(), total),
    };
    Ok(Page {
        value: page,
        offset,
        total,
        next: (end < total).then_some(end),
    })
}

/// The number of items on a page of at most `limit`: those that fit, and at least one.
fn fitting<T>(all: &[T], limit: usize, size: impl Fn(&T) -> usize) -> usize {
    let mut room = MAX_PAGE_BYTES;
    let fits = |one: &&T| {
        let length = size(one).saturating_add(1);
        let fits = length <= room;
        room = room.saturating_sub(length);
        fits
    };
    let count = all.iter().take(limit).take_while(fits).count();
    count.max(1).min(all.len())
}

/// The end of the page of `text` that begins at `offset`; it has at least one character.
pub(super) fn text_end(text: &str, offset: usize, limit: usize) -> usize {
    let limit = offset.saturating_add(limit.min(MAX_PAGE_BYTES));
    match text.floor_char_boundary(limit) {
        end if end > offset => end,
        _ => text.ceil_char_boundary(offset + 1),
    }
}

/// The value at `pointer` in `value`.
fn find<'v, 'a>(value: &'v Json<'a>, pointer: &str) -> Option<&'v Json<'a>> {
    if pointer.is_empty() {
        return Some(value);
    }
    let mut tokens = pointer.strip_prefix('/')?.split('/');
    tokens.try_fold(value, |value, token| match value {
        Json::Object(_) => value.get(&token.replace("~1", "/").replace("~0", "~")),
        Json::Array(elements) => {
            let is_number = token.bytes().all(|b| b.is_ascii_digit());
            let is_plain = is_number && (token == "0" || !token.starts_with('0'));
            elements.get(is_plain.then(|| token.parse::<usize>().ok()).flatten()?)
        }
        _ => None,
    })
}

/// Bytes that need no escape in a query, besides letters and digits.
const PLAIN: &[u8] = b"-._~/:@!$'()*,;";

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || PLAIN.contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Decodes the `%` escapes of `text`; `None` if one is malformed or the result is not UTF-8.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut remaining = text.bytes();
    while let Some(byte) = remaining.next() {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let read = match byte {
            b'%' => digit(remaining.next()?)? * 16 + digit(remaining.next()?)?,
            plain => u32::from(plain),
        };
        bytes.push(u8::try_from(read).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str =
        r#"{"a/b":{"c~d":[10,20,30]},"":"é","n":1.50,"rows":[],"01":{"x":1,"y":2}}"#;

    /// CN-13: what a query asks for, as JSON with `offset/total/next`, or as the error's sentence.
    #[track_caller]
    fn reads(query: &str, expected: &str) {
        let value = Json::parse(VALUE).unwrap();
        let page = Part::parse(query).and_then(|part| read(&value, &part));
        let said = match page {
            Ok(page) => {
                let next = page.next.map_or_else(|| "-".to_owned(), |n| n.to_string());
                let json = page.value.to_json();
                format!("{json} {}/{}/{next}", page.offset, page.total)
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(said, expected);
    }

    #[test]
    fn parts_are_pages_of_what_a_pointer_leads_to() {
        reads("", &format!("{VALUE} 0/5/-"));
        reads("pointer=/a~1b/c~0d&limit=2", "[10,20] 0/3/2");
        reads("pointer=/a~1b/c~0d&offset=2&limit=2", "[30] 2/3/-");
        reads("pointer=/a~1b/c~0d/1", "20 0/1/-");
        reads("pointer=/&limit=1", r#""é" 0/2/-"#);
        reads("pointer=/n", "1.50 0/1/-");
        reads("pointer=/rows", "[] 0/0/-");
        reads("pointer=/01&offset=1", r#"{"y":2} 1/2/-"#);
        reads("limit=1", r#"{"a/b":{"c~d":[10,20,30]}} 0/5/1"#);
    }

    #[test]
    fn the_beginning_is_not_written() {
        assert_eq!(Part::at("/rows").to_query(), "pointer=/rows");
        assert_eq!(Part::default().to_query(), "");
    }

    #[test]
    fn what_is_not_there_is_said() {
        let nowhere = |at: &str| {
            format!("there is no value at `{at}`; omit the pointer to read the whole value")
        };
        reads("pointer=/x", &nowhere("/x"));
        reads("pointer=rows", &nowhere("rows"));
        reads("pointer=/a~1b/c~0d/01", &nowhere("/a~1b/c~0d/01"));
        reads("pointer=/a~1b/c~0d/-", &nowhere("/a~1b/c~0d/-"));
        reads("pointer=/n/0", &nowhere("/n/0"));
        let expected = "`offset` is 1, and there are 0; begin before that";
        reads("pointer=/rows&offset=1", expected);
        let expected = "`offset` is 1, and there are 1; begin before that";
        reads("pointer=/n&offset=1", expected);
    }

    #[test]
    fn a_query_that_asks_for_something_else_is_refused() {
        for query in [
            "limit=0",
            "offset=-1",
            "offset",
            "page=2",
            "pointer=%",
            "pointer=%ff",
            "pointer=%G0",
            "limit=1&limit=2",
        ] {
            let part = Part::parse(query);
            assert!(
                matches!(part, Err(PartError::Malformed(_))),
                "{query}: {part:?}"
            );
        }
    }

    #[test]
    fn a_page_has_an_end() {
        let rows = format!("[{}]", vec!["\"xxxxxxx\""; 20_000].join(","));
        let value = Json::parse(&rows).unwrap();
        let page = read(&value, &Part::default().with_limit(usize::MAX)).unwrap();
        assert_eq!(page.next, Some(MAX_PAGE_BYTES / 10));
        let large = format!("[\"{}\",1]", "x".repeat(MAX_PAGE_BYTES));
        let value = Json::parse(&large).unwrap();
        assert_eq!(read(&value, &Part::default()).unwrap().next, Some(1));
        let found = read(&value, &Part::at("/0")).unwrap().next;
        assert_eq!(found, Some(DEFAULT_TEXT_PAGE));
        let all = Part::at("/0").with_limit(usize::MAX);
        assert_eq!(read(&value, &all).unwrap().next, None);
    }

    #[test]
    fn a_page_of_members_counts_their_keys_and_what_stands_between() {
        // `"k00000":"x",` are 13 bytes.
        let members: Vec<_> = (0..6000).map(|n| format!("\"k{n:05}\":\"x\"")).collect();
        let object = format!("{{{}}}", members.join(","));
        let value = Json::parse(&object).unwrap();
        let page = read(&value, &Part::default().with_limit(usize::MAX)).unwrap();
        assert_eq!(page.next, Some(5041));
    }

    #[test]
    fn a_page_has_16_kib_of_a_text_where_no_limit_is_named_and_never_more_than_64() {
        let text = format!("\"{}\"", "x".repeat(100_000));
        let value = Json::parse(&text).unwrap();
        assert_eq!(read(&value, &Part::default()).unwrap().next, Some(16_384));
        let all = Part::default().with_limit(usize::MAX);
        assert_eq!(read(&value, &all).unwrap().next, Some(65_536));
    }
}
