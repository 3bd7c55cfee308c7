//! The lists of one server as they were read last.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use mcp_vary::error_code::METHOD_NOT_FOUND;
use mcp_vary_base::lock::Lock;
use mcp_vary_catalog::listing::{ListKind, Listing};
use mcp_vary_catalog::server_snapshot::ServerSnapshot;
use mcp_vary_catalog::shared::SharedLists;
use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::response::RpcError;
use tokio::time::Instant;
use tracing::warn;

/// The handshake and the lists of one server, which requests load without a lock.
#[derive(Debug)]
pub(crate) struct StoredLists {
    /// The server's name, for the log.
    server: Arc<str>,
    snapshot: ArcSwap<ServerSnapshot>,
    /// Held while the snapshot is replaced.
    replacing: Lock<()>,
    shared: Arc<SharedLists>,
    /// The lists that were found to have changed before the server announced it.
    unannounced: Lock<BTreeSet<Kind>>,
    /// What was read on this connection. What is shown until then is of another one, and no earlier state of this.
    own: Lock<OwnReadings>,
}

#[derive(Debug, Default)]
struct OwnReadings {
    handshake: bool,
    lists: BTreeSet<ListKind>,
}

impl StoredLists {
    pub(crate) fn new(
        server: Arc<str>,
        snapshot: Arc<ServerSnapshot>,
        shared: Arc<SharedLists>,
    ) -> Self {
        Self {
            server,
            snapshot: ArcSwap::new(snapshot),
            replacing: Lock::default(),
            shared,
            unannounced: Lock::default(),
            own: Lock::default(),
        }
    }

    /// A copy that changes independently.
    pub(crate) fn copy(&self) -> Self {
        let server = Arc::clone(&self.server);
        Self::new(server, self.snapshot(), Arc::clone(&self.shared))
    }

    pub(crate) fn snapshot(&self) -> Arc<ServerSnapshot> {
        self.snapshot.load_full()
    }

    fn update<T>(&self, change: impl FnOnce(&mut ServerSnapshot) -> T) -> T {
        let _replacing = self.replacing.lock();
        let mut snapshot = (*self.snapshot()).clone();
        let changed = change(&mut snapshot);
        self.snapshot.store(Arc::new(snapshot));
        changed
    }

    /// Shows `known` until the connection is open. Returns whether it is not open yet and `known` has lists.
    pub(crate) fn show_until_connected(&self, known: Arc<ServerSnapshot>) -> bool {
        let _replacing = self.replacing.lock();
        let is_shown = self.snapshot.load().handshake.is_none() && known.handshake.is_some();
        if is_shown {
            self.snapshot.store(known);
        }
        is_shown
    }

    /// Records the handshake of a new connection, on which `undeclared` says what is known about undeclared lists, and
    /// removes the lists that the server no longer has. Returns the lists that changed.
    pub(crate) fn connect(
        &self,
        handshake: &Handshake,
        undeclared: impl FnOnce(&ServerSnapshot) -> BTreeMap<ListKind, bool>,
    ) -> BTreeSet<ListKind> {
        let before = self.snapshot();
        let changed = self.update(|snapshot| {
            let before = snapshot.clone();
            snapshot.handshake = Some(Arc::new(handshake.clone()));
            snapshot.undeclared = undeclared(&before);
            let offered = snapshot.offered();
            snapshot.listings.retain(|kind, _| offered.contains(kind));
            snapshot.expires_at.retain(|kind, _| offered.contains(kind));
            snapshot
                .read_errors
                .retain(|kind, _| offered.contains(kind));
            // The server's identity and era are part of all its lists.
            let is_same = |before: &Arc<Handshake>| {
                before.result == handshake.result && before.era() == handshake.era()
            };
            if !before.handshake.as_ref().is_some_and(is_same) {
                return BTreeSet::from(ListKind::ALL);
            }
            let is_removed = |kind: &ListKind| !snapshot.listings.contains_key(kind);
            before.listings.keys().copied().filter(is_removed).collect()
        });
        self.report_connection(&before, handshake);
        changed
    }

    /// Reports what a new connection shows to have changed: the instructions, and lists that are gone.
    fn report_connection(&self, before: &ServerSnapshot, handshake: &Handshake) {
        let changes = &self.shared.changes;
        let had_own = std::mem::replace(&mut self.own.lock().handshake, true);
        if had_own && let Some(known) = &before.handshake {
            let now = handshake.instructions.as_deref();
            changes.compare_instructions(&self.server, known.instructions.as_deref(), now);
        }
        let now = self.snapshot();
        for (kind, listing) in &before.listings {
            let is_gone = !now.listings.contains_key(kind) && self.own.lock().lists.remove(kind);
            if is_gone && let Ok(listing) = listing {
                changes.compare(&self.server, *kind, &listing.items, &[]);
            }
        }
    }

    /// Records that the lists could not be read, since there was never a connection: they are not empty.
    pub(crate) fn fail(&self, failure: &RpcError) {
        self.update(|snapshot| {
            if snapshot.handshake.is_none() {
                for kind in ListKind::ALL {
                    snapshot.listings.insert(kind, Err(failure.clone()));
                }
            }
        });
    }

    /// Replaces a list, unless it is the same. A failure does not replace a list. Returns whether the list changed.
    pub(crate) fn replace(
        &self,
        kind: ListKind,
        listing: Result<Listing, RpcError>,
        ttl: Option<Duration>,
    ) -> bool {
        let (before, now, is_changed) = self.update(|snapshot| {
            match ttl {
                Some(ttl) => set_expiry(snapshot, kind, ttl),
                None => drop(snapshot.expires_at.remove(&kind)),
            }
            match &listing {
                Err(failure) if !is_absence(kind, failure) => {
                    drop(snapshot.read_errors.insert(kind, failure.clone()));
                }
                _ => drop(snapshot.read_errors.remove(&kind)),
            }
            let before = snapshot.listings.get(&kind);
            let known = before.and_then(|before| before.as_ref().ok()).cloned();
            if !self.is_changed(kind, before, &listing) {
                return (None, if listing.is_ok() { known } else { None }, false);
            }
            if known.is_some() {
                self.unannounced.lock().insert(kind.kind());
            }
            let stored = listing.map(|listing| self.shared.listing(listing, known.as_deref()));
            let now = stored.as_ref().ok().cloned();
            snapshot.listings.insert(kind, stored);
            (known, now, true)
        });
        if let Some(now) = now {
            self.report_listing(kind, before.as_deref(), &now);
        }
        is_changed
    }

    /// Reports how a list that was read differs from the one `before` of this connection, and what is wrong with it.
    fn report_listing(&self, kind: ListKind, before: Option<&Listing>, now: &Listing) {
        let changes = &self.shared.changes;
        let is_first = self.own.lock().lists.insert(kind);
        if !is_first && let Some(before) = before {
            changes.compare(&self.server, kind, &before.items, &now.items);
        }
        changes.note_faults(&self.server, kind, now);
    }

    fn is_changed(
        &self,
        kind: ListKind,
        before: Option<&Result<Arc<Listing>, RpcError>>,
        now: &Result<Listing, RpcError>,
    ) -> bool {
        match (before, now) {
            (Some(Ok(before)), Ok(now)) => **before != *now,
            (Some(Ok(_)), Err(_)) => {
                let server = &*self.server;
                warn!(server, list = kind.method(), "the last good list stays");
                false
            }
            (Some(Err(before)), Err(now)) => before != now,
            (Some(Err(_)), Ok(_)) | (None, _) => true,
        }
    }

    /// Notes that a list can be used for `time`, although it could not be read.
    pub(crate) fn postpone(&self, kind: ListKind, time: Duration) {
        self.update(|snapshot| set_expiry(snapshot, kind, time));
    }

    /// Notes whether the server has a list that it does not declare.
    pub(crate) fn note_undeclared(&self, kind: ListKind, has: bool) {
        self.update(|snapshot| snapshot.undeclared.insert(kind, has));
    }

    /// Returns those of the `announced` lists whose change was found before: clients have been notified of it.
    pub(crate) fn take_known(&self, announced: &BTreeSet<Kind>) -> BTreeSet<Kind> {
        let mut unannounced = self.unannounced.lock();
        let all = announced.iter().copied();
        all.filter(|kind| unannounced.remove(kind)).collect()
    }

    /// Whether a list differs from `then`.
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
        let snapshot = self.snapshot();
        let compared = other.snapshot();
        match (snapshot.listings.get(&kind), compared.listings.get(&kind)) {
            (Some(Ok(one)), Some(Ok(other))) => one.items == other.items,
            // If a list could not be read, nothing is known about its items.
            _ => true,
        }
    }

    /// Whether `listing` was read last, and has not expired.
    pub(crate) fn is_latest(&self, kind: ListKind, listing: &Arc<Listing>) -> bool {
        let snapshot = self.snapshot.load();
        matches!(snapshot.listings.get(&kind), Some(Ok(latest)) if Arc::ptr_eq(latest, listing))
            && !is_expired(&snapshot, kind)
    }

    /// Whether it is unknown if the server has a list that it does not declare.
    pub(crate) fn is_undecided(&self, kind: ListKind) -> bool {
        let snapshot = self.snapshot.load();
        let is_known =
            snapshot.listings.contains_key(&kind) || snapshot.undeclared.contains_key(&kind);
        !is_known && !snapshot.declared().contains(kind.capability())
    }
}

fn set_expiry(snapshot: &mut ServerSnapshot, kind: ListKind, ttl: Duration) {
    let expires_at = (Instant::now() + ttl).into_std();
    snapshot.expires_at.insert(kind, expires_at);
}

/// Whether a list must be read again.
pub(crate) fn is_expired(snapshot: &ServerSnapshot, kind: ListKind) -> bool {
    let expires_at = snapshot.expires_at.get(&kind);
    expires_at.is_some_and(|expires_at| Instant::now().into_std() >= *expires_at)
}

/// Whether a server only lacks the list. `resources` declares both lists of resources, and many servers have one.
pub(crate) fn is_absence(kind: ListKind, failure: &RpcError) -> bool {
    kind == ListKind::Templates && failure.code() == METHOD_NOT_FOUND
}
