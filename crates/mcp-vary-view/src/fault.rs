//! Errors in the arguments of a call, in words that a model can act on.

use std::fmt;

use mcp_vary::json::quoted;

/// One error in the arguments of a call.
///
/// # Properties
///
/// Prints at most 800 characters, whatever the schema and the arguments. Names are those that the view lists, or
/// those that the caller wrote; values that the view fixes are not revealed.
///
/// # Examples
///
/// ```
/// use mcp_vary_view::{Dialect, PreparedTool, Style, ToolOverride};
///
/// let tool = r#"{"name": "wait", "inputSchema": {"type": "object", "properties": {
///     "seconds": {"type": "integer", "maximum": 60}
/// }}}"#;
/// let style = Style { dialect: Some(Dialect::Gemini), ..Style::default() };
/// let (tool, _) = PreparedTool::new(tool, &ToolOverride::default(), style)?;
/// let faults = tool.arguments(r#"{"seconds": 90}"#).unwrap_err();
/// assert_eq!(faults[0].to_string(), "`/seconds`: expected at most 60, got 90");
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ArgumentError {
    /// The arguments are not an object.
    NotAnObject,
    /// The tool or prompt has no such argument in this view.
    UnknownArgument {
        /// Its name.
        name: String,
        /// A similar name that exists.
        suggestion: Option<String>,
    },
    /// Another reader may take the argument for one that the server's schema spells differently.
    Lookalike {
        /// Its name.
        name: String,
        /// The name in the server's schema.
        known: String,
    },
    /// A key occurs twice, in the arguments or in a value that is decoded.
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A required argument is missing.
    MissingArgument {
        /// Its name.
        name: String,
    },
    /// The server does not accept a value.
    InvalidValue {
        /// A JSON pointer to the value; empty for the arguments as a whole.
        path: String,
        /// What the server accepts.
        expected: String,
        /// What was given, truncated.
        actual: String,
    },
    /// The server does not accept a value that the view fixes or fills in.
    InvalidFixedValue,
    /// The arguments have too many values to decode them from a dialect.
    TooManyValues {
        /// The maximum.
        limit: usize,
    },
    /// The number of further errors.
    More(usize),
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnObject => f.write_str("the arguments are not a JSON object"),
            Self::UnknownArgument { name, suggestion: None } => {
                write!(f, "there is no argument `{name}`; leave it out")
            }
            Self::UnknownArgument {
                name,
                suggestion: Some(meant),
            } => write!(f, "there is no argument `{name}`; did you mean `{meant}`?"),
            Self::Lookalike { name, known: imitated } => write!(
                f,
                "there is no argument {}, which some servers read as {}; leave it out",
                quoted(name),
                quoted(imitated)
            ),
            Self::DuplicateKey { key } => {
                write!(f, "the key {} is given twice; give it once", quoted(key))
            }
            Self::MissingArgument { name } => write!(f, "the argument `{name}` is missing"),
            Self::InvalidValue {
                path,
                expected,
                actual: given,
            } if path.is_empty() => write!(f, "expected {expected}, got {given}"),
            Self::InvalidValue {
                path,
                expected,
                actual: given,
            } => write!(f, "`{path}`: expected {expected}, got {given}"),
            Self::InvalidFixedValue => f.write_str(
                "the server does not accept a value that is fixed here; only the operator can change it",
            ),
            Self::TooManyValues { limit: most } => {
                write!(f, "the arguments have more than {most} values; give fewer")
            }
            Self::More(count) => write!(f, "and {count} more"),
        }
    }
}

impl std::error::Error for ArgumentError {}

/// The beginning of `text`, with `…` if it is longer.
pub(super) fn truncated(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The name in `known` that is most similar to `written`, if any is similar enough.
pub fn nearest<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = known
        .take(MAX_COMPARED)
        .map(|name| (distance(written, name), name))
        .filter(|(distance, name)| *distance <= written.len().min(name.len() + 1) / 3)
        .filter(|(_, name)| words_are_near(written, name));
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Whether names of as many words have no word that is another one: `close_issue` does not mean `delete_issue`.
fn words_are_near(one: &str, other: &str) -> bool {
    let parts = |text| str::split(text, ['_', '-', '.']);
    parts(one).count() != parts(other).count()
        || parts(one)
            .zip(parts(other))
            .all(|(a, b)| distance(a, b) <= a.len().min(b.len()).div_ceil(2))
}

/// The edit distance; `-` and `_` count as the same, and so do upper and lower case. [`usize::MAX`] if a text is long.
fn distance(one: &str, other: &str) -> usize {
    if one.len() > MAX_COMPARED_LENGTH || other.len() > MAX_COMPARED_LENGTH {
        return usize::MAX;
    }
    let plain = |text: &str| text.to_ascii_lowercase().replace('-', "_");
    strsim::levenshtein(&plain(one), &plain(other))
}

const MAX_COMPARED_LENGTH: usize = 64;
const MAX_COMPARED: usize = 2000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_meant() {
        #[track_caller]
        fn means(written: &str, meant: Option<&str>) {
            let known = [
                "query",
                "per_page",
                "sort",
                "x",
                "id",
                "tickets_delete_issue",
            ];
            assert_eq!(nearest(written, known.into_iter()), meant, "by {written}");
        }
        means("qeury", None);
        means("querry", Some("query"));
        means("idd", Some("id"));
        means("perPage", Some("per_page"));
        means("per-page", Some("per_page"));
        means("y", None);
        means("X", Some("x"));
        means("title", None);
        means("tickets_delet_isue", Some("tickets_delete_issue"));
        means("tickets_close_issue", None);
        means("", None);
    }

    #[test]
    fn letters_are_counted() {
        #[track_caller]
        fn apart(one: &str, other: &str, letters: usize) {
            assert_eq!(distance(one, other), letters);
            assert_eq!(distance(other, one), letters);
        }
        apart("", "abc", 3);
        apart("kitten", "sitting", 3);
        apart("per-page", "PER_PAGE", 0);
        let long = "a".repeat(65);
        apart(&long[..64], &long[..63], 1);
        apart(&long, "a", usize::MAX);
        apart(&long, &long, usize::MAX);
    }

    #[test]
    fn a_cut_says_so() {
        assert_eq!(truncated("äöü", 2), "äö…");
        assert_eq!(truncated("äöü", 3), "äöü");
    }
}
