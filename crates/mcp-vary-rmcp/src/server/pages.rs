//! The four lists and their pages.

use std::num::NonZeroUsize;

use mcp_vary::cursor::{CursorBinding, open, seal};
use mcp_vary::error::Era;
use rmcp::model::{CacheScope, PaginatedRequestParams};

use super::errors::{mismatched_result, to_error_data, with_active_variant};
use super::features::era;
use super::list_result::{ListResult, list_all};
use super::rules::{Context, McpResult};
use super::selected_handler::SelectedHandler;
use super::variant_handler::VariantHandler;
use super::variant_set::VariantSet;

/// Returns the page that `params` ask for.
pub(super) async fn page<L: ListResult>(
    variants: Option<&VariantSet>,
    active: &SelectedHandler<'_>,
    params: Option<PaginatedRequestParams>,
    context: Context,
) -> McpResult<L> {
    let Some((variants, variant)) = variants.zip(active.variant) else {
        return handler_page::<L>(active, params, context).await;
    };
    let principal = variants.principal(&context);
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
    let mut list = match variants.page_size {
        None => {
            let params =
                cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            handler_page::<L>(active, params, context).await
        }
        Some(size) => sized_page::<L>(active, cursor.as_deref(), size, &context).await,
    }
    .map_err(|error| with_active_variant(error, Some(variant)))?;
    if let Some(next) = list.cursor() {
        *next = seal(&variants.keys, &binding, next);
    }
    if is_modern {
        // Clients cache lists by method and cursor, without the variant.
        let (ttl, scope) = list.caching();
        *ttl = Some(0);
        *scope = Some(CacheScope::Private);
    }
    Ok(list)
}

/// One of the handler's pages, after the view.
async fn handler_page<L: ListResult>(
    active: &SelectedHandler<'_>,
    params: Option<PaginatedRequestParams>,
    context: Context,
) -> McpResult<L> {
    let request = L::request(params);
    let result = active.handler.inner.request(request, context).await?;
    let mut list = L::from_result(result).ok_or_else(mismatched_result)?;
    let items = std::mem::take(list.items());
    *list.items() = apply_view::<L>(items, active.handler);
    Ok(list)
}

/// A page of the configured size; the cursor is the position of its first item.
async fn sized_page<L: ListResult>(
    active: &SelectedHandler<'_>,
    cursor: Option<&str>,
    size: NonZeroUsize,
    context: &Context,
) -> McpResult<L> {
    let mut items = visible_items::<L>(active.handler, context).await?;
    // The cursor was sealed here, so it is a number. If the list is shorter now, the page is empty.
    let first = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let end = size.get().saturating_add(first);
    let mut list = L::default();
    *list.cursor() = (end < items.len()).then(|| end.to_string());
    let mut from_first = items.split_off(first.min(items.len()));
    from_first.truncate(size.get());
    *list.items() = from_first;
    Ok(list)
}

/// All items of a list, as the view shows them.
pub(super) async fn visible_items<L: ListResult>(
    handler: &VariantHandler,
    context: &Context,
) -> McpResult<Vec<L::Item>> {
    let items = list_all::<L>(&*handler.inner, context).await?;
    Ok(apply_view::<L>(items, handler))
}

fn apply_view<L: ListResult>(items: Vec<L::Item>, handler: &VariantHandler) -> Vec<L::Item> {
    match &handler.view {
        None => items,
        Some(view) => items
            .into_iter()
            .filter_map(|item| L::apply_view(item, view))
            .collect(),
    }
}
