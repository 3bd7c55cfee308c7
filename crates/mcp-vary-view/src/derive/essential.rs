//! What a caller needs of descriptions: the part of a tool's prose that `compact` keeps.
//!
//! A description is split into sentences ([`sentences`]), and [`rules`] decides about each of them alone. Then lists are
//! looked at as a whole ([`select`]). A sentence in another language than English is not understood, and stays.

mod arguments;
mod cues;
mod phrase;
mod rules;
mod sentences;
mod vocabulary;

use std::borrow::Cow;

use super::sentence::{first_sentence, is_label, is_symbol};
pub(super) use arguments::ArgumentSections;
pub(crate) use rules::{ArgumentContext, Described, SchemaFacts};
use rules::{Place, Rules};
use sentences::Sentence;
pub(crate) use vocabulary::Vocabulary;

/// The first sentence of a description and the essential ones after it, on one line.
pub(super) fn of_description(text: &str, described: &Described<'_>) -> String {
    let text = bounded(text);
    let retained = first_sentence(text);
    let mut all = sentences::sentences(text);
    let beginning = retained.trim_end_matches('…').to_owned();
    let found = all.iter().position(|one| one.text.starts_with(&beginning));
    let first = found.unwrap_or(0);
    leave_label(&mut all, first);
    let known = Vocabulary::of(&retained);
    let rules = Rules::new(Place::Item(described), &known, text);
    let stays = select(&all, &rules, |at| rules.is_essential(&all[at].text));
    let mut short = rules.without_articles(&retained).into_owned();
    for (at, Sentence { text, .. }) in all.iter().enumerate().filter(|(at, _)| stays[*at]) {
        let text_alone = plain(text);
        let sentence = rules.without_articles(&text_alone);
        if at != first {
            push(&mut short, &sentence);
        } else if text.len() > retained.len() && text.starts_with(&beginning) {
            // It was cut, and callers need all of it or what it introduces.
            short = sentence.into_owned();
        }
    }
    short
}

/// The essential sentences of the description of a schema; `None` if there are none.
///
/// `known` are the words that a reader has in view: the names of the tool and of the argument, for example. `is_new`
/// is asked of each essential sentence whether it is to be listed.
pub(super) fn of_argument(
    text: &str,
    context: &ArgumentContext<'_>,
    known: &Vocabulary,
    is_new: &mut impl FnMut(&str) -> bool,
) -> Option<String> {
    let mut retained = String::new();
    let text = bounded(text);
    let all = sentences::sentences(text);
    let rules = Rules::new(Place::Schema(context), known, text);
    let stays = select(&all, &rules, |at| {
        rules.is_essential(&all[at].text) || (at == 0 && rules.says_what_is_meant(&all[at].text))
    });
    for (sentence, _) in all.iter().zip(stays).filter(|(_, stays)| *stays) {
        if is_new(&sentence.text) {
            push(
                &mut retained,
                &rules.without_articles(&plain(&sentence.text)),
            );
        }
    }
    (!retained.is_empty()).then_some(retained)
}

/// Takes the first sentence and the items beside it out of the label above them: what a list calls its purpose needs no
/// label once the first item is in front.
fn leave_label(all: &mut [Sentence], first: usize) {
    let label = all.get(first).and_then(|first| first.parent);
    let Some(label) = label.filter(|label| is_label(&all[*label].text)) else {
        return;
    };
    let items = all.iter_mut().filter(|item| item.parent == Some(label));
    items.for_each(|item| item.parent = None);
}

/// Which of the sentences stay, when `is_essential` decides about each alone.
///
/// What a sentence belongs to stays with it. A list of which two thirds stay is kept whole, and so is one whose
/// introduction alone is essential; one of what a result has goes. A label without what it introduces does not stay.
fn select(all: &[Sentence], rules: &Rules<'_>, is_essential: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut stays: Vec<bool> = (0..all.len()).map(is_essential).collect();
    let mut is_result = vec![false; all.len()];
    for (at, sentence) in all.iter().enumerate() {
        let is_in_results = sentence.parent.is_some_and(|parent| is_result[parent]);
        is_result[at] =
            is_in_results || sentence.introduces() && rules.introduces_results(&sentence.text);
        stays[at] &= !is_result[at] || rules.is_needed_of_result(&sentence.text);
        stays[at] &= !sentence.is_title || rules.is_needed_of_title(&sentence.text);
    }
    let mut items = vec![Vec::new(); all.len()];
    for (at, sentence) in all.iter().enumerate().filter(|(_, it)| it.is_item) {
        sentence
            .parent
            .into_iter()
            .for_each(|parent| items[parent].push(at));
    }
    for (at, items) in items
        .iter()
        .enumerate()
        .filter(|(at, _)| all[*at].introduces())
    {
        let retained = items.iter().filter(|item| stays[**item]).count();
        if retained > 0 && retained * 3 >= items.len() * 2 || (retained == 0 && stays[at]) {
            items.iter().for_each(|item| stays[*item] = true);
        }
        stays[at] &= !items.is_empty() || !is_label(&all[at].text);
    }
    for (at, sentence) in all.iter().enumerate().rev() {
        if !stays[at] {
            continue;
        }
        if let Some(parent) = sentence.parent {
            stays[parent] = true;
        }
        if at > 0 && !sentence.is_item && Rules::refers_back(&sentence.text) {
            stays[at - 1] = true;
        }
    }
    stays
}

fn push(retained: &mut String, sentence: &str) {
    if !retained.is_empty() {
        retained.push(' ');
    }
    retained.push_str(sentence);
}

/// The sentence without links, emphasis, marks of code around names, symbols in front, and a label in front that only structures a longer text.
fn plain(sentence: &str) -> String {
    let sentence = without_code_marks(&without_emphasis(&without_links(sentence)));
    let is_mark = |c: char| is_symbol(c) || c.is_whitespace();
    let unmarked = sentence.trim_start_matches(is_mark);
    let mark = NOTES.iter().find(|mark| unmarked.starts_with(**mark));
    mark.map_or(unmarked, |mark| unmarked.split_at(mark.len()).1)
        .to_owned()
}

/// An English sentence without its articles, which cost a token each and say nothing to a model: `Name of sheet.`
///
/// Articles in quotes stay, and so do those with another meaning: `a few`, `a or b`.
fn without_articles(sentence: &str) -> Cow<'_, str> {
    if phrase::literals(sentence).any(|literal| literal.split_whitespace().any(is_article)) {
        return Cow::Borrowed(sentence);
    }
    let mut short = String::with_capacity(sentence.len());
    let mut terms = sentence.split(' ').peekable();
    let mut is_left_out = false;
    while let Some(term) = terms.next() {
        let next = terms.peek().copied().unwrap_or_default();
        let name = term.trim_start_matches('(');
        let is_first = short.is_empty();
        let is_capital = name.starts_with(char::is_uppercase) && !is_first;
        if is_article(name) && !is_capital && is_noun(next) {
            is_left_out |= is_first;
            short.push_str(term.strip_suffix(name).unwrap_or_default());
            continue;
        }
        let is_lower = term.chars().all(|c| c.is_ascii_lowercase());
        if std::mem::take(&mut is_left_out) && is_lower {
            short.push_str(&term[..1].to_uppercase());
            short.push_str(&term[1..]);
        } else {
            short.push_str(term);
        }
        if terms.peek().is_some() {
            short.push(' ');
        }
    }
    Cow::Owned(short)
}

fn is_article(word: &str) -> bool {
    ["a", "an", "the"].contains(&word.to_ascii_lowercase().as_str())
}

/// Whether an article in front of the word belongs to it and to nothing else.
fn is_noun(word: &str) -> bool {
    let starts = word.starts_with(|c: char| c.is_alphabetic() || "$`\"'.<".contains(c));
    let name = word.trim_matches(|c: char| !c.is_alphanumeric());
    starts && name.len() > 1 && !NO_NOUNS.contains(&name)
}

/// `**text**` becomes `text`; in front, `**text:**` is left out. Patterns such as `**/*.rs` stay.
fn without_emphasis(sentence: &str) -> String {
    let parts: Vec<&str> = sentence.split("**").collect();
    let is_text = |part: &&str| !part.is_empty() && part.trim() == *part && !part.starts_with('/');
    let is_paired = parts.len() % 2 == 1 && parts.iter().skip(1).step_by(2).all(is_text);
    match parts.as_slice() {
        ["", label, remaining @ ..] if is_paired && label.ends_with(':') => {
            remaining.concat().trim_start().to_owned()
        }
        _ if is_paired => parts.concat(),
        _ => sentence.to_owned(),
    }
}

/// `` `max_results` `` becomes `max_results`: nobody takes it for a word. Marks around anything else stay.
fn without_code_marks(sentence: &str) -> String {
    let parts: Vec<&str> = sentence.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return sentence.to_owned();
    }
    let mut plain = String::with_capacity(sentence.len());
    for (at, part) in parts.iter().enumerate() {
        let is_code = at % 2 == 1;
        let mark = if is_code && !is_name(part) { "`" } else { "" };
        plain.extend([mark, part, mark]);
    }
    plain
}

/// Whether a text is a name such as `max_results`, `maxResults` or `$match`.
fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_$.".contains(c);
    let ends = text.ends_with(|c: char| c.is_ascii_alphanumeric());
    ends && text.chars().all(is_part) && phrase::identifiers(text).next() == Some(text)
}

/// `[text](target)` becomes `text`: a caller of a tool follows no links.
fn without_links(sentence: &str) -> String {
    let mut remaining = sentence;
    let mut plain = String::with_capacity(sentence.len());
    while let Some((before, link)) = remaining.split_once('[') {
        plain.push_str(before);
        let labelled = link
            .split_once("](")
            .filter(|(label, _)| !label.contains(['[', ']']));
        let target = labelled.and_then(|(label, after)| Some((label, after.split_once(')')?)));
        remaining = match target {
            Some((label, (target, after))) if !target.contains(char::is_whitespace) => {
                plain.push_str(label);
                after
            }
            _ => {
                plain.push('[');
                remaining.split_once('[').map_or("", |(_, after)| after)
            }
        };
    }
    plain.push_str(remaining);
    plain
}

/// The start of a text that is longer than any description for a reader.
fn bounded(text: &str) -> &str {
    text.split_at(text.floor_char_boundary(MAX_TEXT)).0
}

/// Words that change what an article in front of them means, or before which a lone letter is no article.
const NO_NOUNS: [&str; 16] = [
    "and", "are", "bit", "few", "four", "in", "is", "little", "lot", "of", "one", "or", "three",
    "to", "two", "via",
];
/// What begins a note to the reader that it is.
const NOTES: [&str; 2] = ["Note to LLM: ", "Note: "];
/// Bytes of a description that are read.
const MAX_TEXT: usize = 64 * 1024;
