//! An author's answer to a tool call, for all clients.

use serde::Serialize;
use serde_json::Value;

use super::applied::{Applied, Shaped};
use super::compact::{Compaction, CustomText, Whole, compact_tool_result};
use super::content::text_block;
use super::tool_facts::ToolFacts;
use super::tool_result::Policy;
use crate::feature::{Features, Format, Verbosity};
use crate::json::{Json, JsonError, Members, compact, compacted, string};
use crate::predicate::{Predicate, choose_with_condition};
use crate::render::{self, Contract};

/// The property that contains the reasoning hints, if the author names no other.
pub const HINTS: &str = "hints";

/// One value, in all forms that its author provides.
///
/// # Properties
///
/// [`to_result`](Self::to_result) is total and always returns a valid `CallToolResult`: it has `content`, possibly
/// empty, and its `structuredContent` is the value itself or is omitted.
///
/// | chosen format | `content` begins with | `structuredContent` |
/// |---|---|---|
/// | none | the author's markdown, else their text, else the value as JSON | the value |
/// | `agent` and `format=json`, both declared | no text | the value |
/// | JSON otherwise | the value as JSON | the value |
/// | markdown | the author's markdown, else their text, else the value rendered | only for a schema or UI |
/// | text | the author's text, else the value rendered | only for a schema or UI |
///
/// Under `verbosity=compact` the value is compacted, as JSON or rendered, if that is shorter, and omissions are
/// counted; the author's own texts stay.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::Features;
/// use mcp_vary::shape::{Answer, Policy, ToolFacts};
/// use serde_json::json;
///
/// let answer = Answer::new(&json!({"location": "Bern", "temperature_c": 8}))?
///     .with_markdown("**8 °C** in Bern")
///     .with_hint("8 °C suggests a jacket");
/// let result = |tags: &[&str]| {
///     let (features, _) = Features::from_tags(tags.iter().copied());
///     answer.to_result(&features, ToolFacts::default(), None, &Policy::default())
/// };
/// assert_eq!(
///     result(&["agent", "format=json"]),
///     r#"{"content":[],"structuredContent":{"location":"Bern","temperature_c":8}}"#,
/// );
/// assert_eq!(
///     result(&["human"]),
///     r#"{"content":[{"type":"text","text":"**8 °C** in Bern"}]}"#,
/// );
///
/// // Only clients that sample get hints.
/// assert_eq!(
///     result(&["agent", "format=json", "sampling"]),
///     concat!(
///         r#"{"content":[],"structuredContent":{"location":"Bern","temperature_c":8,"#,
///         r#""hints":["8 °C suggests a jacket"]}}"#,
///     ),
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The value as compact JSON.
    value: String,
    markdown: Option<String>,
    text: Option<String>,
    hints: Vec<String>,
    hints_under: String,
    /// Other blocks, each as JSON.
    blocks: Vec<String>,
    /// Members of `_meta`, as JSON.
    meta: Vec<(String, String)>,
    alternatives: Vec<(Predicate, Self)>,
    /// The URI of the whole value.
    whole: Option<String>,
    /// The verbosity that the author applied.
    verbosity: Option<Verbosity>,
}

impl Answer {
    /// An answer that is `value`.
    ///
    /// # Errors
    ///
    /// When `value` is not valid JSON: it fails to serialize, repeats a key, or nests deeper than
    /// [`MAX_DEPTH`](crate::json::MAX_DEPTH).
    pub fn new(value: &(impl Serialize + ?Sized)) -> Result<Self, JsonError> {
        Self::from_json(&serde_json::to_string(value)?)
    }

    /// An answer with the value in `text`, JSON; numbers stay as written.
    ///
    /// # Errors
    ///
    /// Those of [`Json::parse`].
    pub fn from_json(text: &str) -> Result<Self, JsonError> {
        Ok(Self {
            value: compacted(text)?.into_owned(),
            markdown: None,
            text: None,
            hints: Vec::new(),
            hints_under: HINTS.to_owned(),
            blocks: Vec::new(),
            meta: Vec::new(),
            alternatives: Vec::new(),
            whole: None,
            verbosity: None,
        })
    }

    /// Sets the markdown text, which is also for clients without preferences.
    #[must_use]
    pub fn with_markdown(mut self, markdown: impl Into<String>) -> Self {
        self.markdown = Some(markdown.into());
        self
    }

    /// Sets the plain text.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Adds a reasoning hint for clients that sample.
    ///
    /// It becomes an element of the property [`HINTS`] if the client reads JSON and the tool's `outputSchema`
    /// declares that property or is missing; else it becomes a line of a separate text.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Sets the property for hints.
    #[must_use]
    pub fn with_hints_under(mut self, property: impl Into<String>) -> Self {
        self.hints_under = property.into();
        self
    }

    /// Adds an image, audio, link or embedded resource for all clients.
    ///
    /// # Errors
    ///
    /// When `block` is not a JSON object.
    pub fn with_block(mut self, block: &str) -> Result<Self, JsonError> {
        self.blocks.push(Members::parse(block)?.to_json());
        Ok(self)
    }

    /// Adds a member of `_meta`, or replaces it.
    ///
    /// # Errors
    ///
    /// When `json` is not JSON.
    pub fn with_meta(mut self, key: impl Into<String>, json: &str) -> Result<Self, JsonError> {
        self.meta.push((key.into(), compact(json)?));
        Ok(self)
    }

    /// Sets the URI of the whole value, for clients that get a compacted one.
    ///
    /// The author must serve it: `uri` alone is the whole value, and with the query of a [`Part`](render::Part) it
    /// is that part, which [`render::read`] finds. Without a URI, omissions are only counted.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary::feature::Features;
    /// use mcp_vary::shape::{Answer, Policy, ToolFacts};
    ///
    /// let answer = Answer::new(&(0..1000).collect::<Vec<_>>())?.with_whole("log://today");
    /// let (features, _) = Features::from_tags(["verbosity=compact"]);
    /// let result = answer.to_result(&features, ToolFacts::default(), None, &Policy::default());
    /// assert!(result.contains("500 of 1000 elements; log://today?offset=500"));
    /// # Ok::<(), mcp_vary::json::JsonError>(())
    /// ```
    #[must_use]
    pub fn with_whole(mut self, uri: impl Into<String>) -> Self {
        self.whole = Some(uri.into());
        self
    }

    /// Sets the verbosity of the answer, which is reported to clients that declared one. Alternatives with a
    /// condition on `verbosity` report it by themselves.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary::feature::{Features, Verbosity};
    /// use mcp_vary::shape::{Answer, Policy, ToolFacts};
    ///
    /// let (features, _) = Features::from_tags(["human", "verbosity=verbose"]);
    /// let page = match features.verbosity() {
    ///     Verbosity::Verbose => "**8 °C**, as on most days in November",
    ///     _ => "**8 °C**",
    /// };
    /// let answer = Answer::new(&8)?.with_markdown(page).with_verbosity(features.verbosity());
    /// let policy = Policy { report: true, ..Policy::default() };
    /// let result = answer.to_result(&features, ToolFacts::default(), None, &policy);
    /// assert!(result.contains(r#""vary/applied":{"format":"markdown","verbosity":"verbose"}"#));
    /// # Ok::<(), mcp_vary::json::JsonError>(())
    /// ```
    #[must_use]
    pub fn with_verbosity(mut self, verbosity: Verbosity) -> Self {
        self.verbosity = Some(verbosity);
        self
    }

    /// Uses `answer` if `predicate` matches; the most specific predicate wins.
    ///
    /// The alternatives of an alternative are ignored.
    #[must_use]
    pub fn with_alternative(mut self, predicate: Predicate, answer: Self) -> Self {
        self.alternatives.push((predicate, answer));
        self
    }

    /// The `result` member of a `tools/call` answer, for a client with `features`.
    ///
    /// `output_schema` is the tool's, if the client was given one ([`ToolFacts::output_schema`] is true): hints are
    /// only added to a property that it declares, and under `verbosity=compact` the value is only cut as far as it
    /// allows, see [`compact_tool_result`].
    #[must_use]
    pub fn to_result(
        &self,
        features: &Features,
        tool: ToolFacts,
        output_schema: Option<&Value>,
        policy: &Policy<'_>,
    ) -> String {
        let few = features
            .shortens()
            .then(|| self.compacted(features, tool, output_schema, policy));
        few.flatten()
            .unwrap_or_else(|| self.uncompacted(features, tool, output_schema, policy))
    }

    /// The compacted result; `None` if it would not be shorter.
    fn compacted(
        &self,
        features: &Features,
        tool: ToolFacts,
        output_schema: Option<&Value>,
        policy: &Policy<'_>,
    ) -> Option<String> {
        // The report is added once, at the end.
        let silent = Policy {
            report: false,
            ..*policy
        };
        let result = self.uncompacted(features, tool, output_schema, &silent);
        let (answer, _) = self.select(features);
        let whole = answer.whole.as_deref().or(self.whole.as_deref());
        let telling = answer.writer(features, tool, output_schema, policy);
        let value = telling.value_with_hints();
        let compaction = Compaction {
            contract: output_schema.map_or(Contract::default(), Contract::of),
            whole: whole.map(|uri| Whole {
                uri,
                // A revision that allows one also allows the other.
                is_linked: policy.non_object_structured,
            }),
            custom_text: Some(CustomText {
                value: value.as_deref().unwrap_or(&answer.value),
                text: None,
                render: &|_| None,
            }),
            ..Compaction::default()
        };
        let few = compact_tool_result(&result, features, tool, policy, &compaction);
        match few.shaped {
            Shaped::Changed { result, .. } if few.is_shorter => Some(result),
            _ => None,
        }
    }

    /// The `result` without compaction.
    pub(super) fn uncompacted(
        &self,
        features: &Features,
        tool: ToolFacts,
        output_schema: Option<&Value>,
        policy: &Policy<'_>,
    ) -> String {
        let (answer, verbosity) = self.select(features);
        let telling = answer.writer(features, tool, output_schema, policy);
        let mut result = telling.result();
        let mut meta = Members::default();
        for (key, json) in &answer.meta {
            meta.set(key.as_str(), json.as_str());
        }
        let report = policy.requested_report();
        if let Some(requested) = report.filter(|_| !features.is_empty()) {
            let chosen = Applied::new(telling.format, features);
            let applied = chosen.decided_by(verbosity.or(answer.verbosity));
            result.set("_meta", applied.report(meta, requested));
        } else if !meta.is_empty() {
            result.set("_meta", meta.to_json());
        }
        result.to_json()
    }

    /// The blocks of `content`, each as JSON, and the structured value, without compaction.
    pub(super) fn uncompacted_fields(
        &self,
        features: &Features,
        tool: ToolFacts,
        output_schema: Option<&Value>,
        policy: &Policy<'_>,
    ) -> (Vec<String>, Option<String>) {
        let (answer, _) = self.select(features);
        answer
            .writer(features, tool, output_schema, policy)
            .fields()
    }

    /// The answer for a client with `features`, and the verbosity in the condition that chose it.
    fn select(&self, features: &Features) -> (&Self, Option<Verbosity>) {
        match choose_with_condition(&self.alternatives, features) {
            Some((when, answer)) if !features.is_empty() => (answer, when.verbosity()),
            _ => (self, None),
        }
    }

    fn writer<'t>(
        &'t self,
        features: &Features,
        tool: ToolFacts,
        output_schema: Option<&'t Value>,
        policy: &Policy<'_>,
    ) -> AnswerWriter<'t> {
        let format = features.choose_format(&Format::ALL);
        // A `null` means no value, unless a schema may require it.
        let is_something = self.value != "null" || tool.output_schema;
        let may_be_structured =
            self.value.starts_with('{') || policy.non_object_structured && is_something;
        let is_prose = matches!(format, Some(Format::Markdown | Format::Text));
        AnswerWriter {
            answer: self,
            format,
            is_structured: may_be_structured && (!is_prose || tool.output_schema || tool.ui),
            is_strict: may_be_structured && policy.is_strict(features, &self.value),
            hints: if features.sampling() {
                &self.hints
            } else {
                &[]
            },
            schema: match (tool.output_schema, output_schema) {
                (false, None) => Schema::Free,
                (_, schema) => Schema::Bound(schema),
            },
        }
    }
}

/// The schema of the structured value.
enum Schema<'s> {
    /// No schema: it may have any property.
    Free,
    /// A schema, which may be unknown here.
    Bound(Option<&'s Value>),
}

/// Writes one answer for one client.
struct AnswerWriter<'t> {
    answer: &'t Answer,
    format: Option<Format>,
    is_structured: bool,
    is_strict: bool,
    hints: &'t [String],
    schema: Schema<'t>,
}

impl AnswerWriter<'_> {
    fn result(&self) -> Members<'static> {
        let (content, structured) = self.fields();
        let mut result = Members::default();
        result.set("content", format!("[{}]", content.join(",")));
        if let Some(structured) = structured {
            result.set("structuredContent", structured);
        }
        result
    }

    /// The blocks of `content`, each as JSON, and the structured value.
    fn fields(&self) -> (Vec<String>, Option<String>) {
        let with_hints = self.value_with_hints();
        let value = with_hints.as_deref().unwrap_or(&self.answer.value);
        let mut content = Vec::new();
        if !self.is_strict {
            content.push(text_block(&self.text(value)));
        }
        // Hints that do not fit into the value become a separate text.
        if with_hints.is_none() && !self.hints.is_empty() {
            content.push(text_block(&self.hints_as_text()));
        }
        content.extend(self.answer.blocks.iter().cloned());
        (content, self.is_structured.then(|| value.to_owned()))
    }

    /// The text for `value`.
    fn text(&self, value: &str) -> String {
        let Answer { markdown, text, .. } = self.answer;
        let author = match self.format {
            Some(Format::Json) => None,
            Some(Format::Text) => text.as_ref(),
            _ => markdown.as_ref().or(text.as_ref()),
        };
        if let Some(author) = author {
            return author.clone();
        }
        let render = match self.format {
            Some(Format::Markdown) => render::markdown,
            Some(Format::Text) => render::text,
            _ => return value.to_owned(),
        };
        // The value was parsed before; as a fallback, use JSON.
        Json::parse(value).map_or_else(|_| value.to_owned(), |value| render(&value))
    }

    /// The value with the hints added; `None` if they are not allowed there, or if the client does not read JSON.
    fn value_with_hints(&self) -> Option<String> {
        let Answer { markdown, text, .. } = self.answer;
        let reads_json = match self.format {
            Some(format) => format == Format::Json,
            None => markdown.is_none() && text.is_none(),
        };
        let property = self.answer.hints_under.as_str();
        let may_stand = match self.schema {
            Schema::Free => true,
            Schema::Bound(schema) => schema.is_some_and(|schema| admits_hints(schema, property)),
        };
        if self.hints.is_empty() || !reads_json || !self.is_structured || !may_stand {
            return None;
        }
        let mut value = Members::parse(&self.answer.value).ok()?;
        if value.contains(property) {
            return None;
        }
        let hints: Vec<_> = self.hints.iter().map(|hint| string(hint)).collect();
        value.set(property, format!("[{}]", hints.join(",")));
        Some(value.to_json())
    }

    /// The hints as a list, with markup if the client reads it.
    fn hints_as_text(&self) -> String {
        let bullet = match self.format {
            Some(Format::Text) => "",
            _ => "- ",
        };
        let lines = self.hints.iter().map(|hint| format!("{bullet}{hint}"));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Whether `schema` declares `property` as a list of strings, for simple schemas.
///
/// Conservative: false if any keyword could forbid the property or constrain its elements further.
fn admits_hints(schema: &Value, property: &str) -> bool {
    let only = |schema: &Value, known: &[&str]| {
        let keys = schema.as_object().map(|keywords| keywords.keys());
        keys.is_some_and(|mut keys| keys.all(|key| known.contains(&key.as_str())))
    };
    let about = ["type", "title", "description", "default", "examples"];
    let is = |schema: &Value, name: &str| schema.get("type").is_none_or(|kind| kind == name);
    let root = [
        "$schema",
        "$id",
        "$defs",
        "definitions",
        "properties",
        "required",
        "additionalProperties",
    ];
    let list = &schema["properties"][property];
    let is_list = only(list, &[&about[..], &["items"]].concat()) && is(list, "array");
    let is_string = list
        .get("items")
        .is_none_or(|items| only(items, &about) && is(items, "string"));
    only(schema, &[&about[..], &root].concat()) && is_list && is_string
}
