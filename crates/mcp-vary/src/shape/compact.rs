//! Compacts `tools/call` results: for clients that request it, and within an operator's bounds.

mod bounds;
mod draft;
mod minify;
mod others;
mod texts;

use std::borrow::Cow;
use std::fmt;

pub use self::bounds::Bounds;
use self::draft::{ContentDraft, ShortenedBlock};
use self::texts::TextForm;
use super::applied::{Applied, META_APPLIED, Shaped, meta};
use super::content::{Block, blocks, texts};
use super::tool_facts::ToolFacts;
use super::tool_result::{Policy, document, is_shapeable, tool_result};
use crate::feature::{Features, Format, Verbosity};
use crate::json::{Json, JsonError, Members, string};
use crate::render::{Contract, LeftOut, Limits, tokens};

/// How a result is compacted, and where the whole result can be read.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "callers override some defaults")]
pub struct Compaction<'c> {
    /// The limits for clients that request compact results.
    pub limits: Limits,
    /// The bounds for all clients.
    pub bounds: Bounds,
    /// The constraints of the tool's `outputSchema`. A structured value with an unknown schema stays complete.
    pub contract: Contract<'c>,
    /// Where the whole value can be read.
    pub whole: Option<Whole<'c>>,
    /// The tool that also reads the whole value, if there is one, for models that cannot read resources.
    pub reader: Option<&'c str>,
    /// A custom text for the value, such as a template.
    pub custom_text: Option<CustomText<'c>>,
}

/// Where a whole value can be read.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "callers override some defaults")]
pub struct Whole<'c> {
    /// Its URI. With the query of a [`Part`](crate::render::Part), it addresses a part.
    pub uri: &'c str,
    /// Whether the client's revision has resource links (since 2025-06-18).
    pub is_linked: bool,
}

/// A value that the result contains as a custom text, such as the output of a template.
#[derive(Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "callers spell out all of it")]
pub struct CustomText<'c> {
    /// The value, as JSON.
    pub value: &'c str,
    /// The custom text in the result, if there is one.
    pub text: Option<&'c str>,
    /// Renders another value in the same way; `None` if that is not possible.
    pub render: &'c dyn Fn(&Json<'_>) -> Option<String>,
}

impl fmt::Debug for CustomText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Words").finish_non_exhaustive()
    }
}

/// A compacted result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Compacted {
    /// The shaped result.
    pub shaped: Shaped,
    /// Whether compaction made it shorter.
    pub is_shorter: bool,
    /// What was left out of the value; empty if it is complete.
    pub left_out: Vec<LeftOut>,
    /// The whole value as JSON, as written, for the pointers in `left_out`: the structured value, else the document
    /// in the only text, else that text. `None` if nothing was left out of it.
    pub whole: Option<String>,
    /// The complete texts beside the value as a JSON array, if something was left out of them: they can be read at
    /// the URI of the whole value plus `/texts`. A text that is a JSON document is a document here.
    pub texts: Option<String>,
}

impl Compacted {
    fn unchanged(shaped: Shaped) -> Self {
        Self {
            shaped,
            is_shorter: false,
            left_out: Vec::new(),
            whole: None,
            texts: None,
        }
    }
}

/// Like [`tool_result`], compacted under `verbosity=compact` and within [`Bounds`] for all clients; reports what was
/// left out.
///
/// # Properties
///
/// Texts that repeat the value are rendered from a compacted value: JSON in columns, markdown and plain text with
/// uniform rows in one table. The author's own texts stay, except a long text that is the only content and can be
/// read elsewhere; images and links stay. The structured value stays complete unless its contract allows omissions
/// and it has room to list them; the data of a user interface always stays. Beside a text, its rows stay complete,
/// for programs; if it is all that an agent requested, it is shortened like a text. If something is left out, the
/// last blocks of `content` say so and link to the whole value, even for an agent that requested only JSON. A result
/// that would not become shorter stays.
///
/// An otherwise unchanged JSON text is minified. So is one whose shorter form would leave something out and, with
/// its notice, be as long.
///
/// Bounds only cut: texts that repeat the value keep their form with the shorter value, JSON stays JSON, and a
/// result within the bounds stays byte for byte. Other texts are bounded by tokens only, and by elements and depth
/// if they are JSON documents.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::Features;
/// use mcp_vary::shape::{Compaction, Policy, Shaped, ToolFacts, Whole, compact_tool_result};
///
/// let value = serde_json::json!({"next": null, "note": "One sentence. ".repeat(300)});
/// let result = serde_json::json!({"content": [{"type": "text", "text": value.to_string()}]}).to_string();
/// let (features, _) = Features::from_tags(["verbosity=compact"]);
/// let compacted = compact_tool_result(
///     &result,
///     &features,
///     ToolFacts::default(),
///     &Policy::default(),
///     &Compaction {
///         whole: Some(Whole { uri: "vary://result/x", is_linked: true }),
///         ..Compaction::default()
///     },
/// );
/// let Shaped::Changed { result: short, .. } = compacted.shaped else { panic!() };
/// assert!(short.contains("/note: 994 of 4200 bytes; vary://result/x?pointer=/note&offset=994"));
/// assert!(short.ends_with(r#"{"type":"resource_link","uri":"vary://result/x","name":"whole result","mimeType":"application/json"}]}"#));
/// assert_eq!(compacted.left_out.len(), 2);
///
/// // The client did not request it.
/// let whole = compact_tool_result(
///     &result,
///     &Features::default(),
///     ToolFacts::default(),
///     &Policy::default(),
///     &Compaction::default(),
/// );
/// assert_eq!(whole.shaped, Shaped::Unchanged);
/// ```
#[must_use]
pub fn compact_tool_result(
    result: &str,
    features: &Features,
    tool: ToolFacts,
    policy: &Policy<'_>,
    compaction: &Compaction<'_>,
) -> Compacted {
    let shaped = tool_result(result, features, tool, policy);
    compact_shaped(result, shaped, features, tool, policy, compaction)
}

/// Like [`compact_tool_result`], for a `result` that is already `shaped`: its form stays.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::Features;
/// use mcp_vary::shape::{Compaction, Policy, Shaped, ToolFacts, compact_shaped};
///
/// let (features, _) = Features::from_tags(["format=json", "verbosity=compact"]);
/// let result = r#"{"content": [{"type": "text", "text": "in the operator's words"}], "structuredContent": {"a": 1}}"#;
/// let compacted = compact_shaped(
///     result,
///     Shaped::Unchanged,
///     &features,
///     ToolFacts::default(),
///     &Policy::default(),
///     &Compaction::default(),
/// );
/// // The client requested JSON, but the operator's text stays in its own form.
/// assert_eq!(compacted.shaped, Shaped::Unchanged);
/// ```
#[must_use]
pub fn compact_shaped(
    result: &str,
    shaped: Shaped,
    features: &Features,
    tool: ToolFacts,
    policy: &Policy<'_>,
    compaction: &Compaction<'_>,
) -> Compacted {
    let compacting = ResultCompactor {
        features,
        tool,
        policy,
        compaction,
        is_terse: features.shortens(),
    };
    if !compacting.is_terse && compaction.bounds.is_unbounded() {
        return Compacted::unchanged(shaped);
    }
    match compacting.run(result, &shaped) {
        Ok(Some(compacted)) => compacted,
        // An unreadable result is forwarded unchanged.
        Ok(None) | Err(_) => Compacted::unchanged(shaped),
    }
}

/// The value that is compacted.
struct Subject<'s> {
    /// The value as JSON, as written.
    written: Cow<'s, str>,
    value: Json<'s>,
    /// Whether it is the author's text rather than data.
    is_prose: bool,
}

impl Subject<'_> {
    /// Whether `written` is the same value.
    fn is_written(&self, written: &str) -> bool {
        self.written == written
            || Json::parse(written).is_ok_and(|value| value.is_same(&self.value))
    }
}

struct ResultCompactor<'c> {
    features: &'c Features,
    tool: ToolFacts,
    policy: &'c Policy<'c>,
    compaction: &'c Compaction<'c>,
    /// Whether the client requested compact results.
    is_terse: bool,
}

impl ResultCompactor<'_> {
    /// Compacts `shaped`, which was derived from `served`; `None` if that changes nothing.
    fn run(&self, served: &str, shaped: &Shaped) -> Result<Option<Compacted>, JsonError> {
        let original = Members::parse(served)?;
        if !is_shapeable(&original) || meta(&original)?.contains(META_APPLIED) {
            return Ok(None);
        }
        let served_blocks = original.get("content").map_or(Ok(Vec::new()), blocks)?;
        let subject = self.subject(&original, &served_blocks)?;
        let applied = self.applied(shaped);
        let mut result = match shaped {
            Shaped::Changed { result, .. } => Members::parse(result)?,
            Shaped::Unchanged => original.clone(),
        };
        let content = result.get("content").unwrap_or("[]").to_owned();
        let parsed = blocks(&content)?;
        let mut draft = ContentDraft::of(&parsed);
        let structured = result.get("structuredContent").filter(|v| *v != "null");
        self.shorten(subject.as_ref(), applied.format, structured, &mut draft);
        let is_prose = subject.as_ref().is_some_and(|subject| subject.is_prose);
        let mut shorter = self.content(&draft, is_prose);
        if self.is_terse {
            draft = self.minified(subject.as_ref(), draft, (structured, shorter.len()));
            shorter = self.content(&draft, is_prose);
        }
        let is_due = draft.has_omissions() && !self.compaction.bounds.is_unbounded();
        let before = content.len() + structured.map_or(0, str::len);
        let is_shorter = shorter.len() + draft.structured_length(structured) < before;
        if !draft.is_changed() || !(is_due || is_shorter) {
            return Ok(None);
        }
        let requested = self.policy.requested_report();
        let report = match requested {
            Some(requested) => Some(applied.report(meta(&result)?, requested)),
            None => None,
        };
        result.set("content", shorter);
        if let Some(structured) = draft.structured {
            result.set("structuredContent", structured);
        }
        if let Some(report) = report {
            result.set("_meta", report);
        }
        let whole = subject.filter(|_| !draft.left_out.is_empty());
        Ok(Some(Compacted {
            shaped: Shaped::Changed {
                result: result.to_json(),
                applied,
            },
            is_shorter: true,
            left_out: draft.left_out,
            whole: whole.map(|subject| subject.written.into_owned()),
            texts: draft.texts,
        }))
    }

    /// What is applied to the compacted result.
    fn applied(&self, shaped: &Shaped) -> Applied {
        let mut applied = match shaped {
            Shaped::Changed { applied, .. } => *applied,
            // A custom text already has the format that the client chose.
            Shaped::Unchanged => {
                let custom = self.compaction.custom_text.as_ref();
                let format = custom.and_then(|_| self.features.choose_format(&Format::ALL));
                Applied::new(format, self.features)
            }
        };
        if self.is_terse {
            applied.verbosity = Some(Verbosity::Compact);
        }
        applied
    }

    /// The value of `result` with these blocks: the custom text's value, else the structured value, else the document
    /// in the only text, else that text itself if the whole of it can be read.
    fn subject<'s>(
        &'s self,
        result: &'s Members<'_>,
        blocks: &'s [Block<'_>],
    ) -> Result<Option<Subject<'s>>, JsonError> {
        let data = |written: &'s str, value| Subject {
            written: Cow::Borrowed(written),
            value,
            is_prose: false,
        };
        if let Some(CustomText { value, .. }) = self.compaction.custom_text {
            return Ok(Some(data(value, Json::parse(value)?)));
        }
        if let Some(written) = result.get("structuredContent").filter(|v| *v != "null") {
            return Ok(Some(data(written, Json::parse(written)?)));
        }
        let all = texts(blocks);
        let [text] = *all else { return Ok(None) };
        if let Some(document) = document(&all) {
            return Ok(Some(data(text, document)));
        }
        let is_wanted = self.compaction.whole.is_some() || self.compaction.bounds.tokens.is_some();
        Ok(is_wanted.then(|| Subject {
            written: Cow::Owned(string(text)),
            value: Json::String(Cow::Borrowed(text)),
            is_prose: true,
        }))
    }

    /// Shortens `subject` and the other texts.
    fn shorten(
        &self,
        subject: Option<&Subject<'_>>,
        format: Option<Format>,
        structured: Option<&str>,
        draft: &mut ContentDraft<'_>,
    ) {
        let texts = draft.texts();
        let reported = subject.map(|subject| self.representing_texts(subject, format, &texts));
        let (ours, form) = reported.unwrap_or((Vec::new(), TextForm::Json));
        let prose = subject.and_then(|subject| self.prose(&subject.value, &texts));
        let others: Vec<_> = texts
            .iter()
            .filter(|(at, _)| !ours.contains(at) && prose.is_none())
            .copied()
            .collect();
        let bound = self.compaction.bounds.tokens;
        let of_others: usize = others.iter().map(|(_, text)| tokens(text)).sum();
        let most = bound.map(|most| (most - of_others.min(most / 2), most));
        if let Some(subject) = subject {
            let reported = (&*ours, form, most.map(|(most, _)| most));
            let short = self.shorter(&subject.value, reported, draft);
            // If a schema rejected the alternative's value, the structured value is another one, which stays.
            let value = structured
                .filter(|written| subject.is_written(written))
                .and_then(|_| self.structured(&subject.value, texts.is_empty()));
            draft.apply(short.or(prose), value);
        }
        if !self.compaction.bounds.is_unbounded() {
            self.shorten_others(
                &others,
                most.map(|(native, all)| all - native.min(all / 2)),
                draft,
            );
        }
    }

    /// Shortens the texts at `ours`, which represent `value` in this form, into one text.
    fn shorter(
        &self,
        value: &Json<'_>,
        (ours, form, most): (&[usize], TextForm<'_>, Option<usize>),
        draft: &ContentDraft<'_>,
    ) -> Option<ShortenedBlock> {
        let (first, others) = ours.split_first()?;
        let text = draft.blocks[*first].text()?;
        let short = self.text(value, form, (*first, text), most)?;
        Some(ShortenedBlock {
            others: others.to_vec(),
            ..short
        })
    }

    /// The effective limits.
    fn limits(&self) -> Limits {
        let Compaction { limits, bounds, .. } = self.compaction;
        bounds.applied_to(if self.is_terse {
            *limits
        } else {
            Limits::none()
        })
    }

    fn uri(&self) -> Option<&str> {
        self.compaction.whole.map(|whole| whole.uri)
    }
}

/// The suffix of a whole value's URI for the texts beside it.
pub const TEXTS_PATH: &str = "/texts";
