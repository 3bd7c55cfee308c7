//! The result of a call in the shape that the client negotiated.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary::feature::{Features, Verbosity};
use mcp_vary::json::edit;
use mcp_vary::json::{Json, elements};
use mcp_vary::render::Contract;
use mcp_vary::shape::{
    Bounds, Compaction, CustomText, OutputSchema, Policy, Report, Shaped, TEXTS_PATH, ToolFacts,
    Whole, compact_shaped, compact_tool_result, tool_result,
};
use mcp_vary::variant::VariantId;
use mcp_vary_view::{OutputCheck, ResultFields, UriMap};
use mcp_vary_wire::era::{STRUCTURED_CONTENT, drop_structured_content, is_text, with_text_content};
use mcp_vary_wire::revision::Era;
use serde_json::Value;

use crate::negotiation_log;
use crate::result_store::{ResultOwner, ResultStore};
use crate::{
    CallContext, OutputValidator, PromptRule, ResourceRule, ResultTransform, TransformedResult,
    apply_prompt_rules, apply_resource_rules,
};

/// What a result is shaped by.
#[derive(Clone, Debug)]
pub struct ResultShaper {
    /// What the client declared, or is taken to have declared.
    pub features: Option<Arc<Features>>,
    /// Whether the client receives a report of what was applied.
    pub report: bool,
    /// The operator's rule for it, if one matches.
    pub matched_rule: Option<MatchedRule>,
    /// Where the whole result is stored if the client gets less of it.
    pub spillover: Spillover,
    /// Whether the client's revision knows resource links.
    pub is_linked: bool,
    /// Validates the structured value against the schema that the client has.
    pub output: Option<Arc<OutputValidator>>,
    /// Which fields clients of the variant get.
    pub fields: ResultFields,
    /// What shaping needs to know of the tool.
    pub tool: ToolFacts,
    /// Whether agents that ask for JSON get it in `content`, too.
    pub always_both: bool,
    /// Whether a text that is one JSON document becomes a structured value.
    pub lift_json_text: bool,
    /// The protocol era of the client.
    pub era: Era,
    /// The variant that the request runs under.
    pub variant: Option<VariantId>,
}

/// What becomes of a result on its way to the client.
#[derive(Clone, Debug)]
pub enum Shaper {
    /// The result of a tool.
    Tool(Box<ResultShaper>),
    /// The result of `resources/read`.
    Resource(ResourceShaper),
    /// The result of `prompts/get`.
    Prompt(PromptShaper),
}

impl Shaper {
    /// The shaped result; the same bytes when nothing is to be done.
    pub fn apply<'a>(&self, result: &'a str) -> Cow<'a, str> {
        let (what, listener, shaped) = match self {
            Self::Tool(shaping) => return shaping.apply(result),
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

/// The client that receives a result.
#[derive(Clone, Debug)]
pub struct ShapeTarget {
    /// What the client declared, or is taken to have declared.
    pub features: Arc<Features>,
    /// Whether it receives a report of what was applied.
    pub report: bool,
    /// The variant that the request runs under.
    pub variant: Option<VariantId>,
}

impl ShapeTarget {
    fn report(&self) -> Option<Report<'_>> {
        let variant = self.variant.as_ref().map(VariantId::as_str);
        self.report.then_some(Report { variant })
    }
}

/// What a resource is shaped by.
#[derive(Clone, Debug)]
pub struct ResourceShaper {
    /// The rules for resources.
    pub rules: Arc<[ResourceRule]>,
    /// The name of the server.
    pub server: Arc<str>,
    /// What the variant calls resources.
    pub uris: Arc<UriMap>,
    /// The client that gets the result.
    pub target: ShapeTarget,
}

impl ResourceShaper {
    fn apply(&self, result: &str) -> Shaped {
        let ShapeTarget { features, .. } = &self.target;
        apply_resource_rules(
            &self.rules,
            (&self.server, &self.uris),
            result,
            features,
            self.target.report(),
        )
    }
}

/// What a prompt is shaped by.
#[derive(Clone, Debug)]
pub struct PromptShaper {
    /// The rules for prompts.
    pub rules: Arc<[PromptRule]>,
    /// What it is called where no variant renames it.
    pub id: Arc<str>,
    /// The request.
    pub call: CallContext,
    /// The client that gets the result.
    pub target: ShapeTarget,
}

impl PromptShaper {
    fn apply(&self, result: &str) -> Shaped {
        let ShapeTarget { features, .. } = &self.target;
        apply_prompt_rules(
            &self.rules,
            (&self.id, &self.call),
            result,
            features,
            self.target.report(),
        )
    }
}

/// A recipe for the result, and what it needs to know.
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
    /// The tool that reads it, where there is one.
    pub reader_tool: Option<Arc<str>>,
}

impl ResultShaper {
    fn apply<'a>(&self, result: &'a str) -> Cow<'a, str> {
        match self.fields() {
            ResultFields::Both => self.negotiated(result),
            ResultFields::Content => {
                // In words from the start: a notice of what is missing is one, and says nothing of the rest.
                let shaped = self.negotiated(&with_text_content(result)).into_owned();
                Cow::Owned(drop_structured_content(&shaped).into_owned())
            }
            ResultFields::Structured => {
                Cow::Owned(structured_only(&self.negotiated(result)).into_owned())
            }
        }
    }

    /// The fields that this client gets of this tool.
    fn fields(&self) -> ResultFields {
        match self.fields {
            // A user interface reads the structure, whatever its model does (MCP Apps).
            ResultFields::Content if self.tool.ui => ResultFields::Both,
            // A revision without links has no structure either: nothing would be left.
            ResultFields::Structured if !self.is_linked => ResultFields::Both,
            fields => fields,
        }
    }

    fn negotiated<'a>(&self, result: &'a str) -> Cow<'a, str> {
        let none = Features::default();
        let features = self.features.as_deref().unwrap_or(&none);
        let policy = Policy {
            always_both: self.always_both,
            lift: self.lift_json_text,
            // Revisions without links have no structure either.
            text_only: !self.is_linked || self.fields() == ResultFields::Content,
            non_object_structured: self.era == Era::Modern,
            report: self.report,
            variant: self.variant.as_ref().map(VariantId::as_str),
        };
        let told = self.transformed(result, features);
        let tell = |policy: &Policy<'_>| {
            let output = self.check().map(|check| check as &dyn OutputSchema);
            let told = &told.as_ref()?.alternative;
            Some(told.apply(result, features, self.tool, output, policy))
        };
        let is_terse = features.verbosity() == Verbosity::Compact;
        let shaped = (is_terse || self.bounds() != Bounds::default()).then(|| {
            // What was applied is said once, in the end.
            let first = tell(&Policy {
                report: false,
                ..policy
            });
            self.compact(result, first, told.as_ref(), features, &policy)
        });
        let shaped = shaped.flatten();
        let shaped = shaped.or_else(|| tell(&policy));
        let shaped = shaped.unwrap_or_else(|| tool_result(result, features, self.tool, &policy));
        if let Some(features) = &self.features {
            negotiation_log::log_shaped("result", features, policy.variant, &shaped);
        }
        match shaped {
            Shaped::Changed { result, .. } => Cow::Owned(result),
            Shaped::Unchanged => Cow::Borrowed(result),
        }
    }

    /// The result as the operator's rule shapes it; `None` if no rule matches it.
    fn transformed(&self, result: &str, features: &Features) -> Option<TransformedResult> {
        let MatchedRule {
            transform: recipe,
            call: called,
        } = self.matched_rule.as_ref()?;
        recipe.apply(result, self.lift_json_text, called, features)
    }

    /// How much of the result the operator lets through.
    fn bounds(&self) -> Bounds {
        let telling = self.matched_rule.as_ref();
        telling.map_or_else(Bounds::default, |telling| telling.transform.bounds)
    }

    fn check(&self) -> Option<&OutputCheck> {
        self.output.as_ref()?.check()
    }

    /// `result`, or what was told of it `first`, in few words or within the operator's bounds, the whole of it
    /// kept for a while; none where it would not be shorter.
    fn compact(
        &self,
        result: &str,
        first: Option<Shaped>,
        told: Option<&TransformedResult>,
        features: &Features,
        policy: &Policy<'_>,
    ) -> Option<Shaped> {
        let result = match &first {
            Some(Shaped::Changed { result: told, .. }) => Cow::Owned(told.clone()),
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
            let MatchedRule {
                transform: recipe,
                call: called,
            } = self.matched_rule.as_ref()?;
            recipe.render_value(value, told?, called, features)
        };
        let words = told.and_then(|told| {
            Some(CustomText {
                value: told.value.as_deref()?,
                text: told.rendered_text.as_deref(),
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
            custom_text: words,
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
            store: kept, owner, ..
        } = &self.spillover;
        if let Some(whole) = whole {
            kept.insert(uri, whole, owner.clone());
        }
        if let Some(texts) = texts {
            kept.insert(&format!("{uri}{TEXTS_PATH}"), texts, owner.clone());
        }
    }
}

/// The result without the text beside `structuredContent`; images, audio and resources stay. An error keeps
/// its text, and so does a result without structure.
fn structured_only(result: &str) -> Cow<'_, str> {
    let has_structure = edit::get(result, STRUCTURED_CONTENT).is_some_and(|value| value != "null");
    let is_error = edit::get(result, "isError") == Some("true");
    let blocks = edit::get(result, "content").and_then(|text| elements(text).ok());
    let (true, false, Some(blocks)) = (has_structure, is_error, blocks) else {
        return Cow::Borrowed(result);
    };
    let kept: Vec<_> = blocks.into_iter().filter(|block| !is_text(block)).collect();
    edit::set(result, "content", &format!("[{}]", kept.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_field_alone_loses_no_image_and_no_error() {
        let both = r#"{"content":[{"type":"text","text":"8"},{"type":"image"}], "structuredContent":{"a":1.0}}"#;
        assert_eq!(
            drop_structured_content(both),
            r#"{"content":[{"type":"text","text":"8"},{"type":"image"}]}"#
        );
        assert_eq!(
            structured_only(both),
            r#"{"content":[{"type":"image"}], "structuredContent":{"a":1.0}}"#
        );
        let bare = r#"{"content":[{"type":"image"}],"structuredContent":{"a":1.0}}"#;
        assert_eq!(
            drop_structured_content(bare),
            r#"{"content":[{"type":"image"},{"type":"text","text":"{\"a\":1.0}"}]}"#
        );
        for kept in [
            r#"{"content":[{"type":"text","text":"no"}],"structuredContent":{"a":1},"isError":true}"#,
            r#"{"content":[{"type":"text","text":"8"}]}"#,
        ] {
            assert_eq!(structured_only(kept), kept);
        }
    }
}
