//! Reads a JSON text in one pass.

use std::borrow::Cow;

use super::error::JsonError;
use super::key::duplicate_key;
use super::skip::MAX_DEPTH;
use super::strings::{next_special, string_end, unquoted};

/// The kind of a value by its first byte.
pub(super) enum Start {
    Object,
    Array,
    String,
    Number,
    Word(&'static str),
}

pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    /// The kind of the next value, in `depth` containers.
    pub(super) fn start(&mut self, depth: usize) -> Result<Start, JsonError> {
        self.space();
        Ok(match self.peek() {
            Some(b'{' | b'[') if depth == MAX_DEPTH => return Err(self.error("nested too deep")),
            Some(b'{') => Start::Object,
            Some(b'[') => Start::Array,
            Some(b'"') => Start::String,
            Some(b'-' | b'0'..=b'9') => Start::Number,
            Some(b't') => Start::Word("true"),
            Some(b'f') => Start::Word("false"),
            Some(b'n') => Start::Word("null"),
            Some(_) => return Err(self.error("no value starts like this")),
            None => return Err(self.error("the text ends before its value")),
        })
    }

    /// Enters a container; returns whether it is nonempty.
    pub(super) fn opens(&mut self, end: u8) -> bool {
        self.at += 1;
        self.space();
        !self.eat(end)
    }

    /// Whether the container continues after a comma; false at its `end`.
    pub(super) fn goes_on(&mut self, end: u8) -> Result<bool, JsonError> {
        self.space();
        if self.eat(b',') {
            return Ok(true);
        }
        if self.eat(end) {
            return Ok(false);
        }
        Err(self.error(match end {
            b'}' => "expected `,` or `}`",
            _ => "expected `,` or `]`",
        }))
    }

    /// A key and its colon.
    pub(super) fn key(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.space();
        if self.peek() != Some(b'"') {
            return Err(self.error("expected a key"));
        }
        let key = self.string()?;
        self.space();
        if !self.eat(b':') {
            return Err(self.error("expected `:`"));
        }
        Ok(key)
    }

    /// Checks that the keys of an object are unique.
    pub(super) fn unique<V>(&self, members: &[(Cow<'_, str>, V)]) -> Result<(), JsonError> {
        match duplicate_key(members) {
            Some(key) => Err(JsonError::duplicate_key_error(key).at(self.at)),
            None => Ok(()),
        }
    }

    /// The text of a string, borrowed if it has no escapes.
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let special = next_special(bytes, start + 1);
        if bytes.get(special) == Some(&b'"') {
            self.at = special + 1;
            return Ok(Cow::Borrowed(&self.text[start + 1..special]));
        }
        let Some(end) = string_end(bytes, special) else {
            return Err(self.string_error());
        };
        self.at = end;
        let text = unquoted(&self.text[start..end]);
        text.ok_or_else(|| self.error(INVALID_STRING))
    }

    /// Why the string at the current position is invalid; the position is then that of the error.
    fn string_error(&mut self) -> JsonError {
        let bytes = self.text.as_bytes();
        let mut end = self.at + 1;
        loop {
            end = next_special(bytes, end);
            match bytes.get(end) {
                None => return self.error("the text ends inside a string"),
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
            }
        }
        self.at = end + 1;
        self.error(INVALID_STRING)
    }

    /// A number as written.
    pub(super) fn number(&mut self) -> Result<&'a str, JsonError> {
        let start = self.at;
        self.eat(b'-');
        if !self.eat(b'0') && self.digits() == 0 {
            return Err(self.error("expected a digit"));
        }
        if self.eat(b'.') && self.digits() == 0 {
            return Err(self.error("expected a digit after the point"));
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _ = self.eat(b'+') || self.eat(b'-');
            if self.digits() == 0 {
                return Err(self.error("expected a digit in the exponent"));
            }
        }
        Ok(&self.text[start..self.at])
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    pub(super) fn word(&mut self, word: &'static str) -> Result<&'static str, JsonError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.error("no value starts like this"));
        }
        self.at += word.len();
        Ok(word)
    }

    /// Checks that only white space follows.
    pub(super) fn end(&mut self) -> Result<(), JsonError> {
        self.space();
        if self.at < self.text.len() {
            return Err(self.error("text after the value"));
        }
        Ok(())
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    pub(super) fn error(&self, what: &str) -> JsonError {
        JsonError::new(what).at(self.at)
    }
}

const INVALID_STRING: &str = "a string holds an invalid escape or control character";
