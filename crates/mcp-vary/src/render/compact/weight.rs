//! Estimates sizes to decide how much of a value fits.

use std::collections::BTreeSet;

use crate::json::Json;
use crate::render::limits::Limits;

impl Limits {
    /// The number of rows that stay complete, at least one.
    pub(super) fn whole_rows(&self, rows: &[Json<'_>]) -> usize {
        let Self {
            detailed,
            detailed_bytes,
            ..
        } = *self;
        if detailed_bytes == usize::MAX {
            return rows.len().min(detailed.max(1));
        }
        let mut bytes = 0_usize;
        let fits = |row: &&Json<'_>| {
            bytes = bytes.saturating_add(self.weight(row, detailed_bytes));
            bytes <= detailed_bytes
        };
        let detailed_rows = rows.iter().take(detailed);
        detailed_rows.take_while(fits).count().max(1)
    }

    /// The number of leading elements that fit into `room` bytes.
    pub(super) fn fitting(&self, elements: &[Json<'_>], room: usize) -> usize {
        if room == usize::MAX {
            return elements.len();
        }
        let mut left = room;
        let fits = |element: &&Json<'_>| {
            let weight = self.weight(element, left) + 2;
            let fits = weight <= left;
            left = left.saturating_sub(weight);
            fits
        };
        elements.iter().take_while(fits).count()
    }

    /// Estimates the bytes of the compacted `value`; never too high for a value that is already compact. Stops
    /// counting beyond `enough`.
    pub(super) fn weight(&self, value: &Json<'_>, enough: usize) -> usize {
        let mut weight = 0_usize;
        match value {
            Json::Object(members) => {
                for (key, value) in members {
                    if self.is_terse && is_empty(value) {
                        continue;
                    }
                    if weight > enough {
                        break;
                    }
                    weight += key.len() + 4 + self.weight(value, enough - weight);
                }
            }
            Json::Array(elements) => {
                for element in elements.iter().take(self.elements.max(1)) {
                    if weight > enough {
                        break;
                    }
                    weight += 2 + self.weight(element, enough - weight);
                }
            }
            Json::String(text) => weight = text.len().min(self.text) + 2,
            Json::Number(spelling) => weight = spelling.len(),
            Json::Null | Json::Bool(_) => weight = 5,
        }
        weight
    }
}

/// The maximum size of each item so that all items together fit into `budget`; `None` if they already fit.
pub(crate) fn fair_share(mut weights: Vec<usize>, budget: usize) -> Option<usize> {
    weights.sort_unstable();
    let mut left = budget;
    for (at, weight) in weights.iter().enumerate() {
        let share = left / (weights.len() - at);
        if *weight > share {
            return Some(share);
        }
        left -= weight;
    }
    None
}

/// The number of elements or members of `value`.
pub(super) fn size(value: &Json<'_>) -> usize {
    match value {
        Json::Object(members) => members.len(),
        Json::Array(elements) => elements.len(),
        _ => 0,
    }
}

/// The key of `rows`: the first member that differs in all rows; else the first two or three that differ together;
/// else the member that differs most, which identifies a row together with its position. `None` if no member of the
/// first row is a number or a text of 1 to `longest` bytes in all rows, or if all are equal.
pub(super) fn key_of<'v>(rows: &'v [Json<'_>], longest: usize) -> Option<Vec<&'v str>> {
    let names = rows.first()?.as_object()?.iter().take(MAX_KEYS);
    let columns: Vec<(&str, Vec<&str>)> = names
        .filter_map(|(key, _)| Some((key.as_ref(), column(rows, key, longest)?)))
        .collect();
    let count = |at: &[usize]| {
        let cells = |row| -> Vec<&str> { at.iter().map(|at| columns[*at].1[row]).collect() };
        (0..rows.len()).map(cells).collect::<BTreeSet<_>>().len()
    };
    let single = (0..columns.len()).find(|at| count(&[*at]) == rows.len());
    let most = || {
        let distinct: Vec<_> = (0..columns.len()).map(|at| count(&[at])).collect();
        let best = (0..columns.len()).rev().max_by_key(|at| distinct[*at])?;
        (distinct[best] > 1).then_some(vec![best])
    };
    let key = match single {
        Some(at) => vec![at],
        None => combinations(columns.len())
            .find(|at| count(at) == rows.len())
            .or_else(most)?,
    };
    Some(key.into_iter().map(|at| columns[at].0).collect())
}

/// The member `key` of all rows, each as written; `None` if one is neither a number nor a text of 1 to `longest`
/// bytes: an empty text is left out of its row.
fn column<'v>(rows: &'v [Json<'_>], key: &str, longest: usize) -> Option<Vec<&'v str>> {
    let cell = |row: &'v Json<'_>| match row.get(key)? {
        Json::String(text) => (1..=longest).contains(&text.len()).then_some(text.as_ref()),
        Json::Number(spelling) => Some(spelling.as_ref()),
        _ => None,
    };
    rows.iter().map(cell).collect()
}

/// All pairs, then all triples of `count` indices.
fn combinations(count: usize) -> impl Iterator<Item = Vec<usize>> {
    let pairs = (0..count).flat_map(move |a| (a + 1..count).map(move |b| vec![a, b]));
    let triples = (0..count).flat_map(move |a| {
        (a + 1..count).flat_map(move |b| (b + 1..count).map(move |c| vec![a, b, c]))
    });
    pairs.chain(triples)
}

/// Whether `value` is empty: `null`, `""`, `[]`, `{}`, or an object of only such values.
pub(super) fn is_empty(value: &Json<'_>) -> bool {
    match value {
        Json::Null => true,
        Json::String(text) => text.is_empty(),
        Json::Array(elements) => elements.is_empty(),
        Json::Object(members) => members.iter().all(|(_, value)| is_empty(value)),
        Json::Bool(_) | Json::Number(_) => false,
    }
}

/// Members of a row that are considered for its key.
const MAX_KEYS: usize = 8;

/// Bytes of a text in a key.
pub(super) const MAX_KEY: usize = 64;
