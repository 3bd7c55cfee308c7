//! Requests of legacy clients about tasks of servers with the extension: those that take several steps, and those
//! that the gateway answers itself.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use mcp_vary::error_code::INVALID_PARAMS;
use mcp_vary::json::edit;
use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_wire::era::{self, PROGRESS_TOKEN, UpstreamContext};
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::{Era, Revision};
use mcp_vary_wire::task_dialect::with_extension;

use crate::pipeline::exchange::{InFlightRequest, Leases, ResponseContext};
use crate::pipeline::request::{MethodAction, TaskAction, method_not_found};
use crate::pipeline::request_context::{Dispatch, RequestContext};
use crate::pipeline::steps::forward::response_context;
use crate::pipeline::steps::found_task::{FoundTask, TaskNotFound};
use crate::pipeline::steps::{forward, found_task, response_plan, task_mode};
use crate::pool::ConnectionUse;
use crate::tasks::core_over_ext::{ResultWaiter, TaskAnswer, TaskClient};
use crate::tasks::task_text::{is_terminal, status, with_related_task};
use crate::tasks::{TaskKey, TaskNotifier};

/// The answer about a completed task that the gateway stores; `None` if it stores no such task.
pub(super) fn answer_completed_task(
    context: &RequestContext<'_>,
    id: &str,
) -> Option<Result<Dispatch, RpcError>> {
    if context.client.era() == Era::Modern {
        return None;
    }
    let completed = &context.snapshot.services.tasks.core_over_ext.completed;
    let task = completed.task(id)?;
    if !found_task::shows_task(context, id) {
        return Some(Err(TaskNotFound::unknown().failure()));
    }
    let answer = |result: &str| Ok(context.answer(result));
    Some(match context.action {
        MethodAction::Task(TaskAction::Get) => answer(&task),
        MethodAction::Task(TaskAction::Result) => {
            answer(&with_related_task(&completed.result(id)?, id))
        }
        MethodAction::Task(TaskAction::Cancel) => Err(not_to_be_cancelled(&status(&task))),
        _ => Err(method_not_found(context.request.method)),
    })
}

/// Waits for the result of a task.
pub(super) fn wait_for_result(
    context: &mut RequestContext<'_>,
    found: &FoundTask,
    id: String,
) -> Result<Dispatch, RpcError> {
    let response = task_response(context, found)?;
    // The result may come after the end of the client's token.
    let task_client = TaskClient {
        token: None,
        ..task_client(context, found)
    };
    let leases = Leases {
        class: Some(ConnectionUse::new(&context.class)),
        ..Leases::default()
    };
    let services = &context.snapshot.services;
    let waiter = ResultWaiter::new(&services.tasks.core_over_ext, task_client, id);
    let services = Arc::clone(&services.exchange);
    let in_flight = InFlightRequest::awaiting(services, waiter, leases, response);
    Ok(Dispatch::InFlight(in_flight))
}

/// Cancels a task, and waits a few seconds until its status is terminal.
///
/// > Receivers MUST reject cancellation requests for tasks already in a terminal status with error code `-32602`
/// > […] and MUST transition the task to `cancelled` status before sending the response.
/// > (MCP 2025-11-25, basic/utilities/tasks, "Task Cancellation")
pub(super) async fn cancel_task(
    context: &mut RequestContext<'_>,
    found: &FoundTask,
) -> Result<Dispatch, RpcError> {
    let response = task_response(context, found)?;
    let task_client = task_client(context, found);
    let outcome = match task_client.status().await? {
        Ok(task) if is_terminal(&status(&task)) => {
            return Err(not_to_be_cancelled(&status(&task)));
        }
        Ok(task) => cancel(&task_client, task).await?,
        Err(error) => Err(error),
    };
    let services = &context.snapshot.services.exchange;
    Ok(Dispatch::Done(match outcome {
        Ok(task) => response.result(&task, services),
        Err(error) => response.error_response(&error, services),
    }))
}

/// A page of the client's tasks on servers of the extension.
pub(super) struct TaskPage {
    /// The completed ones that the gateway stores. All of them are on the first page.
    pub(super) completed: Vec<String>,
    /// The others, with their current status.
    pub(super) current: Vec<String>,
    /// The number where the next page begins.
    pub(super) next: Option<u64>,
}

/// The tasks that the client created on servers of the extension, `after` a number.
pub(super) async fn page_of_tasks(
    context: &RequestContext<'_>,
    after: u64,
) -> Result<TaskPage, RpcError> {
    let services = &context.snapshot.services.tasks;
    let mut completed = Vec::new();
    if after == 0 {
        let stored = services.core_over_ext.completed.of(context.client.id);
        let visible = stored
            .into_iter()
            .filter(|(id, _)| found_task::shows_task(context, id));
        completed.extend(visible.map(|(_, task)| task));
    }
    let mut current = Vec::new();
    let registry = &services.registry;
    let mut listed = registry.core_over_ext_after(context.client.id, after, PAGE + 1);
    let is_last = listed.len() <= PAGE;
    listed.truncate(PAGE);
    let next = listed.last().map(|(number, ..)| *number);
    for chunk in listed.chunks(AT_ONCE) {
        let statuses = chunk.iter();
        let statuses = statuses.map(|(_, key, notifier)| current_task(context, key, notifier));
        for task in join_all(statuses).await {
            current.extend(task?);
        }
    }
    Ok(TaskPage {
        completed,
        current,
        next: next.filter(|_| !is_last),
    })
}

/// One task with its current status; `None` if its server or the task no longer exists, or its tool is hidden.
async fn current_task(
    context: &RequestContext<'_>,
    key: &TaskKey,
    notifier: &TaskNotifier,
) -> Result<Option<String>, RpcError> {
    if !found_task::shows_task(context, &notifier.client_id) {
        return Ok(None);
    }
    let (server, upstream_id) = key;
    let mut sources = ServerIndex::enumerate(context.class.sources());
    let Some((at, source)) = sources.find(|(_, source)| source.name() == &**server) else {
        return Ok(None);
    };
    let task_client = TaskClient {
        connection: Arc::clone(&source.connection),
        upstream_id: Arc::clone(upstream_id),
        params: task_params(context, at, Params::default()),
        client: context.client.id,
        token: context.client.access_token().cloned(),
    };
    let registry = &context.snapshot.services.tasks.registry;
    match task_client.status().await? {
        Ok(task) => {
            if is_terminal(&status(&task)) {
                registry.unsubscribe(key);
            }
            Ok(Some(notifier.params_to_client(&task)))
        }
        Err(error) => {
            if RpcError::from_upstream_or_internal(&error).code() == INVALID_PARAMS {
                registry.forget(key);
            }
            Ok(None)
        }
    }
}

/// A client that sends the server requests about a task, with the params of the client's request.
fn task_client(context: &mut RequestContext<'_>, found: &FoundTask) -> TaskClient {
    task_mode::rename_related_task(context);
    let mut params = std::mem::take(&mut context.request.params);
    params.meta.remove(PROGRESS_TOKEN);
    let server = found.item_ref.server;
    TaskClient {
        connection: Arc::clone(&context.class.source(server).connection),
        upstream_id: found.task.id.as_str().into(),
        params: task_params(context, server, params),
        client: context.client.id,
        token: context.client.access_token().cloned(),
    }
}

/// The client's `params`, as `server` expects them in requests about tasks.
fn task_params(
    context: &RequestContext<'_>,
    server: ServerIndex,
    mut params: Params<'_>,
) -> Arc<str> {
    let declared = forward::sent_capabilities(context, server, Era::Modern);
    let config = context.class.source(server).connection.config();
    let declared = declared.as_deref().unwrap_or(&config.capabilities);
    let handshake = context.catalog.handshake(server);
    let upstream_context = UpstreamContext {
        revision: handshake.map_or(Revision::V2026_07_28, |handshake| handshake.revision),
        capabilities: &with_extension(declared),
        progress_token: None,
        log_level: None,
    };
    era::to_upstream_params(&mut params, &upstream_context).into()
}

/// The context that turns the server's answer about a task into the client's.
fn task_response(
    context: &RequestContext<'_>,
    found: &FoundTask,
) -> Result<Box<ResponseContext>, RpcError> {
    let scope = context.in_view(found.view);
    let mut forwarding = found.forwarding(scope, found.codec(scope));
    let mut response = response_context(scope, &mut forwarding)?;
    response.upstream = Era::Modern;
    let server = found.item_ref.server;
    if let Some(declared) = forward::sent_capabilities(context, server, response.upstream) {
        let handshake = context.catalog.handshake(server).map(Arc::as_ref);
        response_plan::leave_to_server(context, server, handshake, &declared, &mut response.plan);
    }
    Ok(response)
}

/// Cancels `task`, and polls until its status is terminal or the pauses are used up. Returns the last status.
async fn cancel(task_client: &TaskClient, mut task: String) -> Result<TaskAnswer, RpcError> {
    if let Err(error) = task_client.query("tasks/cancel", None).await? {
        return Ok(Err(error));
    }
    for pause in POLL_PAUSES {
        tokio::time::sleep(Duration::from_millis(*pause)).await;
        match task_client.status().await? {
            Ok(current) => task = current,
            // > receivers MAY delete cancelled tasks at their discretion at any time, including immediately after
            // > cancellation (MCP 2025-11-25, basic/utilities/tasks, "Task Cancellation")
            Err(_) => {
                return Ok(Ok(
                    edit::set(&task, "status", CANCELLED_MESSAGE).into_owned()
                ));
            }
        }
        if is_terminal(&status(&task)) {
            break;
        }
    }
    Ok(Ok(task))
}

fn not_to_be_cancelled(status: &str) -> RpcError {
    RpcError::invalid_params(format!("Cannot cancel task: it is `{status}` already"))
}

const CANCELLED_MESSAGE: &str = r#""cancelled""#;

/// The pauses between polls of a cancelled task, in milliseconds.
const POLL_PAUSES: &[u64] = &[0, 50, 100, 200, 400, 800, 1600];

/// Tasks on one page.
const PAGE: usize = 50;
/// The number of tasks whose status is requested concurrently.
const AT_ONCE: usize = 8;
