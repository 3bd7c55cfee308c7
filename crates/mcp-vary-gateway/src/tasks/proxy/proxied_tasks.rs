//! All proxied tasks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcp_vary_base::lock::Lock;
use mcp_vary_upstream::ServerRequest;
use mcp_vary_wire::response::RpcError;

use super::task::{ProxiedTask, related_task};
use crate::mrtr::Quota;
use crate::tasks::context::TaskContext;
use crate::tasks::id::{PREFIX, TaskKey};

/// The proxied tasks: running ones, and the results of ended ones.
///
/// # Properties
///
/// Bounded by: running tasks, in total and for each principal; all tasks; the bytes of the results of ended tasks, of
/// which the oldest are evicted. Each task expires.
#[derive(Debug)]
pub(crate) struct ProxiedTasks {
    pub(super) context: Arc<TaskContext>,
    /// Distinguishes this gateway from others that share its keys, and from itself before a restart.
    instance: u64,
    next: AtomicU64,
    entries: Lock<Entries>,
}

type Entries = BTreeMap<TaskKey, Arc<ProxiedTask>>;

impl ProxiedTasks {
    pub(crate) fn new(context: Arc<TaskContext>, instance: u64) -> Self {
        Self {
            context,
            instance,
            next: AtomicU64::new(0),
            entries: Lock::default(),
        }
    }

    pub(super) fn next_number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// A prefix that no other task id has.
    pub(crate) fn new_prefix(&self) -> String {
        let number = self.next_number();
        format!("{PREFIX}{:x}.{number:x}{PREFIX}", self.instance)
    }

    /// How many tasks are running.
    pub(crate) fn count(&self) -> usize {
        self.entries
            .lock()
            .values()
            .filter(|task| !task.is_over())
            .count()
    }

    /// Whether a server request belongs to a running task of a session.
    pub(crate) fn owns_request(&self, server: &str, request: &ServerRequest) -> bool {
        let Some(id) = related_task(request) else {
            return false;
        };
        let is_its = |it: &Arc<ProxiedTask>| {
            *it.key.0 == *server
                && *it.upstream_id == *id
                && it.owner.session.is_some()
                && !it.is_over()
        };
        self.entries.lock().values().any(is_its)
    }

    /// The task of a key.
    pub(crate) fn get(&self, key: &TaskKey) -> Option<Arc<ProxiedTask>> {
        self.entries.lock().get(key).cloned()
    }

    /// Adds a task. Returns the existing one if the key is taken.
    pub(super) fn insert(
        &self,
        task: &Arc<ProxiedTask>,
        quota: Quota,
    ) -> Result<Arc<ProxiedTask>, RpcError> {
        let mut entries = self.entries.lock();
        if let Some(known) = entries.get(&task.key) {
            return Ok(Arc::clone(known));
        }
        let working = entries.values().filter(|other| !other.is_over());
        let mut total = 0;
        let mut of_owner = 0;
        for other in working {
            total += 1;
            of_owner += usize::from(other.owner.quota_key == task.owner.quota_key);
        }
        if total >= quota.total || of_owner >= quota.per_principal {
            return Err(RpcError::internal(
                "the call is a task of the server, and too many tasks are running; try again later",
            ));
        }
        entries.insert(task.key.clone(), Arc::clone(task));
        evict_ended(&mut entries, |entries| entries.len() <= MAX_PROXIED);
        Ok(Arc::clone(task))
    }

    /// Evicts the oldest ended tasks until the results fit.
    pub(super) fn evict(&self, bytes: usize) {
        let size = |entries: &Entries| {
            let sizes = entries.values().map(|task| task.lock().size());
            sizes.sum::<usize>()
        };
        evict_ended(&mut self.entries.lock(), |entries| size(entries) <= bytes);
    }

    pub(super) fn forget(&self, task: &Arc<ProxiedTask>) {
        let mut entries = self.entries.lock();
        if entries
            .get(&task.key)
            .is_some_and(|known| Arc::ptr_eq(known, task))
        {
            entries.remove(&task.key);
        }
    }
}

/// Removes the oldest ended tasks until there `is_room`.
fn evict_ended(entries: &mut Entries, is_room: impl Fn(&Entries) -> bool) {
    while !is_room(entries) {
        let ended = entries.values().filter(|task| task.is_over());
        let Some(oldest) = ended.min_by_key(|task| task.number) else {
            return;
        };
        let key = oldest.key.clone();
        entries.remove(&key);
    }
}

/// Some hundred bytes each.
const MAX_PROXIED: usize = 4096;
