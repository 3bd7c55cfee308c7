//! What a view with schemas on demand adds to its list: descriptions of tools, and names for the gateway's own tools.

use std::sync::Arc;

use mcp_vary::json::{Members, string};

use super::gateway_tool::GatewayTool;
use super::view::View;
use crate::variant_config::VariantConfig;

impl View {
    /// The tool that the view lists as `name`, with its whole description and its compact schema. `None` if the view
    /// lists no such tool.
    ///
    /// A tool whose definition cannot be read is listed as its server wrote it, and described as such.
    pub fn describe_tool(&self, name: &str) -> Option<String> {
        let (_, tool, item) = self.shown_tools().find(|(id, ..)| ***id == *name)?;
        let prepared = tool.prepared.as_ref();
        let described = prepared.and_then(|prepared| prepared.describe(&item.json).ok());
        Some(described.unwrap_or_else(|| {
            let mut described = Members::default();
            described.set("name", string(name));
            described.set("description", r#""It is listed whole.""#);
            described.to_json()
        }))
    }

    /// The tool of the gateway that the view lists as `name`.
    pub fn gateway_tool(&self, name: &str) -> Option<GatewayTool> {
        let mut tools = self.gateway_tools.iter();
        let (_, tool) = tools.find(|(listed, _)| **listed == *name)?;
        Some(*tool)
    }

    /// The name of a tool of the gateway, if the view lists it.
    pub fn gateway_tool_name(&self, tool: GatewayTool) -> Option<&Arc<str>> {
        let mut tools = self.gateway_tools.iter();
        let (name, _) = tools.find(|(_, listed)| *listed == tool)?;
        Some(name)
    }

    /// The tools of the gateway that end the list, with their names.
    pub(super) fn named_gateway_tools(
        &self,
        variant: &VariantConfig,
        read_result: bool,
    ) -> Vec<(Arc<str>, GatewayTool)> {
        let is_on_demand = variant.style.schema.is_on_demand();
        let has_search = is_on_demand && self.tool_count() > variant.search_above;
        let tools = [
            self.is_described().then_some(GatewayTool::Describe),
            has_search.then_some(GatewayTool::Search),
            read_result.then_some(GatewayTool::ReadResult),
        ];
        let named = |tool: GatewayTool| (self.free_name(tool.usual_name()), tool);
        tools.into_iter().flatten().map(named).collect()
    }

    /// A name for a tool of the gateway: `name`, unless a listed tool has it; then `vary_name`, `vary_name_2` and so on.
    fn free_name(&self, name: &str) -> Arc<str> {
        let usual = [name.to_owned(), format!("vary_{name}")].into_iter();
        let mut names = usual.chain((2..).map(|number| format!("vary_{name}_{number}")));
        let free = names.find(|name| self.tool(name).is_none());
        free.map_or_else(|| name.into(), Into::into)
    }
}
