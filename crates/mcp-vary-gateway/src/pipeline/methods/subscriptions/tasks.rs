//! The tasks that a client names to `subscriptions/listen` (SEP-2663).

use futures_util::future::join_all;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::task_dialect::TaskDialect;

use crate::pipeline::request_context::RequestContext;
use crate::pipeline::steps::{found_task, proxied_task, task_support};
use crate::subscriptions::filter::SubscriptionFilter;
use crate::subscriptions::{TaskKey, TaskSubscription};
use crate::tasks::proxy::EXT_OVER_CORE;

/// Subscribes to the tasks of `filter`, and leaves in it those whose changes the client will be notified of.
///
/// # Errors
///
/// When the client names tasks and does not declare the extension.
///
/// > If a client requests task status notifications but does not declare the `io.modelcontextprotocol/tasks`
/// > extension capability, the server MUST return a JSON-RPC error specifying the missing capabilities
/// > (SEP-2663, "Task Status Notifications")
pub(super) async fn subscribe_to_tasks(
    context: &RequestContext<'_>,
    filter: &mut SubscriptionFilter,
) -> Result<Vec<(TaskKey, TaskSubscription)>, RpcError> {
    let ids = match filter.tasks.take() {
        Some(ids) if task_support::is_offered(context, TaskDialect::Extension) => ids,
        _ => return Ok(Vec::new()),
    };
    if !ids.is_empty() {
        task_support::require_extension(context)?;
    }
    let subscribed = ids.into_iter().map(|id| async move {
        let (found, notifier) = found_task::notified_task(context, &id)?;
        let needs_proxy = found.dialects == EXT_OVER_CORE;
        if needs_proxy && !proxied_task::is_proxied(context, &found).await {
            return None;
        }
        let source = context.class.source(found.item_ref.server);
        let subscription = TaskSubscription::new(notifier, source, &found.task.id, needs_proxy);
        let key = (source.name().into(), found.task.id.into());
        let is_accepted = subscription.is_accepted().await;
        is_accepted.then_some((id, (key, subscription)))
    });
    let subscribed = join_all(subscribed).await.into_iter().flatten();
    let (ids, subscriptions) = subscribed.unzip();
    filter.tasks = Some(ids);
    Ok(subscriptions)
}
