//! The results of the four list methods.

use mcp_vary::error::Identifier;
use mcp_vary_access::Item;
use mcp_vary_view::{ToolHint, ToolHints};
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
    fn identify(item: &Self::Item) -> Identifier;
    /// The item of the handler `server` as access rules see it.
    fn access_item<'a>(item: &'a Self::Item, server: &'a str) -> Item<'a>;
}

macro_rules! list {
    ($result:ident, $request:ident, $method:literal, $items:ident: $item:ty, $kind:ident($name:ident), $shown:expr, $access_item:expr) => {
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

            fn access_item<'a>(item: &'a Self::Item, server: &'a str) -> Item<'a> {
                let access_item: fn(&'a $item, &'a str) -> Item<'a> = $access_item;
                access_item(item, server)
            }
        }
    };
}

list!(ListToolsResult, ListToolsRequest, "tools/list", tools: Tool, Tool(name), |tool, view| view.show_tool(tool), tool_item);
list!(ListPromptsResult, ListPromptsRequest, "prompts/list", prompts: Prompt, Prompt(name), |prompt, view| {
    view.show_prompt(prompt)
}, |prompt, server| prompt_item(&prompt.name, server));
list!(ListResourcesResult, ListResourcesRequest, "resources/list", resources: Resource, Resource(uri), |resource, view| {
    view.show_resource(resource)
}, |resource, server| Item::resource(&resource.uri, &resource.uri, server));
list!(
    ListResourceTemplatesResult,
    ListResourceTemplatesRequest,
    "resources/templates/list",
    resource_templates: ResourceTemplate,
    Resource(uri_template),
    |template, view| view.show_template(template),
    |template, server| Item::template(&template.uri_template, &template.uri_template, server)
);

/// A tool as access rules see it: by the handler's name.
pub(super) fn tool_item<'a>(tool: &'a Tool, server: &'a str) -> Item<'a> {
    let declared = tool.annotations.as_ref();
    let hints = ToolHint::ALL.map(|hint| {
        let annotations = declared?;
        match hint {
            ToolHint::ReadOnlyHint => annotations.read_only_hint,
            ToolHint::DestructiveHint => annotations.destructive_hint,
            ToolHint::IdempotentHint => annotations.idempotent_hint,
            ToolHint::OpenWorldHint => annotations.open_world_hint,
        }
    });
    Item::tool(&tool.name, &tool.name, server, ToolHints::new(hints), true)
}

/// A prompt as access rules see it: by the handler's name.
pub(super) fn prompt_item<'a>(name: &'a str, server: &'a str) -> Item<'a> {
    Item::prompt(name, name, server)
}

/// Reads all pages of the handler's list.
pub(super) async fn list_all<L: ListResult>(
    handler: &dyn DynHandler,
    context: &Context,
) -> McpResult<Vec<L::Item>> {
    let (items, _) = list_before::<L>(handler, None, context).await?;
    Ok(items)
}

/// Reads the pages of the handler's list that come before the page at `cursor`; also returns whether that page was
/// found. If it was not, these are all pages.
pub(super) async fn list_before<L: ListResult>(
    handler: &dyn DynHandler,
    cursor: Option<&str>,
    context: &Context,
) -> McpResult<(Vec<L::Item>, bool)> {
    let mut all = Vec::new();
    let mut params = None;
    for _ in 0..MAX_PAGES {
        let result = handler.request(L::request(params), context.clone()).await?;
        let mut list = L::from_result(result).ok_or_else(mismatched_result)?;
        all.append(list.items());
        let Some(next) = list.cursor().take() else {
            break;
        };
        if Some(next.as_str()) == cursor {
            return Ok((all, true));
        }
        params = Some(PaginatedRequestParams::default().with_cursor(Some(next)));
    }
    Ok((all, false))
}

/// The largest number of pages read from one handler, so that a repeated cursor cannot loop
/// forever.
const MAX_PAGES: usize = 1000;
