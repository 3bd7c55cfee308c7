//! Subscriptions to tasks, by the ids in `subscriptions/listen` (SEP-2663).

use std::sync::Arc;

use mcp_vary_upstream::Subscription;

use super::placement::Placement;
use crate::pool::source::ServerSource;
use crate::tasks::TaskNotifier;

/// A task that a stream is subscribed to.
#[derive(Debug)]
pub(crate) struct TaskSubscription {
    pub(super) notifier: Arc<TaskNotifier>,
    pub(super) source: Arc<ServerSource>,
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
        match &self.subscription {
            Some(subscription) => self.source.may_honor(subscription).await,
            None => true,
        }
    }
}
