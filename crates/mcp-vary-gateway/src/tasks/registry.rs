//! The tasks that were made lately, and for whom.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use mcp_vary::json::edit;
use mcp_vary_upstream::Subscription;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::era::PROGRESS_TOKEN;

use super::{TaskNotifier, related};
use crate::session::Session;
use crate::session::client::Client;
use crate::subscriptions::{ConnectionId, SubscriptionHub};
use crate::tasks::client::{is_over, status};

/// Of each task who had it made, so that what a server tells of it, or lists, reaches nobody else.
///
/// # Properties
///
/// Bounded: of too many tasks the oldest are forgotten. Whoever holds the id of a forgotten task can still ask
/// for it; it is only not listed any more, and its changes are not told.
#[derive(Debug)]
pub(crate) struct TaskRegistry {
    tasks: Mutex<KnownTasks>,
    hub: Arc<SubscriptionHub>,
}

#[derive(Debug, Default)]
struct KnownTasks {
    known: BTreeMap<TaskKey, TaskEntry>,
    /// In the order in which they were made.
    order: VecDeque<TaskKey>,
    /// What servers said last of tasks that nobody has, the oldest first: the answer that a task was made may be
    /// on its way.
    unclaimed: VecDeque<(TaskKey, Arc<str>)>,
    /// How many were made.
    count: u64,
}

/// A server by name, and what it calls the task.
pub(crate) type TaskKey = (Arc<str>, Arc<str>);

/// Who had a task made.
#[derive(Debug)]
struct TaskEntry {
    client: ClientId,
    /// None for a client without a session, which listens if it wants to hear.
    session: Weak<Session>,
    notifier: Arc<TaskNotifier>,
    /// Has the server tell of it, where it does that only when asked to.
    last_sent: Option<Subscription>,
    /// In which order they were made.
    number: u64,
}

/// Some hundred bytes each.
const MAX_KNOWN: usize = 4096;
/// Tasks that nobody has, of which something was said.
const MAX_UNCLAIMED: usize = 64;
/// What is longer is not kept for whoever may turn up.
const MAX_UNCLAIMED_LENGTH: usize = 16 << 10;

impl TaskRegistry {
    pub(crate) fn new(hub: Arc<SubscriptionHub>) -> Self {
        Self {
            tasks: Mutex::default(),
            hub,
        }
    }

    /// Notes that `client` had a task made; what its server said of it before that, if it did.
    pub(crate) fn record(
        &self,
        key: &TaskKey,
        teller: TaskNotifier,
        client: &Client,
        told: Option<Subscription>,
    ) -> Option<Arc<str>> {
        let session = client.session.as_ref().map(Arc::downgrade);
        let mut tasks = self.lock();
        tasks.count += 1;
        let entry = TaskEntry {
            client: client.id,
            session: session.unwrap_or_default(),
            notifier: Arc::new(teller),
            last_sent: told,
            number: tasks.count,
        };
        if tasks.known.insert(key.clone(), entry).is_none() {
            tasks.order.push_back(key.clone());
        }
        while tasks.order.len() > MAX_KNOWN {
            if let Some(oldest) = tasks.order.pop_front() {
                tasks.known.remove(&oldest);
            }
        }
        let said = tasks.unclaimed.iter().position(|(of, _)| of == key)?;
        tasks.unclaimed.remove(said).map(|(_, said)| said)
    }

    /// What `client` calls a task of its own.
    pub(crate) fn task(&self, server: &Arc<str>, own: &str, client: ClientId) -> Option<Arc<str>> {
        let tasks = self.lock();
        let entry = tasks.known.get(&(Arc::clone(server), Arc::from(own)))?;
        (entry.client == client).then(|| Arc::clone(&entry.notifier.client_id))
    }

    /// The notification for `client` that a task stands as `params` say; none when it is not its own.
    pub(crate) fn status(&self, key: &TaskKey, params: &str, client: ClientId) -> Option<Bytes> {
        let teller = {
            let tasks = self.lock();
            let entry = tasks.known.get(key).filter(|it| it.client == client)?;
            Arc::clone(&entry.notifier)
        };
        Some(
            teller
                .dialects
                .client
                .status_notification(&teller.notification(params)),
        )
    }

    /// At most `most` of the tasks that `client` had made in the core form by servers of the extension, in that order
    /// and after the one with this number: each with its number.
    pub(crate) fn after(
        &self,
        client: ClientId,
        number: u64,
        most: usize,
    ) -> Vec<(u64, TaskKey, Arc<TaskNotifier>)> {
        let tasks = self.lock();
        let own = tasks.known.iter().filter(|(_, it)| {
            it.client == client && it.number > number && it.notifier.dialects.is_core_client()
        });
        let own = own.map(|(key, it)| (it.number, key.clone(), Arc::clone(&it.notifier)));
        let mut own: Vec<_> = own.collect();
        drop(tasks);
        own.sort_unstable_by_key(|(number, ..)| *number);
        own.truncate(most);
        own
    }

    /// A task stays as it is: nothing more is told of it.
    pub(crate) fn is_over(&self, key: &TaskKey) {
        let told = self
            .lock()
            .known
            .get_mut(key)
            .and_then(|it| it.last_sent.take());
        drop(told);
    }

    /// There is no such task any more.
    pub(crate) fn forget(&self, key: &TaskKey) {
        let mut tasks = self.lock();
        let gone = tasks.known.remove(key);
        tasks.order.retain(|other| other != key);
        drop(tasks);
        drop(gone);
    }

    /// What `client` calls the tasks that a server has for it.
    pub(crate) fn names<'a>(
        &'a self,
        server: &'a Arc<str>,
        client: ClientId,
    ) -> impl Fn(&str) -> Option<String> + 'a {
        move |own| Some(self.task(server, own, client)?.to_string())
    }

    /// The params of progress that is told after the answer that a task of `client` was made, with the token that it
    /// gave.
    ///
    /// > The `progressToken` provided in the initial request remains valid throughout the task lifetime.
    /// > (MCP 2025-11-25, basic/utilities/tasks, "Task Progress Notifications")
    pub(crate) fn progress(&self, client: ClientId, params: &str) -> Option<String> {
        let token = edit::get(params, PROGRESS_TOKEN)?;
        let tasks = self.lock();
        let tellers = tasks.known.iter().filter(|(_, it)| it.client == client);
        let mut told = tellers.filter_map(|((server, _), it)| {
            Some((server, it.notifier.rewriter.progress.as_ref()?))
        });
        let (server, progress) = told.find(|(_, it)| it.upstream == token)?;
        let (server, theirs) = (Arc::clone(server), progress.client.clone());
        drop(tasks);
        let named = related(params, &self.names(&server, client)).into_owned();
        Some(edit::set(&named, PROGRESS_TOKEN, &theirs).into_owned())
    }

    /// Tells whoever had a task made, and whoever listens to it, how it stands: `params` is what the server said.
    ///
    /// A server without sessions says it on the streams of one connection, that of `source`.
    pub(crate) fn changed(&self, key: &TaskKey, params: &Arc<str>, source: Option<ConnectionId>) {
        let heard = {
            let mut tasks = self.lock();
            let entry = tasks.known.get(key);
            let heard = entry.map(|entry| {
                let (session, teller) = (Weak::clone(&entry.session), Arc::clone(&entry.notifier));
                (entry.client, session, teller)
            });
            if heard.is_none() && source.is_none() {
                tasks.keep_unclaimed(key, params);
            }
            heard
        };
        if let Some((client, session, teller)) = heard
            && let Some(session) = self.hub.session(client).or_else(|| session.upgrade())
        {
            // Whoever does not read now may ask how the task stands.
            let _ = session.enqueue(
                teller
                    .dialects
                    .client
                    .status_notification(&teller.notification(params)),
            );
        }
        if is_over(&status(params)) {
            self.is_over(key);
        }
        self.hub.task_changed(key, params, source);
    }

    fn lock(&self) -> MutexGuard<'_, KnownTasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownTasks {
    fn keep_unclaimed(&mut self, key: &TaskKey, params: &Arc<str>) {
        self.unclaimed.retain(|(of, _)| of != key);
        if params.len() > MAX_UNCLAIMED_LENGTH {
            return;
        }
        if self.unclaimed.len() >= MAX_UNCLAIMED {
            self.unclaimed.pop_front();
        }
        self.unclaimed.push_back((key.clone(), Arc::clone(params)));
    }
}
