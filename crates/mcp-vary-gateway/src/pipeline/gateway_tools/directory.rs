//! `describe_tools` and `search_tools`: the tools of a variant whose schemas are on demand.

use mcp_vary::json;
use mcp_vary_catalog::gateway_tool::GatewayTool;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::tool_search::Query;
use mcp_vary_catalog::view::View;
use mcp_vary_view::{describe_named_tools, search_arguments};
use mcp_vary_wire::response::RpcError;

use super::tool_response::tool_response;
use crate::pipeline::request_context::{Dispatch, RequestContext, ViewScope};

/// The answer of `describe_tools` or `search_tools`; `None` if the view no longer exists.
pub(super) async fn call_directory_tool(
    scope: ViewScope<'_>,
    tool: GatewayTool,
) -> Result<Option<Dispatch>, RpcError> {
    let arguments = scope.arguments()?;
    let catalog = scope.class.catalog.fresh(ListKind::Tools).await;
    let Some(view) = catalog.view(ListKind::Tools, scope.view) else {
        return Ok(None);
    };
    let outcome = if tool == GatewayTool::Describe {
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

/// The best tools for a query as JSON: names and first sentences.
fn search(view: &View, arguments: &str) -> Result<String, String> {
    let arguments = search_arguments(arguments)?;
    let query = Query::new(&arguments.query).map_err(|error| error.to_string())?;
    let found = view.search_tools(&query, arguments.limit);
    let tools = format!("[{}]", found.join(","));
    Ok(json::object(&[("tools", &tools)]))
}
