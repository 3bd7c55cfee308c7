//! The ignored entries of a peer's settings, in a form that is safe to log.

use std::fmt;

/// The number of entries that are described; all are counted.
pub const MAX_DESCRIBED: usize = 16;

/// Characters of an entry that are shown, after escaping.
const MAX_SHOWN: usize = 64;

/// The entries of a peer's settings that had no effect, and why.
///
/// # Properties
///
/// Bounded, whatever the peer sends: every entry is counted, and the first [`MAX_DESCRIBED`] are described.
/// Descriptions are printable ASCII: a peer's text is escaped and truncated, so that it cannot forge a log line.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::Features;
/// use serde_json::json;
///
/// let (features, ignored) = Features::read(&json!({"features": ["agent", "format=\n", 7]}));
/// assert!(features.agent());
/// assert_eq!(ignored.count(), 2);
/// assert_eq!(
///     ignored.to_string(),
///     r#"`format=\n`: a value holds only printable ASCII without `=`, `!`, `,`, `;`, not '\n'; `7`: not a string"#,
/// );
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Ignored {
    entries: Vec<Entry>,
    count: usize,
}

/// One entry that had no effect.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The entry or its key, escaped and truncated.
    pub item: String,
    /// Why it had no effect.
    pub reason: Reason,
}

/// Why an entry had no effect.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// An object is required.
    #[error("not an object")]
    NotAnObject,
    /// An array is required.
    #[error("not an array")]
    NotAnArray,
    /// A string is required.
    #[error("not a string")]
    NotAString,
    /// A string or an array of strings is required.
    #[error("not a string or an array of strings")]
    NotStrings,
    /// The entry is the empty string.
    #[error("empty")]
    Empty,
    /// The entry is longer than the limit, in bytes.
    #[error("longer than {0} bytes")]
    TooLong(usize),
    /// The entry exceeds the maximum number of entries.
    #[error("more than {0} entries")]
    TooMany(usize),
    /// A version of the extension that changes its meaning.
    #[error("not a version 1.x, so the extension counts as undeclared")]
    OtherMajor,
    /// The version is malformed.
    #[error("not a version, so 1.0 is assumed")]
    NotAVersion,
    /// An entry in a server's variants that is not a variant.
    #[error(
        "not a variant: it needs an `id` and a `description`, and valid values in other members"
    )]
    NotAVariant,
    /// A feature tag outside the grammar.
    #[error(transparent)]
    Tag(#[from] crate::feature_tag::TagError),
}

impl Ignored {
    /// Counts an entry, and describes it if there is room.
    pub fn add(&mut self, what: &str, reason: Reason) {
        self.count += 1;
        if self.entries.len() < MAX_DESCRIBED {
            let what = for_display(what);
            self.entries.push(Entry { item: what, reason });
        }
    }

    /// Adds the entries of `other`.
    pub fn append(&mut self, other: Self) {
        self.count += other.count;
        let room = MAX_DESCRIBED - self.entries.len();
        self.entries.extend(other.entries.into_iter().take(room));
    }

    /// How many entries were ignored.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether nothing was ignored.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The first [`MAX_DESCRIBED`] entries.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, entry) in self.entries.iter().enumerate() {
            let separator = if at > 0 { "; " } else { "" };
            write!(f, "{separator}`{}`: {}", entry.item, entry.reason)?;
        }
        match self.count - self.entries.len() {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

/// `text` escaped to printable ASCII and truncated.
pub fn for_display(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let escaped = c.escape_default();
        if out.len() + escaped.len() > MAX_SHOWN {
            out.push_str("...");
            break;
        }
        out.extend(escaped);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CN-1: what is logged is escaped and cut.
    #[track_caller]
    fn shows(text: &str, expected: &str) {
        assert_eq!(for_display(text), expected);
    }

    #[test]
    fn what_is_printable_is_shown_as_it_is() {
        shows("format==json", "format==json");
        shows("", "");
    }

    #[test]
    fn what_could_forge_a_log_line_is_escaped() {
        shows("a\n\u{1b}[31mERROR", r"a\n\u{1b}[31mERROR");
        shows("\u{202e}evil", r"\u{202e}evil");
    }

    #[test]
    fn what_is_long_is_cut_between_characters() {
        shows(&"a".repeat(64), &"a".repeat(64));
        shows(&"a".repeat(65), &format!("{}...", "a".repeat(64)));
        let text = format!("{}\n{}", "a".repeat(63), "a".repeat(9));
        shows(&text, &format!("{}...", "a".repeat(63)));
    }

    /// EXT-5: everything is counted, and only so much described.
    #[test]
    fn the_first_sixteen_are_described() {
        let mut ignored = Ignored::default();
        for _ in 0..17 {
            ignored.add("x", Reason::NotAString);
        }
        assert_eq!(ignored.count(), 17);
        assert_eq!(ignored.entries().len(), MAX_DESCRIBED);
        assert!(
            ignored
                .to_string()
                .ends_with("`x`: not a string; and 1 more")
        );
        let mut all = ignored.clone();
        all.append(ignored);
        assert_eq!((all.count(), all.entries().len()), (34, MAX_DESCRIBED));
    }

    #[test]
    fn appended_entries_are_described_while_there_is_room() {
        let (mut one, mut other) = (Ignored::default(), Ignored::default());
        assert!(one.is_empty());
        one.add("a", Reason::Empty);
        other.add("b", Reason::TooLong(7));
        one.append(other);
        assert_eq!(one.to_string(), "`a`: empty; `b`: longer than 7 bytes");
        assert!(!one.is_empty());
    }
}
