//! What modern servers ask in results, asked of legacy clients in requests.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::select_all;
use mcp_vary::json::edit;
use mcp_vary::json::{self, Members};
use mcp_vary_upstream::Exchange;
use mcp_vary_upstream::sent_request::SentRequest;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::server_request_support::{self, ServerRequestSupport};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

use super::required::{InputRequired, with_elicitation_id};
use super::{INPUT_RESPONSES, REQUEST_STATE};
use crate::pipeline::runtime::Services;
use crate::session::Session;
use crate::session::pending_server_requests::{ClientResponse, ForwardedServerRequest};

/// What it takes to send a request once more, with what the client said.
#[derive(Debug)]
pub(crate) struct InputRelay {
    /// The request as it was sent at first.
    sent: Arc<SentRequest>,
    rounds_done: usize,
    limit: usize,
    round: Option<RelayRound>,
}

/// What the client is asked in one round.
#[derive(Debug, Default)]
struct RelayRound {
    state: Option<String>,
    /// What the client is to be sent.
    unsent: VecDeque<Bytes>,
    waiting: Vec<PendingInput>,
    responses: Members<'static>,
    /// Where the server asks nothing but to be asked again.
    not_before: Option<Instant>,
    /// How the round ended without what the server asks for.
    failed: Option<RpcError>,
}

/// A question that the client was sent.
#[derive(Debug)]
pub(crate) struct PendingInput<K = String> {
    /// What the server calls it.
    pub(crate) key: K,
    pub(crate) method: String,
    pub(crate) server_request: ForwardedServerRequest,
    pub(crate) answer: oneshot::Receiver<ClientResponse>,
}

/// What comes next for a request in a round.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it lives for one step")]
pub(crate) enum RelayEvent {
    /// The client is sent this.
    Message(Bytes),
    /// The request was sent once more.
    Sent(OwnedSemaphorePermit, Exchange),
    Failed(RpcError),
}

impl InputRelay {
    pub(crate) const fn new(sent: Arc<SentRequest>, limit: usize) -> Self {
        Self {
            sent,
            rounds_done: 0,
            limit,
            round: None,
        }
    }

    /// Whether the client is being asked.
    pub(crate) const fn is_active(&self) -> bool {
        self.round.is_some()
    }

    /// Begins to ask the client of `session`, which can be asked `askable`, what the server asks in `result`.
    ///
    /// # Errors
    ///
    /// When the server asks what it must not, or too often; and when too many questions are open.
    pub(crate) fn begin(
        &mut self,
        result: &str,
        (session, askable): (&Session, ServerRequestSupport),
        lasting: &Services,
    ) -> Result<(), RpcError> {
        let server = self.sent.connection.name();
        let faulty = |why: String| RpcError::internal(format!("server `{server}` {why}"));
        let required = InputRequired::read(result).map_err(faulty)?;
        required.ensure_supported(askable).map_err(faulty)?;
        if self.rounds_done >= self.limit {
            return Err(faulty(format!(
                "asked for input {} times",
                self.rounds_done
            )));
        }
        let mut round = RelayRound {
            state: required.state,
            ..RelayRound::default()
        };
        if required.requests.is_empty() {
            let pause = RETRY_PAUSE * (1 << self.rounds_done.min(6));
            round.not_before = Some(Instant::now() + pause);
        }
        for (key, asked) in required.requests {
            let params = with_elicitation_id(&asked, || lasting.random_name());
            let asker = lasting.pending_server_requests.server_name(server);
            let params = server_request_support::with_server_name(asker, &asked.method, &params);
            let ask = (asked.method.as_str(), Some(&*params));
            let (question, message, answer) = lasting.pending_server_requests.send(session, ask)?;
            round.unsent.push_back(message);
            let method = asked.method.clone();
            round.waiting.push(PendingInput {
                key,
                method,
                server_request: question,
                answer,
            });
        }
        self.rounds_done += 1;
        self.round = Some(round);
        Ok(())
    }

    /// Waits for the client, and sends the request once more when it has said everything. Safe to drop while it
    /// waits.
    pub(crate) async fn next(&mut self) -> RelayEvent {
        let Some(round) = &mut self.round else {
            return RelayEvent::Failed(RpcError::internal("the server asks for nothing"));
        };
        if let Some(message) = round.unsent.pop_front() {
            return RelayEvent::Message(message);
        }
        if let Some(failure) = round.failed.take() {
            return RelayEvent::Failed(failure);
        }
        if let Some(until) = round.not_before {
            tokio::time::sleep_until(until).await;
        }
        while !round.waiting.is_empty() {
            let (at, answered) = answered(&mut round.waiting).await;
            let waiting = round.waiting.swap_remove(at);
            let server = self.sent.connection.name();
            if let Some(failure) = round.take(waiting, answered, server) {
                return match round.unsent.pop_front() {
                    Some(message) => {
                        round.failed = Some(failure);
                        RelayEvent::Message(message)
                    }
                    None => RelayEvent::Failed(failure),
                };
            }
        }
        match self.send().await {
            Ok((turn, exchange)) => RelayEvent::Sent(turn, exchange),
            Err(failure) => RelayEvent::Failed(failure),
        }
    }

    async fn send(&mut self) -> Result<(OwnedSemaphorePermit, Exchange), RpcError> {
        let turn = self.sent.supervised.acquire().await?;
        let mut request = self.sent.request.clone();
        if let (Some(params), Some(round)) = (&request.params, &self.round) {
            request.params = Some(round.record_response(params));
        }
        let exchange = self.sent.resend(request).await?;
        self.round = None;
        Ok((turn, exchange))
    }
}

impl RelayRound {
    /// Takes what the client said, or its silence; how the round fails by it.
    fn take(
        &mut self,
        waiting: PendingInput,
        answered: Option<ClientResponse>,
        server: &str,
    ) -> Option<RpcError> {
        let PendingInput {
            key,
            method,
            server_request: question,
            ..
        } = waiting;
        let failure = match into_result(answered, server, &method) {
            Ok(result) => {
                self.responses.set(key, result);
                return None;
            }
            Err(failure) => failure,
        };
        self.unsent.extend(question.cancel());
        let others = std::mem::take(&mut self.waiting).into_iter();
        self.unsent
            .extend(others.filter_map(|other| other.server_request.cancel()));
        Some(failure)
    }

    /// `params` with what the client said, and the server's own state.
    fn record_response(&self, params: &str) -> String {
        let params = match self.responses.is_empty() {
            true => params.to_owned(),
            false => edit::set(params, INPUT_RESPONSES, &self.responses.to_json()).into_owned(),
        };
        match &self.state {
            Some(state) => edit::set(&params, REQUEST_STATE, &json::string(state)).into_owned(),
            None => params,
        }
    }
}

/// What the client said to `method`, which `server` asked.
///
/// # Errors
///
/// When it refused, or said nothing in time.
pub(crate) fn into_result(
    answered: Option<ClientResponse>,
    server: &str,
    method: &str,
) -> Result<String, RpcError> {
    let why = match answered {
        Some(Ok(result)) => return Ok(result),
        Some(Err(error)) => {
            let message = edit::get(&error, "message").unwrap_or("null");
            format!("the client refused it: {message}")
        }
        None => "the client did not answer in time".to_owned(),
    };
    Err(RpcError::internal(format!(
        "server `{server}` asked for `{method}`, and {why}"
    )))
}

/// The next answer of the client, and to which question; none for one that it did not answer in time.
pub(crate) async fn answered<K>(
    waiting: &mut [PendingInput<K>],
) -> (usize, Option<ClientResponse>) {
    let answers = waiting.iter_mut().map(|waiting| {
        let (answer, question) = (&mut waiting.answer, &waiting.server_request);
        Box::pin(async move {
            tokio::select! {
                biased;
                answer = answer => answer.ok(),
                () = question.over() => None,
            }
        })
    });
    let (answered, at, _) = select_all(answers).await;
    (at, answered)
}

/// Before a server is asked again that wants nothing else; twice as long each time.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
