//! The four lists: what a face shows of them, page by page.

use std::num::NonZeroUsize;

use mcp_vary::cursor::{Binding, open, seal};
use mcp_vary::error::{Era, Identifier};
use rmcp::model::{
    CacheScope, ClientRequest, ListPromptsRequest, ListPromptsResult, ListResourceTemplatesRequest,
    ListResourceTemplatesResult, ListResourcesRequest, ListResourcesResult, ListToolsRequest,
    ListToolsResult, PaginatedRequestParams, Prompt, Resource, ResourceTemplate, ServerResult,
    Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

use super::face::Face;
use super::features::era;
use super::inner::Inner;
use super::offers::{Active, Offers, Permits};
use super::view::View;
use super::wire::{to_error_data, unexpected, with_active_variant};

/// One of the four lists.
pub(super) trait List: Default {
    const METHOD: &'static str;
    type Item: Send;

    fn request(params: Option<PaginatedRequestParams>) -> ClientRequest;
    fn read(result: ServerResult) -> Option<Self>;
    fn items(&mut self) -> &mut Vec<Self::Item>;
    fn cursor(&mut self) -> &mut Option<String>;
    fn caching(&mut self) -> (&mut Option<u64>, &mut Option<CacheScope>);
    fn shown(item: Self::Item, view: &View) -> Option<Self::Item>;
    fn identify(item: &Self::Item) -> Identifier;
}

macro_rules! list {
    ($result:ident, $request:ident, $method:literal, $items:ident: $item:ty, $kind:ident($name:ident), $shown:expr) => {
        impl List for $result {
            const METHOD: &'static str = $method;
            type Item = $item;

            fn request(params: Option<PaginatedRequestParams>) -> ClientRequest {
                ClientRequest::$request($request {
                    params,
                    ..Default::default()
                })
            }

            fn read(result: ServerResult) -> Option<Self> {
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

            fn shown(item: Self::Item, view: &View) -> Option<Self::Item> {
                let shown: fn($item, &View) -> Option<$item> = $shown;
                shown(item, view)
            }

            fn identify(item: &Self::Item) -> Identifier {
                Identifier::$kind(item.$name.to_string())
            }
        }
    };
}

list!(ListToolsResult, ListToolsRequest, "tools/list", tools: Tool, Tool(name), |tool, view| view.tool(tool));
list!(ListPromptsResult, ListPromptsRequest, "prompts/list", prompts: Prompt, Prompt(name), |prompt, view| {
    view.prompt(prompt)
});
list!(ListResourcesResult, ListResourcesRequest, "resources/list", resources: Resource, Resource(uri), |resource, view| {
    view.resource(resource)
});
list!(
    ListResourceTemplatesResult,
    ListResourceTemplatesRequest,
    "resources/templates/list",
    resource_templates: ResourceTemplate,
    Resource(uri_template),
    |template, view| view.template(template)
);

/// The page that `params` ask for.
pub(super) async fn page<L: List>(
    offers: Option<&Offers>,
    active: &Active<'_>,
    params: Option<PaginatedRequestParams>,
    context: RequestContext<RoleServer>,
) -> Result<L, ErrorData> {
    let (Some(offers), Some(variant)) = (offers, active.variant) else {
        return one::<L>(active, params, context).await;
    };
    let principal = offers.principal(&context);
    let binding = Binding {
        variant,
        method: L::METHOD,
        principal: &principal,
    };
    let cursor = match params.and_then(|params| params.cursor) {
        Some(cursor) => Some(
            open(&offers.keys, &binding, &cursor)
                .map_err(|error| to_error_data(&error.into_error(variant, |id| active.sees(id))))?,
        ),
        None => None,
    };
    let is_modern = era(&context) == Era::Modern;
    let mut list = match offers.page_size {
        None => {
            let params =
                cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            one::<L>(active, params, context).await
        }
        Some(size) => cut::<L>(active, cursor.as_deref(), size, &context).await,
    }
    .map_err(|error| with_active_variant(error, Some(variant)))?;
    if let Some(next) = list.cursor() {
        *next = seal(&offers.keys, &binding, next);
    }
    if is_modern {
        // Clients keep lists by method and cursor, and know nothing of variants.
        let (ttl, scope) = list.caching();
        *ttl = Some(0);
        *scope = Some(CacheScope::Private);
    }
    Ok(list)
}

/// Everything that the handler lists, as it is.
pub(super) async fn gather<L: List>(
    handler: &dyn Inner,
    context: &RequestContext<RoleServer>,
) -> Result<Vec<L::Item>, ErrorData> {
    let mut all = Vec::new();
    let mut params = None;
    for _ in 0..MAX_PAGES {
        let result = handler.request(L::request(params), context.clone()).await?;
        let mut list = L::read(result).ok_or_else(unexpected)?;
        all.append(list.items());
        let Some(next) = list.cursor().take() else {
            break;
        };
        params = Some(PaginatedRequestParams::default().with_cursor(Some(next)));
    }
    Ok(all)
}

/// A page of the handler's, as the face shows it.
async fn one<L: List>(
    active: &Active<'_>,
    params: Option<PaginatedRequestParams>,
    context: RequestContext<RoleServer>,
) -> Result<L, ErrorData> {
    let request = L::request(params);
    // Only a permission wants to know afterwards who asked, and a context is much to copy.
    let permits = active.permits.map(|permits| (permits, context.clone()));
    let result = active.face.handler.request(request, context).await?;
    let mut list = L::read(result).ok_or_else(unexpected)?;
    let items = std::mem::take(list.items());
    let permits = permits
        .as_ref()
        .map(|(permits, context)| (*permits, context));
    *list.items() = show::<L>(items, active.face, permits);
    Ok(list)
}

/// A page of our own size, from the item whose number the cursor is.
async fn cut<L: List>(
    active: &Active<'_>,
    cursor: Option<&str>,
    size: NonZeroUsize,
    context: &RequestContext<RoleServer>,
) -> Result<L, ErrorData> {
    let items = shown::<L>(active.face, active.permits, context).await?;
    // Sealed by us, so a number; a list that has become shorter ends here.
    let first = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let end = size.get().saturating_add(first);
    let mut list = L::default();
    *list.cursor() = (end < items.len()).then(|| end.to_string());
    *list.items() = items.into_iter().skip(first).take(size.get()).collect();
    Ok(list)
}

/// Everything that the client may see of a list, as the face shows it.
pub(super) async fn shown<L: List>(
    face: &Face,
    permits: Option<&Permits>,
    context: &RequestContext<RoleServer>,
) -> Result<Vec<L::Item>, ErrorData> {
    let items = gather::<L>(&*face.handler, context).await?;
    let permits = permits.map(|permits| (permits, context));
    Ok(show::<L>(items, face, permits))
}

/// What the client may see of `items`, as the face shows it.
fn show<L: List>(
    mut items: Vec<L::Item>,
    face: &Face,
    permits: Option<(&Permits, &RequestContext<RoleServer>)>,
) -> Vec<L::Item> {
    if let Some((permits, context)) = permits {
        items.retain(|item| permits(context, &L::identify(item)));
    }
    match &face.view {
        None => items,
        Some(view) => items
            .into_iter()
            .filter_map(|item| L::shown(item, view))
            .collect(),
    }
}

/// How many pages of a handler are gathered, so that one that repeats its cursor does no harm.
const MAX_PAGES: usize = 1000;
