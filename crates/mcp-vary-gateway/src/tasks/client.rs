//! Asks a server about one of its tasks, on behalf of the gateway.

use std::sync::Arc;

use mcp_vary::json;
use mcp_vary::json::edit;
use mcp_vary_upstream::{CallerId, Request, Subscription, SupervisedConnection, UpstreamError};
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::task_dialect::translates_to_core;

use super::string;

/// What is needed to query a task. Each query takes a place at the server and gives it back.
#[derive(Clone, Debug)]
pub(crate) struct TaskClient {
    pub(crate) line: Arc<SupervisedConnection>,
    /// The server's id of the task.
    pub(crate) upstream_id: Arc<str>,
    /// The params of a request about any task, JSON text.
    pub(crate) params: Arc<str>,
    pub(crate) client: ClientId,
}

/// A server's response: the JSON text of its `result`, or of its `error`.
pub(crate) type TaskAnswer = Result<String, String>;

/// Why there is no response.
#[derive(Debug)]
pub(crate) struct QueryError {
    pub(crate) failure: RpcError,
    /// Whether another attempt may succeed.
    pub(crate) is_transient: bool,
}

impl From<UpstreamError> for QueryError {
    fn from(error: UpstreamError) -> Self {
        Self {
            is_transient: error.is_loss() || matches!(error, UpstreamError::Overloaded { .. }),
            failure: error.into(),
        }
    }
}

impl From<QueryError> for RpcError {
    fn from(unanswered: QueryError) -> Self {
        unanswered.failure
    }
}

impl TaskClient {
    /// Asks for the task's status.
    pub(crate) async fn status(&self) -> Result<TaskAnswer, QueryError> {
        self.query("tasks/get", None).await
    }

    /// Sends `method` about the task, with one more member in the params.
    ///
    /// # Errors
    ///
    /// When the server does not respond, or no longer supports such tasks.
    pub(crate) async fn query(
        &self,
        method: &'static str,
        more: Option<(&str, &str)>,
    ) -> Result<TaskAnswer, QueryError> {
        let turn = self.line.acquire().await?;
        let upstream = self.line.ready().await?;
        if !translates_to_core(upstream.handshake()) {
            return Err(self.is_gone());
        }
        let params = edit::set(&self.params, "taskId", &json::string(&self.upstream_id));
        let params = match more {
            Some((key, value)) => edit::set(&params, key, value),
            None => params,
        };
        let mut request = Request::new(method, Some(params.into_owned()));
        request.name = Some(self.upstream_id.to_string());
        request.caller = Some(CallerId(self.client));
        let answer = upstream.request(request).await?.answer().await?;
        drop(turn);
        let said = answer.outcome();
        Ok(said.map(str::to_owned).map_err(str::to_owned))
    }

    /// Subscribes to the task's status notifications, if the server sends any. Ends when the subscription is dropped.
    pub(crate) fn listen(&self) -> Subscription {
        self.line.subscribe_task(&self.upstream_id)
    }

    fn is_gone(&self) -> QueryError {
        let server = &self.line.config().name;
        let why = format!(
            "Task not found: server `{server}`, which made it, makes no tasks any more, or not so"
        );
        QueryError {
            failure: RpcError::invalid_params(why),
            is_transient: false,
        }
    }
}

/// The status of a task, from the JSON text of the task.
pub(crate) fn status(task: &str) -> String {
    string(task, "status").unwrap_or_default()
}

/// Whether this status is terminal.
///
/// > Tasks with a `completed`, `failed`, or `cancelled` status are in a terminal state and MUST NOT transition to any
/// > other status (MCP 2025-11-25, basic/utilities/tasks, "Task Status Lifecycle")
pub(crate) fn is_over(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}
