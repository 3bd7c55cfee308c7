//! The result of a call in the shape that the client negotiated.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary::feature::Features;
use mcp_vary::shape::{Policy, Shaped, ToolFacts, tool_result};
use mcp_vary::variant::VariantId;
use tracing::debug;

use crate::revision::Era;

/// What a result is shaped by.
#[derive(Clone, Debug)]
pub(crate) struct Shaping {
    pub(crate) features: Arc<Features>,
    pub(crate) tool: ToolFacts,
    pub(crate) always_both: bool,
    pub(crate) lift_json_text: bool,
    pub(crate) era: Era,
    pub(crate) variant: Option<VariantId>,
}

impl Shaping {
    /// The shaped result; the same bytes when nothing is to be done.
    pub(crate) fn apply<'a>(&self, result: &'a str) -> Cow<'a, str> {
        let policy = Policy {
            always_both: self.always_both,
            lift: self.lift_json_text,
            non_object_structured: self.era == Era::Modern,
            report: true,
            variant: self.variant.as_ref().map(VariantId::as_str),
        };
        match tool_result(result, &self.features, self.tool, &policy) {
            Shaped::Changed { result, applied } => {
                debug!(?applied, "result shaped");
                Cow::Owned(result)
            }
            _ => Cow::Borrowed(result),
        }
    }
}
