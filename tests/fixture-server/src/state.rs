//! The state that all connections to one server share: tasks, counters, added tools, and subscribers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use rmcp::task_manager::TaskManager;
use tokio::sync::watch;

use crate::changes::{Audience, lock};

/// The state of the server; cheap to clone, and all clones are the same.
#[derive(Clone)]
pub(crate) struct Shared(Arc<State>);

struct State {
    tasks: TaskManager,
    cancelled: watch::Sender<u64>,
    released: watch::Sender<()>,
    added: Mutex<BTreeSet<String>>,
    audience: Audience,
}

impl Shared {
    pub(crate) fn new() -> Self {
        Self(Arc::new(State {
            tasks: TaskManager::new(),
            cancelled: watch::Sender::new(0),
            released: watch::Sender::new(()),
            added: Mutex::default(),
            audience: Audience::default(),
        }))
    }

    pub(crate) fn tasks(&self) -> &TaskManager {
        &self.0.tasks
    }

    /// How many calls were cancelled so far; can be waited on.
    pub(crate) fn cancelled(&self) -> &watch::Sender<u64> {
        &self.0.cancelled
    }

    /// Changes when calls that wait for it may come to their end.
    pub(crate) fn released(&self) -> &watch::Sender<()> {
        &self.0.released
    }

    /// The names of the tools that clients added, in alphabetical order.
    pub(crate) fn added(&self) -> MutexGuard<'_, BTreeSet<String>> {
        lock(&self.0.added)
    }

    /// The clients that receive change notifications.
    pub(crate) fn audience(&self) -> &Audience {
        &self.0.audience
    }
}
