//! The lists of one server: read when it connects, and again when it announces a change.

use mcp_vary_base::lock::Lock;
use mcp_vary_catalog::server_snapshot::ServerSnapshot;

mod changes;
mod pace;
mod reading;
mod undeclared;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use mcp_vary::variant::VariantId;
use tokio::sync::{Mutex, Notify, broadcast, watch};
use tokio::time::Instant;
use tracing::warn;

pub(crate) use self::changes::{Changes, ResourceUpdates};
pub(super) use self::changes::{PendingChanges, also_received, received};
pub(crate) use self::pace::ReadingPace;
use self::undeclared::Requested;
use super::connection_id::ConnectionId;
use mcp_vary_catalog::listing::{ListKind, Listing};
use mcp_vary_catalog::merge::ServerListing;
use mcp_vary_catalog::shared::SharedLists;
use mcp_vary_upstream::{
    CONNECT_TARGET, ConnectError, ConnectionState, Event, SupervisedConnection,
};
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::response::RpcError;

/// One server as the clients of one class see it.
#[derive(Debug)]
pub(crate) struct ServerSource {
    /// Identifies it as the source of resource updates.
    pub(crate) id: ConnectionId,
    /// The server's name in the configuration; `<server>/<id>` for a variant that the server offers itself.
    pub(crate) name: Arc<str>,
    /// The server's name in the configuration, which access rules, limits and names go by.
    pub(crate) server_name: Arc<str>,
    pub(crate) connection: Arc<SupervisedConnection>,
    snapshot: ArcSwap<ServerSnapshot>,
    following: watch::Sender<Following>,
    /// Each list is locked while it is read, and holds the time of the last reading.
    readings: BTreeMap<ListKind, Mutex<Option<Instant>>>,
    /// Held while a list is replaced.
    updating: Lock<()>,
    /// The number of views of each list.
    views: AtomicUsize,
    shared: Arc<SharedLists>,
    /// The lists to read again although no change was announced.
    stale: Lock<BTreeSet<ListKind>>,
    /// The lists that were found to have changed before the server announced it.
    unannounced: Lock<BTreeSet<Kind>>,
    revalidate: Notify,
    /// The lists that clients requested although the server does not declare them.
    requested: Lock<Requested>,
}

/// The progress of following a server's announcements.
#[derive(Clone, Copy, Debug, Default)]
struct Following {
    /// Whether an announced change has not been read yet.
    pending: bool,
    /// Whether a request has waited for it until the timeout.
    late: bool,
    /// The number of readings of announced changes.
    readings: u64,
}

/// The longest time that a request waits for a list; less if the server's `ready-timeout` is shorter.
const READY_TIMEOUT: Duration = Duration::from_secs(5);
/// The shortest time between two readings of a list.
pub(crate) const READ_PAUSE: Duration = Duration::from_secs(1);

impl ServerSource {
    pub(crate) fn new(connection: Arc<SupervisedConnection>, shared: Arc<SharedLists>) -> Self {
        let mut snapshot = ServerSnapshot::default();
        if let Some(refusal) = refusal(&connection) {
            let lists = ListKind::ALL.into_iter();
            snapshot.listings = lists.map(|kind| (kind, Err(refusal.clone()))).collect();
        }
        Self {
            id: ConnectionId::next(),
            name: connection.config().name.as_str().into(),
            server_name: connection.config().server_name().into(),
            connection,
            snapshot: ArcSwap::from_pointee(snapshot),
            following: watch::Sender::default(),
            readings: ListKind::ALL
                .into_iter()
                .map(|kind| (kind, Mutex::default()))
                .collect(),
            updating: Lock::default(),
            views: AtomicUsize::new(1),
            shared,
            stale: Lock::default(),
            unannounced: Lock::default(),
            revalidate: Notify::new(),
            requested: Lock::default(),
        }
    }

    /// Why the server is never connected to; `None` for an ordinary connection.
    pub(crate) fn refusal(&self) -> Option<RpcError> {
        refusal(&self.connection)
    }

    /// Whether clients can use it: the server is connected, or is connected to for each client.
    pub(crate) fn is_usable(&self) -> bool {
        self.connection.current().is_some() || self.connection.config().refusal.is_some()
    }

    /// The source of a dedicated connection to the server of `shared`: it has the same lists until it is
    /// [read](Self::read_now).
    pub(crate) fn dedicated(connection: Arc<SupervisedConnection>, shared: &Self) -> Self {
        let source = Self::new(connection, Arc::clone(&shared.shared));
        source.set_views(shared.views.load(Ordering::Relaxed));
        source.snapshot.store(shared.snapshot());
        source
    }

    /// Shows the lists of `known` until this connection is open. Returns whether it is not open yet and `known` has
    /// lists.
    pub(crate) fn show_until_connected(&self, known: &Self) -> bool {
        let _replacing = self.replacing();
        let known = known.snapshot();
        let is_shown = self.snapshot.load().handshake.is_none() && known.handshake.is_some();
        if is_shown {
            self.snapshot.store(known);
        }
        is_shown
    }

    /// Sets the number of views of its lists.
    pub(crate) fn set_views(&self, views: usize) {
        self.views.store(views, Ordering::Relaxed);
    }

    /// The variants that the server offers itself, and that clients cannot select; none if the configuration selects one
    /// of them.
    pub(crate) fn upstream_variants(&self) -> Vec<VariantId> {
        let config = self.connection.config();
        let selected = config.variant.is_some() || config.passthrough.is_some();
        let snapshot = self.snapshot();
        let handshake = snapshot.handshake.as_ref().filter(|_| !selected);
        handshake.map_or_else(Vec::new, |handshake| handshake.offered_variants())
    }

    /// Whether the server negotiates content itself and offers no variants, and gets no feature tags of clients.
    pub(crate) fn lacks_feature_tags(&self) -> bool {
        let config = self.connection.config();
        let snapshot = self.snapshot();
        let handshake = snapshot.handshake.as_ref();
        handshake
            .filter(|_| config.passthrough.is_none() && config.variant.is_none())
            .is_some_and(|it| it.negotiates_content() && it.offered_variants().is_empty())
    }

    /// Whether it has the lists of a variant that the server offers itself.
    pub(crate) fn is_upstream_variant(&self) -> bool {
        self.connection.config().variant_of.is_some()
    }

    /// The server's name, or that of its variant: `<server>/<id>`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn snapshot(&self) -> Arc<ServerSnapshot> {
        self.snapshot.load_full()
    }

    /// Sets the server's log level; see [`SupervisedConnection::set_log_level`].
    pub(crate) async fn set_log_level(&self, level: u8) -> Result<(), RpcError> {
        self.connection.set_log_level(level).await
    }

    /// The same for one call; see [`SupervisedConnection::set_log_level_if_supported`].
    pub(crate) async fn set_log_level_if_supported(&self, level: u8) {
        self.connection.set_log_level_if_supported(level).await;
    }

    /// The server's list of one kind.
    pub(crate) fn listing(&self, kind: ListKind) -> ServerListing {
        let snapshot = self.snapshot.load();
        ServerListing {
            server: Arc::clone(&self.server_name),
            upstream_variant: self.is_upstream_variant().then(|| Arc::clone(&self.name)),
            server_traits: snapshot.traits(),
            was_connected: snapshot.handshake.is_some(),
            listing: snapshot.listings.get(&kind).cloned(),
        }
    }

    /// Whether the server's list differs from `then`.
    pub(crate) fn differs_from(
        &self,
        kind: ListKind,
        then: Option<&Result<Arc<Listing>, RpcError>>,
    ) -> bool {
        match (self.snapshot.load().listings.get(&kind), then) {
            (Some(Ok(now)), Some(Ok(then))) => !Arc::ptr_eq(now, then),
            (Some(Err(now)), Some(Err(then))) => now != then,
            (None, None) => false,
            _ => true,
        }
    }

    /// Whether both have the same items in a list; other parts of the result may differ.
    pub(crate) fn has_same_items(&self, kind: ListKind, other: &Self) -> bool {
        let (one, other) = (self.snapshot(), other.snapshot());
        match (one.listings.get(&kind), other.listings.get(&kind)) {
            (Some(Ok(one)), Some(Ok(other))) => one.items == other.items,
            // If a list could not be read, nothing is known about its items.
            _ => true,
        }
    }

    /// Reads lists again although the server announced no change on this connection: at once, or after the pause
    /// between two readings. [`drain`](Self::drain) waits for it.
    pub(crate) fn suspect(&self, kinds: &BTreeSet<ListKind>) {
        let kinds: BTreeSet<_> = kinds.iter().map(|kind| kind.kind()).collect();
        self.following.send_if_modified(|now| {
            // Under the lock, so that the follower sees both changes or neither.
            for kind in kinds {
                self.connection.list_may_have_changed(kind);
            }
            let was_pending = std::mem::replace(&mut now.pending, true);
            !was_pending
        });
    }

    /// Reads lists on a connection without a [follower](Self::follow), for a caller that knows that they changed.
    pub(crate) async fn read_now(&self, kinds: &BTreeSet<ListKind>) {
        let Some(upstream) = self.connection.current() else {
            return;
        };
        self.on_connected(&upstream);
        self.read_all(&upstream, kinds).await;
    }

    /// Whether the first attempt to connect is still running.
    pub(crate) fn is_starting(&self) -> bool {
        let is_connecting = matches!(
            *self.connection.state().borrow(),
            ConnectionState::Connecting
        );
        is_connecting && self.snapshot.load().handshake.is_none()
    }

    /// Waits until the server's lists were read for the first time.
    ///
    /// # Errors
    ///
    /// When the first attempt to connect fails.
    pub(crate) async fn first_reading(&self) -> Result<(), ConnectError> {
        self.connection.first_attempt().await?;
        let mut following = self.following.subscribe();
        // An error means that the follower has stopped. Closing the connection reports it better.
        let _ = following.wait_for(|now| now.readings > 0).await;
        Ok(())
    }

    /// Waits until the server has connected, after any number of attempts, and its lists were read. Returns `false` if
    /// it is closed before.
    pub(crate) async fn first_connection(&self) -> bool {
        let mut following = self.following.subscribe();
        let mut state = self.connection.state();
        tokio::select! {
            read = following.wait_for(|now| now.readings > 0) => read.is_ok(),
            _closed = state.wait_for(|state| matches!(state, ConnectionState::Closed)) => false,
        }
    }

    /// Waits until the connection is of the era that its clients prefer, or cannot be, and until its lists were read.
    pub(crate) async fn in_preferred_era(&self) {
        self.connection.wait_for_preferred_era().await;
        let Some(upstream) = self.connection.current() else {
            return;
        };
        let mut following = self.following.subscribe();
        let is_met = |now: &Following| {
            let handshake = self.snapshot.load().handshake.clone();
            !now.pending
                && handshake
                    .is_some_and(|handshake| handshake.revision == upstream.handshake().revision)
        };
        // An error means that the follower has stopped.
        let _ = following.wait_for(is_met).await;
    }

    /// Whether `listing` is the list that was read last, and has not expired.
    pub(crate) fn is_latest(&self, kind: ListKind, listing: &Arc<Listing>) -> bool {
        if self.has_pending_changes() {
            return false;
        }
        let snapshot = self.snapshot.load();
        let expires = snapshot.expires_at.get(&kind);
        matches!(snapshot.listings.get(&kind), Some(Ok(latest)) if Arc::ptr_eq(latest, listing))
            && expires.is_none_or(|expires| Instant::now().into_std() < *expires)
    }

    /// Whether the server has announced changes that are not read yet. Requests do not wait for a late reader.
    fn has_pending_changes(&self) -> bool {
        let following = *self.following.borrow();
        following.pending && !following.late
    }

    /// Whether the known list can be used. An expired list can: it is read again in the background, and clients are
    /// notified if it changed.
    pub(crate) fn is_fresh(&self, kind: ListKind) -> bool {
        if self.has_pending_changes() {
            return false;
        }
        let snapshot = self.snapshot.load();
        let expires = snapshot.expires_at.get(&kind);
        if expires.is_none_or(|expires| Instant::now().into_std() < *expires) {
            return true;
        }
        let is_known = matches!(snapshot.listings.get(&kind), Some(Ok(_)));
        if is_known && self.stale().insert(kind) {
            self.revalidate.notify_one();
        }
        is_known
    }

    fn stale(&self) -> std::sync::MutexGuard<'_, BTreeSet<ListKind>> {
        self.stale.lock()
    }

    /// Waits until all announced changes are read, or until the timeout.
    ///
    /// If a server announces changes without end, this returns after two readings: the second one began after the call.
    /// If a server is slow, only the first caller waits.
    pub(crate) async fn drain(&self) {
        let mut following = self.following.subscribe();
        let before = following.borrow().readings;
        let settled =
            following.wait_for(|now| !now.pending || now.late || now.readings >= before + 2);
        if tokio::time::timeout(self.list_timeout(), settled)
            .await
            .is_err()
        {
            let server = self.name();
            warn!(
                server,
                "lists are still being read again; using the last known ones"
            );
            self.following.send_modify(|now| now.late = now.pending);
        }
    }

    /// Follows the connection and the server's announcements until it is closed. `changed` gets the lists and resources
    /// that changed.
    ///
    /// A changed list is read at once. After a few of them, the next change is read after a pause, together with all that
    /// arrived meanwhile, so that a server that announces without end costs little. Resource updates that arrive after a list change are
    /// reported after it.
    pub(crate) async fn follow<F>(&self, changed: impl FnMut(Changes) -> F)
    where
        F: Future<Output = ()>,
    {
        let events = self.connection.events();
        // A connection that other classes share may be open already.
        let next = self
            .connection
            .current()
            .map(|_| PendingChanges::of(&Event::Connected));
        self.follow_after(next, events, changed).await;
    }

    /// The same for a connection whose lists have been [read](Self::read_now), with the events since then.
    pub(crate) async fn follow_on<F>(
        &self,
        events: broadcast::Receiver<Event>,
        changed: impl FnMut(Changes) -> F,
    ) where
        F: Future<Output = ()>,
    {
        self.follow_after(None, events, changed).await;
    }

    async fn follow_after<F>(
        &self,
        mut next: Option<PendingChanges>,
        mut events: broadcast::Receiver<Event>,
        mut changed: impl FnMut(Changes) -> F,
    ) where
        F: Future<Output = ()>,
    {
        let mut pace = ReadingPace::new();
        loop {
            let news = match next.take() {
                Some(news) => Some(news),
                None => tokio::select! {
                    biased;
                    news = received(&mut events) => news,
                    () = self.revalidate.notified() => {
                        if let Some(changes) = self.revalidate().await {
                            changed(changes).await;
                        }
                        pace.note_reading();
                        continue;
                    }
                },
            };
            let Some(news) = news else {
                return self.following.send_modify(|now| now.pending = false);
            };
            if news.kinds.is_empty() && !news.reconnected {
                self.following.send_modify(|now| now.pending = false);
                if !news.updates.is_empty() {
                    changed(Changes::of(news.updates)).await;
                }
                continue;
            }
            self.following.send_modify(|now| now.pending = true);
            pace.wait().await;
            let news = also_received(&mut events, news);
            let lists = self.read_again(&news).await;
            let known = self.note_announced(&news);
            let mut changes = Changes::found(lists, news);
            changes.announced.retain(|kind| !known.contains(kind));
            if !changes.is_none() {
                changed(changes).await;
            }
            pace.note_reading();
            self.following.send_modify(|now| {
                now.pending = !events.is_empty();
                now.late = false;
                now.readings += 1;
            });
        }
    }

    /// Returns those of the announced lists whose change was found before: clients have been notified of it.
    pub(super) fn note_announced(&self, news: &PendingChanges) -> BTreeSet<Kind> {
        let mut unannounced = self.unannounced.lock();
        let known = news.announced.iter().copied();
        known.filter(|kind| unannounced.remove(kind)).collect()
    }

    /// Reads the expired lists again, while requests use the known ones. Returns what changed.
    async fn revalidate(&self) -> Option<Changes> {
        let kinds = self.stale().clone();
        let mut lists = match self.connection.current() {
            Some(upstream) => self.read_all(&upstream, &kinds).await,
            None => BTreeSet::new(),
        };
        lists.extend(self.take_found());
        self.stale().retain(|kind| !kinds.contains(kind));
        let changes = Changes {
            lists,
            announced: BTreeSet::new(),
            updates: ResourceUpdates::default(),
        };
        (!changes.is_none()).then_some(changes)
    }

    fn replacing(&self) -> std::sync::MutexGuard<'_, ()> {
        self.updating.lock()
    }
}

/// Why the server of this connection is never connected to.
fn refusal(connection: &SupervisedConnection) -> Option<RpcError> {
    let refusal = connection.config().refusal.as_ref()?;
    Some(RpcError::internal(refusal.client_message()))
}

/// Waits until each server's lists were read or its connection failed, or for `limit`.
pub(crate) async fn first_readings(sources: &[Arc<ServerSource>], limit: Duration) {
    let readings = sources.iter().map(|source| source.first_reading());
    if tokio::time::timeout(limit, join_all(readings))
        .await
        .is_err()
    {
        let late = |source: &&Arc<ServerSource>| source.snapshot().handshake.is_none();
        for source in sources.iter().filter(late) {
            let server = source.name();
            warn!(target: CONNECT_TARGET, server, "not ready yet; the others do not wait for it");
        }
    }
}
