//! Which texts of a result merely repeat its structured value.

use crate::json::{Json, JsonError, compact};

/// Beyond so many texts none is compared with the whole value, which takes its time each time.
const MOST_COMPARED: usize = 64;

/// How a text relates to the structured value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Relation {
    /// It says something of its own.
    Author,
    /// It is the value as JSON, or a part of it as JSON, or it is empty.
    Repeats,
    /// It is the string that the value holds, so it says all of it, in the author's words.
    IsValue,
    /// It is the string of `result`, which stands beside other members, so it says a part only.
    IsPart,
}

/// How each of `texts` relates to the value that `written` is.
pub(crate) fn relations_to(written: &str, texts: &[&str]) -> Result<Vec<Relation>, JsonError> {
    // Most servers write the same twice, and nothing has to be read to see that.
    if texts == [written] {
        return Ok(vec![Relation::Repeats]);
    }
    // With other spaces it is the same, too, and no tree has to be made to see that.
    if let [text] = texts
        && text.trim_start().as_bytes().first() == written.as_bytes().first()
        && written.starts_with(['{', '['])
        && compact(text).is_ok_and(|text| compact(written).is_ok_and(|written| text == written))
    {
        return Ok(vec![Relation::Repeats]);
    }
    Ok(relations(&Json::parse(written)?, texts))
}

/// How each of `texts` relates to `value`.
///
/// Servers wrap what they return: `{"result": …}` where the schema must be an object, one named
/// member, or one text for each element of a list. All of these repeat the value.
pub(crate) fn relations(value: &Json<'_>, texts: &[&str]) -> Vec<Relation> {
    let words = relation_of_words(value);
    let lists = candidates(value).filter_map(Json::as_array);
    if let Some(relation) = lists
        .filter_map(|list| relation_of_each(list, texts, words))
        .next()
    {
        return vec![relation; texts.len()];
    }
    let number = texts.iter().enumerate();
    number
        .map(|(at, text)| {
            if at < MOST_COMPARED {
                relation(value, text, words)
            } else {
                Relation::Author
            }
        })
        .collect()
}

/// How a text relates to `value` that is the string of a candidate: only the string of the value
/// itself, or of its only member, says all of it.
fn relation_of_words(value: &Json<'_>) -> Relation {
    match value.as_object() {
        Some([_, _, ..]) => Relation::IsPart,
        _ => Relation::IsValue,
    }
}

fn relation(value: &Json<'_>, text: &str, words: Relation) -> Relation {
    let text = text.trim_end();
    let is_text = |part: &Json<'_>| part.as_str().is_some_and(|part| part.trim_end() == text);
    if candidates(value).any(is_text) {
        return words;
    }
    if text.is_empty() {
        return Relation::Repeats;
    }
    match Json::parse(text) {
        Ok(parsed) if candidates(value).any(|part| part.is_same(&parsed)) => Relation::Repeats,
        _ => Relation::Author,
    }
}

/// One text per element, each the element as JSON or its string.
///
/// Short strings read better as one list; a string of several lines, or a single one, better in
/// the author's words.
fn relation_of_each(elements: &[Json<'_>], texts: &[&str], words: Relation) -> Option<Relation> {
    if elements.is_empty() || elements.len() != texts.len() {
        return None;
    }
    let mut pairs = elements.iter().zip(texts);
    if pairs
        .clone()
        .all(|(element, text)| element.as_str() == Some(*text))
    {
        let are_short = texts.len() > 1 && !texts.iter().any(|text| text.contains(['\n', '\r']));
        return Some(if are_short { Relation::Repeats } else { words });
    }
    let repeats = pairs.all(|(element, text)| {
        element.as_str() == Some(*text)
            || Json::parse(text).is_ok_and(|text| element.is_same(&text))
    });
    repeats.then_some(Relation::Repeats)
}

/// The value, and what it wraps: its member `result`, its only member.
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
