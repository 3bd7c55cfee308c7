//! The task that a client's request names.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary::task::Task;
use mcp_vary_catalog::index::{ServerIndex, ViewIndex};
use mcp_vary_catalog::item::ItemRef;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::shown::Tool;
use mcp_vary_results::shaper::ResultRewriter;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::task_dialect::TaskDialect;

use super::forward::ForwardRequest;
use super::{response_plan, task_mode, task_support};
use crate::pipeline::exchange::ResponsePlan;
use crate::pipeline::request_context::{RequestContext, ViewScope};
use crate::tasks::proxy::EXT_OVER_CORE;
use crate::tasks::{DialectPair, TaskIdCodec, TaskNotifier, split_prefix, split_replica};

/// The task that a client's request names.
pub(crate) struct FoundTask {
    pub(crate) dialects: DialectPair,
    /// The view under which it was created.
    pub(crate) view: ViewIndex,
    /// The tool whose call created it.
    pub(crate) item_ref: ItemRef,
    pub(crate) task: Task,
    /// The replica that its id names.
    pub(crate) replica: Option<u32>,
    /// That tool, if the view still has it.
    tool: Option<Arc<Tool>>,
}

impl FoundTask {
    /// Finds the view, tool and dialects of an opened task, for a client that supports these `dialects`.
    ///
    /// # Errors
    ///
    /// When the task does not exist for the client any more.
    pub(crate) fn find(
        context: &RequestContext<'_>,
        opened: OpenedTask,
        dialects: &[TaskDialect],
    ) -> Result<Self, RpcError> {
        let found = view_of(context, &opened.task);
        let view = found.ok_or_else(|| TaskNotFound::unknown().failure())?;
        let item_ref = opened.item_ref();
        let tools = context.catalog.view(ListKind::Tools, view);
        let tool = tools.and_then(|tools| tools.tool_for(&item_ref)).cloned();
        // A task of a tool that access rules hide by now does not exist.
        if tool.is_none() && context.variant_set().access().is_some() {
            return Err(TaskNotFound::unknown().failure());
        }
        let dialects = dialects_of(context, &opened, dialects)?;
        if let Some(record) = context.client.observation.record() {
            let server = context.server_name(opened.server);
            record.set_server(&server, Some(&opened.task.id.as_str().into()));
        }
        Ok(Self {
            dialects,
            view,
            item_ref,
            task: opened.task,
            replica: opened.replica,
            tool,
        })
    }

    /// The task of the extension with this id, if it is found.
    pub(super) fn find_of_extension(context: &RequestContext<'_>, id: &str) -> Option<Self> {
        let opened = OpenedTask::open(context, id).ok()?;
        Self::find(context, opened, &[TaskDialect::Extension]).ok()
    }

    /// The codec for the ids in messages about the task.
    pub(crate) fn codec(&self, scope: ViewScope<'_>) -> TaskIdCodec {
        let upstream_id = Some(self.task.id.clone());
        TaskIdCodec {
            replica: self.replica,
            ..task_mode::task_codec(scope, self.dialects, &self.item_ref, upstream_id)
        }
    }

    /// A request about the task to its server, with the plan for its response.
    pub(crate) fn forwarding(&self, scope: ViewScope<'_>, codec: TaskIdCodec) -> ForwardRequest {
        let mut plan = self.plan(scope);
        plan.task = Some(Box::new(codec));
        ForwardRequest {
            plan,
            ..ForwardRequest::new(self.view, self.item_ref.server)
        }
    }

    /// The plan for the result of the task: that for the result of the tool call.
    fn plan(&self, scope: ViewScope<'_>) -> ResponsePlan {
        let Some(tool) = &self.tool else {
            return ResponsePlan::default();
        };
        let arguments = scope.request.params.members.get("arguments");
        ResponsePlan {
            origin: Some(self.item_ref.link_source(ListKind::Tools)),
            names: tool.name_rewriter.clone(),
            shape: response_plan::tool_shape(scope, tool, arguments.unwrap_or("{}")),
            ..ResponsePlan::default()
        }
    }
}

/// A task whose id was opened, and its server.
pub(crate) struct OpenedTask {
    task: Task,
    replica: Option<u32>,
    server: ServerIndex,
}

impl OpenedTask {
    /// Opens the id of a task.
    ///
    /// # Errors
    ///
    /// When it was not sealed for the client, or its server is not configured any more.
    pub(crate) fn open(context: &RequestContext<'_>, id: &str) -> Result<Self, TaskNotFound> {
        let keys = &context.snapshot.services.cursor_keys;
        let mut task = Task::open(keys, context.client.sealed_principal(), id)
            .ok_or_else(TaskNotFound::unknown)?;
        let (replica, upstream_id) = split_replica(&task.id);
        task.id = upstream_id.to_owned();
        let servers = &context.snapshot.config.servers;
        match ServerIndex::find(servers, |server| server.name == task.server) {
            Some(server) => Ok(Self {
                task,
                replica,
                server,
            }),
            None => Err(TaskNotFound::from(
                &task,
                "is not behind this gateway any more",
            )),
        }
    }

    /// The tool whose call created the task.
    fn item_ref(&self) -> ItemRef {
        ItemRef {
            server: self.server,
            upstream_name: self.task.tool.as_str().into(),
        }
    }
}

/// Why a task was not found.
pub(crate) struct TaskNotFound {
    why: Cow<'static, str>,
    /// Whether the id is valid, so that the task existed once.
    pub(crate) is_known: bool,
}

impl TaskNotFound {
    pub(crate) fn unknown() -> Self {
        Self {
            why: "it was not made here, or is gone".into(),
            is_known: false,
        }
    }

    /// The server of the task cannot be used; `is` gives the reason.
    fn from(task: &Task, is: &str) -> Self {
        Self {
            why: format!("server `{}`, which made it, {is}", task.server).into(),
            is_known: true,
        }
    }

    /// The gateway does not watch the task, and its server answered with an error with this `message`.
    pub(super) fn connection_lost(task: &Task, message: &str) -> Self {
        let why = "it was made at another gateway, before this one was started again, or its time is over";
        let server = &task.server;
        Self {
            why: format!("{why}; server `{server}` says: {message}").into(),
            is_known: true,
        }
    }

    pub(crate) fn failure(&self) -> RpcError {
        RpcError::invalid_params(format!("Task not found: {}", self.why))
    }
}

/// Whether the id was sealed for the client, and access rules show the tool whose call created the task.
pub(crate) fn shows_task(context: &RequestContext<'_>, id: &str) -> bool {
    if context.variant_set().access().is_none() {
        let keys = &context.snapshot.services.cursor_keys;
        return Task::open(keys, context.client.sealed_principal(), id).is_some();
    }
    let Ok(opened) = OpenedTask::open(context, id) else {
        return false;
    };
    let view = view_of(context, &opened.task);
    let tools = view.and_then(|view| context.catalog.view(ListKind::Tools, view));
    tools.is_some_and(|tools| tools.tool_for(&opened.item_ref()).is_some())
}

/// The task of the extension with this id, and the notifier that writes its notifications for the client.
pub(crate) fn notified_task(
    context: &RequestContext<'_>,
    id: &str,
) -> Option<(FoundTask, TaskNotifier)> {
    let found = FoundTask::find_of_extension(context, id)?;
    let scope = context.in_view(found.view);
    let plan = found.plan(scope);
    let notifier = TaskNotifier {
        tool: Arc::clone(&found.item_ref.upstream_name),
        // The notifications of a proxied task already have the client's dialect.
        dialect: TaskDialect::Extension,
        client_id: id.into(),
        server: context.server_name(found.item_ref.server),
        // Modern clients know all kinds of content, and these notifications carry no progress.
        rewriter: ResultRewriter {
            origin: plan.origin.filter(|_| context.snapshot.follows_links),
            shape: plan.shape,
            names: plan.names,
            uris: response_plan::changed_uris(scope),
            ..ResultRewriter::default()
        },
        link_index: Arc::clone(&context.snapshot.services.exchange.link_index),
    };
    Some((found, notifier))
}

/// The dialects of a task, for a client that supports these `dialects`.
fn dialects_of(
    context: &RequestContext<'_>,
    opened: &OpenedTask,
    dialects: &[TaskDialect],
) -> Result<DialectPair, RpcError> {
    let server = opened.server;
    let task = &opened.task;
    let is_unknown = context.catalog.handshake(server).is_none();
    // A server that is not connected gets the request anyway: the failure explains what is wrong.
    let is_offered = |dialect: TaskDialect| {
        is_unknown || task_support::server_supports(context, server, dialect)
    };
    let is_proxied = split_prefix(&task.id).0.is_some()
        && dialects.contains(&EXT_OVER_CORE.client)
        && is_offered(EXT_OVER_CORE.server);
    let same = dialects
        .iter()
        .copied()
        .find(|dialect| is_offered(*dialect));
    if is_proxied {
        Ok(EXT_OVER_CORE)
    } else if let Some(dialect) = same {
        Ok(DialectPair::both(dialect))
    } else {
        Err(TaskNotFound::from(task, "makes no tasks any more").failure())
    }
}

/// The view under which a task was created (SV-28), if the client may still use its variant.
fn view_of(context: &RequestContext<'_>, task: &Task) -> Option<ViewIndex> {
    let variant_set = context.variant_set();
    let index = variant_set.index_of(task.variant.as_str())?;
    let is_offered = !context.snapshot.config.variants || context.client.offers.allows(index);
    is_offered.then(|| variant_set.presented_view(index, context.client.presentation))
}
