//! The handler that answers a request.

use mcp_vary::error::{Era, Identifier};
use mcp_vary::variant::{ServerVariant, VariantId};
use rmcp::ErrorData;
use rmcp::model::ErrorCode;

use super::errors::{not_found, with_active_variant};
use super::variant_handler::VariantHandler;

/// The handler that answers a request, and its variant.
pub(super) struct SelectedHandler<'a> {
    pub(super) variant: Option<&'a VariantId>,
    pub(super) handler: &'a VariantHandler,
    pub(super) visible: Vec<&'a ServerVariant>,
}

impl<'a> SelectedHandler<'a> {
    /// The handler of a server without variants.
    pub(super) fn without_variants(handler: &'a VariantHandler) -> Self {
        Self {
            variant: None,
            handler,
            visible: Vec::new(),
        }
    }

    /// Adds the active variant to a handler's error about `what`.
    ///
    /// If a view may hide something, unknown and hidden items get the same error.
    pub(super) fn describe_error(&self, error: ErrorData, what: Identifier, era: Era) -> ErrorData {
        match error.code {
            ErrorCode::RESOURCE_NOT_FOUND if self.handler.view.is_some() => {
                not_found(what, self.variant, era)
            }
            // The server has the method, but this variant's handler has no items of the kind.
            ErrorCode::METHOD_NOT_FOUND if self.variant.is_some() => {
                not_found(what, self.variant, era)
            }
            _ => with_active_variant(error, self.variant),
        }
    }

    pub(super) fn is_visible(&self, id: &VariantId) -> bool {
        self.visible.iter().any(|variant| variant.id == *id)
    }
}
