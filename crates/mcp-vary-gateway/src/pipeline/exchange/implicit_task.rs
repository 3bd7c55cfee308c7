//! A call that its server runs only as a task, for a client without tasks: it ends when the task does.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::json::{self, edit, may_contain};
use mcp_vary_upstream::Request;
use mcp_vary_upstream::sent_request::SentRequest;
use mcp_vary_wire::task_dialect::RELATED_TASK_META;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;
use tracing::debug;

use super::{InFlightRequest, ResponseEvent, unless_cancelled};
use crate::tasks::task_text::core_task_id;

/// The task of such a call, known only to the gateway and the server.
///
/// # Properties
///
/// Dropping this before the task has ended cancels the task.
#[derive(Debug)]
pub(crate) struct ImplicitTask {
    sent: Arc<SentRequest>,
    /// The server's id, from its creation to its end.
    upstream_id: Option<String>,
    background_tasks: TaskTracker,
}

impl ImplicitTask {
    pub(crate) const fn new(sent: Arc<SentRequest>, background_tasks: TaskTracker) -> Self {
        Self {
            sent,
            upstream_id: None,
            background_tasks,
        }
    }

    fn task_request(&self, method: &'static str, upstream_id: &str) -> Request {
        let params = format!(r#"{{"taskId":{}}}"#, json::string(upstream_id));
        Request {
            params: Some(params),
            method: method.into(),
            ..self.sent.request.clone()
        }
    }
}

impl Drop for ImplicitTask {
    fn drop(&mut self) {
        let Some(task_id) = self.upstream_id.take() else {
            return;
        };
        let mut request = self.task_request("tasks/cancel", &task_id);
        request.progress_token = None;
        let upstream = Arc::clone(&self.sent.connection);
        let cancelled = async move {
            let cancelled = async { upstream.request(request).await?.answer().await };
            if !matches!(timeout(CANCEL_TIMEOUT, cancelled).await, Ok(Ok(_))) {
                debug!(server = upstream.name(), "task not cancelled");
            }
        };
        self.background_tasks.spawn(cancelled);
    }
}

impl InFlightRequest {
    /// Records the task that the server created for the call. Returns whether it did.
    pub(super) fn record_implicit_task(&mut self, outcome: Result<&str, &str>) -> bool {
        let Some(implicit_task) = self.leases.implicit_task.as_mut() else {
            return false;
        };
        // The answer after the creation is the result.
        if implicit_task.upstream_id.take().is_some() {
            return false;
        }
        implicit_task.upstream_id = outcome.ok().and_then(core_task_id);
        let is_created = implicit_task.upstream_id.is_some();
        if is_created {
            self.exchange = None;
        }
        is_created
    }

    /// Whether the result of the task has not been requested yet.
    pub(super) fn awaits_task(&self) -> bool {
        let implicit_task = self.leases.implicit_task.as_ref();
        implicit_task.is_some_and(|task| task.upstream_id.is_some())
    }

    /// Requests the result of the task. The server answers when it has ended.
    pub(super) async fn wait_for_task(&mut self) -> Option<ResponseEvent> {
        let implicit_task = self.leases.implicit_task.as_ref()?;
        let request =
            implicit_task.task_request("tasks/result", implicit_task.upstream_id.as_deref()?);
        let upstream = Arc::clone(&implicit_task.sent.connection);
        match unless_cancelled(self.in_flight_guard.as_ref(), upstream.request(request)).await {
            None => Some(self.cancel_by_client()),
            Some(Err(error)) => Some(self.fail(&error.into())),
            Some(Ok(exchange)) => {
                self.exchange = Some(exchange);
                None
            }
        }
    }

    /// The result without its relation to a task, which the client does not know.
    pub(super) fn without_related_task<'a>(&self, result: &'a str) -> Cow<'a, str> {
        if self.leases.implicit_task.is_none() || !may_contain(result, RELATED_TASK_META) {
            return Cow::Borrowed(result);
        }
        let Some(meta) =
            edit::get(result, "_meta").map(|meta| edit::remove(meta, RELATED_TASK_META))
        else {
            return Cow::Borrowed(result);
        };
        match &*meta {
            "{}" => edit::remove(result, "_meta"),
            meta => edit::set(result, "_meta", meta),
        }
    }
}

/// How long the server may take to answer the cancellation.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
