//! One server and its connections for all classes.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use mcp_vary_access::PrincipalId;
use mcp_vary_base::lock::Lock;
use mcp_vary_upstream::{
    ConcurrencyLimit, Isolation, ServerFacts, SupervisedConnection, Target, UpstreamConfig,
};
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::server_request_support::ServerRequestSupport;

use crate::pool::capabilities::capabilities_for_server;
use crate::pool::dedicated::DedicatedPool;
use crate::session::PoolKey;

/// One server and its connections.
#[derive(Debug)]
pub(super) struct PooledServer {
    pub(super) config: UpstreamConfig,
    /// The number of the server.
    pub(super) index: usize,
    /// The limit of concurrent calls, on all connections together.
    pub(super) concurrency: Arc<ConcurrencyLimit>,
    /// The known facts about the server, from all connections.
    pub(super) learned: Arc<ServerFacts>,
    connections: Lock<ConnectionMap>,
}

/// The capabilities that a connection declares, its only user, and the era of its clients.
type ConnectionKey = (String, Option<ConnectionOwner>, Era);

/// The only user of a connection that is not shared.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum ConnectionOwner {
    Session(ClientId),
    Principal(PrincipalId),
}

type ConnectionMap = BTreeMap<ConnectionKey, Weak<SupervisedConnection>>;

impl PooledServer {
    pub(super) fn new(config: UpstreamConfig, index: usize) -> Self {
        Self {
            index,
            concurrency: Arc::new(ConcurrencyLimit::new(&config.limits)),
            learned: Arc::default(),
            config,
            connections: Lock::default(),
        }
    }

    /// The connection for clients without special capabilities, of `era` if that is known.
    pub(super) fn first_connection(&self, era: Option<Era>) -> Arc<SupervisedConnection> {
        let key = self.first_key(era.unwrap_or(Era::Modern));
        let mut connections = self.connections.lock();
        if let Some(connection) = connections.get(&key).and_then(Weak::upgrade) {
            return connection;
        }
        let mut config = self.config.clone();
        config.legacy_first = era == Some(Era::Legacy);
        let connection = self.open(config);
        connections.insert(key, Arc::downgrade(&connection));
        connection
    }

    /// Fixes the era of the clients of the first connection.
    pub(super) fn prefer_era(&self, era: Era) {
        let mut connections = self.connections.lock();
        let first = connections.remove(&self.first_key(Era::Modern));
        if let Some(connection) = first.as_ref().and_then(Weak::upgrade) {
            connection.prefer_era(era);
        }
        if let Some(first) = first {
            connections.insert(self.first_key(era), first);
        }
    }

    fn first_key(&self, era: Era) -> ConnectionKey {
        (self.config.capabilities.clone(), None, era)
    }

    fn open(&self, config: UpstreamConfig) -> Arc<SupervisedConnection> {
        let (concurrency, learned) = (Arc::clone(&self.concurrency), Arc::clone(&self.learned));
        SupervisedConnection::open_sharing(config, concurrency, learned)
    }

    /// The open connection for clients of `era`, or of the other era if the server supports only that.
    fn found(
        &self,
        connections: &ConnectionMap,
        capabilities: &str,
        owner: Option<ConnectionOwner>,
        era: Era,
    ) -> Option<Arc<SupervisedConnection>> {
        let of = |era| {
            let key = (capabilities.to_owned(), owner, era);
            connections.get(&key).and_then(Weak::upgrade)
        };
        match self.learned.only_era() {
            Some(Era::Legacy) => of(Era::Legacy).or_else(|| of(Era::Modern)),
            Some(Era::Modern) => of(Era::Modern).or_else(|| of(Era::Legacy)),
            None => of(era),
        }
    }

    /// Whether the server has connected, but it is unknown whether it supports `era`.
    pub(super) fn is_undecided(&self, era: Era) -> bool {
        self.learned.is_undecided(era)
    }

    /// Whether principals do not share connections for clients of `era`.
    pub(super) fn isolates_principals(&self, era: Era) -> bool {
        match self.config.isolation {
            Isolation::Shared => false,
            Isolation::Principal | Isolation::Session => true,
            Isolation::Automatic => match self.config.target {
                Target::Command { .. } => true,
                Target::Http { .. } => !self.learned.is_stateless_for(era),
            },
        }
    }

    /// The only user of the connection for clients of a class; `None` if it is shared.
    fn owner(&self, key: &PoolKey) -> Option<ConnectionOwner> {
        let session = key
            .session
            .filter(|_| self.config.isolation == Isolation::Session);
        let principal = key.principal.filter(|_| self.isolates_principals(key.era));
        let principal = principal.map(ConnectionOwner::Principal);
        session.map(ConnectionOwner::Session).or(principal)
    }

    /// The connection for clients of a class. Other classes may share it.
    pub(super) fn connection(
        &self,
        key: &PoolKey,
        dedicated: &Arc<DedicatedPool>,
    ) -> Result<Arc<SupervisedConnection>, RpcError> {
        let config = &self.config;
        let owner = self.owner(key);
        let capabilities = capabilities_for_server(
            &config.capabilities,
            &key.capabilities,
            &config.forwarded_extensions,
        );
        let mut connections = self.connections.lock();
        connections.retain(|_, connection| connection.strong_count() > 0);
        let era = key.era;
        let found = |capabilities: &str, owner| self.found(&connections, capabilities, owner, era);
        let first = || {
            let of = |era| {
                connections
                    .get(&self.first_key(era))
                    .and_then(Weak::upgrade)
            };
            found(&config.capabilities, None)
                .or_else(|| of(Era::Modern))
                .or_else(|| of(Era::Legacy))
        };
        if let Some(connection) = found(&capabilities, owner) {
            return Ok(connection);
        }
        // With isolated sessions, clients without a session share the first connection, whatever their capabilities
        // are.
        if config.isolation == Isolation::Session && owner.is_none() {
            return first().ok_or_else(|| no_connection_left(config));
        }
        if connections.len() >= config.limits.connections.max(1) {
            let shared = first().filter(|_| owner.is_none());
            return shared.ok_or_else(|| no_connection_left(config));
        }
        let mut config = config.clone().with_capabilities(capabilities.clone());
        // With isolated sessions, this is the client's dedicated connection.
        let dedicated_to = match owner {
            Some(ConnectionOwner::Session(session)) => Some(session),
            Some(ConnectionOwner::Principal(_)) | None => None,
        };
        let dedicated_to = dedicated_to
            .filter(|_| ServerRequestSupport::from_capabilities(&key.capabilities).is_any());
        config.is_dedicated = dedicated_to.is_some();
        config.legacy_first = era == Era::Legacy;
        let connection = self.open(config);
        if let Some(session) = dedicated_to {
            dedicated.adopt(self.index, session, &connection);
        }
        connections.insert((capabilities, owner, era), Arc::downgrade(&connection));
        Ok(connection)
    }

    pub(super) fn open_connections(&self) -> Vec<Arc<SupervisedConnection>> {
        self.connections
            .lock()
            .values()
            .filter_map(Weak::upgrade)
            .collect()
    }
}

fn no_connection_left(config: &UpstreamConfig) -> RpcError {
    RpcError::internal(format!(
        "server `{}` serves each session or user on a connection of its own, and all {} are in use; \
         end a session, or try again later",
        config.name, config.limits.connections
    ))
}
