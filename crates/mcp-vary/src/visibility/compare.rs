//! Whether `content` and `structuredContent` say the same.

mod covers;
mod held;
mod numbers;

use std::collections::BTreeMap;
use std::fmt;

pub(crate) use self::covers::{retells, say_all};
use self::held::Held;
use crate::ignored::shown;
use crate::json::{Json, JsonError, Members, pointer};
use crate::shape::META_APPLIED;
use crate::shape::{Relation, ToolFacts, blocks, candidates, meta, relations, texts};

/// One field this many times as large as the other is worth a look.
pub const LARGER: usize = 10;

/// A field below so many bytes is never too large.
pub const SMALLEST_LARGE: usize = 1024;

/// At most so many values are named of one result.
pub const MAX_NAMED: usize = 16;

/// Beyond so many texts, none is compared.
const MOST_TEXTS: usize = 64;

/// Longer labels, keys and words name nothing that prose could say otherwise.
const LONGEST_COMPARED: usize = 128;

/// A field of a tool's result.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a result has these two fields")]
pub enum Field {
    /// What a model reads.
    Content,
    /// What a program reads.
    StructuredContent,
}

impl Field {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::StructuredContent => "structuredContent",
        }
    }
}

/// What a comparison of the two fields found; prints as a sentence.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Finding {
    /// A text says another value than the structure: a contradiction.
    Denied {
        /// Where the structure holds the value, as a JSON pointer.
        pointer: String,
        /// What the text says, escaped and cut.
        said: String,
        /// What the structure holds, escaped and cut.
        holds: String,
    },
    /// A text says what the structure nowhere holds.
    Added {
        /// What the text says, escaped and cut.
        said: String,
    },
    /// One of the fields is missing.
    Missing(Field),
    /// This field is at least [`LARGER`] times as large as the other.
    Larger {
        /// The large field.
        field: Field,
        /// How many times, rounded down.
        times: usize,
    },
}

impl Finding {
    /// Whether the fields contradict each other, rather than say more or less.
    #[must_use]
    pub fn is_contradiction(&self) -> bool {
        matches!(self, Self::Denied { .. })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied {
                pointer,
                said,
                holds,
            } => write!(
                f,
                "`content` says `{said}` where `structuredContent` holds `{holds}` at `{pointer}`"
            ),
            Self::Added { said } => write!(
                f,
                "`content` says `{said}`, which `structuredContent` nowhere holds"
            ),
            Self::Missing(Field::Content) => f.write_str(
                "`structuredContent` has no `content` beside it; say the same there, as JSON text at the least",
            ),
            Self::Missing(Field::StructuredContent) => f.write_str(
                "the tool declares an `outputSchema`, but the result has no `structuredContent`",
            ),
            Self::Larger { field, times } => {
                let field = field.as_str();
                write!(f, "`{field}` is {times} times as large as the other field")
            }
        }
    }
}

/// Compares `content` with `structuredContent` in `result`, the `result` member of a `tools/call` answer.
///
/// Nothing found means that they are equivalent: "same information, different presentation".
///
/// # Properties
///
/// A text that is JSON is compared value by value. Of prose, a labelled value
/// (`Temperature: 9 °C` beside `"temperature_c": 8`) is compared where the label names one value
/// only; any other number is looked for in the whole structure: rounded, grouped (`100,000`), as a
/// percentage, as the length of a list, as a part of a date. `content` may say less; it should not
/// say otherwise. At most [`MAX_NAMED`] values are named. Errors are not compared, nor texts
/// that the client negotiated to be compact.
///
/// # Errors
///
/// When `result` is no JSON object, its `content` no array, or its structured value nests too deep.
///
/// # Examples
///
/// ```
/// use mcp_vary::shape::ToolFacts;
/// use mcp_vary::visibility::compare;
///
/// let findings = |text: &str| {
///     let result = serde_json::json!({
///         "content": [{"type": "text", "text": text}],
///         "structuredContent": {"location": "Bern", "temperature_c": 8.2, "rain": 0.3},
///     });
///     let findings = compare(&result.to_string(), ToolFacts::default()).unwrap();
///     findings.iter().map(ToString::to_string).collect::<Vec<_>>()
/// };
/// assert!(findings("**Temperature**: 8 °C\n**Rain**: 30%").is_empty());
/// assert_eq!(
///     findings("**Temperature**: 9 °C"),
///     ["`content` says `9` where `structuredContent` holds `8.2` at `/temperature_c`"],
/// );
///
/// // A number without a label may be anything, but the structure should know it.
/// assert_eq!(
///     findings("It is 8 °C in Bern and feels like 5."),
///     ["`content` says `5`, which `structuredContent` nowhere holds"],
/// );
/// ```
pub fn compare(result: &str, tool: ToolFacts) -> Result<Vec<Finding>, JsonError> {
    let result = Members::parse(result)?;
    if result.get("isError") == Some("true") {
        return Ok(Vec::new());
    }
    let blocks = match result.get("content") {
        None | Some("null") => Vec::new(),
        Some(content) => blocks(content)?,
    };
    let written = result.get("structuredContent").filter(|v| *v != "null");
    let Some(written) = written else {
        let missing = Finding::Missing(Field::StructuredContent);
        return Ok(tool.output_schema.then_some(missing).into_iter().collect());
    };
    let mut findings = Vec::new();
    let meta = meta(&result)?;
    let applied = meta.get(META_APPLIED);
    if blocks.is_empty() && applied.is_none() {
        findings.push(Finding::Missing(Field::Content));
    }
    let verbosity = applied
        .and_then(|applied| Members::parse(applied).ok())
        .and_then(|applied| applied.get_str("verbosity"));
    if verbosity.as_deref() == Some("compact") {
        // Fewer words in another arrangement: it was made from the value.
        return Ok(findings);
    }
    let texts = texts(&blocks);
    let value = Json::parse(written)?;
    compare_texts(&value, &texts, &mut findings);
    findings.extend(larger(
        texts.iter().map(|text| text.len()).sum(),
        written.len(),
    ));
    Ok(findings)
}

/// Whether one of the fields, of which there is something each, is far too large.
fn larger(content: usize, structured: usize) -> Option<Finding> {
    let (large, small) = (content.max(structured), content.min(structured));
    let field = if large == content {
        Field::Content
    } else {
        Field::StructuredContent
    };
    let times = large.checked_div(small)?;
    (large >= SMALLEST_LARGE && times >= LARGER).then_some(Finding::Larger { field, times })
}

fn compare_texts(value: &Json<'_>, texts: &[&str], findings: &mut Vec<Finding>) {
    let relations = relations(value, texts);
    let mut said = Said::default();
    let mut held = None;
    for (text, relation) in texts.iter().zip(relations).take(MOST_TEXTS) {
        if relation != Relation::Author {
            continue;
        }
        let document = Json::parse(text).ok();
        let same_kind = |part: &&Json<'_>| {
            matches!(
                (&document, part),
                (Some(Json::Object(_)), Json::Object(_)) | (Some(Json::Array(_)), Json::Array(_))
            )
        };
        match (&document, candidates(value).find(same_kind)) {
            (Some(document), Some(part)) => {
                said.compare(document, part, &path_to(value, part));
            }
            _ => held
                .get_or_insert_with(|| Held::of(value))
                .compare(text, &mut said),
        }
    }
    findings.extend(said.findings);
}

/// The path from `value` to `part`, one of its candidates.
fn path_to(value: &Json<'_>, part: &Json<'_>) -> String {
    let members = value.as_object().unwrap_or_default();
    let key = members
        .iter()
        .find(|(_, member)| std::ptr::eq(member, part));
    key.map(|(key, _)| step("", key)).unwrap_or_default()
}

/// What texts say otherwise, or besides.
#[derive(Default)]
struct Said {
    findings: Vec<Finding>,
}

impl Said {
    fn is_full(&self) -> bool {
        self.findings.len() >= MAX_NAMED
    }

    fn add(&mut self, finding: Finding) {
        if !self.is_full() && !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    fn deny(&mut self, pointer: &str, said: &str, holds: &str) {
        self.add(Finding::Denied {
            pointer: shown(pointer),
            said: shown(said),
            holds: shown(holds),
        });
    }

    /// Compares what a JSON text says with what the structure holds at `path`.
    fn compare(&mut self, said: &Json<'_>, holds: &Json<'_>, path: &str) {
        if self.is_full() || said.is_same(holds) {
            return;
        }
        match (said, holds) {
            (Json::Object(members), Json::Object(holds)) => {
                let holds: BTreeMap<&str, _> = holds.iter().map(|(k, v)| (k.as_ref(), v)).collect();
                for (key, value) in members {
                    let path = step(path, key);
                    match holds.get(key.as_ref()) {
                        Some(holds) => self.compare(value, holds, &path),
                        None => self.add(Finding::Added { said: shown(&path) }),
                    }
                }
            }
            // A summary lists some of them.
            (Json::Array(said), Json::Array(holds)) if said.len() < holds.len() => {}
            (Json::Array(said), Json::Array(holds)) if said.len() == holds.len() => {
                for (at, (said, holds)) in said.iter().zip(holds).enumerate() {
                    self.compare(said, holds, &step(path, &at.to_string()));
                }
            }
            (said, holds) => {
                self.deny(path, &plain(said), &plain(holds));
            }
        }
    }
}

/// A pointer one step further, as far as it will be shown: a peer's keys may be endless.
fn step(parent: &str, token: &str) -> String {
    if parent.len() > LONGEST_COMPARED {
        return parent.to_owned();
    }
    let token: String = token.chars().take(LONGEST_COMPARED).collect();
    pointer(parent, &token)
}

/// A scalar as it reads.
fn plain(value: &Json<'_>) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_json(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn finds(content: usize, structured: usize, expected: Option<(Field, usize)>) {
        let expected = expected.map(|(field, times)| Finding::Larger { field, times });
        assert_eq!(larger(content, structured), expected);
    }

    /// TR-2: the larger field is named, from ten times and a kilobyte on.
    #[test]
    fn only_a_field_that_is_large_by_both_measures_is_named() {
        finds(1024, 102, Some((Field::Content, 10)));
        finds(102, 1024, Some((Field::StructuredContent, 10)));
        finds(1023, 1, None);
        finds(1024, 103, None);
        finds(103, 1024, None);
        finds(2000, 2000, None);
    }
}
