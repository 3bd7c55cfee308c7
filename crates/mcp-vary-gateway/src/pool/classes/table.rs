//! The classes of clients with special capabilities: those in use, and the connections inherited from before a reload.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use mcp_vary_base::lock::Lock;
use mcp_vary_upstream::SupervisedConnection;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::revision::Era;
use tokio::sync::SetOnce;
use tracing::warn;

use super::class::CapabilityClass;
use super::class_connections::ClassConnections;
use crate::pool::lists::follower::ListFollower;
use mcp_vary_session::PoolKey;

/// The classes by key, up to a limit.
#[derive(Debug, Default)]
pub(crate) struct ClassMap {
    entries: Lock<Entries>,
    /// The classes that are open, for requests, which find theirs here without a lock. A class that was closed in the
    /// meantime may still be here.
    open: ArcSwap<BTreeMap<PoolKey, Weak<CapabilityClass>>>,
    /// The connections of classes before the reload, until the class is opened again.
    inherited: Lock<BTreeMap<PoolKey, Arc<ClassConnections>>>,
    /// The classes that are outdated, until they are open again.
    outdated: Lock<BTreeMap<PoolKey, Arc<CapabilityClass>>>,
    /// Whether the last request for a class found no room.
    is_full: AtomicBool,
}

/// A class, or one that is being opened. It is opened once, by a task that does not end with the request that began it.
#[derive(Debug, Default)]
pub(crate) struct ClassCell {
    class: SetOnce<Arc<CapabilityClass>>,
    is_begun: AtomicBool,
}

impl ClassCell {
    /// The class, if it is open.
    fn get(&self) -> Option<&Arc<CapabilityClass>> {
        self.class.get()
    }

    /// Whether the caller is the first, which has to open the class.
    pub(crate) fn begin(&self) -> bool {
        !self.is_begun.swap(true, Ordering::AcqRel)
    }

    /// The class is open.
    pub(crate) fn set(&self, class: Arc<CapabilityClass>) {
        // It is set once, by the task of the first caller.
        let _ = self.class.set(class);
    }

    /// The class, once it is open.
    pub(crate) async fn opened(&self) -> Arc<CapabilityClass> {
        Arc::clone(self.class.wait().await)
    }
}

type Entries = BTreeMap<PoolKey, Arc<ClassCell>>;

impl ClassMap {
    /// The class, if it is open.
    pub(crate) fn find(&self, key: &PoolKey) -> Option<Arc<CapabilityClass>> {
        self.open.load().get(key)?.upgrade()
    }

    /// Lets requests [find](Self::find) the classes that are open now.
    pub(crate) fn publish(&self) {
        self.publish_entries(&self.entries.lock());
    }

    fn publish_entries(&self, entries: &Entries) {
        let open = entries
            .iter()
            .filter_map(|(key, cell)| Some((key.clone(), Arc::downgrade(cell.get()?))));
        self.open.store(Arc::new(open.collect()));
    }

    /// The cell of a class; none if there are `most` shared ones, all in use, or too many others. An outdated class
    /// leaves its cell.
    pub(crate) fn entry(&self, key: &PoolKey, most: usize) -> Option<Arc<ClassCell>> {
        let mut entries = self.entries.lock();
        if let Some(cell) = entries.get(key) {
            let Some(outdated) = cell.get().filter(|class| class.is_outdated()) else {
                return Some(Arc::clone(cell));
            };
            let mut all = self.outdated.lock();
            all.insert(key.clone(), Arc::clone(outdated));
            let cell = Arc::<ClassCell>::default();
            entries.insert(key.clone(), Arc::clone(&cell));
            return Some(cell);
        }
        if !self.evict_until_fits(&mut entries, key, most) {
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
        let cell = Arc::<ClassCell>::default();
        entries.insert(key.clone(), Arc::clone(&cell));
        Some(cell)
    }

    /// Whether there is room for another class, after the one that was idle longest was closed if necessary: one of
    /// the same principal if that has its share.
    fn evict_until_fits(&self, entries: &mut Entries, key: &PoolKey, most: usize) -> bool {
        let is_same_principal =
            |other: &PoolKey| key.principal.is_some() && other.principal == key.principal;
        let is_alike = |other: &PoolKey| other.is_isolated() == key.is_isolated();
        // Room for one is reserved for the class without special capabilities, which is never closed.
        let most = if key.is_isolated() {
            MAX_ISOLATED_CLASSES
        } else {
            most - 1
        };
        let count = |entries: &Entries, is: &dyn Fn(&PoolKey) -> bool| {
            entries.keys().filter(|other| is(other)).count()
        };
        let has_room = |entries: &Entries| {
            count(entries, &is_same_principal) < MAX_CLASSES_OF_PRINCIPAL
                && count(entries, &is_alike) < most
        };
        if !has_room(entries) {
            let has_share = count(entries, &is_same_principal) >= MAX_CLASSES_OF_PRINCIPAL;
            // `isolation: session` keeps what its sessions have.
            evict_idle(entries, |other| {
                other.session.is_none()
                    && is_alike(other)
                    && (is_same_principal(other) || !has_share)
            });
            self.publish_entries(entries);
        }
        has_room(entries)
    }

    /// The cell of a class, regardless of the limit.
    pub(crate) fn unlimited_entry(&self, key: &PoolKey) -> Arc<ClassCell> {
        Arc::clone(self.entries.lock().entry(key.clone()).or_default())
    }

    /// The open shared classes of `era`.
    pub(crate) fn shared_of_era(&self, era: Era) -> Vec<Arc<CapabilityClass>> {
        let entries = self.entries.lock();
        let is_shared = |key: &PoolKey| !key.is_isolated() && key.era == era;
        let shared = entries.iter().filter(|(key, _)| is_shared(key));
        shared.filter_map(|(_, cell)| cell.get().cloned()).collect()
    }

    /// Takes over the connections of the classes of `before` that both share, for clients that return.
    pub(crate) fn inherit(&self, before: &Self, is_shared: impl Fn(&ListFollower) -> bool) {
        let others = before.entries.lock();
        let open = others
            .iter()
            .filter_map(|(key, cell)| Some((key, &cell.get()?.connections)));
        let waiting = before.inherited.lock();
        let entries = self.entries.lock();
        let mut inherited = self.inherited.lock();
        for (key, connections) in open.chain(waiting.iter()) {
            let is_open = entries.get(key).is_some_and(|cell| cell.get().is_some());
            if !is_open && let Some(shared) = connections.only(&is_shared) {
                inherited
                    .entry(key.clone())
                    .or_insert_with(|| Arc::new(shared));
            }
        }
    }

    /// The class before it was outdated.
    pub(crate) fn outdated(&self, key: &PoolKey) -> Option<Arc<CapabilityClass>> {
        self.outdated.lock().get(key).cloned()
    }

    /// The connections of a class before the reload.
    pub(crate) fn inherited(&self, key: &PoolKey) -> Option<Arc<ClassConnections>> {
        self.inherited.lock().get(key).cloned()
    }

    /// The followers of all open classes.
    pub(crate) fn followers(&self) -> Vec<Arc<ListFollower>> {
        let entries = self.entries.lock();
        let open = entries.values().filter_map(|cell| cell.get());
        let followers = open.flat_map(|class| class.connections.followers.iter().cloned());
        followers.collect()
    }

    /// Drops what a class that has opened took over.
    pub(crate) fn remove_previous(&self, key: &PoolKey) {
        self.inherited.lock().remove(key);
        self.outdated.lock().remove(key);
    }

    /// Evicts one of `candidates`: the connection that was idle longest, if that is `idle` or more. Connections on which
    /// resources are subscribed come last. The next request of their clients opens their classes again.
    pub(crate) fn evict(
        &self,
        candidates: &[Arc<SupervisedConnection>],
        idle: Duration,
    ) -> Option<Arc<SupervisedConnection>> {
        let entries = self.entries.lock();
        let classes: Vec<_> = entries.values().filter_map(|cell| cell.get()).collect();
        let inherited = self.inherited.lock();
        let users = || {
            let open = classes.iter().map(|class| &class.connections);
            open.chain(inherited.values())
        };
        let mut times: BTreeMap<*const SupervisedConnection, Duration> = BTreeMap::new();
        for user in users() {
            for follower in &user.followers {
                let address = Arc::as_ptr(&follower.source.connection);
                let least = times.entry(address).or_insert(Duration::MAX);
                *least = user.idle().min(*least);
            }
        }
        let mut found = Vec::new();
        for connection in candidates {
            // One that no class uses belongs to a class that is being opened, or to a request of a closed one.
            let time = times.get(&Arc::as_ptr(connection)).copied();
            if let Some(time) = time.filter(|time| *time >= idle) {
                found.push((
                    connection.subscribed_resources(1).len(),
                    Reverse(time),
                    connection,
                ));
            }
        }
        found.sort_by_key(|(subscribed, time, _)| (*subscribed, *time));
        let mut ordered = found.into_iter().map(|(_, _, connection)| connection);
        let evicted = ordered.find(|connection| {
            let its = classes.iter().filter(|it| it.connections.has(connection));
            let marked: Vec<_> = its.filter(|class| !class.set_outdated(true)).collect();
            // A request notes its use before it looks whether the class is outdated.
            let mut its = users().filter(|user| user.has(connection));
            let is_idle = its.all(|user| user.idle() >= idle);
            if !is_idle {
                for class in marked {
                    class.set_outdated(false);
                }
            }
            is_idle
        });
        evicted.map(Arc::clone)
    }

    /// Closes the class of a session that has ended, and that of its principal if no other session uses it.
    pub(crate) fn close_session(&self, session: ClientId) {
        let mut entries = self.entries.lock();
        entries.retain(|key, cell| {
            let is_free = |class: &Arc<CapabilityClass>| {
                class.connections.usage.remove_session(session) && Arc::strong_count(class) == 1
            };
            let is_over = key.principal.is_some() && cell.get().is_some_and(is_free);
            key.session != Some(session) && !is_over
        });
        self.publish_entries(&entries);
        drop(entries);
        self.inherited
            .lock()
            .retain(|key, _| key.session != Some(session));
    }

    /// Closes what was not used for `unused`.
    pub(crate) fn sweep(&self, unused: Duration) {
        let mut entries = self.entries.lock();
        entries.retain(|_, cell| is_used(cell, unused));
        self.publish_entries(&entries);
        drop(entries);
        self.inherited
            .lock()
            .retain(|_, connections| connections.are_used(unused));
        // The streams of its clients move to the class that replaces it.
        self.outdated
            .lock()
            .retain(|_, class| Arc::strong_count(class) > 1 || class.connections.are_used(unused));
    }
}

/// Closes the class that was idle longest of those that `may` be closed, if that is long enough.
fn evict_idle(entries: &mut Entries, may: impl Fn(&PoolKey) -> bool) {
    let idle = entries
        .iter()
        .filter(|(key, cell)| may(key) && !is_used(cell, EVICTION_IDLE_TIME));
    let longest = idle.max_by_key(|(_, cell)| cell.get().map(|class| class.connections.idle()));
    if let Some(key) = longest.map(|(key, _)| key.clone()) {
        entries.remove(&key);
    }
}

fn is_used(cell: &Arc<ClassCell>, unused: Duration) -> bool {
    // A request that holds the cell is about to use it, and a task opens it.
    let is_held = Arc::strong_count(cell) > 1;
    match cell.get() {
        Some(class) => {
            is_held || Arc::strong_count(class) > 1 || class.connections.are_used(unused)
        }
        None => is_held,
    }
}

/// How long a class must be idle before another can replace it. Long enough that alternating clients do not restart
/// processes all the time.
const EVICTION_IDLE_TIME: Duration = Duration::from_secs(30);
/// Classes of single sessions, principals and access classes, over all servers.
const MAX_ISOLATED_CLASSES: usize = 4096;
/// Those of one principal, so that no principal takes all.
const MAX_CLASSES_OF_PRINCIPAL: usize = MAX_ISOLATED_CLASSES / 16;
