//! What somebody searches for.

use thiserror::Error;

use crate::stem::stem;
use crate::stop_words::{is_about_tools, is_stop_word};
use crate::terms::for_each_word;

/// The longest query, in bytes.
pub const MAX_QUERY: usize = 2048;

/// The words that are read of one query, at most. Later ones are ignored.
pub const MAX_QUERY_WORDS: usize = 96;

/// A query: words in natural language, names, or both.
///
/// # Properties
///
/// - It has at least one word, at most [`MAX_QUERY`] bytes, and [`MAX_QUERY_WORDS`] words.
/// - Its parts are those between commas, semicolons, `+`, `/`, `|`, line ends, and the words "or", "and", "then". Agents
///   list several things that would help; a tool does not have to match them all.
/// - Words that all sentences have ("the") and those that say of any tool that it is one ("server") are ignored, unless
///   there are no others.
///
/// # Examples
///
/// ```
/// use mcp_vary_search::{Query, QueryError};
///
/// assert!(Query::new("list open issues").is_ok());
/// assert_eq!(Query::new("?!").unwrap_err(), QueryError::Empty);
/// ```
#[derive(Clone, Debug)]
pub struct Query {
    clauses: Vec<Clause>,
}

/// A part of a query.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clause {
    /// Each word that is searched for.
    pub(crate) keywords: Vec<Word>,
    /// The terms of neighbouring words that are written together: `filesystem` of "file system".
    pub(crate) compounds: Vec<String>,
}

/// A word of a query.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    /// As it was written, without case.
    pub(crate) written: String,
    /// As it is indexed.
    pub(crate) term: String,
}

/// Why a text is not a query.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum QueryError {
    /// The text is too long.
    #[error("the query has {0} bytes; the limit is {MAX_QUERY}")]
    TooLong(usize),
    /// The text has neither letters nor digits.
    #[error("the query has no words; describe in a few words what the tool should do")]
    Empty,
}

impl Query {
    /// The query that `text` writes.
    ///
    /// # Errors
    ///
    /// If `text` is longer than [`MAX_QUERY`], or has no words.
    pub fn new(text: &str) -> Result<Self, QueryError> {
        if text.len() > MAX_QUERY {
            return Err(QueryError::TooLong(text.len()));
        }
        let all = read(text);
        let of_all = |ignored: fn(&str) -> bool| -> Vec<Clause> {
            let clauses = all.iter().map(|terms| clause(terms, ignored));
            clauses
                .filter(|clause| !clause.keywords.is_empty())
                .collect()
        };
        let mut clauses = of_all(|word| is_stop_word(word) || is_about_tools(word));
        if clauses.is_empty() {
            clauses = of_all(is_stop_word);
        }
        if clauses.is_empty() {
            clauses = of_all(|_| false);
        }
        if clauses.is_empty() {
            return Err(QueryError::Empty);
        }
        Ok(Self { clauses })
    }

    pub(crate) fn clauses(&self) -> &[Clause] {
        &self.clauses
    }
}

/// The words of each clause of `text`, in their order.
fn read(text: &str) -> Vec<Vec<String>> {
    let mut clauses = vec![Vec::new()];
    let mut count = 0;
    for part in text.split(SEPARATORS) {
        for_each_word(part, &mut |word| {
            if count == MAX_QUERY_WORDS {
                return;
            }
            count += 1;
            if CONJUNCTIONS.contains(&word.as_str()) {
                clauses.push(Vec::new());
            }
            if let Some(clause) = clauses.last_mut() {
                clause.push(word.clone());
            }
        });
        clauses.push(Vec::new());
    }
    clauses
}

/// The clause of `terms` without those that are `ignored`.
fn clause(terms: &[String], ignored: fn(&str) -> bool) -> Clause {
    let mut clause = Clause::default();
    for word in terms.iter().filter(|word| !ignored(word)) {
        clause.keywords.push(Word {
            written: word.clone(),
            term: stemmed(word),
        });
    }
    if !clause.keywords.is_empty() {
        let neighbours = terms.iter().zip(terms.iter().skip(1));
        let compounds =
            neighbours.filter(|(first, second)| is_joinable(first) && is_joinable(second));
        clause.compounds = compounds
            .map(|(first, second)| stemmed(&format!("{first}{second}")))
            .collect();
    }
    clause
}

fn stemmed(word: &str) -> String {
    let mut term = word.to_owned();
    stem(&mut term);
    term
}

/// Whether `word` can be a half of a compound.
fn is_joinable(word: &str) -> bool {
    word.len() > 1 && word.chars().all(char::is_alphabetic)
}

const SEPARATORS: &[char] = &[
    ',', ';', '+', '/', '|', '\n', '、', '，', '；', '。', '،', '؛',
];
/// Sorted out of their clause as stop words, if there are others.
const CONJUNCTIONS: &[&str] = &["or", "and", "then"];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn has_clauses(text: &str, expected: &[&str]) {
        let query = Query::new(text).unwrap();
        let terms = |clause: &Clause| {
            let words: Vec<&str> = clause
                .keywords
                .iter()
                .map(|word| word.term.as_str())
                .collect();
            words.join(" ")
        };
        let clauses: Vec<String> = query.clauses().iter().map(terms).collect();
        assert_eq!(clauses, expected, "{text}");
    }

    #[test]
    fn a_query_has_the_parts_that_it_lists() {
        has_clauses("open a file", &["open file"]);
        let text = "read docx, or convert + merge";
        has_clauses(text, &["read docx", "convert", "merg"]);
        has_clauses("发送邮件、搜索", &["发送 送邮 邮件", "搜索"]);
    }

    #[test]
    fn words_about_tools_are_ignored_unless_there_are_no_others() {
        has_clauses("any weather tool", &["weather"]);
        has_clauses("the tools of the server", &["tool server"]);
        has_clauses("what is this", &["what is this"]);
    }

    #[test]
    fn neighbours_are_searched_for_as_one_word_too() {
        let query = Query::new("files of the file system").unwrap();
        let compounds = &query.clauses()[0].compounds;
        assert!(
            compounds.contains(&"filesystem".to_owned()),
            "{compounds:?}"
        );
    }

    #[test]
    fn what_is_no_query_is_refused() {
        let error = |text: &str| Query::new(text).unwrap_err().to_string();
        let expected = "the query has 2049 bytes; the limit is 2048";
        assert_eq!(error(&"a".repeat(2049)), expected);
        let empty = "the query has no words; describe in a few words what the tool should do";
        assert_eq!([error(""), error(" ,_-!")], [empty, empty]);
        let bound = Query::new(&"ab ".repeat(600)).unwrap();
        assert_eq!(bound.clauses()[0].keywords.len(), MAX_QUERY_WORDS);
    }
}
