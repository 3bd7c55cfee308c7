//! Rewrites a result for one client: to the names and URIs that its variant shows, and to the shape that it negotiated.

pub use crate::item_shapers::{PromptShaper, ResourceShaper, ShapeTarget};
use crate::link_index::LinkSource;
use crate::name_rewriter::NameRewriter;
use crate::result_store::{ResultOwner, ResultStore};
use crate::upstream_report::shape_beside;
use crate::{CallContext, DeclaredOutput, OutputValidator, ResultTransform, TransformedResult};
use crate::{negotiation_log, uri_rewriter};
use mcp_vary::feature::{Features, Format};
use mcp_vary::json::{Json, edit, elements};
use mcp_vary::render::Contract;
use mcp_vary::shape::{
    Bounds, Compaction, CustomText, OutputSchema, Policy, ReadableResult, Shaped, TEXTS_PATH,
    ToolFacts, Whole, compact_shaped, compact_tool_result, tool_result,
};
use mcp_vary::variant::VariantId;
use mcp_vary_view::{OutputCheck, ResultFields, UriMap};
use mcp_vary_wire::era::{
    self, ProgressTokens, STRUCTURED_CONTENT, drop_structured_content, is_text, with_text_content,
};
use mcp_vary_wire::revision::Era;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// Shapes the results of a tool call.
#[derive(Clone, Debug)]
pub struct ResultShaper {
    /// The features that the client declared, or that are assumed for it.
    pub features: Option<Arc<Features>>,
    /// Whether the client receives a report of what was applied.
    pub report: bool,
    /// The value that the tool has instead of the server's, if the operator declared one, and the call.
    pub declared_output: Option<(Arc<DeclaredOutput>, CallContext)>,
    /// The operator's rule for the result, if one matches.
    pub matched_rule: Option<MatchedRule>,
    /// Where the whole result is stored if the client receives less.
    pub spillover: Spillover,
    /// Whether the client's revision supports resource links.
    pub is_linked: bool,
    /// Validates the structured value against the schema that the client knows.
    pub output: Option<Arc<OutputValidator>>,
    /// Which fields the clients of the variant receive.
    pub fields: ResultFields,
    /// What shaping needs to know about the tool.
    pub tool: ToolFacts,
    /// Where agents that ask for JSON alone receive it, and whether with the author's texts.
    pub json_content: JsonContent,
    /// Whether a text that is a single JSON document becomes a structured value.
    pub lift_json_text: bool,
    /// The protocol era of the client.
    pub era: Era,
    /// The variant that the request runs under.
    pub variant: Option<VariantId>,
}

/// Shapes a result for the client.
#[derive(Clone, Debug)]
pub enum Shaper {
    /// The result of a tool.
    Tool(Box<ResultShaper>),
    /// The result of `resources/read`.
    Resource(ResourceShaper),
    /// The result of `prompts/get`.
    Prompt(PromptShaper),
    /// The result of a tool that the server has shaped, for a client that also reads texts: a structured value without a
    /// text gets one.
    Text,
}

impl Shaper {
    /// What is left to do with the result of a server that shapes it for the client itself: which fields the client
    /// reads. `None` if the result stays as it is.
    pub fn after_server(self) -> Option<Self> {
        let Self::Tool(mut shaper) = self else {
            return None;
        };
        shaper.features = None;
        shaper.matched_rule = None;
        shaper.report = false;
        match shaper.fields() {
            ResultFields::Both if shaper.json_content == JsonContent::Both || !shaper.is_linked => {
                Some(Self::Text)
            }
            ResultFields::Both => None,
            _ => Some(Self::Tool(shaper)),
        }
    }

    /// Shapes `result`. Returns the same bytes if nothing changes.
    pub fn apply<'a>(&self, result: &'a str) -> Cow<'a, str> {
        let (what, listener, shaped) = match self {
            Self::Tool(shaping) => return shaping.apply(result),
            Self::Text => return with_text_content(result),
            Self::Resource(shaping) => ("resource", &shaping.target, shaping.apply(result)),
            Self::Prompt(shaping) => ("prompt", &shaping.target, shaping.apply(result)),
        };
        let variant = listener.variant.as_ref().map(VariantId::as_str);
        negotiation_log::log_shaped(what, &listener.features, variant, &shaped);
        match shaped {
            Shaped::Changed { result, .. } => Cow::Owned(result),
            _ => Cow::Borrowed(result),
        }
    }
}

/// What agents that ask for JSON (`agent`, `format=json`) receive in `content`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum JsonContent {
    /// No text: JSON is in `structuredContent`, and the report names the whole result if a text says more.
    #[default]
    Strict,
    /// The author's texts that say more.
    Texts,
    /// JSON as text, and the author's texts, because some clients read only one of the fields.
    Both,
}

/// The operator's rule for a result, and the call that it applies to.
#[derive(Clone, Debug)]
pub struct MatchedRule {
    /// What the rule does with the result.
    pub transform: Arc<ResultTransform>,
    /// The request.
    pub call: CallContext,
}

/// Where whole results are stored, and for whom.
#[derive(Clone, Debug)]
pub struct Spillover {
    /// The store of whole results.
    pub store: Arc<ResultStore>,
    /// The client and the tool of the result.
    pub owner: ResultOwner,
    /// The tool that reads stored results, if it is enabled.
    pub reader_tool: Option<Arc<str>>,
}

impl ResultShaper {
    fn apply<'a>(&self, result: &'a str) -> Cow<'a, str> {
        match &self.declared_output {
            Some((output, call)) => {
                edit::and_then(output.apply(result, call), |result| self.shape(result))
            }
            None => self.shape(result),
        }
    }

    /// The result with the tool's value, for this client.
    fn shape<'a>(&self, result: &'a str) -> Cow<'a, str> {
        match self.fields() {
            ResultFields::Both => self.negotiated(result),
            ResultFields::Content => {
                // Add the text before shaping: a shortened result has a text with the notice of omitted parts, and
                // would then not get a text for the value.
                let shaped = self.negotiated(&with_text_content(result)).into_owned();
                Cow::Owned(drop_structured_content(&shaped).into_owned())
            }
            ResultFields::Structured => {
                Cow::Owned(structured_only(&self.negotiated(result)).into_owned())
            }
        }
    }

    /// The fields that this client receives from this tool.
    fn fields(&self) -> ResultFields {
        match self.fields {
            // A user interface reads `structuredContent`, even if the model does not (MCP Apps).
            ResultFields::Content if self.tool.ui => ResultFields::Both,
            // A revision without links has no `structuredContent` either, so nothing would be left.
            ResultFields::Structured if !self.is_linked => ResultFields::Both,
            fields => fields,
        }
    }

    fn negotiated<'a>(&self, result: &'a str) -> Cow<'a, str> {
        if self.features.is_none() && self.matched_rule.is_none() {
            return Cow::Borrowed(result);
        }
        let shaped = shape_beside(result, |result| self.negotiate(result));
        if let Some(features) = &self.features {
            let variant = self.variant.as_ref().map(VariantId::as_str);
            negotiation_log::log_shaped("result", features, variant, &shaped);
        }
        match shaped {
            Shaped::Changed { result, .. } => Cow::Owned(result),
            Shaped::Unchanged => Cow::Borrowed(result),
        }
    }

    fn negotiate(&self, result: &str) -> Shaped {
        let none = Features::default();
        let features = self.features.as_deref().unwrap_or(&none);
        let whole = self.uri_of_texts(result, features);
        let shaped = self.negotiate_with(result, features, whole.as_deref());
        match (&shaped, &whole) {
            (Shaped::Changed { applied, .. }, Some(uri)) if applied.omits_texts => {
                // Texts that could not be read there stay.
                if Json::parse(result).is_err() {
                    return self.negotiate_with(result, features, None);
                }
                self.spill(uri, Some(result.to_owned()), None);
            }
            _ => {}
        }
        shaped
    }

    /// The shaped result; `whole` is where the client can read it if it gets none of its texts.
    fn negotiate_with(&self, result: &str, features: &Features, whole: Option<&str>) -> Shaped {
        let policy = Policy {
            always_both: self.json_content == JsonContent::Both,
            lift: self.lift_json_text,
            // Revisions without links have no `structuredContent` either.
            text_only: !self.is_linked || self.fields() == ResultFields::Content,
            non_object_structured: self.era == Era::Modern,
            report: self.report,
            variant: self.variant.as_ref().map(VariantId::as_str),
            whole,
        };
        let rule = self.matched_rule.as_ref();
        let readable = rule.and_then(|_| ReadableResult::read(result));
        let read = readable.as_ref();
        let transformed = read.and_then(|result| self.transformed(result, features));
        let tell = |policy: &Policy<'_>| {
            let output = self.check().map(|check| check as &dyn OutputSchema);
            let alternative = &transformed.as_ref()?.alternative;
            let read = readable.as_ref()?;
            Some(alternative.apply_to(read, features, self.tool, output, policy))
        };
        let compacted = (features.shortens() || self.bounds() != Bounds::default()).then(|| {
            // The report of what was applied is added only once, at the end.
            let first = tell(&Policy {
                report: false,
                ..policy
            });
            self.compact(result, first, transformed.as_ref(), features, &policy)
        });
        let shaped = compacted.flatten().or_else(|| tell(&policy));
        shaped.unwrap_or_else(|| tool_result(result, features, self.tool, &policy))
    }

    /// The URI for the whole result if the client gets none of its texts: an agent that asked for JSON alone, and reads
    /// the URI in the report.
    fn uri_of_texts(&self, result: &str, features: &Features) -> Option<String> {
        let is_alone = features.agent() && features.format() == Some(Format::Json);
        if !is_alone || !self.report || self.json_content != JsonContent::Strict {
            return None;
        }
        self.spillover.store.new_uri(result.len())
    }

    /// Applies the operator's rule. `None` if no rule matches or the rule fails.
    fn transformed(
        &self,
        result: &ReadableResult<'_>,
        features: &Features,
    ) -> Option<TransformedResult> {
        let rule = self.matched_rule.as_ref()?;
        let transform = &rule.transform;
        transform.apply(result, self.lift_json_text, &rule.call, features)
    }

    /// The operator's limits for the result.
    fn bounds(&self) -> Bounds {
        let telling = self.matched_rule.as_ref();
        telling.map_or_else(Bounds::default, |telling| telling.transform.bounds)
    }

    fn check(&self) -> Option<&OutputCheck> {
        self.output.as_ref()?.check()
    }

    /// Shortens `result`, or its transformed version `first`, to a compact form or to the operator's limits, and stores
    /// the whole of it. `None` if the outcome would not be shorter.
    fn compact(
        &self,
        result: &str,
        first: Option<Shaped>,
        transformed: Option<&TransformedResult>,
        features: &Features,
        policy: &Policy<'_>,
    ) -> Option<Shaped> {
        let result = match &first {
            Some(Shaped::Changed {
                result: transformed,
                ..
            }) => Cow::Owned(transformed.clone()),
            _ => Cow::Borrowed(result),
        };
        let uri = self.spillover.store.new_uri(result.len());
        let check = self.check();
        let accepts = check.map(|check| |value: &Value| check.accepts_value(value));
        let contract = match (check, &accepts) {
            (Some(check), Some(accepts)) => Contract::of(check.schema()).accepted_by(accepts),
            _ => Contract::default(),
        };
        let bounds = self.bounds();
        let say = |value: &Json<'_>| {
            let rule = self.matched_rule.as_ref()?;
            let transform = &rule.transform;
            transform.render_value(value, transformed?, &rule.call, features)
        };
        let rendered = transformed.and_then(|transformed| {
            Some(CustomText {
                value: transformed.value.as_deref()?,
                text: transformed.rendered_text.as_deref(),
                render: &say,
            })
        });
        let compaction = Compaction {
            bounds,
            contract,
            whole: uri.as_deref().map(|uri| Whole {
                uri,
                is_linked: self.is_linked,
            }),
            reader: self.spillover.reader_tool.as_deref(),
            custom_text: rendered,
            ..Compaction::default()
        };
        let compacted = match first {
            Some(first) => compact_shaped(&result, first, features, self.tool, policy, &compaction),
            None => compact_tool_result(&result, features, self.tool, policy, &compaction),
        };
        if let Some(uri) = &uri {
            self.spill(uri, compacted.whole, compacted.texts);
        }
        compacted.is_shorter.then_some(compacted.shaped)
    }

    fn spill(&self, uri: &str, whole: Option<String>, texts: Option<String>) {
        let Spillover {
            store: remaining,
            owner,
            ..
        } = &self.spillover;
        if let Some(whole) = whole {
            remaining.insert(uri, whole, owner.clone());
        }
        if let Some(texts) = texts {
            remaining.insert(&format!("{uri}{TEXTS_PATH}"), texts, owner.clone());
        }
    }
}

/// Removes the text beside `structuredContent`. Images, audio and resources stay. An error keeps its text, and so does
/// a result without `structuredContent`.
fn structured_only(result: &str) -> Cow<'_, str> {
    let has_structure = edit::get(result, STRUCTURED_CONTENT).is_some_and(|value| value != "null");
    let is_error = edit::get(result, "isError") == Some("true");
    if !has_structure || is_error {
        return Cow::Borrowed(result);
    }
    let Some(blocks) = edit::get(result, "content").and_then(|text| elements(text).ok()) else {
        return Cow::Borrowed(result);
    };
    let remaining: Vec<_> = blocks.into_iter().filter(|block| !is_text(block)).collect();
    edit::set(result, "content", &format!("[{}]", remaining.join(",")))
}

/// Rewrites the results of one call for its client, also after the request has ended.
#[derive(Clone, Debug, Default)]
pub struct ResultRewriter {
    /// The item that was called, if the links in its results are recorded.
    pub origin: Option<LinkSource>,
    /// Shapes the result.
    pub shape: Option<Shaper>,
    /// The names that the view changed.
    pub names: Option<Arc<NameRewriter>>,
    /// The URIs that the view changed.
    pub uris: Option<Arc<UriMap>>,
    /// Whether to remove structured content that the client's revision does not support.
    pub is_foreign: bool,
    /// The progress tokens, for as long as a task runs.
    pub progress: Option<ProgressTokens>,
}

impl ResultRewriter {
    /// The rules for rewriting, borrowed.
    pub fn rules(&self) -> RewriteRules<'_> {
        RewriteRules {
            shape: self.shape.as_ref(),
            names: self.names.as_deref(),
            uris: self.uris.as_deref(),
            is_foreign: self.is_foreign,
        }
    }
}

/// How a result is rewritten.
#[derive(Clone, Copy, Debug, Default)]
pub struct RewriteRules<'a> {
    /// Shapes the result.
    pub shape: Option<&'a Shaper>,
    /// The names that the view changed.
    pub names: Option<&'a NameRewriter>,
    /// The URIs that the view changed.
    pub uris: Option<&'a UriMap>,
    /// Whether to remove structured content that the client's revision does not support.
    pub is_foreign: bool,
}

/// Rewrites `result` to the client's names and URIs, and shapes it.
pub fn rewrite_result<'a>(result: &'a str, rules: &RewriteRules<'_>) -> Cow<'a, str> {
    let named = match rules.names {
        Some(names) => names.rewrite_failed_result(result),
        None => Cow::Borrowed(result),
    };
    let addressed = match rules.uris {
        Some(uris) => edit::and_then(named, |named| uri_rewriter::rewrite_result(uris, named)),
        None => named,
    };
    let shaped = match rules.shape {
        Some(shape) => edit::and_then(addressed, |addressed| shape.apply(addressed)),
        None => addressed,
    };
    if !rules.is_foreign {
        return shaped;
    }
    edit::and_then(shaped, era::drop_unsupported_structured_content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_field_alone_loses_no_image_and_no_error() {
        let both = r#"{"content":[{"type":"text","text":"8"},{"type":"image"}], "structuredContent":{"a":1.0}}"#;
        let expected = r#"{"content":[{"type":"text","text":"8"},{"type":"image"}]}"#;
        assert_eq!(drop_structured_content(both), expected);
        let expected = r#"{"content":[{"type":"image"}], "structuredContent":{"a":1.0}}"#;
        assert_eq!(structured_only(both), expected);
        let bare = r#"{"content":[{"type":"image"}],"structuredContent":{"a":1.0}}"#;
        let expected = r#"{"content":[{"type":"image"},{"type":"text","text":"{\"a\":1.0}"}]}"#;
        assert_eq!(drop_structured_content(bare), expected);
        for unchanged in [
            r#"{"content":[{"type":"text","text":"no"}],"structuredContent":{"a":1},"isError":true}"#,
            r#"{"content":[{"type":"text","text":"8"}]}"#,
        ] {
            assert_eq!(structured_only(unchanged), unchanged);
        }
    }
}
