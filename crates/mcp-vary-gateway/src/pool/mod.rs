//! The connections to servers, pooled by class: clients with the same capabilities share connections and a catalog.
//!
//! Servers may list other tools to clients with other capabilities. So a connection declares exactly the capabilities
//! of its clients, as far as the operator allows, in canonical form.

pub(crate) mod access;
mod beyond_limit;
mod capabilities;
mod claims;
mod class;
pub(crate) mod client_declarations;
pub(crate) mod client_lists;
pub(crate) mod connection_id;
mod connections;
pub(crate) mod dedicated;
mod eviction;
mod last_use;
pub(crate) mod list_reading;
pub(crate) mod live_catalog;
pub(crate) mod observer;
mod opening;
mod server;
pub(crate) mod source;
mod table;
mod task_events;
pub(crate) mod upstream_variants;
mod usage;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

pub(crate) use self::class::CapabilityClass;
pub(crate) use self::connections::{ConnectionUse, ListFollower, PoolContext};
pub use self::eviction::ConnectionStatus;
use self::server::PooledServer;
use self::table::ClassMap;
use self::usage::ClassUsage;
use crate::pool::access::AccessControl;
use crate::pool::capabilities::{capabilities_for_server, forwardable_capabilities};
use crate::pool::client_declarations::ClientDeclarations;
use crate::pool::dedicated::{ConnectSpec, DedicatedLease, DedicatedPool};
use crate::session::client::Client;
use crate::session::{AccessKey, BASE_CLASS, PoolKey};
use futures_util::future::join_all;
use mcp_vary_access::Principal;
use mcp_vary_base::lock::Lock;
use mcp_vary_base::memo::Memo;
use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_catalog::layout::Layout;
use mcp_vary_upstream::{ConcurrencyLimit, Isolation, SupervisedConnection, UpstreamConfig};
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::counters::Counters;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use serde_json::Value;

/// The parts that a pool shares with the previous and the next one at a reload.
#[derive(Clone, Debug)]
pub(crate) struct PoolServices {
    pub(crate) context: PoolContext,
    pub(crate) dedicated: Arc<DedicatedPool>,
    pub(crate) counters: Arc<Counters>,
}

/// The pool: all classes, and the connections to all servers.
#[derive(Debug)]
pub(crate) struct UpstreamPool {
    servers: Vec<Arc<PooledServer>>,
    layout: Layout,
    base: Arc<CapabilityClass>,
    classes: ClassMap,
    /// The limit of shared classes.
    limit: usize,
    /// The classes in use beyond the limit, by capabilities and era.
    beyond_limit: Lock<BTreeMap<PoolKey, Weak<CapabilityClass>>>,
    /// The extensions that the gateway may declare to some server.
    forwarded_extensions: BTreeSet<String>,
    is_isolated: bool,
    /// The access rules, if there are any.
    access: Option<Arc<AccessControl>>,
    /// The longest wait for servers in a new class.
    start_wait: Duration,
    /// The capabilities that each server receives, by the forwardable capabilities.
    capabilities: Memo<Vec<Arc<str>>>,
    base_era: Arc<BaseEra>,
    services: PoolServices,
}

/// The era of clients without special capabilities, fixed by the first of them. Until then, each server chooses the era
/// of its connection.
#[derive(Debug, Default)]
struct BaseEra {
    era: OnceLock<Era>,
    /// Whether the connections are of that era.
    is_settled: AtomicBool,
}

impl UpstreamPool {
    /// Starts to connect to the servers. Servers whose configuration is the same as `before` keep their connections and
    /// lists.
    pub(crate) async fn new(
        configs: Vec<UpstreamConfig>,
        (layout, access, most): (Layout, Option<Arc<AccessControl>>, usize),
        start_wait: Duration,
        before: Option<&Self>,
        services: &PoolServices,
    ) -> Self {
        let extensions = configs
            .iter()
            .flat_map(|config| config.forwarded_extensions.iter());
        let forwarded_extensions = extensions.cloned().collect();
        let is_isolated = configs
            .iter()
            .any(|config| config.isolation == Isolation::Session);
        let servers = pooled_servers(configs, before, services);
        let base_era = before.map(|before| Arc::clone(&before.base_era));
        let base_era = base_era.unwrap_or_default();
        let era = base_era.era.get().copied();
        let connections = servers.iter().map(|server| server.first_connection(era));
        let connections = connections.collect();
        let known = before.map(|before| before.base.connections.followers.as_slice());
        let base = CapabilityClass::open(
            BASE_CLASS.into(),
            connections,
            known.unwrap_or_default(),
            Arc::new(ClassUsage::now()),
            (layout.clone(), &services.context),
        );
        Self {
            base: base.await,
            servers,
            layout,
            classes: ClassMap::default(),
            limit: most.max(1),
            beyond_limit: Lock::default(),
            forwarded_extensions,
            is_isolated,
            access,
            start_wait,
            capabilities: Memo::new(CAPABILITIES_MEMORY),
            base_era,
            services: services.clone(),
        }
    }

    /// The class of clients without special capabilities.
    pub(crate) fn base(&self) -> &Arc<CapabilityClass> {
        &self.base
    }

    /// Shows clients the lists that are known by now. Names of removed servers become free for others.
    pub(crate) async fn publish(&self) {
        let names = self.base.sources().iter();
        let names = names.map(|it| Arc::clone(&it.server_name));
        self.services.context.shared_lists.registry.retain(names);
        self.base.catalog.publish().await;
    }

    /// The number of servers.
    pub(crate) fn servers(&self) -> usize {
        self.servers.len()
    }

    /// The server with this configuration.
    fn server(&self, config: &UpstreamConfig) -> Option<&Arc<PooledServer>> {
        let mut servers = self.servers.iter();
        servers.find(|server| server.config.is_same_connection(config))
    }

    fn has(&self, server: &Arc<PooledServer>) -> bool {
        self.servers.iter().any(|known| Arc::ptr_eq(known, server))
    }

    /// Whether `others` has the same server under this name.
    pub(crate) fn keeps_server(&self, name: &str, others: &Self) -> bool {
        let mut named = self.servers.iter().filter(|it| it.config.name == name);
        named.any(|server| others.has(server))
    }

    /// Takes over the classes of `before`, as far as their servers are unchanged, for clients that return.
    pub(crate) fn inherit(&self, before: &Self) {
        let connections: Vec<_> = self
            .servers
            .iter()
            .flat_map(|it| it.open_connections())
            .collect();
        let connections: BTreeSet<_> = connections.iter().map(Arc::as_ptr).collect();
        let is_ours = |it: &ListFollower| connections.contains(&Arc::as_ptr(&it.source.connection));
        self.classes.inherit(&before.classes, is_ours);
    }

    /// The connections to servers that `others` does not have.
    pub(crate) fn removed_connections(&self, others: &Self) -> Vec<Arc<SupervisedConnection>> {
        let servers = self.servers.iter().filter(|server| !others.has(server));
        let connections = servers.flat_map(|server| {
            let dedicated = self.services.dedicated.close_server(server.index);
            server.open_connections().into_iter().chain(dedicated)
        });
        connections.collect()
    }

    /// The capabilities of a client that may be forwarded to servers.
    pub(crate) fn forwardable_capabilities(
        &self,
        capabilities: &Value,
        declared: &ClientDeclarations<'_>,
    ) -> Arc<str> {
        forwardable_capabilities(capabilities, declared, &self.forwarded_extensions)
    }

    /// The capabilities to declare to a server for a client of `class` with the `forwardable` capabilities.
    pub(crate) fn capabilities_for(
        &self,
        class: &CapabilityClass,
        server: ServerIndex,
        forwardable: &str,
    ) -> Arc<str> {
        if *class.capabilities == *forwardable && !class.is_beyond_limit {
            let stored = class
                .sent_capabilities
                .get_or_init(|| self.capabilities_per_server(forwardable));
            return Arc::clone(server.entry(stored));
        }
        // A class beyond the limit does not store its own.
        let read = |text: &str| self.capabilities_per_server(text);
        Arc::clone(server.entry(&self.capabilities.get_or_read(forwardable, read)))
    }

    /// The capabilities to declare to each server for the `forwardable` capabilities.
    fn capabilities_per_server(&self, forwardable: &str) -> Vec<Arc<str>> {
        let servers = self.servers.iter().map(|server| &server.config);
        let per_server = servers.map(|config| {
            capabilities_for_server(
                &config.capabilities,
                forwardable,
                &config.forwarded_extensions,
            )
            .into()
        });
        per_server.collect()
    }

    /// The key of the class of a client of `era`; `None` for [`base`](Self::base).
    pub(crate) fn key(
        &self,
        capabilities: &Arc<str>,
        (session, principal): (Option<ClientId>, Option<&Arc<Principal>>),
        era: Era,
    ) -> Option<PoolKey> {
        let capabilities = self.connection_capabilities(capabilities, era);
        let access = self.access.as_ref();
        let access = access.map(|access| AccessKey(access.class_of(principal)));
        let claims = self.claim_headers(principal);
        let session = session.filter(|_| self.is_isolated);
        let principal = principal
            .map(|principal| principal.id())
            .filter(|_| self.isolates_principals(era));
        let particular = session.is_some()
            || principal.is_some()
            || *capabilities != *BASE_CLASS
            || self.era_of_base(era) != era
            || access.is_some();
        particular.then(|| PoolKey {
            capabilities,
            session,
            principal,
            access,
            claims,
            era,
        })
    }

    /// The key under this configuration of a client whose key was `key` under another one.
    pub(crate) fn renewed_key(
        &self,
        key: Option<&PoolKey>,
        principal: Option<&Arc<Principal>>,
    ) -> Option<PoolKey> {
        let era = key.map(|key| key.era);
        let era = era.or(self.base_era.era.get().copied());
        let (capabilities, session) = match key {
            Some(key) => (Arc::clone(&key.capabilities), key.session),
            None => (BASE_CLASS.into(), None),
        };
        self.key(
            &capabilities,
            (session, principal),
            era.unwrap_or(Era::Modern),
        )
    }

    /// The access rules, if there are any.
    pub(crate) const fn access(&self) -> Option<&Arc<AccessControl>> {
        self.access.as_ref()
    }

    /// Whether principals do not share the connections to some server.
    fn isolates_principals(&self, era: Era) -> bool {
        self.servers
            .iter()
            .any(|server| server.isolates_principals(era))
    }

    /// The era of the clients of [`base`](Self::base). The first call fixes it.
    pub(crate) fn era_of_base(&self, era: Era) -> Era {
        *self.base_era.era.get_or_init(|| {
            for server in &self.servers {
                server.prefer_era(era);
            }
            era
        })
    }

    /// The longest time that a request waits for one of these servers.
    pub(crate) fn ready_timeout(&self) -> Duration {
        let patience = self
            .servers
            .iter()
            .map(|server| server.config.limits.ready_timeout);
        patience.max().unwrap_or_default()
    }

    /// A dedicated connection of `client` to a server, for one call.
    ///
    /// # Errors
    ///
    /// When all are in use.
    pub(crate) fn dedicated(
        &self,
        class: &CapabilityClass,
        server: ServerIndex,
        client: &Client,
    ) -> Result<DedicatedLease, RpcError> {
        let capabilities = self.capabilities_for(class, server, &class.capabilities);
        let server = server.entry(&self.servers);
        let claims = client.class.as_ref().and_then(|key| key.claims.as_ref());
        let config = server.config_for(claims);
        let door = ConnectSpec {
            server: server.index,
            config: &config,
            capabilities: &capabilities,
            concurrency: &server.concurrency,
            learned: &server.learned,
            principal: client.principal_id(),
            legacy_first: client.session.is_some(),
        };
        match &client.session {
            Some(session) => self.services.dedicated.lease_for_session(&door, session),
            None => self
                .services
                .dedicated
                .lease_for_request(&door, client.list_owner()),
        }
    }

    /// Closes the class of a session that has ended.
    pub(crate) fn close_session(&self, session: ClientId) {
        self.services.dedicated.close_session(session);
        self.classes.close_session(session);
    }

    /// Closes unused classes. Returns the time until the next sweep.
    pub(crate) fn sweep(&self) -> Duration {
        self.services.dedicated.sweep();
        let unused = self.idle_timeout();
        self.classes.sweep(unused);
        let pause = unused / 4;
        pause.clamp(Duration::from_millis(50), Duration::from_secs(60))
    }

    fn idle_timeout(&self) -> Duration {
        let unused = self
            .servers
            .iter()
            .map(|server| server.config.limits.idle_timeout);
        unused.max().unwrap_or(Duration::MAX)
    }

    /// Closes all connections and waits until they are closed.
    pub(crate) async fn close(&self) {
        let connections = self.servers.iter().flat_map(|it| it.open_connections());
        let connections: Vec<_> = connections
            .chain(self.services.dedicated.close_all())
            .collect();
        join_all(connections.iter().map(|it| it.close())).await;
    }
}

/// The servers of `configs`, those of `before` if they are unchanged. The variants that a server offers itself follow it,
/// and share its limit of concurrent calls.
fn pooled_servers(
    configs: Vec<UpstreamConfig>,
    before: Option<&UpstreamPool>,
    services: &PoolServices,
) -> Vec<Arc<PooledServer>> {
    let mut servers: Vec<Arc<PooledServer>> = Vec::with_capacity(configs.len());
    for mut config in configs {
        config.counters = Arc::clone(&services.counters);
        if let Some(unchanged) = before.and_then(|before| before.server(&config)) {
            servers.push(Arc::clone(unchanged));
            continue;
        }
        let of = config.variant_of.as_ref();
        let server = of.and_then(|of| servers.iter().find(|it| it.config.name == *of));
        let concurrency = server.map_or_else(
            || Arc::new(ConcurrencyLimit::new(&config.limits)),
            |server| Arc::clone(&server.concurrency),
        );
        let number = services.dedicated.next_number();
        servers.push(Arc::new(PooledServer::new(config, number, concurrency)));
    }
    servers
}

/// Bytes for the capabilities that servers receive, in each of two generations.
const CAPABILITIES_MEMORY: usize = 1 << 20;
