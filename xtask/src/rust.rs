//! Rust source as tokens, without comments and tests: enough to find imports and definitions.

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
    let mut lexer = Lexer {
        text,
        at: 0,
        line: 1,
    };
    std::iter::from_fn(|| lexer.next()).collect()
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

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Lexer<'a> {
    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_blank();
        let (start, line) = (self.at, self.line);
        let first = self.left().chars().next()?;
        let length = if starts_word(first) {
            match self.prefixed_literal() {
                Some(length) => length,
                None => return Some(self.word(line)),
            }
        } else if first.is_ascii_digit() {
            word_length(self.left())
        } else if first == '"' {
            quoted_length(self.left(), '"')
        } else if first == '\'' {
            self.character_or_lifetime()
        } else if self.left().starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        self.advance(length);
        let text = &self.text[start..self.at];
        Some(Token { text, line })
    }

    fn left(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn advance(&mut self, length: usize) {
        let end = (self.at + length).min(self.text.len());
        let passed = &self.text.as_bytes()[self.at..end];
        self.line += passed.iter().filter(|byte| **byte == b'\n').count();
        self.at = end;
    }

    fn skip_blank(&mut self) {
        loop {
            let left = self.left();
            let length = if left.starts_with("//") {
                left.find('\n').unwrap_or(left.len())
            } else if left.starts_with("/*") {
                block_comment_length(left)
            } else {
                left.len() - left.trim_start().len()
            };
            if length == 0 {
                return;
            }
            self.advance(length);
        }
    }

    fn word(&mut self, line: usize) -> Token<'a> {
        let left = self.left();
        let raw = left.strip_prefix("r#");
        let is_raw = raw.is_some_and(|name| name.chars().next().is_some_and(starts_word));
        let prefix = if is_raw { 2 } else { 0 };
        let length = prefix + word_length(&left[prefix..]);
        self.advance(length);
        Token {
            text: &left[prefix..length],
            line,
        }
    }

    /// The length of a literal such as `r#"..."#` or `b'x'`.
    fn prefixed_literal(&self) -> Option<usize> {
        let left = self.left();
        let prefix = ["br", "cr", "r", "b", "c"]
            .into_iter()
            .find(|prefix| left.starts_with(prefix) && word_length(left) == prefix.len())?;
        let literal = &left[prefix.len()..];
        if prefix.ends_with('r') {
            let hashes = literal.len() - literal.trim_start_matches('#').len();
            let content = literal[hashes..].strip_prefix('"')?;
            let end = format!("\"{}", "#".repeat(hashes));
            let length = content
                .find(&end)
                .map_or(content.len(), |at| at + end.len());
            return Some(prefix.len() + hashes + 1 + length);
        }
        match literal.chars().next()? {
            quote @ ('"' | '\'') => Some(prefix.len() + quoted_length(literal, quote)),
            _ => None,
        }
    }

    fn character_or_lifetime(&self) -> usize {
        let left = self.left();
        let mut characters = left.chars().skip(1);
        let (first, second) = (characters.next(), characters.next());
        if first == Some('\\') || second == Some('\'') {
            quoted_length(left, '\'')
        } else {
            1 + word_length(&left[1..])
        }
    }
}

fn starts_word(character: char) -> bool {
    character.is_alphabetic() || character == '_'
}

fn word_length(text: &str) -> usize {
    text.find(|character: char| !character.is_alphanumeric() && character != '_')
        .unwrap_or(text.len())
}

/// The length of a literal up to its closing `quote`, backslashes respected.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        if is_escaped {
            is_escaped = false;
        } else if character == '\\' {
            is_escaped = true;
        } else if character == quote {
            return at + 1;
        }
    }
    text.len()
}

fn block_comment_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        if text.as_bytes()[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if text.as_bytes()[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
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
        reads("a // b\nc /* d /* e */ f */ g", &["a", "c", "g"]);
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
