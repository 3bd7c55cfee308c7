//! Renders JSON values as text for people ([`markdown`], [`text`]), and compacts them ([`compact`]).
//!
//! Rendering is total and lossless: every key and every scalar of the value appears; numbers, dates and Unicode stay
//! as written. It is language-neutral: no word is added, no date rewritten, no number grouped or rounded. The output
//! is linear in the input.
//!
//! An object becomes a list of its members, an array of objects a table, nested values sections. A table becomes
//! sections if it would be too wide to read: more than [`MAX_COLUMNS`] columns, a cell over [`MAX_CELL`] bytes, or
//! mostly empty rows. Values nested deeper than sections stand on one line, as `key: value, key: value`.

mod columns;
mod compact;
mod geo;
mod index;
mod left_out;
mod limits;
mod markdown;
pub mod part;
mod schema;
mod text;
mod tokens;

pub use self::compact::{
    Compact, Contract, ELLIPSIS, META_LEFT_OUT, compact, compact_columns, compact_structured,
};
pub(crate) use self::compact::{fair_share, shorter_prose};
pub use self::geo::geo_json;
pub use self::index::Index;
pub(crate) use self::left_out::fold_lines;
pub use self::left_out::{LeftOut, LeftOutRule, notice};
pub use self::limits::Limits;
pub use self::markdown::{compact_markdown, markdown};
pub use self::part::{
    DEFAULT_PAGE, DEFAULT_TEXT_PAGE, MAX_PAGE_BYTES, Page, Part, PartError, read,
};
pub use self::text::{compact_text, text};
pub use self::tokens::tokens;

use std::borrow::Cow;

use self::columns::{Columns, KeyOnlyRows};
use crate::json::Json;

/// A table with more columns than this becomes sections.
pub const MAX_COLUMNS: usize = 16;

/// A table with a longer cell, in bytes, becomes sections.
pub const MAX_CELL: usize = 400;

/// Replaces line breaks in a value on one line.
const LINE_BREAK: &str = " ↵ ";

/// The average length of a row, in bytes; longer rows become sections.
const MAX_ROW_WIDTH: usize = 300;

/// A list of strings of at most this many bytes stands on one line.
const MAX_SHORT_LIST: usize = 120;

/// The depth to which objects in a column become columns of their own.
const MAX_OPENED_COLUMNS: usize = 3;

/// Cells per value: sparse tables are hard to read and cost more than their content.
const MAX_CELLS_PER_VALUE: usize = 4;

/// How a value is written on one line.
struct Line {
    /// Writes a string.
    string: fn(&mut String, &str),
    /// Writes a key.
    key: fn(&mut String, &str),
    /// Opens an array within an array or object.
    open_array: &'static str,
}

impl Line {
    /// Writes `value` on one line; false if it takes `room` bytes or more (a part is written then).
    fn write(&self, out: &mut String, value: &Json<'_>, room: usize) -> bool {
        let end = out.len().saturating_add(room);
        self.write_until(out, value, end)
    }

    fn write_until(&self, out: &mut String, value: &Json<'_>, end: usize) -> bool {
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

    fn list(&self, out: &mut String, elements: &[Json<'_>], end: usize) -> bool {
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

    /// Writes the keys of key-only rows: a list, or a list of lists if the key has several members.
    fn key_only_rows(&self, out: &mut String, others: &KeyOnlyRows<'_>) {
        for (at, key) in others.keys.iter().enumerate() {
            out.push_str(if at > 0 { ", " } else { "" });
            (self.key)(out, key);
        }
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

    fn nested(&self, out: &mut String, value: &Json<'_>, end: usize) -> bool {
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
    fn whole(&self, value: &Json<'_>) -> String {
        let mut out = String::new();
        self.write(&mut out, value, usize::MAX);
        out
    }
}

/// Whether `text` could fit. Checked before writing: a megabyte must not be copied once per level of nesting only to
/// learn that it does not fit.
fn has_room(out: &str, text: &str, end: usize) -> bool {
    text.len() < end.saturating_sub(out.len())
}

/// Whether `value` reads well on one line: a scalar, an empty container, or a short list of scalars.
fn fits_line(value: &Json<'_>) -> bool {
    match value {
        Json::Object(members) => members.is_empty(),
        Json::Array(elements) => is_short_list(elements),
        Json::String(text) => !is_multiline(text),
        _ => true,
    }
}

/// Whether `elements` are scalars that read well side by side: with little text or none.
fn is_short_list(elements: &[Json<'_>]) -> bool {
    let strings = elements.iter().filter_map(Json::as_str);
    elements.iter().all(|element| !is_container(element))
        && strings.clone().map(str::len).sum::<usize>() <= MAX_SHORT_LIST
        && strings
            .clone()
            .all(|text| !text.contains([',', '\n', '\r']))
}

/// Whether every element of `elements` reads well on a line of its own.
fn are_lines(elements: &[Json<'_>]) -> bool {
    elements.iter().all(|element| match element {
        Json::String(_) => true,
        other => fits_line(other),
    })
}

fn is_container(value: &Json<'_>) -> bool {
    matches!(value, Json::Array(_) | Json::Object(_))
}

fn is_multiline(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// The lines of `text`, with any line ending; a final line break does not begin another line.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let text = text
        .strip_suffix("\r\n")
        .or_else(|| text.strip_suffix(['\n', '\r']))
        .unwrap_or(text);
    text.split('\n')
        .flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

/// `text` without line breaks.
fn on_one_line(text: &str) -> Cow<'_, str> {
    if is_multiline(text) {
        Cow::Owned(lines(text).collect::<Vec<_>>().join(LINE_BREAK))
    } else {
        Cow::Borrowed(text)
    }
}

/// A table with rendered cells.
struct Table {
    rows: usize,
    columns: Vec<Column>,
}

struct Column {
    label: String,
    /// Whether all its values are numbers.
    numeric: bool,
    cells: Vec<String>,
}

impl Table {
    /// `elements` as a table, if they are objects and the table is readable.
    ///
    /// Columns are the union of keys, in order of appearance. Objects in a column become columns of their own,
    /// `from.station`, within the limits.
    fn of(elements: &[Json<'_>], line: &Line) -> Option<Self> {
        if elements.is_empty() || !elements.iter().all(|e| e.as_object().is_some()) {
            return None;
        }
        let values: Vec<_> = elements.iter().map(Some).collect();
        let mut cells = Cells::default();
        if !cells.collect(&values, "", MAX_OPENED_COLUMNS, line) || !cells.labels_differ() {
            cells = Cells::default();
            if !cells.collect(&values, "", 0, line) {
                return None;
            }
        }
        let filled = cells
            .columns
            .iter()
            .map(|(_, cells)| cells.iter().flatten().count());
        let most = filled.sum::<usize>() * MAX_CELLS_PER_VALUE + 64;
        if cells.columns.is_empty() || elements.len() * cells.columns.len() > most {
            return None;
        }
        cells.write(elements.len(), line)
    }
}

/// An object of objects of one shape: a row for each key.
struct Keyed<'v, 'a> {
    table: Table,
    /// The trailing keys whose objects are left out.
    others: Vec<&'v Cow<'a, str>>,
}

impl<'v, 'a> Keyed<'v, 'a> {
    /// The table of `members`; `None` if there are fewer than two, if their keys differ, or if the table is not
    /// readable.
    fn of(members: &'v [(Cow<'a, str>, Json<'a>)], line: &Line) -> Option<Self> {
        let is_left_out = |(_, value): &&(_, Json<'a>)| value.as_str() == Some(ELLIPSIS);
        let others = members.iter().rev().take_while(is_left_out).count();
        let (shown, others) = members.split_at(members.len() - others);
        let (_, first) = shown.first()?;
        let are_alike = |value: &Json<'a>| {
            let (one, other) = (value.as_object()?, first.as_object()?);
            let mut keys = one.iter().zip(other);
            Some(one.len() == other.len() && keys.all(|((one, _), (other, _))| one == other))
        };
        let has_shape = first.as_object().is_some_and(|first| !first.is_empty());
        let are_rows = shown
            .iter()
            .all(|(_, value)| are_alike(value) == Some(true));
        if shown.len() < 2 || !has_shape || !are_rows {
            return None;
        }
        let rows: Vec<_> = shown.iter().map(|(_, value)| value.clone()).collect();
        let mut table = Table::of(&rows, line)?;
        let key = |(key, _): &(Cow<'a, str>, Json<'a>)| {
            let mut cell = String::new();
            (line.key)(&mut cell, key);
            cell
        };
        let keys = Column {
            label: String::new(),
            numeric: false,
            cells: shown.iter().map(key).collect(),
        };
        table.columns.insert(0, keys);
        let others = others.iter().map(|(key, _)| key).collect();
        Some(Self { table, others })
    }
}

/// The value that a schema requires to be wrapped in an object: SDKs call it `result`. A heading for it would be
/// useless.
fn unwrapped<'v, 'w, 'a, 'b>(
    value: &'v Json<'a>,
    whole: Option<&'w Json<'b>>,
) -> (&'v Json<'a>, Option<&'w Json<'b>>) {
    match value.as_object() {
        Some([(key, only)]) if key == "result" && is_container(only) && !fits_line(only) => {
            (only, member(whole, key))
        }
        _ => (value, whole),
    }
}

/// Uniform rows in compact form: shared values, and a table of the others.
struct Uniform<'a> {
    /// Shared members, and templates of derived texts, under their JSON names.
    shared: Vec<(&'static str, Json<'a>)>,
    table: Table,
    /// The key-only rows.
    others: Option<KeyOnlyRows<'a>>,
}

impl<'a> Uniform<'a> {
    /// The rows of `elements`, which were derived from those of `whole`; `None` if they are not uniform, if the
    /// table would be mostly empty, or if it has no columns, which would lose the number of rows.
    fn of(elements: &[Json<'a>], whole: &Json<'_>, line: &Line) -> Option<Self> {
        let origins = whole.as_array()?;
        let columns =
            Columns::of(elements, origins).filter(|columns| !columns.labels.is_empty())?;
        let cells = columns.rows.iter().flatten();
        let filled = cells.clone().flatten().count();
        if cells.count() > filled * MAX_CELLS_PER_VALUE + 64 {
            return None;
        }
        let column = |at: usize| {
            let values = || columns.rows.iter().map(move |row| row[at].as_ref());
            let mut label = String::new();
            (line.key)(&mut label, &columns.labels[at]);
            let cell = |value: Option<&Json<'_>>| value.map_or(String::new(), |v| line.whole(v));
            Column {
                label,
                numeric: is_numeric(values()),
                cells: values().map(cell).collect(),
            }
        };
        let table = Table {
            rows: columns.rows.len(),
            columns: (0..columns.labels.len()).map(column).collect(),
        };
        let shared = [("each", columns.each), ("from", columns.from)];
        let shared = shared.into_iter().filter(|(_, some)| !some.is_empty());
        Some(Self {
            shared: shared
                .map(|(name, some)| (name, Json::Object(some)))
                .collect(),
            table,
            others: columns.key_only_rows,
        })
    }
}

/// The values of a table: for each column a label and one value per row.
#[derive(Default)]
struct Cells<'v, 'a> {
    columns: Vec<(String, Vec<Option<&'v Json<'a>>>)>,
}

impl<'v, 'a> Cells<'v, 'a> {
    /// Adds a column for each key in `rows`; false if there are too many.
    fn collect(
        &mut self,
        rows: &[Option<&'v Json<'a>>],
        prefix: &str,
        open: usize,
        line: &Line,
    ) -> bool {
        let Some(keys) = union_of_keys(rows) else {
            return false;
        };
        for key in keys {
            let cells: Vec<_> = rows
                .iter()
                .map(|row| row.and_then(|row| row.get(key)))
                .collect();
            let mut label = prefix.to_owned();
            (line.key)(&mut label, key);
            if open > 0 && cells.iter().flatten().all(|cell| has_members(cell)) {
                label.push('.');
                if !self.collect(&cells, &label, open - 1, line) {
                    return false;
                }
            } else {
                self.columns.push((label, cells));
            }
            if self.columns.len() > MAX_COLUMNS {
                return false;
            }
        }
        true
    }

    /// Whether all labels differ: a key with a dot may equal the label of a nested column.
    fn labels_differ(&self) -> bool {
        let labels = self.columns.iter().map(|(label, _)| label);
        labels.collect::<std::collections::BTreeSet<_>>().len() == self.columns.len()
    }

    /// Renders all cells; `None` if one cell or the average row is too long.
    fn write(&self, rows: usize, line: &Line) -> Option<Table> {
        let mut columns = Vec::with_capacity(self.columns.len());
        let mut size = 0;
        for (label, values) in &self.columns {
            let mut cells = Vec::with_capacity(rows);
            for value in values {
                let mut cell = String::new();
                if let Some(value) = value
                    && !line.write(&mut cell, value, MAX_CELL)
                {
                    return None;
                }
                size += cell.len();
                cells.push(cell);
            }
            columns.push(Column {
                label: label.clone(),
                numeric: is_numeric(values.iter().copied()),
                cells,
            });
        }
        (size <= rows * MAX_ROW_WIDTH).then_some(Table { rows, columns })
    }
}

/// The keys of `rows`, in order of appearance; `None` if there are more than [`MAX_COLUMNS`].
fn union_of_keys<'v>(rows: &[Option<&'v Json<'_>>]) -> Option<Vec<&'v str>> {
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in rows
        .iter()
        .flatten()
        .filter_map(|row| row.as_object())
        .flatten()
    {
        if !keys.contains(&key.as_ref()) {
            if keys.len() == MAX_COLUMNS {
                return None;
            }
            keys.push(key);
        }
    }
    Some(keys)
}

/// The original of the member `key`.
fn member<'v, 'a>(whole: Option<&'v Json<'a>>, key: &str) -> Option<&'v Json<'a>> {
    whole?.get(key)
}

/// The original of the element number `at`.
fn element<'v, 'a>(whole: Option<&'v Json<'a>>, at: usize) -> Option<&'v Json<'a>> {
    whole?.as_array()?.get(at)
}

fn has_members(value: &Json<'_>) -> bool {
    value.as_object().is_some_and(|members| !members.is_empty())
}

/// Whether all present cells are numbers, and there is at least one.
fn is_numeric<'v>(values: impl Iterator<Item = Option<&'v Json<'v>>>) -> bool {
    let mut given = values
        .flatten()
        .filter(|v| !matches!(v, Json::Null))
        .peekable();
    given.peek().is_some() && given.all(|value| matches!(value, Json::Number(_)))
}
