//! What is wrong with the arguments of a call, in words that a model can act on.

use std::fmt;

/// One thing that is wrong with the arguments of a call.
///
/// # Properties
///
/// At most 800 characters, whatever schema and arguments hold. The names are those that the view lists, or those
/// that the caller wrote in another spelling; what the view fixes is not told.
///
/// # Examples
///
/// ```
/// use crate::{Dialect, PreparedTool, Style, ToolOverride};
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
pub enum Fault {
    /// The arguments are no object.
    NoObject,
    /// The tool or prompt has no such argument in this view.
    UnknownArgument {
        /// Its name.
        name: String,
        /// One that there is.
        meant: Option<String>,
    },
    /// Another reader takes the argument for one that the server's schema spells differently.
    Lookalike {
        /// Its name.
        name: String,
        /// The name in the server's schema.
        imitated: String,
    },
    /// A key is given twice, in the arguments or in a value that is rewritten.
    RepeatedKey {
        /// The key.
        key: String,
    },
    /// The view requires an argument that is not given.
    MissingArgument {
        /// Its name.
        name: String,
    },
    /// A value is not what the server takes.
    Value {
        /// A JSON pointer to it; empty for the arguments as a whole.
        path: String,
        /// What the server takes.
        expected: String,
        /// What was given, cut.
        given: String,
    },
    /// A value that the view fixes or fills in is not what the server takes.
    Fixed,
    /// The arguments hold more values than are translated from a dialect.
    TooManyValues {
        /// How many may be there.
        most: usize,
    },
    /// There are more faults than are told.
    More(usize),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoObject => f.write_str("the arguments are no JSON object"),
            Self::UnknownArgument { name, meant: None } => {
                write!(f, "there is no argument `{name}`; leave it out")
            }
            Self::UnknownArgument {
                name,
                meant: Some(meant),
            } => write!(f, "there is no argument `{name}`; did you mean `{meant}`?"),
            Self::Lookalike { name, imitated } => write!(
                f,
                "there is no argument {name:?}, which some servers read as {imitated:?}; leave it out"
            ),
            Self::RepeatedKey { key } => {
                write!(f, "the key {key:?} is given twice; give it once")
            }
            Self::MissingArgument { name } => write!(f, "the argument `{name}` is missing"),
            Self::Value {
                path,
                expected,
                given,
            } if path.is_empty() => write!(f, "expected {expected}, got {given}"),
            Self::Value {
                path,
                expected,
                given,
            } => write!(f, "`{path}`: expected {expected}, got {given}"),
            Self::Fixed => f.write_str(
                "a value that is fixed here is not what the server takes; only the operator can change it",
            ),
            Self::TooManyValues { most } => {
                write!(f, "the arguments hold more than {most} values; give fewer")
            }
            Self::More(count) => write!(f, "and {count} more"),
        }
    }
}

impl std::error::Error for Fault {}

/// The beginning of `text`, `…` where there is more.
pub(super) fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The one of `known` that is spelled most like `written`, if any is near.
pub(super) fn nearest<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = known
        .take(MOST_COMPARED)
        .map(|name| (distance(written, name), name))
        .filter(|(distance, name)| *distance <= name.len().min(written.len()) / 3);
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The edit distance; `-` and `_` count as the same, and so do upper and lower case. [`usize::MAX`] if a text is long.
fn distance(one: &str, other: &str) -> usize {
    if one.len() > LONGEST_COMPARED || other.len() > LONGEST_COMPARED {
        return usize::MAX;
    }
    let plain = |text: &str| text.to_ascii_lowercase().replace('-', "_");
    strsim::levenshtein(&plain(one), &plain(other))
}

const LONGEST_COMPARED: usize = 64;
const MOST_COMPARED: usize = 2000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_meant() {
        #[track_caller]
        fn means(written: &str, meant: Option<&str>) {
            let known = ["query", "per_page", "sort", "x"];
            assert_eq!(nearest(written, known.into_iter()), meant, "by {written}");
        }
        means("qeury", None);
        means("querry", Some("query"));
        means("perPage", Some("per_page"));
        means("per-page", Some("per_page"));
        means("y", None);
        means("X", Some("x"));
        means("title", None);
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
        assert_eq!(cut("äöü", 2), "äö…");
        assert_eq!(cut("äöü", 3), "äöü");
    }
}
