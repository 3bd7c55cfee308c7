//! How a gateway stands: its servers, what they offer together, and what is odd about it.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use mcp_vary::hints::VariantHints;
use mcp_vary::variant::{ServerVariant, VariantId};
use mcp_vary_catalog::index::VariantIndex;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::merge::Collision;
use mcp_vary_catalog::selection::rankings::Explanation;
use mcp_vary_results::RuleFailures;
use mcp_vary_upstream::ConnectionState;
use mcp_vary_wire::handshake::Handshake;

use crate::gateway::Gateway;
use crate::pool::source::ServerSource;

/// One server as it stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerReport {
    /// The name that the operator gave it.
    pub name: String,
    /// How the connection to it stands.
    pub state: ConnectionState,
    /// What it said about itself when it was last connected to.
    pub handshake: Option<Arc<Handshake>>,
    /// How many items each list has, by the list's method; lists that it lacks or that cannot be read are
    /// left out.
    pub counts: Vec<(&'static str, usize)>,
}

impl ServerReport {
    fn of(source: &ServerSource) -> Self {
        let told = source.snapshot();
        let lists = told.listings.iter();
        let counts =
            lists.filter_map(|(kind, list)| Some((kind.method(), list.as_ref().ok()?.items.len())));
        Self {
            name: source.name().to_owned(),
            state: source.connection.state().borrow().clone(),
            handshake: told.handshake.clone(),
            counts: counts.collect(),
        }
    }
}

/// One thing that the gateway offers, and which server it belongs to.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ServedItem {
    /// The list, by its method: `tools/list` for example.
    pub list: &'static str,
    /// The name or URI by which clients know it.
    pub id: String,
    /// The name of the server.
    pub server: String,
    /// The name or URI at the server.
    pub upstream_name: String,
}

impl Gateway {
    /// Waits for each server that was never connected to, and calls `ready` with those that are, once they were read.
    pub async fn late_servers(&self, mut ready: impl FnMut(ServerReport)) {
        let late = |source: &&Arc<ServerSource>| source.snapshot().handshake.is_none();
        let setup = self.current();
        let late: Vec<_> = setup
            .pool
            .base()
            .sources()
            .iter()
            .filter(late)
            .cloned()
            .collect();
        // A configuration that is replaced is not held up by who waits for its servers.
        drop(setup);
        let readings = late
            .iter()
            .map(|source| async move { source.first_connection().await.then_some(source) });
        let mut readings: FuturesUnordered<_> = readings.collect();
        while let Some(source) = readings.next().await {
            if let Some(source) = source {
                ready(ServerReport::of(source));
            }
        }
    }

    /// How each server stands, in the order of configuration.
    #[must_use]
    pub fn servers(&self) -> Vec<ServerReport> {
        let setup = self.current();
        let sources = setup.pool.base().sources().iter();
        sources.map(|source| ServerReport::of(source)).collect()
    }

    /// Everything that some variant offers by whatever name, and which server it belongs to.
    #[must_use]
    pub fn served(&self) -> Vec<ServedItem> {
        let setup = self.current();
        let catalog = setup.pool.base().catalog.current();
        let mut served = Vec::new();
        for lists in catalog.lists() {
            let list = lists.merged.kind.method();
            let mut known = BTreeSet::new();
            let items = lists.merged.items().iter();
            let items = items.map(|item| (&item.id, &item.item_ref));
            let views = lists.views.iter().flat_map(|view| view.item_refs());
            for (id, place) in items.chain(views) {
                if known.insert((id, place.server, &place.upstream_name)) {
                    served.push(ServedItem {
                        list,
                        id: id.to_string(),
                        server: lists.merged.server_name(place).to_string(),
                        upstream_name: place.upstream_name.to_string(),
                    });
                }
            }
        }
        served
    }

    /// How many declarations of clients had a part that was ignored, such as a feature tag that is none. A
    /// declaration that a client repeats, word for word, is read again now and then only.
    #[must_use]
    pub fn ignored_declarations(&self) -> u64 {
        self.services.ignored_declarations.count()
    }

    /// How many results were not told as configured, since a projection or template failed; clients got them
    /// as the server gave them. A new configuration begins at 0.
    #[must_use]
    pub fn failed_results(&self) -> u64 {
        let setup = self.current();
        let config = &setup.config;
        let results = config.results.0.iter().map(|rule| &rule.transform.failures);
        let resources = config.resource_results.0.iter().map(|rule| &rule.failures);
        let prompts = config.prompt_results.0.iter().map(|rule| &rule.failures);
        let all = results.chain(resources).chain(prompts);
        all.map(RuleFailures::count).sum()
    }

    /// Every variant, advertised or not, in the order of configuration; none where variants are off.
    #[must_use]
    pub fn variants(&self) -> Vec<ServerVariant> {
        let setup = self.current();
        let variants = setup
            .variant_set
            .variants
            .iter()
            .filter(|_| setup.config.variants);
        variants.cloned().collect()
    }

    /// The definitions of the tools that each variant lists, JSON text.
    #[must_use]
    pub fn tools(&self) -> Vec<(VariantId, Vec<String>)> {
        let setup = self.current();
        let catalog = setup.pool.base().catalog.current();
        let variants = VariantIndex::enumerate(setup.variant_set.variants.as_slice());
        let variants = variants.filter(|_| setup.config.variants);
        let tools = variants.map(|(at, variant)| {
            let view = catalog.view(ListKind::Tools, at.declared_view());
            let texts = view.into_iter().flat_map(|view| view.tool_texts());
            (variant.id.clone(), texts.map(str::to_owned).collect())
        });
        tools.collect()
    }

    /// How the variants rank for clients of these hints, and why (SV-5).
    ///
    /// What address, header and rules decide is not in it: that puts another variant first.
    #[must_use]
    pub fn explain(&self, hints: &VariantHints) -> Explanation {
        self.current().selector.rankings.explain(hints)
    }

    /// What several servers offer by the same name or URI, so that only the first one is reached.
    #[must_use]
    pub fn collisions(&self) -> Vec<Collision> {
        let setup = self.current();
        let catalog = setup.pool.base().catalog.current();
        let collisions = catalog
            .lists()
            .flat_map(|lists| lists.merged.collisions.clone());
        collisions.collect()
    }

    /// What is wrong with the variants' configuration, as far as the servers' lists show: the id of the
    /// variant, and the mistake.
    #[must_use]
    pub fn unmatched_overrides(&self) -> Vec<(VariantId, mcp_vary_view::ViewDiagnostic)> {
        let setup = self.current();
        let catalog = setup.pool.base().catalog.current();
        let slips = catalog.unmatched_overrides(&setup.variant_set).into_iter();
        let slips = slips.map(|(at, mistake)| (setup.variant_id(at).clone(), mistake));
        slips.collect()
    }
}
