//! Subscriptions to tasks, by the ids in `subscriptions/listen` (SEP-2663).

use std::sync::Arc;

use mcp_vary_upstream::Subscription;
use mcp_vary_wire::client_id::ClientId;
use tokio::time::timeout;

use super::{
    ConnectionId, EncodedNotification, NotificationSink, Placement, Subscribers, SubscriptionHub,
};
use crate::pool::source::ServerSource;
use crate::session::Session;
pub(crate) use crate::tasks::TaskKey;
use crate::tasks::TaskNotifier;
use crate::tasks::context::TaskObserver;

/// A task that a stream is subscribed to.
#[derive(Debug)]
pub(crate) struct TaskSubscription {
    notifier: Arc<TaskNotifier>,
    source: Arc<ServerSource>,
    /// None if the gateway itself sends the notifications.
    subscription: Option<Subscription>,
}

impl TaskSubscription {
    /// The same on the connection to the server at `placement`; none if there is no such server.
    pub(crate) fn rebind(&self, placement: &Placement) -> Option<Self> {
        let mut sources = placement.class.sources().iter();
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
    /// Subscribes a stream to a task.
    pub(crate) fn listen(&mut self, number: u64, key: TaskKey, subscription: TaskSubscription) {
        if let Some(subscriber) = self.entries.get_mut(&number) {
            subscriber.tasks.insert(key.clone(), subscription);
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

    /// Moves the task subscriptions of a stream to another placement. Returns the previous ones.
    pub(crate) fn move_tasks(
        &mut self,
        number: u64,
        placement: &Placement,
    ) -> Vec<TaskSubscription> {
        let tasks = match self.entries.get_mut(&number) {
            Some(subscriber) => std::mem::take(&mut subscriber.tasks),
            None => return Vec::new(),
        };
        let mut before = Vec::new();
        for (key, previous) in tasks {
            self.forget_listener(number, &key);
            if let Some(rebound) = previous.rebind(placement) {
                self.listen(number, key, rebound);
            }
            before.push(previous);
        }
        before
    }
}

impl TaskObserver for SubscriptionHub {
    fn session(&self, client: ClientId) -> Option<Arc<Session>> {
        let mut subscribers = self.lock();
        let (_, subscriber) = subscribers.of_session(client)?;
        match &subscriber.sink {
            NotificationSink::Session(session) => session.upgrade(),
            NotificationSink::Stream { .. } => None,
        }
    }

    /// Notifies the subscribers of a task; only those on `source`, if that is given.
    fn task_changed(&self, key: &TaskKey, params: &str, source: Option<ConnectionId>) {
        let notifiers: Vec<_> = {
            let subscribers = self.lock();
            let listeners = subscribers.tasks.get(key).into_iter().flatten();
            let listeners = listeners.filter_map(|number| {
                let subscriber = subscribers.entries.get(number)?;
                let subscription = subscriber.tasks.get(key)?;
                let notifier = &subscription.notifier;
                let is_meant = source.is_none_or(|source| source == subscription.source.id)
                    && subscriber
                        .placement
                        .may_know_tool(&notifier.server, &notifier.tool);
                is_meant.then(|| (*number, Arc::clone(notifier)))
            });
            listeners.collect()
        };
        // Results are shaped outside of the lock.
        let notifications: Vec<_> = notifiers
            .into_iter()
            .map(|(number, notifier)| {
                (
                    number,
                    EncodedNotification::task_changed(&notifier.params_to_client(params)),
                )
            })
            .collect();
        let mut subscribers = self.lock();
        let late = notifications
            .into_iter()
            .filter_map(|(number, notification)| {
                let subscriber = subscribers.entries.get(&number)?;
                (!subscriber.send(&notification)).then_some(number)
            });
        let late: Vec<_> = late.collect();
        let removed = subscribers.remove_all(late);
        drop(subscribers);
        drop(removed);
    }
}

impl TaskSubscription {
    /// Subscribes to the task that the server of `source` calls `upstream_id`, unless the gateway itself
    /// [proxies](crate::tasks::proxy::ProxiedTasks) it.
    pub(crate) fn new(
        notifier: TaskNotifier,
        source: &Arc<ServerSource>,
        upstream_id: &str,
        is_proxied: bool,
    ) -> Self {
        let subscribe = || source.connection.subscribe_task(upstream_id);
        Self {
            notifier: Arc::new(notifier),
            source: Arc::clone(source),
            subscription: (!is_proxied).then(subscribe),
        }
    }

    /// Whether a stream may promise notifications of the task: unless the server refuses, now.
    pub(crate) async fn is_accepted(&self) -> bool {
        let connection = &self.source.connection;
        let Some(subscription) = &self.subscription else {
            return true;
        };
        if connection.current().is_none() {
            // The subscription is sent as soon as the server is connected.
            return true;
        }
        let limit = connection.config().limits.ready_timeout;
        let settled = timeout(limit, subscription.settled());
        !matches!(settled.await, Ok(Err(_)))
    }
}
