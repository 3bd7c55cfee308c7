//! The pool of one configuration: finds or opens the class of each client.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use mcp_vary_base::lock::Lock;
use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_catalog::layout::Layout;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_upstream::{Processes, SupervisedConnection, UpstreamConfig};
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::counters::Counters;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use tokio::time::Instant;

use super::classes::access::AccessControl;
use super::classes::class::{CapabilityClass, ClassSpec};
use super::classes::keys::ClassKeys;
use super::classes::table::ClassMap;
use super::classes::usage::ClassUsage;
use super::connections::capabilities::{declare_to_all, is_part_of};
use super::connections::servers::Servers;
use super::dedicated::{ConnectSpec, DedicatedLease, DedicatedPool};
use super::lists::follower::ListFollower;
use super::lists::observer::PoolContext;
use super::opener::ClassOpener;
use mcp_vary_session::client::Client;
use mcp_vary_session::{BASE_CLASS, ClaimHeaders, PoolKey, Session};
use mcp_vary_settings::config::OnlyClient;

/// The parts that a pool shares with the previous and the next one at a reload.
#[derive(Clone, Debug)]
pub(crate) struct PoolServices {
    pub(crate) context: PoolContext,
    pub(crate) dedicated: Arc<DedicatedPool>,
    pub(crate) counters: Arc<Counters>,
}

/// The configuration of a pool.
#[derive(Debug)]
pub(crate) struct PoolConfig {
    pub(crate) servers: Vec<UpstreamConfig>,
    pub(crate) layout: Layout,
    /// The access rules, if there are any.
    pub(crate) access: Option<Arc<AccessControl>>,
    /// The only client there will be, if there is only one.
    pub(crate) only_client: Option<OnlyClient>,
    /// The limit of shared classes.
    pub(crate) class_limit: usize,
    /// The longest wait for servers in a new class.
    pub(crate) start_wait: Duration,
}

/// The pool: all classes, and the connections to all servers.
#[derive(Debug)]
pub(crate) struct UpstreamPool {
    pub(crate) servers: Arc<Servers>,
    pub(crate) keys: ClassKeys,
    opener: Arc<ClassOpener>,
    /// Whether there is only one client.
    has_only_client: bool,
    class_limit: usize,
    /// The classes in use beyond the limit, by capabilities and era.
    beyond_limit: Lock<BTreeMap<PoolKey, Weak<CapabilityClass>>>,
}

impl UpstreamPool {
    /// Starts to connect to the servers. Servers whose configuration is the same as `before` keep their connections and
    /// lists.
    pub(crate) async fn new(
        config: PoolConfig,
        before: Option<&Self>,
        services: &PoolServices,
    ) -> Self {
        let mut configs = config.servers;
        let base_capabilities = declare_to_all(&mut configs, config.only_client.as_ref());
        for server in &mut configs {
            server.counters = Arc::clone(&services.counters);
        }
        let context = &services.context;
        let dedicated = &services.dedicated;
        let known = before.map(|before| &*before.servers);
        let servers = Arc::new(Servers::new(configs, known, || dedicated.next_number()));
        let earlier_era = before.map(|before| Arc::clone(&before.keys.base_era));
        let base_era = earlier_era.unwrap_or_default();
        let known = before.map(|before| before.base().connections.followers.as_slice());
        let connections = servers.iter().map(|server| {
            let connection = server.first_connection(base_era.era.get().copied());
            // Before it connects: the server may ask at once.
            if config.only_client.is_some() && server.config.has_one_process() {
                dedicated.follow_only_process(server.index, &connection);
            }
            connection
        });
        let base = ClassSpec {
            capabilities: Arc::clone(&base_capabilities),
            connections: connections.collect(),
            shared_lists: servers.shared_lists(context),
            known: known.unwrap_or_default(),
            usage: Arc::new(ClassUsage::now()),
            layout: config.layout.clone(),
        };
        Self {
            opener: Arc::new(ClassOpener {
                base: CapabilityClass::open(base, context).await,
                servers: Arc::clone(&servers),
                classes: ClassMap::default(),
                layout: config.layout,
                access: config.access.clone(),
                start_wait: config.start_wait,
                started: before.is_none().then(Instant::now),
                context: context.clone(),
                dedicated: Arc::clone(dedicated),
            }),
            keys: ClassKeys {
                servers: Arc::clone(&servers),
                access: config.access,
                base_era,
                base_capabilities,
            },
            servers,
            has_only_client: config.only_client.is_some(),
            class_limit: config.class_limit.max(1),
            beyond_limit: Lock::default(),
        }
    }

    /// The class of clients without special capabilities.
    pub(crate) fn base(&self) -> &Arc<CapabilityClass> {
        &self.opener.base
    }

    /// The access rules, if there are any.
    pub(crate) const fn access(&self) -> Option<&Arc<AccessControl>> {
        self.keys.access.as_ref()
    }

    /// Shows clients the lists that are known by now. Names of removed servers become free for others.
    pub(crate) async fn publish(&self) {
        let sources = self.base().sources().iter();
        let names = sources.map(|source| Arc::clone(&source.name));
        self.opener.context.shared_lists.registry.retain(names);
        self.base().catalog.publish().await;
    }

    /// The class of `key`, opened on first use, and again if one of its connections was evicted.
    ///
    /// # Errors
    ///
    /// When there are too many classes that are not shared.
    pub(crate) async fn of(&self, key: Option<&PoolKey>) -> Result<Arc<CapabilityClass>, RpcError> {
        self.class_of(key, Some(self.opener.start_wait)).await
    }

    /// The class of `key`. A server without room is waited for; without `wait`, nothing is evicted for it either.
    async fn class_of(
        &self,
        key: Option<&PoolKey>,
        wait: Option<Duration>,
    ) -> Result<Arc<CapabilityClass>, RpcError> {
        let Some(key) = key else {
            self.settle_base().await;
            return Ok(Arc::clone(self.base()));
        };
        if self.opener.context.shutdown.is_cancelled() {
            return Err(RpcError::internal(STOPS));
        }
        let classes = &self.opener.classes;
        let mut room = Vec::new();
        if let Some(class) = classes.find(key) {
            // First, so that a connection is not evicted after the next line.
            class.connections.note_use();
            if wait.is_some() {
                room = self.opener.room_for(&class, key);
            }
            if room.is_empty() && !class.is_outdated() {
                return Ok(class);
            }
            class.set_outdated(true);
        }
        let Some(cell) = classes.entry(key, self.class_limit) else {
            if key.is_isolated() {
                return Err(RpcError::internal(TOO_MANY_ISOLATED));
            }
            return Ok(self.shared_beyond_limit(key).await);
        };
        let class = self.opener.open_in(key, cell, wait, room).await;
        class.ok_or_else(|| RpcError::internal(STOPS))
    }

    /// The class of a client, with the lists of its dedicated connections.
    ///
    /// # Errors
    ///
    /// As for [`of`](Self::of).
    pub(crate) async fn of_client(
        &self,
        key: Option<&PoolKey>,
        client: Option<ClientId>,
    ) -> Result<Arc<CapabilityClass>, RpcError> {
        let class = self.of(key).await?;
        let claims = key.and_then(|key| key.claims.as_ref());
        if let Some(token) = claims.and_then(ClaimHeaders::token) {
            let sources = class.sources().iter();
            let presented = sources.map(|source| source.connection.present(token));
            join_all(presented).await;
        }
        if let (Some(key), Some(session)) = (key, client)
            && key.principal.is_some()
        {
            class.connections.usage.add_session(session);
        }
        Ok(self.dedicated().lists().class_of(class, client).await)
    }

    /// Lets servers ask the only client outside of its calls, if there is one.
    pub(crate) fn note_session(&self, session: &Arc<Session>) {
        if self.has_only_client {
            self.dedicated().set_only_session(session);
        }
    }

    /// The same for a client that is only notified of changes. No connection is evicted for it.
    ///
    /// # Errors
    ///
    /// As for [`of`](Self::of).
    pub(crate) async fn of_subscriber(
        &self,
        key: Option<&PoolKey>,
        client: Option<ClientId>,
    ) -> Result<Arc<CapabilityClass>, RpcError> {
        let class = self.class_of(key, None).await?;
        Ok(self.dedicated().lists().class_of(class, client).await)
    }

    /// `class` after a list was read again on the client's dedicated connections; none if it has none, or if they were
    /// read a moment ago.
    pub(crate) async fn read_again(
        &self,
        class: &Arc<CapabilityClass>,
        client: Option<ClientId>,
        kind: ListKind,
    ) -> Option<Arc<CapabilityClass>> {
        let dedicated = self.dedicated();
        if !class.accepts_server_requests || !dedicated.suspect(client?, kind) {
            return None;
        }
        let class = Arc::clone(class);
        Some(dedicated.lists().class_of(class, client).await)
    }

    /// Waits until the connections of [`base`](Self::base) are of the era of its clients, or until the timeout.
    async fn settle_base(&self) {
        let is_settled = &self.keys.base_era.is_settled;
        if is_settled.load(Ordering::Acquire) {
            return;
        }
        let sources = self.base().sources().iter();
        let settling = join_all(sources.map(|source| source.in_preferred_era()));
        let settled = tokio::time::timeout(self.opener.list_wait(), settling).await;
        if settled.is_ok() {
            is_settled.store(true, Ordering::Release);
        }
    }

    /// A class beyond the limit, with the lists and connections of the nearest class of the same era: the class with the
    /// most of the clients' capabilities and no others.
    async fn shared_beyond_limit(&self, key: &PoolKey) -> Arc<CapabilityClass> {
        let known = self.beyond_limit.lock().get(key).and_then(Weak::upgrade);
        if let Some(class) = known {
            class.connections.note_use();
            return class;
        }
        let open = self.opener.classes.shared_of_era(key.era).into_iter();
        let fitting = open.filter(|class| is_part_of(&class.capabilities, &key.capabilities));
        let nearest = fitting.max_by_key(|class| class.capabilities.len());
        let nearest = match nearest {
            Some(class) => class,
            None => self.without_capabilities(key.era).await,
        };
        nearest.connections.note_use();
        let class = nearest.share_with(&key.capabilities);
        let mut known = self.beyond_limit.lock();
        known.retain(|_, class| class.strong_count() > 0);
        known.insert(key.clone(), Arc::downgrade(&class));
        class
    }

    /// The class of clients of `era` without special capabilities. It exists even beyond the limit, once for each era.
    async fn without_capabilities(&self, era: Era) -> Arc<CapabilityClass> {
        if self.keys.era_of_base(era) == era {
            self.settle_base().await;
            return Arc::clone(self.base());
        }
        let key = PoolKey {
            capabilities: BASE_CLASS.into(),
            session: None,
            principal: None,
            access: None,
            claims: None,
            era,
        };
        let cell = self.opener.classes.unlimited_entry(&key);
        let class = self.opener.open_in(&key, cell, None, Vec::new()).await;
        class.unwrap_or_else(|| Arc::clone(self.base()))
    }

    /// The capabilities to declare to a server for a client of `class` with the `forwardable` capabilities.
    pub(crate) fn capabilities_for(
        &self,
        class: &CapabilityClass,
        server: ServerIndex,
        forwardable: &str,
    ) -> Arc<str> {
        // A class beyond the limit does not store its own.
        let stores = !class.is_beyond_limit && *class.capabilities == *forwardable;
        let read = || self.servers.capabilities_per_server(forwardable);
        let stored = stores.then(|| class.sent_capabilities.get_or_init(read));
        self.servers.capabilities_for(server, forwardable, stored)
    }

    fn dedicated(&self) -> &Arc<DedicatedPool> {
        &self.opener.dedicated
    }

    /// Leases a dedicated connection of `client` to a server, for one call.
    ///
    /// # Errors
    ///
    /// When all are in use.
    pub(crate) fn lease_dedicated(
        &self,
        class: &CapabilityClass,
        server: ServerIndex,
        client: &Client,
    ) -> Result<DedicatedLease, RpcError> {
        let capabilities = self.capabilities_for(class, server, &class.capabilities);
        let connection = &class.source(server).connection;
        let server = self.servers.get(server);
        if server.config.has_one_process() {
            let session = client.session.as_ref();
            let dedicated = self.dedicated();
            let lease = dedicated.lease_only_process(server.index, connection, session);
            let processes = server.config.processes;
            let may_be_more = matches!(processes, Processes::OneClient { is_only: false, .. });
            // Without a session the server does not learn that roots have changed. Another process asks for them anew.
            if session.is_some() || !may_be_more || !lease.has_roots() {
                return Ok(lease);
            }
        }
        let claims = client.class.as_ref().and_then(|key| key.claims.as_ref());
        let spec = ConnectSpec {
            server,
            config: &server.config_for(claims),
            capabilities: &capabilities,
            principal: client.principal_id(),
            legacy_first: server.is_legacy_first(client.era()),
        };
        let dedicated = self.dedicated();
        match &client.session {
            Some(session) => dedicated.lease_for_session(&spec, session),
            None => dedicated.lease_for_request(&spec, client.list_owner()),
        }
    }

    /// Takes over the classes of `before`, as far as their servers are unchanged, for clients that return.
    pub(crate) fn inherit(&self, before: &Self) {
        let connections: Vec<_> = self.servers.open_connections().collect();
        let addresses: BTreeSet<_> = connections.iter().map(Arc::as_ptr).collect();
        let is_shared = |it: &ListFollower| addresses.contains(&Arc::as_ptr(&it.source.connection));
        let classes = &before.opener.classes;
        self.opener.classes.inherit(classes, is_shared);
    }

    /// The connections to servers that `others` does not have.
    pub(crate) fn removed_connections(&self, others: &Self) -> Vec<Arc<SupervisedConnection>> {
        let servers = self.servers.without(&others.servers);
        let connections = servers.flat_map(|server| {
            let dedicated = self.dedicated().close_server(server.index);
            server.open_connections().into_iter().chain(dedicated)
        });
        connections.collect()
    }

    /// Closes the class of a session that has ended.
    pub(crate) fn close_session(&self, session: ClientId) {
        self.dedicated().close_session(session);
        self.opener.classes.close_session(session);
    }

    /// Closes unused classes. Returns the time until the next sweep.
    pub(crate) fn sweep(&self) -> Duration {
        self.dedicated().sweep();
        let idle_timeout = self.servers.idle_timeout();
        self.opener.classes.sweep(idle_timeout);
        let pause = idle_timeout / 4;
        pause.clamp(Duration::from_millis(50), Duration::from_secs(60))
    }

    /// Closes all connections and waits until they are closed.
    pub(crate) async fn close(&self) {
        let dedicated = self.dedicated().close_all();
        let connections: Vec<_> = self.servers.open_connections().chain(dedicated).collect();
        join_all(connections.iter().map(|connection| connection.close())).await;
    }
}

const STOPS: &str = "the gateway stops";
const TOO_MANY_ISOLATED: &str =
    "too many sessions or users use servers that are not shared; end a session, or try again later";
