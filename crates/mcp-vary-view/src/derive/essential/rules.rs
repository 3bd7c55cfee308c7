//! The rules by which a sentence is essential to a caller.
//!
//! They look for cues: words of conditions, warnings, units and formats, quoted values, names and numbers that the
//! schema lacks. `tests/corpus` has labelled sentences, and `tests/derive/essential.rs` what the rules make of them.

use std::borrow::Cow;

use mcp_vary::json::Json;

use super::cues::{
    CONDITIONS, DEFAULTS, EMPTY, ENGLISH, FOREIGN, FORMATS, ITEM_CONDITIONS, LIMITS, POSITIONS,
    PRAISE, REFERENCES, RESULTS, SCHEMA_CONDITIONS, UNITS, WARNINGS,
};
use super::vocabulary::{Vocabulary, parts};

/// What a description is about.
#[derive(Debug)]
pub(super) enum Place<'p> {
    /// A tool, a prompt or a resource. Its arguments can have these values.
    Item { values: &'p [&'p str] },
    /// An argument, or a part of one.
    Schema { facts: &'p SchemaFacts<'p> },
}

/// What a schema says without its description.
#[derive(Debug, Default)]
pub(crate) struct SchemaFacts<'s> {
    /// The schema takes any text or object, so that only its description says what is meant.
    is_vague: bool,
    has_default: bool,
    /// The values that it lists.
    pub(in crate::derive) values: Vec<&'s str>,
    /// The words of these values.
    value_words: Vocabulary,
    /// Its numbers.
    numbers: Vec<String>,
}

impl<'s> SchemaFacts<'s> {
    pub(crate) fn of(schema: &'s [(Cow<'_, str>, Json<'_>)]) -> Self {
        let mut facts = Self {
            is_vague: is_vague(schema),
            ..Self::default()
        };
        facts.read(schema, 0);
        // A value that is left out here is one more that the description may explain.
        facts.values.truncate(MAX_VALUES);
        facts.numbers.truncate(MAX_VALUES);
        for value in &facts.values {
            facts.value_words.add(&Vocabulary::of(value));
        }
        facts
    }

    fn read(&mut self, schema: &'s [(Cow<'_, str>, Json<'_>)], depth: usize) {
        for (keyword, value) in schema {
            match (keyword.as_ref(), value) {
                ("default", value) => {
                    self.has_default |= *value != Json::Null;
                    self.values.extend(value.as_str());
                    self.numbers.push(value.to_json());
                }
                ("const", value) => self.values.extend(value.as_str()),
                ("enum", Json::Array(values)) => {
                    self.values.extend(values.iter().filter_map(Json::as_str));
                }
                ("items", Json::Object(inner)) if depth == 0 => self.read(inner, 1),
                ("anyOf" | "oneOf", Json::Array(branches)) if depth == 0 => {
                    let branches = branches.iter().take(MAX_BRANCHES);
                    let branches = branches.filter_map(Json::as_object);
                    branches.for_each(|branch| self.read(branch, 1));
                }
                (_, Json::Number(_)) => self.numbers.push(value.to_json()),
                _ => {}
            }
        }
    }
}

/// Whether a schema takes any text, any object, or anything.
fn is_vague(schema: &[(Cow<'_, str>, Json<'_>)]) -> bool {
    schema
        .iter()
        .all(|(keyword, value)| match keyword.as_ref() {
            "type" => match value {
                Json::Array(names) => names.iter().filter_map(Json::as_str).all(is_vague_type),
                name => name.as_str().is_none_or(is_vague_type),
            },
            "items" => value.as_object().is_none_or(|items| {
                let is_text = |it: &(Cow<'_, str>, Json<'_>)| it.1.as_str() == Some("string");
                !items.iter().any(is_text) && is_vague(items)
            }),
            "anyOf" | "oneOf" => value
                .as_array()
                .is_some_and(|branches| branches.iter().filter_map(Json::as_object).all(is_vague)),
            "properties" => value.as_object().is_none_or(<[_]>::is_empty),
            "$ref" | "allOf" | "const" | "enum" | "format" | "pattern" => false,
            _ => true,
        })
}

fn is_vague_type(name: &str) -> bool {
    ["string", "object", "array", "null"].contains(&name)
}

/// What decides about the sentences of one description.
pub(super) struct Rules<'r> {
    place: Place<'r>,
    /// The words that a reader has in view.
    known: &'r Vocabulary,
    /// Whether so many words are English that all of a description is, with its list items of one word. Those of
    /// arguments are too short to tell.
    is_english: bool,
}

impl<'r> Rules<'r> {
    pub(super) fn new(place: Place<'r>, known: &'r Vocabulary, description: &str) -> Self {
        let phrase = Phrase::of(description);
        let english = phrase.terms().filter(|word| ENGLISH.contains(word)).count();
        let is_english = english * ENGLISH_SHARE > phrase.terms().count();
        Self {
            is_english: is_english && matches!(place, Place::Item { .. }),
            place,
            known,
        }
    }

    /// Whether a caller needs the sentence.
    pub(super) fn is_essential(&self, sentence: &str) -> bool {
        let phrase = Phrase::of(sentence);
        if sentence.contains("://") && phrase.has(REFERENCES) {
            return false;
        }
        if !self.is_understood(sentence, &phrase) {
            return true;
        }
        match self.place {
            Place::Item { values } => {
                values.contains(&term(sentence)) || of_item(sentence, &phrase, self.known)
            }
            Place::Schema { facts } => of_schema(sentence, &phrase, facts, self.known),
        }
    }

    /// Whether the first sentence about an argument says what is meant by it, if its schema takes any text or object.
    pub(super) fn says_what_is_meant(&self, sentence: &str) -> bool {
        let Place::Schema { facts } = self.place else {
            return false;
        };
        facts.is_vague && novel(sentence, &[self.known, &facts.value_words]) >= NOVEL
    }

    /// Whether the sentence is English, or has no words but those of the names around it.
    fn is_understood(&self, sentence: &str, phrase: &Phrase) -> bool {
        let is_foreign = sentence.chars().any(|c| c.is_alphabetic() && !c.is_ascii());
        let is_foreign = is_foreign || phrase.terms().any(|word| FOREIGN.contains(&word));
        let is_english = || phrase.terms().any(|word| ENGLISH.contains(&word));
        !is_foreign && (self.is_english || is_english() || novel(sentence, &[self.known]) == 0)
    }
}

/// What an item such as `"value": its meaning` explains.
fn term(sentence: &str) -> &str {
    let end = sentence.find(TERM_ENDS).unwrap_or(sentence.len());
    sentence
        .split_at(end)
        .0
        .trim_matches(|c: char| c.is_whitespace() || "\"'`*".contains(c))
}

fn of_item(sentence: &str, phrase: &Phrase, known: &Vocabulary) -> bool {
    if phrase.has(WARNINGS) || phrase.has(LIMITS) || phrase.has(POSITIONS) {
        return true;
    }
    if phrase.starts(PRAISE) || phrase.starts(RESULTS) || is_status(sentence) {
        return false;
    }
    phrase.has(CONDITIONS)
        || phrase.has(ITEM_CONDITIONS)
        || phrase.starts(&["when"])
        || phrase.starts(DEFAULTS)
        || has_long_name(sentence)
        || phrase.has(FORMATS)
        || identifiers(sentence).next().is_some()
        || literals(sentence).any(|literal| !known.has(literal))
}

fn of_schema(sentence: &str, phrase: &Phrase, facts: &SchemaFacts<'_>, known: &Vocabulary) -> bool {
    if facts.has_default && phrase.starts(DEFAULTS) && identifiers(sentence).next().is_none() {
        return false;
    }
    let lists = |literal: &str| facts.values.contains(&literal);
    let mentions = |value: &&str| value.len() > 2 && phrase.has(&[&value.to_lowercase()]);
    let meaning = facts.values.iter().any(mentions) || literals(sentence).any(lists);
    phrase.has(WARNINGS)
        || phrase.has(LIMITS)
        || phrase.has(POSITIONS)
        || phrase.has(CONDITIONS)
        || phrase.has(SCHEMA_CONDITIONS)
        || phrase.has(UNITS)
            && !UNITS
                .iter()
                .any(|unit| known.has(unit) && phrase.has(&[unit]))
        || phrase.has(FORMATS)
        || (!facts.has_default && phrase.has(&["default", "defaults"]))
        || (meaning && novel(sentence, &[known, &facts.value_words]) >= NOVEL)
        || literals(sentence).any(|it| !lists(it) && !known.has(it))
        || identifiers(sentence).any(|it| !lists(it) && !known.has(it))
        || numbers(sentence).any(|it| !facts.numbers.iter().any(|known| known == it))
}

/// The words of a sentence with single spaces around each.
struct Phrase(String);

impl Phrase {
    fn of(sentence: &str) -> Self {
        let mut phrase = String::from(" ");
        for word in sentence.split(|c: char| c.is_whitespace() || ",;:()[]\"`*/=—".contains(c)) {
            let word = word.trim_matches(|c: char| ".!?'’‘“”".contains(c));
            if !word.is_empty() {
                phrase.push_str(&word.to_lowercase().replace('’', "'"));
                phrase.push(' ');
            }
        }
        Self(phrase)
    }

    fn terms(&self) -> impl Iterator<Item = &str> {
        self.0.split(' ').filter(|word| !word.is_empty())
    }

    fn has(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|it| self.0.contains(&format!(" {it} ")))
    }

    fn starts(&self, phrases: &[&str]) -> bool {
        phrases
            .iter()
            .any(|it| self.0.starts_with(&format!(" {it} ")))
    }
}

/// How many words are neither in names around the sentence nor empty of meaning.
fn novel(sentence: &str, known: &[&Vocabulary]) -> usize {
    let is_novel = |word: &String| {
        let word = word.as_str();
        !(known.iter().any(|it| it.has(word)) || ENGLISH.contains(&word) || EMPTY.contains(&word))
    };
    parts(sentence).filter(is_novel).count()
}

/// The quoted parts of a sentence.
fn literals(sentence: &str) -> impl Iterator<Item = &str> {
    let quoted = |quote: char| {
        let mut parts = sentence.split(quote);
        let mut before = parts.next().unwrap_or_default();
        let mut is_open = false;
        parts.filter(move |part| {
            // An apostrophe stands within a word.
            let opens = !before.ends_with(char::is_alphanumeric);
            before = *part;
            is_open = !is_open && opens;
            is_open && !part.is_empty()
        })
    };
    let known = |it: &&str| it.len() < sentence.len();
    QUOTES.into_iter().flat_map(quoted).filter(known)
}

/// Names such as `max_results`, `maxResults`, `--flag`, and the name before "tool" if it is joined with hyphens.
fn identifiers(sentence: &str) -> impl Iterator<Item = &str> {
    let is_mark = |c: char| c.is_whitespace() || ",;:()[]{}\"'`*/=.!?".contains(c);
    let words = sentence.split(is_mark).filter(|word| !word.is_empty());
    let next = words.clone().skip(1).chain([""]);
    words.zip(next).filter_map(|(word, next)| {
        let starts_lower = word.starts_with(char::is_lowercase);
        let is_camel = starts_lower && word.contains(char::is_uppercase);
        let is_snake = word.trim_matches('_').contains('_');
        let is_kebab = word.contains('-') && ["tool", "tools"].contains(&next);
        let is_other = word.starts_with('$') || word.starts_with("--");
        (is_camel || is_snake || is_kebab || is_other).then_some(word)
    })
}

/// Whether a sentence has a name such as `crm-list-contacts`. Words such as "up-to-date" are joined by short ones.
fn has_long_name(sentence: &str) -> bool {
    let mut words = sentence.split(|c: char| c != '-' && !c.is_alphanumeric());
    words.any(|word| word.split('-').count() > 2 && word.split('-').all(|part| part.len() > 2))
}

/// The numbers of a sentence.
fn numbers(sentence: &str) -> impl Iterator<Item = &str> {
    let parts = sentence.split(|c: char| !(c.is_ascii_digit() || c == '.'));
    let numbers = parts.map(|part| part.trim_matches('.'));
    numbers.filter(|part| !part.is_empty())
}

/// `404: Page not found`
fn is_status(sentence: &str) -> bool {
    let code = sentence.split_once(':').map_or("", |(code, _)| code);
    code.len() == 3 && code.chars().all(|c| c.is_ascii_digit())
}

/// Vocabulary of a first sentence that say more than the names around it.
const NOVEL: usize = 2;
/// A description is English if one word of so many is.
const ENGLISH_SHARE: usize = 8;
/// Values and numbers of a schema with which sentences are compared.
const MAX_VALUES: usize = 200;
/// Branches of a choice whose values are read.
const MAX_BRANCHES: usize = 100;
/// What ends the term of a definition.
const TERM_ENDS: [char; 4] = [':', '=', '–', '—'];
const QUOTES: [char; 3] = ['"', '\'', '`'];
