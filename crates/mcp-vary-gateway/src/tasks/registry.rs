//! The tasks that clients created lately, and which client created each.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use mcp_vary::json::edit;
use mcp_vary_base::expiring_store::{Entry, ExpiringStore, StoreLimits};
use mcp_vary_base::lock::Lock;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::era::PROGRESS_TOKEN;
use mcp_vary_wire::server_message::own_token;
use mcp_vary_wire::task_dialect::rename_related_task;

use super::context::TaskObserver;
use super::id::TaskKey;
use super::notifier::TaskNotifier;
use crate::pool::lists::ids::ConnectionId;
use mcp_vary_session::Session;
use mcp_vary_session::client::Client;

/// The owner of each task, so that its notifications and its place in lists reach that client only.
///
/// # Properties
///
/// Bounded: if there are too many tasks, the oldest entries are removed. A client can still request such a task by its
/// id. It is only missing from the list, and the client is not notified of its changes.
#[derive(Debug)]
pub(crate) struct TaskRegistry {
    tasks: Lock<KnownTasks>,
    observer: Arc<dyn TaskObserver>,
}

#[derive(Debug)]
struct KnownTasks {
    known: ExpiringStore<TaskKey, TaskEntry>,
    /// The last notification about each task without a known client: the result that announces the task may be on its
    /// way.
    unclaimed: ExpiringStore<TaskKey, Arc<str>>,
}

/// A task of a client.
#[derive(Debug)]
struct TaskEntry {
    client: ClientId,
    /// Dangling for a client without a session, which listens if it wants notifications.
    session: Weak<Session>,
    notifier: Arc<TaskNotifier>,
}

/// Some hundred bytes each.
const MAX_KNOWN: usize = 4096;
/// The most tasks without a known client whose notification is stored.
const MAX_UNCLAIMED: usize = 64;
/// Longer notifications are not stored for tasks without a known client.
const MAX_UNCLAIMED_LENGTH: usize = 16 << 10;
/// Entries do not expire.
const NEVER: u64 = 0;

impl TaskRegistry {
    pub(crate) fn new(observer: Arc<dyn TaskObserver>) -> Self {
        Self {
            tasks: Lock::new(KnownTasks {
                known: bounded(MAX_KNOWN),
                unclaimed: bounded(MAX_UNCLAIMED),
            }),
            observer,
        }
    }

    /// Records that `client` created a task. Returns the last notification that its server sent about it before.
    pub(crate) fn record(
        &self,
        key: &TaskKey,
        notifier: TaskNotifier,
        client: &Client,
    ) -> Option<Arc<str>> {
        let session = client.session.as_ref().map(Arc::downgrade);
        let entry = Entry {
            owner: client.id,
            ..Entry::new(TaskEntry {
                client: client.id,
                session: session.unwrap_or_default(),
                notifier: Arc::new(notifier),
            })
        };
        let mut tasks = self.tasks.lock();
        tasks.known.insert(key.clone(), entry, NEVER);
        tasks.unclaimed.remove(key)
    }

    /// The id that `client` has for a task that it created.
    pub(crate) fn client_id(
        &self,
        server: &Arc<str>,
        id: &str,
        client: ClientId,
    ) -> Option<Arc<str>> {
        let tasks = self.tasks.lock();
        let key = (Arc::clone(server), Arc::from(id));
        let entry = tasks.known.get(&key, NEVER)?;
        (entry.client == client).then(|| Arc::clone(&entry.notifier.client_id))
    }

    /// The notification for `client` that a task has the status in `params`; `None` if the task belongs to another.
    pub(crate) fn status(&self, key: &TaskKey, params: &str, client: ClientId) -> Option<Bytes> {
        let notifier = {
            let tasks = self.tasks.lock();
            let entry = tasks.known.get(key, NEVER)?;
            let entry = Some(entry).filter(|entry| entry.client == client)?;
            Arc::clone(&entry.notifier)
        };
        Some(notifier.status(params))
    }

    /// Translates the server's ids of the tasks of `client` into the client's.
    pub(crate) fn client_ids<'a>(
        &'a self,
        server: &'a Arc<str>,
        client: ClientId,
    ) -> impl Fn(&str) -> Option<String> + 'a {
        move |id| Some(self.client_id(server, id, client)?.to_string())
    }

    /// The params of a progress notification that arrives after the result that announced a task of `client`, with the
    /// token of the client.
    ///
    /// > The `progressToken` provided in the initial request remains valid throughout the task lifetime.
    /// > (MCP 2025-11-25, basic/utilities/tasks, "Task Progress Notifications")
    pub(crate) fn progress(&self, client: ClientId, params: &str) -> Option<String> {
        let token = own_token(edit::get(params, PROGRESS_TOKEN)?);
        let (server, client_token) = {
            let tasks = self.tasks.lock();
            let created = tasks.known.of_owner(client, NEVER);
            let mut tokens = created.filter_map(|((server, _), it)| {
                Some((server, it.notifier.rewriter.progress.as_ref()?))
            });
            let (server, tokens) = tokens.find(|(_, it)| it.upstream == token)?;
            (Arc::clone(server), tokens.client.clone())
        };
        let named = rename_related_task(params, &self.client_ids(&server, client)).into_owned();
        Some(edit::set(&named, PROGRESS_TOKEN, &client_token).into_owned())
    }

    /// Sends the status of a task, which the server reported as `params`, to the client that created it and to its
    /// subscribers.
    ///
    /// A server without sessions reports it on the streams of one connection, that of `source`.
    pub(crate) fn changed(&self, key: &TaskKey, params: &Arc<str>, source: Option<ConnectionId>) {
        let owner = {
            let mut tasks = self.tasks.lock();
            let entry = tasks.known.get(key, NEVER);
            let owner = entry.map(|entry| {
                let session = Weak::clone(&entry.session);
                (entry.client, session, Arc::clone(&entry.notifier))
            });
            if owner.is_none() && source.is_none() {
                tasks.store_unclaimed(key, params);
            }
            owner
        };
        if let Some((client, session, notifier)) = owner
            && let Some(session) = self.observer.session(client).or_else(|| session.upgrade())
            && session.may_know_tool(&notifier.server, &notifier.tool)
        {
            // A client without an open stream can ask for the status.
            let _ = session.enqueue(notifier.status(params));
        }
        self.observer.task_changed(key, params, source);
    }
}

impl KnownTasks {
    fn store_unclaimed(&mut self, key: &TaskKey, params: &Arc<str>) {
        if params.len() > MAX_UNCLAIMED_LENGTH {
            self.unclaimed.remove(key);
            return;
        }
        let entry = Entry::new(Arc::clone(params));
        self.unclaimed.insert(key.clone(), entry, NEVER);
    }
}

fn bounded<V>(entries: usize) -> ExpiringStore<TaskKey, V> {
    ExpiringStore::new(StoreLimits {
        entries,
        ..StoreLimits::UNBOUNDED
    })
}
