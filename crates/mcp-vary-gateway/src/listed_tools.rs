//! The tools of each variant, for a person who compares variants.

use std::collections::BTreeMap;

use mcp_vary::variant::ServerVariant;
use mcp_vary_catalog::hidden_tools::HiddenReason;
use mcp_vary_catalog::index::VariantIndex;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::tool_listing::VariantTool;
use mcp_vary_catalog::variant_config::VariantConfig;
use mcp_vary_catalog::view::View;
use mcp_vary_view::ViewDiagnostic;

use crate::gateway::Gateway;
use crate::pipeline::gateway_tools::gateway_tools;

/// The tools that a variant lists.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct VariantTools {
    /// The variant.
    pub variant: ServerVariant,
    /// The tools of servers, in the order of the list.
    pub tools: Vec<VariantTool>,
    /// The definitions of the gateway's own tools, which end the list.
    pub gateway_tools: Vec<String>,
}

impl Gateway {
    /// The tools of every variant, advertised or not, in the order of configuration; none if variants are off.
    ///
    /// They are those of clients that access rules let use everything.
    pub fn variant_tools(&self) -> Vec<VariantTools> {
        let snapshot = self.current();
        let catalog = snapshot.pool.base().catalog.current();
        let enabled = VariantIndex::enumerate(snapshot.enabled_variants());
        let variants = enabled.filter_map(|(at, _)| {
            let index = at.declared_view();
            let view = catalog.view(ListKind::Tools, index)?;
            Some(tools_of(snapshot.variant_set.config(index), view))
        });
        variants.collect()
    }

    /// The tools that a variant of this configuration would list now; `None` if no server has tools. Clients do not get it.
    pub fn tools_of_variant(&self, config: &VariantConfig) -> Option<VariantTools> {
        let snapshot = self.current();
        let catalog = snapshot.pool.base().catalog.current();
        let lists = catalog.lists.get(&ListKind::Tools)?;
        let view = View::new(config, &lists.merged, &lists.layout, None, &[]);
        Some(tools_of(config, &view))
    }

    /// Why a variant of this configuration would not list tools that servers list now, by server and name there.
    pub fn hidden_tools_of_variant(
        &self,
        config: &VariantConfig,
    ) -> BTreeMap<(String, String), HiddenReason> {
        let snapshot = self.current();
        let catalog = snapshot.pool.base().catalog.current();
        let lists = catalog.lists.get(&ListKind::Tools).into_iter();
        let items = lists.flat_map(|lists| lists.merged.items_with_server());
        let hidden = items.filter_map(|(item, server)| {
            let reason = config.why_hidden(item, server)?;
            let name = item.item_ref.upstream_name.to_string();
            Some(((server.to_owned(), name), reason))
        });
        hidden.collect()
    }

    /// What is wrong with a variant of this configuration, by the lists that servers have now: parts that match nothing, unless a
    /// server that may have it is down, and tools that cannot be shown as it wants.
    pub fn mistakes_in_variant(&self, config: &VariantConfig) -> Vec<ViewDiagnostic> {
        let snapshot = self.current();
        let catalog = snapshot.pool.base().catalog.current();
        let mut mistakes = catalog.unmatched_parts(config);
        if let Some(lists) = catalog.lists.get(&ListKind::Tools) {
            let view = View::new(config, &lists.merged, &lists.layout, None, &[]);
            let diagnostics = view.diagnostics.iter();
            let others = diagnostics.filter(|found| !mistakes.contains(found));
            let others: Vec<_> = others.cloned().collect();
            mistakes.extend(others);
        }
        mistakes
    }
}

fn tools_of(config: &VariantConfig, view: &View) -> VariantTools {
    VariantTools {
        variant: config.variant.clone(),
        tools: view.tool_listing().collect(),
        gateway_tools: gateway_tools(view),
    }
}
