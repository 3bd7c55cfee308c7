//! JSON values as text for people: [`markdown`] and [`text`]; and in fewer words: [`compact`].
//!
//! The first two are total and lossless in what they say: every key and every scalar of the value appears,
//! numbers, dates and unicode as they are spelled. They are neutral to language: no word is added,
//! no date rewritten, no number grouped or rounded. The output is linear in the input.
//!
//! An object is a list of its members, an array of objects a table, what nests goes into
//! sections. A table is given up for sections where it would be wider than a reader's eye:
//! more than [`MOST_COLUMNS`] columns, a cell over [`LONGEST_CELL`] bytes, rows that are mostly
//! holes. What nests deeper than sections go stands on one line, as `key: value, key: value`.

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
pub(crate) use self::compact::{level, shorter_prose};
pub use self::geo::geo_json;
pub use self::index::Index;
pub(crate) use self::left_out::folded;
pub use self::left_out::{LeftOut, Rule, notice};
pub use self::limits::Limits;
pub use self::markdown::{compact_markdown, markdown};
pub use self::part::{LARGEST_PAGE, PAGE, Page, Part, PartError, TEXT_PAGE, read};
pub use self::text::{compact_text, text};
pub use self::tokens::tokens;

use std::borrow::Cow;

use self::columns::{Columns, Others};
use crate::json::Json;

/// A table with more columns than this becomes sections.
pub const MOST_COLUMNS: usize = 16;

/// A cell longer than this, in bytes, makes sections of its table.
pub const LONGEST_CELL: usize = 400;

/// What stands for a line break where a value has one line only.
const LINE_BREAK: &str = " ↵ ";

/// Rows longer than this on average, in bytes, are read better as sections.
const WIDEST_ROW: usize = 300;

/// A list of strings up to this many bytes stands on one line.
const SHORT_LIST: usize = 120;

/// Objects in a column are opened into columns of their own this deep.
const OPENED_COLUMNS: usize = 3;

/// Sparse tables are hard to read, and their holes would cost more than their content.
const MOST_CELLS_PER_VALUE: usize = 4;

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
    /// Writes `value` on one line; false, with part of it written, when that takes `room` bytes or more.
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
        // A comma within an element is told apart from those between them.
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

    /// The keys of rows that have nothing else: a list, or a list of each of them where there are several.
    fn others(&self, out: &mut String, others: &Others<'_>) {
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

/// Whether `text` could fit. Asked before it is written: a megabyte must not be copied to learn
/// that it does not fit, once per level of nesting.
fn has_room(out: &str, text: &str, end: usize) -> bool {
    text.len() < end.saturating_sub(out.len())
}

/// Whether `value` reads well on one line: a scalar, nothing, or a short list of scalars.
fn fits_line(value: &Json<'_>) -> bool {
    match value {
        Json::Object(members) => members.is_empty(),
        Json::Array(elements) => is_short_list(elements),
        Json::String(text) => !is_multiline(text),
        _ => true,
    }
}

/// Whether `elements` are scalars that read well beside each other: no text, or little of it.
fn is_short_list(elements: &[Json<'_>]) -> bool {
    let strings = elements.iter().filter_map(Json::as_str);
    elements.iter().all(|element| !is_container(element))
        && strings.clone().map(str::len).sum::<usize>() <= SHORT_LIST
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

/// The lines of `text`, whichever way they end; a break at the very end begins no further line.
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

/// Rows under columns, every cell written.
struct Table {
    rows: usize,
    columns: Vec<Column>,
}

struct Column {
    label: String,
    /// Whether every value in it is a number.
    numeric: bool,
    cells: Vec<String>,
}

impl Table {
    /// `elements` as a table, when they are objects and a table of them can be read.
    ///
    /// Columns are the union of keys, first seen first. Objects in a column become columns of
    /// their own, `from.station`, where that stays within the limits.
    fn of(elements: &[Json<'_>], line: &Line) -> Option<Self> {
        if elements.is_empty() || !elements.iter().all(|e| e.as_object().is_some()) {
            return None;
        }
        let values: Vec<_> = elements.iter().map(Some).collect();
        let mut cells = Cells::default();
        if !cells.collect(&values, "", OPENED_COLUMNS, line) || !cells.labels_differ() {
            cells = Cells::default();
            if !cells.collect(&values, "", 0, line) {
                return None;
            }
        }
        let filled = cells
            .columns
            .iter()
            .map(|(_, cells)| cells.iter().flatten().count());
        let most = filled.sum::<usize>() * MOST_CELLS_PER_VALUE + 64;
        if cells.columns.is_empty() || elements.len() * cells.columns.len() > most {
            return None;
        }
        cells.write(elements.len(), line)
    }
}

/// An object of objects of one shape: a row for each, under its key.
struct Keyed<'v, 'a> {
    table: Table,
    /// The keys at the end of which the objects are left out.
    others: Vec<&'v Cow<'a, str>>,
}

impl<'v, 'a> Keyed<'v, 'a> {
    /// `members` as such a table; none where they are fewer than two, differ in what they have, or have no readable
    /// table.
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

/// What `value` wraps for the sake of a schema that must be an object: SDKs call it `result`. A heading over it
/// would say nothing.
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

/// Uniform rows of a value in few words: what they share, and a table of what they do not.
struct Uniform<'a> {
    /// Members of all rows, and how texts are made from another column: under the names that they
    /// have as JSON.
    shared: Vec<(&'static str, Json<'a>)>,
    table: Table,
    /// The rows that have their key and nothing else.
    others: Option<Others<'a>>,
}

impl<'a> Uniform<'a> {
    /// `elements`, which were made from those of `whole`, as such rows; none when they are not, or the table would be mostly holes, or have no
    /// column: how many rows there are would be lost.
    fn of(elements: &[Json<'a>], whole: &Json<'_>, line: &Line) -> Option<Self> {
        let origins = whole.as_array()?;
        let columns =
            Columns::of(elements, origins).filter(|columns| !columns.labels.is_empty())?;
        let cells = columns.rows.iter().flatten();
        let filled = cells.clone().flatten().count();
        if cells.count() > filled * MOST_CELLS_PER_VALUE + 64 {
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
            others: columns.others,
        })
    }
}

/// The values of a table, one label and one value per row for each column.
#[derive(Default)]
struct Cells<'v, 'a> {
    columns: Vec<(String, Vec<Option<&'v Json<'a>>>)>,
}

impl<'v, 'a> Cells<'v, 'a> {
    /// Adds a column for each key in `rows`; false when they are too many.
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
            if self.columns.len() > MOST_COLUMNS {
                return false;
            }
        }
        true
    }

    /// Whether no key with a point in it meets an opened column of the same name.
    fn labels_differ(&self) -> bool {
        let labels = self.columns.iter().map(|(label, _)| label);
        labels.collect::<std::collections::BTreeSet<_>>().len() == self.columns.len()
    }

    /// Every cell written; none when one is too long, or all of them are.
    fn write(&self, rows: usize, line: &Line) -> Option<Table> {
        let mut columns = Vec::with_capacity(self.columns.len());
        let mut size = 0;
        for (label, values) in &self.columns {
            let mut cells = Vec::with_capacity(rows);
            for value in values {
                let mut cell = String::new();
                if let Some(value) = value
                    && !line.write(&mut cell, value, LONGEST_CELL)
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
        (size <= rows * WIDEST_ROW).then_some(Table { rows, columns })
    }
}

/// The keys of `rows`, first seen first, unless they are more than [`MOST_COLUMNS`].
fn union_of_keys<'v>(rows: &[Option<&'v Json<'_>>]) -> Option<Vec<&'v str>> {
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in rows
        .iter()
        .flatten()
        .filter_map(|row| row.as_object())
        .flatten()
    {
        if !keys.contains(&key.as_ref()) {
            if keys.len() == MOST_COLUMNS {
                return None;
            }
            keys.push(key);
        }
    }
    Some(keys)
}

/// What the member `key` was made from.
fn member<'v, 'a>(whole: Option<&'v Json<'a>>, key: &str) -> Option<&'v Json<'a>> {
    whole?.get(key)
}

/// What the element number `at` was made from.
fn element<'v, 'a>(whole: Option<&'v Json<'a>>, at: usize) -> Option<&'v Json<'a>> {
    whole?.as_array()?.get(at)
}

fn has_members(value: &Json<'_>) -> bool {
    value.as_object().is_some_and(|members| !members.is_empty())
}

/// Whether the cells are numbers, as far as there are any.
fn is_numeric<'v>(values: impl Iterator<Item = Option<&'v Json<'v>>>) -> bool {
    let mut given = values
        .flatten()
        .filter(|v| !matches!(v, Json::Null))
        .peekable();
    given.peek().is_some() && given.all(|value| matches!(value, Json::Number(_)))
}
