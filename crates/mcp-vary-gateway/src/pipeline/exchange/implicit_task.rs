//! A call that its server runs only as a task, for a client without tasks: it ends when the task does.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::json::{self, edit, may_contain};
use mcp_vary_base::tasks::TaskTracker;
use mcp_vary_upstream::sent_request::SentRequest;
use mcp_vary_upstream::{Exchange, Request, UpstreamError};
use mcp_vary_wire::task_dialect::RELATED_TASK_META;
use tokio::time::timeout;
use tracing::debug;

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

    /// Records the task that the server created for the call. Returns whether it did.
    pub(super) fn record_creation(&mut self, outcome: Result<&str, &str>) -> bool {
        // The answer after the creation is the result.
        if self.upstream_id.take().is_some() {
            return false;
        }
        self.upstream_id = outcome.ok().and_then(core_task_id);
        self.awaits_result()
    }

    /// Whether the result of the task has not been requested yet.
    pub(super) const fn awaits_result(&self) -> bool {
        self.upstream_id.is_some()
    }

    /// Requests the result of the task. The server answers when it has ended.
    pub(super) fn request_result(
        &self,
    ) -> Option<impl Future<Output = Result<Exchange, UpstreamError>> + use<>> {
        let request = self.task_request("tasks/result", self.upstream_id.as_deref()?);
        let upstream = Arc::clone(&self.sent.connection);
        Some(async move { upstream.request(request).await })
    }

    fn task_request(&self, method: &'static str, upstream_id: &str) -> Request {
        let params = json::object(&[("taskId", &json::string(upstream_id))]);
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

/// A task's result without its relation to the task, which the client does not know.
pub(super) fn without_related_task(result: &str) -> Cow<'_, str> {
    if !may_contain(result, RELATED_TASK_META) {
        return Cow::Borrowed(result);
    }
    let Some(meta) = edit::get(result, "_meta").map(|meta| edit::remove(meta, RELATED_TASK_META))
    else {
        return Cow::Borrowed(result);
    };
    match &*meta {
        "{}" => edit::remove(result, "_meta"),
        meta => edit::set(result, "_meta", meta),
    }
}

/// How long the server may take to answer the cancellation.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
