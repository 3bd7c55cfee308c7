//! One class of clients with the same capabilities: its connections and its catalog.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_catalog::layout::Layout;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_upstream::{ConnectError, SupervisedConnection, UpstreamConfig, UpstreamError};
use mcp_vary_wire::server_request_support::ServerRequestSupport;

use super::class_connections::ClassConnections;
use super::usage::ClassUsage;
use crate::pool::connections::servers::PerServer;
use crate::pool::lists::follower::ListFollower;
use crate::pool::lists::live_catalog::LiveCatalog;
use crate::pool::lists::observer::PoolContext;
use crate::pool::lists::source::{self, ServerSource};

/// A class: a connection to each server, and the merged catalog.
#[derive(Debug)]
pub(crate) struct CapabilityClass {
    pub(crate) catalog: Arc<LiveCatalog>,
    /// The capabilities of its clients, JSON text.
    pub(crate) capabilities: Arc<str>,
    /// The capabilities that each server receives; computed on first use.
    pub(crate) sent_capabilities: OnceLock<PerServer>,
    /// Whether its clients accept server requests.
    pub(crate) accepts_server_requests: bool,
    pub(crate) connections: Arc<ClassConnections>,
    /// The shared class, if this one belongs to a single client with lists of its own.
    shared: Option<Arc<Self>>,
    /// Whether it uses the lists and connections of another class, since there are too many.
    pub(crate) is_beyond_limit: bool,
    /// The servers that had no connection left for it.
    pub(crate) left_out: Box<[ServerIndex]>,
    /// Whether its next request opens it again: a connection was evicted, or a server has room by now.
    is_outdated: AtomicBool,
}

/// What a class is opened with.
#[derive(Debug)]
pub(crate) struct ClassSpec<'a> {
    pub(crate) capabilities: Arc<str>,
    pub(crate) connections: Vec<Arc<SupervisedConnection>>,
    /// For each server, what is read for all its clients, if they share its lists.
    pub(crate) shared_lists: Vec<Option<Arc<ListFollower>>>,
    /// The connections that are followed already.
    pub(crate) known: &'a [Arc<ListFollower>],
    pub(crate) usage: Arc<ClassUsage>,
    pub(crate) layout: Layout,
}

impl CapabilityClass {
    /// Opens a class and follows its connections.
    pub(crate) async fn open(spec: ClassSpec<'_>, context: &PoolContext) -> Arc<Self> {
        let capabilities = spec.capabilities;
        let connections = std::iter::zip(spec.connections, spec.shared_lists);
        let followers = connections.map(|(connection, shared_lists)| {
            let mut known = spec.known.iter();
            let found = known.find(|known| Arc::ptr_eq(&known.source.connection, &connection));
            // Clients that cannot use the server do not see its lists.
            let is_usable = connection.config().refusal.is_none();
            let lists = if is_usable { shared_lists } else { None };
            match (found, lists) {
                (Some(known), _) => Arc::clone(known),
                (None, Some(lists)) => ListFollower::with_lists_of(&lists, connection, context),
                (None, None) => ListFollower::begin(connection, context),
            }
        });
        let connections = ClassConnections::new(followers.collect(), spec.usage);
        let servers = ServerIndex::enumerate(&connections.followers);
        let is_left_out = |it: &ListFollower| is_left_out(it.source.connection.config());
        let excluded = servers.filter_map(|(server, it)| is_left_out(it).then_some(server));
        let left_out = excluded.collect();
        let catalog = Arc::new(LiveCatalog::new(
            connections.sources(),
            spec.layout,
            context,
        ));
        // The catalog is notified of changes from here on. Earlier changes are in it from the start.
        connections.notify(&catalog);
        catalog.rebuild(&BTreeSet::new()).await;
        Arc::new(Self {
            catalog,
            accepts_server_requests: ServerRequestSupport::from_capabilities(&capabilities)
                .is_any(),
            capabilities,
            sent_capabilities: OnceLock::new(),
            connections: Arc::new(connections),
            shared: None,
            is_beyond_limit: false,
            left_out,
            is_outdated: AtomicBool::new(false),
        })
    }

    /// A class of clients with other capabilities that uses the lists and connections of this one. Servers still reach
    /// these clients with requests, on dedicated connections.
    pub(crate) fn share_with(&self, capabilities: &Arc<str>) -> Arc<Self> {
        Arc::new(Self {
            catalog: Arc::clone(&self.catalog),
            accepts_server_requests: ServerRequestSupport::from_capabilities(capabilities).is_any(),
            capabilities: Arc::clone(capabilities),
            sent_capabilities: OnceLock::new(),
            connections: Arc::clone(&self.connections),
            shared: None,
            is_beyond_limit: true,
            left_out: Box::default(),
            is_outdated: AtomicBool::new(false),
        })
    }

    /// This class as seen by a client with other lists on its `dedicated` connections.
    pub(crate) async fn with_dedicated(
        self: &Arc<Self>,
        dedicated: &[Arc<ListFollower>],
    ) -> Arc<Self> {
        let followers = self.connections.followers.iter().map(|shared| {
            let connection = &shared.source.connection;
            let mut followers = dedicated.iter();
            let found = followers.find(|other| other.source.connection.has_same_server(connection));
            Arc::clone(found.unwrap_or(shared))
        });
        let usage = Arc::clone(&self.connections.usage);
        let connections = ClassConnections::new(followers.collect(), usage);
        let catalog = Arc::new(self.catalog.with_sources(connections.sources()));
        connections.notify(&catalog);
        catalog.rebuild(&ListKind::ALL.into()).await;
        Arc::new(Self {
            catalog,
            accepts_server_requests: self.accepts_server_requests,
            capabilities: Arc::clone(&self.capabilities),
            sent_capabilities: OnceLock::new(),
            connections: Arc::new(connections),
            shared: Some(Arc::clone(self)),
            is_beyond_limit: self.is_beyond_limit,
            left_out: Box::default(),
            is_outdated: AtomicBool::new(false),
        })
    }

    /// The class that its clients share, with the lists that all of them get.
    pub(crate) fn shared(self: &Arc<Self>) -> &Arc<Self> {
        self.shared.as_ref().unwrap_or(self)
    }

    /// Whether it shows the lists of exactly these connections.
    pub(crate) fn shows(&self, dedicated: &[Arc<ListFollower>]) -> bool {
        let followers = &self.connections.followers;
        let is_shown =
            |it: &Arc<ListFollower>| followers.iter().any(|shown| Arc::ptr_eq(shown, it));
        let original = self.shared.as_ref();
        let shared = original.map_or(&[][..], |class| class.connections.followers.as_slice());
        let is_shared = |it: &Arc<ListFollower>| shared.iter().any(|other| Arc::ptr_eq(other, it));
        let replaced = followers.iter().filter(|shown| !is_shared(shown)).count();
        replaced == dedicated.len() && dedicated.iter().all(is_shown)
    }

    pub(crate) fn sources(&self) -> &[Arc<ServerSource>] {
        &self.catalog.sources
    }

    /// The source of a server of the same configuration.
    pub(crate) fn source(&self, server: ServerIndex) -> &Arc<ServerSource> {
        server.entry(self.sources())
    }

    /// Whether its next request opens it again.
    pub(crate) fn is_outdated(&self) -> bool {
        self.is_outdated.load(Ordering::SeqCst)
    }

    /// Has the next request open it again, or not. Returns the previous value.
    pub(crate) fn set_outdated(&self, is_outdated: bool) -> bool {
        self.is_outdated.swap(is_outdated, Ordering::SeqCst)
    }

    /// Waits until each server's lists were read or its connection failed, or for `limit`.
    pub(crate) async fn first_readings(&self, limit: Duration) {
        source::first_readings(self.sources(), limit).await;
    }
}

/// A class in use: its connections stay open, and are not evicted, until this is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionUse(Arc<ClassConnections>);

impl ConnectionUse {
    pub(crate) fn new(class: &CapabilityClass) -> Self {
        class.connections.usage.begin();
        Self(Arc::clone(&class.connections))
    }

    /// Counts them as used for this long, even after this is dropped.
    pub(crate) fn keep_for(&self, time: Duration) {
        self.0.usage.extend(time);
    }
}

impl Drop for ConnectionUse {
    fn drop(&mut self) {
        self.0.usage.end();
    }
}

/// Whether the connection of this configuration replaces one that there was no room for.
fn is_left_out(config: &UpstreamConfig) -> bool {
    let refusal = config.refusal.as_ref();
    refusal.is_some_and(|refusal| {
        let full = |error: &UpstreamError| matches!(error, UpstreamError::NoConnectionLeft { .. });
        matches!(refusal, ConnectError::Failed(error) if full(error))
    })
}
