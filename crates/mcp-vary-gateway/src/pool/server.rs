//! One server and its connections for all classes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::HeaderValue;
use mcp_vary::extension::{CONTENT_NEGOTIATION, SERVER_VARIANTS};
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
use crate::pool::client_declarations::without_extension;
use crate::pool::dedicated::DedicatedPool;
use crate::session::{ClaimHeaders, PoolKey};

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
    /// How long the first connection waits for the era of the first client.
    era_wait: Duration,
    connections: Lock<ConnectionMap>,
}

/// Identifies a connection: clients of the same key share it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct ConnectionKey {
    /// The capabilities that it declares.
    capabilities: String,
    /// Its only user, if it is not shared.
    owner: Option<ConnectionOwner>,
    /// The values of headers from the claims of its user.
    claims: Box<[HeaderValue]>,
    /// The era of its clients.
    era: Era,
}

/// The only user of a connection that is not shared.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum ConnectionOwner {
    Session(ClientId),
    Principal(PrincipalId),
}

type ConnectionMap = BTreeMap<ConnectionKey, Weak<SupervisedConnection>>;

impl PooledServer {
    pub(super) fn new(
        mut config: UpstreamConfig,
        index: usize,
        concurrency: Arc<ConcurrencyLimit>,
    ) -> Self {
        Self {
            // The clients of other connections are known when they are opened.
            era_wait: std::mem::take(&mut config.era_wait),
            index,
            concurrency,
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
        config.era_wait = self.era_wait;
        if config.needs_claims() {
            config = config.for_client(None);
        }
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
        ConnectionKey {
            capabilities: self.config.capabilities.clone(),
            owner: None,
            claims: Box::default(),
            era,
        }
    }

    fn open(&self, config: UpstreamConfig) -> Arc<SupervisedConnection> {
        let (concurrency, learned) = (Arc::clone(&self.concurrency), Arc::clone(&self.learned));
        SupervisedConnection::open_sharing(config, concurrency, learned)
    }

    /// The open connection for clients of `era`, or of the other era if the server supports only that.
    fn found(
        &self,
        connections: &ConnectionMap,
        key: &ConnectionKey,
    ) -> Option<Arc<SupervisedConnection>> {
        let of = |era| {
            let key = ConnectionKey { era, ..key.clone() };
            connections.get(&key).and_then(Weak::upgrade)
        };
        match self.learned.only_era() {
            Some(Era::Legacy) => of(Era::Legacy).or_else(|| of(Era::Modern)),
            Some(Era::Modern) => of(Era::Modern).or_else(|| of(Era::Legacy)),
            None => of(key.era),
        }
    }

    /// Whether the server has connected, but it is unknown whether it supports `era`.
    pub(super) fn is_undecided(&self, era: Era) -> bool {
        self.learned.is_undecided(era)
    }

    /// Whether principals do not share connections for clients of `era`.
    pub(super) fn isolates_principals(&self, era: Era) -> bool {
        match self.config.isolation {
            _ if self.config.needs_claims() => true,
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

    /// The configuration of the connections of a class, with the headers of its user; `None` for clients without one.
    pub(super) fn config_for(&self, claims: Option<&ClaimHeaders>) -> Cow<'_, UpstreamConfig> {
        if !self.config.needs_claims() {
            return Cow::Borrowed(&self.config);
        }
        let values = claims.and_then(|claims| claims.of(self.index));
        Cow::Owned(self.config.for_client(values))
    }

    /// The connection for clients of a class. Other classes may share it.
    pub(super) fn connection(
        &self,
        key: &PoolKey,
        dedicated: &Arc<DedicatedPool>,
    ) -> Result<Arc<SupervisedConnection>, RpcError> {
        let config = self.config_for(key.claims.as_ref());
        if config.refusal.is_some() {
            // It is never opened, so it takes no place.
            return Ok(self.open(config.into_owned()));
        }
        let mut wanted = self.connection_key(key);
        let owner = wanted.owner;
        let mut connections = self.connections.lock();
        connections.retain(|_, connection| connection.strong_count() > 0);
        if let Some(connection) = self.found(&connections, &wanted) {
            return Ok(connection);
        }
        if let Some(connection) = self.found_with_less(&connections, &mut wanted) {
            return Ok(connection);
        }
        // With isolated sessions, clients without a session share the first connection, whatever their capabilities
        // are.
        if config.isolation == Isolation::Session && owner.is_none() {
            let first = self.first(&connections, key.era);
            return first.ok_or_else(|| no_connection_left(&config));
        }
        let unopened = usize::from(config.needs_claims());
        let reserved = self.reserved(&connections, &wanted);
        if connections.len() + reserved >= config.limits.connections.max(1) + unopened {
            let shared = self
                .first(&connections, key.era)
                .filter(|_| owner.is_none());
            return shared.ok_or_else(|| no_connection_left(&config));
        }
        let mut config = config
            .into_owned()
            .with_capabilities(wanted.capabilities.clone());
        // With isolated sessions, this is the client's dedicated connection.
        let dedicated_to = match owner {
            Some(ConnectionOwner::Session(session)) => Some(session),
            Some(ConnectionOwner::Principal(_)) | None => None,
        };
        let dedicated_to = dedicated_to
            .filter(|_| ServerRequestSupport::from_capabilities(&key.capabilities).is_any());
        config.is_dedicated = dedicated_to.is_some();
        config.legacy_first = key.era == Era::Legacy;
        let connection = self.open(config);
        if let Some(session) = dedicated_to {
            dedicated.adopt(self.index, session, &connection);
        }
        connections.insert(wanted, Arc::downgrade(&connection));
        Ok(connection)
    }

    /// The open connection for the same clients without hints, or for a user without feature tags, if half of the
    /// connections are in use: ever new hints, and one user with ever new tags, leave the other half to others. What is
    /// left out is removed from `wanted`.
    fn found_with_less(
        &self,
        connections: &ConnectionMap,
        wanted: &mut ConnectionKey,
    ) -> Option<Arc<SupervisedConnection>> {
        if connections.len() < self.config.limits.connections / 2 {
            return None;
        }
        let extensions = match wanted.owner {
            Some(_) => &[SERVER_VARIANTS, CONTENT_NEGOTIATION][..],
            None => &[SERVER_VARIANTS],
        };
        extensions.iter().find_map(|extension| {
            let less = without_extension(&wanted.capabilities, extension);
            wanted.capabilities = less.into_owned();
            self.found(connections, wanted)
        })
    }

    /// How many connections are left to others: feature tags and hints of clients with sessions leave one to the clients
    /// of 2026-07-28, which need no more than that, whatever they declare.
    fn reserved(&self, connections: &ConnectionMap, wanted: &ConnectionKey) -> usize {
        // The first connection becomes one of the other era if clients of that come first.
        let first = self.first_key(Era::Modern);
        let is_modern = |key: &ConnectionKey| key.era == Era::Modern && *key != first;
        let is_needed = !connections.keys().any(is_modern) && self.learned.may_support(Era::Modern);
        let declares = |id| wanted.capabilities.contains(id);
        let is_negotiated = [SERVER_VARIANTS, CONTENT_NEGOTIATION]
            .into_iter()
            .any(declares);
        let is_shared = wanted.owner.is_none() && wanted.era == Era::Legacy;
        usize::from(is_needed && is_negotiated && is_shared)
    }

    fn connection_key(&self, key: &PoolKey) -> ConnectionKey {
        let config = &self.config;
        let claims = key.claims.as_ref().filter(|_| config.needs_claims());
        let claims = claims.and_then(|claims| claims.of(self.index)?.ok());
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

    /// The open connection for clients without special capabilities: of `era`, or of another.
    fn first(&self, connections: &ConnectionMap, era: Era) -> Option<Arc<SupervisedConnection>> {
        let of = |era| {
            let first = connections.get(&self.first_key(era));
            first.and_then(Weak::upgrade)
        };
        self.found(connections, &self.first_key(era))
            .or_else(|| of(Era::Modern))
            .or_else(|| of(Era::Legacy))
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
