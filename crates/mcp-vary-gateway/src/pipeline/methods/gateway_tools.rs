//! The tools that the gateway itself adds to the lists of tools, and how their results are written.

use std::borrow::Cow;

use mcp_vary::json::{self, edit};
use mcp_vary_catalog::index::ViewIndex;
use mcp_vary_catalog::view::View;
use mcp_vary_wire::response::RpcError;

use super::{Dispatch, RequestContext};

impl RequestContext<'_> {
    /// Appends the gateway's tools to `list`, the result of `tools/list` in `view`.
    pub(crate) fn with_gateway_tools<'l>(
        &self,
        index: ViewIndex,
        view: &View,
        list: &'l str,
    ) -> Cow<'l, str> {
        let tools = [
            self.describe_tool(index, view),
            self.search_tool(index, view),
            self.reader_tool(view),
        ];
        let tools: Vec<String> = tools.into_iter().flatten().collect();
        if tools.is_empty() {
            return Cow::Borrowed(list);
        }
        let listed = edit::get(list, "tools").unwrap_or("[]").trim_end();
        let before = listed.strip_suffix(']').unwrap_or(listed).trim_end();
        let comma = if before.ends_with('[') { "" } else { "," };
        edit::set(
            list,
            "tools",
            &format!("{before}{comma}{}]", tools.join(",")),
        )
    }

    /// Whether `view` has tools of the gateway.
    pub(crate) fn adds_tools(&self, view: ViewIndex) -> bool {
        self.snapshot.config.read_result || self.is_on_demand(view)
    }

    /// Whether clients of `view` get schemas on demand.
    pub(crate) fn is_on_demand(&self, view: ViewIndex) -> bool {
        let config = self.snapshot.variant_set.config(view);
        config.style.schema.is_on_demand()
    }

    /// The answer, if `name` calls a tool of the gateway.
    pub(crate) async fn call_gateway_tool(
        &self,
        view: ViewIndex,
        name: &str,
    ) -> Result<Option<Dispatch>, RpcError> {
        if !self.adds_tools(view) {
            return Ok(None);
        }
        if let Some(answer) = self.read_remainder(view, name).await? {
            return Ok(Some(answer));
        }
        match self.is_on_demand(view) {
            true => Box::pin(self.call_directory_tool(view, name)).await,
            false => Ok(None),
        }
    }
}

/// `definition`, a tool without a name, with `name`.
pub(crate) fn with_name(name: &str, definition: &str) -> String {
    let rest = definition.trim_start_matches('{');
    format!(r#"{{"name":{},{rest}"#, json::string(name))
}

/// The result of a tool: a block for each text.
pub(crate) fn text_result(texts: &[String]) -> String {
    format!(r#"{{"content":[{}]}}"#, blocks(texts))
}

/// The result of a tool that failed: a text that a model can act on.
///
/// > Tool Execution Errors contain actionable feedback that language models can use to self-correct.
/// > (MCP 2025-11-25, server/tools, "Error Handling")
pub(crate) fn error_result(why: &str) -> String {
    let blocks = blocks(&[why.to_owned()]);
    format!(r#"{{"content":[{blocks}],"isError":true}}"#)
}

fn blocks(texts: &[String]) -> String {
    let block = |text: &String| format!(r#"{{"type":"text","text":{}}}"#, json::string(text));
    let blocks: Vec<_> = texts.iter().map(block).collect();
    blocks.join(",")
}
