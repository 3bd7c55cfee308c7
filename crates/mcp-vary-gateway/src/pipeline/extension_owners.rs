//! Which servers answer the methods of an extension that the gateway does not know.
//!
//! What is advertised is answered: an extension whose methods could go to several servers is advertised only once the
//! configuration names one of them (`extensions`).

use std::collections::{BTreeMap, BTreeSet};

use mcp_vary::json::{Members, edit};
use mcp_vary_catalog::catalog::Catalog;
use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_catalog::variant_config::VariantConfig;
use mcp_vary_settings::config::Config;
use mcp_vary_wire::extension_methods::{belongs_to, known_extension, shared_start};

use crate::pipeline::forwarded_extensions::{CARRIERS, is_unknown};

/// The extensions that servers declare and the gateway does not know, by identifier, each with its servers.
#[derive(Debug)]
pub(crate) struct ExtensionOwners(BTreeMap<String, BTreeSet<ServerIndex>>);

impl ExtensionOwners {
    /// What the servers of `catalog` declare. Of an extension for which `config` names a server, only that one counts.
    pub(crate) fn new(catalog: &Catalog, config: &Config) -> Self {
        let mut owners: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (server, snapshot) in catalog.servers() {
            let handshake = snapshot.handshake.as_deref();
            let capabilities = handshake.map_or("{}", |handshake| handshake.capabilities.as_str());
            let name = server.get(&config.servers).map(|server| &server.name);
            for id in unknown_extensions(capabilities) {
                let chosen = config.extension_servers.get(&id);
                let is_owner = chosen.is_none_or(|chosen| Some(chosen) == name);
                let servers = owners.entry(id).or_default();
                servers.extend(is_owner.then_some(server));
            }
        }
        Self(owners)
    }

    /// The servers that `method` can go to, of those whose extension `is_wanted`: those of its extension. A method that
    /// names none can be of any but those whose methods are known.
    pub(crate) fn servers_of(
        &self,
        method: &str,
        is_wanted: impl Fn(&str) -> bool,
    ) -> BTreeSet<ServerIndex> {
        let is_named =
            known_extension(method).is_some() || self.0.keys().any(|id| belongs_to(method, id));
        let may_have = |id: &str| {
            if is_named {
                belongs_to(method, id)
            } else {
                known_extension(shared_start(id)).is_none()
            }
        };
        let found = self
            .0
            .iter()
            .filter(|(id, _)| may_have(id) && is_wanted(id));
        found.flat_map(|(_, servers)| servers).copied().collect()
    }

    /// Whether `server` answers the methods of the extension `id`: those of a known one are merged, others have one server.
    pub(crate) fn is_answered_by(&self, server: ServerIndex, id: &str) -> bool {
        let start = shared_start(id);
        let servers = self.servers_of(start, |_| true);
        let is_merged = known_extension(start).is_some();
        servers.contains(&server) && (is_merged || servers.len() == 1)
    }

    /// The extensions that nobody answers since several servers could, with these servers.
    pub(crate) fn undecided(&self) -> impl Iterator<Item = (&str, BTreeSet<ServerIndex>)> {
        let ids = self.0.iter().filter(|(id, servers)| {
            let is_merged = known_extension(shared_start(id)).is_some();
            !servers.is_empty() && !is_merged
        });
        let undecided = ids.map(|(id, _)| {
            let servers = self.servers_of(shared_start(id), |_| true);
            (id.as_str(), servers)
        });
        undecided.filter(|(_, servers)| servers.len() > 1)
    }
}

/// Whether a method of an extension could reach what a variant hides of `server`. Each skill is hidden by itself.
pub(crate) fn is_hidden(variant: &VariantConfig, server: &str, method: &str) -> bool {
    match known_extension(method) {
        Some(_) => !variant.may_show_skills_of(server),
        None => variant.hides_something_of(server),
    }
}

/// The identifiers of the unknown extensions in the capabilities of a server, JSON text.
fn unknown_extensions(capabilities: &str) -> BTreeSet<String> {
    let declared = CARRIERS.into_iter().filter_map(|member| {
        let declared = edit::get(capabilities, member)?;
        Members::parse(declared).ok()
    });
    let ids = declared.flat_map(|declared| {
        let ids = declared.iter().map(|(id, _)| id.to_owned());
        ids.collect::<Vec<_>>()
    });
    ids.filter(|id| is_unknown(id)).collect()
}
