//! Compact JSON: without white space between tokens, and with strings in their shortest form.

use std::borrow::Cow;

use super::error::JsonError;
use super::key::duplicate_key;
use super::read::{Reader, Start};
use super::skip::{MAX_DEPTH, number, word};
use super::strings::{next_special, write_string};

/// `text` as compact JSON: the same as [`Json::parse`](super::Json::parse) and [`Json::to_json`](super::Json::to_json), without a tree.
///
/// # Errors
///
/// Those of [`Json::parse`](super::Json::parse).
///
/// # Examples
///
/// ```
/// use mcp_vary_json::compact;
///
/// assert_eq!(compact(r#" {"b": 1.10, "a": [ ]} "#)?, r#"{"b":1.10,"a":[]}"#);
///
/// // Unnecessary escapes are removed.
/// assert_eq!(compact(r#""\u00e9\/""#)?, r#""é/""#);
/// # Ok::<(), mcp_vary_json::JsonError>(())
/// ```
pub fn compact(text: &str) -> Result<String, JsonError> {
    let mut copy = CompactWriter {
        reader: Reader { text, at: 0 },
        out: String::with_capacity(text.len()),
        keys: Vec::new(),
    };
    copy.value(0)?;
    copy.reader.end()?;
    Ok(copy.out)
}

/// Writes a value as compact JSON.
struct CompactWriter<'a> {
    reader: Reader<'a>,
    out: String,
    /// The keys of the open objects, innermost last.
    keys: Vec<(Cow<'a, str>, ())>,
}

impl CompactWriter<'_> {
    fn value(&mut self, depth: usize) -> Result<(), JsonError> {
        match self.reader.start(depth)? {
            Start::Object => self.object(depth),
            Start::Array => self.array(depth),
            Start::String => {
                let text = self.reader.string()?;
                write_text(&mut self.out, &text);
                Ok(())
            }
            Start::Number => {
                self.out.push_str(self.reader.number()?);
                Ok(())
            }
            Start::Word(word) => {
                self.out.push_str(self.reader.word(word)?);
                Ok(())
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<(), JsonError> {
        let first = self.keys.len();
        self.out.push('{');
        let mut is_open = self.reader.opens(b'}');
        while is_open {
            let key = self.reader.key()?;
            write_text(&mut self.out, &key);
            self.keys.push((key, ()));
            self.out.push(':');
            self.value(depth + 1)?;
            is_open = self.reader.goes_on(b'}')?;
            self.out.push_str(if is_open { "," } else { "" });
        }
        self.reader.unique(&self.keys[first..])?;
        self.keys.truncate(first);
        self.out.push('}');
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Result<(), JsonError> {
        self.out.push('[');
        let mut is_open = self.reader.opens(b']');
        while is_open {
            self.value(depth + 1)?;
            is_open = self.reader.goes_on(b']')?;
            self.out.push_str(if is_open { "," } else { "" });
        }
        self.out.push(']');
        Ok(())
    }
}

/// Borrowed text needs no escapes.
#[expect(clippy::ptr_arg, reason = "it depends on whether it is borrowed")]
fn write_text(out: &mut String, text: &Cow<'_, str>) {
    match text {
        Cow::Borrowed(text) => {
            out.push('"');
            out.push_str(text);
            out.push('"');
        }
        Cow::Owned(text) => write_string(out, text),
    }
}

/// `text` as compact JSON, like [`compact`]; borrowed if it is compact already.
///
/// # Errors
///
/// Those of [`Json::parse`](super::Json::parse).
///
/// # Examples
///
/// ```
/// use std::borrow::Cow;
/// use mcp_vary_json::compacted;
///
/// assert!(matches!(compacted(r#"{"a":[1.0,"\n"]}"#), Ok(Cow::Borrowed(_))));
/// assert_eq!(compacted(r#"{"a": 1}"#)?, r#"{"a":1}"#);
/// assert!(compacted(r#"{"a":1,"a":1}"#).is_err());
/// # Ok::<(), mcp_vary_json::JsonError>(())
/// ```
pub fn compacted(text: &str) -> Result<Cow<'_, str>, JsonError> {
    let mut check = CompactCheck {
        text,
        at: 0,
        keys: Vec::new(),
    };
    match check.value(0) {
        Some(()) if check.at == text.len() => Ok(Cow::Borrowed(text)),
        _ => compact(text).map(Cow::Owned),
    }
}

/// The end of the value at `at` in `text`, inside an object, if it is compact JSON without repeated keys.
pub(super) fn compact_end(text: &str, at: usize) -> Option<usize> {
    let mut check = CompactCheck {
        text,
        at,
        keys: Vec::new(),
    };
    check.value(1).map(|()| check.at)
}

/// Reads a value as long as it is compact JSON.
struct CompactCheck<'a> {
    text: &'a str,
    at: usize,
    /// The keys of the open objects, innermost last.
    keys: Vec<(Cow<'a, str>, ())>,
}

impl<'a> CompactCheck<'a> {
    fn value(&mut self, depth: usize) -> Option<()> {
        let bytes = self.text.as_bytes();
        self.at = match *bytes.get(self.at)? {
            b'{' if depth < MAX_DEPTH => return self.object(depth),
            b'[' if depth < MAX_DEPTH => return self.array(depth),
            b'"' => return self.string().map(drop),
            b'-' | b'0'..=b'9' => number(bytes, self.at)?,
            b't' => word(bytes, self.at, b"true")?,
            b'f' => word(bytes, self.at, b"false")?,
            b'n' => word(bytes, self.at, b"null")?,
            _ => return None,
        };
        Some(())
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        let first = self.keys.len();
        let mut is_open = self.opens(b'}');
        while is_open {
            let key = self.string()?;
            self.keys.push((Cow::Borrowed(key), ()));
            if !self.eat(b':') {
                return None;
            }
            self.value(depth + 1)?;
            is_open = self.goes_on(b'}')?;
        }
        // Compact strings are the same text only if they are written alike.
        let is_unique = duplicate_key(&self.keys[first..]).is_none();
        self.keys.truncate(first);
        is_unique.then_some(())
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        let mut is_open = self.opens(b']');
        while is_open {
            self.value(depth + 1)?;
            is_open = self.goes_on(b']')?;
        }
        Some(())
    }

    /// A string in its shortest form, as written; `None` also for an escape that few strings have.
    fn string(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        if bytes.get(start) != Some(&b'"') {
            return None;
        }
        let mut at = start + 1;
        loop {
            at = next_special(bytes, at);
            match *bytes.get(at)? {
                b'"' => break,
                b'\\' if matches!(bytes.get(at + 1)?, b'"' | b'\\' | b'n' | b'r' | b't') => at += 2,
                _ => return None,
            }
        }
        self.at = at + 1;
        Some(&self.text[start..self.at])
    }

    /// Enters a container; returns whether it is nonempty.
    fn opens(&mut self, end: u8) -> bool {
        self.at += 1;
        !self.eat(end)
    }

    /// Whether the container continues after a comma; false at its `end`.
    fn goes_on(&mut self, end: u8) -> Option<bool> {
        if self.eat(b',') {
            return Some(true);
        }
        self.eat(end).then_some(false)
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.text.as_bytes().get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compact_is_not_copied() {
        for text in [
            "1",
            "-1.50e+3",
            "true",
            "false",
            "null",
            r#""""#,
            r#""a\\b\"\n\r\té""#,
            "[]",
            "{}",
            r#"{"a":[1,{"b":[[]]},"c"],"b":{},"\n":0}"#,
        ] {
            assert!(
                matches!(compacted(text), Ok(Cow::Borrowed(same)) if same == text),
                "{text}"
            );
            assert_eq!(compact(text).as_deref(), Ok(text));
        }
    }

    #[test]
    fn everything_else_is_what_compact_makes_of_it() {
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let deep = [deep(MAX_DEPTH), deep(MAX_DEPTH + 1)];
        for text in [
            "",
            " 1",
            "1 ",
            "01",
            "[1, 2]",
            "[ ]",
            "{ }",
            "[1,]",
            "[1",
            "{\"a\"}",
            "{\"a\": 1}",
            "{\"a\":1 }",
            "{a:1}",
            "{\"a\":1,\"a\":2}",
            "{\"a\":{\"b\":1},\"b\":1}",
            r#""\/""#,
            r#""\u0061""#,
            r#""\u0001""#,
            r#""\b""#,
            "\"\n\"",
            "\"a",
            "tru",
            "nul",
            "[1}",
            "{\"a\":1]",
            "1 2",
            "{\"\\u0061\":1,\"a\":2}",
        ]
        .into_iter()
        .chain(deep.iter().map(String::as_str))
        {
            let found = compacted(text).map(Cow::into_owned);
            assert_eq!(found, compact(text), "{text}");
        }
    }
}
