//! Dedicated connections: each serves one client only.
//!
//! Over stdio, and on the stream that a legacy HTTP server opens by itself, a server request (sampling, elicitation,
//! roots) does not say which call it belongs to. A client that accepts server requests therefore shares the catalog of
//! its class, but calls legacy servers over a connection that no other client uses at the time: a session has one of
//! its connection; a request without a session leases one until the response.

mod lease;
mod listener;
mod mirror;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard, Weak};

use mcp_vary_access::PrincipalId;
use mcp_vary_base::lock::Lock;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_upstream::{ConcurrencyLimit, ServerFacts, SupervisedConnection, UpstreamConfig};
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::response::RpcError;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use self::lease::DedicatedConnection;
pub(crate) use self::lease::{DedicatedLease, KeepAliveLease};
use self::listener::EventListener;
pub(crate) use self::listener::wait;
use self::mirror::SubscriptionMirror;
use super::client_lists::{ClientLists, DedicatedLists};
use super::connection_id::ConnectionId;
use super::last_use::LastUse;
use super::observer::ConnectionObserver;
use super::task_events;
use crate::session::Session;
use crate::session::pending_server_requests::PendingServerRequests;

/// The dedicated connections to all servers.
#[derive(Debug)]
pub(crate) struct DedicatedPool {
    entries: Lock<Entries>,
    /// For all servers together.
    limit: usize,
    next: AtomicUsize,
    pending_server_requests: Arc<PendingServerRequests>,
    observer: Arc<dyn ConnectionObserver>,
    lists: Arc<ClientLists>,
    tasks: TaskTracker,
}

/// Identifies a dedicated connection: one server, one owner.
type DedicatedKey = (usize, Owner);

type Entries = BTreeMap<DedicatedKey, Arc<DedicatedConnection>>;

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Owner {
    /// Leased to one request at a time; each has its own number.
    Request(usize),
    Session(ClientId),
}

/// The parameters of a connection to a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectSpec<'a> {
    /// The number of the server.
    pub(crate) server: usize,
    pub(crate) config: &'a UpstreamConfig,
    /// The capabilities to declare, JSON text.
    pub(crate) capabilities: &'a str,
    pub(crate) concurrency: &'a Arc<ConcurrencyLimit>,
    pub(crate) learned: &'a Arc<ServerFacts>,
    /// The only principal that uses the connection; `None` where clients are not authenticated.
    pub(crate) principal: Option<PrincipalId>,
    /// Whether to try `initialize` first on a server of both eras.
    pub(crate) legacy_first: bool,
}

impl DedicatedPool {
    pub(crate) fn new(
        limit: usize,
        pending_server_requests: Arc<PendingServerRequests>,
        observer: Arc<dyn ConnectionObserver>,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        Arc::new(Self {
            entries: Lock::default(),
            limit,
            next: AtomicUsize::new(0),
            pending_server_requests,
            lists: Arc::new(ClientLists::new(Arc::clone(&observer))),
            observer,
            tasks,
        })
    }

    /// The lists of clients with dedicated connections.
    pub(crate) fn lists(&self) -> &Arc<ClientLists> {
        &self.lists
    }

    /// Rereads a list on the dedicated connections of `client`. Returns whether there are any.
    pub(crate) fn suspect(&self, client: ClientId, kind: ListKind) -> bool {
        let entries = self.lock();
        let lists = entries.iter().filter_map(|(key, connection)| {
            let lists = connection.lists.as_ref()?;
            let is_its = key.1 == Owner::Session(client) || lists.was_leased_to(client);
            is_its.then(|| Arc::clone(lists))
        });
        let lists: Vec<_> = lists.collect();
        drop(entries);
        let suspected = lists.iter().filter(|lists| lists.suspect(client, kind));
        suspected.count() > 0
    }

    /// The number of dedicated connections.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// A new number, for a server or a connection.
    pub(crate) fn next_number(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Leases the session's connection to a server, opening it on first use.
    ///
    /// # Errors
    ///
    /// When all are in use.
    pub(crate) fn lease_for_session(
        self: &Arc<Self>,
        spec: &ConnectSpec<'_>,
        session: &Arc<Session>,
    ) -> Result<DedicatedLease, RpcError> {
        let key = (spec.server, Owner::Session(session.client));
        let mut entries = self.lock();
        // After a reload, a session can have other capabilities; with a new credential, other claims.
        let known = entries.get(&key).filter(|known| known.is_for(spec));
        let connection = match known.cloned() {
            Some(connection) => connection,
            None => self.open(&mut entries, key, spec)?,
        };
        connection.session.send_if_modified(|known| {
            let is_other = !std::ptr::eq(known.as_ptr(), Arc::as_ptr(session));
            if is_other {
                *known = Arc::downgrade(session);
            }
            is_other
        });
        Ok(self.lease(key, connection, Some(session.client)))
    }

    /// Leases a connection to a request without a session: an idle one, or a new one. A connection with lists that only
    /// `client` gets is leased to that client only.
    ///
    /// # Errors
    ///
    /// When all are in use.
    pub(crate) fn lease_for_request(
        self: &Arc<Self>,
        spec: &ConnectSpec<'_>,
        client: Option<ClientId>,
    ) -> Result<DedicatedLease, RpcError> {
        let mut entries = self.lock();
        let pool = (spec.server, Owner::Request(0))..(spec.server, Owner::Request(usize::MAX));
        let pool = entries.range(pool);
        let free: Vec<_> = pool
            .filter(|(_, connection)| {
                !connection.is_used()
                    && connection.principal == spec.principal
                    && connection.is_for(spec)
            })
            .collect();
        let of_client = free
            .iter()
            .find(|(_, connection)| connection.belongs_to(client));
        let found = of_client.or_else(|| {
            free.iter()
                .find(|(_, connection)| connection.has_shared_lists())
        });
        if let Some((key, connection)) = found {
            return Ok(self.lease(**key, Arc::clone(connection), client));
        }
        let key = (spec.server, Owner::Request(self.next_number()));
        let connection = self.open(&mut entries, key, spec)?;
        Ok(self.lease(key, connection, client))
    }

    fn lease(
        self: &Arc<Self>,
        key: DedicatedKey,
        connection: Arc<DedicatedConnection>,
        client: Option<ClientId>,
    ) -> DedicatedLease {
        if let Some(lists) = &connection.lists {
            lists.lease_to(client);
        }
        connection.in_use.fetch_add(1, Ordering::Relaxed);
        DedicatedLease {
            connection,
            key,
            pool: Arc::clone(self),
            is_clean: AtomicBool::new(false),
            is_tainted: AtomicBool::new(false),
        }
    }

    /// Whether there is room for another connection, after idle ones were closed if necessary.
    fn evict_until_fits(&self, entries: &mut Entries, spec: &ConnectSpec<'_>) -> bool {
        let is_its = |key: &DedicatedKey| key.0 == spec.server;
        let is_crowded = |entries: &Entries| {
            let its = entries
                .iter()
                .filter(|(key, connection)| is_its(key) && !connection.is_adopted);
            its.count() >= spec.config.limits.dedicated_connections.max(1)
        };
        let is_full = |entries: &Entries| {
            let counted = entries.values().filter(|connection| !connection.is_adopted);
            counted.count() >= self.limit.max(1)
        };
        // No principal takes all.
        let share = (spec.config.limits.dedicated_connections / 4).max(MIN_SHARE);
        let is_own = |key: &DedicatedKey, connection: &DedicatedConnection| {
            let is_of_principal = connection.principal == spec.principal;
            is_its(key) && is_of_principal && spec.principal.is_some()
        };
        let has_share = |entries: &Entries| {
            let own = entries
                .iter()
                .filter(|(key, connection)| is_own(key, connection));
            own.count() >= share
        };
        if has_share(entries) {
            evict_idle(entries, is_own);
        }
        if is_crowded(entries) {
            evict_idle(entries, |key, _| is_its(key));
        }
        if is_full(entries) {
            evict_idle(entries, |_, _| true);
        }
        !(has_share(entries) || is_crowded(entries) || is_full(entries))
    }

    fn open(
        self: &Arc<Self>,
        entries: &mut Entries,
        key: DedicatedKey,
        spec: &ConnectSpec<'_>,
    ) -> Result<Arc<DedicatedConnection>, RpcError> {
        let config = spec.config;
        entries.remove(&key);
        if !self.evict_until_fits(entries, spec) {
            warn!(server = config.name, "no dedicated connection is left");
            return Err(RpcError::internal(format!(
                "server `{}` needs a dedicated connection for each client that accepts server requests, and all are in use; \
                 try again later",
                config.name
            )));
        }
        let mut config = config
            .clone()
            .with_capabilities(spec.capabilities)
            .dedicated();
        config.is_pooled = matches!(key.1, Owner::Request(_));
        config.legacy_first = spec.legacy_first;
        let upstream = SupervisedConnection::open_sharing(
            config,
            Arc::clone(spec.concurrency),
            Arc::clone(spec.learned),
        );
        debug!(server = spec.config.name, "dedicated connection opened");
        let connection = self.follow_events(upstream, key, (spec.principal, false));
        entries.insert(key, Arc::clone(&connection));
        Ok(connection)
    }

    /// Adds the connection of a session whose class reads its lists on it, too.
    pub(crate) fn adopt(
        self: &Arc<Self>,
        server: usize,
        session: ClientId,
        upstream: &Arc<SupervisedConnection>,
    ) {
        let key = (server, Owner::Session(session));
        // Its session has one principal.
        let connection = self.follow_events(Arc::clone(upstream), key, (None, true));
        self.lock().insert(key, connection);
    }

    /// Handles the messages that belong to no call, where there is a session to receive them. Between requests without
    /// a session, there is no client.
    fn follow_events(
        &self,
        upstream: Arc<SupervisedConnection>,
        key: DedicatedKey,
        (principal, is_adopted): (Option<PrincipalId>, bool),
    ) -> Arc<DedicatedConnection> {
        let id = ConnectionId::next();
        let stop = CancellationToken::new();
        let session = watch::Sender::new(Weak::new());
        if matches!(key.1, Owner::Session(_)) {
            let listener = EventListener {
                server: upstream.config().name.as_str().into(),
                session: session.subscribe(),
                pending_server_requests: Arc::clone(&self.pending_server_requests),
                observer: Arc::clone(&self.observer),
                connection: (!is_adopted).then_some(id),
                tasks: self.tasks.clone(),
                stop: stop.clone(),
            };
            let listening = listener.listen(upstream.events());
            self.spawn(listening, &stop);
        }
        let is_leased = matches!(key.1, Owner::Request(_));
        let mirror = is_leased.then(|| SubscriptionMirror::of(&upstream));
        if let Some(mirror) = &mirror {
            self.spawn(Arc::clone(mirror).forward(), &stop);
        }
        // If the class reads its lists on the connection, the class follows it.
        let lists = (!is_adopted).then(|| DedicatedLists::new(&upstream, &self.lists));
        if let Some(lists) = &lists {
            self.tasks.spawn(Arc::clone(lists).watch(stop.clone()));
        }
        // The follower of the class forwards these events.
        if !is_adopted {
            let server = upstream.config().name.as_str().into();
            let observer = Arc::clone(&self.observer);
            let forwarding = task_events::follow(server, upstream.events(), observer, || None);
            self.spawn(forwarding, &stop);
        }
        Arc::new(DedicatedConnection {
            id,
            upstream,
            principal,
            is_adopted,
            session,
            mirror,
            lists,
            in_use: AtomicUsize::new(0),
            keep_alive: AtomicUsize::new(0),
            used: LastUse::now(),
            _listening: stop.drop_guard(),
        })
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static, stop: &CancellationToken) {
        let work = stop.clone().run_until_cancelled_owned(work);
        self.tasks.spawn(work);
    }

    /// Sends a notification of a session's client to the servers on its dedicated connections.
    pub(crate) fn notify_servers(&self, session: ClientId, method: &'static str) {
        let entries = self.lock();
        let connection = entries
            .iter()
            .filter(|(key, _)| key.1 == Owner::Session(session));
        // A server that connects later asks for the current state.
        let connected: Vec<_> = connection
            .filter_map(|(_, connection)| connection.upstream.current())
            .collect();
        drop(entries);
        for upstream in connected {
            self.tasks.spawn(async move {
                if let Err(error) = upstream.notify(method, None).await {
                    let (server, error) = (upstream.name(), error.details());
                    debug!(server, method, error, "notification not sent to the server");
                }
            });
        }
    }

    /// Closes the connections of a session or client that has ended.
    pub(crate) fn close_session(&self, client: ClientId) {
        self.lock().retain(|key, connection| {
            key.1 != Owner::Session(client) && !connection.belongs_to(Some(client))
        });
    }

    /// Closes idle connections.
    pub(crate) fn sweep(&self) {
        self.lock().retain(|_, connection| {
            let unused = connection.upstream.config().limits.idle_timeout;
            let is_tainted = connection
                .lists
                .as_ref()
                .is_some_and(|lists| lists.is_tainted());
            let is_listed_from =
                connection.is_adopted && Arc::strong_count(&connection.upstream) > 1;
            let is_recent = !is_tainted && connection.used.elapsed() < unused;
            connection.is_used() || is_listed_from || is_recent
        });
    }

    /// Removes and returns the connections to a server that was removed.
    pub(crate) fn close_server(&self, server: usize) -> Vec<Arc<SupervisedConnection>> {
        let mut entries = self.lock();
        let removed = entries.extract_if(.., |key, _| key.0 == server);
        removed
            .map(|(_, connection)| Arc::clone(&connection.upstream))
            .collect()
    }

    /// Removes and returns all connections.
    pub(crate) fn close_all(&self) -> Vec<Arc<SupervisedConnection>> {
        let entries = std::mem::take(&mut *self.lock());
        entries
            .into_values()
            .map(|connection| Arc::clone(&connection.upstream))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock()
    }
}

/// Closes the connection that has been idle longest, of those for which `may` returns true.
fn evict_idle(entries: &mut Entries, may: impl Fn(&DedicatedKey, &DedicatedConnection) -> bool) {
    let is_idle =
        |connection: &DedicatedConnection| !connection.is_used() && !connection.is_adopted;
    let idle = entries
        .iter()
        .filter(|(key, connection)| may(key, connection) && is_idle(connection));
    let oldest = idle.min_by_key(|(key, connection)| {
        // Connections without a session are closed first.
        (
            matches!(key.1, Owner::Session(_)),
            Reverse(connection.used.elapsed()),
        )
    });
    if let Some(key) = oldest.map(|(key, _)| *key) {
        entries.remove(&key);
    }
}

/// The least share of a principal.
const MIN_SHARE: usize = 2;
