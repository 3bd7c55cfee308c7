//! Tasks of the core dialect that the gateway proxies for clients of the extension.

use std::sync::Arc;

use mcp_vary::json;
use mcp_vary_wire::response::RpcError;

use super::forward::RequestConnection;
use super::found_task::{FoundTask, TaskNotFound};
use super::task_mode::task_codec;
use crate::pipeline::request_context::RequestContext;
use crate::pool::ConnectionUse;
use crate::tasks::proxy::{EXT_OVER_CORE, ProxiedTask, TaskBounds, TaskConnection, TaskOwner};
use crate::tasks::{DialectPair, TaskIdCodec, TaskKey, split_prefix};

/// Whether the gateway proxies the task. Starts to proxy it if its server still knows it.
pub(crate) async fn is_proxied(context: &RequestContext<'_>, found: &FoundTask) -> bool {
    let (_, upstream_id) = split_prefix(&found.task.id);
    let params = json::object(&[("taskId", &json::string(upstream_id))]);
    find(context, found, &params).await.is_ok()
}

/// By what a proxied task is known here, and at the replica that its id names.
pub(crate) fn key(context: &RequestContext<'_>, found: &FoundTask) -> TaskKey {
    let server = context.server_name(found.item_ref.server);
    (server, Arc::from(found.task.id.as_str()))
}

/// The proxied task. Starts to proxy it if its server still knows it.
///
/// # Errors
///
/// When the server does not know the task, or cannot be reached.
pub(crate) async fn find(
    context: &RequestContext<'_>,
    found: &FoundTask,
    params: &str,
) -> Result<Arc<ProxiedTask>, RpcError> {
    let proxied_tasks = &context.snapshot.services.tasks.proxied;
    let key = key(context, found);
    if let Some(proxied) = proxied_tasks.get(&key) {
        return Ok(proxied);
    }
    let leased = RequestConnection::to(context, found.item_ref.server).await?;
    let bounds = TaskBounds::of(&context.snapshot.config.limits);
    let mut task_connection = TaskConnection::new(&leased.connection, bounds);
    task_connection.is_new = false;
    let answer = leased.ask(context, "tasks/get", params.to_owned()).await?;
    if let Some(dedicated) = &leased.dedicated {
        dedicated.mark_clean();
    }
    let task = answer.outcome().map_err(|error| {
        let failure = RpcError::from_upstream_or_internal(error);
        let failure = rename_in_failure(context, found, failure);
        TaskNotFound::connection_lost(&found.task, failure.message()).failure()
    })?;
    let class = Some(ConnectionUse::new(&context.class));
    let with_leases = task_connection.with_leases(leased.dedicated, class);
    let (_, upstream_id) = split_prefix(&found.task.id);
    let owner = TaskOwner::of(context.client, None);
    with_leases.proxy(proxied_tasks, key, upstream_id, task, owner)
}

/// The codec for the ids in messages about a proxied task that already have the extension's dialect.
pub(crate) fn extension_codec(context: &RequestContext<'_>, found: &FoundTask) -> TaskIdCodec {
    let (prefix, upstream_id) = split_prefix(&found.task.id);
    let dialects = DialectPair::both(EXT_OVER_CORE.client);
    let scope = context.in_view(found.view);
    let upstream_id = Some(upstream_id.to_owned());
    TaskIdCodec {
        prefix: prefix.map(str::to_owned),
        replica: found.replica,
        ..task_codec(scope, dialects, &found.item_ref, upstream_id)
    }
}

/// Replaces the server's id of a proxied task in the message of a failure by the client's.
pub(crate) fn rename_in_failure(
    context: &RequestContext<'_>,
    found: &FoundTask,
    mut failure: RpcError,
) -> RpcError {
    let codec = extension_codec(context, found);
    if let Some(message) = codec.rename_in_message(failure.message()) {
        failure.set_message(message);
    }
    failure
}
