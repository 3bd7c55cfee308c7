//! Waits for the result of a task for a client, where the server includes the result in the status.
//!
//! > When a receiver receives a `tasks/result` request for a task in any other non-terminal status (`working` or
//! > `input_required`), it MUST block the response until the task reaches a terminal status.
//! > (MCP 2025-11-25, basic/utilities/tasks, "Result Retrieval")

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_vary::json::edit;
use mcp_vary::json::{self, Members};
use mcp_vary_upstream::{Event, Subscription};
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::server_request_support;
use mcp_vary_wire::task_dialect::{RELATED_TASK_META, rename_related_task};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::claims::InputClaim;
use super::{RESULT, TaskKey};
use crate::mrtr::{
    INPUT_REQUESTS, INPUT_RESPONSES, InputRequired, PendingInput, answered, into_result,
    with_elicitation_id,
};
use crate::pipeline::runtime::Services;
use crate::session::client::Client;
use crate::tasks::client::{QueryError, TaskAnswer, TaskClient, status};

/// A task whose result a client waits for.
///
/// # Properties
///
/// The server is polled, and no call stays open in between. Each input request is sent to the client once, by the first
/// request that waits for the result; polling continues meanwhile.
#[derive(Debug)]
pub(crate) struct ResultWaiter {
    client: TaskClient,
    task: TaskKey,
    /// The client's id of the task.
    client_id: String,
    /// The running query.
    querying: Option<AbortOnDropHandle<Result<TaskAnswer, QueryError>>>,
    /// The claims of the responses that are being sent to the server.
    notifying: Vec<InputClaim>,
    /// When to poll next.
    due: Instant,
    /// How many queries in a row failed.
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
    Ended(WaitEnd),
}

/// How the wait ended.
#[derive(Debug)]
pub(crate) enum WaitEnd {
    /// The result of the call, JSON text.
    Result(String),
    /// The error of the call, or the server's error to the query; JSON text.
    Error(String),
    Failed(RpcError),
}

impl ResultWaiter {
    pub(crate) fn new(client: TaskClient, client_id: String) -> Self {
        let server = client.line.config().name.as_str();
        Self {
            task: (server.into(), Arc::clone(&client.upstream_id)),
            events: client.line.events(),
            _subscription: client.listen(),
            client,
            client_id,
            querying: None,
            notifying: Vec::new(),
            due: Instant::now(),
            failures: 0,
            unsent: VecDeque::new(),
            waiting: Vec::new(),
            responses: Vec::new(),
            end: None,
        }
    }

    /// The next event. Cancel-safe.
    pub(crate) async fn next(&mut self, client: &Client, lasting: &Services) -> WaitEvent {
        loop {
            if let Some(message) = self.unsent.pop_front() {
                return WaitEvent::Message(message);
            }
            if let Some(end) = self.end.take() {
                return WaitEvent::Ended(end);
            }
            self.begin(lasting);
            let is_asking = self.querying.is_some();
            tokio::select! {
                biased;
                said = input_request(&mut self.querying), if is_asking => {
                    self.querying = None;
                    self.receive(said, client, lasting);
                }
                (at, answer) = answered(&mut self.waiting), if !self.waiting.is_empty() => {
                    let waiting = self.waiting.swap_remove(at);
                    let said = into_result(answer, &self.task.0, &waiting.method);
                    match said {
                        Ok(result) => {
                            let own = self.task.1.to_string();
                            let result = rename_related_task(&result, &|_| Some(own.clone())).into_owned();
                            self.responses.push((waiting.key, result));
                        }
                        Err(failure) => {
                            self.unsent.extend(waiting.server_request.cancel());
                            self.finish(WaitEnd::Failed(failure));
                        }
                    }
                }
                () = next_status(&mut self.events, &self.task.1), if !is_asking => self.due = Instant::now(),
                () = tokio::time::sleep_until(self.due), if !is_asking => {}
            }
        }
    }

    /// Starts the next query, if one is due.
    fn begin(&mut self, lasting: &Services) {
        if self.querying.is_some() {
            return;
        }
        let inquiry = self.client.clone();
        let asked = if !self.responses.is_empty() {
            let mut said = Members::default();
            for (claim, response) in self.responses.drain(..) {
                said.set(claim.key.clone(), response);
                self.notifying.push(claim);
            }
            let said = said.to_json();
            lasting.background_tasks.spawn(async move {
                let said = Some((INPUT_RESPONSES, said.as_str()));
                inquiry.query("tasks/update", said).await
            })
        } else if self.due <= Instant::now() {
            lasting
                .background_tasks
                .spawn(async move { inquiry.status().await })
        } else {
            return;
        };
        self.querying = Some(AbortOnDropHandle::new(asked));
    }

    /// Handles the response to a query.
    fn receive(
        &mut self,
        said: Result<TaskAnswer, QueryError>,
        client: &Client,
        lasting: &Services,
    ) {
        let told = std::mem::take(&mut self.notifying);
        let said = match said {
            Ok(said) => said,
            // The responses may have arrived. A server ignores those that it already has.
            Err(error) if error.is_transient && self.failures < MAX_RETRIES && told.is_empty() => {
                self.failures += 1;
                self.due = Instant::now() + INPUT_PAUSE * (1 << self.failures);
                return;
            }
            Err(error) => return self.finish(WaitEnd::Failed(error.failure)),
        };
        self.failures = 0;
        match said {
            Err(error) => self.finish(WaitEnd::Error(error)),
            Ok(_) if !told.is_empty() => {
                for claim in told {
                    claim.settle();
                }
                self.due = Instant::now();
            }
            Ok(task) => self.status(&task, client, lasting),
        }
    }

    /// Handles the status of the task.
    fn status(&mut self, task: &str, client: &Client, lasting: &Services) {
        let status = status(task);
        let server = &self.task.0;
        let faulty = |why: &str| RpcError::internal(format!("server `{server}` {why}"));
        match &*status {
            "completed" => self.finish(match edit::get(task, RESULT) {
                Some(result) => WaitEnd::Result(result.to_owned()),
                None => {
                    WaitEnd::Failed(faulty("says that the task is completed without its result"))
                }
            }),
            "failed" => self.finish(match edit::get(task, "error") {
                Some(error) => WaitEnd::Error(error.to_owned()),
                None => WaitEnd::Failed(faulty("says that the task has failed without saying why")),
            }),
            "cancelled" => self.finish(WaitEnd::Failed(RpcError::internal(
                "the task was cancelled",
            ))),
            _ => {
                self.due = Instant::now() + pause(task);
                if let Err(failure) = self.request_input(task, client, lasting) {
                    self.finish(WaitEnd::Failed(failure));
                }
            }
        }
    }

    /// Sends the task's input requests to the client, unless another request has claimed them.
    fn request_input(
        &mut self,
        task: &str,
        client: &Client,
        lasting: &Services,
    ) -> Result<(), RpcError> {
        let server = &self.task.0;
        let faulty = |why: String| RpcError::internal(format!("server `{server}` {why}"));
        if matches!(edit::get(task, INPUT_REQUESTS), None | Some("{}")) {
            return Ok(());
        }
        let required = InputRequired::read(task).map_err(faulty)?;
        required
            .ensure_supported(client.server_request_support())
            .map_err(faulty)?;
        let session = client.session.as_deref();
        let session = session.ok_or_else(|| faulty("asks a client without a session".into()))?;
        for (key, asked) in required.requests {
            let Some(claim) = lasting.input_claims.claim(&self.task, &key) else {
                continue;
            };
            let params = with_elicitation_id(&asked, || lasting.random_name());
            let params = related_to(&params, &self.client_id);
            let asker = lasting.pending_server_requests.server_name(server);
            let params = server_request_support::with_server_name(asker, &asked.method, &params);
            let ask = (asked.method.as_str(), Some(&*params));
            let (question, message, answer) = lasting.pending_server_requests.send(session, ask)?;
            self.unsent.push_back(message);
            self.waiting.push(PendingInput {
                key: claim,
                method: asked.method,
                server_request: question,
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
async fn input_request(
    asking: &mut Option<AbortOnDropHandle<Result<TaskAnswer, QueryError>>>,
) -> Result<TaskAnswer, QueryError> {
    let Some(asking) = asking else {
        return std::future::pending().await;
    };
    asking.await.unwrap_or_else(|_| {
        Err(QueryError {
            failure: RpcError::internal("the gateway stops"),
            is_transient: false,
        })
    })
}

/// Waits for a notification of the task `own`.
async fn next_status(events: &mut broadcast::Receiver<Event>, own: &str) {
    loop {
        match events.recv().await {
            Ok(Event::TaskChanged { id, .. }) if *id == *own => return,
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
    let told = edit::get(task, "pollIntervalMs").and_then(|told| told.parse().ok());
    let told = told.map_or(INPUT_PAUSE, Duration::from_millis);
    told.clamp(MIN_POLL, MAX_POLL)
}

/// `said` with the client's id of the related task.
///
/// > All requests, notifications, and responses related to a task MUST include the
/// > `io.modelcontextprotocol/related-task` key in their `_meta` field
/// > (MCP 2025-11-25, basic/utilities/tasks, "Associating Task-Related Messages")
pub(crate) fn related_to(said: &str, sealed: &str) -> String {
    let meta = edit::get(said, "_meta").filter(|meta| meta.starts_with('{'));
    let related = format!(r#"{{"taskId":{}}}"#, json::string(sealed));
    let meta = edit::set(meta.unwrap_or("{}"), RELATED_TASK_META, &related);
    edit::set(said, "_meta", &meta).into_owned()
}

/// The poll interval if the server names none.
const INPUT_PAUSE: Duration = Duration::from_millis(500);
/// The shortest poll interval.
const MIN_POLL: Duration = Duration::from_millis(20);
/// The longest poll interval.
const MAX_POLL: Duration = Duration::from_secs(10);
/// Retries after the connection to the server is lost.
const MAX_RETRIES: usize = 3;
