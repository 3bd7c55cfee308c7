//! Waits for the result of a task for a client, where the server includes the result in the status.
//!
//! > When a receiver receives a `tasks/result` request for a task in any other non-terminal status (`working` or
//! > `input_required`), it MUST block the response until the task reaches a terminal status.
//! > (MCP 2025-11-25, basic/utilities/tasks, "Result Retrieval")

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_vary::json::{Members, edit};
use mcp_vary_upstream::{Event, Subscription};
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::server_request_support;
use mcp_vary_wire::task_dialect::rename_related_task;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::claims::InputClaim;
use super::client::{QueryError, TaskAnswer, TaskClient};
use super::services::CoreOverExt;
use crate::mrtr::{
    INPUT_REQUESTS, INPUT_RESPONSES, InputRequired, PendingInput, answered, into_result,
    with_elicitation_id,
};
use crate::tasks::id::TaskKey;
use crate::tasks::task_text::{RESULT, status, with_related_task};
use mcp_vary_session::client::Client;

/// A task whose result a client waits for.
///
/// # Properties
///
/// The server is polled, and no call stays open in between. Each input request is sent to the client once, by the first
/// request that waits for the result; polling continues meanwhile.
#[derive(Debug)]
pub(crate) struct ResultWaiter {
    core_over_ext: Arc<CoreOverExt>,
    client: TaskClient,
    task: TaskKey,
    /// The client's id of the task.
    client_id: String,
    /// The running query.
    querying: Option<AbortOnDropHandle<Result<TaskAnswer, QueryError>>>,
    /// The claims of the responses that are being sent to the server.
    sending: Vec<InputClaim>,
    /// The time of the next poll.
    due: Instant,
    /// The number of consecutive failed queries.
    failures: usize,
    /// The server's notifications.
    events: broadcast::Receiver<Event>,
    _subscription: Subscription,
    /// Messages for the client.
    unsent: VecDeque<Bytes>,
    waiting: Vec<PendingInput<InputClaim>>,
    /// The client's responses that are not sent to the server yet.
    responses: Vec<(InputClaim, String)>,
    /// The end, after all messages are sent.
    end: Option<WaitEnd>,
}

/// The next event for the client that waits.
#[derive(Debug)]
pub(crate) enum WaitEvent {
    /// A message to the client.
    Message(Bytes),
    End(WaitEnd),
}

/// The outcome of the wait.
#[derive(Debug)]
pub(crate) enum WaitEnd {
    /// The result of the call, JSON text.
    Result(String),
    /// The error of the call, or the server's error to the query; JSON text.
    Error(String),
    Failed(RpcError),
}

impl ResultWaiter {
    /// Waits for the result of a task that its client knows as `client_id`.
    pub(crate) fn new(
        core_over_ext: &Arc<CoreOverExt>,
        client: TaskClient,
        client_id: String,
    ) -> Self {
        let server = client.connection.config().name.as_str();
        Self {
            core_over_ext: Arc::clone(core_over_ext),
            task: (server.into(), Arc::clone(&client.upstream_id)),
            events: client.connection.events(),
            _subscription: client.listen(),
            client,
            client_id,
            querying: None,
            sending: Vec::new(),
            due: Instant::now(),
            failures: 0,
            unsent: VecDeque::new(),
            waiting: Vec::new(),
            responses: Vec::new(),
            end: None,
        }
    }

    /// The next event. Cancel-safe.
    pub(crate) async fn next(&mut self, client: &Client) -> WaitEvent {
        loop {
            if let Some(message) = self.unsent.pop_front() {
                return WaitEvent::Message(message);
            }
            if let Some(end) = self.end.take() {
                return WaitEvent::End(end);
            }
            self.begin();
            let is_querying = self.querying.is_some();
            tokio::select! {
                biased;
                answer = query_answer(&mut self.querying), if is_querying => {
                    self.querying = None;
                    self.receive(answer, client);
                }
                (at, answer) = answered(&mut self.waiting), if !self.waiting.is_empty() => {
                    let waiting = self.waiting.swap_remove(at);
                    match into_result(answer, &self.task.0, &waiting.method) {
                        Ok(result) => {
                            let upstream_id = |_: &str| Some(self.task.1.to_string());
                            let result = rename_related_task(&result, &upstream_id).into_owned();
                            self.responses.push((waiting.key, result));
                        }
                        Err(failure) => {
                            self.unsent.extend(waiting.server_request.cancel());
                            self.finish(WaitEnd::Failed(failure));
                        }
                    }
                }
                () = next_status(&mut self.events, &self.task.1), if !is_querying => self.due = Instant::now(),
                () = tokio::time::sleep_until(self.due), if !is_querying => {}
            }
        }
    }

    /// Starts the next query, if one is due.
    fn begin(&mut self) {
        if self.querying.is_some() {
            return;
        }
        let client = self.client.clone();
        let background_tasks = &self.core_over_ext.context.background_tasks;
        let query = if !self.responses.is_empty() {
            let mut responses = Members::default();
            for (claim, response) in self.responses.drain(..) {
                responses.set(claim.key.clone(), response);
                self.sending.push(claim);
            }
            let responses = responses.to_json();
            background_tasks.spawn(async move {
                let responses = Some((INPUT_RESPONSES, responses.as_str()));
                client.query("tasks/update", responses).await
            })
        } else if self.due <= Instant::now() {
            background_tasks.spawn(async move { client.status().await })
        } else {
            return;
        };
        self.querying = Some(AbortOnDropHandle::new(query));
    }

    /// Handles the response to a query.
    fn receive(&mut self, answer: Result<TaskAnswer, QueryError>, client: &Client) {
        let sent = std::mem::take(&mut self.sending);
        let answer = match answer {
            Ok(answer) => answer,
            // The responses may have arrived. A server ignores those that it already has.
            Err(error) if error.is_transient && self.failures < MAX_RETRIES && sent.is_empty() => {
                self.failures += 1;
                self.due = Instant::now() + POLL_PAUSE * (1 << self.failures);
                return;
            }
            Err(error) => return self.finish(WaitEnd::Failed(error.failure)),
        };
        self.failures = 0;
        match answer {
            Err(error) => self.finish(WaitEnd::Error(error)),
            Ok(_) if !sent.is_empty() => {
                for claim in sent {
                    claim.settle();
                }
                self.due = Instant::now();
            }
            Ok(task) => self.receive_status(&task, client),
        }
    }

    /// Handles the status of the task.
    fn receive_status(&mut self, task: &str, client: &Client) {
        let status = status(task);
        let server = &self.task.0;
        let faulty = |why: &str| RpcError::internal(format!("server `{server}` {why}"));
        match &*status {
            "completed" => self.finish(match edit::get(task, RESULT) {
                Some(result) => WaitEnd::Result(result.to_owned()),
                None => WaitEnd::Failed(faulty("reports the task as completed without a result")),
            }),
            "failed" => self.finish(match edit::get(task, "error") {
                Some(error) => WaitEnd::Error(error.to_owned()),
                None => WaitEnd::Failed(faulty("reports the task as failed without an error")),
            }),
            "cancelled" => self.finish(WaitEnd::Failed(RpcError::internal(
                "the task was cancelled",
            ))),
            _ => {
                self.due = Instant::now() + pause(task);
                if let Err(failure) = self.request_input(task, client) {
                    self.finish(WaitEnd::Failed(failure));
                }
            }
        }
    }

    /// Sends the task's input requests to the client, unless another request has claimed them.
    fn request_input(&mut self, task: &str, client: &Client) -> Result<(), RpcError> {
        let server = &self.task.0;
        let faulty = |why: String| RpcError::internal(format!("server `{server}` {why}"));
        if matches!(edit::get(task, INPUT_REQUESTS), None | Some("{}")) {
            return Ok(());
        }
        let required = InputRequired::read(task).map_err(faulty)?;
        required
            .ensure_supported(client.server_request_support())
            .map_err(faulty)?;
        let core_over_ext = &self.core_over_ext;
        let context = &core_over_ext.context;
        let session = client.session.as_deref();
        let session = session
            .ok_or_else(|| faulty("sends input requests to a client without a session".into()))?;
        for (key, request) in required.requests {
            let Some(claim) = core_over_ext.input_claims.claim(&self.task, &key) else {
                continue;
            };
            let params = with_elicitation_id(&request, || context.environment.random_name());
            let params = with_related_task(&params, &self.client_id);
            let server_name = context.pending_server_requests.server_name(server);
            let params =
                server_request_support::with_server_name(server_name, &request.method, &params);
            let message = (request.method.as_str(), Some(&*params));
            let (server_request, message, answer) =
                context.pending_server_requests.send(session, message)?;
            self.unsent.push_back(message);
            self.waiting.push(PendingInput {
                key: claim,
                method: request.method,
                server_request,
                answer,
            });
        }
        Ok(())
    }

    /// Ends the wait and cancels the open input requests.
    fn finish(&mut self, end: WaitEnd) {
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        self.unsent
            .extend(waiting.filter_map(|it| it.server_request.cancel()));
        self.responses.clear();
        self.end = Some(end);
    }
}

/// The response to the running query.
async fn query_answer(
    query: &mut Option<AbortOnDropHandle<Result<TaskAnswer, QueryError>>>,
) -> Result<TaskAnswer, QueryError> {
    let Some(query) = query else {
        return std::future::pending().await;
    };
    query.await.unwrap_or_else(|_| {
        Err(QueryError {
            failure: RpcError::internal("the gateway stops"),
            is_transient: false,
        })
    })
}

/// Waits for a notification of the task `upstream_id`.
async fn next_status(events: &mut broadcast::Receiver<Event>, upstream_id: &str) {
    loop {
        match events.recv().await {
            Ok(Event::TaskChanged { id, .. }) if *id == *upstream_id => return,
            Ok(_) => {}
            // The notification may be among the missed ones.
            Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}

/// The time until the next query, from the server's poll interval.
///
/// > Requestors SHOULD respect this value when provided.
/// > (MCP 2025-11-25, basic/utilities/tasks, "TTL and Resource Management")
fn pause(task: &str) -> Duration {
    let interval = edit::get(task, "pollIntervalMs").and_then(|interval| interval.parse().ok());
    let interval = interval.map_or(POLL_PAUSE, Duration::from_millis);
    interval.clamp(MIN_POLL, MAX_POLL)
}

/// The poll interval if the server names none.
const POLL_PAUSE: Duration = Duration::from_millis(500);
/// The shortest poll interval.
const MIN_POLL: Duration = Duration::from_millis(20);
/// The longest poll interval.
const MAX_POLL: Duration = Duration::from_secs(10);
/// Retries after the connection to the server is lost.
const MAX_RETRIES: usize = 3;
