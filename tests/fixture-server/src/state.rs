//! What all connections to one server share: tasks, counters, added tools, and who hears of changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::service::SubscriptionSink;
use rmcp::task_manager::TaskManager;
use rmcp::{Peer, RoleServer};
use tokio::sync::watch;

/// The state of the server; cheap to clone, and all clones are the same.
#[derive(Clone)]
pub(crate) struct Shared(Arc<State>);

struct State {
    tasks: TaskManager,
    cancelled: watch::Sender<u64>,
    added: Mutex<BTreeSet<String>>,
    sessions: Mutex<Vec<Peer<RoleServer>>>,
    subscriptions: Mutex<Subscriptions>,
}

#[derive(Default)]
struct Subscriptions {
    sinks: BTreeMap<u64, SubscriptionSink>,
    next: u64,
}

impl Shared {
    pub(crate) fn new() -> Self {
        Self(Arc::new(State {
            tasks: TaskManager::new(),
            cancelled: watch::Sender::new(0),
            added: Mutex::default(),
            sessions: Mutex::default(),
            subscriptions: Mutex::default(),
        }))
    }

    pub(crate) fn tasks(&self) -> &TaskManager {
        &self.0.tasks
    }

    /// How many calls were cancelled so far; can be waited on.
    pub(crate) fn cancelled(&self) -> &watch::Sender<u64> {
        &self.0.cancelled
    }

    /// The names of the tools that clients added, in alphabetical order.
    pub(crate) fn added(&self) -> MutexGuard<'_, BTreeSet<String>> {
        lock(&self.0.added)
    }

    /// The sessions of clients with `initialize`.
    pub(crate) fn sessions(&self) -> MutexGuard<'_, Vec<Peer<RoleServer>>> {
        lock(&self.0.sessions)
    }

    /// The open `subscriptions/listen` streams.
    pub(crate) fn sinks(&self) -> Vec<SubscriptionSink> {
        lock(&self.0.subscriptions)
            .sinks
            .values()
            .cloned()
            .collect()
    }

    /// Adds a stream; the number takes it away again.
    pub(crate) fn add_sink(&self, sink: SubscriptionSink) -> u64 {
        let mut subscriptions = lock(&self.0.subscriptions);
        let number = subscriptions.next;
        subscriptions.next += 1;
        subscriptions.sinks.insert(number, sink);
        number
    }

    pub(crate) fn remove_sink(&self, number: u64) {
        lock(&self.0.subscriptions).sinks.remove(&number);
    }
}

/// No holder of these locks can leave them half changed, so a poisoned one is as good as any.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
