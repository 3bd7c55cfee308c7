//! One server and its connections for all classes.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcp_vary::extension::CONTENT_NEGOTIATION;
use mcp_vary_base::lock::Lock;
use mcp_vary_upstream::{
    ConcurrencyLimit, ConnectError, ConnectionState, Isolation, Processes, ServerFacts,
    SupervisedConnection, UpstreamConfig, UpstreamError,
};
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::server_request_support::ServerRequestSupport;
use tracing::warn;

use super::capabilities::capabilities_for_server;
use super::client_declarations::{forwards_features, without_features};
use super::connection_map::{ConnectionKey, ConnectionMap, ConnectionOwner};
use super::eviction::{ConnectionStatus, Evictions, Setting};
use crate::pool::lists::follower::ListFollower;
use crate::pool::lists::observer::PoolContext;
use mcp_vary_session::{ClaimHeaders, PoolKey};

/// One server and its connections.
#[derive(Debug)]
pub(crate) struct PooledServer {
    pub(crate) config: UpstreamConfig,
    /// The number of the server.
    pub(crate) index: usize,
    /// The limit of concurrent calls, on all connections together.
    pub(crate) concurrency: Arc<ConcurrencyLimit>,
    /// The known facts about the server, from all connections.
    pub(crate) learned: Arc<ServerFacts>,
    /// How long the first connection waits for the era of the first client.
    era_wait: Duration,
    /// The connection that is read for all clients, if they share its lists. No client calls on it.
    shared_lists: OnceLock<Arc<ListFollower>>,
    connections: Lock<ConnectionMap>,
    evictions: Lock<Evictions<ConnectionKey>>,
    /// Those of dedicated connections, by their sessions; those without one are one.
    pub(crate) dedicated_evictions: Arc<Lock<Evictions<Option<ClientId>>>>,
}

/// There is no room for another connection to a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoRoom {
    /// The only owner whose connection can make room, if the owner has its share.
    full_owner: Option<ConnectionOwner>,
}

impl PooledServer {
    pub(crate) fn new(mut config: UpstreamConfig, index: usize) -> Self {
        Self {
            // The clients of other connections are known when they are opened.
            era_wait: std::mem::take(&mut config.era_wait),
            index,
            concurrency: Arc::new(ConcurrencyLimit::new(&config.limits)),
            learned: Arc::default(),
            config,
            shared_lists: OnceLock::new(),
            connections: Lock::default(),
            evictions: Lock::default(),
            dedicated_evictions: Arc::default(),
        }
    }

    /// The connection for clients without special capabilities, of `era` if that is known.
    pub(crate) fn first_connection(&self, era: Option<Era>) -> Arc<SupervisedConnection> {
        let key = self.first_key(era.unwrap_or(Era::Modern));
        let mut connections = self.connections.lock();
        if let Some(connection) = connections.get(&key) {
            return connection;
        }
        let mut config = self.config.clone();
        config.legacy_first = era == Some(Era::Legacy);
        config.era_wait = self.era_wait;
        let is_of_one_client = matches!(config.processes, Processes::OneClient { .. });
        config.is_dedicated = is_of_one_client && config.has_one_process();
        if config.is_per_client() {
            config = config.for_client(None, None);
        }
        let connection = self.open(config);
        connections.insert(key, &connection);
        connection
    }

    /// Fixes the era of the clients of the first connection.
    pub(crate) fn prefer_era(&self, era: Era) {
        let mut connections = self.connections.lock();
        let key = self.first_key(Era::Modern);
        if let Some(connection) = connections.get(&key) {
            connection.prefer_era(era);
        }
        connections.rename(&key, self.first_key(era));
    }

    fn first_key(&self, era: Era) -> ConnectionKey {
        ConnectionKey {
            capabilities: self.config.capabilities.clone(),
            owner: None,
            claims: Box::default(),
            era,
        }
    }

    fn open(&self, config: UpstreamConfig) -> Arc<SupervisedConnection> {
        let concurrency = Arc::clone(&self.concurrency);
        let learned = Arc::clone(&self.learned);
        SupervisedConnection::open_sharing(config, concurrency, learned)
    }

    /// What is read for all clients; `None` if each has the lists of its own connection.
    pub(crate) fn shared_lists(&self, context: &PoolContext) -> Option<Arc<ListFollower>> {
        if let Some(known) = self.shared_lists.get() {
            return Some(Arc::clone(known));
        }
        let config = self.config.for_lists()?;
        let begin = || ListFollower::begin(self.open(config), context);
        Some(Arc::clone(self.shared_lists.get_or_init(begin)))
    }

    /// Whether a new connection for clients of `era` begins with `initialize`. It is of the era of the lists that it shows.
    pub(crate) fn is_legacy_first(&self, era: Era) -> bool {
        let shared = self.shared_lists.get();
        let handshake = shared.and_then(|shared| shared.source.snapshot().handshake.clone());
        handshake.map_or(era, |handshake| handshake.era()) == Era::Legacy
    }

    /// The open connection of `key`, also for clients of the other era if the server supports only that.
    fn find(
        &self,
        connections: &ConnectionMap,
        key: &ConnectionKey,
    ) -> Option<Arc<SupervisedConnection>> {
        connections.find(key, self.learned.only_era())
    }

    /// Whether the server has connected, but it is unknown whether it supports `era`.
    pub(crate) fn is_undecided(&self, era: Era) -> bool {
        self.learned.is_undecided(era)
    }

    /// Whether principals do not share connections for clients of `era`.
    pub(crate) fn isolates_principals(&self, era: Era) -> bool {
        match self.config.isolation {
            _ if self.config.is_per_client() => true,
            Isolation::Shared => false,
            Isolation::Principal | Isolation::Session => true,
            Isolation::Automatic => {
                self.config.target.is_local() || !self.learned.is_stateless_for(era)
            }
        }
    }

    /// The only user of the connection for clients of a class; `None` if it is shared.
    fn owner(&self, key: &PoolKey) -> Option<ConnectionOwner> {
        let isolates_sessions = self.config.isolation == Isolation::Session;
        let isolates_principals = self.isolates_principals(key.era);
        match (key.session, key.principal) {
            (Some(session), _) if isolates_sessions => Some(ConnectionOwner::Session(session)),
            (_, Some(user)) if isolates_principals => Some(ConnectionOwner::Principal(user)),
            _ => None,
        }
    }

    /// The configuration of the connections of a class, with the headers of its user; `None` for clients without one.
    pub(crate) fn config_for(&self, claims: Option<&ClaimHeaders>) -> Cow<'_, UpstreamConfig> {
        if !self.config.is_per_client() {
            return Cow::Borrowed(&self.config);
        }
        let values = claims.and_then(|claims| claims.of(self.index));
        let token = claims.and_then(ClaimHeaders::token);
        Cow::Owned(self.config.for_client(values, token))
    }

    /// The connection for clients of a class. Other classes may share it. `adopt` gets a new connection of a session
    /// that accepts server requests: with isolated sessions, this is its dedicated connection.
    pub(crate) fn connection(
        &self,
        key: &PoolKey,
        adopt: impl FnOnce(ClientId, &Arc<SupervisedConnection>),
    ) -> Result<Arc<SupervisedConnection>, NoRoom> {
        let base = self.config_for(key.claims.as_ref());
        if base.refusal.is_some() {
            // It is never opened, so it needs no room.
            return Ok(self.open(base.into_owned()));
        }
        let mut wanted = self.connection_key(key);
        let owner = wanted.owner;
        let mut connections = self.connections.lock();
        connections.retain_open();
        if self.config.has_one_process()
            && let Some(only) = self.first(&connections, key.era)
        {
            return Ok(only);
        }
        if let Some(connection) = self.find(&connections, &wanted) {
            return Ok(connection);
        }
        if let Some(connection) = self.find_without_features(&connections, &mut wanted) {
            return Ok(connection);
        }
        // With isolated sessions, clients without a session share the first connection, whatever their capabilities
        // are.
        if base.isolation == Isolation::Session && owner.is_none() {
            let first = self.first(&connections, key.era);
            return first.ok_or(NoRoom { full_owner: None });
        }
        let reserved = self.reserved(&connections, &wanted);
        let has_share = connections.count_of(owner) >= self.share();
        if has_share || connections.len() + reserved >= self.limit() {
            let first = || self.first(&connections, key.era);
            let shared = owner.is_none().then(first).flatten();
            let full_owner = if has_share { owner } else { None };
            return shared.ok_or(NoRoom { full_owner });
        }
        let mut config = base.into_owned();
        config = config.with_capabilities(wanted.capabilities.clone());
        config.legacy_first = self.is_legacy_first(key.era);
        let accepts_requests = ServerRequestSupport::from_capabilities(&key.capabilities).is_any();
        let session = match owner {
            Some(ConnectionOwner::Session(session)) if accepts_requests => Some(session),
            _ => None,
        };
        config.is_dedicated = session.is_some();
        config.is_further = true;
        let connection = self.open(config);
        if let Some(session) = session {
            adopt(session, &connection);
        }
        let setting = Setting {
            name: "connections",
            value: self.config.limits.connections,
            advice: "share them with `isolation: shared`",
        };
        let mut evictions = self.evictions.lock();
        evictions.note_opened(&wanted, &self.config.name, &setting);
        drop(evictions);
        connections.insert(wanted, &connection);
        Ok(connection)
    }

    /// The most connections.
    fn limit(&self) -> usize {
        let unopened = usize::from(self.config.is_per_client());
        self.config.limits.connections.max(1) + unopened
    }

    /// The most connections of one principal, so that no principal takes all.
    fn share(&self) -> usize {
        (self.config.limits.connections / 4).max(MIN_SHARE)
    }

    /// Whether an idle connection may be closed for another client. A configured isolation keeps the connection, and the
    /// data that the server keeps on it, for its owner.
    pub(crate) fn can_evict(&self) -> bool {
        match self.config.isolation {
            Isolation::Automatic | Isolation::Shared => true,
            Isolation::Principal | Isolation::Session => false,
        }
    }

    /// The connections that can make room. One that is being opened cannot: it would be opened in a circle.
    pub(crate) fn evictable(&self, room: NoRoom) -> Vec<Arc<SupervisedConnection>> {
        if !self.can_evict() {
            return Vec::new();
        }
        let is_candidate = |owner: Option<ConnectionOwner>| match room.full_owner {
            Some(full) => owner == Some(full),
            None => owner.is_some(),
        };
        let connections = self.connections.lock();
        let of_owner = connections
            .open()
            .filter(|(key, _)| is_candidate(key.owner));
        let candidates = of_owner.map(|(_, connection)| connection);
        let is_starting = |it: &Arc<SupervisedConnection>| {
            matches!(*it.state().borrow(), ConnectionState::Connecting)
        };
        candidates.filter(|open| !is_starting(open)).collect()
    }

    /// Removes a connection that was evicted.
    pub(crate) fn remove_evicted(&self, connection: &Arc<SupervisedConnection>) {
        let removed = self.connections.lock().remove(connection);
        if let Some(key) = removed {
            self.evictions.lock().note_evicted(key);
        }
    }

    /// How long a connection must be idle before it is evicted.
    pub(crate) fn eviction_idle_time(&self) -> Duration {
        self.evictions.lock().idle_time()
    }

    /// Another connection of the same principal, which has its share: the one with the most of the client's capabilities
    /// and no others.
    pub(crate) fn shared(&self, key: &PoolKey, room: NoRoom) -> Option<Arc<SupervisedConnection>> {
        room.full_owner?;
        let any_era = self.learned.only_era().is_some();
        let wanted = self.connection_key(key);
        self.connections.lock().nearest(&wanted, any_era)
    }

    /// In place of a connection that there is no `room` for: clients see the lists of the first connection, and calls
    /// fail.
    pub(crate) fn left_out(&self, room: NoRoom) -> Arc<SupervisedConnection> {
        let limit = self.config.limits.connections;
        let left_out = self.evictions.lock().note_left_out();
        if left_out.is_power_of_two() {
            let server = self.config.name.as_str();
            warn!(
                server,
                connections = limit,
                left_out,
                "all connections are in use; the server is left out for a client; raise its `connections`"
            );
        }
        let mut config = self.config.clone();
        config.refusal = Some(ConnectError::Failed(UpstreamError::NoConnectionLeft {
            server: self.config.name.as_str().into(),
            limit,
            share: room.full_owner.map(|_| self.share()),
        }));
        self.open(config)
    }

    /// How many connections are open, how many may be, and how many were evicted.
    pub(crate) fn connection_counts(&self) -> ConnectionStatus {
        ConnectionStatus {
            open: self.connections.lock().open().count(),
            limit: self.limit(),
            evicted: self.evictions.lock().total(),
        }
    }

    /// The same of dedicated connections, of which so many are open.
    pub(crate) fn dedicated_counts(&self, open: usize) -> ConnectionStatus {
        ConnectionStatus {
            open,
            limit: self.config.limits.dedicated_connections,
            evicted: self.dedicated_evictions.lock().total(),
        }
    }

    /// The open connection for the same user without feature tags, if half of the connections are in use, or half of the
    /// user's share: one user with ever new tags leaves the other half to others. The tags are removed from `wanted` then.
    fn find_without_features(
        &self,
        connections: &ConnectionMap,
        wanted: &mut ConnectionKey,
    ) -> Option<Arc<SupervisedConnection>> {
        let is_half_used = connections.len() >= self.config.limits.connections / 2
            || connections.count_of(wanted.owner) >= self.share().div_ceil(2);
        if !is_half_used || wanted.owner.is_none() {
            return None;
        }
        wanted.capabilities = without_features(&wanted.capabilities).into_owned();
        self.find(connections, wanted)
    }

    /// How many connections are left to others: feature tags of clients with sessions leave one to the clients of
    /// 2026-07-28, which need no more than that, whatever they declare.
    fn reserved(&self, connections: &ConnectionMap, wanted: &ConnectionKey) -> usize {
        // The first connection becomes one of the other era if clients of that come first.
        let first = self.first_key(Era::Modern);
        let is_modern = |key: &ConnectionKey| key.era == Era::Modern && *key != first;
        let is_needed = !connections.keys().any(is_modern) && self.learned.may_support(Era::Modern);
        let has_features = wanted.capabilities.contains(CONTENT_NEGOTIATION);
        let is_shared = wanted.owner.is_none() && wanted.era == Era::Legacy;
        usize::from(is_needed && has_features && is_shared)
    }

    fn connection_key(&self, key: &PoolKey) -> ConnectionKey {
        let config = &self.config;
        let claims = match &key.claims {
            Some(claims) if config.is_per_client() => claims.of(self.index).and_then(Result::ok),
            _ => None,
        };
        ConnectionKey {
            capabilities: capabilities_for_server(
                &config.capabilities,
                &key.capabilities,
                &self.declared_extensions(key.era),
            ),
            owner: self.owner(key),
            claims: claims.unwrap_or_default().into(),
            era: key.era,
        }
    }

    /// Whether connections for clients of `era` declare the feature tags of their clients.
    pub(super) fn declares_features(&self, era: Era) -> bool {
        forwards_features(&self.config) && !self.learned.is_stateless_for(era)
    }

    /// The extensions of clients that the connections for clients of `era` declare.
    fn declared_extensions(&self, era: Era) -> Vec<String> {
        let mut extensions = self.forwarded_extensions();
        extensions.retain(|id| id != CONTENT_NEGOTIATION || self.declares_features(era));
        extensions
    }

    /// The extensions whose settings the server gets: those of the configuration, and those that it declared.
    pub(super) fn forwarded_extensions(&self) -> Vec<String> {
        let configured = &self.config.forwarded_extensions;
        let declared = self.learned.extensions().into_iter();
        let further = declared.filter(|id| !configured.contains(id));
        configured.iter().cloned().chain(further).collect()
    }

    /// The first connection, for clients to whom access rules allow nothing of the server.
    pub(crate) fn connection_of_all(&self, era: Era) -> Option<Arc<SupervisedConnection>> {
        self.first(&self.connections.lock(), era)
    }

    /// The open connection for clients without special capabilities: of `era`, or of another.
    fn first(&self, connections: &ConnectionMap, era: Era) -> Option<Arc<SupervisedConnection>> {
        let of_era = |era| connections.get(&self.first_key(era));
        self.find(connections, &self.first_key(era))
            .or_else(|| of_era(Era::Modern))
            .or_else(|| of_era(Era::Legacy))
    }

    pub(crate) fn open_connections(&self) -> Vec<Arc<SupervisedConnection>> {
        let lists = self.shared_lists.get();
        let shared = lists.map(|lists| Arc::clone(&lists.source.connection));
        let connections = self.connections.lock();
        let of_clients = connections.open().map(|(_, connection)| connection);
        of_clients.chain(shared).collect()
    }
}

/// The least share of a principal: the client of today, and another one.
const MIN_SHARE: usize = 2;
