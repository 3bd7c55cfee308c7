//! The result of `tools/call` in fewer words: for a client that asks for few, and within an operator's limits.

mod bounds;
mod draft;
mod minify;
mod others;
mod saying;

use std::borrow::Cow;
use std::fmt;

pub use self::bounds::Bounds;
use self::draft::{Draft, Shorter};
use self::saying::Form;
use super::applied::{Applied, META_APPLIED, Report, Shaped, meta};
use super::content::{blocks, texts};
use super::tool_result::{Policy, ToolFacts, document, is_shapeable, tool_result};
use crate::feature::{Features, Format, Verbosity};
use crate::json::{Json, JsonError, Members, string};
use crate::render::{Contract, LeftOut, Limits, tokens};

/// How a result is made shorter, and where the whole of it can be read.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers override some of the defaults"
)]
pub struct Compaction<'c> {
    /// How much stays for a client that asks for few words.
    pub limits: Limits,
    /// How much stays for every client.
    pub bounds: Bounds,
    /// What the tool's `outputSchema` demands. A structured value whose schema is not shown here stays whole.
    pub contract: Contract<'c>,
    /// Where the whole value can be read.
    pub whole: Option<Whole<'c>>,
    /// The tool that reads the whole value as well, where there is one, for models that read no resources.
    pub reader: Option<&'c str>,
    /// How the value is told in words that are not made here.
    pub words: Option<Words<'c>>,
}

/// Where the whole of a value can be read.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers override some of the defaults"
)]
pub struct Whole<'c> {
    /// Its URI. With the query of a [`Part`](crate::render::Part) it leads to a part of it.
    pub uri: &'c str,
    /// Whether the client's revision knows resource links (2025-06-18 on).
    pub is_linked: bool,
}

/// A value that the result says in words of somebody else, a template say.
#[derive(Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "callers spell out all of it")]
pub struct Words<'c> {
    /// The value, JSON.
    pub value: &'c str,
    /// The text in the result that says it, if there is one.
    pub text: Option<&'c str>,
    /// What says another value in the same words; none when nothing does.
    pub say: &'c dyn Fn(&Json<'_>) -> Option<String>,
}

impl fmt::Debug for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Words").finish_non_exhaustive()
    }
}

/// A result in few words.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Compacted {
    /// What goes out.
    pub shaped: Shaped,
    /// Whether that says less, or the same in fewer words, than it would without.
    pub is_shorter: bool,
    /// What of the value does not; empty when it is whole.
    pub left_out: Vec<LeftOut>,
    /// The whole value as JSON, as it was written, which the pointers in `left_out` lead into: the structured
    /// value, else the document that the one text is, else that text. None when nothing was left out of it.
    pub whole: Option<String>,
    /// The texts beside the value, whole, as a JSON array, where something of them was left out as well: they
    /// can be read where the whole value can, below `/texts`. A text that is a JSON document is one here.
    pub texts: Option<String>,
}

impl Compacted {
    fn nothing(shaped: Shaped) -> Self {
        Self {
            shaped,
            is_shorter: false,
            left_out: Vec::new(),
            whole: None,
            texts: None,
        }
    }
}

/// Like [`tool_result`], in few words under `verbosity=compact`, and within [`Bounds`] for everybody; with what was
/// left out.
///
/// # Properties
///
/// What repeats the value is made from a shorter one: JSON text in columns, markdown and plain text with
/// uniform rows in one table. The author's own words stay, but for a long text that is all there is, and
/// only where the whole of it can be read; images and links stay. The structured value stays whole
/// unless its contract lets it go and it has room to say so itself; the data of a user interface always
/// does. Beside a text its rows stay whole, for programs; where it is all that an agent asked for,
/// it is shortened like a text. Where something is left out, the last blocks of `content` say so and lead to the whole value,
/// even for an agent that asked for JSON alone. A result that a model would read as much of as before stays.
///
/// A text that is JSON and stays otherwise loses the white space between its tokens and nothing else. So does one whose shorter
/// form leaves something out and, with the lines about that, is as long.
///
/// Bounds cut and do nothing else: texts that say the value say the shorter one in the form that they have,
/// JSON stays JSON, and a result within them stays as the bytes it is. Of texts that say something else only
/// the tokens are bounded, and the elements and depth of those that are JSON documents.
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
/// // Nobody asked.
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

/// Like [`compact_tool_result`], of what `shaped` already made of `result`: it stays in that form.
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
/// // JSON was asked for: whoever told it otherwise is taken at its word.
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
    let compacting = Compacting {
        features,
        tool,
        policy,
        compaction,
        is_terse: features.verbosity() == Verbosity::Compact,
    };
    if !compacting.is_terse && compaction.bounds.are_none() {
        return Compacted::nothing(shaped);
    }
    match compacting.run(result, &shaped) {
        Ok(Some(compacted)) => compacted,
        // A result that cannot be read is the client's to judge.
        Ok(None) | Err(_) => Compacted::nothing(shaped),
    }
}

/// What is said in fewer words.
struct Subject<'s> {
    /// As JSON, as it was written.
    written: Cow<'s, str>,
    value: Json<'s>,
    /// Whether it is the author's text rather than data.
    is_prose: bool,
}

struct Compacting<'c> {
    features: &'c Features,
    tool: ToolFacts,
    policy: &'c Policy<'c>,
    compaction: &'c Compaction<'c>,
    /// Whether the client asks for few words.
    is_terse: bool,
}

impl Compacting<'_> {
    /// The shorter form of `shaped`, which was made from `served`; none where there is none.
    fn run(&self, served: &str, shaped: &Shaped) -> Result<Option<Compacted>, JsonError> {
        let original = Members::parse(served)?;
        if !is_shapeable(&original) || meta(&original)?.contains(META_APPLIED) {
            return Ok(None);
        }
        let served_blocks = original.get("content").map_or(Ok(Vec::new()), blocks)?;
        let served_texts = texts(&served_blocks);
        let subject = self.subject(&original, &served_texts)?;
        let (current, mut applied) = match shaped {
            Shaped::Changed { result, applied } => (result.as_str(), *applied),
            // Words of somebody else have the form that the client chose already.
            Shaped::Unchanged => {
                let format = self.features.choose_format(&Format::ALL);
                let format = format.filter(|_| self.compaction.words.is_some());
                (served, Applied::new(format, self.features))
            }
        };
        if self.is_terse {
            applied.verbosity = Some(Verbosity::Compact);
        }
        let mut result = Members::parse(current)?;
        let content = result.get("content").unwrap_or("[]").to_owned();
        let blocks = blocks(&content)?;
        let mut draft = Draft::of(&blocks);
        let structured = result.get("structuredContent").filter(|v| *v != "null");
        self.shorten(subject.as_ref(), applied.format, structured, &mut draft);
        let is_prose = subject.as_ref().is_some_and(|subject| subject.is_prose);
        let mut shorter = self.content(&draft, is_prose);
        if self.is_terse {
            draft = self.minified(subject.as_ref(), draft, (structured, shorter.len()));
            shorter = self.content(&draft, is_prose);
        }
        let is_due = draft.is_cut() && !self.compaction.bounds.are_none();
        let before = content.len() + structured.map_or(0, str::len);
        let is_shorter = shorter.len() + draft.structured_length(structured) < before;
        if !draft.is_changed() || !(is_due || is_shorter) {
            return Ok(None);
        }
        let variant = self.policy.variant;
        let told = self.policy.report.then_some(Report { variant });
        let report = match told {
            Some(told) => Some(applied.report(meta(&result)?, told)),
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

    /// What `result`, with these texts, is about: the value that it is told to say, else its structured value, else the
    /// document that its one text is, else that text, where the whole of it can be read.
    fn subject<'s>(
        &'s self,
        result: &'s Members<'_>,
        texts: &[&'s str],
    ) -> Result<Option<Subject<'s>>, JsonError> {
        let data = |written: &'s str, value| Subject {
            written: Cow::Borrowed(written),
            value,
            is_prose: false,
        };
        if let Some(Words { value, .. }) = self.compaction.words {
            return Ok(Some(data(value, Json::parse(value)?)));
        }
        if let Some(written) = result.get("structuredContent").filter(|v| *v != "null") {
            return Ok(Some(data(written, Json::parse(written)?)));
        }
        let [text] = *texts else { return Ok(None) };
        if let Some(document) = document(texts) {
            return Ok(Some(data(text, document)));
        }
        let is_wanted = self.compaction.whole.is_some() || self.compaction.bounds.tokens.is_some();
        Ok(is_wanted.then(|| Subject {
            written: Cow::Owned(string(text)),
            value: Json::String(Cow::Borrowed(text)),
            is_prose: true,
        }))
    }

    /// Says `subject`, and the texts that are not about it, shorter.
    fn shorten(
        &self,
        subject: Option<&Subject<'_>>,
        format: Option<Format>,
        structured: Option<&str>,
        draft: &mut Draft<'_>,
    ) {
        let texts = draft.texts();
        let said = subject.map(|subject| self.saying(&subject.value, format, &texts));
        let (ours, form) = said.unwrap_or((Vec::new(), Form::Json));
        let prose = subject.and_then(|subject| self.prose(&subject.value, &texts));
        let others: Vec<_> = texts
            .iter()
            .filter(|(at, _)| !ours.contains(at) && prose.is_none())
            .copied()
            .collect();
        let most = self.compaction.bounds.tokens;
        let of_others: usize = others.iter().map(|(_, text)| tokens(text)).sum();
        let most = most.map(|most| (most - of_others.min(most / 2), most));
        if let Some(subject) = subject {
            let said = (&*ours, form, most.map(|(most, _)| most));
            let short = self.shorter(&subject.value, said, draft);
            // Where a schema refused the value that is told, another one stands there: it stays.
            let same = structured.and_then(|written| Json::parse(written).ok());
            let same = same.filter(|same| same.is_same(&subject.value));
            let structured = same.and_then(|_| self.structured(&subject.value, texts.is_empty()));
            draft.put(short.or(prose), structured);
        }
        if !self.compaction.bounds.are_none() {
            self.shorten_others(
                &others,
                most.map(|(own, all)| all - own.min(all / 2)),
                draft,
            );
        }
    }

    /// The texts number `ours`, which say `value` in this form, as one in fewer words.
    fn shorter(
        &self,
        value: &Json<'_>,
        (ours, form, most): (&[usize], Form<'_>, Option<usize>),
        draft: &Draft<'_>,
    ) -> Option<Shorter> {
        let (first, others) = ours.split_first()?;
        let text = draft.blocks[*first].text.as_deref()?;
        let short = self.text(value, form, (*first, text), most)?;
        Some(Shorter {
            others: others.to_vec(),
            ..short
        })
    }

    /// How much stays.
    fn limits(&self) -> Limits {
        let Compaction { limits, bounds, .. } = self.compaction;
        bounds.within(if self.is_terse {
            *limits
        } else {
            Limits::none()
        })
    }

    fn uri(&self) -> Option<&str> {
        self.compaction.whole.map(|whole| whole.uri)
    }
}

/// What stands after the URI of a whole value for the texts beside it.
pub const TEXTS: &str = "/texts";
