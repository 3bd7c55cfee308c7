//! The tasks that a client names to `subscriptions/listen` (SEP-2663).

use futures_util::future::join_all;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::task_dialect::TaskDialect;

use crate::pipeline::methods::RequestContext;
use crate::subscriptions::filter::SubscriptionFilter;
use crate::subscriptions::{TaskKey, TaskSubscription};

impl RequestContext<'_> {
    /// Subscribes to the tasks of `filter`, and leaves in it those whose changes the client will be notified of.
    ///
    /// # Errors
    ///
    /// When the client names tasks and does not declare the extension.
    ///
    /// > If a client requests task status notifications but does not declare the `io.modelcontextprotocol/tasks`
    /// > extension capability, the server MUST return a JSON-RPC error specifying the missing capabilities
    /// > (SEP-2663, "Task Status Notifications")
    pub(crate) async fn task_subscriptions(
        &self,
        filter: &mut SubscriptionFilter,
    ) -> Result<Vec<(TaskKey, TaskSubscription)>, RpcError> {
        let requested = filter.tasks.take();
        let Some(ids) = requested.filter(|_| self.has_servers_with(TaskDialect::Extension)) else {
            return Ok(Vec::new());
        };
        if !ids.is_empty() {
            self.declares(TaskDialect::Extension)?;
        }
        let subscribed = ids.into_iter().map(|id| async move {
            let (server, notifier, dialects, upstream_id) = self.task_notifier(&id)?;
            let is_proxied = dialects.differ();
            if is_proxied && !self.is_proxied(&id).await {
                return None;
            }
            let source = self.class.source(server);
            let subscription = TaskSubscription::new(notifier, source, &upstream_id, is_proxied);
            let key = (source.name().into(), upstream_id.into());
            let is_accepted = subscription.is_accepted().await;
            is_accepted.then_some((id, key, subscription))
        });
        let subscribed: Vec<_> = join_all(subscribed).await.into_iter().flatten().collect();
        filter.tasks = Some(subscribed.iter().map(|(id, ..)| id.clone()).collect());
        let subscribed = subscribed.into_iter();
        Ok(subscribed
            .map(|(_, key, subscription)| (key, subscription))
            .collect())
    }
}
