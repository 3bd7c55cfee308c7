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
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::revision::Revision;
use mcp_vary_wire::task_dialect::with_extension;

use crate::pipeline::exchange::{InFlightRequest, Leases, ResponseContext};
use crate::pipeline::method_action::{MethodAction, TaskAction, method_not_found};
use crate::pipeline::methods::Dispatch;
use crate::pipeline::methods::tasks::{FoundTask, TaskNotFound};
use crate::pipeline::methods::{ForwardRequest, RequestContext};
use crate::pool::ConnectionUse;
use crate::tasks::core_over_ext::{ResultWaiter, TaskAnswer, TaskClient};
use crate::tasks::task_text::{is_terminal, status, with_related_task};
use crate::tasks::{TaskKey, TaskNotifier};

impl RequestContext<'_> {
    /// The answer about a completed task that the gateway stores; `None` if it stores no such task.
    pub(super) fn completed_task(&self, id: &str) -> Option<Result<Dispatch, RpcError>> {
        let finished = &self.snapshot.services.tasks.core_over_ext.completed;
        if self.client.era() == Era::Modern {
            return None;
        }
        let task = finished.task(id)?;
        if !self.shows_task(id) {
            return Some(Err(TaskNotFound::unknown().failure()));
        }
        Some(match self.action {
            MethodAction::Task(TaskAction::Get) => Ok(self.answer(&task)),
            MethodAction::Task(TaskAction::Result) => {
                let result = finished.result(id)?;
                Ok(self.answer(&with_related_task(&result, id)))
            }
            MethodAction::Task(TaskAction::Cancel) => Err(not_to_be_cancelled(&status(&task))),
            _ => Err(method_not_found(self.request.method)),
        })
    }

    /// The client's completed tasks that the gateway stores. All of them are on the first page.
    pub(super) fn completed_task_list(&self, after: u64) -> Vec<String> {
        if after > 0 {
            return Vec::new();
        }
        let completed = &self.snapshot.services.tasks.core_over_ext.completed;
        let tasks = completed.of(self.client.id).into_iter();
        let visible = tasks.filter(|(id, _)| self.shows_task(id));
        visible.map(|(_, task)| task).collect()
    }

    /// Waits for the result of a task.
    pub(super) fn task_result(
        mut self,
        found: &FoundTask,
        id: String,
    ) -> Result<Dispatch, RpcError> {
        let finish = self.task_response(found)?;
        let task_client = self.task_client(found);
        let taken = Leases {
            class: Some(ConnectionUse::new(&self.class)),
            ..Leases::default()
        };
        let services = &self.snapshot.services;
        let awaited = ResultWaiter::new(&services.tasks.core_over_ext, task_client, id);
        let running =
            InFlightRequest::awaiting(Arc::clone(&services.exchange), awaited, taken, finish);
        Ok(Dispatch::InFlight(Box::new(running)))
    }

    /// Cancels a task, and waits a few seconds until its status is terminal.
    ///
    /// > Receivers MUST reject cancellation requests for tasks already in a terminal status with error code `-32602`
    /// > […] and MUST transition the task to `cancelled` status before sending the response.
    /// > (MCP 2025-11-25, basic/utilities/tasks, "Task Cancellation")
    pub(super) async fn cancel_task(mut self, found: &FoundTask) -> Result<Dispatch, RpcError> {
        let finish = self.task_response(found)?;
        let task_client = self.task_client(found);
        let services = &self.snapshot.services.exchange;
        let said = match task_client.status().await? {
            Ok(task) if is_terminal(&status(&task)) => {
                return Err(not_to_be_cancelled(&status(&task)));
            }
            Ok(task) => cancelled(&task_client, task).await?,
            Err(error) => Err(error),
        };
        Ok(Dispatch::Done(match said {
            Ok(task) => finish.result(&task, services),
            Err(error) => finish.error_response(&error, services),
        }))
    }

    /// The number of the last task on the previous page; 0 for the first page.
    pub(super) fn task_cursor(&self) -> Result<u64, RpcError> {
        let Some(cursor) = self.cursor() else {
            return Ok(0);
        };
        let cursor: Option<String> = serde_json::from_str(cursor).ok();
        let number = cursor.and_then(|cursor| cursor.parse().ok());
        number.ok_or_else(|| RpcError::invalid_params("Invalid cursor: it was not issued here"))
    }

    /// The tasks that the client created on servers of the extension, each with its current status,
    /// and where the next page begins.
    pub(super) async fn list_extension_tasks(
        &self,
        after: u64,
    ) -> Result<(Vec<String>, Option<u64>), RpcError> {
        let registry = &self.snapshot.services.tasks.registry;
        let mut tasks_of_client = registry.core_over_ext_after(self.client.id, after, PAGE + 1);
        let is_last = tasks_of_client.len() <= PAGE;
        tasks_of_client.truncate(PAGE);
        let next = tasks_of_client.last().map(|(number, ..)| *number);
        let mut tasks = Vec::new();
        for some in tasks_of_client.chunks(AT_ONCE) {
            let asked = some
                .iter()
                .map(|(_, key, notifier)| self.listed(key, notifier));
            for listed in join_all(asked).await {
                tasks.extend(listed?);
            }
        }
        Ok((tasks, next.filter(|_| !is_last)))
    }

    /// One task with its current status; `None` if its server or the task no longer exists, or its tool is hidden.
    async fn listed(
        &self,
        key: &TaskKey,
        notifier: &TaskNotifier,
    ) -> Result<Option<String>, RpcError> {
        if !self.shows_task(&notifier.client_id) {
            return Ok(None);
        }
        let (server, id_at_server) = key;
        let mut sources = ServerIndex::enumerate(self.class.sources());
        let Some((at, source)) = sources.find(|(_, source)| source.name() == &**server) else {
            return Ok(None);
        };
        let task_client = TaskClient {
            connection: Arc::clone(&source.connection),
            upstream_id: Arc::clone(id_at_server),
            params: self.task_params(at, Params::default()),
            client: self.client.id,
        };
        let registry = &self.snapshot.services.tasks.registry;
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
    fn task_client(&mut self, found: &FoundTask) -> TaskClient {
        self.relate_upward();
        let mut params = std::mem::take(&mut self.request.params);
        params.meta.remove(PROGRESS_TOKEN);
        TaskClient {
            connection: Arc::clone(&self.class.source(found.place.server).connection),
            upstream_id: found.task.id.as_str().into(),
            params: self.task_params(found.place.server, params),
            client: self.client.id,
        }
    }

    /// The client's `params`, as `server` expects them in requests about tasks.
    fn task_params(&self, server: ServerIndex, mut params: Params<'_>) -> Arc<str> {
        let declared = self.sent_capabilities(server, Era::Modern);
        let config = self.class.source(server).connection.config();
        let declared = declared.as_deref().unwrap_or(&config.capabilities);
        let hello = self.catalog.handshake(server);
        let upward = UpstreamContext {
            revision: hello.map_or(Revision::V2026_07_28, |hello| hello.revision),
            capabilities: &with_extension(declared),
            progress_token: None,
            log_level: None,
        };
        era::to_upstream_params(&mut params, &upward).into()
    }

    /// The context that turns the server's answer about a task into the client's.
    fn task_response(&self, found: &FoundTask) -> Result<Box<ResponseContext>, RpcError> {
        let mut downward = self.plan_of(found);
        let upstream_id = Some(found.task.id.clone());
        let names = self.new_task_codec(found.forms, found.view, &found.place, upstream_id);
        downward.task = Some(Box::new(names));
        let mut forwarding = ForwardRequest {
            server: found.place.server,
            plan: downward,
            ..ForwardRequest::default()
        };
        let mut finish = self.response_context(found.view, &mut forwarding)?;
        finish.upstream = Era::Modern;
        let server = found.place.server;
        if let Some(declared) = self.sent_capabilities(server, finish.upstream) {
            let handshake = self.catalog.handshake(server).map(Arc::as_ref);
            self.leave_shaping(server, handshake, &declared, &mut finish.plan);
        }
        Ok(finish)
    }
}

/// Cancels `task`, and polls until its status is terminal or the pauses are used up. Returns the last status.
async fn cancelled(task_client: &TaskClient, mut task: String) -> Result<TaskAnswer, RpcError> {
    if let Err(error) = task_client.query("tasks/cancel", None).await? {
        return Ok(Err(error));
    }
    for pause in POLL_PAUSES {
        tokio::time::sleep(Duration::from_millis(*pause)).await;
        match task_client.status().await? {
            Ok(stands) => task = stands,
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
