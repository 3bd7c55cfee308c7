//! All servers of one configuration.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::extension::CONTENT_NEGOTIATION;
use mcp_vary::feature::Features;
use mcp_vary_access::Principal;
use mcp_vary_base::memo::Memo;
use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_upstream::{Isolation, SupervisedConnection, UpstreamConfig};
use mcp_vary_wire::revision::Era;
use serde_json::Value;

use super::capabilities::{capabilities_for_server, forwardable_capabilities};
use super::claims::header_values;
use super::client_declarations::without_features;
use super::eviction::ConnectionStatus;
use super::server::PooledServer;
use crate::pool::lists::follower::ListFollower;
use crate::pool::lists::observer::PoolContext;
use mcp_vary_session::ClaimHeaders;

/// The servers of one configuration, in its order.
#[derive(Debug)]
pub(crate) struct Servers {
    all: Vec<Arc<PooledServer>>,
    /// Whether sessions do not share the connections to some server.
    pub(crate) isolates_sessions: bool,
    /// The capabilities that each server receives, by the forwardable capabilities.
    capabilities: Memo<PerServer>,
}

/// The capabilities that each server receives, when servers were known to declare so many extensions.
#[derive(Debug)]
pub(crate) struct PerServer {
    known_extensions: usize,
    capabilities: Vec<Arc<str>>,
}

impl Servers {
    /// The servers of `configs`, those of `before` if they are unchanged. New ones get a number from `next_number`.
    pub(crate) fn new(
        configs: Vec<UpstreamConfig>,
        before: Option<&Self>,
        next_number: impl Fn() -> usize,
    ) -> Self {
        let mut all: Vec<Arc<PooledServer>> = Vec::with_capacity(configs.len());
        for config in configs {
            if let Some(unchanged) = before.and_then(|before| before.unchanged(&config)) {
                all.push(Arc::clone(unchanged));
                continue;
            }
            all.push(Arc::new(PooledServer::new(config, next_number())));
        }
        let configs = || all.iter().map(|server| &server.config);
        Self {
            isolates_sessions: configs().any(|config| config.isolation == Isolation::Session),
            capabilities: Memo::new(CAPABILITIES_MEMORY),
            all,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<PooledServer>> {
        self.all.iter()
    }

    pub(crate) fn get(&self, server: ServerIndex) -> &Arc<PooledServer> {
        server.entry(&self.all)
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The server with this configuration.
    fn unchanged(&self, config: &UpstreamConfig) -> Option<&Arc<PooledServer>> {
        let mut servers = self.all.iter();
        servers.find(|server| server.config.is_same_connection(config))
    }

    fn has(&self, server: &Arc<PooledServer>) -> bool {
        self.all.iter().any(|known| Arc::ptr_eq(known, server))
    }

    /// The servers that `others` does not have.
    pub(crate) fn without<'a>(
        &'a self,
        others: &'a Self,
    ) -> impl Iterator<Item = &'a Arc<PooledServer>> {
        self.all.iter().filter(|server| !others.has(server))
    }

    /// Whether `others` has the same server under this name.
    pub(crate) fn keeps(&self, name: &str, others: &Self) -> bool {
        let mut named = self.all.iter().filter(|server| server.config.name == name);
        named.any(|server| others.has(server))
    }

    /// Whether principals do not share the connections to some server.
    pub(crate) fn isolate_principals(&self, era: Era) -> bool {
        self.all
            .iter()
            .any(|server| server.isolates_principals(era))
    }

    /// Whether the headers of some server have claims of clients in them, or tokens in exchange for theirs.
    pub(crate) fn are_per_client(&self) -> bool {
        self.all.iter().any(|server| server.config.is_per_client())
    }

    /// The headers of servers from the claims of a client; `None` if no server has such headers, or without a client.
    pub(crate) fn claim_headers(&self, principal: Option<&Arc<Principal>>) -> Option<ClaimHeaders> {
        if !self.are_per_client() {
            return None;
        }
        let claims = principal?.claims();
        let all = self.all.iter();
        let servers = all.filter(|server| server.config.is_per_client());
        let values = servers.map(|server| (server.index, header_values(&server.config, claims)));
        let token = principal?.access_token().cloned();
        Some(ClaimHeaders::new(values.collect::<BTreeMap<_, _>>(), token))
    }

    /// The capabilities of a client that may be forwarded to servers.
    pub(crate) fn forwardable_capabilities(
        &self,
        capabilities: &Value,
        features: Option<&Features>,
    ) -> Arc<str> {
        let servers = self.all.iter();
        let allowed = servers.flat_map(|server| server.forwarded_extensions());
        forwardable_capabilities(capabilities, features, &allowed.collect())
    }

    /// How many extensions the servers are known to declare. What a client's capabilities become changes with it.
    pub(crate) fn known_extensions(&self) -> usize {
        let servers = self.all.iter();
        servers.map(|server| server.learned.extension_count()).sum()
    }

    /// The capabilities that the connections of a client of `era` declare. Without feature tags if no server needs them
    /// there.
    pub(crate) fn connection_capabilities(&self, capabilities: &Arc<str>, era: Era) -> Arc<str> {
        let mut servers = self.all.iter();
        let has_features = capabilities.contains(CONTENT_NEGOTIATION);
        if has_features && !servers.any(|server| server.declares_features(era)) {
            without_features(capabilities).into()
        } else {
            Arc::clone(capabilities)
        }
    }

    /// The capabilities to declare to each server for the `forwardable` capabilities.
    pub(crate) fn capabilities_per_server(&self, forwardable: &str) -> PerServer {
        let known_extensions = self.known_extensions();
        let per_server = self.all.iter().map(|server| {
            let forwarded = server.forwarded_extensions();
            capabilities_for_server(&server.config.capabilities, forwardable, &forwarded).into()
        });
        PerServer {
            known_extensions,
            capabilities: per_server.collect(),
        }
    }

    /// The same for one server, remembered; `stored` are those that a class stored.
    pub(crate) fn capabilities_for(
        &self,
        server: ServerIndex,
        forwardable: &str,
        stored: Option<&PerServer>,
    ) -> Arc<str> {
        let known_extensions = self.known_extensions();
        let is_current = |known: &PerServer| known.known_extensions == known_extensions;
        if let Some(stored) = stored.filter(|stored| is_current(stored)) {
            return Arc::clone(server.entry(&stored.capabilities));
        }
        let read = |text: &str| self.capabilities_per_server(text);
        let per_server = self.capabilities.get_if(forwardable, is_current, read);
        Arc::clone(server.entry(&per_server.capabilities))
    }

    /// The longest time that a request waits for one of these servers.
    pub(crate) fn ready_timeout(&self) -> Duration {
        let servers = self.all.iter();
        let timeouts = servers.map(|server| server.config.limits.ready_timeout);
        timeouts.max().unwrap_or_default()
    }

    /// How long a class is open without being used.
    pub(crate) fn idle_timeout(&self) -> Duration {
        let servers = self.all.iter();
        let timeouts = servers.map(|server| server.config.limits.idle_timeout);
        timeouts.max().unwrap_or(Duration::MAX)
    }

    /// For each server, what is read for all its clients, if they share its lists.
    pub(crate) fn shared_lists(&self, context: &PoolContext) -> Vec<Option<Arc<ListFollower>>> {
        let servers = self.all.iter();
        servers.map(|server| server.shared_lists(context)).collect()
    }

    /// The open connections that clients share.
    pub(crate) fn open_connections(&self) -> impl Iterator<Item = Arc<SupervisedConnection>> {
        self.all.iter().flat_map(|server| server.open_connections())
    }

    /// The connections to each server: those that clients share, and dedicated ones, whose number `dedicated` returns.
    pub(crate) fn connection_statuses(
        &self,
        dedicated: impl Fn(usize) -> usize,
    ) -> impl Iterator<Item = [ConnectionStatus; 2]> {
        self.all.iter().map(move |server| {
            let open = dedicated(server.index);
            [server.connection_counts(), server.dedicated_counts(open)]
        })
    }
}

/// Bytes for the capabilities that servers receive, in each of two generations.
const CAPABILITIES_MEMORY: usize = 1 << 20;
