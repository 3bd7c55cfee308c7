//! An index of a structured value, to compare prose with it.

use std::collections::BTreeMap;

use super::numbers::{Number, digits, magnitudes, numbers};
use crate::json::Json;

/// The length of labels, keys and words that are compared.
const MAX_COMPARED: usize = 128;

/// The numbers and labelled values of a structured value.
pub(super) struct StructureIndex<'v, 'a> {
    /// The magnitudes of all numbers, sorted.
    numbers: Vec<f64>,
    /// The value of each key, by the words of the key; `None` if several values have it.
    labels: BTreeMap<String, Option<&'v Json<'a>>>,
}

impl<'v, 'a> StructureIndex<'v, 'a> {
    pub(super) fn of(value: &'v Json<'a>) -> Self {
        let mut index = Self {
            numbers: Vec::new(),
            labels: BTreeMap::new(),
        };
        index.collect(value, "");
        index.numbers.sort_unstable_by(f64::total_cmp);
        index
    }

    /// Adds `value`; `label` has the words of its key.
    fn collect(&mut self, value: &'v Json<'a>, label: &str) {
        match value {
            Json::Object(members) => {
                for (key, value) in members {
                    self.numbers.extend(digits(key));
                    let is_label = key.len() <= MAX_COMPARED;
                    let label = if is_label {
                        normalized_words(key)
                    } else {
                        String::new()
                    };
                    self.collect(value, &label);
                }
                return;
            }
            Json::Array(elements) => {
                self.numbers.push(elements.len() as f64);
                for value in elements {
                    self.collect(value, label);
                }
                return;
            }
            Json::Number(spelling) => self.numbers.extend(magnitudes(spelling)),
            Json::String(text) => {
                self.numbers.extend(numbers(text).map(|n| n.value));
                self.numbers.extend(digits(text));
            }
            Json::Null | Json::Bool(_) => {}
        }
        self.labels
            .entry(label.to_owned())
            .and_modify(|named| *named = None)
            .or_insert(Some(value));
    }

    /// Whether no segment of `prose` contradicts the value or has a number that the value lacks.
    pub(super) fn agrees_with(&self, prose: &str) -> bool {
        segments(prose).all(|segment| {
            let stated = claim(segment);
            let contradicts = stated.is_some_and(|claim| {
                let labelled = self.labelled(claim.label);
                labelled.is_some_and(|value| contradicts(claim.statement, value))
            });
            !contradicts && numbers(segment).all(|number| self.contains(&number))
        })
    }

    /// The single value with the key `label`, or with a key that begins with these words (`temperature` for
    /// `temperature_c`).
    fn labelled(&self, label: &str) -> Option<&'v Json<'a>> {
        if label.len() > MAX_COMPARED {
            return None;
        }
        let label = normalized_words(label);
        if label.is_empty() {
            return None;
        }
        if let Some(named) = self.labels.get(&label) {
            return *named;
        }
        let start = label + " ";
        let mut keys = self
            .labels
            .range(start.clone()..)
            .take_while(|(key, _)| key.starts_with(&start));
        let (_, named) = keys.next()?;
        named.filter(|_| keys.next().is_none())
    }

    fn contains(&self, number: &Number) -> bool {
        let (low, high) = number.bounds();
        let at = self.numbers.partition_point(|number| *number < low);
        self.numbers.get(at).is_some_and(|number| *number <= high)
    }
}

/// A labelled statement in prose.
pub(super) struct Claim<'t> {
    pub(super) label: &'t str,
    pub(super) statement: &'t str,
}

/// The labelled statements in `prose`.
pub(super) fn claims(prose: &str) -> impl Iterator<Item = Claim<'_>> {
    segments(prose).filter_map(claim)
}

fn claim(segment: &str) -> Option<Claim<'_>> {
    let (label, remaining) = segment.split_once(':')?;
    Some(Claim {
        label,
        statement: remaining,
    })
}

/// Splits `prose` into single statements.
fn segments(prose: &str) -> impl Iterator<Item = &str> {
    let lines = prose.lines().map(without_ordinal);
    lines.flat_map(|line| line.split([';', '|']).flat_map(|part| part.split(", ")))
}

/// Whether `statement` claims something else than `value`; not if it is not understood.
fn contradicts(statement: &str, value: &Json<'_>) -> bool {
    match value {
        Json::Number(spelling) if spelling.len() <= MAX_COMPARED => {
            let is_negative = spelling.starts_with('-');
            let agrees = |number: &Number| {
                let (low, high) = number.bounds();
                let mut stated = magnitudes(spelling);
                // A number without a sign may mean "5 below zero".
                (!number.is_negative || is_negative) && stated.any(|x| low <= x && x <= high)
            };
            let mut stated = numbers(statement).peekable();
            stated.peek().is_some() && !stated.any(|number| agrees(&number))
        }
        Json::Bool(holds) => flag(statement).is_some_and(|says| says != *holds),
        Json::String(text) if text.len() <= MAX_COMPARED => {
            // Only compare words for a state: names and sentences have many forms.
            let stated = normalized_words(statement);
            let holds = normalized_words(text);
            let is_state = |terms: &str| {
                !terms.is_empty()
                    && terms.split(' ').count() <= 2
                    && terms.chars().all(|c| c.is_ascii_alphabetic() || c == ' ')
            };
            let shares = stated
                .split(' ')
                .any(|word| holds.split(' ').any(|w| w == word));
            is_state(&stated) && is_state(&holds) && !shares
        }
        _ => false,
    }
}

/// The truth value of the first word after a label.
pub(super) fn flag(statement: &str) -> Option<bool> {
    match normalized_words(statement).split(' ').next()? {
        "true" | "yes" => Some(true),
        "false" | "no" => Some(false),
        _ => None,
    }
}

/// The words of a key or label, in lower case: `defaultBudget`, `default_budget` and `**Default Budget**` are equal.
pub(super) fn normalized_words(text: &str) -> String {
    let mut out = String::new();
    let mut before = ' ';
    for c in text.chars() {
        let begins = !before.is_alphanumeric() || (c.is_uppercase() && before.is_lowercase());
        if c.is_alphanumeric() {
            if begins && !out.is_empty() {
                out.push(' ');
            }
            out.extend(c.to_lowercase());
        }
        before = c;
    }
    out
}

/// A line without its list number.
fn without_ordinal(line: &str) -> &str {
    let text = line.trim_start();
    let after = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_ordinal = after.starts_with(". ") || after.starts_with(") ");
    if is_ordinal { &after[1..] } else { text }
}
