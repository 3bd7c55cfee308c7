//! `describe_tools` and `search_tools`: the tools of a variant whose schemas are on demand.

use std::sync::Arc;

use mcp_vary::json;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::tool_search::Query;
use mcp_vary_catalog::variant_config::VariantConfig;
use mcp_vary_catalog::view::View;
use mcp_vary_view::{describe_named_tools, describe_tools, search_arguments, search_tools};
use mcp_vary_wire::response::RpcError;

use super::tool_response::tool_response;
use crate::pipeline::request_context::{Dispatch, RequestContext, ViewScope};

/// The name of the tool that describes others, unless a server has a tool of that name.
pub(crate) const DESCRIBE: &str = "describe_tools";

/// The name of the tool that searches others, likewise.
pub(crate) const SEARCH: &str = "search_tools";

/// `describe_tools` as `view` lists it, if clients get schemas from it there.
pub(super) fn describe_tool(view: &View) -> Option<String> {
    view.is_described()
        .then(|| describe_tools(&view.gateway_tool_name(DESCRIBE)))
}

/// `search_tools` as `view` lists it, if it has more tools than the variant lists without a search.
pub(super) fn search_tool(variant: &VariantConfig, view: &View) -> Option<String> {
    has_search(variant, view).then(|| search_tools(&view.gateway_tool_name(SEARCH)))
}

/// Whether clients of the view get schemas on demand.
pub(crate) fn is_on_demand(scope: ViewScope<'_>) -> bool {
    scope.config().style.schema.is_on_demand()
}

fn has_search(variant: &VariantConfig, view: &View) -> bool {
    variant.style.schema.is_on_demand() && view.tool_count() > variant.search_above
}

/// The answer of `describe_tools` or `search_tools`, if `name` is one of them.
pub(super) async fn call_directory_tool(
    scope: ViewScope<'_>,
    name: &str,
) -> Result<Option<Dispatch>, RpcError> {
    let Some(view) = scope.catalog.view(ListKind::Tools, scope.view) else {
        return Ok(None);
    };
    let is_called = |tool: &str| *view.gateway_tool_name(tool) == *name;
    let is_describe = view.is_described() && is_called(DESCRIBE);
    let is_search = has_search(scope.config(), view) && is_called(SEARCH);
    if !is_describe && !is_search {
        return Ok(None);
    }
    let arguments = scope.arguments()?;
    let catalog = scope.class.catalog.fresh(ListKind::Tools).await;
    let Some(view) = catalog.view(ListKind::Tools, scope.view) else {
        return Ok(None);
    };
    let outcome = if is_describe {
        describe(&scope, view, arguments)
    } else {
        search(view, arguments)
    };
    Ok(Some(tool_response(scope, outcome.map(|text| vec![text]))))
}

/// The tools that the arguments name as JSON, and the names that the view does not list.
fn describe(context: &RequestContext<'_>, view: &View, arguments: &str) -> Result<String, String> {
    let described = describe_named_tools(arguments, |name| view.describe_tool(name))?;
    for name in &described.names {
        if let Some(tool) = view.tool(name) {
            let server = context.server_name(tool.item_ref.server);
            let uses = &context.snapshot.services.directory_uses;
            uses.note_described(&server, &tool.item_ref.upstream_name);
        }
    }
    Ok(described.json)
}

/// The name of `describe_tools` in the view, which the answer to arguments that do not fit repeats.
pub(crate) fn describe_tool_name(scope: ViewScope<'_>) -> Option<Arc<str>> {
    let view = scope.catalog.view(ListKind::Tools, scope.view)?;
    view.is_described()
        .then(|| view.gateway_tool_name(DESCRIBE))
}

/// The best tools for a query as JSON: names and first sentences.
fn search(view: &View, arguments: &str) -> Result<String, String> {
    let arguments = search_arguments(arguments)?;
    let query = Query::new(&arguments.query).map_err(|error| error.to_string())?;
    let found = view.search_tools(&query, arguments.limit);
    let tools = format!("[{}]", found.join(","));
    Ok(json::object(&[("tools", &tools)]))
}
