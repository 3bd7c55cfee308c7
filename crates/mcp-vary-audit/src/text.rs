//! Text of a record, bounded in length.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary::text::is_invisible;
use serde::{Serialize, Serializer};

/// The maximum length of a text in a line, in bytes, escapes included.
pub const MAX_TEXT: usize = 256;

/// The maximum length of a name or URI of a target in a line, in bytes, escapes included.
pub const MAX_LONG_TEXT: usize = 1024;

/// A short text of a record.
pub type Text = BoundedText<MAX_TEXT>;

/// The name or URI of a target.
pub type LongText = BoundedText<MAX_LONG_TEXT>;

/// Text of a record, cut if it is too long.
///
/// # Properties
///
/// In a line, the text takes at most `MAX` bytes, escapes included. What is cut ends in `…[+n]`, where n is the number of
/// bytes left out. Shared text that is short enough is not copied.
///
/// # Examples
///
/// ```
/// use mcp_vary_audit::Text;
///
/// assert_eq!(Text::new("git_push").as_str(), "git_push");
/// assert!(Text::new("a".repeat(1000)).as_str().ends_with("aaa…[+758]"));
///
/// // Characters that must be escaped count as their escapes, so that a line stays bounded.
/// assert_eq!(Text::new("\u{1b}".repeat(1000)).as_str().matches('\u{1b}').count(), 40);
/// ```
#[derive(Clone, Debug)]
pub struct BoundedText<const MAX: usize>(Stored);

#[derive(Clone, Debug)]
enum Stored {
    Static(&'static str),
    Shared(Arc<str>),
}

impl<const MAX: usize> BoundedText<MAX> {
    /// A copy of `text`.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(Stored::Shared(cut(text.as_ref(), MAX).into()))
    }

    /// A text that is shared, not copied, if it is short enough.
    pub fn shared(text: &Arc<str>) -> Self {
        match cut(text, MAX) {
            Cow::Borrowed(_) => Self(Stored::Shared(Arc::clone(text))),
            Cow::Owned(cut) => Self(Stored::Shared(cut.into())),
        }
    }

    /// A text of the program, such as the name of a method.
    pub fn from_static(text: &'static str) -> Self {
        match cut(text, MAX) {
            Cow::Borrowed(_) => Self(Stored::Static(text)),
            Cow::Owned(cut) => Self(Stored::Shared(cut.into())),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Stored::Static(text) => text,
            Stored::Shared(text) => text,
        }
    }
}

/// Texts that are shared are found to be equal without being read.
impl<const MAX: usize> PartialEq for BoundedText<MAX> {
    fn eq(&self, other: &Self) -> bool {
        let (text, other) = (self.as_str(), other.as_str());
        std::ptr::eq(text, other) || text == other
    }
}

impl<const MAX: usize> Eq for BoundedText<MAX> {}

impl<const MAX: usize> Serialize for BoundedText<MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// `text`, or as much of it as takes at most `limit` bytes in a line together with the note of what is missing.
pub(crate) fn cut(text: &str, limit: usize) -> Cow<'_, str> {
    // A byte takes at most six.
    if text.len() <= limit / 6 {
        return Cow::Borrowed(text);
    }
    let mut used = 0;
    let mut end = 0;
    for (at, c) in text.char_indices() {
        used += escaped_len(c);
        if used > limit {
            let missing = text.len() - end;
            let start = text.get(..end).unwrap_or_default();
            return Cow::Owned(format!("{start}…[+{missing}]"));
        }
        if used + MAX_NOTE <= limit {
            end = at + c.len_utf8();
        }
    }
    Cow::Borrowed(text)
}

/// The length of `…[+n]` for any n up to 10⁸: more than a message can have.
const MAX_NOTE: usize = 3 + 2 + 8 + 1;

/// The bytes that `c` takes in a line.
fn escaped_len(c: char) -> usize {
    match c {
        '"' | '\\' => 2,
        ' '..='~' => 1,
        c if is_invisible(c) => 6 * c.len_utf16(),
        c => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::escape::to_json;

    #[test]
    fn no_text_takes_more_than_its_limit_in_a_line() {
        for c in ['a', '"', '\u{1b}', 'ü', '世', '\u{202e}', '\u{e0041}', '🦀'] {
            for length in [1, 41, 42, 43, 200, 250, 255, 256, 257, 300, 1024, 100_000] {
                let text = c.to_string().repeat(length);
                let (short, long) = (Text::new(&text), LongText::new(&text));
                let quotes = 2;
                assert!(to_json(&short).len() <= MAX_TEXT + quotes, "{c:?} {length}");
                assert!(
                    to_json(&long).len() <= MAX_LONG_TEXT + quotes,
                    "{c:?} {length}"
                );
            }
        }
    }

    #[test]
    fn what_fits_is_not_cut() {
        for text in ["a".repeat(256), "ü".repeat(128), "\u{1b}".repeat(42)] {
            assert_eq!(Text::new(&text).as_str(), text);
            assert_eq!(Text::shared(&text.as_str().into()).as_str(), text);
        }
        assert_eq!(Text::new("a".repeat(257)).as_str().len(), 242 + 3 + 5);
    }

    #[test]
    fn shared_text_is_not_copied() {
        let name: Arc<str> = "claude-code".into();
        let text = Text::shared(&name);
        assert_eq!(Arc::strong_count(&name), 2);
        assert!(std::ptr::eq(text.as_str(), &*name));
        // Nor does it matter for whether they are equal.
        assert_eq!(text, Text::new("claude-code"));
        assert_eq!(text, Text::from_static("claude-code"));
        assert_ne!(text, Text::new("claude-cod"));
    }
}
