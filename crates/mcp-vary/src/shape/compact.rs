//! The result of `tools/call` for a client that asks for few words.

use std::borrow::Cow;

use super::applied::{Applied, META_APPLIED, Report, Shaped, meta};
use super::content::{Block, array, blocks, container, text_block, texts, with_text};
use super::repeat::{Relation, relations};
use super::tool_result::{Policy, ToolFacts, document, is_shapeable, tool_result};
use crate::feature::{Features, Format, Verbosity};
use crate::json::{Json, JsonError, Members, pointer, string};
use crate::render::{
    self, Compact, Contract, LeftOut, Limits, compact_columns, compact_structured, notice,
    shorter_prose,
};

/// How a result is made shorter, and where the whole of it can be read.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers override some of the defaults"
)]
pub struct Compaction<'c> {
    /// How much stays.
    pub limits: Limits,
    /// What the tool's `outputSchema` demands. A structured value whose schema is not shown here stays whole.
    pub contract: Contract<'c>,
    /// Where the whole value can be read.
    pub whole: Option<Whole<'c>>,
}

/// Where the whole of a value can be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "callers spell out both")]
pub struct Whole<'c> {
    /// Its URI. With the query of a [`Part`](crate::render::Part) it leads to a part of it.
    pub uri: &'c str,
    /// Whether the client's revision knows resource links (2025-06-18 on).
    pub is_linked: bool,
}

/// A result in few words.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Compacted {
    /// What goes out.
    pub shaped: Shaped,
    /// What of the value does not; empty when it is whole.
    pub left_out: Vec<LeftOut>,
    /// The whole value as JSON, as it was written, which the pointers in `left_out` lead into: the structured
    /// value, else the document that the one text is, else that text. None when nothing was left out.
    pub whole: Option<String>,
}

impl Compacted {
    fn nothing(shaped: Shaped) -> Self {
        Self {
            shaped,
            left_out: Vec::new(),
            whole: None,
        }
    }
}

/// Like [`tool_result`], and in few words under `verbosity=compact`; with what was left out.
///
/// # Properties
///
/// What repeats the value is made from a shorter one: JSON text in columns, markdown and plain text with
/// uniform rows in one table. The author's own words stay, but for a long text that is all there is, and
/// only where the whole of it can be read; images and links stay. The structured value stays whole
/// unless its contract lets it go and it has room to say so itself; the data of a user interface always
/// does. Beside a text its rows stay whole, for programs; where it is all that an agent asked for,
/// it is shortened like a text. Where something is left out, the last blocks of `content` say so and lead to the whole value,
/// even for an agent that asked for JSON alone. A result that would not become shorter stays.
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
    if features.verbosity() != Verbosity::Compact {
        return Compacted::nothing(shaped);
    }
    let compacting = Compacting {
        tool,
        policy,
        compaction,
    };
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

/// A block in fewer words.
struct Shorter {
    /// Its number.
    at: usize,
    text: String,
    left_out: Vec<LeftOut>,
}

struct Compacting<'c> {
    tool: ToolFacts,
    policy: &'c Policy<'c>,
    compaction: &'c Compaction<'c>,
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
        let Some(subject) = self.subject(&original, &served_texts)? else {
            return Ok(None);
        };
        let (current, format) = match shaped {
            Shaped::Changed { result, applied } => (result.as_str(), applied.format),
            Shaped::Unchanged => (served, None),
        };
        let mut result = Members::parse(current)?;
        let applied = Applied {
            format,
            verbosity: Some(Verbosity::Compact),
        };
        let variant = self.policy.variant;
        let told = self.policy.report.then_some(Report { variant });
        let report = match told {
            Some(told) => Some(applied.report(meta(&result)?, told)),
            None => None,
        };
        let Some(left_out) = self.shorten(&subject, format, &mut result)? else {
            return Ok(None);
        };
        if let Some(report) = report {
            result.set("_meta", report);
        }
        let result = result.to_json();
        let whole = (!left_out.is_empty()).then(|| subject.written.into_owned());
        Ok((result.len() < current.len()).then_some(Compacted {
            shaped: Shaped::Changed { result, applied },
            left_out,
            whole,
        }))
    }

    /// What `result`, with these texts, is about: its structured value, else the document that its one text is, else that
    /// text, where the whole of it can be read.
    fn subject<'s>(
        &self,
        result: &'s Members<'_>,
        texts: &[&'s str],
    ) -> Result<Option<Subject<'s>>, JsonError> {
        let data = |written: &'s str, value| Subject {
            written: Cow::Borrowed(written),
            value,
            is_prose: false,
        };
        if let Some(written) = result.get("structuredContent").filter(|v| *v != "null") {
            return Ok(Some(data(written, Json::parse(written)?)));
        }
        let [text] = *texts else { return Ok(None) };
        if let Some(document) = document(texts) {
            return Ok(Some(data(text, document)));
        }
        Ok(self.compaction.whole.map(|_| Subject {
            written: Cow::Owned(string(text)),
            value: Json::String(Cow::Borrowed(text)),
            is_prose: true,
        }))
    }

    /// Says `subject` shorter in both fields; none when neither changes.
    fn shorten(
        &self,
        subject: &Subject<'_>,
        format: Option<Format>,
        result: &mut Members<'_>,
    ) -> Result<Option<Vec<LeftOut>>, JsonError> {
        let content = result.get("content").unwrap_or("[]").to_owned();
        let blocks = blocks(&content)?;
        let short = self
            .text(&subject.value, format, &blocks)
            .or_else(|| self.prose(&subject.value, &blocks));
        let structured = match result.get("structuredContent") {
            None | Some("null") => None,
            Some(_) => self.structured(&subject.value, texts(&blocks).is_empty()),
        };
        let left_out = match (&short, &structured) {
            (Some(short), _) => short.left_out.clone(),
            (None, Some(structured)) => structured.left_out.clone(),
            (None, None) => return Ok(None),
        };
        let mut new: Vec<Cow<'_, str>> = Vec::new();
        for (at, block) in blocks.iter().enumerate() {
            new.push(match &short {
                Some(short) if short.at == at => with_text(block.written, &short.text),
                _ => Cow::Borrowed(block.written),
            });
        }
        if !left_out.is_empty() {
            let lines = notice(&left_out, self.uri());
            new.push(text_block(&lines.join("\n")).into());
            new.extend(self.link(subject.is_prose).map(Cow::Owned));
        }
        result.set("content", array(&new));
        if let Some(structured) = structured {
            result.set("structuredContent", structured.value.to_json());
        }
        Ok(Some(left_out))
    }

    /// The block that repeats `value`, in fewer words.
    fn text(
        &self,
        value: &Json<'_>,
        format: Option<Format>,
        blocks: &[Block<'_>],
    ) -> Option<Shorter> {
        let limits = &self.compaction.limits;
        let render: Option<(Plain, Short)> = match format {
            Some(Format::Markdown) => Some((render::markdown, render::compact_markdown)),
            Some(Format::Text) => Some((render::text, render::compact_text)),
            Some(Format::Json) | None => None,
        };
        let rendering = render.map(|(render, _)| render(value));
        let mut relations = relations(value, &texts(blocks)).into_iter();
        let mut repeats = |block: &&(usize, &String)| {
            let repeats = relations.next() == Some(Relation::Repeats);
            repeats && container(block.1).is_some() || rendering.as_ref() == Some(block.1)
        };
        let all = blocks.iter().enumerate();
        let texts = all.filter_map(|(at, block)| Some((at, block.text.as_ref()?)));
        let texts: Vec<_> = texts.collect();
        let repeating: Vec<_> = texts.iter().filter(&mut repeats).collect();
        // One text for each element, or the same twice: which to replace is anybody's guess.
        let [(at, text)] = repeating[..] else {
            return None;
        };
        let (short, left_out) = match render.filter(|_| rendering.as_ref() == Some(text)) {
            Some((_, render)) => render(value, limits),
            None => {
                let short = compact_columns(value, limits);
                (short.value.to_json(), short.left_out)
            }
        };
        (short.len() < text.len()).then_some(Shorter {
            at: *at,
            text: short,
            left_out,
        })
    }

    /// The one text that says what `value` says in the author's words, as far as a long text goes.
    fn prose(&self, value: &Json<'_>, blocks: &[Block<'_>]) -> Option<Shorter> {
        self.compaction.whole?;
        let mut texts = blocks
            .iter()
            .enumerate()
            .filter_map(|(at, block)| Some((at, block.text.as_ref()?)));
        let (Some((at, text)), None) = (texts.next(), texts.next()) else {
            return None;
        };
        let path = match value {
            Json::String(_) => String::new(),
            // The string that a server wraps since its schema must be an object.
            Json::Object(members) => match members.as_slice() {
                [(key, Json::String(only))] if only == text => pointer("", key),
                _ => return None,
            },
            _ => return None,
        };
        let (short, kept) = shorter_prose(text, &self.compaction.limits)?;
        Some(Shorter {
            at,
            left_out: vec![LeftOut::of_text(path, kept, text.len())],
            text: short,
        })
    }

    /// The structured value as its contract lets it go; with `is_alone` it is all that the reader gets.
    fn structured<'v>(&self, value: &Json<'v>, is_alone: bool) -> Option<Compact<'v>> {
        let Compaction {
            limits, contract, ..
        } = self.compaction;
        let is_known = !self.tool.output_schema || !contract.is_free();
        // A program expects a row to be one, so that beside a text rows stay whole or go.
        let limits = if is_alone {
            *limits
        } else {
            limits.with_whole_rows()
        };
        (is_known && !self.tool.ui)
            .then(|| compact_structured(value, contract, &limits, self.uri()))
            .flatten()
    }

    fn uri(&self) -> Option<&str> {
        self.compaction.whole.map(|whole| whole.uri)
    }

    /// A block that leads to the whole value.
    fn link(&self, is_prose: bool) -> Option<String> {
        let whole = self.compaction.whole.filter(|whole| whole.is_linked)?;
        let media_type = if is_prose {
            "text/plain"
        } else {
            "application/json"
        };
        let mut block = Members::default();
        block.set("type", string("resource_link"));
        block.set("uri", string(whole.uri));
        block.set("name", string("whole result"));
        block.set("mimeType", string(media_type));
        Some(block.to_json())
    }
}

type Plain = fn(&Json<'_>) -> String;
type Short = fn(&Json<'_>, &Limits) -> (String, Vec<LeftOut>);
