//! Who listens to tasks, by the ids that it gave to `subscriptions/listen` (SEP-2663).

use std::sync::Arc;

use futures_util::future::join_all;
use mcp_vary_upstream::Subscription;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::task_dialect::TaskDialect;
use tokio::time::timeout;

use super::filter::SubscriptionFilter;
use super::{
    ConnectionId, EncodedNotification, NotificationSink, Placement, Subscribers, SubscriptionHub,
    source_id,
};
use crate::pipeline::methods::RequestContext;
use crate::pool::source::ServerSource;
use crate::session::Session;
pub(crate) use crate::tasks::TaskKey;
use crate::tasks::TaskNotifier;

/// A task that a stream tells of.
#[derive(Debug)]
pub(crate) struct TaskSubscription {
    notifier: Arc<TaskNotifier>,
    source: Arc<ServerSource>,
    /// None where the gateway itself tells of the task.
    subscription: Option<Subscription>,
}

impl TaskSubscription {
    /// The same with the connection that there is to the server at `place`; none when there is no such server.
    pub(crate) fn rebind(&self, place: &Placement) -> Option<Self> {
        let mut sources = place.class.sources().iter();
        let source = sources.find(|source| source.name() == self.source.name())?;
        let again = |before: &Subscription| source.connection.resubscribe_task(&before.uri);
        Some(Self {
            notifier: Arc::clone(&self.notifier),
            source: Arc::clone(source),
            subscription: self.subscription.as_ref().map(again),
        })
    }
}

impl Subscribers {
    /// Lets a stream tell of a task.
    pub(crate) fn listen(&mut self, number: u64, key: TaskKey, listened: TaskSubscription) {
        if let Some(member) = self.entries.get_mut(&number) {
            member.tasks.insert(key.clone(), listened);
            self.tasks.entry(key).or_default().insert(number);
        }
    }

    pub(crate) fn forget_listener(&mut self, number: u64, key: &TaskKey) {
        if let Some(listeners) = self.tasks.get_mut(key) {
            listeners.remove(&number);
            if listeners.is_empty() {
                self.tasks.remove(key);
            }
        }
    }

    /// Has a stream listen to its tasks at another place; what it had before.
    pub(crate) fn move_tasks(&mut self, number: u64, place: &Placement) -> Vec<TaskSubscription> {
        let tasks = match self.entries.get_mut(&number) {
            Some(member) => std::mem::take(&mut member.tasks),
            None => return Vec::new(),
        };
        let mut before = Vec::new();
        for (key, old) in tasks {
            self.forget_listener(number, &key);
            if let Some(anew) = old.rebind(place) {
                self.listen(number, key, anew);
            }
            before.push(old);
        }
        before
    }
}

impl SubscriptionHub {
    /// The session of `client`, if it hears of changes.
    pub(crate) fn session(&self, client: ClientId) -> Option<Arc<Session>> {
        let mut members = self.lock();
        let (_, member) = members.of_session(client)?;
        match &member.sink {
            NotificationSink::Session(session) => session.upgrade(),
            NotificationSink::Stream { .. } => None,
        }
    }

    /// Tells whoever listens to a task how it stands, of those that hear of `source` if that is given.
    pub(crate) fn task_changed(&self, key: &TaskKey, params: &str, source: Option<ConnectionId>) {
        let tellers: Vec<_> = {
            let members = self.lock();
            let listeners = members.tasks.get(key).into_iter().flatten();
            let listeners = listeners.filter_map(|number| {
                let listened = members.entries.get(number)?.tasks.get(key)?;
                let is_meant = source.is_none_or(|source| source == source_id(&listened.source));
                is_meant.then(|| (*number, Arc::clone(&listened.notifier)))
            });
            listeners.collect()
        };
        // What has a result is shaped; nobody else is held up by that.
        let notices: Vec<_> = tellers
            .into_iter()
            .map(|(number, teller)| {
                (
                    number,
                    EncodedNotification::task_changed(&teller.notification(params)),
                )
            })
            .collect();
        let mut members = self.lock();
        let late = notices.into_iter().filter_map(|(number, notice)| {
            let member = members.entries.get(&number)?;
            (!member.send(&notice)).then_some(number)
        });
        let late: Vec<_> = late.collect();
        let gone = members.remove_all(late);
        drop(members);
        drop(gone);
    }
}

impl RequestContext<'_> {
    /// Listens to the tasks of `filter`, and leaves those in it that are told of.
    ///
    /// # Errors
    ///
    /// When the client asks for some and does not declare the extension.
    ///
    /// > If a client requests task status notifications but does not declare the `io.modelcontextprotocol/tasks`
    /// > extension capability, the server MUST return a JSON-RPC error specifying the missing capabilities
    /// > (SEP-2663, "Task Status Notifications")
    pub(crate) async fn listened(
        &self,
        filter: &mut SubscriptionFilter,
    ) -> Result<Vec<(TaskKey, TaskSubscription)>, RpcError> {
        let asked = filter.tasks.take();
        let Some(ids) = asked.filter(|_| self.has_servers_with(TaskDialect::Extension)) else {
            return Ok(Vec::new());
        };
        if !ids.is_empty() {
            self.declares(TaskDialect::Extension)?;
        }
        let listened = ids.into_iter().map(|id| async move {
            let (server, teller, forms, own) = self.task_notifier(&id)?;
            if forms.differ() && !self.is_proxied(&id).await {
                return None;
            }
            let source = &self.class.sources()[server];
            let listened = TaskSubscription {
                notifier: Arc::new(teller),
                source: Arc::clone(source),
                subscription: (!forms.differ()).then(|| source.connection.subscribe_task(&own)),
            };
            let key = (source.name().into(), own.into());
            is_notified(&listened).await.then_some((id, key, listened))
        });
        let listened: Vec<_> = join_all(listened).await.into_iter().flatten().collect();
        filter.tasks = Some(listened.iter().map(|(id, ..)| id.clone()).collect());
        let listened = listened.into_iter();
        Ok(listened.map(|(_, key, listened)| (key, listened)).collect())
    }
}

/// Whether a stream may promise to tell of a task: unless the server refuses, now.
async fn is_notified(listened: &TaskSubscription) -> bool {
    let line = &listened.source.connection;
    let Some(subscription) = &listened.subscription else {
        return true;
    };
    if line.current().is_none() {
        // It is asked as soon as it is back.
        return true;
    }
    let patience = line.config().limits.ready_timeout;
    let settled = timeout(patience, subscription.settled());
    !matches!(settled.await, Ok(Err(_)))
}
