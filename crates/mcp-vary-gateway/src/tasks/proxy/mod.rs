//! Proxied tasks: tasks of servers of the core dialect for clients of the extension.
//!
//! In the core dialect, only a client that waits for the result receives the task's requests and its result. In the
//! extension, both are part of the task's status and no request stays open. So the gateway [waits](connection) for the
//! result itself.

mod connection;
mod task;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, Weak};

use mcp_vary::json::edit;
use mcp_vary_base::lock::Lock;
use mcp_vary_upstream::ServerRequest;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::server_request_support::ServerRequestSupport;
use mcp_vary_wire::task_dialect::TaskDialect;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub(crate) use self::connection::{TaskBounds, TaskConnection};
pub(crate) use self::task::ProxiedTask;
use self::task::{TaskState, related_task};
use super::context::TaskContext;
use super::dialect::DialectPair;
use super::id::PREFIX;
use super::notifier::TaskNotifier;
use super::registry::TaskKey;
use super::task_text::lifetime;
use crate::mrtr::{InputRequests, Quota};
use crate::session::Session;
use crate::session::client::{Client, QuotaKey};

/// The proxied tasks: running ones, and the results of ended ones.
///
/// # Properties
///
/// Bounded by: running tasks, in total and for each principal; all tasks; the bytes of the results of ended tasks, of
/// which the oldest are evicted. Each task expires.
#[derive(Debug)]
pub(crate) struct ProxiedTasks {
    context: Arc<TaskContext>,
    /// Distinguishes this gateway from others that share its keys, and from itself before a restart.
    instance: u64,
    next: AtomicU64,
    entries: Lock<Entries>,
}

type Entries = BTreeMap<TaskKey, Arc<ProxiedTask>>;

/// The client that created a task.
#[derive(Debug)]
pub(crate) struct TaskOwner {
    pub(crate) quota_key: QuotaKey,
    pub(crate) client: ClientId,
    pub(crate) server_requests: ServerRequestSupport,
    pub(crate) session: Option<(Weak<Session>, TaskNotifier)>,
}

impl TaskOwner {
    pub(crate) fn of(client: &Client, session: Option<(Weak<Session>, TaskNotifier)>) -> Self {
        Self {
            quota_key: client.quota_key(),
            client: client.id,
            server_requests: client.server_request_support(),
            session,
        }
    }
}

/// The dialects of all proxied tasks.
pub(crate) const EXT_OVER_CORE: DialectPair = DialectPair {
    client: TaskDialect::Extension,
    server: TaskDialect::Core,
};

impl ProxiedTasks {
    pub(crate) fn new(context: Arc<TaskContext>, instance: u64) -> Self {
        Self {
            context,
            instance,
            next: AtomicU64::new(0),
            entries: Lock::default(),
        }
    }

    /// A prefix that no other task id has.
    pub(crate) fn new_prefix(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        format!("{PREFIX}{:x}.{number:x}{PREFIX}", self.instance)
    }

    /// Starts to proxy a task that a server of the core dialect reported as `task`.
    ///
    /// # Errors
    ///
    /// When too many tasks are running; a task that was just created is cancelled then.
    pub(crate) fn begin(
        self: &Arc<Self>,
        (key, upstream_id): (TaskKey, &str),
        task: &str,
        owner: TaskOwner,
        connection: TaskConnection,
    ) -> Result<Arc<ProxiedTask>, RpcError> {
        let ttl = lifetime(edit::get(task, "ttl")).filter(|ttl| *ttl <= connection.lifetime);
        let proxied = Arc::new(ProxiedTask {
            context: Arc::clone(&self.context),
            ttl: ttl.is_none().then_some(connection.lifetime.as_millis()),
            lifetime: ttl.unwrap_or(connection.lifetime),
            key,
            upstream_id: upstream_id.into(),
            number: self.next.fetch_add(1, Ordering::Relaxed),
            owner: owner.quota_key,
            client: owner.client,
            server_requests: owner.server_requests,
            session: owner.session,
            connection: Arc::downgrade(connection.connection()),
            is_dedicated: connection.is_dedicated(),
            state: Lock::new(TaskState {
                task: task.to_owned(),
                input: InputRequests::default(),
                outcome: None,
            }),
            notifying: Lock::default(),
            changed: Notify::new(),
            ended: CancellationToken::new(),
            forgotten: CancellationToken::new(),
        });
        let inserted = self.insert(&proxied, connection.quota);
        let is_wanted = match &inserted {
            Ok(known) => Arc::ptr_eq(known, &proxied),
            Err(_) => false,
        };
        if is_wanted || inserted.is_err() && connection.is_new {
            let run = connection.run(proxied, Arc::clone(self), is_wanted);
            self.context.background_tasks.spawn(run);
        }
        inserted
    }

    /// How many tasks are running.
    pub(crate) fn count(&self) -> usize {
        let entries = self.lock();
        entries.values().filter(|it| !it.is_over()).count()
    }

    /// Whether a server request belongs to a running task of a session.
    pub(crate) fn owns_request(&self, server: &str, request: &ServerRequest) -> bool {
        let Some(id) = related_task(request) else {
            return false;
        };
        let is_its = |it: &Arc<ProxiedTask>| {
            *it.key.0 == *server && *it.upstream_id == *id && it.session.is_some() && !it.is_over()
        };
        self.lock().values().any(is_its)
    }

    /// The task of a key.
    pub(crate) fn get(&self, key: &TaskKey) -> Option<Arc<ProxiedTask>> {
        self.lock().get(key).cloned()
    }

    /// Adds a task. Returns the existing one if the key is taken.
    fn insert(&self, task: &Arc<ProxiedTask>, quota: Quota) -> Result<Arc<ProxiedTask>, RpcError> {
        let mut entries = self.lock();
        if let Some(known) = entries.get(&task.key) {
            return Ok(Arc::clone(known));
        }
        let working = entries.values().filter(|it| !it.is_over());
        let (mut total, mut of_owner) = (0, 0);
        for other in working {
            total += 1;
            of_owner += usize::from(other.owner == task.owner);
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
    fn evict(&self, bytes: usize) {
        let size = |entries: &Entries| {
            let sizes = entries.values().map(|it| it.lock().size());
            sizes.sum::<usize>()
        };
        evict_ended(&mut self.lock(), |entries| size(entries) <= bytes);
    }

    fn forget(&self, task: &Arc<ProxiedTask>) {
        let mut entries = self.lock();
        if entries
            .get(&task.key)
            .is_some_and(|it| Arc::ptr_eq(it, task))
        {
            entries.remove(&task.key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock()
    }
}

/// Removes the oldest ended tasks until there `is_room`.
fn evict_ended(entries: &mut Entries, is_room: impl Fn(&Entries) -> bool) {
    while !is_room(entries) {
        let ended = entries.values().filter(|it| it.is_over());
        let Some(oldest) = ended.min_by_key(|it| it.number) else {
            return;
        };
        let key = oldest.key.clone();
        entries.remove(&key);
    }
}

/// Some hundred bytes each.
const MAX_PROXIED: usize = 4096;
/// One result may take this fraction of all bytes.
const RESULT_SHARE: usize = 4;
