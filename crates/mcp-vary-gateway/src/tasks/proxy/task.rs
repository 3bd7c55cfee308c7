//! One proxied task: its state, and the requests about it.

use std::borrow::Cow;
use std::sync::{Arc, MutexGuard, Weak};
use std::time::Duration;

use mcp_vary::error_code::{INTERNAL_ERROR, INVALID_PARAMS};
use mcp_vary::json::{self, Members, edit};
use mcp_vary_base::caller_token::CallerToken;
use mcp_vary_base::lock::ScopedLock;
use mcp_vary_upstream::{CallerId, Request, ServerRequest, SupervisedConnection};
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::server_message;
use mcp_vary_wire::server_request_support::ServerRequestSupport;
use mcp_vary_wire::task_dialect::{RELATED_TASK_META, TaskDialect};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::mrtr::{INPUT_REQUESTS, InputRequests};
use crate::tasks::context::TaskContext;
use crate::tasks::dialect::task_of_extension;
use crate::tasks::id::TaskKey;
use crate::tasks::notifier::TaskNotifier;
use crate::tasks::task_text::{RESULT, string};
use mcp_vary_session::client::{Client, QuotaKey};
use mcp_vary_session::{Session, pending_server_requests};

/// One proxied task.
#[derive(Debug)]
pub(crate) struct ProxiedTask {
    pub(super) context: Arc<TaskContext>,
    /// The server, and the id that is sealed into the client's.
    pub(super) key: TaskKey,
    /// The server's id.
    pub(super) upstream_id: Arc<str>,
    /// The position in the order of creation.
    pub(super) number: u64,
    pub(super) owner: TaskOwner,
    /// The connection on which it was created.
    pub(super) connection: Weak<SupervisedConnection>,
    pub(super) is_dedicated: bool,
    /// How long it exists.
    pub(super) lifetime: Duration,
    /// The same in milliseconds, where the server would retain the task longer.
    pub(super) ttl: Option<u128>,
    pub(super) state: ScopedLock<TaskState>,
    /// Held while a notification is sent, so that they stay in order.
    pub(super) notifying: ScopedLock<()>,
    pub(super) changed: Notify,
    pub(super) ended: CancellationToken,
    /// Cancelled when the task is dropped.
    pub(super) forgotten: CancellationToken,
}

/// The client that created a task.
#[derive(Debug)]
pub(crate) struct TaskOwner {
    pub(super) quota_key: QuotaKey,
    pub(super) client: ClientId,
    pub(super) server_requests: ServerRequestSupport,
    /// The client's session, if it has one, and the notifier for it.
    pub(super) session: Option<(Weak<Session>, TaskNotifier)>,
}

impl TaskOwner {
    pub(crate) fn of(client: &Client, session: Option<(Weak<Session>, TaskNotifier)>) -> Self {
        Self {
            quota_key: client.quota_key(),
            client: client.id,
            server_requests: client.server_request_support(),
            session,
        }
    }
}

/// A request of a client about a task.
#[derive(Debug)]
pub(crate) struct ClientQuery {
    /// The params for the server, JSON text.
    pub(crate) params: String,
    /// The client's access token. What the gateway asks by itself has the latest token of the same user, since a task
    /// outlives the token by which it was made.
    pub(crate) token: Option<CallerToken>,
}

/// The state of a task.
#[derive(Debug)]
pub(super) struct TaskState {
    /// The task as the server last reported it, JSON text.
    pub(super) task: String,
    /// Its open input requests.
    pub(super) input: InputRequests,
    pub(super) outcome: Option<TaskOutcome>,
}

/// The outcome of a task, as the server reported it.
#[derive(Debug)]
pub(super) enum TaskOutcome {
    Result(String),
    Error(String),
    Cancelled,
}

impl TaskOutcome {
    /// The outcome is unknown, for the reason given.
    pub(super) fn failed(why: &str) -> Self {
        Self::Error(server_message::error_json(INTERNAL_ERROR, why))
    }

    pub(super) fn gone(why: &str) -> Self {
        Self::failed(&format!("{why}, and its task is gone"))
    }
}

impl ProxiedTask {
    pub(crate) fn is_over(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// The task in the dialect of the extension and with the server's id, JSON text.
    ///
    /// # Errors
    ///
    /// The server's error, or why it cannot be reached.
    pub(crate) async fn status(&self, query: ClientQuery) -> Result<String, RpcError> {
        if !self.has_outcome_or_input() {
            match self.ask_server("tasks/get", Some(query)).await? {
                Ok(task) => {
                    self.receive_status(&task);
                    self.wait_for_details().await;
                }
                // The server may have dropped the task together with its result.
                Err(why) if why.code() == INVALID_PARAMS => {
                    self.wait_for_more(STATUS_WAIT).await;
                    self.finish(TaskOutcome::gone(why.message()));
                }
                Err(why) => return Err(why),
            }
        }
        Ok(self.to_json())
    }

    /// Whether the input requests or the outcome are known.
    pub(super) fn has_outcome_or_input(&self) -> bool {
        let mut state = self.lock();
        state.input.forget_settled();
        state.outcome.is_some() || !state.input.is_empty()
    }

    /// Waits a moment for the input requests or the outcome that the status announces; they arrive separately.
    pub(super) async fn wait_for_details(&self) {
        let limit = match string(&self.lock().task, "status").as_deref() {
            Some("completed" | "failed") => STATUS_WAIT,
            // The status may refer to input requests that were answered or refused.
            Some("input_required") => INPUT_WAIT,
            _ => return,
        };
        self.wait_for_more(limit).await;
    }

    /// Waits up to `limit` for input requests or the outcome.
    pub(super) async fn wait_for_more(&self, limit: Duration) {
        let waited = async {
            loop {
                let changed = self.changed.notified();
                if self.has_outcome_or_input() {
                    return;
                }
                changed.await;
            }
        };
        let _ = tokio::time::timeout(limit, waited).await;
    }

    /// The task as `tasks/get` of the extension returns it.
    pub(super) fn to_json(&self) -> String {
        let server_name = self
            .context
            .pending_server_requests
            .server_name(&self.key.0);
        let state = self.lock();
        let task = task_of_extension(&state.task).into_owned();
        let task = [RESULT, "error", INPUT_REQUESTS]
            .iter()
            .fold(task, |task, key| edit::remove(&task, key).into_owned());
        let task = self.with_ttl(&task).into_owned();
        let set = |status: &str, more: Option<(&str, &str)>| {
            let task = edit::set(&task, "status", &json::string(status)).into_owned();
            more.map_or_else(
                || task.clone(),
                |(key, value)| edit::set(&task, key, value).into_owned(),
            )
        };
        match &state.outcome {
            Some(TaskOutcome::Result(result)) => set("completed", Some((RESULT, result))),
            Some(TaskOutcome::Error(error)) => set("failed", Some(("error", error))),
            Some(TaskOutcome::Cancelled) => set("cancelled", None),
            None if state.input.is_empty() => set("working", None),
            None => set(
                "input_required",
                Some((INPUT_REQUESTS, &state.input.to_json(server_name))),
            ),
        }
    }

    /// `task` with the time to live that the gateway grants.
    pub(crate) fn with_ttl<'a>(&self, task: &'a str) -> Cow<'a, str> {
        match self.ttl {
            Some(ttl) => edit::set(task, "ttlMs", &ttl.to_string()),
            None => Cow::Borrowed(task),
        }
    }

    /// Forwards the client's responses to input requests. Others are ignored.
    ///
    /// > A server SHOULD ignore any `inputResponses` responses mapped to a key that is not currently outstanding for
    /// > the task (SEP-2663, "Task Input Requests")
    pub(crate) fn answer(&self, responses: &Members<'_>) {
        self.lock().input.answer(responses);
        self.notify();
    }

    /// Asks the server to cancel the task, for a client or for the gateway itself. The task may have ended by then, or the
    /// server may not support it.
    ///
    /// > A server is not obligated to actually stop the work; it is only obligated to acknowledge the request.
    /// > (SEP-2663, "Task Cancellation")
    ///
    /// # Errors
    ///
    /// When the server cannot be reached.
    pub(crate) async fn cancel(&self, query: Option<ClientQuery>) -> Result<(), RpcError> {
        if !self.is_over() {
            let cancelled = self.ask_server("tasks/cancel", query).await?;
            match cancelled {
                Ok(task) => self.receive_status(&task),
                Err(why) => tracing::debug!(why = why.message(), "task not cancelled"),
            }
        }
        Ok(())
    }

    /// Sends the server a request about the task on its connection, for a client or for the gateway itself. Returns the
    /// response.
    pub(super) async fn ask_server(
        &self,
        method: &'static str,
        query: Option<ClientQuery>,
    ) -> Result<Result<String, RpcError>, RpcError> {
        let upgraded = self.connection.upgrade();
        let connection =
            upgraded.ok_or_else(|| RpcError::internal("the connection of the task was closed"))?;
        let permit = connection.acquire().await?;
        let ClientQuery { params, token } = query.unwrap_or_else(|| ClientQuery {
            params: self.params(),
            token: None,
        });
        let mut request = Request::new(method, Some(params));
        request.token = token;
        // On a dedicated connection all messages belong to the task.
        request.caller = (!self.is_dedicated).then_some(CallerId(self.owner.client));
        let exchange = connection.ready().await?.request(request).await?;
        let answer = self.receive(exchange).await?;
        drop(permit);
        let outcome = answer.outcome().map(str::to_owned);
        Ok(outcome.map_err(RpcError::from_upstream_or_internal))
    }

    /// The parameters of a request about it.
    pub(super) fn params(&self) -> String {
        json::object(&[("taskId", &json::string(&self.upstream_id))])
    }

    /// Handles a server request for the task.
    pub(super) fn receive_server_request(&self, request: ServerRequest) {
        let params = request.params().unwrap_or("{}");
        if let Err(why) = self
            .owner
            .server_requests
            .ensure_supported(request.method(), params)
        {
            pending_server_requests::refuse(&request, &why);
            return;
        }
        // Dropping the request refuses it.
        if !self.is_over() {
            self.lock().input.add(request);
            self.notify();
        }
    }

    /// Whether a server request on the client's dedicated connection belongs to this task. One that names no task may be of
    /// any that has no session; the process of the only client runs several.
    pub(super) fn may_belong_to_task(&self, request: &ServerRequest) -> bool {
        related_task(request).map_or(self.owner.session.is_none(), |id| *id == *self.upstream_id)
    }

    /// Handles a new status.
    pub(super) fn receive_status(&self, task: &str) {
        let mut state = self.lock();
        if state.outcome.is_some() || state.task == task {
            return;
        }
        task.clone_into(&mut state.task);
        drop(state);
        match string(task, "status").as_deref() {
            Some("cancelled") => self.finish(TaskOutcome::Cancelled),
            // The input requests and the outcome follow separately; clients are notified then.
            Some("working") => self.notify(),
            _ => self.changed.notify_waiters(),
        }
    }

    /// Ends the task.
    pub(super) fn finish(&self, outcome: TaskOutcome) {
        let mut state = self.lock();
        if state.outcome.is_some() {
            return;
        }
        state.outcome = Some(outcome);
        // Dropping the open input requests refuses them.
        let input = std::mem::take(&mut state.input);
        drop(state);
        drop(input);
        self.ended.cancel();
        self.notify();
    }

    /// Notifies the client and all subscribers.
    pub(super) fn notify(&self) {
        self.changed.notify_waiters();
        let _in_order = self.notifying.lock();
        let task = self.to_json();
        if let Some((session, notifier)) = &self.owner.session
            && let Some(session) = self
                .context
                .observer
                .session(self.owner.client)
                .or_else(|| session.upgrade())
            && session.may_know_tool(&notifier.server, &notifier.tool)
        {
            // A client without an open stream can ask for the status.
            let _ = session.enqueue(
                TaskDialect::Extension.status_notification(&notifier.params_to_client(&task)),
            );
        }
        self.context.observer.task_changed(&self.key, &task, None);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, TaskState> {
        self.state.lock()
    }
}

impl Drop for ProxiedTask {
    fn drop(&mut self) {
        self.forgotten.cancel();
    }
}

impl TaskState {
    /// The bytes that an ended task takes.
    pub(super) fn size(&self) -> usize {
        let outcome = match &self.outcome {
            Some(TaskOutcome::Result(text) | TaskOutcome::Error(text)) => text.len(),
            Some(TaskOutcome::Cancelled) => 0,
            None => return 0,
        };
        outcome + self.task.len()
    }
}

/// The server's id of the task that a server request is for.
pub(super) fn related_task(request: &ServerRequest) -> Option<String> {
    let meta = edit::get(request.params()?, "_meta")?;
    string(edit::get(meta, RELATED_TASK_META)?, "taskId")
}

/// How long to wait for something that is already on its way.
pub(super) const STATUS_WAIT: Duration = Duration::from_secs(5);
const INPUT_WAIT: Duration = Duration::from_millis(500);
