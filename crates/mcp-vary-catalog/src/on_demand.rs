//! What a view with schemas on demand adds to its list: descriptions of tools, and names for the gateway's own tools.

use std::sync::Arc;

use mcp_vary::json::{Members, string};

use super::view::View;

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

    /// The name of a tool of the gateway in this view: `name`, unless a listed tool has it; then `vary_name`,
    /// `vary_name_2` and so on.
    pub fn gateway_tool_name(&self, name: &str) -> Arc<str> {
        let usual = [name.to_owned(), format!("vary_{name}")].into_iter();
        let mut names = usual.chain((2..).map(|number| format!("vary_{name}_{number}")));
        let free = names.find(|name| self.tool(name).is_none());
        free.map_or_else(|| name.into(), Into::into)
    }
}
