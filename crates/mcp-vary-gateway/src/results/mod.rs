//! What the operator makes of results: another value, in other words, for other clients.

mod failures;
mod output;
mod projection;
mod prompt;
mod resource;
mod rule;
mod template;

pub(crate) use self::failures::Failures;
pub(crate) use self::output::Output;
pub(crate) use self::projection::Projection;
pub(crate) use self::prompt::{PromptRule, told_prompt};
pub(crate) use self::resource::{
    ResourceRule, ToldResource, are_about, are_about_contents, told_resource,
};
pub(crate) use self::rule::{Called, Recipe, ResultRule, Told, ToolResults};
pub(crate) use self::template::{Scope, Template};

/// The largest value or text that a projection or template may make of a result.
pub(crate) const LARGEST: usize = 8 << 20;
