//! The dedicated connections to all servers: opened, leased and closed.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use mcp_vary_base::tasks::TaskTracker;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_upstream::{Processes, SupervisedConnection};
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::response::RpcError;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::client_lists::{ClientLists, ConnectionObserver, DedicatedLists};
use super::connection::{ConnectSpec, DedicatedConnection, DedicatedKey, Owner};
use super::lease::DedicatedLease;
use super::listener::EventListener;
use super::mirror::SubscriptionMirror;
use super::table::{DedicatedTable, Entries, evict_until_fits};
use crate::pool::connections::eviction::Setting;
use crate::pool::connections::last_use::LastUse;
use crate::pool::lists::ids::ConnectionId;
use crate::pool::lists::task_events;
use mcp_vary_session::Session;
use mcp_vary_session::pending_server_requests::PendingServerRequests;

/// The dedicated connections to all servers.
#[derive(Debug)]
pub(crate) struct DedicatedPool {
    table: Arc<DedicatedTable>,
    /// For all servers together.
    limit: usize,
    next: AtomicUsize,
    pending_server_requests: Arc<PendingServerRequests>,
    observer: Arc<dyn ConnectionObserver>,
    lists: Arc<ClientLists>,
    tasks: TaskTracker,
}

impl DedicatedPool {
    pub(crate) fn new(
        limit: usize,
        pending_server_requests: Arc<PendingServerRequests>,
        observer: Arc<dyn ConnectionObserver>,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        Arc::new(Self {
            table: Arc::default(),
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
        let entries = self.table.lock();
        let of_client = entries.iter().filter_map(|(key, connection)| {
            let lists = connection.lists.as_ref()?;
            let is_its = key.owner == Owner::Session(client) || lists.was_leased_to(client);
            is_its.then(|| Arc::clone(lists))
        });
        let lists: Vec<_> = of_client.collect();
        drop(entries);
        let suspected = lists.iter().filter(|lists| lists.suspect(client, kind));
        suspected.count() > 0
    }

    /// The number of dedicated connections.
    pub(crate) fn count(&self) -> usize {
        self.table.lock().len()
    }

    /// The number of those to one server.
    pub(crate) fn count_of(&self, server: usize) -> usize {
        let entries = self.table.lock();
        entries.keys().filter(|key| key.server == server).count()
    }

    /// How many there may be.
    pub(crate) const fn limit(&self) -> usize {
        self.limit
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
        &self,
        spec: &ConnectSpec<'_>,
        session: &Arc<Session>,
    ) -> Result<DedicatedLease, RpcError> {
        let key = DedicatedKey {
            server: spec.server.index,
            owner: Owner::Session(session.client),
        };
        let mut entries = self.table.lock();
        // After a reload, a session can have other capabilities; with a new credential, other claims.
        let known = entries.get(&key).filter(|known| known.is_for(spec));
        let connection = match known.cloned() {
            Some(connection) => connection,
            None => self.open(&mut entries, key, spec)?,
        };
        connection.set_session(session);
        Ok(self.lease(key, connection, Some(session.client)))
    }

    /// Leases a connection to a request without a session: an idle one, or a new one. A connection with lists that only
    /// `client` gets is leased to that client only.
    ///
    /// # Errors
    ///
    /// When all are in use.
    pub(crate) fn lease_for_request(
        &self,
        spec: &ConnectSpec<'_>,
        client: Option<ClientId>,
    ) -> Result<DedicatedLease, RpcError> {
        let key = |number| DedicatedKey {
            server: spec.server.index,
            owner: Owner::Request(number),
        };
        let mut entries = self.table.lock();
        let of_requests = entries.range(key(0)..key(usize::MAX));
        let is_free = |it: &DedicatedConnection| {
            !it.is_used() && it.principal == spec.principal && it.is_for(spec)
        };
        let free: Vec<_> = of_requests.filter(|(_, it)| is_free(it)).collect();
        let of_client = free.iter().find(|(_, it)| it.belongs_to(client));
        let found = of_client.or_else(|| free.iter().find(|(_, it)| it.has_shared_lists()));
        if let Some((key, connection)) = found {
            return Ok(self.lease(**key, Arc::clone(connection), client));
        }
        let key = key(self.next_number());
        let connection = self.open(&mut entries, key, spec)?;
        Ok(self.lease(key, connection, client))
    }

    /// Leases the only process of a server, which the class reads its lists on, too.
    pub(crate) fn lease_only_process(
        &self,
        server: usize,
        upstream: &Arc<SupervisedConnection>,
        session: Option<&Arc<Session>>,
    ) -> DedicatedLease {
        let (key, connection) = self.only_process(server, upstream);
        if let Some(session) = session {
            connection.set_session(session);
        }
        self.lease(key, connection, session.map(|session| session.client))
    }

    /// Receives the messages of the only process of a server, also those that belong to no call.
    pub(crate) fn follow_only_process(&self, server: usize, upstream: &Arc<SupervisedConnection>) {
        self.only_process(server, upstream);
    }

    /// The session of the only client, which servers can ask from now on, also outside of its calls.
    pub(crate) fn set_only_session(&self, session: &Arc<Session>) {
        let entries = self.table.lock();
        let only = entries.iter().filter(|(key, _)| key.owner == Owner::All);
        only.for_each(|(_, connection)| connection.set_session(session));
    }

    /// The sessions that receive what `server` sends outside of calls on a connection of their own.
    pub(crate) fn sessions_on(&self, server: &str) -> BTreeSet<ClientId> {
        let entries = self.table.lock();
        let has_listener = |key: &DedicatedKey, it: &DedicatedConnection| {
            let config = it.upstream.config();
            config.name.as_str() == server && is_for_session(*key, config.processes)
        };
        let listening = entries.iter().filter(|(key, it)| has_listener(key, it));
        let sessions = listening.filter_map(|(_, it)| it.session.borrow().upgrade());
        sessions.map(|session| session.client).collect()
    }

    fn only_process(
        &self,
        server: usize,
        upstream: &Arc<SupervisedConnection>,
    ) -> (DedicatedKey, Arc<DedicatedConnection>) {
        let owner = Owner::All;
        let key = DedicatedKey { server, owner };
        let mut entries = self.table.lock();
        let only = entries.get(&key).cloned();
        let known = only.filter(|known| Arc::ptr_eq(&known.upstream, upstream));
        let connection = known.unwrap_or_else(|| {
            let connection = self.follow_events(Arc::clone(upstream), key, None);
            entries.insert(key, Arc::clone(&connection));
            connection
        });
        (key, connection)
    }

    fn lease(
        &self,
        key: DedicatedKey,
        connection: Arc<DedicatedConnection>,
        client: Option<ClientId>,
    ) -> DedicatedLease {
        if let Some(lists) = &connection.lists {
            lists.lease_to(client);
        }
        DedicatedLease::new(connection, key, &self.table)
    }

    fn open(
        &self,
        entries: &mut Entries,
        key: DedicatedKey,
        spec: &ConnectSpec<'_>,
    ) -> Result<Arc<DedicatedConnection>, RpcError> {
        entries.remove(&key);
        evict_until_fits(entries, self.limit, spec)?;
        let declaring = spec.config.clone().with_capabilities(spec.capabilities);
        let mut config = declaring.dedicated();
        config.is_further = true;
        config.is_pooled = matches!(key.owner, Owner::Request(_));
        config.legacy_first = spec.legacy_first;
        let upstream = SupervisedConnection::open_sharing(
            config,
            Arc::clone(&spec.server.concurrency),
            Arc::clone(&spec.server.learned),
        );
        debug!(server = spec.config.name, "dedicated connection opened");
        let setting = Setting {
            name: "dedicated-connections",
            value: spec.config.limits.dedicated_connections,
            advice: "that of `limits`",
        };
        let owner = key.owner.session();
        let mut evictions = spec.server.dedicated_evictions.lock();
        evictions.note_opened(&owner, &spec.config.name, &setting);
        drop(evictions);
        let connection = self.follow_events(upstream, key, Some(spec));
        entries.insert(key, Arc::clone(&connection));
        Ok(connection)
    }

    /// Adds the connection of a session whose class reads its lists on it, too.
    pub(crate) fn adopt(
        &self,
        server: usize,
        session: ClientId,
        upstream: &Arc<SupervisedConnection>,
    ) {
        let key = DedicatedKey {
            server,
            owner: Owner::Session(session),
        };
        let connection = self.follow_events(Arc::clone(upstream), key, None);
        self.table.lock().insert(key, connection);
    }

    /// Handles the messages that belong to no call, where there is a session to receive them. Between requests without
    /// a session, there is no client. An adopted connection has no `spec`: its session has one principal.
    fn follow_events(
        &self,
        upstream: Arc<SupervisedConnection>,
        key: DedicatedKey,
        spec: Option<&ConnectSpec<'_>>,
    ) -> Arc<DedicatedConnection> {
        let is_adopted = spec.is_none();
        let id = ConnectionId::next();
        let stop = CancellationToken::new();
        let session = watch::Sender::new(Weak::new());
        if is_for_session(key, upstream.config().processes) {
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
        let is_leased = matches!(key.owner, Owner::Request(_));
        let mirror = is_leased.then(|| SubscriptionMirror::of(&upstream));
        if let Some(mirror) = &mirror {
            self.spawn(Arc::clone(mirror).forward(), &stop);
        }
        // If the class reads its lists on the connection, the class follows it. If all clients share them, nobody does.
        let has_lists = !is_adopted && !upstream.config().shares_lists();
        let lists = has_lists.then(|| DedicatedLists::new(&upstream, &self.lists));
        if let Some(lists) = &lists {
            self.tasks.spawn(Arc::clone(lists).watch(stop.clone()));
        }
        // The follower of the class forwards these events.
        if !is_adopted {
            let server = upstream.config().name.as_str().into();
            let observer = self.observer.clone();
            let forwarding =
                task_events::follow(server, upstream.events(), observer, None, || false);
            self.spawn(forwarding, &stop);
        }
        Arc::new(DedicatedConnection {
            id,
            upstream,
            principal: spec.and_then(|spec| spec.principal),
            is_adopted,
            session,
            mirror,
            lists,
            in_use: AtomicUsize::new(0),
            keep_alive: AtomicUsize::new(0),
            abandoned: AtomicUsize::new(0),
            has_roots: AtomicBool::new(false),
            evicted: CancellationToken::new(),
            evictions: spec.map(|spec| Arc::clone(&spec.server.dedicated_evictions)),
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
        let entries = self.table.lock();
        let connection = entries.iter().filter(|(key, it)| {
            let is_of_only_client = key.owner == Owner::All && it.is_of_session(session);
            is_of_only_client || key.owner == Owner::Session(session)
        });
        // A server that connects later asks for the current state.
        let connected: Vec<_> = connection
            .filter_map(|(_, connection)| connection.upstream.current())
            .collect();
        drop(entries);
        for upstream in connected {
            self.tasks.spawn(async move {
                if let Err(failure) = upstream.notify(method, None).await {
                    let server = upstream.name();
                    let error = failure.details();
                    debug!(server, method, error, "notification not sent to the server");
                }
            });
        }
    }

    /// Closes the connections of a session or client that has ended.
    pub(crate) fn close_session(&self, client: ClientId) {
        self.table.lock().retain(|key, connection| {
            key.owner != Owner::Session(client) && !connection.belongs_to(Some(client))
        });
    }

    /// Closes idle connections.
    pub(crate) fn sweep(&self) {
        let mut entries = self.table.lock();
        entries.retain(|_, connection| connection.is_kept_open());
    }

    /// Removes and returns the connections to a server that was removed.
    pub(crate) fn close_server(&self, server: usize) -> Vec<Arc<SupervisedConnection>> {
        let mut entries = self.table.lock();
        let removed = entries.extract_if(.., |key, _| key.server == server);
        removed.map(|(_, it)| Arc::clone(&it.upstream)).collect()
    }

    /// Removes and returns all connections.
    pub(crate) fn close_all(&self) -> Vec<Arc<SupervisedConnection>> {
        let entries = std::mem::take(&mut *self.table.lock()).into_values();
        entries.map(|it| Arc::clone(&it.upstream)).collect()
    }
}

/// Whether a session receives what the server sends outside of calls on the connection.
fn is_for_session(key: DedicatedKey, processes: Processes) -> bool {
    match (key.owner, processes) {
        (Owner::Session(_), _) => true,
        (Owner::All, Processes::OneClient { has_session, .. }) => has_session,
        (Owner::All | Owner::Request(_), _) => false,
    }
}
