//! What the operator makes of results: another value, in other words, for other clients.

#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "the crates of this workspace build and match these values, and are released together"
)]
#![expect(
    missing_docs,
    reason = "fields and variants that came out of the gateway have no sentence yet"
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

pub use self::failures::Failures;
pub use self::output::Output;
pub use self::projection::Projection;
pub use self::prompt::{PromptRule, told_prompt};
pub use self::resource::{
    ResourceRule, ToldResource, are_about, are_about_contents, told_resource,
};
pub use self::rule::{Called, Recipe, ResultRule, Told, ToolResults};
pub use self::template::{Scope, Template};

/// The largest value or text that a projection or template may make of a result.
pub const LARGEST: usize = 8 << 20;
