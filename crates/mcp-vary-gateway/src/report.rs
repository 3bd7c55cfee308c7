//! The report of a gateway: its servers, what they offer together, and problems with that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use mcp_vary::hints::VariantHints;
use mcp_vary::variant::{ServerVariant, VariantId};
use mcp_vary_access::{AccessClass, AccessReport, Item as AccessItem};
use mcp_vary_catalog::access::access_item;
use mcp_vary_catalog::catalog::Catalog;
use mcp_vary_catalog::gateway_tool::GatewayTool;
use mcp_vary_catalog::index::VariantIndex;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::merge::Collision;
use mcp_vary_catalog::selection::rankings::Explanation;
use mcp_vary_catalog::server_changes::SeenChange;
use mcp_vary_http_client::credential_source::{self, CredentialStatus};
use mcp_vary_results::RuleFailures;
use mcp_vary_upstream::ConnectionState;
use mcp_vary_wire::handshake::Handshake;

use crate::gateway::Gateway;
use crate::pipeline::extension_owners::ExtensionOwners;
use crate::pipeline::gateway_tools::gateway_tools;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::pool::source::ServerSource;
use mcp_vary_settings::access::AccessSettings;

/// The state of one server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerReport {
    /// The name that the operator gave it.
    pub name: String,
    /// The state of its connection.
    pub state: ConnectionState,
    /// The last line that its process wrote besides messages, if it is starting.
    pub last_line: Option<String>,
    /// Whether it is reached by a URL.
    pub is_remote: bool,
    /// The program that downloads it before it starts it.
    pub runner: Option<String>,
    /// How a process of it last ended by itself, with its last output.
    pub last_end: Option<String>,
    /// Its last handshake.
    pub handshake: Option<Arc<Handshake>>,
    /// The variants that it offers itself, best first; empty if the configuration selects one of them.
    pub upstream_variants: Vec<VariantId>,
    /// The login or the credentials of a service that Vary uses there, if there are any.
    pub login: Option<CredentialStatus>,
    /// Whether it negotiates content itself and offers no variants, and gets no feature tags of clients.
    pub lacks_feature_tags: bool,
    /// How many items each list has, by the list's method. Missing and unreadable lists are omitted.
    pub counts: Vec<(&'static str, usize)>,
    /// Why lists could not be read at the last attempt, by the list's method, without secrets.
    pub failed_lists: BTreeMap<&'static str, String>,
    /// What was wrong with items of its lists, which Vary repaired or left out.
    pub list_faults: Vec<String>,
}

impl ServerReport {
    fn of(source: &ServerSource) -> Self {
        let snapshot = source.snapshot();
        let lists = snapshot.listings.iter();
        let counts =
            lists.filter_map(|(kind, list)| Some((kind.method(), list.as_ref().ok()?.items.len())));
        let (last_line, last_end) = {
            let output = source.connection.config().last_output.lock();
            (output.line.clone(), output.end.clone())
        };
        Self {
            last_end,
            failed_lists: source.failed_lists(),
            list_faults: source.list_faults(),
            name: source.name().to_owned(),
            last_line: source.is_starting().then_some(last_line).flatten(),
            is_remote: !source.connection.config().target.is_local(),
            runner: source
                .connection
                .config()
                .target
                .package_runner()
                .map(str::to_owned),
            state: source.connection.state().borrow().clone(),
            upstream_variants: source.offered_variants(),
            login: credential_source::status(&source.connection.config().credentials),
            lacks_feature_tags: source.lacks_feature_tags(),
            handshake: snapshot.handshake.clone(),
            counts: counts.collect(),
        }
    }
}

/// An extension that nobody answers, since several servers declare it and the configuration names none of them.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct UndecidedExtension {
    /// Its identifier.
    pub id: String,
    /// The names of the servers.
    pub servers: Vec<String>,
}

/// One item that the gateway offers, and its server.
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
    /// Waits for each server that was never connected, and calls `ready` with each after its lists were read.
    pub async fn late_servers(&self, mut ready: impl FnMut(ServerReport)) {
        let late = |source: &&Arc<ServerSource>| source.snapshot().handshake.is_none();
        let snapshot = self.current();
        let late: Vec<_> = snapshot
            .pool
            .base()
            .sources()
            .iter()
            .filter(late)
            .cloned()
            .collect();
        // Waiting for servers does not delay the end of a configuration that was replaced.
        drop(snapshot);
        let connecting = late
            .iter()
            .map(|source| async move { source.first_connection().await.then_some(source) });
        let mut readings: FuturesUnordered<_> = connecting.collect();
        while let Some(source) = readings.next().await {
            if let Some(source) = source {
                ready(ServerReport::of(source));
            }
        }
    }

    /// The state of each server, in the order of configuration.
    pub fn servers(&self) -> Vec<ServerReport> {
        let snapshot = self.current();
        let sources = snapshot.pool.base().sources().iter();
        sources.map(|source| ServerReport::of(source)).collect()
    }

    /// The extensions that nobody answers, since several servers declare them.
    pub fn undecided_extensions(&self) -> Vec<UndecidedExtension> {
        let snapshot = self.current();
        let config = &snapshot.config;
        let catalog = snapshot.pool.base().catalog.current();
        let owners = ExtensionOwners::new(&catalog, config);
        let undecided = owners.undecided().map(|(id, servers)| {
            let servers = servers
                .iter()
                .filter_map(|server| server.get(&config.servers));
            UndecidedExtension {
                id: id.to_owned(),
                servers: servers.map(|server| server.name.clone()).collect(),
            }
        });
        undecided.collect()
    }

    /// Every item that some variant offers, under any name, and its server.
    pub fn served(&self) -> Vec<ServedItem> {
        let snapshot = self.current();
        let catalog = snapshot.pool.base().catalog.current();
        let mut served = Vec::new();
        for lists in catalog.lists() {
            let list = lists.merged.kind.method();
            let mut known = BTreeSet::new();
            let all = lists.merged.items().iter();
            let shown = all.filter(|item| !lists.merged.is_shadowed(item));
            let items = shown.map(|item| (&item.id, &item.item_ref));
            let views = lists.views.iter().flat_map(|view| view.item_refs());
            for (id, item_ref) in items.chain(views) {
                if known.insert((id, item_ref.server, &item_ref.upstream_name)) {
                    served.push(ServedItem {
                        list,
                        id: id.to_string(),
                        server: lists.merged.server_name(item_ref).to_string(),
                        upstream_name: item_ref.upstream_name.to_string(),
                    });
                }
            }
        }
        served
    }

    /// The tools of the server `name` as it lists them: names and definitions, JSON text. None if they were not read.
    pub fn server_tools(&self, name: &str) -> Vec<(String, String)> {
        let snapshot = self.current();
        let mut sources = snapshot.pool.base().sources().iter();
        let source = sources.find(|source| source.name() == name);
        let lists = source.map(|source| source.snapshot());
        let listing = lists.as_ref().and_then(|lists| {
            let listing = lists.listings.get(&ListKind::Tools)?;
            listing.as_ref().ok()
        });
        let items = listing.into_iter().flat_map(|listing| &listing.items);
        items
            .map(|item| (item.id.to_string(), item.json.to_string()))
            .collect()
    }

    /// How many requests each access rule has refused, or hidden their targets, by its name. Only metrics count them: `None`
    /// without.
    pub fn denials(&self) -> Option<Vec<(String, u64)>> {
        Some(self.services.observers.metrics.as_ref()?.denials())
    }

    /// How many credentials were refused, by why. Only metrics count them: `None` without.
    pub fn refused_credentials(&self) -> Option<BTreeMap<&'static str, u64>> {
        let metrics = self.services.observers.metrics.as_ref()?;
        Some(metrics.refused_credentials())
    }

    /// How many results were sent as the server wrote them because a projection or template failed. A new configuration
    /// starts at 0.
    pub fn failed_results(&self) -> u64 {
        let snapshot = self.current();
        let config = &snapshot.config;
        let rules = config.results.0.iter();
        let outputs = rules.clone().filter_map(|rule| rule.output.as_deref());
        let transforms = rules.map(|rule| &rule.transform.failures);
        let results = transforms.chain(outputs.map(|output| output.failures()));
        let resources = config.resource_results.0.iter().map(|rule| &rule.failures);
        let prompts = config.prompt_results.0.iter().map(|rule| &rule.failures);
        let all = results.chain(resources).chain(prompts);
        all.map(RuleFailures::count).sum()
    }

    /// Every variant, advertised or not, in the order of configuration; none if variants are off.
    pub fn variants(&self) -> Vec<ServerVariant> {
        self.current().enabled_variants().to_vec()
    }

    /// The definitions of the tools that each variant lists, with those of the gateway, JSON text.
    pub fn tools(&self) -> Vec<(VariantId, Vec<String>)> {
        let snapshot = self.current();
        let catalog = snapshot.pool.base().catalog.current();
        let variants = VariantIndex::enumerate(snapshot.enabled_variants());
        let tools = variants.map(|(at, variant)| {
            let view = catalog.view(ListKind::Tools, at.declared_view());
            let listed = view.into_iter().flat_map(|view| view.tool_texts());
            let added = view.map(gateway_tools);
            let texts = listed.map(str::to_owned).chain(added.into_iter().flatten());
            (variant.id.clone(), texts.collect())
        });
        tools.collect()
    }

    /// How the variants rank for clients of these hints, and why (SV-5).
    ///
    /// The address, the header and rules are not considered; they can put another variant first.
    pub fn explain(&self, hints: &VariantHints) -> Explanation {
        self.current().selector.rankings.explain(hints)
    }

    /// What `class` may use of what the servers list, by the rules of `access`, and which of them decide.
    ///
    /// The gateway itself may have been started with other rules or with none.
    pub fn explain_access(&self, access: &AccessSettings, class: &AccessClass) -> AccessReport {
        let snapshot = self.current();
        let catalog = snapshot.pool.base().catalog.current();
        let described = catalog.lists().flat_map(|lists| {
            let merged = &lists.merged;
            merged.items_with_server().map(|(item, server)| {
                let is_trusted = access.trusted_annotations.contains(server);
                access_item(merged.kind, item, server, is_trusted)
            })
        });
        let items: Vec<AccessItem<'_>> = described.collect();
        access.policy.explain(class, &items)
    }

    /// The names and URIs that several servers offer, of which only the first is reachable; then the names of the
    /// gateway's own tools that a server has, for each variant.
    pub fn collisions(&self) -> Vec<Collision> {
        let snapshot = self.current();
        let catalog = snapshot.pool.base().catalog.current();
        let collisions = catalog
            .lists()
            .flat_map(|lists| lists.merged.collisions.clone());
        collisions
            .chain(replaced_names(&snapshot, &catalog))
            .collect()
    }

    /// What servers changed since the start, the latest first.
    pub fn server_changes(&self) -> Vec<SeenChange> {
        self.services.pool.context.shared_lists.changes.latest()
    }

    /// Mistakes in the variants' configuration that the servers' lists show: the id of the variant, and the mistake.
    pub fn unmatched_overrides(&self) -> Vec<(VariantId, mcp_vary_view::ViewDiagnostic)> {
        let snapshot = self.current();
        let catalog = snapshot.pool.base().catalog.current();
        let overrides = catalog
            .unmatched_overrides(&snapshot.variant_set)
            .into_iter();
        let overrides =
            overrides.map(|(at, diagnostic)| (snapshot.variant_id(at).clone(), diagnostic));
        overrides.collect()
    }
}

/// The names of the gateway's tools for schemas on demand that a listed tool of a server has.
fn replaced_names(snapshot: &ConfigSnapshot, catalog: &Catalog) -> Vec<Collision> {
    let mut collisions = Vec::new();
    for variant in snapshot.variant_set.indices() {
        let index = variant.declared_view();
        let config = snapshot.variant_set.config(index);
        let Some(view) = catalog.view(ListKind::Tools, index) else {
            continue;
        };
        let all = view.gateway_tools.iter();
        for (other, tool) in all.filter(|(_, it)| *it != GatewayTool::ReadResult) {
            let name = tool.usual_name();
            let Some((server, ..)) = view.tool_names().find(|(.., shown)| *shown == name) else {
                continue;
            };
            collisions.push(Collision {
                list: ListKind::Tools.method(),
                id: name.to_owned(),
                reachable: server.to_owned(),
                hidden: format!("Vary, as `{other}` in `{}`", config.variant.id),
            });
        }
    }
    collisions
}
