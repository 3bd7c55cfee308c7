//! Whether texts contain a structured value, and whether they say more.

mod numbers;
mod structure_index;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use self::numbers::numbers;
use self::structure_index::{Claim, StructureIndex, claims, flag, normalized_words};
use super::repeat::{Relation, candidates, relations};
use crate::json::Json;

/// Whether `texts` contain every number, string and boolean of `value`, so that omitting it loses nothing.
///
/// # Properties
///
/// A number must occur exactly, grouped, or as a percentage; a string literally, except for white space and the case of
/// its first letter; a boolean next to its label (`Open: yes`). `null` and empty strings are ignored. Values that are
/// not found within [`MAX_SEARCHED`] bytes count as missing.
pub(super) fn covers_all(texts: &[&str], value: &Json<'_>) -> bool {
    ProseIndex::of(texts).covers_all(value, "")
}

/// Whether `text` only restates `value`, whose JSON is `written`, in prose.
///
/// It contains a scalar of the value, no other number, and is no longer than the value: a document beside its title
/// does not restate the title.
pub(super) fn restates(text: &str, value: &Json<'_>, written: &str) -> bool {
    text.len() <= written.len()
        && states_only(text, value)
        && ProseIndex::of(&[text]).covers_some(value, "")
}

/// Whether `text` states nothing that `value` lacks or contradicts.
///
/// JSON is compared value by value. In prose, a labelled value (`Temperature: 9 °C` beside `"temperature_c": 8`) is
/// compared if the label identifies a single value; any other number is searched in the whole value: rounded, grouped
/// (`100,000`), as a percentage, as the length of a list, as a part of a date.
fn states_only(text: &str, value: &Json<'_>) -> bool {
    if relations(value, &[text]) != [Relation::Author] {
        return true;
    }
    let document = Json::parse(text).ok();
    let is_same_kind = |part: &&Json<'_>| {
        matches!(
            (&document, part),
            (Some(Json::Object(_)), Json::Object(_)) | (Some(Json::Array(_)), Json::Array(_))
        )
    };
    match (&document, candidates(value).find(is_same_kind)) {
        (Some(document), Some(part)) => is_part_of(document, part),
        _ => StructureIndex::of(value).agrees_with(text),
    }
}

/// Whether the JSON value `stated` says only what `value` has.
fn is_part_of(stated: &Json<'_>, value: &Json<'_>) -> bool {
    match (stated, value) {
        (Json::Object(stated), Json::Object(members)) => {
            let known: BTreeMap<&str, _> = members.iter().map(|(k, v)| (k.as_ref(), v)).collect();
            stated.iter().all(|(key, stated)| {
                let value = known.get(key.as_ref());
                value.is_some_and(|value| is_part_of(stated, value))
            })
        }
        // A summary may list fewer elements.
        (Json::Array(stated), Json::Array(elements)) if stated.len() < elements.len() => true,
        (Json::Array(stated), Json::Array(elements)) if stated.len() == elements.len() => {
            let mut pairs = stated.iter().zip(elements);
            pairs.all(|(stated, value)| is_part_of(stated, value))
        }
        _ => stated.is_same(value),
    }
}

/// The content of texts, indexed for lookup.
struct ProseIndex {
    /// The texts with normalized white space.
    text: String,
    /// The numbers with their signs, sorted.
    numbers: Vec<f64>,
    /// The numbers with a percent sign.
    percentages: Vec<f64>,
    /// The words of labels, each with its stated truth value.
    flags: BTreeSet<(String, bool)>,
    /// The remaining bytes to search.
    budget: Cell<usize>,
}

impl ProseIndex {
    fn of(texts: &[&str]) -> Self {
        let mut prose = Self {
            text: String::new(),
            numbers: Vec::new(),
            percentages: Vec::new(),
            flags: BTreeSet::new(),
            budget: Cell::new(MAX_SEARCHED),
        };
        for text in texts.iter().take(MAX_TEXTS) {
            match Json::parse(text) {
                // The strings of a JSON text are escaped.
                Ok(document @ (Json::Object(_) | Json::Array(_))) => prose.add_value(&document, ""),
                _ => prose.add(text),
            }
        }
        prose.numbers.sort_unstable_by(f64::total_cmp);
        prose
    }

    fn add(&mut self, text: &str) {
        for number in numbers(text) {
            let value = if number.is_negative {
                -number.value
            } else {
                number.value
            };
            self.numbers.push(value);
            if number.is_percentage {
                self.percentages.push(value / 100.0);
            }
        }
        for Claim {
            label,
            statement: remaining,
        } in claims(text)
        {
            if let Some(says) = flag(remaining) {
                self.flags.insert((normalized_words(label), says));
            }
        }
        self.add_words(text);
    }

    fn add_words(&mut self, text: &str) {
        for word in text.split_whitespace() {
            self.text.push_str(word);
            self.text.push(' ');
        }
    }

    fn add_value(&mut self, value: &Json<'_>, label: &str) {
        match value {
            Json::Object(members) => {
                for (key, value) in members {
                    self.add_value(value, key);
                }
            }
            Json::Array(elements) => {
                for element in elements {
                    self.add_value(element, label);
                }
            }
            Json::String(text) => self.add(text),
            Json::Number(spelling) => {
                self.numbers.extend(spelling.parse::<f64>().ok());
                self.add_words(spelling);
            }
            Json::Bool(says) => drop(self.flags.insert((normalized_words(label), *says))),
            Json::Null => {}
        }
    }

    fn covers_all(&self, value: &Json<'_>, label: &str) -> bool {
        match value {
            Json::Object(members) => members
                .iter()
                .all(|(key, value)| self.covers_all(value, key)),
            Json::Array(elements) => elements.iter().all(|value| self.covers_all(value, label)),
            scalar => is_nothing(scalar) || self.covers(scalar, label),
        }
    }

    fn covers_some(&self, value: &Json<'_>, label: &str) -> bool {
        match value {
            Json::Object(members) => members
                .iter()
                .any(|(key, value)| self.covers_some(value, key)),
            Json::Array(elements) => elements.iter().any(|value| self.covers_some(value, label)),
            scalar => !is_nothing(scalar) && self.covers(scalar, label),
        }
    }

    fn covers(&self, scalar: &Json<'_>, label: &str) -> bool {
        match scalar {
            Json::Number(spelling) => self.covers_number(spelling),
            Json::String(text) => self.covers_string(text),
            Json::Bool(says) => self.covers_flag(&normalized_words(label), *says),
            _ => false,
        }
    }

    fn covers_number(&self, spelling: &str) -> bool {
        let value = spelling.parse::<f64>().ok();
        // Longer numbers may parse to the same float.
        let is_exact = spelling.len() <= MAX_EXACT;
        let Some(value) = value.filter(|_| is_exact) else {
            return self.has(spelling);
        };
        let at = self.numbers.partition_point(|number| *number < value);
        let is_same = |stated: f64| (stated - value).abs() <= value.abs() * 1e-12;
        self.numbers.get(at).is_some_and(|number| *number == value)
            || self.percentages.iter().any(|stated| is_same(*stated))
            || self.has(&format!("#{spelling}"))
    }

    fn covers_string(&self, text: &str) -> bool {
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let Some(first) = plain.chars().next() else {
            return true;
        };
        let remaining = &plain[first.len_utf8()..];
        let other: String = if first.is_lowercase() {
            first.to_uppercase().chain(remaining.chars()).collect()
        } else {
            first.to_lowercase().chain(remaining.chars()).collect()
        };
        self.has(&plain) || other != plain && self.has(&other)
    }

    /// Looks up a boolean by the words of its key, or by the first words: `open` for `open_now`.
    fn covers_flag(&self, label: &str, says: bool) -> bool {
        let ends = label.match_indices(' ').map(|(at, _)| at);
        let mut labels = ends.chain([label.len()]).map(|end| &label[..end]);
        labels.any(|label| self.flags.contains(&(label.to_owned(), says)))
    }

    /// Whether the texts contain `phrase`, not as part of a longer word or number.
    fn has(&self, phrase: &str) -> bool {
        let mut seen = 0;
        for (at, _) in self.text.match_indices(phrase) {
            if !self.search(at - seen) {
                return false;
            }
            seen = at;
            let (before, after) = (&self.text[..at], &self.text[at + phrase.len()..]);
            if !goes_on(before.chars().rev(), phrase.chars().next())
                && !goes_on(after.chars(), phrase.chars().next_back())
            {
                return true;
            }
        }
        self.search(self.text.len() - seen);
        false
    }

    /// Takes `bytes` from the budget; false if it is exhausted.
    fn search(&self, bytes: usize) -> bool {
        let left = self.budget.get().checked_sub(bytes);
        self.budget.set(left.unwrap_or(0));
        left.is_some()
    }
}

/// Whether the word or number with the edge character `edge` continues with `next`.
fn goes_on(mut next: impl Iterator<Item = char>, edge: Option<char>) -> bool {
    let Some(edge) = edge.filter(|edge| edge.is_alphanumeric()) else {
        return false;
    };
    match next.next() {
        Some('.' | ',') => edge.is_ascii_digit() && next.next().is_some_and(|c| c.is_ascii_digit()),
        Some(c) => c.is_alphanumeric(),
        None => false,
    }
}

fn is_nothing(scalar: &Json<'_>) -> bool {
    match scalar {
        Json::Null => true,
        Json::String(text) => text.trim().is_empty(),
        _ => false,
    }
}

/// The number of texts that are searched.
const MAX_TEXTS: usize = 64;

/// Bytes of text that are searched for strings: some milliseconds.
const MAX_SEARCHED: usize = 16 << 20;

/// Characters of a number that a float represents exactly.
const MAX_EXACT: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// What a text says of a structure.
    #[track_caller]
    fn says(text: &str, value: &str, expected: bool) {
        let value = Json::parse(value).unwrap();
        assert_eq!(covers_all(&[text], &value), expected, "{text}");
    }

    /// CN-10: a rounded number is not the value.
    #[test]
    fn a_number_is_there_as_it_is_grouped_or_as_a_percentage() {
        says("8°C, 1,204 m", r#"{"c": 8.0, "m": 1204}"#, true);
        says("30 % and 12.5%", r#"{"p": 0.3, "q": 0.125}"#, true);
        says("issue #12", r#"{"n": 12}"#, true);
        says("8 °C", r#"{"c": 8.2}"#, false);
        says("30 apples", r#"{"p": 0.3}"#, false);
        says("it is 5", r#"{"c": -5}"#, false);
        says("it is -5", r#"{"c": -5}"#, true);
        says("12345678901234567890", "[12345678901234567891]", false);
        says("12345678901234567891", "[12345678901234567891]", true);
    }

    /// CN-10: a part of a word is not the value.
    #[test]
    fn a_string_is_there_as_a_whole() {
        let value = r#"["sunny", "Sankt Gallen"]"#;
        says("Sunny in\n  Sankt Gallen.", value, true);
        says("Bernina", r#"["Bern"]"#, false);
        says("costs 12.5", r#"["12"]"#, false);
        says("HIGH", r#"["high"]"#, false);
        says("C", r#"["C++"]"#, false);
        says("", r#"{"a": null, "b": " ", "c": []}"#, true);
    }

    /// CN-10: a boolean without its label could be anything.
    #[test]
    fn a_boolean_is_there_beside_its_label() {
        let value = r#"{"open_now": true, "full": false}"#;
        says("**Open now**: yes, Full: no", value, true);
        says("Open: yes", r#"{"open_now": true}"#, true);
        says("It is open.", r#"{"open": true}"#, false);
        says("Open: no", r#"{"open": true}"#, false);
    }

    /// CN-10: JSON escapes what it says.
    #[test]
    fn a_text_that_is_json_says_what_its_scalars_are() {
        let text = r#"{"x": ["a\nb"], "ok": true, "n": 1.50}"#;
        says(text, r#"{"y": "a b", "ok": true, "z": 1.5}"#, true);
        says(r#"{"n": 2}"#, r#"{"n": 1}"#, false);
    }

    #[track_caller]
    fn is_restated(text: &str, value: &str, expected: bool) {
        let parsed = Json::parse(value).unwrap();
        assert_eq!(restates(text, &parsed, value), expected, "{text}");
    }

    /// CN-9: what an agent that asks for JSON alone does without.
    #[test]
    fn prose_that_only_says_it_again_retells_it() {
        let value = r#"{"location": "Bern", "temperature_c": 8, "humidity_percent": 72}"#;
        is_restated("It is 8°C in Bern.", value, true);
        is_restated("Sunny.", value, false);
        is_restated("It is 8°C in Bern and feels like 5.", value, false);
        let more = "Bern lies on the Aare. It is the seat of the government, and has many bears.";
        is_restated(more, value, false);
        is_restated("Bern\n- **Temperature**: 8 °C", value, true);
        is_restated("Bern\n- **Temperature**: 72 °C", value, false);
        is_restated("Bern, temperature: -8", value, false);
        is_restated("Bern, temperature: (-8)", value, false);
        is_restated("Bern, temperature: cold", value, true);
        is_restated(
            "1. Bern\n2) 8 °C, issue #5, h264, 0f283317, 12k",
            value,
            true,
        );
    }

    /// CN-9: numbers are rounded, grouped, counted, and parts of dates.
    #[test]
    fn a_number_is_restated_in_many_forms() {
        let value = r#"{"rain": 0.3, "wind": 15.26, "cost": 100000, "seen": "2026-11-20T04:29", "all": ["a", "b", "c"], "x": "b"}"#;
        is_restated(
            "3 of b, $100,000, rain 30%, 15.3 km/h, on 20.11.2026 at 04:29",
            value,
            true,
        );
        is_restated("b 15.2", value, false);
        is_restated("b, 20.12.2026", value, false);
        is_restated("b 3 5.25", r#"{"a": "b", "small": 3, "large": 5.25}"#, true);
        is_restated(
            "7",
            &format!(r#"{{"a": 7, "n": {}}}"#, "1".repeat(128)),
            true,
        );
        is_restated(
            "7, n: 7",
            &format!(r#"{{"a": 7, "n": {}}}"#, "1".repeat(128)),
            false,
        );
        is_restated(
            "7, n: 7",
            &format!(r#"{{"a": 7, "n": {}}}"#, "1".repeat(129)),
            true,
        );
    }

    /// CN-9: a switch and a state are compared where one value has the label.
    #[test]
    fn words_after_a_label_are_compared() {
        let value = r#"{"remote": false, "status": "in_progress", "place": "Bern", "people": [{"age": 30}, {"age": 40}]}"#;
        is_restated("Bern, remote: no", value, true);
        is_restated("Bern, remote: yes", value, false);
        is_restated("Bern, status: In progress", value, true);
        is_restated("Bern, status: done", value, false);
        is_restated("Bern, status: gone to the moon", value, true);
        is_restated("Bern, status:", value, true);
        is_restated("Bern, age: 30", value, true);
    }

    /// CN-9: JSON may say less, and nothing else.
    #[test]
    fn json_that_says_less_restates() {
        let value = r#"{"a": {"b": 1, "d": [1, 2, 3]}, "rows": [{"c": 4}], "other": "words"}"#;
        is_restated(r#"{"a": {"b": 1.0, "d": [3]}}"#, value, true);
        is_restated(r#"{"a": {"d": [1, 2, 3]}}"#, value, true);
        is_restated(r#"{"a": {"d": [1, 2, 4]}}"#, value, false);
        is_restated(r#"{"a": {"d": [1, 2, 3, 3]}}"#, value, false);
        is_restated(r#"{"a": {"b": 2}}"#, value, false);
        is_restated(r#"{"a": {"c": 1}}"#, value, false);
        let wrapped = r#"{"entities": [{"a": 1}, {"a": 2}]}"#;
        is_restated(r#"[{"a": 1}, {}]"#, wrapped, true);
        is_restated(r#"[{"a": 1}, {"a": 3}]"#, wrapped, false);
    }
}
