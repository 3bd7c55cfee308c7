//! Shapes `tools/call` results.

use std::borrow::Cow;

use super::applied::{Applied, META_APPLIED, Report, Shaped, meta};
use super::content::{Block, blocks, container, is_complete, only_text, texts};
use super::covers::{covers_all, restates};
use super::repeat::{Relation, only_text_repeats, relations, relations_to};
use super::rewrite::{followed_by, json_and_author, render_each, replace, with_texts};
use super::tool_facts::ToolFacts;
use crate::feature::{Features, Format};
use crate::json::{Json, JsonError, Members, compacted};
use crate::render;

/// What the operator and the client's protocol revision allow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "callers override some defaults")]
pub struct Policy<'a> {
    /// JSON is always in both `content` and `structuredContent`: some clients read only one.
    pub always_both: bool,
    /// A text that is exactly one JSON document becomes the structured value under `format=json`.
    pub lift: bool,
    /// The client reads only `content`: its revision has no `structuredContent` (before 2025-06-18), or the operator
    /// configured it.
    pub text_only: bool,
    /// The client's revision allows a `structuredContent` that is not an object (since 2026-07-28).
    pub non_object_structured: bool,
    /// The client declared the extension, so it gets a report of what was applied.
    pub report: bool,
    /// The active variant, for the report.
    pub variant: Option<&'a str>,
    /// The URI under which the caller stores the whole result if texts of it are
    /// [missing](Applied::omits_texts); else no text that says more than the value is left out.
    pub whole: Option<&'a str>,
}

impl Default for Policy<'_> {
    /// Only `lift` is enabled.
    fn default() -> Self {
        Self {
            always_both: false,
            lift: true,
            text_only: false,
            non_object_structured: false,
            report: false,
            variant: None,
            whole: None,
        }
    }
}

impl<'a> Policy<'a> {
    /// The report that the client gets, if it gets one.
    pub(super) fn requested_report(&self) -> Option<Report<'a>> {
        let (variant, whole) = (self.variant, self.whole);
        self.report.then_some(Report { variant, whole })
    }

    /// Whether a client with `features` gets only the JSON `value`: test case 1 of the extension, where the client
    /// itself declared both tags and the operator allows it.
    pub(super) fn is_strict(&self, features: &Features, value: &str) -> bool {
        features.choose_format(&Format::ALL) == Some(Format::Json)
            && features.agent()
            && features.format().is_some()
            && (value.starts_with('{') || self.non_object_structured)
            && !self.always_both
            && !self.text_only
    }
}

/// Shapes `result`, the `result` member of a `tools/call` answer, for a client with `features`.
///
/// | chosen format | `content` | `structuredContent` |
/// |---|---|---|
/// | `agent` and `format=json`, both declared | no texts, if [`Policy::whole`] keeps them; else those that say more than the value | as written |
/// | `format=json`, `agent` alone | the value's JSON as one text, followed by the author's | as written |
/// | `format=markdown`, `human` alone | rendered in place of a text that repeats the value, or after texts that do not cover it | only for a schema or UI |
/// | `format=text` | the same without markup | only for a schema or UI |
///
/// # Properties
///
/// Images, audio, links, embedded resources, blocks of unknown types and unknown members stay in place byte for
/// byte. The structured value stays as written or is omitted, never altered, and never omitted if the client was
/// given a schema. If it is omitted, all its scalars are in a text. The author's own texts stay as they are. Shaping a shaped
/// result changes nothing.
///
/// Errors, input-required results, task handles and results that were already shaped are unchanged, and so is
/// everything for clients that declared nothing usable.
///
/// Total: anything that is not a tool result, nests too deep or repeats a key is unchanged.
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
/// // A text that looks like JSON, but is not: the result stays unchanged.
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
    let shaping = ResultShaping {
        format,
        explicit: features.format().is_some(),
        agent: features.agent(),
        tool,
        policy: *policy,
    };
    let mut applied = Applied::new(Some(format), features);
    match shaping.shape(result, &mut applied) {
        Ok(Some(result)) => Shaped::Changed { result, applied },
        // An unreadable result is forwarded unchanged.
        Ok(None) | Err(_) => Shaped::Unchanged,
    }
}

struct ResultShaping<'p> {
    format: Format,
    /// Whether the client declared the format; else it follows from the audience.
    explicit: bool,
    agent: bool,
    tool: ToolFacts,
    policy: Policy<'p>,
}

/// The changed parts of a result.
#[derive(Default)]
struct Outcome {
    /// The new `content`, if it changed.
    content: Option<String>,
    /// A structured value that was found in a text.
    lifted: Option<String>,
    /// Whether texts are missing that say more than the value.
    omits_texts: bool,
}

impl ResultShaping<'_> {
    /// The shaped result; `None` if nothing changes.
    fn shape(&self, text: &str, applied: &mut Applied) -> Result<Option<String>, JsonError> {
        let (mut result, is_compact) = match self.format {
            Format::Json if !self.is_strict() => Members::parse_compact(text, "structuredContent")?,
            _ => (Members::parse(text)?, false),
        };
        let metadata = meta(&result)?;
        if !is_shapeable(&result) || metadata.contains(META_APPLIED) {
            return Ok(None);
        }
        let blocks = result.get("content").map_or(Ok(Vec::new()), blocks)?;
        let written = result.get("structuredContent");
        let structured = written.filter(|value| *value != "null");
        let outcome = match self.format {
            Format::Json => self.json(&blocks, structured, is_compact)?,
            Format::Text => self.prose(&blocks, structured, render::text)?,
            Format::Markdown => self.prose(&blocks, structured, render::markdown)?,
        };
        applied.omits_texts = outcome.omits_texts;
        if self.format == Format::Text && outcome.content.is_none() {
            // The author's texts stay, with whatever markup they have.
            applied.format = None;
        }
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
        let requested = self.policy.requested_report();
        let report = requested.map(|requested| applied.report(metadata, requested));
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

    /// JSON only in `structuredContent`, or also as text; with the author's texts.
    fn json(
        &self,
        blocks: &[Block<'_>],
        structured: Option<&str>,
        is_compact: bool,
    ) -> Result<Outcome, JsonError> {
        let Some(structured) = structured else {
            return Ok(self.lift(blocks));
        };
        let is_object = structured.starts_with('{');
        if self.is_strict() && (is_object || self.policy.non_object_structured) {
            let stays = self.texts_to_retain(structured, blocks)?;
            let omits = omits_texts(self.policy, self.tool) && stays.contains(&true);
            return Ok(Outcome {
                content: with_texts(blocks, |at| stays[at] && !omits),
                lifted: None,
                omits_texts: omits,
            });
        }
        let json = if is_compact {
            Cow::Borrowed(structured)
        } else {
            compacted(structured)?
        };
        // The only text already is the value.
        if only_text(blocks).is_some_and(|block| block.has_text(&json)) {
            return Ok(Outcome::default());
        }
        let relations = relations_to(structured, blocks)?;
        let content = if self.is_for_interface() {
            // The data of a user interface is not for the model, which gets only the author's texts.
            let is_wanted = !relations.is_empty() || self.policy.always_both;
            replace(blocks, &relations, is_wanted.then_some(&*json))
        } else {
            json_and_author(blocks, &relations, &json)
        };
        Ok(Outcome::content(content))
    }

    /// Which texts of `blocks` say more than the value `written`.
    fn texts_to_retain(&self, written: &str, blocks: &[Block<'_>]) -> Result<Vec<bool>, JsonError> {
        let relations = relations_to(written, blocks)?;
        let is_author = |relation: &Relation| *relation == Relation::Author;
        if !relations.iter().any(is_author) {
            return Ok(vec![false; relations.len()]);
        }
        let all = texts(blocks);
        let value = Json::parse(written)?;
        let stays = |(text, relation): (&&str, &Relation)| {
            is_author(relation) && (self.tool.ui || !restates(text, &value, written))
        };
        Ok(all.iter().zip(&relations).map(stays).collect())
    }

    /// A result without a structured value: its only text may be JSON.
    ///
    /// Scalars are prose: `42` is text, not a document.
    fn lift(&self, blocks: &[Block<'_>]) -> Outcome {
        let all = texts(blocks);
        let Some(value) = document(&all) else {
            return Outcome::default();
        };
        let json = value.to_json();
        // The schema is unknown here, so an invented value could violate it.
        let may_lift = self.policy.lift && self.explicit && !self.tool.output_schema;
        if may_lift && (value.as_object().is_some() || self.policy.non_object_structured) {
            let text = (!self.is_strict()).then_some(json.as_str());
            return Outcome {
                content: replace(blocks, &[Relation::Repeats], text),
                lifted: Some(json),
                omits_texts: false,
            };
        }
        let content = replace(blocks, &[Relation::Repeats], Some(&json));
        Outcome::content(content)
    }

    /// Markdown or plain text in place of JSON, or where there was no text.
    fn prose(
        &self,
        blocks: &[Block<'_>],
        structured: Option<&str>,
        render: fn(&Json<'_>) -> String,
    ) -> Result<Outcome, JsonError> {
        let Some(structured) = structured else {
            return Ok(Outcome::content(render_each(
                blocks,
                |_| Relation::IsValue,
                render,
            )));
        };
        let value = Json::parse(structured)?;
        if only_text_repeats(structured, blocks) {
            let content = replace(blocks, &[Relation::Repeats], Some(&render(&value)));
            return Ok(Outcome::content(content));
        }
        let all = texts(blocks);
        let found = relations(&value, &all);
        if found.contains(&Relation::IsValue) {
            let relation = |at: usize| found[at];
            return Ok(Outcome::content(render_each(blocks, relation, render)));
        }
        let is_silent = all.is_empty() && !self.is_for_interface();
        let is_wanted = is_silent || found.contains(&Relation::Repeats);
        if is_wanted {
            let content = replace(blocks, &found, Some(&render(&value)));
            return Ok(Outcome::content(content));
        }
        // "No declaration makes values unreachable": the structured value is omitted, so a text must contain its values.
        let is_unread = !self.is_promised() || self.policy.text_only;
        let is_lost = is_unread && !covers_all(&all, &value);
        Ok(Outcome {
            content: is_lost.then(|| followed_by(blocks, &render(&value))),
            ..Outcome::default()
        })
    }

    /// Test case 1 of the extension: the client itself declared both tags, and the operator allows it.
    fn is_strict(&self) -> bool {
        self.agent && self.explicit && !self.policy.always_both && !self.policy.text_only
    }

    /// Whether the value is the data of a user interface that the client shows.
    fn is_for_interface(&self) -> bool {
        self.tool.ui && !self.policy.text_only
    }

    /// Whether `structuredContent` stays in every format.
    fn is_promised(&self) -> bool {
        self.tool.output_schema || self.tool.ui
    }

    /// Whether `structuredContent`, as `written`, is omitted.
    ///
    /// A `null` means no value, unless a schema may require it. It is omitted with another change, or always if the
    /// client reads only `content`.
    fn leaves_out(&self, written: &str, is_new: bool) -> bool {
        let is_prose = self.format != Format::Json;
        if written == "null" {
            let may_be_value = self.tool.output_schema && self.policy.non_object_structured;
            return !may_be_value && (is_prose || is_new);
        }
        is_prose && !self.is_promised()
    }
}

impl Outcome {
    fn content(content: Option<String>) -> Self {
        Self {
            content,
            ..Self::default()
        }
    }
}

/// Whether an agent that asked for the value alone gets no texts that say more, because the whole can be read elsewhere.
/// The texts of a tool with a user interface are for the model, and its value is not.
pub(super) fn omits_texts(policy: Policy<'_>, tool: ToolFacts) -> bool {
    policy.whole.is_some() && !tool.ui
}

/// Whether `result` is a final, successful tool result.
pub(super) fn is_shapeable(result: &Members<'_>) -> bool {
    is_complete(result)
        && matches!(result.get("isError"), None | Some("false" | "null"))
        && !result.contains("task")
        && (result.contains("content") || result.contains("structuredContent"))
}

/// The object or array in the only text of `texts`.
pub(super) fn document<'t>(texts: &[&'t str]) -> Option<Json<'t>> {
    match texts {
        [text] => container(text),
        _ => None,
    }
}
