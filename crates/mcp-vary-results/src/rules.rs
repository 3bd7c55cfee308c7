//! The operator's rules for results, resources and prompts.

use std::sync::Arc;

use mcp_vary::feature::Features;
use mcp_vary::shape::Bounds;

use crate::prompt::PromptRule;
use crate::resource::ResourceRule;
use crate::rule::ResultRule;

/// The rules for results of tools: the section `results` of a configuration.
#[derive(Clone, Debug, Default)]
pub struct ResultRules(pub Arc<[ResultRule]>);

impl ResultRules {
    /// Whether clients with `features` may receive shortened results.
    pub fn truncate_for(&self, features: Option<&Features>) -> bool {
        let negotiates = features.is_some_and(|features| !features.is_empty());
        let mut rules = self.0.iter();
        rules.any(|rule| {
            rule.transform.bounds != Bounds::default() && (negotiates || rule.applies_to_all)
        })
    }
}

/// The rules for prompts: the section `prompts` of a configuration.
#[derive(Clone, Debug, Default)]
pub struct PromptRules(pub Arc<[PromptRule]>);

/// The rules for resources: the section `resources` of a configuration.
#[derive(Clone, Debug, Default)]
pub struct ResourceRules(pub Arc<[ResourceRule]>);
