//! What the operator makes of results: another value, in other words, for other clients.

#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "the crates of this workspace build and match these values, and are released together"
)]

mod failures;
pub mod negotiation_log;
mod output;
mod projection;
mod prompt;
mod resource;
pub mod result_store;
mod rule;
pub mod rules;
pub mod shaper;
mod template;

pub use self::failures::RuleFailures;
pub use self::output::OutputValidator;
pub use self::projection::Projection;
pub use self::prompt::{PromptRule, apply_prompt_rules};
pub use self::resource::{
    ResourceFormat, ResourceRule, any_rule_matches, any_rule_matches_contents, apply_resource_rules,
};
pub use self::rule::{
    CallContext, ResultRule, ResultTransform, ToolResultRules, TransformedResult,
};
pub use self::template::{Scope, Template};

/// The largest value or text that a projection or template may make of a result.
pub const LARGEST: usize = 8 << 20;
