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
use mcp_vary_wire::era::{STRUCTURE, is_text, with_words, without_structure};
use mcp_vary_wire::revision::Era;
use serde_json::Value;

use crate::negotiation_log;
use crate::result_store::{Kept, Owner};
use crate::{Called, Output, PromptRule, Recipe, ResourceRule, Told, told_prompt, told_resource};

/// What a result is shaped by.
#[derive(Clone, Debug)]
pub struct Shaping {
    /// What the client declared, or is taken to have declared.
    pub features: Option<Arc<Features>>,
    /// Whether the client is told what was applied.
    pub report: bool,
    /// How the operator has it told.
    pub telling: Option<Telling>,
    pub keeping: Keeping,
    /// Whether the client's revision knows resource links.
    pub is_linked: bool,
    /// What the client was told of the structured value.
    pub output: Option<Arc<Output>>,
    /// Which fields clients of the variant get.
    pub fields: ResultFields,
    pub tool: ToolFacts,
    pub always_both: bool,
    pub lift_json_text: bool,
    pub era: Era,
    pub variant: Option<VariantId>,
}

/// What becomes of a result on its way to the client.
#[derive(Clone, Debug)]
pub enum Shape {
    Tool(Box<Shaping>),
    Resource(ResourceShaping),
    Prompt(PromptShaping),
}

impl Shape {
    /// The shaped result; the same bytes when nothing is to be done.
    pub fn apply<'a>(&self, result: &'a str) -> Cow<'a, str> {
        let (what, listener, shaped) = match self {
            Self::Tool(shaping) => return shaping.apply(result),
            Self::Resource(shaping) => ("resource", &shaping.listener, shaping.apply(result)),
            Self::Prompt(shaping) => ("prompt", &shaping.listener, shaping.apply(result)),
        };
        let variant = listener.variant.as_ref().map(VariantId::as_str);
        negotiation_log::chosen(what, &listener.features, variant, &shaped);
        match shaped {
            Shaped::Changed { result, .. } => Cow::Owned(result),
            _ => Cow::Borrowed(result),
        }
    }
}

/// Whom something is told.
#[derive(Clone, Debug)]
pub struct Listener {
    pub features: Arc<Features>,
    /// Whether it is told what was applied.
    pub report: bool,
    pub variant: Option<VariantId>,
}

impl Listener {
    fn report(&self) -> Option<Report<'_>> {
        let variant = self.variant.as_ref().map(VariantId::as_str);
        self.report.then_some(Report { variant })
    }
}

/// What a resource is shaped by.
#[derive(Clone, Debug)]
pub struct ResourceShaping {
    pub rules: Arc<[ResourceRule]>,
    pub server: Arc<str>,
    /// What the variant calls resources.
    pub uris: Arc<UriMap>,
    pub listener: Listener,
}

impl ResourceShaping {
    fn apply(&self, result: &str) -> Shaped {
        let Listener { features, .. } = &self.listener;
        told_resource(
            &self.rules,
            (&self.server, &self.uris),
            result,
            features,
            self.listener.report(),
        )
    }
}

/// What a prompt is shaped by.
#[derive(Clone, Debug)]
pub struct PromptShaping {
    pub rules: Arc<[PromptRule]>,
    /// What it is called where no variant renames it.
    pub id: Arc<str>,
    pub called: Called,
    pub listener: Listener,
}

impl PromptShaping {
    fn apply(&self, result: &str) -> Shaped {
        let Listener { features, .. } = &self.listener;
        told_prompt(
            &self.rules,
            (&self.id, &self.called),
            result,
            features,
            self.listener.report(),
        )
    }
}

/// A recipe for the result, and what it needs to know.
#[derive(Clone, Debug)]
pub struct Telling {
    pub recipe: Arc<Recipe>,
    pub called: Called,
}

/// Where what is left out is kept, and whose it is.
#[derive(Clone, Debug)]
pub struct Keeping {
    pub kept: Arc<Kept>,
    pub owner: Owner,
    /// The tool that reads it, where there is one.
    pub reader: Option<Arc<str>>,
}

impl Shaping {
    fn apply<'a>(&self, result: &'a str) -> Cow<'a, str> {
        match self.fields() {
            ResultFields::Both => self.negotiated(result),
            ResultFields::Content => {
                // In words from the start: a notice of what is missing is one, and says nothing of the rest.
                let shaped = self.negotiated(&with_words(result)).into_owned();
                Cow::Owned(without_structure(&shaped).into_owned())
            }
            ResultFields::Structured => {
                Cow::Owned(structure_alone(&self.negotiated(result)).into_owned())
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
        let told = self.told(result, features);
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
            self.in_few_words(result, first, told.as_ref(), features, &policy)
        });
        let shaped = shaped.flatten();
        let shaped = shaped.or_else(|| tell(&policy));
        let shaped = shaped.unwrap_or_else(|| tool_result(result, features, self.tool, &policy));
        if let Some(features) = &self.features {
            negotiation_log::chosen("result", features, policy.variant, &shaped);
        }
        match shaped {
            Shaped::Changed { result, .. } => Cow::Owned(result),
            Shaped::Unchanged => Cow::Borrowed(result),
        }
    }

    /// How the operator has the result told; none where no rule is about it.
    fn told(&self, result: &str, features: &Features) -> Option<Told> {
        let Telling { recipe, called } = self.telling.as_ref()?;
        recipe.told(result, self.lift_json_text, called, features)
    }

    /// How much of the result the operator lets through.
    fn bounds(&self) -> Bounds {
        let telling = self.telling.as_ref();
        telling.map_or_else(Bounds::default, |telling| telling.recipe.bounds)
    }

    fn check(&self) -> Option<&OutputCheck> {
        self.output.as_ref()?.check()
    }

    /// `result`, or what was told of it `first`, in few words or within the operator's bounds, the whole of it
    /// kept for a while; none where it would not be shorter.
    fn in_few_words(
        &self,
        result: &str,
        first: Option<Shaped>,
        told: Option<&Told>,
        features: &Features,
        policy: &Policy<'_>,
    ) -> Option<Shaped> {
        let result = match &first {
            Some(Shaped::Changed { result: told, .. }) => Cow::Owned(told.clone()),
            _ => Cow::Borrowed(result),
        };
        let uri = self.keeping.kept.uri(result.len());
        let check = self.check();
        let accepts = check.map(|check| |value: &Value| check.accepts_value(value));
        let contract = match (check, &accepts) {
            (Some(check), Some(accepts)) => Contract::of(check.schema()).accepted_by(accepts),
            _ => Contract::default(),
        };
        let bounds = self.bounds();
        let say = |value: &Json<'_>| {
            let Telling { recipe, called } = self.telling.as_ref()?;
            recipe.say(value, told?, called, features)
        };
        let words = told.and_then(|told| {
            Some(CustomText {
                value: told.value.as_deref()?,
                text: told.words.as_deref(),
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
            reader: self.keeping.reader.as_deref(),
            custom_text: words,
            ..Compaction::default()
        };
        let compacted = match first {
            Some(first) => compact_shaped(&result, first, features, self.tool, policy, &compaction),
            None => compact_tool_result(&result, features, self.tool, policy, &compaction),
        };
        if let Some(uri) = &uri {
            self.keep(uri, compacted.whole, compacted.texts);
        }
        compacted.is_shorter.then_some(compacted.shaped)
    }

    fn keep(&self, uri: &str, whole: Option<String>, texts: Option<String>) {
        let Keeping { kept, owner, .. } = &self.keeping;
        if let Some(whole) = whole {
            kept.keep(uri, whole, owner.clone());
        }
        if let Some(texts) = texts {
            kept.keep(&format!("{uri}{TEXTS_PATH}"), texts, owner.clone());
        }
    }
}

/// The result without the text beside `structuredContent`; images, audio and resources stay. An error keeps
/// its text, and so does a result without structure.
fn structure_alone(result: &str) -> Cow<'_, str> {
    let has_structure = edit::get(result, STRUCTURE).is_some_and(|value| value != "null");
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
            without_structure(both),
            r#"{"content":[{"type":"text","text":"8"},{"type":"image"}]}"#
        );
        assert_eq!(
            structure_alone(both),
            r#"{"content":[{"type":"image"}], "structuredContent":{"a":1.0}}"#
        );
        let bare = r#"{"content":[{"type":"image"}],"structuredContent":{"a":1.0}}"#;
        assert_eq!(
            without_structure(bare),
            r#"{"content":[{"type":"image"},{"type":"text","text":"{\"a\":1.0}"}]}"#
        );
        for kept in [
            r#"{"content":[{"type":"text","text":"no"}],"structuredContent":{"a":1},"isError":true}"#,
            r#"{"content":[{"type":"text","text":"8"}]}"#,
        ] {
            assert_eq!(structure_alone(kept), kept);
        }
    }
}
