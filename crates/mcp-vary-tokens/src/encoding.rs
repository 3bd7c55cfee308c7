//! How a text becomes tokens: a pattern cuts it into pieces, and each piece is merged from bytes to tokens.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use regex::Regex;

use crate::table::Table;

/// A byte pair encoding.
#[derive(Debug)]
pub(crate) struct Encoding {
    table: Table,
    pattern: Regex,
}

impl Encoding {
    pub(crate) fn o200k() -> Self {
        Self {
            table: Table::new(O200K, O200K_TOKENS),
            pattern: Regex::new(O200K_PATTERN).expect("the pattern is a constant"),
        }
    }

    pub(crate) fn count(&self, text: &str) -> usize {
        let mut tokens = 0;
        let mut position = 0;
        while let Some(found) = self.pattern.find_at(text, position) {
            let piece = without_last_space(found.as_str(), found.end() == text.len());
            tokens += match self.table.rank(piece.as_bytes()) {
                Some(_) => 1,
                None => self.merge(piece.as_bytes()),
            };
            position = found.start() + piece.len();
        }
        tokens
    }

    /// The number of tokens of a piece that is not a token itself. Of all neighbours that together are a token, those of the lowest rank are merged
    /// first, the leftmost of them first, until none are left. Each byte is a token.
    fn merge(&self, piece: &[u8]) -> usize {
        let mut parts = Parts::of(piece.len());
        let mut merges = BinaryHeap::with_capacity(piece.len());
        let candidate = |start: usize, end: usize| {
            let rank = self.table.rank(&piece[start..end])?;
            Some(Reverse((rank, start, end)))
        };
        merges.extend((1..piece.len()).filter_map(|middle| candidate(middle - 1, middle + 1)));
        while let Some(Reverse((_, start, end))) = merges.pop() {
            if parts.merge(start, end) {
                merges.extend(parts.end_of(end).and_then(|next| candidate(start, next)));
                merges.extend(
                    parts
                        .before(start)
                        .and_then(|before| candidate(before, end)),
                );
            }
        }
        parts.number
    }
}

/// The parts of a piece, in their order. A part is named by the position where it starts.
struct Parts {
    number: usize,
    /// Where the part that starts at this position ends. [`usize::MAX`] if none starts here.
    ends: Vec<usize>,
    /// Where the part starts that ends at this position.
    starts: Vec<usize>,
}

impl Parts {
    /// Parts of one byte each.
    fn of(length: usize) -> Self {
        Self {
            number: length,
            ends: (1..=length).collect(),
            starts: (0..=length).map(|end| end.saturating_sub(1)).collect(),
        }
    }

    fn end_of(&self, start: usize) -> Option<usize> {
        self.ends.get(start).copied()
    }

    fn before(&self, start: usize) -> Option<usize> {
        (start > 0).then(|| self.starts[start])
    }

    /// Merges two parts that start at `start` and end at `end`, and says whether there are such.
    fn merge(&mut self, start: usize, end: usize) -> bool {
        let middle = self.ends[start];
        if self.end_of(middle) != Some(end) {
            return false;
        }
        self.ends[start] = end;
        self.ends[middle] = usize::MAX;
        self.starts[end] = start;
        self.number -= 1;
        true
    }
}

/// Several spaces before a word leave the last one to the word: `\s+(?!\S)` in the pattern of tiktoken, which the regular
/// expressions of this crate cannot say.
fn without_last_space(piece: &str, is_at_end: bool) -> &str {
    let last = piece.chars().next_back();
    let is_space = piece.chars().all(char::is_whitespace) && !piece.ends_with(['\r', '\n']);
    last.map(|last| &piece[..piece.len() - last.len_utf8()])
        .filter(|others| is_space && !is_at_end && !others.is_empty())
        .unwrap_or(piece)
}

/// The pattern of tiktoken without `\s+(?!\S)`, its last alternative but one; see [`without_last_space`].
const O200K_PATTERN: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"|\s*[\r\n]+",
    r"|\s+",
);

const O200K: &[u8] = include_bytes!("../data/o200k.deflate");

/// Those that are not special.
const O200K_TOKENS: usize = 199_998;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    #[test]
    fn tokens_are_those_of_tiktoken() {
        for text in [
            "",
            "hello world",
            "<|endoftext|>",
            "  a   b\n\n  c \r\n\t",
            "We'RE don'ſ  世界 １２３４ é e\u{301}",
            r#"{"name":"get_weather","inputSchema":{"type":"object","properties":{}}}"#,
            "https://example.org/a//b\n/c",
            "\u{85}\u{2003}\u{2003}x",
        ] {
            counts_as_tiktoken(text);
        }
    }

    /// The pattern of tiktoken fails on such texts, and it is asked for what is equal: one piece, cut where it may be.
    #[test]
    fn long_text_of_one_kind_is_counted() {
        for unit in [" ", "A", "世", "\n", "!"] {
            let text = format!("x{}y", unit.repeat(1_100_000 / unit.len()));
            assert!(crate::count(&text) > 1000, "{unit:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_the_tokens_of_tiktoken(text in ".{0,200}") {
            counts_as_tiktoken(&text);
        }

        #[test]
        fn any_text_of_spaces_letters_and_signs_has_the_tokens_of_tiktoken(text in "[ \t\r\naAéß'sS/1!{}\u{301}\u{2003}]{0,200}") {
            counts_as_tiktoken(&text);
        }

        #[test]
        fn long_words_have_the_tokens_of_tiktoken(text in "[a-cA-C]{90,400}") {
            counts_as_tiktoken(&text);
        }
    }

    #[track_caller]
    fn counts_as_tiktoken(text: &str) {
        let theirs = tiktoken_rs::o200k_base_singleton().count_ordinary(text);
        assert_eq!(crate::count(text), theirs, "{text:?}");
    }
}
