//! Compares `content` with `structuredContent`.

mod covers;
mod numbers;
mod structure_index;

use std::collections::BTreeMap;
use std::fmt;

pub(crate) use self::covers::{covers_all, restates};
use self::structure_index::StructureIndex;
use crate::ignored::for_display;
use crate::json::{Json, JsonError, Members, pointer};
use crate::shape::applied::{META_APPLIED, meta};
use crate::shape::content::{blocks, texts};
use crate::shape::repeat::{Relation, candidates, relations};
use crate::shape::tool_facts::ToolFacts;

/// A field is reported if it is this many times as large as the other.
pub const LARGER_RATIO: usize = 10;

/// A smaller field, in bytes, is never too large.
pub const MIN_LARGE: usize = 1024;

/// The maximum number of findings for one result.
pub const MAX_NAMED: usize = 16;

/// The number of texts that are compared.
const MAX_TEXTS: usize = 64;

/// The length of labels, keys and words that are compared.
const MAX_COMPARED: usize = 128;

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

/// A finding of the comparison; prints as a sentence.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Finding {
    /// A text contradicts the structured value.
    Contradiction {
        /// The position in the structured value, as a JSON pointer.
        pointer: String,
        /// What the text states, escaped and truncated.
        stated: String,
        /// The structured value at that position, escaped and truncated.
        value: String,
    },
    /// A text states something that the structured value does not contain.
    Added {
        /// What the text states, escaped and truncated.
        stated: String,
    },
    /// A field is missing.
    Missing(Field),
    /// This field is at least [`LARGER_RATIO`] times as large as the other.
    Larger {
        /// The large field.
        field: Field,
        /// The ratio, rounded down.
        times: usize,
    },
}

impl Finding {
    /// Whether the fields contradict each other.
    #[must_use]
    pub fn is_contradiction(&self) -> bool {
        matches!(self, Self::Contradiction { .. })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contradiction {
                pointer,
                stated,
                value: holds,
            } => write!(
                f,
                "`content` says `{stated}` where `structuredContent` has `{holds}` at `{pointer}`"
            ),
            Self::Added { stated } => write!(
                f,
                "`content` says `{stated}`, which `structuredContent` does not contain"
            ),
            Self::Missing(Field::Content) => f.write_str(
                "`structuredContent` has no `content` beside it; repeat the value there, at least as JSON text",
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

/// Compares `content` with `structuredContent` in `result`, the `result` member of a `tools/call` response.
///
/// No findings means that they are equivalent: "same information, different presentation".
///
/// # Properties
///
/// JSON texts are compared value by value. In prose, a labelled value (`Temperature: 9 °C` beside `"temperature_c":
/// 8`) is compared if the label identifies a single value; any other number is searched in the whole structured
/// value: rounded, grouped (`100,000`), as a percentage, as the length of a list, as a part of a date. `content` may
/// say less, but must not contradict. At most [`MAX_NAMED`] findings are reported. Errors are not compared, nor
/// texts that the client negotiated to be compact.
///
/// # Errors
///
/// When `result` is not a JSON object, its `content` is not an array, or its structured value nests too deep.
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
///     ["`content` says `9` where `structuredContent` has `8.2` at `/temperature_c`"],
/// );
///
/// // A number without a label should still be in the structured value.
/// assert_eq!(
///     findings("It is 8 °C in Bern and feels like 5."),
///     ["`content` says `5`, which `structuredContent` does not contain"],
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
        // A compact text was rendered from the value.
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

/// Reports a field that is far larger than the other; both must be nonempty.
fn larger(content: usize, structured: usize) -> Option<Finding> {
    let (large, small) = (content.max(structured), content.min(structured));
    let field = if large == content {
        Field::Content
    } else {
        Field::StructuredContent
    };
    let times = large.checked_div(small)?;
    (large >= MIN_LARGE && times >= LARGER_RATIO).then_some(Finding::Larger { field, times })
}

fn compare_texts(value: &Json<'_>, texts: &[&str], findings: &mut Vec<Finding>) {
    let relations = relations(value, texts);
    let mut contradictions = Findings::default();
    let mut held = None;
    for (text, relation) in texts.iter().zip(relations).take(MAX_TEXTS) {
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
                contradictions.compare(document, part, &path_to(value, part));
            }
            _ => held
                .get_or_insert_with(|| StructureIndex::of(value))
                .compare(text, &mut contradictions),
        }
    }
    findings.extend(contradictions.findings);
}

/// The path from `value` to `part`, one of its candidates.
fn path_to(value: &Json<'_>, part: &Json<'_>) -> String {
    let members = value.as_object().unwrap_or_default();
    let key = members
        .iter()
        .find(|(_, member)| std::ptr::eq(member, part));
    key.map(|(key, _)| step("", key)).unwrap_or_default()
}

/// The findings so far.
#[derive(Default)]
struct Findings {
    findings: Vec<Finding>,
}

impl Findings {
    fn is_full(&self) -> bool {
        self.findings.len() >= MAX_NAMED
    }

    fn add(&mut self, finding: Finding) {
        if !self.is_full() && !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    fn contradict(&mut self, pointer: &str, stated: &str, holds: &str) {
        self.add(Finding::Contradiction {
            pointer: for_display(pointer),
            stated: for_display(stated),
            value: for_display(holds),
        });
    }

    /// Compares a JSON text with the structured value at `path`.
    fn compare(&mut self, stated: &Json<'_>, holds: &Json<'_>, path: &str) {
        if self.is_full() || stated.is_same(holds) {
            return;
        }
        match (stated, holds) {
            (Json::Object(members), Json::Object(holds)) => {
                let holds: BTreeMap<&str, _> = holds.iter().map(|(k, v)| (k.as_ref(), v)).collect();
                for (key, value) in members {
                    let path = step(path, key);
                    match holds.get(key.as_ref()) {
                        Some(holds) => self.compare(value, holds, &path),
                        None => self.add(Finding::Added {
                            stated: for_display(&path),
                        }),
                    }
                }
            }
            // A summary may list fewer elements.
            (Json::Array(stated), Json::Array(holds)) if stated.len() < holds.len() => {}
            (Json::Array(stated), Json::Array(holds)) if stated.len() == holds.len() => {
                for (at, (stated, holds)) in stated.iter().zip(holds).enumerate() {
                    self.compare(stated, holds, &step(path, &at.to_string()));
                }
            }
            (stated, holds) => {
                self.contradict(path, &plain(stated), &plain(holds));
            }
        }
    }
}

/// A pointer one step further, truncated: a peer's keys may be very long.
fn step(parent: &str, token: &str) -> String {
    if parent.len() > MAX_COMPARED {
        return parent.to_owned();
    }
    let token: String = token.chars().take(MAX_COMPARED).collect();
    pointer(parent, &token)
}

/// A scalar as text.
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
