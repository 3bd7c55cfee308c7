//! A server that is asked about one of its tasks by the gateway itself.

use std::sync::Arc;

use mcp_vary::json;
use mcp_vary::json::edit;
use mcp_vary_upstream::{CallerId, Request, Subscription, SupervisedConnection, UpstreamError};
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::task_dialect::translates_to_core;

use super::string;

/// What it takes to ask, each time anew and with no place at the server in between.
#[derive(Clone, Debug)]
pub(crate) struct TaskClient {
    pub(crate) line: Arc<SupervisedConnection>,
    /// What the server calls the task.
    pub(crate) upstream_id: Arc<str>,
    /// The params of a request about any task, JSON text.
    pub(crate) params: Arc<str>,
    pub(crate) client: ClientId,
}

/// What a server answered: the JSON text of its `result`, or of its `error`.
pub(crate) type TaskAnswer = Result<String, String>;

/// Why a server answered nothing.
#[derive(Debug)]
pub(crate) struct QueryError {
    pub(crate) failure: RpcError,
    /// Whether it may answer when it is asked again.
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
    /// Asks how the task stands.
    pub(crate) async fn status(&self) -> Result<TaskAnswer, QueryError> {
        self.query("tasks/get", None).await
    }

    /// Asks the server `method` about the task, with one more member of the params.
    ///
    /// # Errors
    ///
    /// When it does not answer, or makes no such tasks any more.
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

    /// Has the server tell of the task without being asked, if it does that, until this is dropped.
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

/// The status in what a server says of a task.
pub(crate) fn status(task: &str) -> String {
    string(task, "status").unwrap_or_default()
}

/// Whether a task of this status stays as it is.
///
/// > Tasks with a `completed`, `failed`, or `cancelled` status are in a terminal state and MUST NOT transition to any
/// > other status (MCP 2025-11-25, basic/utilities/tasks, "Task Status Lifecycle")
pub(crate) fn is_over(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}
