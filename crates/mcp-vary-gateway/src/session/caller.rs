//! Who sends a request, and what the head of the request says about the variant.

use std::sync::Arc;

use mcp_vary_access::Principal;
use mcp_vary_catalog::selection::variant_selection::VariantRequest;

/// Who sends a request, and what its head says about the variant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// `None` where clients are not authenticated.
    pub(crate) principal: Option<Arc<Principal>>,
    pub(crate) requested: VariantRequest,
}

impl Caller {
    /// The client on standard input, whose principal the configuration names.
    pub(crate) fn of_stdio(principal: Option<&Arc<Principal>>) -> Self {
        Self {
            principal: principal.cloned(),
            requested: VariantRequest::default(),
        }
    }
}

/// The principal in sealed texts: its id, or nothing where clients are not authenticated.
pub(crate) fn sealed_principal(principal: Option<&Arc<Principal>>) -> &str {
    principal.map_or("", |principal| principal.id_text())
}
