//! The operator's rules for results: projections to other values, and templates for other texts, depending on the
//! client.

#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "the crates of this workspace build and match these values, and are released together"
)]

mod call_context;
mod declared_output;
mod failures;
mod item_shapers;
mod limits;
pub mod link_index;
pub mod name_rewriter;
pub mod negotiation_log;
mod output;
mod projection;
mod prompt;
mod resource;
pub mod result_store;
mod rule;
pub mod rules;
pub mod shaper;
pub mod skill_uris;
mod template;
mod upstream_report;
pub mod uri_rewriter;
mod variant_scope;

pub use self::call_context::CallContext;
pub use self::declared_output::DeclaredOutput;
pub use self::failures::RuleFailures;
pub use self::limits::LARGEST;
pub use self::output::OutputValidator;
pub use self::projection::Projection;
pub use self::prompt::{PromptRule, apply_prompt_rules};
pub use self::resource::{
    ResourceFormat, ResourceRule, any_rule_matches, any_rule_matches_contents,
    apply_resource_rules, has_json_contents,
};
pub use self::rule::{ResultRule, ResultTransform, ToolResultRules, TransformedResult};
pub use self::template::{Scope, Template};
pub use self::variant_scope::VariantScope;
