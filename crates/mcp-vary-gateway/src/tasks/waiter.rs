//! The result of a task that a client waits for, where the server tells it to whoever asks how the task stands.
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
use mcp_vary_wire::task_dialect::RELATED_TASK_META;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::claims::InputClaim;
use super::{RESULT, TaskKey, related};
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
/// The server is asked from time to time, and has no call of ours in between. What it asks of the client is asked
/// once, by whichever request waits for the result, and while it is asked the server is asked on.
#[derive(Debug)]
pub(crate) struct ResultWaiter {
    client: TaskClient,
    task: TaskKey,
    /// What the client calls it.
    client_id: String,
    /// What the server is being asked.
    querying: Option<AbortOnDropHandle<Result<TaskAnswer, QueryError>>>,
    /// What the client said and the server is being told.
    notifying: Vec<InputClaim>,
    /// When the server is asked again.
    due: Instant,
    /// How often in a row the server did not answer.
    failures: usize,
    /// What the server tells without being asked.
    events: broadcast::Receiver<Event>,
    _subscription: Subscription,
    /// What the client is to be sent.
    unsent: VecDeque<Bytes>,
    waiting: Vec<PendingInput<InputClaim>>,
    /// What the client said and the server was not told yet.
    responses: Vec<(InputClaim, String)>,
    /// How it ends when everything was sent.
    end: Option<WaitEnd>,
}

/// What comes next for a client that waits.
#[derive(Debug)]
pub(crate) enum WaitEvent {
    /// The client is sent this.
    Message(Bytes),
    Ended(WaitEnd),
}

/// How the waiting ends.
#[derive(Debug)]
pub(crate) enum WaitEnd {
    /// The result of the call, JSON text.
    Result(String),
    /// The error of the call, or the server's to the question how the task stands; JSON text.
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

    /// Waits for what the client gets next. Safe to drop while it waits.
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
                            let result = related(&result, &|_| Some(own.clone())).into_owned();
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

    /// Begins to ask the server what is to be asked now.
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

    /// Takes what the server answered, to whichever question.
    fn receive(
        &mut self,
        said: Result<TaskAnswer, QueryError>,
        client: &Client,
        lasting: &Services,
    ) {
        let told = std::mem::take(&mut self.notifying);
        let said = match said {
            Ok(said) => said,
            // What the client said was told or not; a server ignores what it was told before.
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

    /// Takes what the server says of the task.
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

    /// Asks the client what the server asks, and nobody asks already.
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

    /// Ends the waiting; what the client is asked nobody wants to know any more.
    fn finish(&mut self, end: WaitEnd) {
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        self.unsent
            .extend(waiting.filter_map(|it| it.server_request.cancel()));
        self.responses.clear();
        self.end = Some(end);
    }
}

/// What the server answers.
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

/// Waits until the server says of itself that the task `own` stands otherwise.
async fn next_status(events: &mut broadcast::Receiver<Event>, own: &str) {
    loop {
        match events.recv().await {
            Ok(Event::TaskChanged { id, .. }) if *id == *own => return,
            Ok(_) => {}
            // It may have been among them.
            Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}

/// How long a server is left alone that says this of a task.
///
/// > Requestors SHOULD respect this value when provided.
/// > (MCP 2025-11-25, basic/utilities/tasks, "TTL and Resource Management")
fn pause(task: &str) -> Duration {
    let told = edit::get(task, "pollIntervalMs").and_then(|told| told.parse().ok());
    let told = told.map_or(INPUT_PAUSE, Duration::from_millis);
    told.clamp(MIN_POLL, MAX_POLL)
}

/// `said` with the task that it is about, as the client calls it.
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

/// Between two questions how a task stands whose server does not say when to ask.
const INPUT_PAUSE: Duration = Duration::from_millis(500);
/// However often a server wants to be asked.
const MIN_POLL: Duration = Duration::from_millis(20);
/// However seldom.
const MAX_POLL: Duration = Duration::from_secs(10);
/// A server that is lost is asked again so many times.
const MAX_RETRIES: usize = 3;
