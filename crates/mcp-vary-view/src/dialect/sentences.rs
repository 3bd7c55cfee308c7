//! Sentences for constraints that a dialect has no keyword for.

use mcp_vary::json::Json;

use super::value_schema::{Number, Text};

/// A description followed by sentences.
pub(crate) fn with_sentences(text: Option<&str>, reported: &[String]) -> Option<String> {
    let mut whole = text.unwrap_or_default().trim_end().to_owned();
    for sentence in reported {
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

/// `One of: 1, 2, 3.`, truncated.
pub(super) fn one_of(values: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut listed = String::new();
    for item in values {
        let value = item.as_ref();
        if !listed.is_empty() {
            listed.push_str(", ");
        }
        if listed.len() + value.len() > MAX_TEXT {
            listed.push('…');
            break;
        }
        listed.push_str(value);
    }
    format!("One of: {listed}.")
}

/// The default of an omitted value.
pub(crate) fn default(value: &Json<'_>) -> Option<String> {
    let json = value.to_json();
    (json.len() <= MAX_TEXT && *value != Json::Null).then(|| format!("Default: {json}."))
}

/// A pattern that the dialect does not support.
pub(super) fn pattern(pattern: &str) -> Option<String> {
    (pattern.len() <= MAX_TEXT).then(|| format!("Matches the regular expression {pattern}"))
}

pub(super) fn format(format: &str) -> Option<String> {
    (format.len() <= 64).then(|| format!("Format: {format}."))
}

pub(super) fn multiple_of(step: &str) -> String {
    format!("A multiple of {step}.")
}

/// The length limits of a text.
pub(super) fn length(text: &Text<'_>) -> Option<String> {
    match (text.min_length, text.max_length) {
        (None | Some("0"), None) => None,
        (Some("1"), None) => Some("Not empty.".to_owned()),
        (Some(least), None) => Some(format!("At least {least} characters.")),
        (None | Some("0"), Some(most)) => Some(format!("At most {most} characters.")),
        (Some(least), Some(most)) => Some(format!("{least} to {most} characters.")),
    }
}

/// The exclusive limits of a number.
pub(super) fn exclusive(number: &Number<'_>) -> Vec<String> {
    let above = number
        .exclusive_minimum
        .map(|limit| format!("More than {limit}."));
    let below = number
        .exclusive_maximum
        .map(|limit| format!("Less than {limit}."));
    above.into_iter().chain(below).collect()
}

/// Whether all regular expression engines read the pattern alike: no look-around, no back references, no Unicode
/// classes.
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

/// The sentence for a truncated schema.
pub(super) const TRUNCATED: &str = "May hold more than can be shown here.";
/// The sentence for an object as text.
pub(super) const OBJECT_AS_TEXT: &str = "A JSON object, written as text.";
/// The sentence for an array as text.
pub(super) const ARRAY_AS_TEXT: &str = "A JSON array, written as text.";

/// Bytes of a listed value.
const MAX_TEXT: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    /// SV-11: a list is cut between two values, and even before the first.
    #[test]
    fn a_list_of_values_is_cut() {
        let said = |lengths: &[usize]| {
            let values: Vec<String> = lengths.iter().map(|length| "a".repeat(*length)).collect();
            one_of(values).replace(&"a".repeat(98), "A")
        };
        assert_eq!(said(&[1, 2]), "One of: a, aa.");
        assert_eq!(said(&[98, 98, 0]), "One of: A, A, .");
        assert_eq!(said(&[98, 98, 1]), "One of: A, A, ….");
        assert_eq!(said(&[98, 101, 1]), "One of: A, ….");
        assert_eq!(said(&[201]), "One of: ….");
    }
}
