//! Arrays of objects as tables.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::columns::{Columns, KeyOnlyRows, MAX_OPENED_COLUMNS, member_near};
use super::compact::ELLIPSIS;
use super::line::Line;
use crate::json::Json;

/// A table with more columns than this becomes sections.
pub const MAX_COLUMNS: usize = 16;

/// A table with a longer cell, in bytes, becomes sections.
pub const MAX_CELL: usize = 400;

/// The average length of a row, in bytes; longer rows become sections.
const MAX_ROW_WIDTH: usize = 300;

/// Cells per value: sparse tables are hard to read and cost more than their content.
const MAX_CELLS_PER_VALUE: usize = 4;

/// A table with rendered cells.
pub(super) struct Table {
    pub(super) rows: usize,
    pub(super) columns: Vec<Column>,
}

pub(super) struct Column {
    pub(super) label: String,
    /// Whether all its values are numbers.
    pub(super) numeric: bool,
    pub(super) cells: CellTexts,
}

/// The texts of a column's cells, one behind the other.
#[derive(Default)]
pub(super) struct CellTexts {
    text: String,
    /// The end of each.
    ends: Vec<usize>,
}

impl CellTexts {
    /// Adds the cell that `write` writes; false if it does not fit.
    fn push(&mut self, write: impl FnOnce(&mut String) -> bool) -> bool {
        let fits = write(&mut self.text);
        self.ends.push(self.text.len());
        fits
    }

    /// The number of cells.
    pub(super) const fn len(&self) -> usize {
        self.ends.len()
    }

    /// The cell of row number `row`.
    pub(super) fn get(&self, row: usize) -> &str {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[row]]
    }

    /// All cells.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|row| self.get(row))
    }
}

impl Table {
    /// How many bytes it takes as markdown, but for labels.
    pub(super) fn size(&self) -> usize {
        let cells = self.columns.iter().map(|column| column.cells.text.len());
        cells.sum::<usize>() + (self.rows + 2) * (self.columns.len() * 3 + 2)
    }

    /// `elements` as a table, if they are objects and the table is readable.
    ///
    /// Columns are the union of keys, in order of appearance. Objects in a column become columns of their own,
    /// `from.station`, within the limits.
    pub(super) fn of(elements: &[Json<'_>], line: &Line) -> Option<Self> {
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
pub(super) struct Keyed<'v, 'a> {
    pub(super) table: Table,
    /// The trailing keys whose objects are left out.
    pub(super) others: Vec<&'v Cow<'a, str>>,
}

impl<'v, 'a> Keyed<'v, 'a> {
    /// The table of `members`; `None` if there are fewer than two, if their keys differ, or if the table is not
    /// readable.
    pub(super) fn of(members: &'v [(Cow<'a, str>, Json<'a>)], line: &Line) -> Option<Self> {
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
        let mut cells = CellTexts::default();
        for (key, _) in shown {
            cells.push(|out| {
                (line.key)(out, key);
                true
            });
        }
        let keys = Column {
            label: String::new(),
            numeric: false,
            cells,
        };
        table.columns.insert(0, keys);
        let others = others.iter().map(|(key, _)| key).collect();
        Some(Self { table, others })
    }
}

/// Uniform rows in compact form: shared values, and a table of the others.
pub(super) struct Uniform<'a> {
    /// Shared members, and templates of derived texts, under their JSON names.
    pub(super) shared: Vec<(&'static str, Json<'a>)>,
    pub(super) table: Table,
    /// The key-only rows.
    pub(super) others: Option<KeyOnlyRows<'a>>,
}

impl<'a> Uniform<'a> {
    /// The rows of `elements`, which were derived from those of `whole`; `None` if they are not uniform, if the
    /// table would be mostly empty, or if it has no columns, which would lose the number of rows.
    pub(super) fn of(elements: &[Json<'a>], whole: &Json<'_>, line: &Line) -> Option<Self> {
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
            let mut cells = CellTexts::default();
            for value in values() {
                cells.push(|out| value.is_none_or(|value| line.write(out, value, usize::MAX)));
            }
            Column {
                label,
                numeric: is_numeric(values()),
                cells,
            }
        };
        let table = Table {
            rows: columns.rows.len(),
            columns: (0..columns.labels.len()).map(column).collect(),
        };
        let entries = [("each", columns.each), ("from", columns.from)];
        let shared = entries.into_iter().filter(|(_, some)| !some.is_empty());
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
pub(super) struct Cells<'v, 'a> {
    pub(super) columns: Vec<(String, Vec<Option<&'v Json<'a>>>)>,
}

impl<'v, 'a> Cells<'v, 'a> {
    /// Adds a column for each key in `rows`; false if there are too many.
    pub(super) fn collect(
        &mut self,
        rows: &[Option<&'v Json<'a>>],
        prefix: &str,
        open: usize,
        line: &Line,
    ) -> bool {
        let Some(keys) = union_of_keys(rows) else {
            return false;
        };
        for (at, key) in keys.into_iter().enumerate() {
            let cells: Vec<_> = rows
                .iter()
                .map(|row| row.and_then(|row| member_near(row, at, key)))
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
    pub(super) fn labels_differ(&self) -> bool {
        let labels = self.columns.iter().map(|(label, _)| label);
        labels.collect::<BTreeSet<_>>().len() == self.columns.len()
    }

    /// Renders all cells; `None` if one cell or the average row is too long.
    pub(super) fn write(&self, rows: usize, line: &Line) -> Option<Table> {
        let mut columns = Vec::with_capacity(self.columns.len());
        let mut size = 0;
        for (label, values) in &self.columns {
            let mut cells = CellTexts {
                text: String::new(),
                ends: Vec::with_capacity(values.len()),
            };
            for value in values {
                if !cells.push(|out| value.is_none_or(|value| line.write(out, value, MAX_CELL))) {
                    return None;
                }
            }
            size += cells.text.len();
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
pub(super) fn union_of_keys<'v>(rows: &[Option<&'v Json<'_>>]) -> Option<Vec<&'v str>> {
    let mut keys: Vec<&str> = Vec::new();
    for row in rows.iter().flatten() {
        for (at, (key, _)) in row.as_object().unwrap_or_default().iter().enumerate() {
            // Most rows have the same members in the same order.
            let is_expected = keys.get(at).is_some_and(|expected| expected == key);
            if is_expected || keys.contains(&key.as_ref()) {
                continue;
            }
            if keys.len() == MAX_COLUMNS {
                return None;
            }
            keys.push(key);
        }
    }
    Some(keys)
}

pub(super) fn has_members(value: &Json<'_>) -> bool {
    value.as_object().is_some_and(|members| !members.is_empty())
}

/// Whether all present cells are numbers, and there is at least one.
pub(super) fn is_numeric<'v>(values: impl Iterator<Item = Option<&'v Json<'v>>>) -> bool {
    let mut given = values
        .flatten()
        .filter(|v| !matches!(v, Json::Null))
        .peekable();
    given.peek().is_some() && given.all(|value| matches!(value, Json::Number(_)))
}
