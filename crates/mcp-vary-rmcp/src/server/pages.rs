//! The four lists and their pages.

use std::num::NonZeroUsize;

use mcp_vary::cursor::{CursorBinding, open, seal};
use mcp_vary::error::{Era, Identifier};
use rmcp::model::{
    CacheScope, ClientRequest, ListPromptsRequest, ListPromptsResult, ListResourceTemplatesRequest,
    ListResourceTemplatesResult, ListResourcesRequest, ListResourcesResult, ListToolsRequest,
    ListToolsResult, PaginatedRequestParams, Prompt, Resource, ResourceTemplate, ServerResult,
    Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

use super::dyn_handler::DynHandler;
use super::errors::{mismatched_result, to_error_data, with_active_variant};
use super::features::era;
use super::variant_handler::VariantHandler;
use super::variant_set::{PermissionFn, SelectedHandler, VariantSet};
use super::view::View;

/// The result of one of the four list methods.
pub(super) trait ListResult: Default {
    const METHOD: &'static str;
    type Item: Send;

    fn request(params: Option<PaginatedRequestParams>) -> ClientRequest;
    fn from_result(result: ServerResult) -> Option<Self>;
    fn items(&mut self) -> &mut Vec<Self::Item>;
    fn cursor(&mut self) -> &mut Option<String>;
    fn caching(&mut self) -> (&mut Option<u64>, &mut Option<CacheScope>);
    fn apply_view(item: Self::Item, view: &View) -> Option<Self::Item>;
    fn identify(item: &Self::Item) -> Identifier;
}

macro_rules! list {
    ($result:ident, $request:ident, $method:literal, $items:ident: $item:ty, $kind:ident($name:ident), $shown:expr) => {
        impl ListResult for $result {
            const METHOD: &'static str = $method;
            type Item = $item;

            fn request(params: Option<PaginatedRequestParams>) -> ClientRequest {
                ClientRequest::$request($request {
                    params,
                    ..Default::default()
                })
            }

            fn from_result(result: ServerResult) -> Option<Self> {
                match result {
                    ServerResult::$result(list) => Some(list),
                    _ => None,
                }
            }

            fn items(&mut self) -> &mut Vec<Self::Item> {
                &mut self.$items
            }

            fn cursor(&mut self) -> &mut Option<String> {
                &mut self.next_cursor
            }

            fn caching(&mut self) -> (&mut Option<u64>, &mut Option<CacheScope>) {
                (&mut self.ttl_ms, &mut self.cache_scope)
            }

            fn apply_view(item: Self::Item, view: &View) -> Option<Self::Item> {
                let shown: fn($item, &View) -> Option<$item> = $shown;
                shown(item, view)
            }

            fn identify(item: &Self::Item) -> Identifier {
                Identifier::$kind(item.$name.to_string())
            }
        }
    };
}

list!(ListToolsResult, ListToolsRequest, "tools/list", tools: Tool, Tool(name), |tool, view| view.show_tool(tool));
list!(ListPromptsResult, ListPromptsRequest, "prompts/list", prompts: Prompt, Prompt(name), |prompt, view| {
    view.show_prompt(prompt)
});
list!(ListResourcesResult, ListResourcesRequest, "resources/list", resources: Resource, Resource(uri), |resource, view| {
    view.show_resource(resource)
});
list!(
    ListResourceTemplatesResult,
    ListResourceTemplatesRequest,
    "resources/templates/list",
    resource_templates: ResourceTemplate,
    Resource(uri_template),
    |template, view| view.show_template(template)
);

/// Returns the page that `params` ask for.
pub(super) async fn page<L: ListResult>(
    offers: Option<&VariantSet>,
    active: &SelectedHandler<'_>,
    params: Option<PaginatedRequestParams>,
    context: RequestContext<RoleServer>,
) -> Result<L, ErrorData> {
    let (Some(offers), Some(variant)) = (offers, active.variant) else {
        return handler_page::<L>(active, params, context).await;
    };
    let principal = offers.principal(&context);
    let binding = CursorBinding {
        variant,
        method: L::METHOD,
        principal: &principal,
    };
    let cursor = match params.and_then(|params| params.cursor) {
        Some(cursor) => Some(open(&offers.keys, &binding, &cursor).map_err(|error| {
            to_error_data(&error.into_error(variant, |id| active.is_visible(id)))
        })?),
        None => None,
    };
    let is_modern = era(&context) == Era::Modern;
    let mut list = match offers.page_size {
        None => {
            let params =
                cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            handler_page::<L>(active, params, context).await
        }
        Some(size) => sized_page::<L>(active, cursor.as_deref(), size, &context).await,
    }
    .map_err(|error| with_active_variant(error, Some(variant)))?;
    if let Some(next) = list.cursor() {
        *next = seal(&offers.keys, &binding, next);
    }
    if is_modern {
        // Clients cache lists by method and cursor, without the variant.
        let (ttl, scope) = list.caching();
        *ttl = Some(0);
        *scope = Some(CacheScope::Private);
    }
    Ok(list)
}

/// Reads all pages of the handler's list.
pub(super) async fn list_all<L: ListResult>(
    handler: &dyn DynHandler,
    context: &RequestContext<RoleServer>,
) -> Result<Vec<L::Item>, ErrorData> {
    let mut all = Vec::new();
    let mut params = None;
    for _ in 0..MAX_PAGES {
        let result = handler.request(L::request(params), context.clone()).await?;
        let mut list = L::from_result(result).ok_or_else(mismatched_result)?;
        all.append(list.items());
        let Some(next) = list.cursor().take() else {
            break;
        };
        params = Some(PaginatedRequestParams::default().with_cursor(Some(next)));
    }
    Ok(all)
}

/// One of the handler's pages, after the view and the permission.
async fn handler_page<L: ListResult>(
    active: &SelectedHandler<'_>,
    params: Option<PaginatedRequestParams>,
    context: RequestContext<RoleServer>,
) -> Result<L, ErrorData> {
    let request = L::request(params);
    // Copying a context is expensive, and only a permission needs it after the request.
    let permits = active.permission.map(|permits| (permits, context.clone()));
    let result = active.handler.handler.request(request, context).await?;
    let mut list = L::from_result(result).ok_or_else(mismatched_result)?;
    let items = std::mem::take(list.items());
    let permits = permits
        .as_ref()
        .map(|(permits, context)| (*permits, context));
    *list.items() = filter_items::<L>(items, active.handler, permits);
    Ok(list)
}

/// A page of the configured size; the cursor is the position of its first item.
async fn sized_page<L: ListResult>(
    active: &SelectedHandler<'_>,
    cursor: Option<&str>,
    size: NonZeroUsize,
    context: &RequestContext<RoleServer>,
) -> Result<L, ErrorData> {
    let items = shown::<L>(active.handler, active.permission, context).await?;
    // The cursor was sealed here, so it is a number. If the list is shorter now, the page is empty.
    let first = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let end = size.get().saturating_add(first);
    let mut list = L::default();
    *list.cursor() = (end < items.len()).then(|| end.to_string());
    *list.items() = items.into_iter().skip(first).take(size.get()).collect();
    Ok(list)
}

/// All items of a list that the client may see, as the view shows them.
pub(super) async fn shown<L: ListResult>(
    face: &VariantHandler,
    permits: Option<&PermissionFn>,
    context: &RequestContext<RoleServer>,
) -> Result<Vec<L::Item>, ErrorData> {
    let items = list_all::<L>(&*face.handler, context).await?;
    let permits = permits.map(|permits| (permits, context));
    Ok(filter_items::<L>(items, face, permits))
}

/// Applies the permission and the view to `items`.
fn filter_items<L: ListResult>(
    mut items: Vec<L::Item>,
    face: &VariantHandler,
    permits: Option<(&PermissionFn, &RequestContext<RoleServer>)>,
) -> Vec<L::Item> {
    if let Some((permits, context)) = permits {
        items.retain(|item| permits(context, &L::identify(item)));
    }
    match &face.view {
        None => items,
        Some(view) => items
            .into_iter()
            .filter_map(|item| L::apply_view(item, view))
            .collect(),
    }
}

/// The largest number of pages read from one handler, so that a repeated cursor cannot loop
/// forever.
const MAX_PAGES: usize = 1000;
