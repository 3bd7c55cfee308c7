//! The lists of one server: read when it connects, and again when it announces a change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use mcp_vary::error_code::METHOD_NOT_FOUND;
use mcp_vary::variant::VariantId;
use mcp_vary_catalog::listing::{ListKind, Listing};
use mcp_vary_catalog::merge::ServerListing;
use mcp_vary_catalog::server_snapshot::ServerSnapshot;
use mcp_vary_catalog::shared::SharedLists;
use mcp_vary_upstream::{
    CONNECT_TARGET, ConnectError, ConnectionState, Subscription, SupervisedConnection,
    UpstreamConnection,
};
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::sanitize::excerpt;
use tokio::time::timeout;
use tracing::warn;

use super::ids::ConnectionId;
use super::progress::ReadingProgress;
use super::reader::ListReader;
use super::revalidation::Revalidation;
use super::stored_lists::{StoredLists, is_expired};

/// One server as the clients of one class see it.
#[derive(Debug)]
pub(crate) struct ServerSource {
    /// Identifies it as the source of resource updates.
    pub(crate) id: ConnectionId,
    /// The server's name in the configuration.
    pub(crate) name: Arc<str>,
    pub(crate) connection: Arc<SupervisedConnection>,
    /// Reads its lists: on its connection, or on another one whose lists it shares.
    pub(super) reader: Arc<ListReader>,
    pub(super) progress: Arc<ReadingProgress>,
    pub(super) revalidation: Arc<Revalidation>,
}

impl ServerSource {
    pub(crate) fn new(connection: Arc<SupervisedConnection>, shared: Arc<SharedLists>) -> Self {
        let mut snapshot = ServerSnapshot::default();
        if let Some(refusal) = refusal(&connection) {
            let lists = ListKind::ALL.into_iter();
            snapshot.listings = lists.map(|kind| (kind, Err(refusal.clone()))).collect();
        }
        let name = connection.config().name.as_str().into();
        let stored = StoredLists::new(name, Arc::new(snapshot), shared);
        Self::with_lists(connection, stored, 1)
    }

    /// The source of a dedicated connection to the server of `shared`: it has the same lists until it is
    /// [read](Self::read_now).
    pub(crate) fn dedicated(connection: Arc<SupervisedConnection>, shared: &Self) -> Self {
        let reader = &shared.reader;
        Self::with_lists(connection, reader.stored.copy(), reader.views())
    }

    fn with_lists(
        connection: Arc<SupervisedConnection>,
        stored: StoredLists,
        views: usize,
    ) -> Self {
        Self {
            id: ConnectionId::next(),
            name: connection.config().name.as_str().into(),
            reader: Arc::new(ListReader::new(Arc::clone(&connection), stored, views)),
            connection,
            progress: Arc::default(),
            revalidation: Arc::default(),
        }
    }

    /// The source of a connection that is called, and shows the lists of `other`.
    pub(super) fn with_lists_of(other: &Self, connection: Arc<SupervisedConnection>) -> Self {
        Self {
            id: ConnectionId::next(),
            name: Arc::clone(&other.name),
            connection,
            reader: Arc::clone(&other.reader),
            progress: Arc::clone(&other.progress),
            revalidation: Arc::clone(&other.revalidation),
        }
    }

    /// Whether its lists are read on another connection.
    pub(super) fn shares_lists(&self) -> bool {
        !Arc::ptr_eq(&self.connection, &self.reader.connection)
    }

    /// The server's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Why the client of the connection cannot use the server; `None` for an ordinary connection.
    pub(crate) fn refusal(&self) -> Option<RpcError> {
        refusal(&self.connection).or_else(|| self.client_refusal())
    }

    /// Why the server was never connected to with the credentials of the client.
    fn client_refusal(&self) -> Option<RpcError> {
        self.connection.config().client_credentials.as_ref()?;
        let snapshot = self.snapshot();
        if snapshot.handshake.is_some() {
            return None;
        }
        let mut listings = snapshot.listings.values();
        listings.find_map(|listing| listing.as_ref().err().cloned())
    }

    /// Whether clients can use it: the server is connected, or is connected to for each client.
    pub(crate) fn is_usable(&self) -> bool {
        self.connection.current().is_some() || self.connection.config().refusal.is_some()
    }

    /// Whether a stream may promise notifications by this subscription: unless the server refuses now.
    pub(crate) async fn may_honor(&self, subscription: &Subscription) -> bool {
        if self.connection.current().is_none() {
            // The subscription is sent as soon as the server is connected.
            return true;
        }
        let limit = self.connection.config().limits.ready_timeout;
        let settled = timeout(limit, subscription.settled());
        !matches!(settled.await, Ok(Err(_)))
    }

    /// The variants that the server offers itself, best first; none if the configuration selects one of them.
    pub(crate) fn offered_variants(&self) -> Vec<VariantId> {
        let is_selected = self.connection.config().variant.is_some();
        match &self.snapshot().handshake {
            Some(handshake) if !is_selected => handshake.offered_variants(),
            _ => Vec::new(),
        }
    }

    /// Whether the server negotiates content itself and offers no variants, and gets no feature tags of clients.
    pub(crate) fn lacks_feature_tags(&self) -> bool {
        let config = self.connection.config();
        let snapshot = self.snapshot();
        let handshake = snapshot.handshake.as_ref();
        handshake
            .filter(|_| !config.passthrough && config.variant.is_none())
            .is_some_and(|it| it.negotiates_content() && it.offered_variants().is_empty())
    }

    /// The lists that were read last.
    pub(crate) fn lists(&self) -> &StoredLists {
        &self.reader.stored
    }

    /// The handshake and the lists that were read last.
    pub(crate) fn snapshot(&self) -> Arc<ServerSnapshot> {
        self.lists().snapshot()
    }

    /// Why lists could not be read at the last attempt, by their methods, for the operator: without secrets. Empty without a
    /// connection: its state has the reason then. A server that does not know the method has not failed, except for
    /// `tools/list`: some servers declare prompts or resources without having any.
    pub(crate) fn failed_lists(&self) -> BTreeMap<&'static str, String> {
        let Some(upstream) = self.reader.connection.current() else {
            return BTreeMap::new();
        };
        let snapshot = self.snapshot();
        let is_lacking = |kind: &ListKind, failure: &RpcError| {
            *kind != ListKind::Tools && failure.code() == METHOD_NOT_FOUND
        };
        let errors = snapshot.read_errors.iter();
        let failed = errors.filter(|(kind, failure)| !is_lacking(kind, failure));
        let named = format!("server `{}` ", self.reader.server());
        let shown = |failure: &RpcError| {
            let message = upstream.without_secrets(failure.message());
            let why = message
                .strip_prefix(&named)
                .map(|what| format!("it {what}"))
                .unwrap_or(message);
            excerpt(why.as_bytes(), MAX_REASON_LENGTH)
        };
        failed
            .map(|(kind, failure)| (kind.method(), shown(failure)))
            .collect()
    }

    /// What is wrong with listed items, in sentences for the operator.
    pub(crate) fn list_faults(&self) -> Vec<String> {
        let snapshot = self.snapshot();
        let listings = snapshot.listings.iter();
        let readable = listings.filter_map(|(kind, list)| Some((*kind, list.as_ref().ok()?)));
        let faults = readable.flat_map(|(kind, list)| list.faults.sentences(kind));
        faults.collect()
    }

    /// The server's list of one kind.
    pub(crate) fn listing(&self, kind: ListKind) -> ServerListing {
        let snapshot = self.snapshot();
        ServerListing {
            server: Arc::clone(&self.name),
            server_era: snapshot.era(),
            was_connected: snapshot.handshake.is_some(),
            listing: snapshot.listings.get(&kind).cloned(),
        }
    }

    /// Whether `listing` is the list that was read last, and has not expired.
    pub(crate) fn is_latest(&self, kind: ListKind, listing: &Arc<Listing>) -> bool {
        !self.progress.has_pending() && self.lists().is_latest(kind, listing)
    }

    /// Whether the known list can be used. An expired list can: it is read again in the background, and clients are
    /// notified if it changed.
    pub(crate) fn is_fresh(&self, kind: ListKind) -> bool {
        if self.progress.has_pending() {
            return false;
        }
        let snapshot = self.snapshot();
        if !is_expired(&snapshot, kind) {
            return true;
        }
        let is_known = matches!(snapshot.listings.get(&kind), Some(Ok(_)));
        if is_known {
            self.revalidation.add_stale(kind);
        }
        is_known
    }

    /// Reads a list for a request, unless another one has just read it. If the server is too slow for the request, the list
    /// is read in the background: else it would never be known.
    pub(super) async fn read_unless_recent(&self, kind: ListKind) {
        if !self.reader.read_unless_recent(kind).await {
            self.revalidation.add_stale(kind);
        }
    }

    /// Waits until all announced changes are read, or until the timeout.
    pub(crate) async fn drain(&self) {
        if !self.progress.drained(self.reader.timeout()).await {
            let server = self.name();
            warn!(
                server,
                "lists are still being read again; using the last known ones"
            );
        }
    }

    /// Reads lists again although the server announced no change on this connection: at once, or after the pause
    /// between two readings. [`drain`](Self::drain) waits for it.
    pub(crate) fn suspect(&self, kinds: &BTreeSet<ListKind>) {
        let changed: BTreeSet<_> = kinds.iter().map(|kind| kind.kind()).collect();
        self.progress.announce(|| {
            for kind in changed {
                self.reader.connection.list_may_have_changed(kind);
            }
        });
    }

    /// Reads lists on a connection without a follower, for a caller that knows that they changed.
    pub(crate) async fn read_now(&self, kinds: &BTreeSet<ListKind>) {
        let Some(upstream) = self.connection.current() else {
            return;
        };
        self.note_connected(&upstream);
        self.reader.read_all(&upstream, kinds).await;
    }

    /// Records a new connection. Returns the lists that changed with it.
    pub(super) fn note_connected(&self, upstream: &UpstreamConnection) -> BTreeSet<ListKind> {
        let undeclared = |before: &ServerSnapshot| self.known_undeclared(before);
        self.lists().connect(upstream.handshake(), undeclared)
    }

    /// What is known about undeclared lists on a new connection. Lists that the server had `before`, in another
    /// version, are requested again.
    fn known_undeclared(&self, before: &ServerSnapshot) -> BTreeMap<ListKind, bool> {
        let learned = self.connection.server_facts().undeclared_methods().all();
        let all = ListKind::ALL.into_iter();
        let decided = all.filter_map(|kind| Some((kind, *learned.get(kind.method())?)));
        let known: BTreeMap<_, _> = decided.collect();
        let undeclared = before.undeclared.iter().filter(|(_, has)| **has);
        let found = undeclared.map(|(kind, _)| *kind);
        let unknown = found.filter(|kind| !known.contains_key(kind));
        self.revalidation.add_requested(unknown);
        known
    }

    /// Whether the first attempt to connect is still running.
    pub(crate) fn is_starting(&self) -> bool {
        let is_connecting = matches!(
            *self.connection.state().borrow(),
            ConnectionState::Connecting
        );
        is_connecting && self.snapshot().handshake.is_none()
    }

    /// Waits until the server's lists were read for the first time.
    ///
    /// # Errors
    ///
    /// When the first attempt to connect fails.
    pub(crate) async fn first_reading(&self) -> Result<(), ConnectError> {
        if let Err(error) = self.reader.connection.first_attempt().await {
            self.note_refusal();
            return Err(error);
        }
        // If the follower has stopped, closing the connection reports it better.
        self.progress.first_reading().await;
        Ok(())
    }

    /// Records that the server refuses its client, or the gateway, if there was never a connection: its lists are not
    /// empty, but unknown.
    pub(super) fn note_refusal(&self) {
        if self.snapshot().handshake.is_some() {
            return;
        }
        let connection = &self.reader.connection;
        let is_of_client = connection.config().client_credentials.is_some();
        let state = connection.state();
        if let ConnectionState::Disconnected { error, .. } = &*state.borrow()
            && (error.is_unauthorized() || is_of_client)
        {
            let failure = RpcError::internal(error.client_message());
            self.lists().fail(&failure);
        }
    }

    /// Waits until the server has connected, after any number of attempts, and its lists were read. Returns `false` if
    /// it is closed before.
    pub(crate) async fn first_connection(&self) -> bool {
        let mut state = self.connection.state();
        tokio::select! {
            is_read = self.progress.first_reading() => is_read,
            _closed = state.wait_for(|state| matches!(state, ConnectionState::Closed)) => false,
        }
    }

    /// Waits until the connection is of the era that its clients prefer, or cannot be, and until its lists were read.
    pub(crate) async fn in_preferred_era(&self) {
        self.connection.wait_for_preferred_era().await;
        let Some(upstream) = self.connection.current() else {
            return;
        };
        let is_read = || {
            let snapshot = self.snapshot();
            let handshake = snapshot.handshake.as_ref();
            handshake.is_some_and(|handshake| handshake.revision == upstream.handshake().revision)
        };
        self.progress.settled(is_read).await;
    }
}

/// The most characters of an error that a server may have written.
pub(crate) const MAX_REASON_LENGTH: usize = 300;

/// Why the server of this connection is never connected to.
fn refusal(connection: &SupervisedConnection) -> Option<RpcError> {
    let refusal = connection.config().refusal.as_ref()?;
    Some(RpcError::internal(refusal.client_message()))
}

/// Waits until each server's lists were read or its connection failed, or for `limit`.
pub(crate) async fn first_readings(sources: &[Arc<ServerSource>], limit: Duration) {
    let readings = sources.iter().map(|source| source.first_reading());
    let readings = timeout(limit, join_all(readings)).await;
    if readings.is_err() {
        let is_late = |source: &&Arc<ServerSource>| source.snapshot().handshake.is_none();
        for source in sources.iter().filter(is_late) {
            let server = source.name();
            warn!(target: CONNECT_TARGET, server, "not ready yet; the others do not wait for it");
        }
    }
}
