//! The tools that a view lists, for a person who compares views.

use crate::view::View;

/// A tool of a server as a variant lists it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct VariantTool {
    /// The name of the server.
    pub server: String,
    /// The name of the tool there.
    pub upstream_name: String,
    /// Its name in the variant.
    pub name: String,
    /// Whether the variant gives it that name. A prefix that tells servers apart is none.
    pub is_renamed: bool,
    /// Its definition as legacy clients receive it, JSON text.
    pub definition: String,
    /// The arguments that the variant fixes, by the server's names.
    pub fixed: Vec<String>,
}

impl View {
    /// The tools in the order of the list.
    pub fn tool_listing(&self) -> impl Iterator<Item = VariantTool> {
        let tools = self.shown_tools().zip(self.tool_texts());
        tools.map(|((name, tool, item), definition)| {
            let fixed = tool.prepared.iter().flat_map(|tool| tool.fixed());
            VariantTool {
                server: self.server_name(&tool.item_ref).to_owned(),
                upstream_name: tool.item_ref.upstream_name.to_string(),
                name: name.to_string(),
                is_renamed: *name != item.id,
                definition: definition.to_owned(),
                fixed: fixed.map(str::to_owned).collect(),
            }
        })
    }
}
