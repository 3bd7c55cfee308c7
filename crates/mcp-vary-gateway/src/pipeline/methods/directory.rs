//! `describe_tools` and `search_tools`: the tools of a variant whose schemas are on demand.

use std::sync::Arc;

use mcp_vary_catalog::index::ViewIndex;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::tool_search::Query;
use mcp_vary_catalog::view::View;
use mcp_vary_view::{describe_named_tools, describe_tools, search_arguments, search_tools};
use mcp_vary_wire::response::RpcError;

use super::gateway_tools::{error_result, text_result};
use super::{Dispatch, RequestContext};

/// The name of the tool that describes others, unless a server has a tool of that name.
pub(crate) const DESCRIBE: &str = "describe_tools";

/// The name of the tool that searches others, likewise.
pub(crate) const SEARCH: &str = "search_tools";

impl RequestContext<'_> {
    /// `describe_tools` as `view` lists it, if schemas are on demand there.
    pub(crate) fn describe_tool(&self, index: ViewIndex, view: &View) -> Option<String> {
        let name = || view.gateway_tool_name(DESCRIBE);
        self.is_on_demand(index).then(|| describe_tools(&name()))
    }

    /// `search_tools` as `view` lists it, if it has more tools than the variant lists without a search.
    pub(crate) fn search_tool(&self, index: ViewIndex, view: &View) -> Option<String> {
        let name = || view.gateway_tool_name(SEARCH);
        self.has_search(index, view).then(|| search_tools(&name()))
    }

    fn has_search(&self, index: ViewIndex, view: &View) -> bool {
        let config = self.variant_set().config(index);
        self.is_on_demand(index) && view.tool_count() > config.search_above
    }

    /// The answer of `describe_tools` or `search_tools`, if `name` is one of them.
    pub(crate) async fn call_directory_tool(
        &self,
        index: ViewIndex,
        name: &str,
    ) -> Result<Option<Dispatch>, RpcError> {
        let Some(view) = self.catalog.view(ListKind::Tools, index) else {
            return Ok(None);
        };
        let is_called = |tool: &str| *view.gateway_tool_name(tool) == *name;
        let is_describe = is_called(DESCRIBE);
        let is_search = self.has_search(index, view) && is_called(SEARCH);
        if !is_describe && !is_search {
            return Ok(None);
        }
        let arguments = self.arguments()?;
        let catalog = self.class.catalog.fresh(ListKind::Tools).await;
        let Some(view) = catalog.view(ListKind::Tools, index) else {
            return Ok(None);
        };
        let outcome = match is_describe {
            true => self.describe(view, arguments),
            false => search(view, arguments),
        };
        let result = match outcome {
            Ok(text) => text_result(&[text]),
            Err(why) => error_result(&why),
        };
        Ok(Some(self.answer(&result)))
    }

    /// The tools that the arguments name as JSON, and the names that the view does not list.
    fn describe(&self, view: &View, arguments: &str) -> Result<String, String> {
        let described = describe_named_tools(arguments, |name| view.describe_tool(name))?;
        for name in &described.names {
            if let Some(tool) = view.tool(name) {
                let server = self.server_name(tool.item_ref.server);
                let uses = &self.snapshot.services.directory_uses;
                uses.note_described(&server, &tool.item_ref.upstream_name);
            }
        }
        Ok(described.json)
    }

    /// What to add to the answer to arguments that do not fit.
    pub(crate) fn describe_hint(&self, view: ViewIndex) -> Option<Arc<str>> {
        let view = self.catalog.view(ListKind::Tools, view)?;
        Some(view.gateway_tool_name(DESCRIBE))
    }
}

/// The best tools for a query as JSON: names and first sentences.
fn search(view: &View, arguments: &str) -> Result<String, String> {
    let arguments = search_arguments(arguments)?;
    let query = Query::new(&arguments.query).map_err(|error| error.to_string())?;
    let found = view.search_tools(&query, arguments.limit);
    Ok(format!(r#"{{"tools":[{}]}}"#, found.join(",")))
}
