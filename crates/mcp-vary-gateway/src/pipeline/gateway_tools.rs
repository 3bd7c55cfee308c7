//! The tools that the gateway itself adds to the lists of tools, and how their results are written.

pub(crate) mod directory;
mod read_result;
mod tool_response;

use std::borrow::Cow;

use mcp_vary::json::edit;
use mcp_vary_catalog::variant_config::VariantConfig;
use mcp_vary_catalog::view::View;
use mcp_vary_wire::response::RpcError;

pub(crate) use self::directory::is_on_demand;
use self::directory::{call_directory_tool, describe_tool, search_tool};
use self::read_result::{read_result, reader_tool};
pub(crate) use self::tool_response::tool_response;
use crate::pipeline::request_context::{Dispatch, ViewScope};
use mcp_vary_settings::config::Config;

/// Appends the gateway's tools to `list`, the result of `tools/list` from `view`.
pub(crate) fn with_gateway_tools<'l>(
    scope: ViewScope<'_>,
    view: &View,
    list: &'l str,
) -> Cow<'l, str> {
    let tools = gateway_tools(&scope.snapshot.config, scope.config(), view);
    if tools.is_empty() {
        return Cow::Borrowed(list);
    }
    let listed = edit::get(list, "tools").unwrap_or("[]").trim_end();
    let before = listed.strip_suffix(']').unwrap_or(listed).trim_end();
    let comma = if before.ends_with('[') { "" } else { "," };
    let tools = format!("{before}{comma}{}]", tools.join(","));
    edit::set(list, "tools", &tools)
}

/// The definitions of the gateway's tools in `view`, which is of `variant`.
pub(crate) fn gateway_tools(config: &Config, variant: &VariantConfig, view: &View) -> Vec<String> {
    let tools = [
        describe_tool(view),
        search_tool(variant, view),
        reader_tool(config, view),
    ];
    tools.into_iter().flatten().collect()
}

/// Whether the view has tools of the gateway.
pub(crate) fn has_gateway_tools(scope: ViewScope<'_>) -> bool {
    scope.snapshot.config.read_result || is_on_demand(scope)
}

/// The answer, if `name` calls a tool of the gateway.
pub(crate) async fn call_gateway_tool(
    scope: ViewScope<'_>,
    name: &str,
) -> Result<Option<Dispatch>, RpcError> {
    if !has_gateway_tools(scope) {
        return Ok(None);
    }
    if let Some(answer) = read_result(scope, name).await? {
        return Ok(Some(answer));
    }
    if is_on_demand(scope) {
        Box::pin(call_directory_tool(scope, name)).await
    } else {
        Ok(None)
    }
}
