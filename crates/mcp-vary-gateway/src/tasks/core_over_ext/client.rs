//! Queries a server about one of its tasks, on behalf of the gateway.

use std::sync::Arc;

use mcp_vary::json;
use mcp_vary::json::edit;
use mcp_vary_base::caller_token::CallerToken;
use mcp_vary_upstream::{CallerId, Request, Subscription, SupervisedConnection, UpstreamError};
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::task_dialect::translates_to_core;

/// Queries one task. Each query holds one of the server's permits for concurrent calls until it ends.
#[derive(Clone, Debug)]
pub(crate) struct TaskClient {
    pub(crate) connection: Arc<SupervisedConnection>,
    /// The server's id of the task.
    pub(crate) upstream_id: Arc<str>,
    /// The params of a request about any task, JSON text.
    pub(crate) params: Arc<str>,
    pub(crate) client: ClientId,
    /// The access token of the client whose request this is. `None` for what the gateway asks by itself: it has the latest
    /// token of the same user, since a task outlives the token by which it was made.
    pub(crate) token: Option<CallerToken>,
}

/// A server's response: the JSON text of its `result`, or of its `error`.
pub(crate) type TaskAnswer = Result<String, String>;

/// The reason why there is no response.
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
    fn from(error: QueryError) -> Self {
        error.failure
    }
}

impl TaskClient {
    /// Requests the task's status.
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
        let permit = self.connection.acquire().await?;
        let upstream = self.connection.ready().await?;
        if !translates_to_core(upstream.handshake()) {
            return Err(self.not_found());
        }
        let params = edit::set(&self.params, "taskId", &json::string(&self.upstream_id));
        let params = match more {
            Some((key, value)) => edit::set(&params, key, value),
            None => params,
        };
        let mut request = Request::new(method, Some(params.into_owned()));
        request.name = Some(self.upstream_id.to_string());
        request.caller = Some(CallerId(self.client));
        request.token.clone_from(&self.token);
        let answer = upstream.request(request).await?.answer().await?;
        drop(permit);
        let outcome = answer.outcome();
        Ok(outcome.map(str::to_owned).map_err(str::to_owned))
    }

    /// Subscribes to the task's status notifications, if the server sends any. Ends when the subscription is dropped.
    pub(crate) fn listen(&self) -> Subscription {
        self.connection.subscribe_task(&self.upstream_id)
    }

    fn not_found(&self) -> QueryError {
        let server = &self.connection.config().name;
        let why = format!(
            "Task not found: server `{server}`, which created it, no longer creates such tasks"
        );
        QueryError {
            failure: RpcError::invalid_params(why),
            is_transient: false,
        }
    }
}
