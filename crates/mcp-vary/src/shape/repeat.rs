//! How the texts of a result relate to its structured value.

use super::content::{Block, only_text, texts};
use crate::json::{Json, JsonError, compacted};

/// Texts that are compared with the whole value; each comparison is linear in the value.
const MAX_COMPARED: usize = 64;

/// How a text relates to the structured value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Relation {
    /// The text is the author's own.
    Author,
    /// The text is the value or a part of it as JSON, or it is empty.
    Repeats,
    /// The text is the only string of the value, so it covers the whole value.
    IsValue,
    /// The text is the string of `result` beside other members, so it covers only a part.
    IsPart,
}

/// How each text of `blocks` relates to the value `written`, JSON text.
pub(crate) fn relations_to(
    written: &str,
    blocks: &[Block<'_>],
) -> Result<Vec<Relation>, JsonError> {
    if only_text_repeats(written, blocks) {
        return Ok(vec![Relation::Repeats]);
    }
    Ok(relations(&Json::parse(written)?, &texts(blocks)))
}

/// Whether the only text of `blocks` repeats the value `written`, as far as that is found without a tree. Most servers
/// write the same text twice.
pub(crate) fn only_text_repeats(written: &str, blocks: &[Block<'_>]) -> bool {
    only_text(blocks).is_some_and(|block| {
        block.has_text(written) || block.text().is_some_and(|text| repeats(text, written))
    })
}

/// Whether `text` is the object or array `written`, or the same with other white space; needs no tree.
pub(crate) fn repeats(text: &str, written: &str) -> bool {
    let begins_alike = text.trim_start().as_bytes().first() == written.as_bytes().first();
    begins_alike
        && written.starts_with(['{', '['])
        && (text == written
            || compacted(text)
                .is_ok_and(|text| compacted(written).is_ok_and(|written| text == written)))
}

/// How each of `texts` relates to `value`.
///
/// Servers wrap what they return: as `{"result": …}` if the schema must be an object, as one named member, or as one
/// text for each element of a list. All of these repeat the value.
pub(crate) fn relations(value: &Json<'_>, texts: &[&str]) -> Vec<Relation> {
    let terms = relation_of_string(value);
    let lists = candidates(value).filter_map(Json::as_array);
    if let Some(relation) = lists
        .filter_map(|list| relation_of_each(list, texts, terms))
        .next()
    {
        return vec![relation; texts.len()];
    }
    let number = texts.iter().enumerate();
    number
        .map(|(at, text)| {
            if at < MAX_COMPARED {
                relation(value, text, terms)
            } else {
                Relation::Author
            }
        })
        .collect()
}

/// How a text relates to `value` if it equals the string of a candidate: only the string of the value itself or of
/// its only member covers all of it.
fn relation_of_string(value: &Json<'_>) -> Relation {
    match value.as_object() {
        Some([_, _, ..]) => Relation::IsPart,
        _ => Relation::IsValue,
    }
}

fn relation(value: &Json<'_>, text: &str, terms: Relation) -> Relation {
    let trimmed = text.trim_end();
    let is_text = |part: &Json<'_>| part.as_str().is_some_and(|part| part.trim_end() == trimmed);
    if candidates(value).any(is_text) {
        return terms;
    }
    if trimmed.is_empty() {
        return Relation::Repeats;
    }
    match Json::parse(trimmed) {
        Ok(parsed) if candidates(value).any(|part| part.is_same(&parsed)) => Relation::Repeats,
        _ => Relation::Author,
    }
}

/// The relation if there is one text per element, each the element as JSON or its string.
///
/// Short strings read better as one list; multi-line strings and single strings read better as the author's texts.
fn relation_of_each(elements: &[Json<'_>], texts: &[&str], terms: Relation) -> Option<Relation> {
    if elements.is_empty() || elements.len() != texts.len() {
        return None;
    }
    let mut pairs = elements.iter().zip(texts);
    if pairs
        .clone()
        .all(|(element, text)| element.as_str() == Some(*text))
    {
        let are_short = texts.len() > 1 && !texts.iter().any(|text| text.contains(['\n', '\r']));
        return Some(if are_short { Relation::Repeats } else { terms });
    }
    let repeats = pairs.all(|(element, text)| {
        element.as_str() == Some(*text)
            || Json::parse(text).is_ok_and(|text| element.is_same(&text))
    });
    repeats.then_some(Relation::Repeats)
}

/// The value, and the value that it wraps: its member `result`, or its only member.
pub(crate) fn candidates<'v, 'a>(value: &'v Json<'a>) -> impl Iterator<Item = &'v Json<'a>> {
    let only = match value.as_object() {
        Some([(_, only)]) => Some(only),
        _ => value.get("result"),
    };
    std::iter::once(value).chain(only)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CN-10: texts are those of a list where each is one of its elements, and none is missing.
    #[test]
    fn a_list_is_repeated_by_as_many_texts() {
        let elements = [Json::String("a".into()), Json::String("b".into())];
        let of = |count: usize, texts: &[&str]| {
            relation_of_each(&elements[..count], texts, Relation::IsPart)
        };
        assert_eq!(of(2, &["a", "b"]), Some(Relation::Repeats));
        assert_eq!(of(2, &["a"]), None);
        assert_eq!(of(1, &["a", "b"]), None);
        assert_eq!(of(0, &[]), None);
        assert_eq!(of(1, &["a"]), Some(Relation::IsPart));
    }
}
