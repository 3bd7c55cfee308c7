//! The results of the four list methods.

use rmcp::model::{
    CacheScope, ClientRequest, ListPromptsRequest, ListPromptsResult, ListResourceTemplatesRequest,
    ListResourceTemplatesResult, ListResourcesRequest, ListResourcesResult, ListToolsRequest,
    ListToolsResult, PaginatedRequestParams, Prompt, Resource, ResourceTemplate, ServerResult,
    Tool,
};

use super::dyn_handler::DynHandler;
use super::errors::mismatched_result;
use super::rules::{Context, McpResult};
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
}

macro_rules! list {
    ($result:ident, $request:ident, $method:literal, $items:ident: $item:ty, $show:ident) => {
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
                view.$show(item)
            }
        }
    };
}

list!(ListToolsResult, ListToolsRequest, "tools/list", tools: Tool, show_tool);
list!(ListPromptsResult, ListPromptsRequest, "prompts/list", prompts: Prompt, show_prompt);
list!(ListResourcesResult, ListResourcesRequest, "resources/list", resources: Resource, show_resource);
list!(
    ListResourceTemplatesResult,
    ListResourceTemplatesRequest,
    "resources/templates/list",
    resource_templates: ResourceTemplate,
    show_template
);

/// Reads all pages of the handler's list.
pub(super) async fn list_all<L: ListResult>(
    handler: &dyn DynHandler,
    context: &Context,
) -> McpResult<Vec<L::Item>> {
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

/// The largest number of pages read from one handler, so that a repeated cursor cannot loop
/// forever.
const MAX_PAGES: usize = 1000;
