//! The result of `tools/call` for a client that asks for few words.

use std::borrow::Cow;

use serde_json::Value;

use super::applied::{Applied, META_APPLIED, Report, Shaped, meta};
use super::content::{Block, array, blocks, container, text_block, texts, with_text};
use super::repeat::{Relation, relations};
use super::tool_result::{Policy, ToolFacts, document, is_shapeable, tool_result};
use crate::feature::{Features, Format, Verbosity};
use crate::json::{Json, JsonError, Members};
use crate::render::{
    self, Compact, LeftOut, Limits, compact, compact_columns, compact_structured, notice,
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
    /// The tool's `outputSchema`. A structured value that has one which is not shown here stays whole.
    pub output_schema: Option<&'c Value>,
    /// A block of content that leads to the whole value: a resource link, as JSON.
    pub whole: Option<&'c str>,
}

/// Like [`tool_result`], and in few words under `verbosity=compact`; with what was left out.
///
/// # Properties
///
/// What repeats the value is made from a shorter one: JSON text in columns, markdown and plain text as
/// before. The author's own words, images and links stay. The structured value stays whole unless its
/// schema lets it go and it has room to say so itself; the data of a user interface always does.
/// Where something is left out, the last blocks of `content` say so and lead to the whole value,
/// even for an agent that asked for JSON alone. A result that would not become shorter stays.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::Features;
/// use mcp_vary::shape::{Compaction, Policy, Shaped, ToolFacts, compact_tool_result};
///
/// let value = serde_json::json!({"next": null, "note": "One sentence. ".repeat(30)});
/// let result = serde_json::json!({"content": [{"type": "text", "text": value.to_string()}]}).to_string();
/// let (features, _) = Features::from_tags(["verbosity=compact"]);
/// let (shaped, left_out) = compact_tool_result(
///     &result,
///     &features,
///     ToolFacts::default(),
///     &Policy::default(),
///     &Compaction::default(),
/// );
/// let Shaped::Changed { result, .. } = shaped else { panic!() };
/// assert!(result.contains(r"/next: 1 empty\n/note: 1 shortened, 112 of 420 bytes"));
/// assert_eq!(left_out.len(), 2);
///
/// // Nobody asked.
/// let (shaped, _) = compact_tool_result(
///     &result,
///     &Features::default(),
///     ToolFacts::default(),
///     &Policy::default(),
///     &Compaction::default(),
/// );
/// assert_eq!(shaped, Shaped::Unchanged);
/// ```
#[must_use]
pub fn compact_tool_result(
    result: &str,
    features: &Features,
    tool: ToolFacts,
    policy: &Policy<'_>,
    compaction: &Compaction<'_>,
) -> (Shaped, Vec<LeftOut>) {
    let shaped = tool_result(result, features, tool, policy);
    if features.verbosity() != Verbosity::Compact {
        return (shaped, Vec::new());
    }
    let compacting = Compacting {
        tool,
        policy,
        compaction,
    };
    match compacting.run(result, &shaped) {
        Ok(Some(compacted)) => compacted,
        // A result that cannot be read is the client's to judge.
        Ok(None) | Err(_) => (shaped, Vec::new()),
    }
}

struct Compacting<'c> {
    tool: ToolFacts,
    policy: &'c Policy<'c>,
    compaction: &'c Compaction<'c>,
}

impl Compacting<'_> {
    /// The shorter form of `shaped`, which was made from `served`; none where there is none.
    fn run(
        &self,
        served: &str,
        shaped: &Shaped,
    ) -> Result<Option<(Shaped, Vec<LeftOut>)>, JsonError> {
        let original = Members::parse(served)?;
        if !is_shapeable(&original) || meta(&original)?.contains(META_APPLIED) {
            return Ok(None);
        }
        let served_blocks = original.get("content").map_or(Ok(Vec::new()), blocks)?;
        let served_texts = texts(&served_blocks);
        let structured = original.get("structuredContent").filter(|v| *v != "null");
        let value = match structured {
            Some(structured) => Some(Json::parse(structured)?),
            None => document(&served_texts),
        };
        let Some(value) = value else {
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
        let Some(left_out) = self.shorten(&value, format, &mut result)? else {
            return Ok(None);
        };
        if let Some(report) = report {
            result.set("_meta", report);
        }
        let result = result.to_json();
        Ok((result.len() < current.len())
            .then_some((Shaped::Changed { result, applied }, left_out)))
    }

    /// Says `value` shorter in both fields; none when neither changes.
    fn shorten(
        &self,
        value: &Json<'_>,
        format: Option<Format>,
        result: &mut Members<'_>,
    ) -> Result<Option<Vec<LeftOut>>, JsonError> {
        let content = result.get("content").unwrap_or("[]").to_owned();
        let blocks = blocks(&content)?;
        let short = self.text(value, format, &blocks);
        let structured = match result.get("structuredContent") {
            None | Some("null") => None,
            Some(_) => self.structured(value),
        };
        let mut new: Vec<Cow<'_, str>> = Vec::new();
        for (at, block) in blocks.iter().enumerate() {
            new.push(match &short {
                Some((place, text, _)) if *place == at => with_text(block.written, text),
                _ => Cow::Borrowed(block.written),
            });
        }
        let left_out = match (&short, &structured) {
            (Some((_, _, left_out)), _) => left_out.clone(),
            (None, Some(structured)) => structured.left_out.clone(),
            (None, None) => return Ok(None),
        };
        if !left_out.is_empty() {
            new.push(text_block(&notice(&left_out)).into());
            new.extend(self.compaction.whole.map(Cow::Borrowed));
        }
        result.set("content", array(&new));
        if let Some(structured) = structured {
            result.set("structuredContent", structured.value.to_json());
        }
        Ok(Some(left_out))
    }

    /// The number of the block that repeats `value`, what it says in fewer words, and what that
    /// leaves out.
    fn text(
        &self,
        value: &Json<'_>,
        format: Option<Format>,
        blocks: &[Block<'_>],
    ) -> Option<(usize, String, Vec<LeftOut>)> {
        let limits = &self.compaction.limits;
        let render: Option<fn(&Json<'_>) -> String> = match format {
            Some(Format::Markdown) => Some(render::markdown),
            Some(Format::Text) => Some(render::text),
            Some(Format::Json) | None => None,
        };
        let rendering = render.map(|render| render(value));
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
            Some(render) => {
                let short = compact(value, limits);
                (render(&short.value), short.left_out)
            }
            None => {
                let short = compact_columns(value, limits);
                (short.value.to_json(), short.left_out)
            }
        };
        (short.len() < text.len()).then_some((*at, short, left_out))
    }

    fn structured<'v>(&self, value: &Json<'v>) -> Option<Compact<'v>> {
        let schema = self.compaction.output_schema;
        let is_known = !self.tool.output_schema || schema.is_some();
        let may_be_cut = is_known && !self.tool.ui;
        may_be_cut
            .then(|| compact_structured(value, schema, &self.compaction.limits))
            .flatten()
    }
}
