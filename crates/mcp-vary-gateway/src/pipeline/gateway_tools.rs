//! The tools that the gateway itself adds to the lists of tools, and how their results are written.

mod directory;
mod read_result;
mod tool_response;

use mcp_vary::json::edit;
use mcp_vary_catalog::gateway_tool::GatewayTool;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::view::View;
use mcp_vary_view::{describe_tools, search_tools};
use mcp_vary_wire::response::RpcError;

use self::directory::call_directory_tool;
use self::read_result::{read_result, reader_tool};
pub(crate) use self::tool_response::tool_response;
use crate::pipeline::request_context::{Dispatch, ViewScope};

/// Appends the gateway's tools to `list`, the result of `tools/list` from `view`.
pub(crate) fn with_gateway_tools(view: &View, list: &str) -> String {
    let listed = edit::get(list, "tools").unwrap_or("[]").trim_end();
    let before = listed.strip_suffix(']').unwrap_or(listed).trim_end();
    let comma = if before.ends_with('[') { "" } else { "," };
    let tools = format!("{before}{comma}{}]", gateway_tools(view).join(","));
    edit::set(list, "tools", &tools).into_owned()
}

/// The definitions of the gateway's tools in `view`.
pub(crate) fn gateway_tools(view: &View) -> Vec<String> {
    let tools = view.gateway_tools.iter();
    let definitions = tools.map(|(name, tool)| match tool {
        GatewayTool::Describe => describe_tools(name),
        GatewayTool::Search => search_tools(name),
        GatewayTool::ReadResult => reader_tool(name),
    });
    definitions.collect()
}

/// The answer, if `name` calls a tool of the gateway.
pub(crate) async fn call_gateway_tool(
    scope: ViewScope<'_>,
    name: &str,
) -> Result<Option<Dispatch>, RpcError> {
    let tools = scope.catalog.view(ListKind::Tools, scope.view);
    match tools.and_then(|tools| tools.gateway_tool(name)) {
        None => Ok(None),
        Some(GatewayTool::ReadResult) => Ok(Some(read_result(scope).await)),
        Some(tool) => Box::pin(call_directory_tool(scope, tool)).await,
    }
}
