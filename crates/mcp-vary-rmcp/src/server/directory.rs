//! `describe_tools`: the tool of a view whose schemas are on demand.

use mcp_vary_view::{describe_named_tools, describe_tools};
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock, ListToolsResult, Tool};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::json;

use super::list_result::{ListResult, list_all};
use super::selected_handler::SelectedHandler;
use super::view::View;

/// The name of the tool, unless a tool of the handler has it.
const DESCRIBE: &str = "describe_tools";

/// A tool that the client sees, before its schema is shortened.
struct SeenTool {
    handler_name: String,
    shown: Tool,
}

impl SelectedHandler<'_> {
    /// The view, if its schemas are on demand.
    fn on_demand_view(&self) -> Option<&View> {
        self.handler
            .view
            .as_ref()
            .filter(|view| view.is_on_demand())
    }

    /// Whether clients of the variant get schemas on demand.
    pub(super) fn is_on_demand(&self) -> bool {
        self.on_demand_view().is_some()
    }

    /// The definition of `describe_tools` for this client, if schemas are on demand.
    pub(super) async fn describing_tool(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<Tool>, ErrorData> {
        let Some(view) = self.on_demand_view() else {
            return Ok(None);
        };
        let name = free_name(&self.seen_tools(view, context).await?);
        Ok(serde_json::from_str(&describe_tools(&name)).ok())
    }

    /// The answer, if the request calls `describe_tools`.
    pub(super) async fn describe_tools(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<CallToolResult>, ErrorData> {
        let Some(view) = self.on_demand_view() else {
            return Ok(None);
        };
        if !request.name.contains(DESCRIBE) {
            return Ok(None);
        }
        let tools = self.seen_tools(view, context).await?;
        if request.name != free_name(&tools) {
            return Ok(None);
        }
        let arguments = json!(request.arguments.clone().unwrap_or_default()).to_string();
        let described = describe_named_tools(&arguments, |name| {
            let tool = tools.iter().find(|tool| tool.shown.name == name)?;
            view.describe_tool(&tool.handler_name, &tool.shown)
        });
        Ok(Some(match described {
            Ok(described) => CallToolResult::success(vec![ContentBlock::text(described.json)]),
            Err(why) => CallToolResult::error(vec![ContentBlock::text(why)]),
        }))
    }

    /// The tools that the client sees in the view.
    async fn seen_tools(
        &self,
        view: &View,
        context: &RequestContext<RoleServer>,
    ) -> Result<Vec<SeenTool>, ErrorData> {
        let tools = list_all::<ListToolsResult>(&*self.handler.inner, context).await?;
        let permissions = self.permissions.map(|permissions| permissions.of(context));
        let server = &self.handler.server_name;
        let seen = tools.into_iter().filter(|tool| {
            permissions.as_ref().is_none_or(|permissions| {
                let item = ListToolsResult::access_item(tool, server);
                permissions.shows(&ListToolsResult::identify(tool), &item)
            })
        });
        let seen = seen.filter_map(|tool| {
            Some(SeenTool {
                handler_name: tool.name.to_string(),
                shown: view.select_tool(tool)?,
            })
        });
        Ok(seen.collect())
    }
}

/// The name of `describe_tools` beside `tools`: `vary_describe_tools`, `vary_describe_tools_2` and so
/// on if one of them has it.
fn free_name(tools: &[SeenTool]) -> String {
    let names = [DESCRIBE.to_owned(), format!("vary_{DESCRIBE}")].into_iter();
    let mut names = names.chain((2..).map(|number| format!("vary_{DESCRIBE}_{number}")));
    let free = names.find(|name| tools.iter().all(|tool| tool.shown.name != *name));
    free.unwrap_or_else(|| DESCRIBE.to_owned())
}
