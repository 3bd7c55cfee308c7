//! Which texts of a result merely repeat its structured value.

use crate::json::Json;

/// How a text relates to the structured value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Relation {
    /// It says something of its own.
    Author,
    /// It is the value as JSON, or a part of it as JSON.
    Repeats,
    /// It is the one string that the value holds, so it says all of it, in the author's words.
    IsValue,
}

/// How each of `texts` relates to `value`.
///
/// Servers wrap what they return: `{"result": …}` where the schema must be an object, one named
/// member, or one text for each element of a list. All of these repeat the value.
pub(super) fn relations(value: &Json<'_>, texts: &[&str]) -> Vec<Relation> {
    let elements = candidates(value).filter_map(Json::as_array);
    if elements
        .into_iter()
        .any(|elements| are_elements(elements, texts))
    {
        return vec![Relation::Repeats; texts.len()];
    }
    texts.iter().map(|text| relation(value, text)).collect()
}

fn relation(value: &Json<'_>, text: &str) -> Relation {
    if candidates(value).any(|part| {
        part.as_str()
            .is_some_and(|part| part.trim_end() == text.trim_end())
    }) {
        return Relation::IsValue;
    }
    match Json::parse(text) {
        Ok(parsed) if candidates(value).any(|part| part.is_same(&parsed)) => Relation::Repeats,
        _ => Relation::Author,
    }
}

/// One text per element, each the element as JSON or its string.
fn are_elements(elements: &[Json<'_>], texts: &[&str]) -> bool {
    !elements.is_empty()
        && elements.len() == texts.len()
        && elements.iter().zip(texts).all(|(element, text)| {
            element.as_str() == Some(*text)
                || Json::parse(text).is_ok_and(|text| element.is_same(&text))
        })
}

/// The value, and what it wraps: its member `result`, its only member.
fn candidates<'v, 'a>(value: &'v Json<'a>) -> impl Iterator<Item = &'v Json<'a>> {
    let only = match value.as_object() {
        Some([(_, only)]) => Some(only),
        _ => value.get("result"),
    };
    std::iter::once(value).chain(only)
}
