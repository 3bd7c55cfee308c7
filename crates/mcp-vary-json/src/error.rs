//! Errors about JSON text, for the person who wrote it.

use std::fmt::Write as _;

use serde_json::error::Category;

/// Why a text is not the expected JSON.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}", .0.message)]
// Every value that is read may be one instead, so it is as small as a pointer.
pub struct JsonError(Box<Details>);

#[derive(Clone, Debug, Eq, PartialEq)]
struct Details {
    message: String,
    duplicate: Option<String>,
}

impl JsonError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(Box::new(Details {
            message: message.into(),
            duplicate: None,
        }))
    }

    /// The error for a repeated `key`.
    #[must_use]
    pub fn duplicate_key_error(key: &str) -> Self {
        let cut: String = key.chars().take(64).collect();
        Self(Box::new(Details {
            message: format!("the key {} is given twice", quoted(&cut)),
            duplicate: Some(cut),
        }))
    }

    /// The same error, with the position of a byte.
    pub(crate) fn at(mut self, at: usize) -> Self {
        self.0.message += &format!(" at byte {at}");
        self
    }

    /// The repeated key, its first 64 characters, if that is the error.
    pub fn duplicate_key(&self) -> Option<&str> {
        self.0.duplicate.as_deref()
    }
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        let message = fault(&error);
        Self::new(match error.classify() {
            Category::Data => message,
            _ => format!("it is not JSON: {message}"),
        })
    }
}

/// What is wrong with a text, without the words of the parser.
///
/// # Examples
///
/// ```
/// use mcp_vary_json::fault;
///
/// let said = |text| fault(&serde_json::from_str::<Vec<u8>>(text).unwrap_err());
/// assert_eq!(said("[1,]"), "the mistake is at line 1, column 4");
/// assert_eq!(said("[1,"), "it ends too early");
/// assert_eq!(said("{}"), "it must be a sequence");
/// ```
pub fn fault(error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Eof => "it ends too early".to_owned(),
        Category::Data => {
            let text = error.to_string();
            let what = text
                .rsplit_once(" at line ")
                .map_or(&*text, |(what, _)| what);
            match what.split_once(", expected ") {
                Some((_, expected)) => format!("it must be {expected}"),
                None => what.to_owned(),
            }
        }
        Category::Syntax | Category::Io => {
            let line = error.line();
            let column = error.column();
            format!("the mistake is at line {line}, column {column}")
        }
    }
}

/// `text` in quotation marks, for a message. What a reader does not see is written as JSON escapes it.
///
/// # Examples
///
/// ```
/// use mcp_vary_json::quoted;
///
/// assert_eq!(quoted("größe"), "\"größe\"");
/// assert_eq!(quoted("a\u{200b}\n\""), "\"a\\u200b\\u000a\\\"\"");
/// ```
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            // The only other visible character that is escaped there.
            _ if c == '\'' || c.escape_debug().len() == 1 => out.push(c),
            _ => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    // Writing to a string does not fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
    out
}
