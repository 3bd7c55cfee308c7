//! Uniform rows as columns: the names once, then the cells.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::json::Json;

/// The depth to which objects in a column become columns of their own.
pub(super) const MAX_OPENED_COLUMNS: usize = 3;

/// With fewer rows, a header takes more space than it saves.
const MIN_ROWS: usize = 3;

/// Texts that share fewer bytes are written in full.
const MIN_TEMPLATE: usize = 8;

/// Columns that are searched for the source of a text.
const MAX_SOURCES: usize = 16;

/// Columns of a table.
const MAX_LABELS: usize = 128;

/// Rewrites every array of uniform rows as columns if that saves at least a quarter. `value` was derived from
/// `whole`, whose rows determine what is shared by rows that were shortened.
pub(super) fn columns<'a>(value: Json<'a>, whole: &Json<'_>) -> Json<'a> {
    match value {
        Json::Object(members) => {
            let shown = members.into_iter().map(|(key, value)| {
                let value = match whole.get(&key) {
                    Some(whole) => columns(value, whole),
                    None => value,
                };
                (key, value)
            });
            Json::Object(shown.collect())
        }
        Json::Array(elements) => {
            let origins = whole.as_array().unwrap_or_default();
            let table = Columns::of(&elements, origins).map(Columns::into_json);
            let array = Json::Array(elements);
            match (table, array) {
                (Some(table), array) if table.json_len() * 4 <= array.json_len() * 3 => table,
                (_, Json::Array(elements)) => {
                    let pairs = elements.into_iter().zip(origins);
                    Json::Array(pairs.map(|(one, whole)| columns(one, whole)).collect())
                }
                (_, other) => other,
            }
        }
        scalar => scalar,
    }
}

type Members<'a> = Vec<(Cow<'a, str>, Json<'a>)>;

/// Uniform rows without repetitions.
pub(super) struct Columns<'a> {
    /// Values that all rows share, including key-only rows.
    pub(super) each: Members<'a>,
    /// Templates of texts that are derived from another column.
    pub(super) from: Members<'a>,
    pub(super) labels: Vec<String>,
    /// A cell for each label.
    pub(super) rows: Vec<Vec<Option<Json<'a>>>>,
    /// The rows that were reduced to their key.
    pub(super) key_only_rows: Option<KeyOnlyRows<'a>>,
}

/// Rows that were reduced to their key.
pub(super) struct KeyOnlyRows<'a> {
    /// The names of the key's members.
    pub(super) keys: Vec<Cow<'a, str>>,
    /// A cell for each key.
    pub(super) rows: Vec<Vec<Json<'a>>>,
}

impl<'a> Columns<'a> {
    /// Arranges `rows`, which were derived from the first of `origins`, in columns; trailing rows with only their
    /// key are separate.
    pub(super) fn of(rows: &[Json<'a>], origins: &[Json<'_>]) -> Option<Self> {
        let keys = rows.last().and_then(key_only_names);
        let has_lost = |row: &Json<'a>, origin: Option<&Json<'_>>| {
            let members = |row: &Json<'_>| row.as_object().map(<[_]>::len);
            origin.is_some_and(|origin| members(row) < members(origin))
        };
        // Rows with several members may have been like that in the original.
        let is_other = |(at, row): &(usize, &Json<'a>)| {
            let key_only = key_only_names(row);
            let is_one = key_only.as_ref().is_some_and(|keys| keys.len() == 1);
            key_only == keys && (is_one || has_lost(row, origins.get(*at)))
        };
        let others = match keys {
            Some(_) => rows.iter().enumerate().rev().take_while(is_other).count(),
            None => 0,
        };
        let (whole, others) = rows.split_at(rows.len() - others);
        // Rows with one member are complete.
        let (whole, others) = if whole.is_empty() {
            (others, whole)
        } else {
            (whole, others)
        };
        // What the key-only rows lost is read from their originals; the first row is for comparison.
        let hidden: Vec<_> = if others.is_empty() {
            Vec::new()
        } else {
            let lost = origins.get(whole.len()..rows.len())?;
            origins.iter().take(1).chain(lost).map(Some).collect()
        };
        let mut columns = Table::of(whole, &hidden)?.into_columns(whole.len());
        columns.key_only_rows = keys.filter(|_| !others.is_empty()).map(|keys| {
            let members = others.iter().filter_map(Json::as_object);
            let cells = |row: &[(Cow<'a, str>, Json<'a>)]| {
                row.iter().map(|(_, value)| value.clone()).collect()
            };
            KeyOnlyRows {
                keys: keys.into_iter().cloned().collect(),
                rows: members.map(cells).collect(),
            }
        });
        Some(columns)
    }

    fn into_json(self) -> Json<'a> {
        let text = |text: String| Json::String(text.into());
        let cells = |row: Vec<Option<Json<'a>>>| {
            let cells = row.into_iter().map(|cell| cell.unwrap_or(Json::Null));
            Json::Array(cells.collect())
        };
        let mut members: Members<'a> = Vec::new();
        for (name, some) in [("each", self.each), ("from", self.from)] {
            if !some.is_empty() {
                members.push((name.into(), Json::Object(some)));
            }
        }
        let labels = self.labels.into_iter().map(text).collect();
        let rows = self.rows.into_iter().map(cells).collect();
        members.push(("columns".into(), Json::Array(labels)));
        members.push(("rows".into(), Json::Array(rows)));
        if let Some(others) = self.key_only_rows {
            members.push(("others".into(), others.into_json()));
        }
        Json::Object(members)
    }
}

impl<'a> KeyOnlyRows<'a> {
    /// A single key with its values, or several keys as columns.
    fn into_json(self) -> Json<'a> {
        let cells = self.cells();
        let mut keys = self.keys;
        if keys.len() == 1
            && let Some(key) = keys.pop()
        {
            let values = self.rows.into_iter().flatten().collect();
            return Json::Object(vec![(key, Json::Array(values))]);
        }
        let names = keys.into_iter().map(Json::String).collect();
        Json::Object(vec![
            ("columns".into(), Json::Array(names)),
            ("rows".into(), Json::Array(cells)),
        ])
    }

    /// A list of cells for each row.
    pub(super) fn cells(&self) -> Vec<Json<'a>> {
        self.rows.iter().cloned().map(Json::Array).collect()
    }
}

/// The members of a row that may be only a key: one member, or a few texts and numbers.
fn key_only_names<'r, 'a>(row: &'r Json<'a>) -> Option<Vec<&'r Cow<'a, str>>> {
    let members = row.as_object()?;
    let is_plain = |(_, value): &(_, Json<'a>)| plain(value).is_some();
    let is_key = match members.len() {
        1 => true,
        2..=MAX_KEY_MEMBERS => members.iter().all(is_plain),
        _ => false,
    };
    is_key.then(|| members.iter().map(|(key, _)| key).collect())
}

/// Members of a key.
const MAX_KEY_MEMBERS: usize = 3;

type Cells<'v, 'a> = Vec<Option<&'v Json<'a>>>;

/// The member `key` of `row`, which is number `at` in most rows.
pub(super) fn member_near<'v, 'a>(row: &'v Json<'a>, at: usize, key: &str) -> Option<&'v Json<'a>> {
    match row.as_object()?.get(at) {
        Some((name, value)) if name == key => Some(value),
        _ => row.get(key),
    }
}

/// A column of a table.
struct Column<'v, 'a, 'w> {
    label: String,
    /// The cells of complete rows.
    cells: Cells<'v, 'a>,
    /// The original cells of the first row and of key-only rows.
    hidden: Cells<'v, 'w>,
}

/// The cells of a table, column by column.
#[derive(Default)]
struct Table<'v, 'a, 'w> {
    columns: Vec<Column<'v, 'a, 'w>>,
}

impl<'v, 'a, 'w> Table<'v, 'a, 'w> {
    fn of(rows: &'v [Json<'a>], hidden: &[Option<&'v Json<'w>>]) -> Option<Self> {
        let are_rows = rows.iter().all(|row| row.as_object().is_some());
        if rows.len() + hidden.len() < MIN_ROWS || !are_rows {
            return None;
        }
        let cells: Cells<'v, 'a> = rows.iter().map(Some).collect();
        let mut table = Self::default();
        table.collect(&cells, hidden, "", MAX_OPENED_COLUMNS)?;
        let labels: BTreeSet<_> = table.columns.iter().map(|column| &column.label).collect();
        (labels.len() == table.columns.len() && !table.columns.is_empty()).then_some(table)
    }

    /// Adds a column for each key in `rows`, or several for nested objects; `None` if there are too many.
    fn collect(
        &mut self,
        rows: &[Option<&'v Json<'a>>],
        hidden: &[Option<&'v Json<'w>>],
        prefix: &str,
        open: usize,
    ) -> Option<()> {
        let mut columns: Vec<(&str, Cells<'v, 'a>)> = Vec::new();
        let mut by_key: BTreeMap<&str, usize> = BTreeMap::new();
        for (row_at, row) in rows.iter().enumerate() {
            let members = row.and_then(|row| row.as_object()).unwrap_or_default();
            for (at, (key, value)) in members.iter().enumerate() {
                // Most rows have the same members in the same order.
                let column = match columns.get(at) {
                    Some((expected, _)) if expected == key => at,
                    _ => *by_key.entry(key).or_insert(columns.len()),
                };
                if column == columns.len() {
                    columns.push((key, vec![None; rows.len()]));
                }
                columns[column].1[row_at] = Some(value);
                if columns.len() > MAX_LABELS {
                    return None;
                }
            }
        }
        for (at, (key, cells)) in columns.into_iter().enumerate() {
            let label = format!("{prefix}{key}");
            let hidden_cells: Cells<'v, 'w> = hidden
                .iter()
                .map(|row| row.and_then(|row| member_near(row, at, key)))
                .collect();
            let opens = |cell: &&Json<'a>| cell.as_object().is_some_and(|m| !m.is_empty());
            if open > 0 && cells.iter().flatten().all(opens) {
                self.collect(&cells, &hidden_cells, &format!("{label}."), open - 1)?;
            } else {
                self.columns.push(Column {
                    label,
                    cells,
                    hidden: hidden_cells,
                });
            }
            if self.columns.len() > MAX_LABELS {
                return None;
            }
        }
        Some(())
    }

    fn into_columns(self, rows: usize) -> Columns<'a> {
        let (each, columns): (Vec<_>, Vec<_>) =
            self.columns.into_iter().partition(Column::is_shared);
        let templates: Vec<_> = (0..columns.len())
            .map(|at| template(&columns, at))
            .collect();
        let shared = each.into_iter().filter_map(|column| {
            let value = column.cells.first().copied().flatten()?;
            Some((column.label.into(), value.clone()))
        });
        let mut from = Vec::new();
        let mut retained = Vec::new();
        for (column, template) in columns.into_iter().zip(templates) {
            match template {
                Some(template) => from.push((column.label.into(), Json::String(template.into()))),
                None => retained.push(column),
            }
        }
        let row = |row: usize| retained.iter().map(|one| one.cells[row].cloned()).collect();
        Columns {
            each: shared.collect(),
            from,
            rows: (0..rows).map(row).collect(),
            labels: retained.into_iter().map(|column| column.label).collect(),
            key_only_rows: None,
        }
    }
}

impl Column<'_, '_, '_> {
    /// Whether all rows have the same value here, including key-only rows.
    fn is_shared(&self) -> bool {
        fn are_same(cells: &Cells<'_, '_>) -> bool {
            let mut pairs = cells.windows(2);
            pairs.all(|pair| matches!((pair[0], pair[1]), (Some(a), Some(b)) if a == b))
        }
        are_same(&self.cells) && are_same(&self.hidden)
    }
}

/// The template of column `at` if its texts are the cells of an earlier column between a prefix and a suffix that
/// are the same in all rows, including key-only rows.
fn template(columns: &[Column<'_, '_, '_>], at: usize) -> Option<String> {
    let generated = &columns[at];
    let sources = columns[..at].iter().take(MAX_SOURCES);
    let first = generated.cells.first().copied().flatten()?.as_str()?;
    sources
        .filter(|source| !source.label.contains(['{', '}']))
        .find_map(|source| {
            let plain_source = plain(source.cells[0]?)?;
            let (before, after) = first.split_once(plain_source)?;
            let is_worth_it = before.len() + after.len() >= MIN_TEMPLATE;
            let is_plain = ![before, after].iter().any(|part| part.contains(['{', '}']));
            let is_made = |(generated, source): (&Option<&Json<'_>>, &Option<&Json<'_>>)| {
                let cell = generated.and_then(Json::as_str);
                let middle = cell.and_then(|cell| cell.strip_prefix(before)?.strip_suffix(after));
                middle.is_some() && middle == source.and_then(plain)
            };
            let are_made = generated.cells.iter().zip(&source.cells).all(is_made)
                && generated.hidden.iter().zip(&source.hidden).all(is_made);
            (is_worth_it && !plain_source.is_empty() && is_plain && are_made)
                .then(|| format!("{before}{{{}}}{after}", source.label))
        })
}

/// A text, or a number as written.
fn plain<'v>(value: &'v Json<'_>) -> Option<&'v str> {
    match value {
        Json::String(text) => Some(text),
        Json::Number(spelling) => Some(spelling),
        _ => None,
    }
}
