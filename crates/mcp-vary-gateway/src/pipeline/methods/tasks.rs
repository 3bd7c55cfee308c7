//! Requests about tasks.

mod ext_over_core;
pub(crate) mod list;

use mcp_vary::error_code::METHOD_NOT_FOUND;
use mcp_vary::json;
use mcp_vary_wire::response::RpcError;

use self::ext_over_core::answer_proxied_task;
use crate::pipeline::request::{MethodAction, TaskAction};
use crate::pipeline::request_context::{Dispatch, RequestContext};
use crate::pipeline::steps::forward::{ForwardRequest, forward};
use crate::pipeline::steps::found_task::{FoundTask, OpenedTask};
use crate::pipeline::steps::{policy, task_support};
use crate::tasks::proxy::EXT_OVER_CORE;

/// Handles a request about a task: answers it here, or forwards it to the server that created the task.
pub(crate) async fn request(context: &mut RequestContext<'_>) -> Result<Dispatch, RpcError> {
    let dialects = task_support::request_dialects(context);
    let id = context.request.params.string("taskId")?;
    let opening = OpenedTask::open(context, &id);
    let dialects = match (dialects, &opening) {
        // If the server was removed, no other may have the method. The error about the server explains more.
        (Err(failure), Err(gone)) if failure.code() == METHOD_NOT_FOUND && gone.is_known => {
            return Err(gone.failure());
        }
        (dialects, _) => dialects?,
    };
    let opened = opening.map_err(|gone| gone.failure())?;
    let found = FoundTask::find(context, opened, &dialects)?;
    let scope = context.in_view(found.view);
    // A cancellation ends work, whatever the rate.
    if !matches!(context.action, MethodAction::Task(TaskAction::Cancel)) {
        policy::count_read(scope, found.item_ref.server).await?;
    }
    if found.dialects == EXT_OVER_CORE {
        return answer_proxied_task(context, &found).await;
    }
    let forwarding = ForwardRequest {
        name: Some(found.task.id.as_str().into()),
        ..found.forwarding(scope, found.codec(scope))
    };
    let upstream_id = json::string(&found.task.id);
    context.request.params.members.set("taskId", upstream_id);
    forward(context, forwarding).await
}
