//! Vocabulary and their stems.

use std::collections::BTreeSet;

/// A set of English words, whatever their ending, and however they are joined in names. It has a bounded size: words
/// that do not fit count as unknown, so that more prose stays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vocabulary(BTreeSet<String>);

impl Vocabulary {
    /// The words of a text or of a name such as `maxResults` or `max_results`.
    pub(crate) fn of(text: &str) -> Self {
        Self(
            parts(text)
                .take(MAX_WORDS)
                .map(|word| stem(&word))
                .collect(),
        )
    }

    pub(crate) fn add(&mut self, others: &Self) {
        let free = MAX_WORDS.saturating_sub(self.0.len());
        self.0.extend(others.0.iter().take(free).cloned());
    }

    pub(crate) fn has(&self, word: &str) -> bool {
        self.0.contains(&stem(word))
    }

    /// Whether it has all words of a text or of a name, of which there is at least one.
    pub(super) fn has_all(&self, text: &str) -> bool {
        let mut terms = parts(text).peekable();
        terms.peek().is_some() && terms.all(|term| self.has(&term))
    }

    /// Whether it has a word of the text, or the beginning of one: `stop` of `stopped`.
    pub(super) fn has_any(&self, text: &str) -> bool {
        parts(text).any(|word| {
            let word = stem(&word);
            let begins = |known: &String| known.len() > 3 && word.starts_with(known.as_str());
            self.0.contains(&word) || self.0.iter().any(begins)
        })
    }
}

/// The words of a text in lowercase; joined names are split.
pub(super) fn parts(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric())
        .flat_map(split_case)
}

/// `maxResults` as `max` and `results`; `URLs` stays.
fn split_case(word: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut was_lower = false;
    for c in word.chars() {
        if parts.is_empty() || (was_lower && c.is_uppercase()) {
            parts.push(String::new());
        }
        was_lower = c.is_lowercase();
        if let Some(part) = parts.last_mut() {
            part.extend(c.to_lowercase());
        }
    }
    parts
}

/// A word without the commonest endings.
fn stem(word: &str) -> String {
    let lower = word.to_lowercase();
    let cut = |end: &str| lower.strip_suffix(end).filter(|stem| stem.len() >= 3);
    let stem = ENDINGS.iter().find_map(|end| cut(end)).unwrap_or(&lower);
    stem.trim_end_matches(['e', 'y', 'i']).to_owned()
}

/// More than a first sentence and the names around an argument have.
const MAX_WORDS: usize = 500;
const ENDINGS: [&str; 5] = ["ing", "ies", "ed", "es", "s"];
