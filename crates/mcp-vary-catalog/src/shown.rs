//! One item as a variant shows it, and what requests for it need.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary::json::edit;
use mcp_vary::shape::ToolFacts;
use mcp_vary_results::name_rewriter::NameRewriter;
use mcp_vary_results::{OutputValidator, ResultRule, ToolResultRules};
use mcp_vary_view::{PreparedPrompt, PreparedTool, UriTemplate, ViewDiagnostic};
use mcp_vary_wire::headers::ParamHeader;
use mcp_vary_wire::revision::Era;

use super::item::{Item, ItemRef, headers_of};
use super::listing::ListKind;
use crate::variant_config::{NameScope, Prepared, VariantConfig, candidate};

/// How a variant shows an item. Built once and reused for as long as the item stays the same.
#[derive(Debug)]
pub struct ViewItem {
    /// The item of the merged list.
    pub item: Arc<Item>,
    /// `None` if the variant does not show the item.
    pub visible: Option<VisibleItem>,
    /// Problems in the variant's configuration that this item reveals.
    pub diagnostics: Vec<ViewDiagnostic>,
}

/// An item as a variant lists it.
#[derive(Debug)]
pub struct VisibleItem {
    /// The name or URI that the variant gives the item.
    pub id: Arc<str>,
    json: Arc<str>,
    /// The item as legacy clients receive it.
    legacy: Arc<str>,
    /// What requests for the item need.
    pub kind: ItemKind,
}

/// What a request for an item needs.
#[derive(Debug)]
pub enum ItemKind {
    /// A tool.
    Tool(Arc<Tool>),
    /// A prompt.
    Prompt(Arc<Prompt>),
    /// A resource. Requests need only its [`ItemRef`].
    Resource,
    /// A resource template. It matches the server's URIs, even if the variant renames the template.
    Template(UriTemplate),
}

/// A tool as a variant lists it, with what calls need.
#[derive(Clone, Debug)]
pub struct Tool {
    /// The server that has the item, and its name there.
    pub item_ref: ItemRef,
    /// What shaping results needs to know about the tool.
    pub facts: ToolFacts,
    /// The headers that the variant's clients send.
    pub headers: Arc<[ParamHeader]>,
    /// The headers that the server accepts.
    pub upstream_headers: Arc<[ParamHeader]>,
    /// Whether the server declares the tool idempotent.
    pub idempotent: bool,
    /// Whether the tool must be called as a task of the core protocol.
    pub needs_task: bool,
    /// Rewrites the arguments. If absent, they are forwarded unchanged.
    pub prepared: Option<Arc<PreparedTool>>,
    /// Replaces the server's names with the variant's, if the variant renames anything.
    pub name_rewriter: Option<Arc<NameRewriter>>,
    /// Validates the results of the tool.
    pub output: Option<Arc<OutputValidator>>,
    /// The operator's rules for the results of the tool, if any.
    pub result_rules: Option<Arc<ToolResultRules>>,
}

/// A prompt as a variant lists it, with what requests need.
#[derive(Debug)]
pub struct Prompt {
    /// The name of the prompt before a variant renames it.
    pub id: Arc<str>,
    /// The server that has the item, and its name there.
    pub item_ref: ItemRef,
    /// Rewrites the arguments. If absent, they are forwarded unchanged.
    pub prepared: Option<PreparedPrompt>,
    /// Replaces the server's names with the variant's, if the variant renames anything.
    pub name_rewriter: Option<Arc<NameRewriter>>,
}

impl ViewItem {
    /// Applies the variant `face` to `item` of the server named `server`.
    pub fn new(
        config: &VariantConfig,
        names: &NameScope,
        kind: ListKind,
        item: &Arc<Item>,
        server: &str,
        results: &[ResultRule],
    ) -> Self {
        let mut diagnostics = Vec::new();
        let rules = (kind == ListKind::Tools)
            .then(|| ToolResultRules::new(results, candidate(item, server), &config.variant.id))
            .flatten();
        // What the operator declares replaces the server's own `outputSchema` before the variant's style applies.
        let output = rules.as_ref().and_then(|rules| rules.output());
        let declared = output.map(|output| item.with_output_schema(output.schema()));
        let listed = declared.as_ref().unwrap_or(item);
        let shown = config.show(names, kind, listed, server, &mut diagnostics);
        let visible = shown.map(|shown| {
            let json = match shown.json {
                Cow::Borrowed(_) => Arc::clone(&listed.json),
                Cow::Owned(json) => json.into(),
            };
            VisibleItem {
                legacy: for_legacy(kind, listed, &json),
                kind: ItemKind::new(kind, listed, &shown.id, &json, shown.call, rules),
                id: shown.id,
                json,
            }
        });
        Self {
            item: Arc::clone(item),
            visible,
            diagnostics,
        }
    }
}

impl VisibleItem {
    /// How calls of the tool are rewritten, if the item is a tool that the variant changes.
    pub fn prepared_tool(&self) -> Option<&PreparedTool> {
        match &self.kind {
            ItemKind::Tool(tool) => tool.prepared.as_deref(),
            _ => None,
        }
    }

    /// The item as clients of `era` receive it.
    pub fn text(&self, era: Era) -> &Arc<str> {
        match era {
            Era::Legacy => &self.legacy,
            Era::Modern => &self.json,
        }
    }
}

impl ItemKind {
    fn new(
        kind: ListKind,
        item: &Item,
        id: &Arc<str>,
        json: &Arc<str>,
        call: Option<Prepared>,
        results: Option<Arc<ToolResultRules>>,
    ) -> Self {
        match kind {
            ListKind::Tools => {
                let prepared = match call {
                    Some(Prepared::Tool(prepared)) => Some(Arc::from(prepared)),
                    _ => None,
                };
                let tool = Tool::new(item, id, json, prepared);
                Self::Tool(Arc::new(Tool {
                    result_rules: results,
                    ..tool
                }))
            }
            ListKind::Prompts => {
                let prepared = match call {
                    Some(Prepared::Prompt(prepared)) => Some(prepared),
                    _ => None,
                };
                let renamed = prepared.iter().flat_map(PreparedPrompt::renamed);
                Self::Prompt(Arc::new(Prompt {
                    id: Arc::clone(&item.id),
                    item_ref: item.item_ref.clone(),
                    name_rewriter: name_rewriter(item, id, renamed),
                    prepared,
                }))
            }
            ListKind::Resources => Self::Resource,
            ListKind::Templates => Self::Template(UriTemplate::new(&item.item_ref.upstream_name)),
        }
    }
}

/// The names that the variant changes. A prefix that tells servers apart does not count as a rename.
fn name_rewriter<'a>(
    item: &Item,
    id: &Arc<str>,
    renamed: impl Iterator<Item = (&'a str, &'a str)>,
) -> Option<Arc<NameRewriter>> {
    let is_renamed = *id != item.id;
    let rewriter = NameRewriter {
        item: is_renamed.then(|| (Arc::clone(&item.item_ref.upstream_name), Arc::clone(id))),
        arguments: renamed
            .map(|(upstream_name, shown)| (upstream_name.to_owned(), shown.to_owned()))
            .collect(),
    };
    (!rewriter.is_empty()).then(|| Arc::new(rewriter))
}

impl Tool {
    fn new(
        item: &Item,
        id: &Arc<str>,
        json: &Arc<str>,
        prepared: Option<Arc<PreparedTool>>,
    ) -> Self {
        let renamed = prepared.iter().flat_map(|prepared| prepared.renamed());
        let upstream_tool = item.tool.as_ref();
        let upstream_headers = upstream_tool
            .map(|upstream_tool| Arc::clone(&upstream_tool.headers))
            .unwrap_or_default();
        let headers = if *item.json == **json {
            Arc::clone(&upstream_headers)
        } else {
            headers_of(&item.id, json)
        };
        Self {
            item_ref: item.item_ref.clone(),
            facts: upstream_tool
                .map(|upstream_tool| upstream_tool.facts)
                .unwrap_or_default(),
            headers,
            upstream_headers,
            idempotent: upstream_tool.is_some_and(|upstream_tool| upstream_tool.idempotent),
            needs_task: upstream_tool.is_some_and(|upstream_tool| upstream_tool.needs_task),
            name_rewriter: name_rewriter(item, id, renamed),
            prepared,
            output: upstream_tool.and_then(|upstream_tool| upstream_tool.output.clone()),
            result_rules: None,
        }
    }

    /// Merges another tool with the same name. A request for the name may mean either tool, so only guarantees that
    /// both tools give are kept.
    pub fn merge(&mut self, other: &Self) {
        self.facts.output_schema |= other.facts.output_schema;
        self.facts.ui |= other.facts.ui;
        self.idempotent &= other.idempotent;
        // A result would have to be valid for both schemas.
        self.output = None;
    }
}

/// The item as legacy clients receive it. Legacy clients only support output schemas for objects, but a modern server
/// may list others.
fn for_legacy(kind: ListKind, item: &Item, json: &Arc<str>) -> Arc<str> {
    if (kind, item.server_era) != (ListKind::Tools, Era::Modern) {
        return Arc::clone(json);
    }
    match without_non_object_schema(json) {
        Cow::Borrowed(_) => Arc::clone(json),
        Cow::Owned(text) => text.into(),
    }
}

fn without_non_object_schema(tool: &str) -> Cow<'_, str> {
    let is_object =
        |schema: &str| edit::get(schema, "type").is_some_and(|kind| kind == "\"object\"");
    match edit::get(tool, "outputSchema") {
        Some(schema) if !is_object(schema) => edit::remove(tool, "outputSchema"),
        _ => Cow::Borrowed(tool),
    }
}
