//! Relays the input requests in a modern server's results to legacy clients, as requests.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::select_all;
use mcp_vary::json::{self, Members, edit};
use mcp_vary_upstream::Exchange;
use mcp_vary_upstream::sent_request::SentRequest;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::server_request_support::{self, ServerRequestSupport};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

use super::required::{INPUT_RESPONSES, InputRequired, REQUEST_STATE, with_elicitation_id};
use super::services::MrtrServices;
use mcp_vary_session::Session;
use mcp_vary_session::pending_server_requests::{ClientResponse, ForwardedServerRequest};

/// Sends a request again, with the client's responses.
#[derive(Debug)]
pub(crate) struct InputRelay {
    /// The request as it was first sent.
    sent: Arc<SentRequest>,
    rounds_done: usize,
    limit: usize,
    round: Option<RelayRound>,
}

/// The input requests of one round trip.
#[derive(Debug, Default)]
struct RelayRound {
    state: Option<String>,
    /// Messages that the client has not been sent yet.
    unsent: VecDeque<Bytes>,
    waiting: Vec<PendingInput>,
    responses: Members<'static>,
    /// The time of the retry, if the server requests no input.
    not_before: Option<Instant>,
    /// Why the round trip failed.
    failed: Option<RpcError>,
}

/// A request that the client was sent.
#[derive(Debug)]
struct PendingInput {
    /// The server's key of it.
    key: String,
    method: String,
    server_request: ForwardedServerRequest,
    answer: oneshot::Receiver<ClientResponse>,
}

/// The next event of a round trip.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it lives for one step")]
pub(crate) enum RelayEvent {
    /// A message for the client.
    Message(Bytes),
    /// The request was sent again.
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

    /// Whether the client has requests to answer.
    pub(crate) const fn is_active(&self) -> bool {
        self.round.is_some()
    }

    /// Begins to send the input requests in `result` to the client of `session`, which supports `support`.
    ///
    /// # Errors
    ///
    /// When the server sends requests that the client does not support, or asks too often; and when too many requests
    /// are pending.
    pub(crate) fn begin(
        &mut self,
        result: &str,
        (session, support): (&Session, ServerRequestSupport),
        services: &MrtrServices,
    ) -> Result<(), RpcError> {
        let server = self.sent.connection.name();
        let faulty = |why: String| RpcError::internal(format!("server `{server}` {why}"));
        let required = InputRequired::read(result).map_err(faulty)?;
        required.ensure_supported(support).map_err(faulty)?;
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
        for (key, input) in required.requests {
            let params = with_elicitation_id(&input, || services.random_name());
            let shown_name = services.shown_name(server);
            let params =
                server_request_support::with_server_name(shown_name, &input.method, &params);
            let ask = (input.method.as_str(), Some(&*params));
            let (question, message, answer) =
                services.pending_server_requests.send(session, ask)?;
            round.unsent.push_back(message);
            let method = input.method.clone();
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

    /// Waits for the client's responses, then sends the request again. Safe to drop while it waits.
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
            Ok((permit, exchange)) => RelayEvent::Sent(permit, exchange),
            Err(failure) => RelayEvent::Failed(failure),
        }
    }

    async fn send(&mut self) -> Result<(OwnedSemaphorePermit, Exchange), RpcError> {
        let permit = self.sent.supervised.acquire().await?;
        let mut request = self.sent.request.clone();
        if let (Some(params), Some(round)) = (&request.params, &self.round) {
            request.params = Some(round.record_response(params));
        }
        let exchange = self.sent.resend(request).await?;
        self.round = None;
        Ok((permit, exchange))
    }
}

impl RelayRound {
    /// Records a response of the client, or its timeout; returns the failure of the round trip, if it fails.
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

    /// `params` with the client's responses and the server's state.
    fn record_response(&self, params: &str) -> String {
        let params = if self.responses.is_empty() {
            params.to_owned()
        } else {
            edit::set(params, INPUT_RESPONSES, &self.responses.to_json()).into_owned()
        };
        match &self.state {
            Some(state) => edit::set(&params, REQUEST_STATE, &json::string(state)).into_owned(),
            None => params,
        }
    }
}

/// The client's response to the request `method` of `server`.
///
/// # Errors
///
/// When the client refused, or did not answer in time.
fn into_result(
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

/// Waits for the next response; returns the index of its request. No response means that the time is over.
async fn answered(waiting: &mut [PendingInput]) -> (usize, Option<ClientResponse>) {
    let answers = waiting.iter_mut().map(|waiting| {
        let answer = &mut waiting.answer;
        let question = &waiting.server_request;
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

/// The pause before a retry without input; doubled each time.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
