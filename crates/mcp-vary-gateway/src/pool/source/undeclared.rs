//! Lists that a server has without declaring them
//! ([0029](../../../../../docs/decisions/0029-undeclared-capabilities.md)).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use mcp_vary_catalog::listing::{ListKind, Listing};
use mcp_vary_catalog::server_snapshot::ServerSnapshot;
use mcp_vary_upstream::UpstreamConnection;
use tokio::time::{Instant, timeout};
use tracing::{debug, info};

use super::ServerSource;
use super::reading::expiry;
use crate::pool::list_reading;

/// The lists that clients requested although the server does not declare them.
#[derive(Debug, Default)]
pub(super) struct Requested {
    /// The server was not connected when they were requested.
    waiting: BTreeSet<ListKind>,
    /// The server turned out to have them; they are not merged yet.
    found: BTreeSet<ListKind>,
}

/// How long a request waits for a server that may not have the list. A later response is merged, too.
const UNDECLARED_WAIT: Duration = Duration::from_secs(1);
/// A server that has not responded by then does not have the list.
const UNDECLARED_LIMIT: Duration = Duration::from_secs(10);

impl ServerSource {
    /// Whether it is unknown if the server has a list that it does not declare.
    pub(crate) fn is_undecided(&self, kind: ListKind) -> bool {
        let snapshot = self.snapshot.load();
        let is_known =
            snapshot.listings.contains_key(&kind) || snapshot.undeclared.contains_key(&kind);
        !is_known && !snapshot.declared().contains(kind.capability())
    }

    /// Requests a list that the server does not declare, once for all connections.
    ///
    /// A server that is not connected gets the request when it connects.
    pub(crate) async fn request_undeclared(self: &Arc<Self>, kind: ListKind) {
        if !self.is_undecided(kind) {
            return;
        }
        let upstream = self.connection.current();
        let Some(upstream) = upstream.filter(|_| self.snapshot.load().handshake.is_some()) else {
            self.requested().waiting.insert(kind);
            return;
        };
        let lock = self.connection.server_facts().probe_lock(kind.method());
        let Ok(turn) = timeout(UNDECLARED_WAIT, lock.lock_owned()).await else {
            return;
        };
        let source = Arc::clone(self);
        // A task of its own: the client may leave, and the response is for all clients.
        let probe = tokio::spawn(async move {
            source.probe(&upstream, kind).await;
            drop(turn);
        });
        let _ = timeout(UNDECLARED_WAIT, probe).await;
    }

    /// Requests the lists that clients asked for while the server was not connected.
    pub(crate) fn send_requested(self: &Arc<Self>) {
        let waiting = std::mem::take(&mut self.requested().waiting);
        for kind in waiting {
            let source = Arc::clone(self);
            tokio::spawn(async move { source.request_undeclared(kind).await });
        }
    }

    async fn probe(&self, upstream: &UpstreamConnection, kind: ListKind) {
        if !self.is_undecided(kind) {
            return;
        }
        let (learned, method) = (self.connection.server_facts(), kind.method());
        let known = learned.undeclared_methods().has(method);
        let has = match known {
            Some(has) => has,
            None => {
                let listing = self.read_undeclared(upstream, kind).await;
                learned.undeclared_methods().note(method, listing.is_some());
                self.take_listing(upstream, kind, listing).await
            }
        };
        self.note_undeclared(kind, has);
        if has && known.is_some() {
            self.read_if(upstream, kind, |_| true).await;
        }
        if has {
            self.requested().found.insert(kind);
            self.revalidate.notify_one();
        }
    }

    /// The list, if the server has it. Errors are not warnings: the server never declared the list.
    async fn read_undeclared(
        &self,
        upstream: &UpstreamConnection,
        kind: ListKind,
    ) -> Option<Listing> {
        let (server, list) = (self.name(), kind.method());
        let limit = UNDECLARED_LIMIT.min(self.connection.config().limits.handshake);
        let views = self.views.load(Ordering::Relaxed);
        let listing = match timeout(limit, list_reading::read_list(upstream, kind, views)).await {
            Ok(Ok(listing)) => listing,
            Ok(Err(failure)) => {
                let error = failure.message();
                debug!(
                    server,
                    list, error, "the server lacks a list that it does not declare"
                );
                return None;
            }
            Err(_elapsed) => {
                debug!(
                    server,
                    list, "no answer about a list that the server does not declare"
                );
                return None;
            }
        };
        let items = listing.items.len();
        info!(
            server,
            list, items, "the server has a list that it does not declare"
        );
        Some(listing)
    }

    /// Stores the list, if there is one. Returns whether there is.
    async fn take_listing(
        &self,
        upstream: &UpstreamConnection,
        kind: ListKind,
        listing: Option<Listing>,
    ) -> bool {
        let Some(listing) = listing.map(Ok) else {
            return false;
        };
        let list_ttl = self.connection.config().limits.list_ttl;
        let life = expiry(upstream.handshake(), kind, &listing, list_ttl);
        if let Some(last) = self.readings.get(&kind) {
            *last.lock().await = Some(Instant::now());
        }
        self.store_listing(kind, listing, life);
        true
    }

    fn note_undeclared(&self, kind: ListKind, has: bool) {
        let _replacing = self.replacing();
        let mut snapshot = (*self.snapshot()).clone();
        snapshot.undeclared.insert(kind, has);
        self.snapshot.store(Arc::new(snapshot));
    }

    /// What is known about undeclared lists on a new connection. Lists that the server had `before`, in another
    /// version, are requested again.
    pub(super) fn known_undeclared(&self, before: &ServerSnapshot) -> BTreeMap<ListKind, bool> {
        let learned = self.connection.server_facts().undeclared_methods().all();
        let known = ListKind::ALL.into_iter();
        let known = known.filter_map(|kind| Some((kind, *learned.get(kind.method())?)));
        let known: BTreeMap<_, _> = known.collect();
        let had = before.undeclared.iter().filter(|(_, had)| **had);
        let unknown = had
            .map(|(kind, _)| *kind)
            .filter(|kind| !known.contains_key(kind));
        self.requested().waiting.extend(unknown);
        known
    }

    /// The lists that were found and are to be merged.
    pub(super) fn take_found(&self) -> BTreeSet<ListKind> {
        std::mem::take(&mut self.requested().found)
    }

    fn requested(&self) -> MutexGuard<'_, Requested> {
        self.requested.lock()
    }
}
