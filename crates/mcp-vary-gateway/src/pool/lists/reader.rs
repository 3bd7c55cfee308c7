//! Reads the lists of one connection, and stores them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use mcp_vary_catalog::listing::{ListKind, Listing};
use mcp_vary_upstream::{SupervisedConnection, UpstreamConnection, without_server};
use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::list_reading;
use super::pace::READ_PAUSE;
use super::stored_lists::{StoredLists, is_absence};

/// Reads the lists of one connection, each by one reader at a time.
#[derive(Debug)]
pub(super) struct ListReader {
    pub(super) connection: Arc<SupervisedConnection>,
    pub(super) stored: StoredLists,
    /// Each list is locked while it is read, and holds the time of the last reading.
    readings: BTreeMap<ListKind, Mutex<Option<Instant>>>,
    /// The number of views of each list.
    views: AtomicUsize,
}

impl ListReader {
    pub(super) fn new(
        connection: Arc<SupervisedConnection>,
        stored: StoredLists,
        views: usize,
    ) -> Self {
        let kinds = ListKind::ALL.into_iter();
        Self {
            connection,
            stored,
            readings: kinds.map(|kind| (kind, Mutex::default())).collect(),
            views: AtomicUsize::new(views),
        }
    }

    /// The server's name, for the log.
    pub(super) fn server(&self) -> &str {
        &self.connection.config().name
    }

    pub(super) fn views(&self) -> usize {
        self.views.load(Ordering::Relaxed)
    }

    pub(super) fn set_views(&self, views: usize) {
        self.views.store(views, Ordering::Relaxed);
    }

    /// The longest time that a request waits for a list.
    pub(super) fn timeout(&self) -> Duration {
        let limits = &self.connection.config().limits;
        limits.ready_timeout.min(READY_TIMEOUT)
    }

    /// Reads a list, unless another request has just read it. Returns `false` if the server was too slow.
    ///
    /// Only the first request waits then, and not for long. The others get the last known list.
    pub(super) async fn read_unless_recent(&self, kind: ListKind) -> bool {
        let Some(upstream) = self.connection.current() else {
            return true;
        };
        let is_old = |last: Option<Instant>| last.is_none_or(|at| at.elapsed() >= READ_PAUSE);
        let reading = self.read_if(&upstream, kind, is_old);
        let is_read = tokio::time::timeout(self.timeout(), reading).await.is_ok();
        if !is_read {
            warn!(
                server = self.server(),
                list = kind.method(),
                "the server is slow to list; using the last known list"
            );
            self.stored.postpone(kind, 2 * READY_TIMEOUT);
        }
        is_read
    }

    /// Reads lists. Returns those that changed.
    pub(super) async fn read_all(
        &self,
        upstream: &UpstreamConnection,
        kinds: &BTreeSet<ListKind>,
    ) -> BTreeSet<ListKind> {
        let readings = kinds.iter().map(|kind| async {
            let is_changed = self.read_if(upstream, *kind, |_| true).await;
            is_changed.then_some(*kind)
        });
        join_all(readings).await.into_iter().flatten().collect()
    }

    /// Reads a list if the time of its last reading `is_old`. Returns whether it changed.
    pub(super) async fn read_if(
        &self,
        upstream: &UpstreamConnection,
        kind: ListKind,
        is_old: impl FnOnce(Option<Instant>) -> bool,
    ) -> bool {
        let is_offered = self.stored.snapshot().offered().contains(&kind);
        let Some(reading) = is_offered.then(|| self.readings.get(&kind)).flatten() else {
            return false;
        };
        let mut last = reading.lock().await;
        if !is_old(*last) {
            return false;
        }
        let listing = self.read(upstream, kind).await;
        let ttl = self.ttl(upstream, kind, &listing);
        *last = Some(Instant::now());
        let items = listing.as_ref().map(|listing| listing.items.len()).ok();
        let is_changed = self.stored.replace(kind, listing, ttl);
        if is_changed && let Some(items) = items {
            let list = kind.method();
            info!(server = self.server(), list, items, "list read");
        }
        is_changed
    }

    async fn read(
        &self,
        upstream: &UpstreamConnection,
        kind: ListKind,
    ) -> Result<Listing, RpcError> {
        let server = self.server();
        let list = kind.method();
        let limit = self.connection.config().limits.handshake;
        let reading = list_reading::read_list(upstream, kind, self.views());
        let reading = tokio::time::timeout(limit, reading).await;
        let listing = match reading {
            Ok(listing) => listing.map_err(RpcError::from),
            Err(_elapsed) => {
                let seconds = limit.as_secs();
                let why = format!("server `{server}` did not respond to {list} within {seconds} s");
                Err(RpcError::internal(why))
            }
        };
        match &listing {
            Ok(listing) => debug!(server, list, items = listing.items.len(), "list received"),
            Err(failure) if is_absence(kind, failure) => debug!(server, list, "no such list"),
            Err(failure) => {
                let error = upstream.without_secrets(failure.message());
                let error = without_server(&error, server);
                warn!(server, list, error, "list not read");
            }
        }
        listing
    }

    /// Stores a list that the server does not declare.
    pub(super) async fn store_undeclared(
        &self,
        upstream: &UpstreamConnection,
        kind: ListKind,
        listing: Result<Listing, RpcError>,
    ) {
        let ttl = self.ttl(upstream, kind, &listing);
        if let Some(last) = self.readings.get(&kind) {
            *last.lock().await = Some(Instant::now());
        }
        self.stored.replace(kind, listing, ttl);
    }

    /// The time for which a list can be used without being read again: unlimited if the server announces changes;
    /// otherwise the `ttlMs` of a modern server, or `list-ttl` unless that is zero.
    ///
    /// > In this case, the client relies entirely on TTL-based freshness.
    /// > (MCP 2026-07-28, server/utilities/caching, "Interaction with Notifications")
    fn ttl(
        &self,
        upstream: &UpstreamConnection,
        kind: ListKind,
        listing: &Result<Listing, RpcError>,
    ) -> Option<Duration> {
        let Ok(listing) = listing else {
            return Some(READ_PAUSE);
        };
        let handshake: &Handshake = upstream.handshake();
        if handshake.has_capability_flag(kind.capability(), "listChanged") {
            return None;
        }
        let announced = listing.ttl.filter(|_| handshake.era() == Era::Modern);
        let list_ttl = self.connection.config().limits.list_ttl;
        let configured = (!list_ttl.is_zero()).then_some(list_ttl);
        announced.or(configured).map(|ttl| ttl.max(READ_PAUSE))
    }
}

/// The longest time that a request waits for a list; less if the server's `ready-timeout` is shorter.
const READY_TIMEOUT: Duration = Duration::from_secs(5);
