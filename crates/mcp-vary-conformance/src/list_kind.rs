//! The lists of the protocol.

/// A list of the protocol, and how its items are used.
#[derive(Debug)]
pub(crate) struct ListKind {
    /// The capability without which the server does not have it, and the member of the result that has the items.
    pub(crate) name: &'static str,
    pub(crate) list_method: &'static str,
    /// The method that reads or uses one item.
    pub(crate) item_method: &'static str,
    /// The member of an item that identifies it.
    pub(crate) key: &'static str,
    /// A name or URI that no server has.
    pub(crate) unknown_item: &'static str,
}

pub(crate) const TOOLS: ListKind = ListKind {
    name: "tools",
    list_method: "tools/list",
    item_method: "tools/call",
    key: "name",
    unknown_item: "mcp_vary_conformance_unknown",
};

pub(crate) const RESOURCES: ListKind = ListKind {
    name: "resources",
    list_method: "resources/list",
    item_method: "resources/read",
    key: "uri",
    unknown_item: "mcp-vary-conformance://unknown",
};

pub(crate) const PROMPTS: ListKind = ListKind {
    name: "prompts",
    list_method: "prompts/list",
    item_method: "prompts/get",
    key: "name",
    unknown_item: "mcp_vary_conformance_unknown",
};

pub(crate) const LIST_KINDS: [&ListKind; 3] = [&TOOLS, &RESOURCES, &PROMPTS];
