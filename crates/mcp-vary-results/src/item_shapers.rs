//! Shapes what a client reads of resources and prompts.

use std::sync::Arc;

use mcp_vary::feature::Features;
use mcp_vary::shape::{Report, Shaped};
use mcp_vary::variant::VariantId;
use mcp_vary_view::UriMap;

use crate::upstream_report::shape_beside;
use crate::{CallContext, PromptRule, ResourceRule, apply_prompt_rules, apply_resource_rules};

/// The client that receives a result.
#[derive(Clone, Debug)]
pub struct ShapeTarget {
    /// The features that the client declared, or that are assumed for it.
    pub features: Arc<Features>,
    /// Whether it receives a report of what was applied.
    pub report: bool,
    /// The variant that the request runs under, as the report names it.
    pub variant: Option<VariantId>,
    /// The variant that rules compare.
    pub rules_of: VariantId,
}

impl ShapeTarget {
    pub(crate) fn report(&self) -> Option<Report<'_>> {
        let variant = self.variant.as_ref().map(VariantId::as_str);
        self.report.then_some(Report {
            variant,
            whole: None,
        })
    }
}

/// Shapes the results of `resources/read`.
#[derive(Clone, Debug)]
pub struct ResourceShaper {
    /// The rules for resources.
    pub rules: Arc<[ResourceRule]>,
    /// The name of the server.
    pub server: Arc<str>,
    /// The variant's URIs of resources.
    pub uris: Arc<UriMap>,
    /// The client that receives the result.
    pub target: ShapeTarget,
}

impl ResourceShaper {
    pub(crate) fn apply(&self, result: &str) -> Shaped {
        shape_beside(result, |result| {
            apply_resource_rules(
                &self.rules,
                &self.target.rules_of,
                (&self.server, &self.uris),
                result,
                &self.target.features,
                self.target.report(),
            )
        })
    }
}

/// Shapes the results of `prompts/get`.
#[derive(Clone, Debug)]
pub struct PromptShaper {
    /// The rules for prompts.
    pub rules: Arc<[PromptRule]>,
    /// The name of the prompt before a variant renames it.
    pub id: Arc<str>,
    /// The request.
    pub call: CallContext,
    /// The client that receives the result.
    pub target: ShapeTarget,
}

impl PromptShaper {
    pub(crate) fn apply(&self, result: &str) -> Shaped {
        shape_beside(result, |result| {
            apply_prompt_rules(
                &self.rules,
                &self.target.rules_of,
                (&self.id, &self.call),
                result,
                &self.target.features,
                self.target.report(),
            )
        })
    }
}
