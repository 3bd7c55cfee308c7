//! An item of the merged list: its name for clients, and its server.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary::json::{Members, edit};
use mcp_vary::shape::ToolFacts;
use mcp_vary_results::OutputValidator;
use mcp_vary_results::link_index::LinkSource;
use mcp_vary_view::ToolHints;
use mcp_vary_wire::headers::{ParamHeader, param_headers};
use mcp_vary_wire::revision::Era;
use tracing::warn;

use super::index::ServerIndex;
use super::listing::ListKind;
use crate::listing;

/// An item as clients see it in `standard`, and its server.
///
/// As long as the server's definition stays the same, the item is reused, and so are the views of it.
#[derive(Clone, Debug)]
pub struct Item {
    /// The name or URI in `standard`.
    pub id: Arc<str>,
    /// The item as clients see it in `standard`.
    pub json: Arc<str>,
    /// The item as the server wrote it.
    upstream_json: Arc<str>,
    /// The server that has it, and its name there.
    pub item_ref: ItemRef,
    /// The protocol era of the server, which affects how the item is shown.
    pub server_era: Era,
    /// The properties of a tool. `None` for other items.
    pub tool: Option<UpstreamTool>,
}

/// A reference to an item: its server, and its name there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ItemRef {
    /// The server that lists it.
    pub server: ServerIndex,
    /// The name or URI that the server gives it.
    pub upstream_name: Arc<str>,
}

impl ItemRef {
    /// The item as the source of links in its results.
    pub fn link_source(&self, kind: ListKind) -> LinkSource {
        LinkSource::new(kind, &self.upstream_name)
    }
}

/// The properties of a tool from the server's own definition, independent of variants.
#[derive(Clone, Debug)]
pub struct UpstreamTool {
    /// What shaping results needs to know about the tool.
    pub facts: ToolFacts,
    /// The headers that the server accepts.
    pub headers: Arc<[ParamHeader]>,
    /// Whether the server declares the tool idempotent.
    pub idempotent: bool,
    /// Whether the tool must be called as a task of the core protocol.
    pub needs_task: bool,
    /// The tool's annotations, for selections.
    pub hints: ToolHints,
    /// Validates results against the `outputSchema`, if there is one.
    pub output: Option<Arc<OutputValidator>>,
}

impl Item {
    /// Creates the item for `item` of `server`, with the name `id` for clients.
    pub fn new(
        kind: ListKind,
        server: ServerIndex,
        server_era: Era,
        item: &listing::ListedItem,
        id: Arc<str>,
    ) -> Self {
        let json = if id == item.id {
            Arc::clone(&item.json)
        } else {
            match edit::set(&item.json, kind.id_key(), &mcp_vary::json::string(&id)) {
                Cow::Borrowed(_) => Arc::clone(&item.json),
                Cow::Owned(json) => json.into(),
            }
        };
        Self {
            tool: (kind == ListKind::Tools).then(|| UpstreamTool::read(&id, &json)),
            id,
            json,
            upstream_json: Arc::clone(&item.json),
            item_ref: ItemRef {
                server,
                upstream_name: Arc::clone(&item.id),
            },
            server_era,
        }
    }

    /// The tool as if the server listed it with this `outputSchema`.
    #[must_use]
    pub fn with_output_schema(&self, schema: &str) -> Self {
        let json: Arc<str> = edit::set(&self.json, "outputSchema", schema).into();
        Self {
            tool: Some(UpstreamTool::read(&self.id, &json)),
            json,
            ..self.clone()
        }
    }

    /// Whether [`new`](Self::new) would return the same item.
    pub fn matches(
        &self,
        server: ServerIndex,
        server_era: Era,
        item: &listing::ListedItem,
        id: &str,
    ) -> bool {
        self.item_ref.server == server
            && self.server_era == server_era
            && *self.id == *id
            && self.item_ref.upstream_name == item.id
            && self.upstream_json == item.json
    }
}

impl UpstreamTool {
    /// Reads the server's own definition, which applies in all variants: SDK clients validate a result against the
    /// schema that they saw first, which may be from another variant.
    fn read(name: &str, tool: &Arc<str>) -> Self {
        let members = Members::parse(tool).unwrap_or_default();
        let facts = ToolFacts::listed(tool);
        Self {
            facts,
            output: facts
                .output_schema
                .then(|| Arc::new(OutputValidator::new(tool))),
            headers: headers_of(name, tool),
            idempotent: is_idempotent(&members),
            needs_task: needs_task(&members),
            hints: ToolHints::from_tool(tool),
        }
    }
}

/// The headers that the clients of `tool` send.
pub fn headers_of(name: &str, tool: &str) -> Arc<[ParamHeader]> {
    let schema = edit::get(tool, "inputSchema").unwrap_or("{}");
    let headers = param_headers(schema).unwrap_or_else(|why| {
        warn!(tool = name, why, "annotations of the tool ignored");
        Vec::new()
    });
    headers.into()
}

/// > If `execution.taskSupport` is `"required"`, clients MUST invoke the tool as a task.
/// > (MCP 2025-11-25, basic/utilities/tasks, "Tool-Level Negotiation")
fn needs_task(tool: &Members<'_>) -> bool {
    let execution = tool.get("execution").and_then(|it| Members::parse(it).ok());
    execution.is_some_and(|members| members.get_str("taskSupport").as_deref() == Some("required"))
}

/// > If true, calling the tool repeatedly with the same arguments will have no additional effect on its
/// > environment. (This property is meaningful only when `readOnlyHint == false`)
/// > (MCP 2025-11-25, schema, `ToolAnnotations.idempotentHint`)
fn is_idempotent(tool: &Members<'_>) -> bool {
    let annotations = tool
        .get("annotations")
        .and_then(|text| Members::parse(text).ok());
    annotations.is_some_and(|annotations| {
        ["idempotentHint", "readOnlyHint"]
            .iter()
            .any(|hint| annotations.get(hint) == Some("true"))
    })
}
