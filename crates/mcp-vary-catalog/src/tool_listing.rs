//! The tools that a view lists, for a person who compares views.

use crate::view::View;

/// A tool as a view lists it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListedTool<'v> {
    /// The name of the server that has it.
    pub server: &'v str,
    /// Its name there.
    pub upstream_name: &'v str,
    /// Its name in the view.
    pub name: &'v str,
    /// Whether the variant gives it that name. A prefix that tells servers apart is none.
    pub is_renamed: bool,
    /// Its definition, as legacy clients receive it.
    pub definition: &'v str,
    /// The arguments that the variant fixes, by the server's names.
    pub fixed: Vec<&'v str>,
}

impl View {
    /// The tools in the order of the list.
    pub fn tool_listing(&self) -> impl Iterator<Item = ListedTool<'_>> {
        let tools = self.shown_tools().zip(self.tool_texts());
        tools.map(|((name, tool, item), definition)| ListedTool {
            server: self.server_name(&tool.item_ref),
            upstream_name: &tool.item_ref.upstream_name,
            name,
            is_renamed: *name != item.id,
            definition,
            fixed: tool.prepared.iter().flat_map(|tool| tool.fixed()).collect(),
        })
    }
}
