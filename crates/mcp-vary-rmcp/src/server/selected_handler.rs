//! The handler that answers a request.

use std::sync::Arc;

use mcp_vary::error::{Era, Identifier};
use mcp_vary::variant::{ServerVariant, VariantId};
use mcp_vary_access::Item;
use rmcp::ErrorData;
use rmcp::model::{ErrorCode, JsonObject, ListResourcesResult};

use super::errors::{not_found, with_active_variant};
use super::features::era;
use super::list_result::list_all;
use super::permissions::{Permissions, Refusal};
use super::rules::{Context, McpResult};
use super::selection::SelectionSource;
use super::variant_handler::VariantHandler;

/// The handler that answers a request, and its variant.
pub(super) struct SelectedHandler<'a> {
    pub(super) variant: Option<&'a VariantId>,
    pub(super) handler: &'a VariantHandler,
    pub(super) permissions: Option<&'a Arc<Permissions>>,
    pub(super) source: SelectionSource,
    pub(super) visible: Vec<&'a ServerVariant>,
}

impl<'a> SelectedHandler<'a> {
    /// The handler of a server without variants.
    pub(super) fn without_variants(handler: &'a VariantHandler) -> Self {
        Self {
            variant: None,
            handler,
            permissions: None,
            source: SelectionSource::Ranking,
            visible: Vec::new(),
        }
    }

    /// Whether the view or permissions may hide items. Then only what the handler lists exists.
    pub(super) fn hides_items(&self) -> bool {
        self.handler.view.is_some() || self.permissions.is_some()
    }

    /// Checks what the client may do with an item by the handler's identifier; the error has the
    /// client's.
    pub(super) fn check_permission(
        &self,
        context: &Context,
        handler_item: &Identifier,
        item: &Item<'_>,
        client_item: &Identifier,
        arguments: Option<&JsonObject>,
    ) -> McpResult<()> {
        let Some(permissions) = self.permissions else {
            return Ok(());
        };
        let checked = permissions
            .of(context)
            .check(handler_item, item, arguments, self.variant);
        checked.map_err(|refusal| match refusal {
            Refusal::Hidden => not_found(client_item.clone(), self.variant, era(context)),
            Refusal::Error(error) => error,
        })
    }

    /// Like [`check_permission`](Self::check_permission), for a resource.
    ///
    /// Rules are stricter with URIs that the handler does not list, so the list is read only if they
    /// refuse the URI as such.
    pub(super) async fn check_resource(
        &self,
        context: &Context,
        uri: &str,
        client_item: &Identifier,
    ) -> McpResult<()> {
        let Some(permissions) = self.permissions else {
            return Ok(());
        };
        let server = &self.handler.server_name;
        let mut item = Item::unlisted_resource(uri, server);
        if !permissions.of(context).shows(client_item, &item) {
            let listed = list_all::<ListResourcesResult>(&*self.handler.inner, context).await;
            let mut listed = listed.iter().flatten();
            if listed.any(|resource| resource.uri == uri) {
                item = Item::resource(uri, uri, server);
            }
        }
        self.check_permission(context, client_item, &item, client_item, None)
    }

    /// Adds the active variant to a handler's error about `what`.
    ///
    /// If a view or permissions may hide something, unknown and hidden items get the same error.
    pub(super) fn describe_error(&self, error: ErrorData, what: Identifier, era: Era) -> ErrorData {
        match error.code {
            ErrorCode::RESOURCE_NOT_FOUND if self.hides_items() => {
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
