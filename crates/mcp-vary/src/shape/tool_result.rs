//! The result of `tools/call`.

use std::borrow::Cow;

use super::applied::{Applied, META_APPLIED, Report, Shaped, meta};
use super::content::{Block, array, blocks, container, is_complete, text_block, texts, with_text};
use super::repeat::{Relation, relations, relations_to};
use crate::feature::{Features, Format};
use crate::json::{Json, JsonError, Members, compact};
use crate::render;

/// What the client's list says of the tool.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "callers spell out both facts")]
pub struct ToolFacts {
    /// The client was given an `outputSchema`, so it expects a `structuredContent`.
    pub output_schema: bool,
    /// The tool drives a user interface (`_meta.ui`), which reads `structuredContent`.
    pub ui: bool,
}

impl ToolFacts {
    /// What `tool`, an element of `tools/list`, says of itself; nothing where it cannot be read.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary::shape::ToolFacts;
    ///
    /// let facts = ToolFacts::listed(r#"{"name": "map", "_meta": {"ui": {"resourceUri": "ui://map"}}}"#);
    /// assert_eq!(facts, ToolFacts { output_schema: false, ui: true });
    ///
    /// // The key of MCP Apps before it had an object.
    /// assert!(ToolFacts::listed(r#"{"_meta": {"ui/resourceUri": "ui://map"}}"#).ui);
    /// ```
    #[must_use]
    pub fn listed(tool: &str) -> Self {
        let members = Members::parse(tool).unwrap_or_default();
        let meta = meta(&members).unwrap_or_default();
        Self {
            output_schema: members.contains("outputSchema"),
            ui: meta.contains("ui") || meta.contains("ui/resourceUri"),
        }
    }
}

/// What the operator and the client's protocol revision allow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers override some of the defaults"
)]
pub struct Policy<'a> {
    /// JSON always stands in `content` and in `structuredContent`: clients exist that read one only.
    pub always_both: bool,
    /// A text that is exactly one JSON document becomes the structured value under `format=json`.
    pub lift: bool,
    /// The client's revision allows a `structuredContent` that is no object (2026-07-28 on).
    pub non_object_structured: bool,
    /// The client declared the extension, so it is told what was applied.
    pub report: bool,
    /// The active variant, for the report.
    pub variant: Option<&'a str>,
}

impl Default for Policy<'_> {
    /// Lifts; everything else is off.
    fn default() -> Self {
        Self {
            always_both: false,
            lift: true,
            non_object_structured: false,
            report: false,
            variant: None,
        }
    }
}

/// Shapes `result`, the `result` member of a `tools/call` answer, for a client with `features`.
///
/// | chosen format | `content` | `structuredContent` |
/// |---|---|---|
/// | `agent` and `format=json`, both declared | no text | as written |
/// | `format=json`, `agent` alone | the value's JSON as one text | as written |
/// | `format=markdown`, `human` alone | rendered where it repeats the value | only for a schema or UI |
/// | `format=text` | the same without markup | only for a schema or UI |
///
/// # Properties
///
/// Images, audio, links, embedded resources and blocks of unknown types stay in place as the bytes
/// they were, and so do unknown members. The structured value is kept as written or left out, never
/// altered, and never left out where the client was given a schema. Text that says something of its
/// own is kept beside markdown, plain text, and the data of a user interface. Shaping a shaped result changes nothing.
///
/// Errors, input-required results, task handles and results that say that they were shaped are
/// unchanged, and so is everything for a client that declared nothing usable.
///
/// Total: what is no result of a tool, nests too deep or repeats a key is unchanged.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::Features;
/// use mcp_vary::shape::{Policy, Shaped, ToolFacts, tool_result};
///
/// let shape = |tags: &[&str], result: &str| {
///     let (features, _) = Features::from_tags(tags.iter().copied());
///     match tool_result(result, &features, ToolFacts::default(), &Policy::default()) {
///         Shaped::Changed { result, .. } => result,
///         Shaped::Unchanged => result.to_owned(),
///     }
/// };
/// let result = r#"{"content": [{"type": "text", "text": "{\"c\": 8.0}"}], "structuredContent": {"c": 8.0}}"#;
/// assert_eq!(
///     shape(&["agent", "format=json"], result),
///     r#"{"content":[],"structuredContent":{"c": 8.0}}"#,
/// );
/// assert_eq!(
///     shape(&["human"], result),
///     r#"{"content":[{"type":"text","text":"- **c**: 8.0"}]}"#,
/// );
///
/// // Looks like JSON, is none: nothing is made up.
/// let result = r#"{"content": [{"type": "text", "text": "[{'rows': 2}]"}]}"#;
/// assert_eq!(shape(&["agent", "format=json"], result), result);
/// ```
#[must_use]
pub fn tool_result(
    result: &str,
    features: &Features,
    tool: ToolFacts,
    policy: &Policy<'_>,
) -> Shaped {
    let Some(format) = features.choose_format(&Format::ALL) else {
        return Shaped::Unchanged;
    };
    let shaping = Shaping {
        format,
        explicit: features.format().is_some(),
        agent: features.agent(),
        tool,
        policy: *policy,
    };
    let applied = Applied::new(Some(format), features);
    match shaping.shape(result, applied) {
        Ok(Some(result)) => Shaped::Changed { result, applied },
        // A result that cannot be read is the client's to judge.
        Ok(None) | Err(_) => Shaped::Unchanged,
    }
}

struct Shaping<'p> {
    format: Format,
    /// Whether the client named the format, or it follows from its audience.
    explicit: bool,
    agent: bool,
    tool: ToolFacts,
    policy: Policy<'p>,
}

/// What is new in a result.
#[derive(Default)]
struct Outcome {
    /// `content`, where it is no longer what it was.
    content: Option<String>,
    /// The structured value that was found in a text.
    lifted: Option<String>,
}

impl Shaping<'_> {
    /// The shaped result; none when it is as it should be.
    fn shape(&self, text: &str, applied: Applied) -> Result<Option<String>, JsonError> {
        let mut result = Members::parse(text)?;
        let meta = meta(&result)?;
        if !is_shapeable(&result) || meta.contains(META_APPLIED) {
            return Ok(None);
        }
        let blocks = result.get("content").map_or(Ok(Vec::new()), blocks)?;
        let written = result.get("structuredContent");
        let structured = written.filter(|value| *value != "null");
        let outcome = match self.format {
            Format::Json => self.json(&blocks, structured)?,
            Format::Text => self.prose(&blocks, structured, render::text)?,
            Format::Markdown => self.prose(&blocks, structured, render::markdown)?,
        };
        // Every revision requires `content`, even an empty one.
        let content = match outcome.content {
            None if !result.contains("content") => Some("[]".to_owned()),
            content => content,
        };
        let is_new = content.is_some() || outcome.lifted.is_some();
        let leaves_out = written.is_some_and(|value| self.leaves_out(value, is_new));
        let is_said = self.policy.report && self.format == Format::Json && structured.is_some();
        if !is_new && !leaves_out && !is_said {
            return Ok(None);
        }
        let variant = self.policy.variant;
        let told = self.policy.report.then_some(Report { variant });
        let report = told.map(|told| applied.report(meta, told));
        if leaves_out {
            result.remove("structuredContent");
        }
        if let Some(content) = content {
            result.set("content", content);
        }
        if let Some(lifted) = outcome.lifted {
            result.set("structuredContent", lifted);
        }
        if let Some(report) = report {
            result.set("_meta", report);
        }
        Ok(Some(result.to_json()))
    }

    /// JSON: alone in `structuredContent`, or there and as text.
    fn json(&self, blocks: &[Block<'_>], structured: Option<&str>) -> Result<Outcome, JsonError> {
        let Some(structured) = structured else {
            return Ok(self.lift(blocks));
        };
        let is_object = structured.starts_with('{');
        if self.is_strict() && (is_object || self.policy.non_object_structured) {
            return Ok(Outcome::content(replace(blocks, &[], Goes::All, None)));
        }
        let json = compact(structured)?;
        let texts = texts(blocks);
        // The one text says it already.
        if texts == [json.as_str()] {
            return Ok(Outcome::default());
        }
        let relations = relations_to(structured, &texts)?;
        // The data of a user interface is not for the model: there the author's words stay.
        let goes = if self.tool.ui {
            Goes::Repeating
        } else {
            Goes::All
        };
        let is_wanted = !texts.is_empty() || !self.tool.ui || self.policy.always_both;
        let json = is_wanted.then_some(json);
        let content = replace(blocks, &relations, goes, json.as_deref());
        Ok(Outcome::content(content))
    }

    /// A result without a structured value: its one text may be JSON.
    ///
    /// Scalars are prose: `42` is an answer, not a document.
    fn lift(&self, blocks: &[Block<'_>]) -> Outcome {
        let texts = texts(blocks);
        let Some(value) = document(&texts) else {
            return Outcome::default();
        };
        let json = value.to_json();
        // What the schema says is unknown here, so that a value made up could break it.
        let may_lift = self.policy.lift && self.explicit && !self.tool.output_schema;
        if may_lift && (value.as_object().is_some() || self.policy.non_object_structured) {
            let text = (!self.is_strict()).then_some(json.as_str());
            return Outcome {
                content: replace(blocks, &[Relation::Repeats], Goes::All, text),
                lifted: Some(json),
            };
        }
        let content = replace(blocks, &[Relation::Repeats], Goes::All, Some(&json));
        Outcome::content(content)
    }

    /// Markdown or plain text, where JSON stood or nothing.
    fn prose(
        &self,
        blocks: &[Block<'_>],
        structured: Option<&str>,
        render: fn(&Json<'_>) -> String,
    ) -> Result<Outcome, JsonError> {
        let texts = texts(blocks);
        let Some(structured) = structured else {
            return Ok(Outcome::content(render_each(
                blocks,
                |_| Relation::IsValue,
                render,
            )));
        };
        let value = Json::parse(structured)?;
        let relations = relations(&value, &texts);
        if relations.contains(&Relation::IsValue) {
            let relation = |at: usize| relations[at];
            return Ok(Outcome::content(render_each(blocks, relation, render)));
        }
        let is_wanted = relations.contains(&Relation::Repeats) || texts.is_empty() && !self.tool.ui;
        let rendering = is_wanted.then(|| render(&value));
        let content = replace(blocks, &relations, Goes::Repeating, rendering.as_deref());
        Ok(Outcome::content(content))
    }

    /// The seed's test case 1: the client itself declared both tags, and the operator lets it.
    fn is_strict(&self) -> bool {
        self.agent && self.explicit && !self.policy.always_both
    }

    /// Whether `structuredContent`, as `written`, goes.
    ///
    /// A `null` stands for nothing, unless a schema may ask for it. It goes with the next change,
    /// or by itself where the client reads `content` only.
    fn leaves_out(&self, written: &str, is_new: bool) -> bool {
        let is_prose = self.format != Format::Json;
        if written == "null" {
            let may_be_value = self.tool.output_schema && self.policy.non_object_structured;
            return !may_be_value && (is_prose || is_new);
        }
        is_prose && !self.tool.output_schema && !self.tool.ui
    }
}

impl Outcome {
    fn content(content: Option<String>) -> Self {
        Self {
            content,
            lifted: None,
        }
    }
}

/// Whether `result` is what a tool answered in the end, and went well.
pub(super) fn is_shapeable(result: &Members<'_>) -> bool {
    is_complete(result)
        && matches!(result.get("isError"), None | Some("false" | "null"))
        && !result.contains("task")
        && (result.contains("content") || result.contains("structuredContent"))
}

/// The object or array that the one text of `texts` is.
pub(super) fn document<'t>(texts: &[&'t str]) -> Option<Json<'t>> {
    match texts {
        [text] => container(text),
        _ => None,
    }
}

/// Which texts go.
#[derive(Clone, Copy, PartialEq)]
enum Goes {
    All,
    Repeating,
}

/// `content` without the texts that go, `text` in the place of the first of them.
///
/// `text` takes over the annotations of a text that said the same. Without any text at all it
/// comes first. None when everything stays as it was.
fn replace(
    blocks: &[Block<'_>],
    relations: &[Relation],
    goes: Goes,
    text: Option<&str>,
) -> Option<String> {
    let mut text = text;
    let mut changed = false;
    let mut new: Vec<Cow<'_, str>> = Vec::with_capacity(blocks.len() + 1);
    if blocks.iter().all(|block| block.text.is_none())
        && let Some(text) = text
    {
        new.push(Cow::Owned(text_block(text)));
        changed = true;
    }
    let mut relations = relations.iter();
    for block in blocks {
        let relation = block.text.as_ref().and_then(|_| relations.next());
        let repeats = relation.is_some_and(|relation| *relation != Relation::Author);
        let is_going =
            block.text.is_some() && (goes == Goes::All || relation == Some(&Relation::Repeats));
        if !is_going || text.is_some() && block.text.as_deref() == text {
            text = text.filter(|_| !is_going);
            new.push(Cow::Borrowed(block.written));
            continue;
        }
        changed = true;
        match text.take() {
            Some(text) if repeats => new.push(with_text(block.written, text)),
            Some(text) => new.push(Cow::Owned(text_block(text))),
            None => {}
        }
    }
    changed.then(|| array(&new))
}

/// `content` with each text that is the value and JSON rendered in its place, and without those that
/// repeat the value; `relation` is that of a text by number. None when everything stays as it was.
fn render_each(
    blocks: &[Block<'_>],
    relation: impl Fn(usize) -> Relation,
    render: fn(&Json<'_>) -> String,
) -> Option<String> {
    let mut number = 0..;
    let mut changed = false;
    let mut new = Vec::with_capacity(blocks.len());
    for block in blocks {
        let text = block.text.as_deref();
        let rendering = match text.and_then(|_| number.next()).map(&relation) {
            Some(Relation::Repeats) => {
                changed = true;
                continue;
            }
            Some(Relation::IsValue) => text.and_then(container).map(|value| render(&value)),
            Some(Relation::Author | Relation::IsPart) | None => None,
        };
        new.push(
            match rendering.filter(|rendering| Some(rendering.as_str()) != text) {
                Some(rendering) => {
                    changed = true;
                    with_text(block.written, &rendering)
                }
                None => Cow::Borrowed(block.written),
            },
        );
    }
    changed.then(|| array(&new))
}
