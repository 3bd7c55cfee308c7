//! The classes of clients with special capabilities: those in use, and the connections inherited from before a reload.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use mcp_vary_base::lock::Lock;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::revision::Era;
use tokio::sync::OnceCell;
use tracing::warn;

use super::CapabilityClass;
use super::connections::{ClassConnections, ListFollower};
use crate::session::PoolKey;

/// The classes by key, up to a limit.
#[derive(Debug, Default)]
pub(super) struct ClassMap {
    entries: Lock<BTreeMap<PoolKey, ClassCell>>,
    /// The classes that are open, for requests, which find theirs here without a lock. A class that was closed in the
    /// meantime may still be here.
    open: ArcSwap<BTreeMap<PoolKey, Weak<CapabilityClass>>>,
    /// The connections of classes before the reload, until the class is opened again.
    inherited: Lock<BTreeMap<PoolKey, Arc<ClassConnections>>>,
    /// Whether the last request for a class found no room.
    is_full: AtomicBool,
}

/// A class, or the place of one that is being opened.
pub(super) type ClassCell = Arc<OnceCell<Arc<CapabilityClass>>>;

impl ClassMap {
    /// The class, if it is open.
    pub(super) fn find(&self, key: &PoolKey) -> Option<Arc<CapabilityClass>> {
        self.open.load().get(key)?.upgrade()
    }

    /// Lets requests [find](Self::find) the classes that are open now.
    pub(super) fn publish(&self) {
        self.publish_entries(&self.entries.lock());
    }

    fn publish_entries(&self, entries: &BTreeMap<PoolKey, ClassCell>) {
        let open = entries
            .iter()
            .filter_map(|(key, cell)| Some((key.clone(), Arc::downgrade(cell.get()?))));
        self.open.store(Arc::new(open.collect()));
    }

    /// The place of a class; none if there are `most` shared ones, all in use.
    pub(super) fn entry(&self, key: &PoolKey, most: usize) -> Option<ClassCell> {
        let mut entries = self.entries.lock();
        if let Some(cell) = entries.get(key) {
            return Some(Arc::clone(cell));
        }
        let is_own = key.is_isolated();
        // One place is reserved for the class without special capabilities, which is never closed.
        let most = if is_own {
            MAX_SESSION_CLASSES
        } else {
            most - 1
        };
        let is_full = |entries: &BTreeMap<PoolKey, ClassCell>| {
            let like_it = entries.keys().filter(|other| other.is_isolated() == is_own);
            like_it.count() >= most
        };
        if !is_own && is_full(&entries) {
            evict_idle(&mut entries);
            self.publish_entries(&entries);
        }
        if is_full(&entries) {
            // Logged once, until there is room again.
            if !self.is_full.swap(true, Ordering::Relaxed) {
                warn!(
                    most,
                    "too many classes of clients; further ones share the lists of the nearest one, or are refused"
                );
            }
            return None;
        }
        self.is_full.store(false, Ordering::Relaxed);
        let cell = ClassCell::default();
        entries.insert(key.clone(), Arc::clone(&cell));
        Some(cell)
    }

    /// The place of a class, regardless of the limit.
    pub(super) fn unlimited_entry(&self, key: &PoolKey) -> ClassCell {
        Arc::clone(self.entries.lock().entry(key.clone()).or_default())
    }

    /// The open shared classes of `era`.
    pub(super) fn shared_of_era(&self, era: Era) -> Vec<Arc<CapabilityClass>> {
        let entries = self.entries.lock();
        let is_shared = |key: &PoolKey| !key.is_isolated() && key.era == era;
        let shared = entries.iter().filter(|(key, _)| is_shared(key));
        shared.filter_map(|(_, cell)| cell.get().cloned()).collect()
    }

    /// Removes the place of a class that could not be opened, unless another request is opening it.
    pub(super) fn remove_failed(&self, key: &PoolKey) {
        let mut entries = self.entries.lock();
        let is_free = |cell: &ClassCell| Arc::strong_count(cell) == 1 && !cell.initialized();
        if entries.get(key).is_some_and(is_free) {
            entries.remove(key);
        }
    }

    /// Takes over the connections of the classes of `before` that are `ours`, too, for clients that return.
    pub(super) fn inherit(&self, before: &Self, is_ours: impl Fn(&ListFollower) -> bool) {
        let others = before.entries.lock();
        let open = others
            .iter()
            .filter_map(|(key, cell)| Some((key, &cell.get()?.connections)));
        let waiting = before.inherited.lock();
        let (mine, mut inherited) = (self.entries.lock(), self.inherited.lock());
        for (key, connections) in open.chain(waiting.iter()) {
            let is_open = mine.get(key).is_some_and(|cell| cell.initialized());
            let ours = connections.only(&is_ours).filter(|_| !is_open);
            if let Some(ours) = ours {
                inherited
                    .entry(key.clone())
                    .or_insert_with(|| Arc::new(ours));
            }
        }
    }

    /// The connections of a class before the reload.
    pub(super) fn inherited(&self, key: &PoolKey) -> Option<Arc<ClassConnections>> {
        self.inherited.lock().get(key).cloned()
    }

    /// The followers of all open classes.
    pub(super) fn followers(&self) -> Vec<Arc<ListFollower>> {
        let entries = self.entries.lock();
        let open = entries.values().filter_map(|cell| cell.get());
        let followers = open.flat_map(|class| class.connections.followers.iter().cloned());
        followers.collect()
    }

    /// Drops the inherited connections of a class that has opened.
    pub(super) fn remove_inherited(&self, key: &PoolKey) {
        self.inherited.lock().remove(key);
    }

    /// Closes the class of a session that has ended.
    pub(super) fn close_session(&self, session: ClientId) {
        let mut entries = self.entries.lock();
        entries.retain(|key, _| key.session != Some(session));
        self.publish_entries(&entries);
        drop(entries);
        self.inherited
            .lock()
            .retain(|key, _| key.session != Some(session));
    }

    /// Closes what was not used for `unused`.
    pub(super) fn sweep(&self, unused: Duration) {
        let mut entries = self.entries.lock();
        entries.retain(|_, cell| is_used(cell, unused));
        self.publish_entries(&entries);
        drop(entries);
        self.inherited
            .lock()
            .retain(|_, connections| connections.are_used(unused));
    }
}

/// Closes the shared class that was idle longest, if that is long enough.
fn evict_idle(entries: &mut BTreeMap<PoolKey, ClassCell>) {
    let idle = entries
        .iter()
        .filter(|(key, cell)| !key.is_isolated() && !is_used(cell, EVICTION_IDLE_TIME));
    let longest = idle.max_by_key(|(_, cell)| cell.get().map(|it| it.connections.idle()));
    if let Some(key) = longest.map(|(key, _)| key.clone()) {
        entries.remove(&key);
    }
}

fn is_used(cell: &ClassCell, unused: Duration) -> bool {
    // A request that holds the place is about to use it.
    let is_held = Arc::strong_count(cell) > 1;
    match cell.get() {
        Some(class) => {
            is_held || Arc::strong_count(class) > 1 || class.connections.are_used(unused)
        }
        None => is_held,
    }
}

/// How long a class must be idle before another can take its place. Long enough that alternating clients do not restart
/// processes all the time.
const EVICTION_IDLE_TIME: Duration = Duration::from_secs(30);
/// Classes of single sessions, over all servers. Each server's own limit is checked before.
const MAX_SESSION_CLASSES: usize = 4096;
