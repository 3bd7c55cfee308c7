//! How much of a value has room.

use std::collections::BTreeSet;

use crate::json::Json;
use crate::render::limits::Limits;

impl Limits {
    /// How many of `rows` stay whole: the first in any case.
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
        let rows = rows.iter().take(detailed);
        rows.take_while(fits).count().max(1)
    }

    /// How many of `elements`, the first ones, have at most `room` bytes together.
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

    /// About how many bytes `value` has when it is shorter: never more for what is shorter already. It is not
    /// looked at further than `enough`.
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

/// How many bytes each of `weights` may have so that all of them together have `budget`; none when they have
/// less.
pub(crate) fn level(mut weights: Vec<usize>, budget: usize) -> Option<usize> {
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

/// How many elements or members `value` has.
pub(super) fn size(value: &Json<'_>) -> usize {
    match value {
        Json::Object(members) => members.len(),
        Json::Array(elements) => elements.len(),
        _ => 0,
    }
}

/// What tells `rows` apart: the first member that no two have alike; else the first two or three that no two rows
/// have alike together; else the member that differs most, which with the row's place is as good. None where no
/// member of the first row is a text of 1 to `longest` bytes or a number in all of them, or it is the same in all.
pub(super) fn key_of<'v>(rows: &'v [Json<'_>], longest: usize) -> Option<Vec<&'v str>> {
    let names = rows.first()?.as_object()?.iter().take(MOST_KEYS);
    let columns: Vec<(&str, Vec<&str>)> = names
        .filter_map(|(key, _)| Some((key.as_ref(), column(rows, key, longest)?)))
        .collect();
    let count = |at: &[usize]| {
        let cells = |row| -> Vec<&str> { at.iter().map(|at| columns[*at].1[row]).collect() };
        (0..rows.len()).map(cells).collect::<BTreeSet<_>>().len()
    };
    let distinct: Vec<_> = (0..columns.len()).map(|at| count(&[at])).collect();
    let single = distinct.iter().position(|count| *count == rows.len());
    let most = || {
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

/// The member `key` of all rows, each as it is spelled; none where one has no number there and no text of 1 to `longest` bytes:
/// an empty text is left out of its row.
fn column<'v>(rows: &'v [Json<'_>], key: &str, longest: usize) -> Option<Vec<&'v str>> {
    let cell = |row: &'v Json<'_>| match row.get(key)? {
        Json::String(text) => (1..=longest).contains(&text.len()).then_some(text.as_ref()),
        Json::Number(spelling) => Some(spelling.as_ref()),
        _ => None,
    };
    rows.iter().map(cell).collect()
}

/// Every two, then every three of so many.
fn combinations(count: usize) -> impl Iterator<Item = Vec<usize>> {
    let pairs = (0..count).flat_map(move |a| (a + 1..count).map(move |b| vec![a, b]));
    let triples = (0..count).flat_map(move |a| {
        (a + 1..count).flat_map(move |b| (b + 1..count).map(move |c| vec![a, b, c]))
    });
    pairs.chain(triples)
}

/// Whether `value` carries nothing: `null`, `""`, `[]`, `{}`, or an object of nothing else.
pub(super) fn is_empty(value: &Json<'_>) -> bool {
    match value {
        Json::Null => true,
        Json::String(text) => text.is_empty(),
        Json::Array(elements) => elements.is_empty(),
        Json::Object(members) => members.iter().all(|(_, value)| is_empty(value)),
        Json::Bool(_) | Json::Number(_) => false,
    }
}

/// So many members of a row are looked at for its key.
const MOST_KEYS: usize = 8;

/// A longer text tells rows apart, but is no key.
pub(super) const LONGEST_KEY: usize = 64;
