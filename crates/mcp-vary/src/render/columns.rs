//! Rows as columns: the names once, then the cells.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::OPENED_COLUMNS;
use crate::json::Json;

/// Fewer rows are not worth a header.
const FEWEST_ROWS: usize = 3;

/// Texts that share less than this many bytes are given whole.
const SHORTEST_TEMPLATE: usize = 8;

/// So many columns are looked at for what a text is made from.
const MOST_SOURCES: usize = 16;

/// More columns than this are no table.
const MOST_LABELS: usize = 128;

/// `value` with every array of uniform rows in columns, where that saves a quarter of it or more.
pub(super) fn columns(value: Json<'_>) -> Json<'_> {
    match value {
        Json::Object(members) => {
            let members = members
                .into_iter()
                .map(|(key, value)| (key, columns(value)));
            Json::Object(members.collect())
        }
        Json::Array(elements) => {
            let table = in_columns(&elements);
            let array = Json::Array(elements);
            let size = |value: &Json<'_>| value.to_json().len();
            match (table, array) {
                (Some(table), array) if size(&table) * 4 <= size(&array) * 3 => table,
                (_, Json::Array(elements)) => {
                    Json::Array(elements.into_iter().map(columns).collect())
                }
                (_, other) => other,
            }
        }
        scalar => scalar,
    }
}

/// `rows` in columns; those at the end that have their key only apart from the others.
fn in_columns<'a>(rows: &[Json<'a>]) -> Option<Json<'a>> {
    let only = |row: &Json<'a>| match row.as_object() {
        Some([(key, value)]) => Some((key.clone(), value.clone())),
        _ => None,
    };
    let key = rows.last().and_then(only).map(|(key, _)| key);
    let is_other = |row: &Json<'a>| only(row).map(|(name, _)| name) == key;
    let others = match key {
        Some(_) => rows.iter().rev().take_while(|row| is_other(row)).count(),
        None => 0,
    };
    let (whole, others) = rows.split_at(rows.len() - others);
    // Rows of one member are whole.
    let (whole, others) = if whole.is_empty() {
        (others, whole)
    } else {
        (whole, others)
    };
    let mut members = Table::of(whole)?.into_members(whole.len());
    if let Some(key) = key.filter(|_| !others.is_empty()) {
        let keys = others.iter().filter_map(only).map(|(_, value)| value);
        let keys = Json::Object(vec![(key, Json::Array(keys.collect()))]);
        members.push(("others".into(), keys));
    }
    Some(Json::Object(members))
}

type Cells<'v, 'a> = Vec<Option<&'v Json<'a>>>;

/// The cells of a table, a column after the other.
#[derive(Default)]
struct Table<'v, 'a> {
    columns: Vec<(String, Cells<'v, 'a>)>,
}

impl<'v, 'a> Table<'v, 'a> {
    fn of(rows: &'v [Json<'a>]) -> Option<Self> {
        let are_rows = rows.iter().all(|row| row.as_object().is_some());
        if rows.len() < FEWEST_ROWS || !are_rows {
            return None;
        }
        let rows: Cells<'v, 'a> = rows.iter().map(Some).collect();
        let mut table = Self::default();
        table.collect(&rows, "", OPENED_COLUMNS)?;
        let labels: BTreeSet<_> = table.columns.iter().map(|(label, _)| label).collect();
        (labels.len() == table.columns.len() && !table.columns.is_empty()).then_some(table)
    }

    /// Adds a column for each key in `rows`, or several for what nests; none when they are too many.
    fn collect(&mut self, rows: &[Option<&'v Json<'a>>], prefix: &str, open: usize) -> Option<()> {
        let mut by_key: BTreeMap<&str, (usize, Cells<'v, 'a>)> = BTreeMap::new();
        for (at, row) in rows.iter().enumerate() {
            for (key, value) in row.and_then(|row| row.as_object()).into_iter().flatten() {
                let next = by_key.len();
                let (_, cells) = by_key
                    .entry(key)
                    .or_insert_with(|| (next, vec![None; rows.len()]));
                cells[at] = Some(value);
                if by_key.len() > MOST_LABELS {
                    return None;
                }
            }
        }
        let mut in_order: Vec<_> = by_key.into_iter().collect();
        in_order.sort_by_key(|(_, (first, _))| *first);
        for (key, (_, cells)) in in_order {
            let label = format!("{prefix}{key}");
            let opens = |cell: &&Json<'a>| cell.as_object().is_some_and(|m| !m.is_empty());
            if open > 0 && cells.iter().flatten().all(opens) {
                self.collect(&cells, &format!("{label}."), open - 1)?;
            } else {
                self.columns.push((label, cells));
            }
            if self.columns.len() > MOST_LABELS {
                return None;
            }
        }
        Some(())
    }

    fn into_members(self, rows: usize) -> Vec<(Cow<'a, str>, Json<'a>)> {
        let (each, columns): (Vec<_>, Vec<_>) = self
            .columns
            .into_iter()
            .partition(|(_, cells)| is_shared(cells));
        let templates: Vec<_> = (0..columns.len())
            .map(|at| template(&columns, at))
            .collect();
        let mut members: Vec<(Cow<'a, str>, Json<'a>)> = Vec::new();
        let shared = each.into_iter().filter_map(|(label, cells)| {
            let value = cells.first().copied().flatten()?;
            Some((label.into(), value.clone()))
        });
        let shared: Vec<_> = shared.collect();
        let mut made = Vec::new();
        let mut kept = Vec::new();
        for ((label, cells), template) in columns.into_iter().zip(templates) {
            match template {
                Some(template) => made.push((label.into(), Json::String(template.into()))),
                None => kept.push((label, cells)),
            }
        }
        let cell = |cells: &Cells<'v, 'a>, row: usize| cells[row].map_or(Json::Null, Clone::clone);
        let row = |row| Json::Array(kept.iter().map(|(_, cells)| cell(cells, row)).collect());
        let all = Json::Array((0..rows).map(row).collect());
        let labels = kept
            .iter()
            .map(|(label, _)| Json::String(label.clone().into()));
        for (name, some) in [("each", shared), ("from", made)] {
            if !some.is_empty() {
                members.push((name.into(), Json::Object(some)));
            }
        }
        members.push(("columns".into(), Json::Array(labels.collect())));
        members.push(("rows".into(), all));
        members
    }
}

/// How the texts of column `at` are made from another column that comes before it: its cell
/// between a beginning and an end that are the same in all rows.
fn template(columns: &[(String, Cells<'_, '_>)], at: usize) -> Option<String> {
    let (_, made) = &columns[at];
    let sources = columns[..at].iter().take(MOST_SOURCES);
    let first = made.first().copied().flatten()?.as_str()?;
    sources
        .filter(|(label, _)| !label.contains(['{', '}']))
        .find_map(|(label, cells)| {
            let source = plain(cells[0]?)?;
            let (before, after) = first.split_once(source)?;
            let is_worth_it = before.len() + after.len() >= SHORTEST_TEMPLATE;
            let is_plain =
                !source.is_empty() && !before.contains(['{', '}']) && !after.contains(['{', '}']);
            let is_made = |row: usize| {
                let cell = made[row].and_then(Json::as_str);
                let middle = cell.and_then(|cell| cell.strip_prefix(before)?.strip_suffix(after));
                let source = cells[row].and_then(plain);
                middle.is_some() && middle == source
            };
            (is_worth_it && is_plain && (0..made.len()).all(is_made))
                .then(|| format!("{before}{{{label}}}{after}"))
        })
}

/// A text or number as it is spelled.
fn plain<'v>(value: &'v Json<'_>) -> Option<&'v str> {
    match value {
        Json::String(text) => Some(text),
        Json::Number(spelling) => Some(spelling),
        _ => None,
    }
}

/// Whether all rows have the same value here.
fn is_shared(cells: &Cells<'_, '_>) -> bool {
    let mut pairs = cells.windows(2);
    pairs.all(|pair| matches!((pair[0], pair[1]), (Some(a), Some(b)) if a == b))
}
