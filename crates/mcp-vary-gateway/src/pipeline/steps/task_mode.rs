//! Whether a call runs as a task at its server, and the ids of its task.

use std::sync::Arc;

use mcp_vary::json::{self, edit};
use mcp_vary_catalog::item::ItemRef;
use mcp_vary_catalog::shown::Tool;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::task_dialect::{RELATED_TASK_META, TaskDialect};

use super::task_support;
use crate::pipeline::request_context::{RequestContext, ViewScope};
use crate::tasks::proxy::EXT_OVER_CORE;
use crate::tasks::task_text::string;
use crate::tasks::{DialectPair, TaskIdCodec, upstream_id};

/// How a call runs at its server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TaskMode {
    /// The call creates no task.
    NoTask,
    /// The call may create a task, whose dialects on both sides are these.
    Task(DialectPair),
    /// The server requires a task, and the client does not support tasks: the gateway waits for its result.
    Implicit,
}

impl TaskMode {
    /// The mode of a call of `tool`.
    ///
    /// For clients of the extension, a call becomes a task of the core dialect if the tool can only be called as one.
    /// Legacy clients without tasks get the server's error instead.
    pub(crate) fn of_call(context: &RequestContext<'_>, tool: &Tool) -> Self {
        let server = tool.item_ref.server;
        let supports = |dialect| task_support::server_supports(context, server, dialect);
        let requests_task = context.request.params.members.contains("task")
            && task_support::client_supports(context, TaskDialect::Core);
        if requests_task && supports(TaskDialect::Core) {
            return Self::Task(DialectPair::both(TaskDialect::Core));
        }
        let declares_extension = task_support::declares_extension(context);
        if declares_extension && supports(TaskDialect::Extension) {
            return Self::Task(DialectPair::both(TaskDialect::Extension));
        }
        if !tool.needs_task || !supports(TaskDialect::Core) {
            return Self::NoTask;
        }
        if declares_extension {
            Self::Task(EXT_OVER_CORE)
        } else if context.client.era() == Era::Modern {
            Self::Implicit
        } else {
            Self::NoTask
        }
    }

    /// The codec for the id of the task that a call of `tool` may create; `None` if the client gets none.
    pub(crate) fn codec(self, scope: ViewScope<'_>, tool: &Tool) -> Option<Box<TaskIdCodec>> {
        let Self::Task(dialects) = self else {
            return None;
        };
        let mut codec = task_codec(scope, dialects, &tool.item_ref, None);
        if dialects == EXT_OVER_CORE {
            codec.prefix = Some(scope.snapshot.services.tasks.proxied.new_prefix());
        }
        Some(Box::new(codec))
    }

    /// Sets or removes the member `task`, as the server expects it.
    ///
    /// > Receivers that do not declare the task capability for a request type MUST process requests of that type
    /// > normally, ignoring any task-augmentation metadata if present.
    /// > (MCP 2025-11-25, basic/utilities/tasks, "Task Support and Handling")
    pub(crate) fn set_member(self, params: &mut Params<'_>) {
        if self == Self::Task(DialectPair::both(TaskDialect::Core)) {
            return;
        }
        params.members.remove("task");
        if self == Self::Implicit || self == Self::Task(EXT_OVER_CORE) {
            params.members.set("task", "{}");
        }
    }
}

/// The codec for the ids of tasks of the tool `item_ref`: of one that exists, or of one that the request may create.
pub(super) fn task_codec(
    scope: ViewScope<'_>,
    dialects: DialectPair,
    item_ref: &ItemRef,
    upstream_id: Option<String>,
) -> TaskIdCodec {
    let store = scope.snapshot.services.store.as_ref();
    let is_here = scope.has_state_here(item_ref.server);
    TaskIdCodec {
        replica: store.and_then(|store| is_here.then(|| store.tag())),
        dialects,
        services: Arc::clone(&scope.snapshot.services.tasks),
        server: scope.server_name(item_ref.server),
        variant: scope.snapshot.variant_id(scope.view).clone(),
        principal: scope.client.principal.clone(),
        tool: Arc::clone(&item_ref.upstream_name),
        upstream_id,
        prefix: None,
        max_lifetime: scope.snapshot.config.limits.task_lifetime,
    }
}

/// Replaces the id of the related task in `_meta` by the server's.
///
/// > All requests, responses, and notifications associated with a task MUST include the
/// > `io.modelcontextprotocol/related-task` key in `_meta` (MCP 2025-11-25, basic/utilities/tasks)
pub(crate) fn rename_related_task(context: &mut RequestContext<'_>) {
    let Some(related) = context.request.params.meta.get(RELATED_TASK_META) else {
        return;
    };
    let keys = &context.snapshot.services.cursor_keys;
    let principal = context.client.sealed_principal();
    let upstream_task_id =
        string(related, "taskId").and_then(|id| upstream_id(keys, principal, &id));
    if let Some(upstream_task_id) = upstream_task_id {
        let related = edit::set(related, "taskId", &json::string(&upstream_task_id)).into_owned();
        context.request.params.meta.set(RELATED_TASK_META, related);
    }
}
