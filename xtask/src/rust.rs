//! Rust source as tokens, without comments and tests: enough to find imports and definitions.

use std::sync::LazyLock;

use regex::Regex;

/// A word, a literal, `::`, or one other character of Rust source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Token<'a> {
    /// The text; a raw identifier is without its `r#`, a string literal has its quotes.
    pub(crate) text: &'a str,
    /// The line, counted from 1.
    pub(crate) line: usize,
}

impl<'a> Token<'a> {
    pub(crate) fn is_word(&self) -> bool {
        self.text.chars().next().is_some_and(starts_word)
    }

    /// The content of a plain string literal.
    pub(crate) fn as_string(&self) -> Option<&'a str> {
        self.text.strip_prefix('"')?.strip_suffix('"')
    }
}

/// The tokens of `text`, without items behind `#[cfg(test)]`.
pub(crate) fn production_tokens(text: &str) -> Vec<Token<'_>> {
    without_tests(&tokens(text))
}

/// The tokens of `text`.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut line = 1;
    let mut tokens = Vec::new();
    for found in LEXER.find_iter(text) {
        let text = found.as_str();
        let is_blank = text.starts_with(char::is_whitespace);
        if !is_blank && !text.starts_with("//") && !text.starts_with("/*") {
            let name = text.strip_prefix("r#");
            let name = name.filter(|name| name.chars().next().is_some_and(starts_word));
            let text = name.unwrap_or(text);
            tokens.push(Token { text, line });
        }
        line += text.matches('\n').count();
    }
    tokens
}

/// Blanks and comments, string literals, characters, lifetimes, words, and what is left.
static LEXER: LazyLock<Regex> = LazyLock::new(|| {
    let kinds = [
        r"\s+|//.*|(?s:/\*.*?\*/)",
        r##"[bc]?r"[^"]*"|[bc]?r#"(?s:.*?)"#"##,
        r####"[bc]?r###"(?s:.*?)"###"####,
        r####"[bc]?r##"(?s:.*?)"##"####,
        r#"[bc]?"(?s:\\.|[^"\\])*""#,
        r"b?'(?s:\\.[^']*|[^'\\])'|'\w+",
        r"(?:r#)?\w+|::|(?s:.)",
    ];
    Regex::new(&kinds.join("|")).expect("it is tested")
});

fn starts_word(character: char) -> bool {
    character.is_alphabetic() || character == '_'
}

/// The text of the token at `index`, empty past the end.
pub(crate) fn text_at<'a>(tokens: &[Token<'a>], index: usize) -> &'a str {
    tokens.get(index).map_or("", |token| token.text)
}

/// The index after the bracket that closes the one at `open`, or the end.
pub(crate) fn after_brackets(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return index + 1;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

fn without_tests<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut left = Vec::with_capacity(tokens.len());
    let mut index = 0;
    while index < tokens.len() {
        if is_test_attribute(tokens, index) {
            index = after_item(tokens, index);
        } else {
            left.push(tokens[index]);
            index += 1;
        }
    }
    left
}

fn is_test_attribute(tokens: &[Token<'_>], index: usize) -> bool {
    let expected = ["#", "[", "cfg", "(", "test", ")", "]"];
    let found = tokens[index..].iter().map(|token| token.text);
    found.take(expected.len()).eq(expected)
}

/// The index after the item whose first attribute is at `index`.
fn after_item(tokens: &[Token<'_>], mut index: usize) -> usize {
    while text_at(tokens, index) == "#" {
        index = after_brackets(tokens, index + 1);
    }
    while index < tokens.len() {
        match tokens[index].text {
            ";" => return index + 1,
            "{" => return after_brackets(tokens, index),
            "(" | "[" => index = after_brackets(tokens, index),
            _ => index += 1,
        }
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(text: &str, expected: &[&str]) {
        let found: Vec<&str> = tokens(text).iter().map(|token| token.text).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn comments_are_left_out() {
        reads("a // b\nc /* d // e\n f */ g", &["a", "c", "g"]);
        reads("/// doc \"\nx", &["x"]);
    }

    #[test]
    fn literals_are_one_token() {
        reads(
            r#"f("a \" b", 'x')"#,
            &["f", "(", r#""a \" b""#, ",", "'x'", ")"],
        );
        reads(r##"r#"a "b" c"# d"##, &[r##"r#"a "b" c"#"##, "d"]);
        reads(r"b'\'' br'", &[r"b'\''", "br", "'"]);
        reads(r#"b"x" c"y" z"#, &[r#"b"x""#, r#"c"y""#, "z"]);
    }

    #[test]
    fn lifetimes_are_not_characters() {
        reads("&'a str, '{'", &["&", "'a", "str", ",", "'{'"]);
    }

    #[test]
    fn raw_identifiers_lose_their_prefix() {
        reads("r#type::r", &["type", "::", "r"]);
    }

    #[test]
    fn lines_are_counted_in_strings_and_comments() {
        let lines: Vec<usize> = tokens("a\n/*\n*/ \"\n\" b\nc")
            .iter()
            .map(|token| token.line)
            .collect();
        assert_eq!(lines, [1, 3, 4, 5]);
    }

    #[test]
    fn tests_are_left_out() {
        let text =
            "a; #[cfg(test)] #[path = \"x\"] mod tests; b; #[cfg(test)] mod t { fn f() {} } c";
        let found: Vec<&str> = production_tokens(text)
            .iter()
            .map(|token| token.text)
            .collect();
        assert_eq!(found, ["a", ";", "b", ";", "c"]);
    }
}
