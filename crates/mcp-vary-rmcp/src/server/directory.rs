//! `describe_tools` and `search_tools`: the tools of a view whose schemas are on demand.

use mcp_vary_search::Query;
use mcp_vary_view::{
    describe_named_tools, describe_tools, escape_invisible, search_arguments, search_tools,
};
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock, ListToolsResult, Tool};
use serde_json::json;

use super::list_result::{ListResult, list_all, list_before};
use super::pages::{EarlierItems, Page};
use super::rules::{Context, McpResult};
use super::selected_handler::SelectedHandler;
use super::view::View;

/// The name of the tool that describes others, unless a tool of the handler has it.
const DESCRIBE: &str = "describe_tools";

/// The name of the tool that searches others, likewise.
const SEARCH: &str = "search_tools";

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
            .filter(|view| view.tool_style.is_on_demand())
    }

    /// Whether clients of the variant get schemas on demand.
    pub(super) fn is_on_demand(&self) -> bool {
        self.on_demand_view().is_some()
    }

    /// The page, with `describe_tools` and `search_tools` if it is the last one and as far as the view has them.
    ///
    /// The handler lists each page once: those before this one in `context`, unless they are known.
    pub(super) async fn with_directory_tools(
        &self,
        page: Page<ListToolsResult>,
        context: Option<&Context>,
    ) -> McpResult<ListToolsResult> {
        let mut list = page.list;
        let Some(view) = self.on_demand_view() else {
            return Ok(list);
        };
        if list.next_cursor.is_some() {
            return Ok(list);
        }
        let (earlier, has_page) = match (page.earlier, context) {
            (EarlierItems::BeforeCursor(cursor), Some(context)) => {
                self.tools_before(view, &cursor, context).await?
            }
            (EarlierItems::Known(tools), _) => (tools, false),
            (EarlierItems::BeforeCursor(_), None) => (Vec::new(), false),
        };
        let on_page = if has_page { &[] } else { list.tools.as_slice() };
        let shown: Vec<&Tool> = earlier.iter().chain(on_page).collect();
        let definitions = definitions(view, &shown.iter().copied());
        list.tools.extend(definitions);
        Ok(list)
    }

    /// The tools that the client sees on the handler's pages before the one at `cursor`. If the handler has no such page
    /// any more, its whole list and true.
    async fn tools_before(
        &self,
        view: &View,
        cursor: &str,
        context: &Context,
    ) -> McpResult<(Vec<Tool>, bool)> {
        let handler = &*self.handler.inner;
        let (tools, is_found) =
            list_before::<ListToolsResult>(handler, Some(cursor), context).await?;
        let seen = self.seen_among(tools, view, context).into_iter();
        Ok((seen.map(|tool| tool.shown).collect(), !is_found))
    }

    /// The answer, if the request calls `describe_tools` or `search_tools`.
    pub(super) async fn call_directory_tool(
        &self,
        request: &CallToolRequestParams,
        context: &Context,
    ) -> McpResult<Option<CallToolResult>> {
        let Some(view) = self.on_demand_view() else {
            return Ok(None);
        };
        if ![DESCRIBE, SEARCH]
            .iter()
            .any(|name| request.name.contains(name))
        {
            return Ok(None);
        }
        let tools = self.seen_tools(view, context).await?;
        let shown = tools.iter().map(|tool| &tool.shown);
        let arguments = json!(request.arguments.clone().unwrap_or_default()).to_string();
        let answer = if request.name == free_name(DESCRIBE, &shown) {
            describe(view, &tools, &arguments)
        } else if view.tool_style.has_search(tools.len())
            && request.name == free_name(SEARCH, &shown)
        {
            search(view, &tools, &self.handler.server_name, &arguments)
        } else {
            return Ok(None);
        };
        Ok(Some(match answer {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(why) => CallToolResult::error(vec![ContentBlock::text(why)]),
        }))
    }

    /// The tools that the client sees in the view.
    async fn seen_tools(&self, view: &View, context: &Context) -> McpResult<Vec<SeenTool>> {
        let tools = list_all::<ListToolsResult>(&*self.handler.inner, context).await?;
        Ok(self.seen_among(tools, view, context))
    }

    /// Those of the handler's `tools` that the client sees in the view.
    fn seen_among(&self, tools: Vec<Tool>, view: &View, context: &Context) -> Vec<SeenTool> {
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
        seen.collect()
    }
}

/// The definitions of `describe_tools` and `search_tools` beside the tools that a client sees, as far as the view has
/// them.
fn definitions<'a>(
    view: &View,
    shown: &(impl ExactSizeIterator<Item = &'a Tool> + Clone),
) -> Vec<Tool> {
    let describe = describe_tools(&free_name(DESCRIBE, shown));
    let search = view
        .tool_style
        .has_search(shown.len())
        .then(|| search_tools(&free_name(SEARCH, shown)));
    let definitions = [Some(describe), search].into_iter().flatten();
    definitions
        .filter_map(|json| serde_json::from_str(&json).ok())
        .collect()
}

/// The tools that the arguments name, described.
fn describe(view: &View, tools: &[SeenTool], arguments: &str) -> Result<String, String> {
    let described = describe_named_tools(arguments, |name| {
        let tool = tools.iter().find(|tool| tool.shown.name == name)?;
        view.describe_tool(&tool.handler_name, &tool.shown)
    });
    described.map(|described| described.json)
}

/// The best tools for a query as JSON: names and first sentences.
fn search(
    view: &View,
    tools: &[SeenTool],
    server: &str,
    arguments: &str,
) -> Result<String, String> {
    let arguments = search_arguments(arguments)?;
    let query = Query::new(&arguments.query).map_err(|error| error.to_string())?;
    let tools: Vec<&Tool> = tools.iter().map(|tool| &tool.shown).collect();
    let found = view
        .tool_style
        .search
        .find(&tools, server, &query, arguments.limit);
    Ok(escape_invisible(&json!({"tools": found}).to_string()))
}

/// The name of the added tool `name` beside the tools `shown`: `vary_` before it, then a number after it, if one of
/// them has it.
fn free_name<'a>(name: &str, shown: &(impl Iterator<Item = &'a Tool> + Clone)) -> String {
    let names = [name.to_owned(), format!("vary_{name}")].into_iter();
    let mut names = names.chain((2..).map(|number| format!("vary_{name}_{number}")));
    let free = names.find(|name| shown.clone().all(|tool| tool.name != *name));
    free.unwrap_or_else(|| name.to_owned())
}
