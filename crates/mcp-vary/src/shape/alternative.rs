//! Replaces a result with the operator's alternative.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde_json::Value;

use super::answer::{Answer, HINTS};
use super::applied::{Applied, META_APPLIED, Shaped, meta};
use super::content::{Block, array, blocks, text_block, texts};
use super::covers::{covers_all, restates};
use super::repeat::{Relation, relations_to};
use super::tool_facts::ToolFacts;
use super::tool_result::{Policy, document, is_shapeable, omits_texts, tool_result};
use crate::feature::{Features, Format, Verbosity};
use crate::json::{Json, JsonError, Members};
use crate::render;

/// The content of a `tools/call` result: a value and texts.
///
/// # Examples
///
/// ```
/// use mcp_vary::shape::ToolOutput;
///
/// let output = ToolOutput::read(r#"{"content": [{"type": "text", "text": "{\"c\": 8.0}"}]}"#, true).unwrap();
/// assert_eq!(output.value.as_deref(), Some(r#"{"c":8.0}"#));
///
/// // `8` is text, not a document.
/// let output = ToolOutput::read(r#"{"content": [{"type": "text", "text": "8"}]}"#, true).unwrap();
/// assert_eq!((output.value, output.text.as_str()), (None, "8"));
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// `structuredContent`, or the single text parsed as a JSON document.
    pub value: Option<String>,
    /// The texts of `content`, separated by empty lines.
    pub text: String,
}

impl ToolOutput {
    /// Reads a result; a text counts as a value only with `lift`.
    ///
    /// `None` for errors, input-required results, task handles, and results that were already shaped.
    #[must_use]
    pub fn read(result: &str, lift: bool) -> Option<Self> {
        Some(Self::of(&ReadableResult::read(result)?, lift))
    }

    /// The content of a result that was read before.
    #[must_use]
    pub fn of(result: &ReadableResult<'_>, lift: bool) -> Self {
        let ReadableResult {
            members, blocks, ..
        } = result;
        let value = output_value(members, blocks, lift).map(|(value, _)| value);
        let text = texts(blocks).join("\n\n");
        Self { value, text }
    }
}

/// A `tools/call` result that an alternative can replace, read once for everything that is made of it.
pub struct ReadableResult<'a> {
    written: &'a str,
    members: Members<'a>,
    blocks: Vec<Block<'a>>,
}

impl fmt::Debug for ReadableResult<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadableResult").finish_non_exhaustive()
    }
}

impl<'a> ReadableResult<'a> {
    /// Reads a result; `None` for errors, input-required results, task handles, results that were already shaped, and
    /// anything that is not a result.
    #[must_use]
    pub fn read(result: &'a str) -> Option<Self> {
        let members = Members::parse(result).ok()?;
        if !is_shapeable(&members) || meta(&members).ok()?.contains(META_APPLIED) {
            return None;
        }
        let content = members.get_written("content");
        Some(Self {
            written: result,
            blocks: content.map_or(Ok(Vec::new()), blocks).ok()?,
            members,
        })
    }
}

/// An alternative to what the server's result contains.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::Features;
/// use mcp_vary::shape::{Alternative, Policy, Shaped, ToolFacts};
///
/// let result = r#"{"content": [{"type": "text", "text": "{\"c\": 8, \"log\": []}"}, {"type": "image"}]}"#;
/// let alternative = Alternative::default().with_value(r#"{"c":8}"#).with_markdown("**8 °C**");
/// let (human, _) = Features::from_tags(["human"]);
/// let shaped = alternative.apply(result, &human, ToolFacts::default(), None, &Policy::default());
/// let Shaped::Changed { result, .. } = shaped else { panic!() };
/// assert_eq!(result, r#"{"content":[{"type":"text","text":"**8 °C**"},{"type": "image"}]}"#);
///
/// // Errors stay unchanged.
/// let error = r#"{"content": [], "isError": true}"#;
/// let shaped = alternative.apply(error, &human, ToolFacts::default(), None, &Policy::default());
/// assert_eq!(shaped, Shaped::Unchanged);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Alternative {
    value: Option<String>,
    markdown: Option<String>,
    text: Option<String>,
    hints: Vec<String>,
    hints_under: Option<String>,
    verbosity: Option<Verbosity>,
}

/// The `outputSchema` of a tool that the client was given.
pub trait OutputSchema {
    /// The schema, to read its declared properties.
    fn schema(&self) -> &Value;
    /// Whether `value`, JSON text, is valid; false if that cannot be decided.
    fn accepts(&self, value: &str) -> bool;
}

impl Alternative {
    /// Replaces the server's value with `value`, JSON text.
    pub fn with_value(mut self, value: impl Into<String>) -> Self {
        self.value = Some(value.into());
        self
    }

    /// Sets the markdown text.
    pub fn with_markdown(mut self, markdown: impl Into<String>) -> Self {
        self.markdown = Some(markdown.into());
        self
    }

    /// Sets the plain text.
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Adds a reasoning hint for clients that sample.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Sets the property for hints; the default is [`HINTS`].
    pub fn with_hints_under(mut self, property: impl Into<String>) -> Self {
        self.hints_under = Some(property.into());
        self
    }

    /// Reports `verbosity`, from the condition that chose this alternative, as applied.
    pub fn with_verbosity(mut self, verbosity: Verbosity) -> Self {
        self.verbosity = Some(verbosity);
        self
    }

    /// Applies the alternative to a result for a client with `features`.
    ///
    /// | chosen format | text in `content` | `structuredContent` |
    /// |---|---|---|
    /// | `agent` and `format=json`, both declared | none | the value |
    /// | JSON otherwise | the value | the value |
    /// | markdown, or none | the markdown, else the text, else the author's text, else the value rendered | no format: as the server has it; markdown: only for a schema or UI |
    /// | text | the text, else the author's text, else the value rendered | only for a schema or UI |
    ///
    /// # Properties
    ///
    /// Images, audio, links, embedded resources, blocks of unknown types and unknown members stay byte for byte, in
    /// order; the text replaces the first text. The author's text stays beside a value that the operator did not
    /// change; a value that the author's text does not cover follows it. A value that `schema` rejects goes into
    /// `content` only; `structuredContent` stays the server's then, and also for a user interface. Errors,
    /// input-required results, task handles, and results that were already shaped are unchanged. If the alternative
    /// has nothing for a client, such as only hints for a client that does not sample, [`tool_result`] shapes the
    /// result.
    #[must_use]
    pub fn apply(
        &self,
        result: &str,
        features: &Features,
        tool: ToolFacts,
        schema: Option<&dyn OutputSchema>,
        policy: &Policy<'_>,
    ) -> Shaped {
        match ReadableResult::read(result) {
            Some(result) => self.apply_to(&result, features, tool, schema, policy),
            None if self.has_nothing_for(features) => tool_result(result, features, tool, policy),
            None => Shaped::Unchanged,
        }
    }

    /// Applies the alternative like [`apply`](Self::apply) to a result that was read before.
    #[must_use]
    pub fn apply_to(
        &self,
        result: &ReadableResult<'_>,
        features: &Features,
        tool: ToolFacts,
        schema: Option<&dyn OutputSchema>,
        policy: &Policy<'_>,
    ) -> Shaped {
        if self.has_nothing_for(features) {
            return tool_result(result.written, features, tool, policy);
        }
        let telling = AlternativeShaper {
            alternative: self,
            features,
            tool,
            schema,
            policy,
            omits_texts: Cell::new(false),
        };
        let chosen = Applied::new(features.choose_format(&Format::ALL), features);
        let mut applied = chosen.decided_by(self.verbosity);
        match telling.shape(result, &mut applied) {
            Ok(Some(result)) => Shaped::Changed { result, applied },
            // An unreadable result is forwarded unchanged.
            Ok(None) | Err(_) => Shaped::Unchanged,
        }
    }

    /// Whether the alternative has nothing for a client with `features`.
    fn has_nothing_for(&self, features: &Features) -> bool {
        let hints = features.sampling() && !self.hints.is_empty();
        !hints && self.value.is_none() && self.markdown.is_none() && self.text.is_none()
    }
}

/// Applies one alternative for one client.
struct AlternativeShaper<'t> {
    alternative: &'t Alternative,
    features: &'t Features,
    tool: ToolFacts,
    schema: Option<&'t dyn OutputSchema>,
    policy: &'t Policy<'t>,
    /// Whether texts of the author are missing that say more than the value.
    omits_texts: Cell<bool>,
}

impl AlternativeShaper<'_> {
    fn shape(
        &self,
        result: &ReadableResult<'_>,
        applied: &mut Applied,
    ) -> Result<Option<String>, JsonError> {
        let ReadableResult {
            members, blocks, ..
        } = result;
        let own_value = output_value(members, blocks, self.policy.lift);
        let Some((content, structure)) = self.parts(members, blocks, own_value)? else {
            return Ok(None);
        };
        applied.omits_texts = self.omits_texts.get();
        let metadata = meta(members)?;
        let wanted = self.policy.requested_report();
        let report = wanted.map(|requested| applied.report(metadata, requested));
        let mut result = members.clone();
        result.set("content", content);
        match structure {
            Some(structure) => result.set("structuredContent", structure),
            None => drop(result.remove("structuredContent")),
        }
        if let Some(report) = report {
            result.set("_meta", report);
        }
        Ok(Some(result.to_json()))
    }

    /// `content` and `structuredContent`; `None` if nothing changes.
    fn parts(
        &self,
        result: &Members<'_>,
        written: &[Block<'_>],
        own_value: Option<(String, bool)>,
    ) -> Result<Option<(String, Option<String>)>, JsonError> {
        let Some((native, is_structured)) = own_value else {
            return Ok(self.prose(written).map(|content| {
                let structure = result.get("structuredContent").map(str::to_owned);
                (content, structure)
            }));
        };
        let value = self.alternative.value.as_deref().unwrap_or(&native);
        let answer = self.answer(value, &native, written)?;
        let fields = self.shaped_fields(&answer, &native, is_structured, self.policy.always_both);
        let fields = match fields {
            // The value is not in `structuredContent`, so it must be in `content`.
            (texts, None) if texts.is_empty() => {
                self.shaped_fields(&answer, &native, is_structured, true)
            }
            fields => fields,
        };
        let (texts, structure) = fields;
        let borrowed: Vec<_> = texts.iter().map(String::as_str).collect();
        Ok(Some((replace_texts(written, &borrowed), structure)))
    }

    /// The texts and the structured value of `answer` for the client.
    fn shaped_fields(
        &self,
        answer: &Answer,
        native: &str,
        is_structured: bool,
        always_both: bool,
    ) -> (Vec<String>, Option<String>) {
        let policy = Policy {
            always_both,
            ..*self.policy
        };
        let schema = self.schema.map(OutputSchema::schema);
        let (texts, value) = answer.uncompacted_fields(self.features, self.tool, schema, &policy);
        let new = value.as_deref();
        let structure = if is_structured {
            let is_promised = self.tool.output_schema || self.tool.ui;
            match new {
                Some(new) if !self.tool.ui && self.schema_accepts(new) => Some(new),
                Some(_) => Some(native),
                // Before 2026-07-28, `structuredContent` must be an object.
                None => is_promised.then_some(native),
            }
        } else {
            // The server sent no structured value: add one only for clients that requested JSON.
            let is_json = self.features.choose_format(&Format::ALL) == Some(Format::Json);
            new.filter(|new| is_json && self.schema_accepts(new))
        };
        (texts, structure.map(str::to_owned))
    }

    fn schema_accepts(&self, value: &str) -> bool {
        match self.schema {
            Some(schema) => schema.accepts(value),
            None => !self.tool.output_schema,
        }
    }

    fn answer(
        &self,
        value: &str,
        native: &str,
        written: &[Block<'_>],
    ) -> Result<Answer, JsonError> {
        let Alternative { markdown, text, .. } = self.alternative;
        let relations = relations_to(native, written)?;
        let blocks = written.iter().filter(|block| block.is_text());
        let pairs = blocks.zip(&relations);
        let authored = pairs.filter(|(_, relation)| **relation == Relation::Author);
        let retained: Vec<_> = authored.filter_map(|(block, _)| block.text()).collect();
        let author = (!retained.is_empty()).then(|| retained.join("\n\n"));
        let mut answer = Answer::from_json(value)?;
        if let Some(markdown) = markdown.as_ref().or(text.as_ref()).or(author.as_ref()) {
            answer = answer.with_markdown(markdown);
        }
        if let Some(text) = text.as_ref().or(author.as_ref()) {
            answer = answer.with_text(text);
        }
        for hint in &self.alternative.hints {
            answer = answer.with_hint(hint);
        }
        let under = self.alternative.hints_under.as_deref();
        answer = answer.with_hints_under(under.unwrap_or(HINTS));
        for text in self.extra_texts(value, &retained)? {
            answer = answer.with_block(&text_block(&text))?;
        }
        Ok(answer)
    }

    /// Additional texts, unless the operator's text replaces all: the `author`'s text beside JSON, and the value
    /// beside an author's text that does not cover it.
    fn extra_texts(&self, value: &str, author: &[&str]) -> Result<Vec<String>, JsonError> {
        let Alternative { markdown, text, .. } = self.alternative;
        let (terms, render): (_, fn(&Json<'_>) -> String) =
            match self.features.choose_format(&Format::ALL) {
                Some(Format::Json) => return self.extra_json_texts(value, author),
                Some(Format::Text) => (text.as_ref(), render::text),
                Some(Format::Markdown) => (markdown.as_ref().or(text.as_ref()), render::markdown),
                None => return Ok(Vec::new()),
            };
        let is_read = (self.tool.output_schema || self.tool.ui) && !self.policy.text_only;
        if author.is_empty() || terms.is_some() || is_read {
            return Ok(Vec::new());
        }
        let value = Json::parse(value)?;
        let is_lost = !covers_all(author, &value);
        Ok(is_lost.then(|| render(&value)).into_iter().collect())
    }

    /// The author's texts beside the server's JSON.
    fn extra_json_texts(&self, value: &str, author: &[&str]) -> Result<Vec<String>, JsonError> {
        if author.is_empty() || self.alternative.value.is_some() {
            return Ok(Vec::new());
        }
        let is_strict = self.policy.is_strict(self.features, value);
        let parsed = Json::parse(value)?;
        let stays = |text: &&&str| !is_strict || self.tool.ui || !restates(text, &parsed, value);
        let staying = author.iter().filter(stays).map(|text| (*text).to_owned());
        let texts: Vec<_> = staying.collect();
        if is_strict && omits_texts(*self.policy, self.tool) && !texts.is_empty() {
            self.omits_texts.set(true);
            return Ok(Vec::new());
        }
        Ok(texts)
    }

    /// A result without a value: templates can replace it, and hints follow it.
    fn prose(&self, written: &[Block<'_>]) -> Option<String> {
        let Alternative { markdown, text, .. } = self.alternative;
        let rendered = match self.features.choose_format(&Format::ALL) {
            Some(Format::Json) => None,
            Some(Format::Text) => text.as_ref(),
            Some(Format::Markdown) | None => markdown.as_ref().or(text.as_ref()),
        };
        let offered = self.features.sampling().then_some(&self.alternative.hints);
        let hint_blocks = offered.into_iter().flatten().map(|hint| text_block(hint));
        let hints: Vec<_> = hint_blocks.collect();
        if rendered.is_none() && hints.is_empty() {
            return None;
        }
        let Some(rendered) = rendered else {
            let native = written.iter().map(|block| Cow::Borrowed(block.written));
            let all: Vec<_> = native.chain(hints.into_iter().map(Cow::Owned)).collect();
            return Some(array(&all));
        };
        let new: Vec<_> = [text_block(rendered)].into_iter().chain(hints).collect();
        let texts: Vec<_> = new.iter().map(String::as_str).collect();
        Some(replace_texts(written, &texts))
    }
}

/// Replaces all texts of `written` with `texts`, at the position of the first.
fn replace_texts(written: &[Block<'_>], texts: &[&str]) -> String {
    let first = written.iter().position(Block::is_text).unwrap_or(0);
    let mut all: Vec<Cow<'_, str>> = Vec::with_capacity(written.len() + texts.len());
    let before = written.iter().take(first);
    all.extend(before.map(|block| Cow::Borrowed(block.written)));
    all.extend(texts.iter().map(|text| Cow::Borrowed(*text)));
    let after = written.iter().skip(first).filter(|block| !block.is_text());
    all.extend(after.map(|block| Cow::Borrowed(block.written)));
    array(&all)
}

/// The value of a result, and whether it is its `structuredContent`.
fn output_value(result: &Members<'_>, written: &[Block<'_>], lift: bool) -> Option<(String, bool)> {
    let structured = result.get("structuredContent");
    if let Some(structured) = structured.filter(|value| *value != "null") {
        return Some((structured.to_owned(), true));
    }
    let all = texts(written);
    let parsed = document(&all)?;
    lift.then(|| (parsed.to_json(), false))
}
