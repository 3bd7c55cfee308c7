//! Compares prose with an index of a structured value.

use std::collections::BTreeMap;

use super::numbers::{Number, digits, magnitudes, numbers};
use super::{Finding, Findings, MAX_COMPARED, plain, step};
use crate::ignored::for_display;
use crate::json::Json;

/// The numbers and labelled values of a structured value.
pub(super) struct StructureIndex<'v, 'a> {
    /// The magnitudes of all numbers, sorted.
    numbers: Vec<f64>,
    /// The value of each key, by the words of the key; `None` if several values have it.
    labels: BTreeMap<String, Option<Labelled<'v, 'a>>>,
}

struct Labelled<'v, 'a> {
    pointer: String,
    value: &'v Json<'a>,
}

impl<'v, 'a> StructureIndex<'v, 'a> {
    pub(super) fn of(value: &'v Json<'a>) -> Self {
        let mut index = Self {
            numbers: Vec::new(),
            labels: BTreeMap::new(),
        };
        index.collect(value, "", "");
        index.numbers.sort_unstable_by(f64::total_cmp);
        index
    }

    /// Adds `value`; `label` has the words of its key.
    fn collect(&mut self, value: &'v Json<'a>, label: &str, path: &str) {
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
                    self.collect(value, &label, &step(path, key));
                }
                return;
            }
            Json::Array(elements) => {
                self.numbers.push(elements.len() as f64);
                for (at, value) in elements.iter().enumerate() {
                    self.collect(value, label, &step(path, &at.to_string()));
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
        let labelled = Labelled {
            pointer: path.to_owned(),
            value,
        };
        self.labels
            .entry(label.to_owned())
            .and_modify(|named| *named = None)
            .or_insert(Some(labelled));
    }

    /// Compares `prose`, segment by segment.
    pub(super) fn compare(&self, prose: &str, findings: &mut Findings) {
        for segment in segments(prose) {
            if findings.is_full() {
                return;
            }
            let labelled = claim(segment)
                .and_then(|claim| Some((self.labelled(claim.label)?, claim.statement)));
            if let Some((labelled, remaining)) = labelled
                && let Some(other) = contradiction(labelled.value, remaining)
            {
                findings.contradict(&labelled.pointer, &other, &plain(labelled.value));
                continue;
            }
            for number in numbers(segment).filter(|number| !self.contains(number)) {
                findings.add(Finding::Added {
                    stated: for_display(number.spelling),
                });
            }
        }
    }

    /// The single value with the key `label`, or with a key that begins with these words (`temperature` for
    /// `temperature_c`).
    fn labelled(&self, label: &str) -> Option<&Labelled<'v, 'a>> {
        if label.len() > MAX_COMPARED {
            return None;
        }
        let label = normalized_words(label);
        if label.is_empty() {
            return None;
        }
        if let Some(named) = self.labels.get(&label) {
            return named.as_ref();
        }
        let start = label + " ";
        let mut keys = self
            .labels
            .range(start.clone()..)
            .take_while(|(key, _)| key.starts_with(&start));
        let (_, named) = keys.next()?;
        named.as_ref().filter(|_| keys.next().is_none())
    }

    fn contains(&self, number: &Number<'_>) -> bool {
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

/// What the statement claims instead of `value`; `None` if it agrees or is not understood.
fn contradiction(value: &Json<'_>, remaining: &str) -> Option<String> {
    match value {
        Json::Number(spelling) if spelling.len() <= MAX_COMPARED => {
            let is_negative = spelling.starts_with('-');
            let agrees = |number: &Number<'_>| {
                let (low, high) = number.bounds();
                let mut stated = magnitudes(spelling);
                // A number without a sign may mean "5 below zero".
                (!number.is_negative || is_negative) && stated.any(|x| low <= x && x <= high)
            };
            let first = numbers(remaining).next()?;
            let sign = if first.is_negative { "-" } else { "" };
            (!numbers(remaining).any(|number| agrees(&number)))
                .then(|| format!("{sign}{}", first.spelling))
        }
        Json::Bool(holds) => {
            let says = flag(remaining)?;
            (says != *holds).then(|| remaining.trim().to_owned())
        }
        Json::String(text) if text.len() <= MAX_COMPARED => {
            // Only compare words for a state: names and sentences have many forms.
            let (stated, holds) = (normalized_words(remaining), normalized_words(text));
            let is_state = |terms: &str| {
                !terms.is_empty()
                    && terms.split(' ').count() <= 2
                    && terms.chars().all(|c| c.is_ascii_alphabetic() || c == ' ')
            };
            let shares = stated
                .split(' ')
                .any(|word| holds.split(' ').any(|w| w == word));
            (is_state(&stated) && is_state(&holds) && !shares).then(|| remaining.trim().to_owned())
        }
        _ => None,
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
    let line = line.trim_start();
    let after = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_ordinal = after.starts_with(". ") || after.starts_with(") ");
    if is_ordinal { &after[1..] } else { line }
}
