//! What a dialect has no keyword for, in words.

use mcp_vary::json::Json;

use super::told::{Number, Text};

/// A description and what is to be said after it.
pub(crate) fn description(text: Option<&str>, said: &[String]) -> Option<String> {
    let mut whole = text.unwrap_or_default().trim_end().to_owned();
    for sentence in said {
        if !whole.is_empty() {
            whole.push_str(if whole.ends_with(|c: char| c.is_alphanumeric()) {
                ". "
            } else {
                " "
            });
        }
        whole.push_str(sentence);
    }
    (!whole.is_empty()).then_some(whole)
}

/// `One of: 1, 2, 3.`, cut.
pub(super) fn one_of<'v>(values: impl Iterator<Item = &'v str>) -> String {
    let mut listed = String::new();
    for value in values {
        if !listed.is_empty() {
            listed.push_str(", ");
        }
        if listed.len() + value.len() > LONGEST {
            listed.push('…');
            break;
        }
        listed.push_str(value);
    }
    format!("One of: {listed}.")
}

/// What a value means that is left out.
pub(crate) fn default(value: &Json<'_>) -> Option<String> {
    let json = value.to_json();
    (json.len() <= LONGEST && *value != Json::Null).then(|| format!("Default: {json}."))
}

/// A pattern that the dialect cannot have.
pub(super) fn pattern(pattern: &str) -> Option<String> {
    (pattern.len() <= LONGEST).then(|| format!("Matches the regular expression {pattern}"))
}

pub(super) fn format(format: &str) -> Option<String> {
    (format.len() <= 64).then(|| format!("Format: {format}."))
}

pub(super) fn multiple_of(step: &str) -> String {
    format!("A multiple of {step}.")
}

/// How long a text may be.
pub(super) fn length(text: &Text<'_>) -> Option<String> {
    match (text.min_length, text.max_length) {
        (None | Some("0"), None) => None,
        (Some("1"), None) => Some("Not empty.".to_owned()),
        (Some(least), None) => Some(format!("At least {least} characters.")),
        (None | Some("0"), Some(most)) => Some(format!("At most {most} characters.")),
        (Some(least), Some(most)) => Some(format!("{least} to {most} characters.")),
    }
}

/// The limits that a number does not reach.
pub(super) fn exclusive(number: &Number<'_>) -> Vec<String> {
    let above = number
        .exclusive_minimum
        .map(|limit| format!("More than {limit}."));
    let below = number
        .exclusive_maximum
        .map(|limit| format!("Less than {limit}."));
    above.into_iter().chain(below).collect()
}

/// Whether every engine of regular expressions reads the pattern alike: no look-around, no back
/// references, no classes of Unicode.
pub(super) fn is_plain(pattern: &str) -> bool {
    let escaped = |class: char| {
        let mut backslash = false;
        pattern.chars().any(|c| {
            let found = backslash && c == class;
            backslash = c == '\\' && !backslash;
            found
        })
    };
    let grouped = pattern
        .match_indices("(?")
        .all(|(at, _)| pattern[at..].starts_with("(?:"));
    grouped && pattern.len() <= 1000 && !"123456789kpPucAzZGQE".chars().any(escaped)
}

/// That a schema goes on where this one ends.
pub(super) const CUT: &str = "May hold more than can be shown here.";
/// That an object is written as text.
pub(super) const OBJECT_AS_TEXT: &str = "A JSON object, written as text.";
/// That an array is.
pub(super) const ARRAY_AS_TEXT: &str = "A JSON array, written as text.";

/// What is said of a value is at most this long, in bytes.
const LONGEST: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    /// SV-11: a list is cut between two values, and even before the first.
    #[test]
    fn a_list_of_values_is_cut() {
        let said = |lengths: &[usize]| {
            let values: Vec<String> = lengths.iter().map(|length| "a".repeat(*length)).collect();
            one_of(values.iter().map(String::as_str)).replace(&"a".repeat(98), "A")
        };
        assert_eq!(said(&[1, 2]), "One of: a, aa.");
        assert_eq!(said(&[98, 98, 0]), "One of: A, A, .");
        assert_eq!(said(&[98, 98, 1]), "One of: A, A, ….");
        assert_eq!(said(&[98, 101, 1]), "One of: A, ….");
        assert_eq!(said(&[201]), "One of: ….");
    }
}
