//! Lists of dedicated connections: the items that a server lists only to one client.
//!
//! A server may change its lists only in the session whose call caused the change. When a dedicated connection
//! announces a change, its lists are read there and compared with those of the class. If they are the same, or if the
//! lists of the class have changed, too, nothing else is done. If they differ, the client gets a separate class, which
//! shows the lists of the dedicated connection in place of the shared ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use futures_util::future::BoxFuture;
use mcp_vary_base::lock::{Lock, ScopedLock};
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_upstream::{Event, ServerRequest, SupervisedConnection};
use mcp_vary_wire::client_id::ClientId;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::pool::classes::class::CapabilityClass;
use crate::pool::lists::changes::PendingChanges;
use crate::pool::lists::follower::ListFollower;
use crate::pool::lists::observer::ListObserver;
use crate::pool::lists::pace::{READ_PAUSE, ReadingPace};
use crate::pool::lists::source::ServerSource;

/// Receives what concerns the clients of dedicated connections: their lists, and the messages that servers send outside
/// of calls.
pub(crate) trait ConnectionObserver: ListObserver {
    /// `client` now gets the lists of its dedicated connections, or no longer does.
    fn client_lists_changed<'a>(
        &'a self,
        client: ClientId,
        lists: &'a ClientLists,
    ) -> BoxFuture<'a, ()>;

    /// The clients of `before` now have the connections and lists of `after`.
    fn class_replaced<'a>(
        &'a self,
        before: &'a Arc<CapabilityClass>,
        after: &'a Arc<CapabilityClass>,
        lists: &'a ClientLists,
    ) -> BoxFuture<'a, ()>;

    /// Whether a server request belongs to a task that reports it in its status, so that it is not forwarded.
    fn belongs_to_task(&self, server: &str, request: &ServerRequest) -> bool;

    /// The id by which `client` knows its task with the server's `id`.
    fn task_id(&self, server: &Arc<str>, id: &str, client: ClientId) -> Option<String>;

    /// The params for `client` of progress that a task of it makes; none if it has no such task.
    fn task_progress(&self, client: ClientId, params: &str) -> Option<String>;
}

mcp_vary_base::debug_by_name!(dyn ConnectionObserver);

/// The clients that have separate lists, or may soon.
#[derive(Debug)]
pub(crate) struct ClientLists {
    clients: Lock<BTreeMap<ClientId, Arc<Entry>>>,
    /// The number of clients, so that requests of all others need no lock.
    count: AtomicUsize,
    observer: Arc<dyn ConnectionObserver>,
}

/// The connections of one client whose lists changed.
#[derive(Debug, Default)]
struct Entry {
    connections: ScopedLock<Vec<Arc<DedicatedLists>>>,
    /// The class that shows them.
    class: tokio::sync::Mutex<Option<Arc<CapabilityClass>>>,
}

impl ClientLists {
    pub(super) fn new(observer: Arc<dyn ConnectionObserver>) -> Self {
        Self {
            clients: Lock::default(),
            count: AtomicUsize::new(0),
            observer,
        }
    }

    /// `class` as `client` sees it, with all changes announced on its dedicated connections.
    pub(crate) async fn class_of(
        &self,
        class: Arc<CapabilityClass>,
        client: Option<ClientId>,
    ) -> Arc<CapabilityClass> {
        let Some(entry) = client.and_then(|client| self.entry(client)) else {
            return class;
        };
        let connections = entry.connections.lock().clone();
        for lists in &connections {
            lists.drain().await;
        }
        let is_to = |connection: &SupervisedConnection| {
            let mut sources = class.sources().iter();
            sources.any(|source| connection.has_same_server(&source.connection))
        };
        let followers = connections.iter().filter_map(|lists| lists.follower.get());
        let to_servers = followers.filter(|follower| is_to(&follower.source.connection));
        let dedicated: Vec<_> = to_servers.cloned().collect();
        if dedicated.is_empty() {
            return class;
        }
        let mut known = entry.class.lock().await;
        let is_current = |known: &&Arc<CapabilityClass>| {
            Arc::ptr_eq(known.shared(), class.shared()) && known.shows(&dedicated)
        };
        if let Some(known) = known.as_ref().filter(is_current) {
            return Arc::clone(known);
        }
        let with_dedicated = class.shared().with_dedicated(&dedicated).await;
        *known = Some(Arc::clone(&with_dedicated));
        with_dedicated
    }

    /// Reports that the clients of `before` now have the connections and lists of `after`.
    pub(crate) async fn replace_class(
        &self,
        before: &Arc<CapabilityClass>,
        after: &Arc<CapabilityClass>,
    ) {
        self.observer.class_replaced(before, after, self).await;
    }

    fn entry(&self, client: ClientId) -> Option<Arc<Entry>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.clients.lock().get(&client).cloned()
    }

    fn add(&self, client: ClientId, lists: &Arc<DedicatedLists>) {
        let mut clients = self.clients.lock();
        let entry = clients.entry(client).or_default();
        let mut connections = entry.connections.lock();
        if !connections.iter().any(|known| Arc::ptr_eq(known, lists)) {
            connections.push(Arc::clone(lists));
        }
        drop(connections);
        self.count.store(clients.len(), Ordering::Release);
    }

    /// Removes a connection. Returns the clients that had it.
    fn remove(&self, lists: &Arc<DedicatedLists>) -> Vec<ClientId> {
        let mut clients = self.clients.lock();
        let mut removed = Vec::new();
        clients.retain(|client, entry| {
            let mut connections = entry.connections.lock();
            let before = connections.len();
            connections.retain(|known| !Arc::ptr_eq(known, lists));
            if connections.len() < before {
                removed.push(*client);
            }
            !connections.is_empty()
        });
        self.count.store(clients.len(), Ordering::Release);
        removed
    }
}

/// The lists of one dedicated connection.
#[derive(Debug)]
pub(super) struct DedicatedLists {
    connection: Arc<SupervisedConnection>,
    all: Arc<ClientLists>,
    /// The shared source of the class of the last client.
    shared: ScopedLock<Weak<ServerSource>>,
    /// The client that used it last; none if it cannot be recognized.
    client: ScopedLock<Option<ClientId>>,
    /// Whether an announced change has not been compared yet.
    pending: watch::Sender<bool>,
    /// When the lists were compared last.
    compared: ScopedLock<Option<Instant>>,
    /// Set once the lists differ from the shared ones.
    follower: OnceLock<Arc<ListFollower>>,
}

impl DedicatedLists {
    pub(super) fn new(connection: &Arc<SupervisedConnection>, all: &Arc<ClientLists>) -> Arc<Self> {
        Arc::new(Self {
            connection: Arc::clone(connection),
            all: Arc::clone(all),
            shared: ScopedLock::default(),
            client: ScopedLock::default(),
            pending: watch::Sender::default(),
            compared: ScopedLock::default(),
            follower: OnceLock::new(),
        })
    }

    /// The next request is one of `client`.
    pub(super) fn lease_to(&self, client: Option<ClientId>) {
        *self.client.lock() = client;
    }

    /// The next request is of the class that shares `source`.
    pub(super) fn compare_with(&self, source: &Arc<ServerSource>) {
        *self.shared.lock() = Arc::downgrade(source);
    }

    /// Whether `client` used it last.
    pub(super) fn was_leased_to(&self, client: ClientId) -> bool {
        *self.client.lock() == Some(client)
    }

    /// Whether its lists are those of the class, as far as is known.
    pub(super) fn is_shared(&self) -> bool {
        self.follower.get().is_none() && !*self.pending.borrow()
    }

    /// Whether its lists are for `client` only.
    pub(super) fn belongs_to(&self, client: Option<ClientId>) -> bool {
        !self.is_shared() && client.is_some() && *self.client.lock() == client
    }

    /// Whether its lists differ from the shared ones, but no client can use them.
    pub(super) fn is_tainted(&self) -> bool {
        self.follower.get().is_some() && self.client.lock().is_none()
    }

    /// Compares a list although no change was announced, unless it was just compared. Returns whether it does.
    pub(super) fn suspect(self: &Arc<Self>, client: ClientId, kind: ListKind) -> bool {
        let is_recent = self
            .compared
            .lock()
            .is_some_and(|at| at.elapsed() < READ_PAUSE);
        if is_recent || self.follower.get().is_some() || self.connection.current().is_none() {
            return false;
        }
        self.all.add(client, self);
        self.pending.send_modify(|pending| {
            // Under the lock, so that the watching task does not reset it before.
            self.connection.list_may_have_changed(kind.kind());
            *pending = true;
        });
        true
    }

    /// Waits until all announced changes were compared, or until the timeout.
    async fn drain(&self) {
        let mut pending = self.pending.subscribe();
        let limit = self.connection.config().limits.ready_timeout;
        // After the timeout, the client gets the known lists.
        let _ = tokio::time::timeout(limit, pending.wait_for(|pending| !pending)).await;
    }

    /// Compares the lists whenever the server announces a change. Once they differ, follows them for the client that
    /// has the connection. Ends with `stop`.
    pub(super) async fn watch(self: Arc<Self>, stop: CancellationToken) {
        stop.run_until_cancelled(self.follow()).await;
        for client in self.all.remove(&self) {
            let observer = &self.all.observer;
            observer.client_lists_changed(client, &self.all).await;
        }
    }

    async fn follow(self: &Arc<Self>) {
        let mut events = self.connection.events();
        let Some((source, mut pending)) = self.first_difference(&mut events).await else {
            return;
        };
        let server = source.name();
        info!(server, "a dedicated connection has lists of its own");
        // Changes announced during the comparison are part of the notification below.
        let more = received_changes(&mut events);
        if !more.kinds.is_empty() {
            source.read_now(&more.kinds).await;
        }
        pending.add(more);
        source.lists().take_known(&pending.announced);
        let follower = Arc::new(ListFollower::of(source));
        let follower = self.follower.get_or_init(|| follower);
        self.pending.send_replace(false);
        let client = *self.client.lock();
        if let Some(client) = client {
            let observer = &self.all.observer;
            observer.client_lists_changed(client, &self.all).await;
            follower.follow_on(events, &**observer).await;
        }
    }

    /// Compares the lists whenever the server announces a change, until they differ. Returns them with the last change;
    /// `None` when the connection is closed.
    async fn first_difference(
        self: &Arc<Self>,
        events: &mut broadcast::Receiver<Event>,
    ) -> Option<(ServerSource, PendingChanges)> {
        let mut pace = ReadingPace::new();
        let mut pending = next_list_change(events).await?;
        loop {
            self.pending.send_replace(true);
            let client = *self.client.lock();
            if let Some(client) = client {
                self.all.add(client, self);
            }
            pace.wait().await;
            pending.add_received(events);
            if let Some(source) = self.compare(&pending.kinds).await {
                return Some((source, pending));
            }
            pace.note_reading();
            *self.compared.lock() = Some(Instant::now());
            // Under the lock, as in `suspect`. Requests do not wait for events of other kinds.
            self.pending.send_modify(|is_pending| {
                pending = received_changes(events);
                *is_pending = !pending.kinds.is_empty();
            });
            if pending.kinds.is_empty() {
                self.all.remove(self);
                pending = next_list_change(events).await?;
            }
        }
    }

    /// Reads the lists. Returns them if they differ from those of the class.
    async fn compare(&self, kinds: &BTreeSet<ListKind>) -> Option<ServerSource> {
        let shared = self.shared.lock().upgrade()?;
        let source = ServerSource::dedicated(Arc::clone(&self.connection), &shared);
        source.read_now(kinds).await;
        let differs = || {
            let mut all = kinds.iter();
            all.any(|kind| !source.lists().has_same_items(*kind, shared.lists()))
        };
        // The server may have announced the change to all, and this connection was read first.
        shared.drain().await;
        if !differs() {
            return None;
        }
        shared.suspect(kinds);
        shared.drain().await;
        differs().then_some(source)
    }
}

/// The next changes of lists; `None` when the connection is closed.
async fn next_list_change(events: &mut broadcast::Receiver<Event>) -> Option<PendingChanges> {
    loop {
        let pending = PendingChanges::receive(events).await?;
        if !pending.kinds.is_empty() {
            return Some(pending);
        }
    }
}

/// The changes that have already arrived.
fn received_changes(events: &mut broadcast::Receiver<Event>) -> PendingChanges {
    let mut pending = PendingChanges::default();
    pending.add_received(events);
    pending
}
