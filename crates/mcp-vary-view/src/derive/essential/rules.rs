//! The rules by which a sentence is essential to a caller.
//!
//! They look for cues: words of conditions, warnings, units and formats, quoted values, names and numbers that the
//! schema lacks. `tests/corpus` has labelled sentences, and `tests/derive/essential.rs` what the rules make of them.

use std::borrow::Cow;

use mcp_vary::json::Json;

use super::cues::{
    ADVICE, BACKWARD, CONDITIONS, DEFAULTS, EMPTY, ENGLISH, EXAMPLES, FOREIGN, FORMATS,
    ITEM_CONDITIONS, LIMITS, NO_CONDITIONS, ORIGINS, POSITIONS, PRAISE, REFERENCES, REMOVALS,
    RESULT_CONDITIONS, RESULTS, SCHEMA_CONDITIONS, STRICT_CONDITIONS, SWITCHES, UNITS, WARNINGS,
};
use super::phrase::{
    BOUNDS, Phrase, QUOTES, has_extension, has_long_name, identifiers, is_status, literals,
    names_tool, numbers, remarks,
};
use super::vocabulary::{Vocabulary, parts};
use super::{without_articles, without_links};

/// What a description is about.
#[derive(Debug)]
pub(super) enum Place<'p> {
    /// A tool, a prompt or a resource.
    Item(&'p Described<'p>),
    /// An argument, or a part of one.
    Schema(&'p ArgumentContext<'p>),
}

/// What a schema describes, and the description of the tool need not.
#[derive(Debug, Default)]
pub(crate) struct Described<'d> {
    /// The names of the arguments that can have a description in the schema.
    pub(crate) arguments: Vec<&'d str>,
    /// The values that arguments can have. A caller needs to know what they mean.
    pub(crate) values: Vec<&'d str>,
}

/// What a reader of an argument's description has in view beside it.
#[derive(Debug)]
pub(crate) struct ArgumentContext<'a> {
    pub(crate) facts: SchemaFacts<'a>,
    /// The words of the argument's name.
    pub(crate) name: Vocabulary,
}

/// What a schema says without its description.
#[derive(Debug, Default)]
pub(crate) struct SchemaFacts<'s> {
    /// The schema takes any text or object, so that only its description says what is meant.
    is_vague: bool,
    has_default: bool,
    is_boolean: bool,
    is_number: bool,
    has_enum: bool,
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
            is_boolean: has_only(schema, &["boolean"]),
            is_number: has_only(schema, &["integer", "number"]),
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

    /// Whether the schema has the number, alone or in a default such as `2024-01-31`.
    fn has_number(&self, number: &str) -> bool {
        let mut numbers_of_schema = self.numbers.iter().flat_map(|text| numbers(text));
        numbers_of_schema.any(|known| known == number)
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
                    self.has_enum = true;
                    self.values.extend(values.iter().filter_map(Json::as_str));
                }
                ("items", Json::Object(inner)) if depth == 0 => self.read(inner, 1),
                ("anyOf" | "oneOf", Json::Array(branches)) if depth == 0 => {
                    let first = branches.iter().take(MAX_BRANCHES);
                    let objects = first.filter_map(Json::as_object);
                    objects.for_each(|branch| self.read(branch, 1));
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

/// Whether the schema names types, and besides `null` only these.
fn has_only(schema: &[(Cow<'_, str>, Json<'_>)], types: &[&str]) -> bool {
    let mut named = Vec::new();
    for (keyword, value) in schema {
        match (keyword.as_ref(), value) {
            ("type", Json::Array(names)) => named.extend(names.iter().filter_map(Json::as_str)),
            ("type", name) => named.extend(name.as_str()),
            ("anyOf" | "oneOf", Json::Array(branches)) => {
                let types = branches.iter().filter_map(|branch| branch.get("type"));
                named.extend(types.filter_map(Json::as_str));
            }
            _ => {}
        }
    }
    named.retain(|name| *name != "null");
    !named.is_empty() && named.iter().all(|name| types.contains(name))
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
            is_english: is_english && matches!(place, Place::Item(_)),
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
        let sentence = &without_links(sentence);
        let phrase = Phrase::of(sentence);
        if !self.is_understood(sentence, &phrase) {
            return true;
        }
        match self.place {
            Place::Item(described) => {
                let defined = term(sentence);
                let is_argument = described.arguments.contains(&defined);
                let definition = is_argument.then(|| sentence.split_once(':')).flatten();
                described.values.contains(&defined)
                    || of_item(definition.map_or(sentence, |(_, text)| text), self.known)
            }
            Place::Schema(context) => of_schema(sentence, context, self.known),
        }
    }

    /// Whether the sentence introduces a list of what a result has.
    pub(super) fn introduces_results(&self, sentence: &str) -> bool {
        let phrase = Phrase::of(sentence);
        let is_item = matches!(self.place, Place::Item(_));
        is_item && phrase.starts(RESULTS) && !phrase.has(RESULT_CONDITIONS)
    }

    /// Whether a caller needs the sentence although it is about a result.
    pub(super) fn is_needed_of_result(&self, sentence: &str) -> bool {
        let phrase = Phrase::of(sentence);
        warns(&phrase) || phrase.has(RESULT_CONDITIONS)
    }

    /// Whether a caller needs the title of a code block.
    pub(super) fn is_needed_of_title(&self, sentence: &str) -> bool {
        let phrase = Phrase::of(sentence);
        !self.is_understood(sentence, &phrase) || warns(&phrase) || phrase.has(STRICT_CONDITIONS)
    }

    /// Whether the sentence says something of the one before it: `If this happens, …`.
    pub(super) fn refers_back(sentence: &str) -> bool {
        Phrase::of(sentence).starts(BACKWARD)
    }

    /// Whether the first sentence about an argument says what is meant by it, if its schema takes any text or object, or if
    /// the sentence shares no word with its name.
    pub(super) fn says_what_is_meant(&self, sentence: &str) -> bool {
        let Place::Schema(ArgumentContext { facts, name }) = self.place else {
            return false;
        };
        let sentence = &without_links(sentence);
        let is_unnamed = !facts.is_boolean && !name.has_any(sentence);
        (facts.is_vague || is_unnamed)
            && novel(sentence, &[self.known, &facts.value_words]) >= NOVEL
    }

    /// The sentence without its articles, if it is English.
    pub(super) fn without_articles<'s>(&self, sentence: &'s str) -> Cow<'s, str> {
        if self.is_understood(sentence, &Phrase::of(sentence)) {
            without_articles(sentence)
        } else {
            Cow::Borrowed(sentence)
        }
    }

    /// Whether the sentence is English, or has no words but those of the names around it.
    fn is_understood(&self, sentence: &str, phrase: &Phrase) -> bool {
        let has_foreign_letters = sentence.chars().any(|c| c.is_alphabetic() && !c.is_ascii());
        let is_foreign = has_foreign_letters || phrase.terms().any(|word| FOREIGN.contains(&word));
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

/// Whether a sentence says what is dangerous, unsuitable or counted in a certain way.
fn warns(phrase: &Phrase) -> bool {
    phrase.has(WARNINGS) || phrase.has(LIMITS) || phrase.has(POSITIONS)
}

fn of_item(sentence: &str, known: &Vocabulary) -> bool {
    let phrase = Phrase::of(sentence);
    if warns(&phrase) {
        return true;
    }
    let is_result = phrase.starts(RESULTS) && !phrase.has(RESULT_CONDITIONS);
    if is_result || phrase.starts(PRAISE) || phrase.starts(EXAMPLES) || is_status(sentence) {
        return false;
    }
    let stripped = &phrase.without(NO_CONDITIONS);
    stripped.starts(ADVICE)
        || stripped.has(CONDITIONS)
        || stripped.has(ITEM_CONDITIONS)
        || stripped.starts(&["when"])
        || stripped.starts(DEFAULTS)
        || has_long_name(sentence)
        || names_tool(sentence)
        || (stripped.has(BOUNDS) && numbers(sentence).next().is_some())
        || has_extension(sentence)
        || stripped.has(FORMATS)
        || identifiers(sentence).next().is_some()
        || literals(sentence).any(|literal| !known.has_all(literal))
}

fn of_schema(sentence: &str, context: &ArgumentContext<'_>, known: &Vocabulary) -> bool {
    let facts = &context.facts;
    let whole = Phrase::of(sentence);
    let is_removal = facts.is_boolean && whole.has(REMOVALS);
    if warns(&whole)
        || is_removal
        || names_tool(sentence)
        || (facts.is_vague && is_enumeration(sentence))
    {
        return true;
    }
    // Examples of a number say nothing that its type does not.
    let example = sentence
        .find("e.g")
        .filter(|at| facts.is_number && !Phrase::of(sentence.split_at(*at).1).has(BOUNDS));
    let statement = sentence.split_at(example.unwrap_or(sentence.len())).0;
    let phrase = &Phrase::of(statement).without(NO_CONDITIONS);
    let says_default = !facts.has_default && phrase.has(&["default", "defaults"]);
    says_default
        || !repeats(statement, context, known)
            && (says_condition(statement, phrase, facts, known)
                || says_value(statement, facts, known))
}

/// Whether the sentence only gives an example or the default, or says what the name or the values say: `The state is open or
/// closed`, if these are the values, or `Whether to scroll` of `scroll`.
fn repeats(sentence: &str, context: &ArgumentContext<'_>, known: &Vocabulary) -> bool {
    let facts = &context.facts;
    let phrase = Phrase::of(sentence);
    let is_strict = phrase.has(STRICT_CONDITIONS);
    let has_others = identifiers(sentence).any(|identifier| !known.has(identifier));
    let is_switch = facts.is_boolean
        && phrase.starts(SWITCHES)
        && numbers(sentence).next().is_none()
        && context.name.has_any(sentence);
    let is_value = facts.has_enum && novel(sentence, &[known, &facts.value_words]) == 0;
    let is_default = facts.has_default
        && phrase.starts(DEFAULTS)
        && identifiers(sentence).next().is_none()
        && numbers(sentence).all(|number| facts.has_number(number));
    is_default
        || (phrase.starts(EXAMPLES) && !has_others)
        || (!is_strict && (is_value || (is_switch && !has_others)))
}

/// Whether the sentence says when or how an argument is given.
fn says_condition(
    sentence: &str,
    phrase: &Phrase,
    facts: &SchemaFacts<'_>,
    known: &Vocabulary,
) -> bool {
    let vocabularies = &[known, &facts.value_words];
    let is_scalar = facts.is_boolean || facts.is_number;
    phrase.has(CONDITIONS)
        || phrase.has(SCHEMA_CONDITIONS)
        || phrase.has(ORIGINS)
        || phrase.has(UNITS)
            && !UNITS
                .iter()
                .any(|unit| known.has(unit) && phrase.has(&[unit]))
        || (facts.is_number && has_unit(phrase))
        || has_extension(sentence)
        || FORMATS
            .iter()
            .any(|format| phrase.has(&[format]) && (*format != "format" || !known.has(format)))
        || (!is_scalar && remarks(sentence).any(|remark| novel(remark, vocabularies) >= NOVEL))
}

/// Whether the sentence has values, names or numbers that the schema lacks, or the meaning of a value.
fn says_value(sentence: &str, facts: &SchemaFacts<'_>, known: &Vocabulary) -> bool {
    let lists = |literal: &str| facts.values.contains(&literal);
    let phrase = Phrase::of(sentence);
    let mentions = |value: &&str| value.len() > 2 && phrase.has(&[&value.to_lowercase()]);
    let meaning = facts.values.iter().any(mentions) || literals(sentence).any(lists);
    let start = sentence.trim_start_matches(QUOTES);
    let begins = |value: &&str| !value.is_empty() && start.starts_with(*value);
    let is_about_value = facts.values.iter().any(begins);
    let others = novel(sentence, &[known, &facts.value_words]);
    ((meaning || sentence.contains(": ")) && others >= NOVEL)
        || (is_about_value && others > 0)
        || literals(sentence).any(|literal| !lists(literal) && !known.has_all(literal))
        || identifiers(sentence).any(|identifier| !lists(identifier) && !known.has(identifier))
        || numbers(sentence).any(|number| !facts.numbers.iter().any(|known| known == number))
        || (facts.is_boolean && phrase.starts(&["false", "true"]) && others >= NOVEL)
}

/// Whether a number is counted in something: `the size in cells`.
fn has_unit(phrase: &Phrase) -> bool {
    let pairs = phrase.terms().zip(phrase.terms().skip(1));
    pairs
        .filter(|(word, _)| *word == "in")
        .any(|(_, unit)| unit.ends_with('s'))
}

/// Three values at least: `solid, dashed, dotted`.
fn is_enumeration(sentence: &str) -> bool {
    sentence.matches(", ").count() >= 2
}

/// How many words are neither in names around the sentence nor empty of meaning.
fn novel(sentence: &str, known: &[&Vocabulary]) -> usize {
    let is_novel = |word: &String| {
        !(word.chars().all(|c| c.is_ascii_digit())
            || known.iter().any(|vocabulary| vocabulary.has(word))
            || ENGLISH.contains(&word.as_str())
            || EMPTY.contains(&word.as_str()))
    };
    parts(sentence).filter(is_novel).count()
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
