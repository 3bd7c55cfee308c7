//! The four lists and their pages.

use std::num::NonZeroUsize;
use std::sync::Arc;

use mcp_vary::cursor::{CursorBinding, open, seal};
use mcp_vary::error::Era;
use rmcp::model::{CacheScope, PaginatedRequestParams};

use super::errors::{mismatched_result, to_error_data, with_active_variant};
use super::features::era;
use super::list_result::{ListResult, list_all};
use super::permissions::{ClientPermissions, Permissions};
use super::rules::{Context, McpResult};
use super::selected_handler::SelectedHandler;
use super::variant_handler::VariantHandler;
use super::variant_set::VariantSet;

/// A page of a list, and what the client sees before it.
pub(super) struct Page<L: ListResult> {
    pub(super) list: L,
    pub(super) earlier: EarlierItems<L>,
}

/// The items on the pages before a page.
pub(super) enum EarlierItems<L: ListResult> {
    /// As the client sees them.
    Known(Vec<L::Item>),
    /// Those of the handler's pages before the one with this cursor.
    BeforeCursor(String),
}

/// Returns the page that `params` ask for.
pub(super) async fn page<L: ListResult>(
    variants: Option<&VariantSet>,
    active: &SelectedHandler<'_>,
    params: Option<PaginatedRequestParams>,
    context: Context,
) -> McpResult<Page<L>> {
    let (Some(variants), Some(variant)) = (variants, active.variant) else {
        return handler_page::<L>(active, params, context).await;
    };
    let principal = variants.principal_id(&context);
    let binding = CursorBinding {
        variant,
        method: L::METHOD,
        principal: &principal,
    };
    let cursor = match params.and_then(|params| params.cursor) {
        Some(cursor) => Some(open(&variants.keys, &binding, &cursor).map_err(|error| {
            to_error_data(&error.into_error(variant, |id| active.is_visible(id)))
        })?),
        None => None,
    };
    let is_modern = era(&context) == Era::Modern;
    let mut page = match variants.page_size {
        None => {
            let params =
                cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            handler_page::<L>(active, params, context).await
        }
        Some(size) => sized_page::<L>(active, cursor.as_deref(), size, &context).await,
    }
    .map_err(|error| with_active_variant(error, Some(variant)))?;
    let list = &mut page.list;
    if let Some(next) = list.cursor() {
        *next = seal(&variants.keys, &binding, next);
    }
    if is_modern {
        // Clients cache lists by method and cursor, without the variant.
        let (ttl, scope) = list.caching();
        *ttl = Some(0);
        *scope = Some(CacheScope::Private);
    }
    Ok(page)
}

/// One of the handler's pages, after the view and the permissions.
async fn handler_page<L: ListResult>(
    active: &SelectedHandler<'_>,
    params: Option<PaginatedRequestParams>,
    context: Context,
) -> McpResult<Page<L>> {
    let cursor = params.as_ref().and_then(|params| params.cursor.clone());
    let request = L::request(params);
    // Copying a context is expensive, and only permissions need it after the request.
    let permissions = active
        .permissions
        .map(|permissions| (permissions, context.clone()));
    let result = active.handler.inner.request(request, context).await?;
    let mut list = L::from_result(result).ok_or_else(mismatched_result)?;
    let items = std::mem::take(list.items());
    let permissions = permissions
        .as_ref()
        .map(|(permissions, context)| permissions.of(context));
    *list.items() = filter_items::<L>(items, active.handler, permissions.as_ref());
    let earlier = match cursor {
        None => EarlierItems::Known(Vec::new()),
        Some(cursor) => EarlierItems::BeforeCursor(cursor),
    };
    Ok(Page { list, earlier })
}

/// A page of the configured size; the cursor is the position of its first item.
async fn sized_page<L: ListResult>(
    active: &SelectedHandler<'_>,
    cursor: Option<&str>,
    size: NonZeroUsize,
    context: &Context,
) -> McpResult<Page<L>> {
    let mut items =
        visible_items::<L>(active.handler, active.permissions.map(Arc::as_ref), context).await?;
    // The cursor was sealed here, so it is a number. If the list is shorter now, the page is empty.
    let first = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let end = size.get().saturating_add(first);
    let mut list = L::default();
    *list.cursor() = (end < items.len()).then(|| end.to_string());
    let mut from_first = items.split_off(first.min(items.len()));
    from_first.truncate(size.get());
    *list.items() = from_first;
    let earlier = EarlierItems::Known(items);
    Ok(Page { list, earlier })
}

/// All items of a list that the client may see, as the view shows them.
pub(super) async fn visible_items<L: ListResult>(
    handler: &VariantHandler,
    permissions: Option<&Permissions>,
    context: &Context,
) -> McpResult<Vec<L::Item>> {
    let items = list_all::<L>(&*handler.inner, context).await?;
    let permissions = permissions.map(|permissions| permissions.of(context));
    Ok(filter_items::<L>(items, handler, permissions.as_ref()))
}

/// Applies the permissions and the view to `items`.
fn filter_items<L: ListResult>(
    mut items: Vec<L::Item>,
    handler: &VariantHandler,
    permissions: Option<&ClientPermissions<'_>>,
) -> Vec<L::Item> {
    if let Some(permissions) = permissions {
        let server = &handler.server_name;
        items.retain(|item| permissions.shows(&L::identify(item), &L::access_item(item, server)));
    }
    match &handler.view {
        None => items,
        Some(view) => items
            .into_iter()
            .filter_map(|item| L::apply_view(item, view))
            .collect(),
    }
}
