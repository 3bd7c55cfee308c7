//! What a caller needs of descriptions: the part of a tool's prose that `compact` keeps.
//!
//! A description is split into sentences ([`sentences`]), and [`rules`] decides about each of them alone. A sentence in
//! another language than English is not understood, and stays.

mod arguments;
mod cues;
mod rules;
mod sentences;
mod vocabulary;

use super::sentence::first_sentence;
pub(super) use arguments::ArgumentSections;
use rules::Place;
pub(crate) use rules::SchemaFacts;
pub(crate) use vocabulary::Vocabulary;

/// The first sentence of a description and the essential ones after it, on one line.
pub(super) fn of_description(text: &str) -> String {
    let text = bounded(text);
    let mut kept = first_sentence(text);
    let all = sentences::sentences(text);
    let first = all.iter().position(|sentence| *sentence == kept);
    let first = first.unwrap_or(0);
    let known = Vocabulary::of(&kept);
    for (at, sentence) in all.iter().enumerate() {
        if at != first && rules::is_essential(sentence, &Place::Item, &known) {
            push(&mut kept, &plain(sentence));
        }
    }
    kept
}

/// The essential sentences of the description of a schema; `None` if there are none.
///
/// `known` are the words that a reader has in view: the names of the tool and of the argument, for example. `is_new`
/// is asked of each essential sentence whether it is to be listed.
pub(super) fn of_argument(
    text: &str,
    facts: &SchemaFacts<'_>,
    known: &Vocabulary,
    is_new: &mut impl FnMut(&str) -> bool,
) -> Option<String> {
    let mut kept = String::new();
    let all = sentences::sentences(bounded(text));
    for (at, sentence) in all.iter().enumerate() {
        let is_first = at == 0;
        let place = Place::Schema { facts, is_first };
        if rules::is_essential(sentence, &place, known) && is_new(sentence) {
            push(&mut kept, &plain(sentence));
        }
    }
    (!kept.is_empty()).then_some(kept)
}

fn push(kept: &mut String, sentence: &str) {
    if !kept.is_empty() {
        kept.push(' ');
    }
    kept.push_str(sentence);
}

/// The sentence without links, emphasis, and a label in front that only structures a longer text.
fn plain(sentence: &str) -> String {
    let sentence = without_emphasis(&without_links(sentence));
    let mark = NOTES.iter().find(|mark| sentence.starts_with(**mark));
    mark.map_or(sentence.as_str(), |mark| sentence.split_at(mark.len()).1)
        .to_owned()
}

/// `**text**` becomes `text`; in front, `**text:**` is left out. Patterns such as `**/*.rs` stay.
fn without_emphasis(sentence: &str) -> String {
    let parts: Vec<&str> = sentence.split("**").collect();
    let is_text = |part: &&str| !part.is_empty() && part.trim() == *part && !part.starts_with('/');
    let is_paired = parts.len() % 2 == 1 && parts.iter().skip(1).step_by(2).all(is_text);
    match parts.as_slice() {
        ["", label, rest @ ..] if is_paired && label.ends_with(':') => {
            rest.concat().trim_start().to_owned()
        }
        _ if is_paired => parts.concat(),
        _ => sentence.to_owned(),
    }
}

/// `[text](target)` becomes `text`: a caller of a tool follows no links.
fn without_links(sentence: &str) -> String {
    let mut rest = sentence;
    let mut plain = String::with_capacity(sentence.len());
    while let Some((before, link)) = rest.split_once('[') {
        plain.push_str(before);
        let link = link
            .split_once("](")
            .filter(|(label, _)| !label.contains(['[', ']']));
        let target = link.and_then(|(label, after)| Some((label, after.split_once(')')?)));
        rest = match target {
            Some((label, (target, after))) if !target.contains(char::is_whitespace) => {
                plain.push_str(label);
                after
            }
            _ => {
                plain.push('[');
                rest.split_once('[').map_or("", |(_, after)| after)
            }
        };
    }
    plain.push_str(rest);
    plain
}

/// The start of a text that is longer than any description for a reader.
fn bounded(text: &str) -> &str {
    text.split_at(text.floor_char_boundary(MAX_TEXT)).0
}

/// What begins a note to the reader that it is.
const NOTES: [&str; 2] = ["Note to LLM: ", "Note: "];
/// Bytes of a description that are read.
const MAX_TEXT: usize = 64 * 1024;
