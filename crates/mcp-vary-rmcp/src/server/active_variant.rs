//! The extractor of the active variant.

use mcp_vary::variant::VariantId;
use rmcp::ErrorData;
use rmcp::handler::server::common::{AsRequestContext, FromContextPart};

use super::rules::McpResult;

/// The variant of a request: take it beside `Parameters`, or from a context's `extensions`.
///
/// Without variants the extractor fails with an internal error.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ActiveVariant(pub(super) VariantId);

impl ActiveVariant {
    /// Its identifier.
    pub fn id(&self) -> &VariantId {
        &self.0
    }
}

impl<C: AsRequestContext> FromContextPart<C> for ActiveVariant {
    fn from_context_part(context: &mut C) -> McpResult<Self> {
        let active = context.as_request_context().extensions.get::<Self>();
        active
            .cloned()
            .ok_or_else(|| ErrorData::internal_error("the server has no variants", None))
    }
}
