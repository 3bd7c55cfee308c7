//! Reads the lists of one server, and replaces the previous ones.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use mcp_vary::error_code::METHOD_NOT_FOUND;
use mcp_vary_catalog::listing::{ListKind, Listing};
use mcp_vary_catalog::server_snapshot::ServerSnapshot;
use mcp_vary_upstream::{UpstreamConnection, without_server};
use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::changes::PendingChanges;
use super::{READ_PAUSE, READY_TIMEOUT, ServerSource};
use crate::pool::list_reading;

impl ServerSource {
    /// Reads lists. Returns those that changed.
    pub(super) async fn read_all(
        &self,
        upstream: &UpstreamConnection,
        kinds: &BTreeSet<ListKind>,
    ) -> BTreeSet<ListKind> {
        let read = kinds.iter().map(|kind| async {
            let is_other = self.read_if(upstream, *kind, |_| true).await;
            is_other.then_some(*kind)
        });
        join_all(read).await.into_iter().flatten().collect()
    }

    /// Reads the lists named in `news`. Returns those that changed.
    pub(super) async fn read_again(&self, news: &PendingChanges) -> BTreeSet<ListKind> {
        let Some(upstream) = self.connection.current() else {
            return BTreeSet::new();
        };
        let mut changed = BTreeSet::new();
        if news.reconnected {
            changed = self.on_connected(&upstream);
        }
        let wanted = match news.reconnected {
            true => BTreeSet::from(ListKind::ALL),
            false => news.kinds.clone(),
        };
        changed.extend(self.read_all(&upstream, &wanted).await);
        changed
    }

    /// Records the connected server. Removes the lists that the new server does not have.
    pub(super) fn on_connected(&self, upstream: &UpstreamConnection) -> BTreeSet<ListKind> {
        let _replacing = self.replacing();
        let before = self.snapshot();
        let handshake = Arc::new(upstream.handshake().clone());
        let mut snapshot = ServerSnapshot {
            handshake: Some(handshake),
            undeclared: self.known_undeclared(&before),
            ..(*before).clone()
        };
        let offered = snapshot.offered();
        snapshot.listings.retain(|kind, _| offered.contains(kind));
        snapshot.expires_at.retain(|kind, _| offered.contains(kind));
        snapshot
            .read_errors
            .retain(|kind, _| offered.contains(kind));
        let removed = |kind: &ListKind| !snapshot.listings.contains_key(kind);
        let removed = before.listings.keys().copied().filter(removed).collect();
        // The server's identity and era are part of all its lists.
        let same = |before: &Arc<Handshake>| {
            let now = snapshot.handshake.as_ref();
            now.is_some_and(|now| now.result == before.result && now.era() == before.era())
        };
        let changed = match &before.handshake {
            Some(handshake) if same(handshake) => removed,
            _ => BTreeSet::from(ListKind::ALL),
        };
        self.snapshot.store(Arc::new(snapshot));
        changed
    }

    /// Reads a list, unless another request has just read it.
    ///
    /// If a server is slow, only the first request waits, and not for long. The others get the last known list.
    pub(crate) async fn read_unless_recent(&self, kind: ListKind) {
        let Some(upstream) = self.connection.current() else {
            return;
        };
        let long_ago = |last: Option<Instant>| last.is_none_or(|at| at.elapsed() >= READ_PAUSE);
        let reading = self.read_if(&upstream, kind, long_ago);
        if tokio::time::timeout(self.list_timeout(), reading)
            .await
            .is_err()
        {
            let (server, list) = (self.name(), kind.method());
            warn!(
                server,
                list, "the server is slow to list; using the last known list"
            );
            self.postpone(kind);
        }
    }

    pub(crate) fn list_timeout(&self) -> Duration {
        self.connection
            .config()
            .limits
            .ready_timeout
            .min(READY_TIMEOUT)
    }

    /// Does not read a list for a while.
    fn postpone(&self, kind: ListKind) {
        let _replacing = self.replacing();
        let mut snapshot = (*self.snapshot()).clone();
        snapshot
            .expires_at
            .insert(kind, (Instant::now() + 2 * READY_TIMEOUT).into_std());
        self.snapshot.store(Arc::new(snapshot));
    }

    pub(super) async fn read_if(
        &self,
        upstream: &UpstreamConnection,
        kind: ListKind,
        wanted: impl FnOnce(Option<Instant>) -> bool,
    ) -> bool {
        let offered = self.snapshot.load().offered().contains(&kind);
        let Some(last) = self.readings.get(&kind).filter(|_| offered) else {
            return false;
        };
        let mut last = last.lock().await;
        if !wanted(*last) {
            return false;
        }
        let listing = self.read_one(upstream, kind).await;
        let list_ttl = self.connection.config().limits.list_ttl;
        let ttl = expiry(upstream.handshake(), kind, &listing, list_ttl);
        *last = Some(Instant::now());
        let items = listing.as_ref().map(|listing| listing.items.len()).ok();
        let is_other = self.store_listing(kind, listing, ttl);
        if let (Some(items), true) = (items, is_other) {
            let (server, list) = (self.name(), kind.method());
            info!(server, list, items, "list read");
        }
        is_other
    }

    async fn read_one(
        &self,
        upstream: &UpstreamConnection,
        kind: ListKind,
    ) -> Result<Listing, RpcError> {
        let (server, list) = (self.name(), kind.method());
        let limit = self.connection.config().limits.handshake;
        let views = self.views.load(Ordering::Relaxed);
        let reading = tokio::time::timeout(limit, list_reading::read_list(upstream, kind, views));
        let listing = reading.await.unwrap_or_else(|_| {
            let limit = limit.as_secs();
            let why = format!("server `{server}` did not respond to {list} within {limit} s");
            Err(RpcError::internal(why))
        });
        match &listing {
            Ok(listing) => debug!(server, list, items = listing.items.len(), "list received"),
            Err(failure) if is_absence(kind, failure) => debug!(server, list, "no such list"),
            Err(failure) => {
                let error = without_server(failure.message(), server);
                warn!(server, list, error, "list not read");
            }
        }
        listing
    }

    /// Replaces a list, unless it is the same. A failure does not replace a list.
    pub(super) fn store_listing(
        &self,
        kind: ListKind,
        listing: Result<Listing, RpcError>,
        ttl: Option<Duration>,
    ) -> bool {
        let _replacing = self.replacing();
        let mut snapshot = (*self.snapshot()).clone();
        match ttl {
            Some(ttl) => snapshot
                .expires_at
                .insert(kind, (Instant::now() + ttl).into_std()),
            None => snapshot.expires_at.remove(&kind),
        };
        match &listing {
            Err(failure) if !is_absence(kind, failure) => {
                drop(snapshot.read_errors.insert(kind, failure.clone()));
            }
            _ => drop(snapshot.read_errors.remove(&kind)),
        }
        let before = snapshot.listings.get(&kind);
        let changed = match (before, &listing) {
            (Some(Ok(before)), Ok(now)) => **before != *now,
            (Some(Ok(_)), Err(_)) => {
                warn!(
                    server = self.name(),
                    list = kind.method(),
                    "the last good list stays"
                );
                false
            }
            (Some(Err(before)), Err(now)) => before != now,
            (Some(Err(_)), Ok(_)) | (None, _) => true,
        };
        if changed {
            let known = before.and_then(|before| before.as_ref().ok()).cloned();
            if known.is_some() {
                self.unannounced.lock().insert(kind.kind());
            }
            let listing = listing.map(|listing| self.shared.listing(listing, known.as_deref()));
            snapshot.listings.insert(kind, listing);
        }
        self.snapshot.store(Arc::new(snapshot));
        changed
    }
}

/// Whether a server only lacks the list. `resources` declares both lists of resources, and many servers have one.
fn is_absence(kind: ListKind, failure: &RpcError) -> bool {
    kind == ListKind::Templates && failure.code() == METHOD_NOT_FOUND
}

/// The time for which a list can be used without being read again: unlimited if the server announces changes; otherwise
/// the `ttlMs` of a modern server, or `list_ttl` unless that is zero.
///
/// > In this case, the client relies entirely on TTL-based freshness.
/// > (MCP 2026-07-28, server/utilities/caching, "Interaction with Notifications")
pub(super) fn expiry(
    handshake: &Handshake,
    kind: ListKind,
    listing: &Result<Listing, RpcError>,
    list_ttl: Duration,
) -> Option<Duration> {
    let Ok(listing) = listing else {
        return Some(READ_PAUSE);
    };
    if handshake.has_capability_flag(kind.capability(), "listChanged") {
        return None;
    }
    let announced = listing.ttl.filter(|_| handshake.era() == Era::Modern);
    let configured = (!list_ttl.is_zero()).then_some(list_ttl);
    announced.or(configured).map(|ttl| ttl.max(READ_PAUSE))
}
