//! One request in one session, until its answer.
//!
//! A state machine that its caller drives: no task, no channel. Every state keeps what it has read, so
//! that `step` may be dropped and called again.

mod posted;
pub(super) mod refusal;

use std::borrow::Cow;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderValue, Method, Response, StatusCode};
use mcp_vary_base::caller_token::CallerToken;
use mcp_vary_base::tasks::try_spawn;
use mcp_vary_http_client::body::Incoming;
use mcp_vary_wire::headers::SESSION_ID;
use mcp_vary_wire::server_message::{self, ServerMessage};
use mcp_vary_wire::sse::EventTooLarge;
use tokio::time::Instant;

use self::refusal::{Refusal, RefusalHead};
use super::collect::{Collect, drain, is_web_page};
use super::event_stream::PendingAnswer;
use super::headers::{Header, LAST_EVENT_ID, STREAM, is_stream};
use super::received::Received;
use super::sending::{SendError, Sending};
use super::session::Session;
use super::shared::Shared;
use super::stream::{Read, ResumePoint, Stream};
use crate::answer_memory::{AnswerLease, AnswerMemory};
use crate::error::UpstreamError;
use crate::message::{Answer, Event, Message, RequestKind};

/// The request; retained to send it again in a new session.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: u64,
    pub(super) body: Bytes,
    pub(super) headers: Arc<[Header]>,
    pub(super) kind: RequestKind,
    /// The token of the client that sends it.
    pub(super) token: Option<CallerToken>,
    /// What its answer takes.
    pub(super) memory: Option<Arc<dyn AnswerMemory>>,
}

/// One request in one session, until its answer.
pub(super) struct Attempt {
    pub(super) shared: Arc<Shared>,
    pub(super) session: Arc<Session>,
    pub(super) call: Call,
    state: State,
    memory: AnswerLease,
    /// Messages that were received and not fetched.
    received: Received,
    /// When the request has failed if nothing arrives until then.
    pub(super) deadline: Instant,
    session_id: Option<HeaderValue>,
    is_not_found: bool,
    was_resent: bool,
    /// Whether the server has sent a message about the request, so that it runs.
    is_running: bool,
    /// Attempts in a row to resume the stream.
    resumes: u32,
}

pub(super) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + Sync>>;

enum State {
    Sending(Sending),
    /// In the transport of 2024-11-05: the answer is on the stream, and the response to the `POST` has none.
    Posted {
        response: Option<Sending>,
        answer: PendingAnswer,
    },
    ReadingBody(Collect),
    ReadingError(RefusalHead, Collect),
    Streaming(Box<Stream>),
    Resuming(
        ResumePoint,
        BoxFuture<Result<Response<Incoming>, UpstreamError>>,
    ),
    /// The server has refused the request, and may have lost the session.
    Refused(Box<Refusal>),
    Finished,
}

impl Attempt {
    pub(super) fn send(shared: &Arc<Shared>, session: Arc<Session>, call: Call) -> Self {
        Self {
            state: begin(shared, &session, &call),
            memory: AnswerLease::of(call.memory.clone()),
            deadline: Instant::now() + shared.endpoint.limits.idle,
            shared: Arc::clone(shared),
            session,
            call,
            received: Received::default(),
            session_id: None,
            is_not_found: false,
            was_resent: false,
            is_running: false,
            resumes: 0,
        }
    }

    /// Ends with this outcome.
    fn finish(&mut self, outcome: Result<Answer, UpstreamError>) -> Result<(), UpstreamError> {
        self.received.push(Message::Answer(outcome?));
        self.state = State::Finished;
        Ok(())
    }

    /// The session id in the response.
    pub(super) const fn session_id(&self) -> Option<&HeaderValue> {
        self.session_id.as_ref()
    }

    /// Whether the server answered 404, as it does for an expired session.
    pub(super) const fn is_not_found(&self) -> bool {
        self.is_not_found
    }

    /// The refusal after which the session may be gone.
    pub(super) const fn refusal(&self) -> Option<&Refusal> {
        match &self.state {
            State::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Whether nothing follows what was received.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Finished) || self.is_answered()
    }

    pub(super) fn end(&mut self) {
        self.state = State::Finished;
    }

    /// Extends the time limit, since the server has sent something.
    pub(super) fn touch(&mut self) {
        let now = Instant::now();
        self.shared.endpoint.liveness.touch_at(now);
        self.deadline = now + self.shared.endpoint.limits.idle;
    }

    /// The next message that was received.
    pub(super) fn take(&mut self) -> Option<Message> {
        let message = self.received.take();
        if let Some(Message::Answer(_)) = message {
            self.drain();
        }
        message
    }

    /// The answer; notifications before it are dropped.
    pub(super) async fn answer(&mut self) -> Result<Answer, UpstreamError> {
        let liveness = Arc::clone(&self.shared.endpoint.liveness);
        loop {
            while let Some(message) = self.take() {
                if let Message::Answer(answer) = message {
                    return Ok(answer);
                }
            }
            tokio::select! {
                biased;
                step = self.step() => step?,
                error = liveness.ended() => return Err(error),
            }
        }
    }

    /// Waits for the next event of the current state and handles it.
    pub(super) async fn step(&mut self) -> Result<(), UpstreamError> {
        match &mut self.state {
            State::Sending(response) => {
                let sent = response.await;
                self.on_sent(sent)
            }
            State::Posted { response, answer } => {
                let posted = async {
                    match response {
                        Some(response) => response.await,
                        None => pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    answer = answer.receive() => self.on_answer(answer),
                    response = posted => self.on_posted(response),
                }
            }
            State::ReadingBody(body) => {
                let read = body.run_in(&mut self.memory).await;
                let body = read.map_err(|error| self.shared.endpoint.body_error(&error))?;
                self.on_body(&body)
            }
            State::ReadingError(head, body) => {
                let head = *head;
                let body = body.run().await.unwrap_or_default();
                self.on_error_body(head, &body)
            }
            State::Streaming(stream) => {
                let read = stream.read().await;
                self.on_stream_read(read)
            }
            State::Resuming(resume_point, response) => {
                let resumed = response.await;
                let resume_point = std::mem::take(resume_point);
                self.on_resumed(resume_point, resumed)
            }
            State::Refused(_) | State::Finished => Err(UpstreamError::Finished {
                server: Arc::clone(&self.shared.endpoint.server),
            }),
        }
    }

    /// Handles the head of a response, or that there is none.
    fn on_sent(
        &mut self,
        sent: Result<Response<Incoming>, SendError>,
    ) -> Result<(), UpstreamError> {
        let error = match sent {
            Ok(response) => {
                self.touch();
                return self.on_response(response);
            }
            Err(error) => error,
        };
        let failure = self.shared.endpoint.delivery_error(&error);
        if matches!(error, SendError::Refused(..)) && self.can_renew(false) {
            self.refuse(Err(failure), true);
            return Ok(());
        }
        Err(failure)
    }

    /// Decides by the head of the response how its body is read.
    fn on_response(&mut self, response: Response<Incoming>) -> Result<(), UpstreamError> {
        let endpoint = &self.shared.endpoint;
        let status = response.status();
        if let Err(failure) = endpoint.check_response(&response) {
            return self.on_no_answer(failure, false);
        }
        self.is_not_found = status == StatusCode::NOT_FOUND;
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            let what = format!("it answered a request with HTTP {status} and nothing else");
            return self.on_no_answer(endpoint.misbehaved(what), false);
        }
        self.shared.gateways.record(response.headers());
        self.session_id = response.headers().get(SESSION_ID).cloned();
        let head = RefusalHead::of(&response);
        let is_stream = is_stream(response.headers());
        let limits = &endpoint.limits;
        let body = response.into_body();
        self.state = if !status.is_success() {
            State::ReadingError(head, Collect::new(body, limits.body))
        } else if is_stream {
            let start = ResumePoint::default();
            State::Streaming(Box::new(Stream::new(body, limits.message, start)))
        } else {
            State::ReadingBody(Collect::new(body, limits.body))
        };
        Ok(())
    }

    /// Handles a response that is one JSON text.
    fn on_body(&mut self, body: &Bytes) -> Result<(), UpstreamError> {
        let mut why = Cow::Borrowed("it contains no answer");
        for message in server_message::messages(body.clone()) {
            if let Err(error) = self.on_message(message) {
                why = error.into();
            }
        }
        if self.refusal().is_some() {
            return Ok(());
        }
        if !self.is_answered() {
            let endpoint = &self.shared.endpoint;
            let what = if is_web_page(body) {
                endpoint.describe_web_page(StatusCode::OK)
            } else {
                let excerpt = endpoint.diagnostics.excerpt(body);
                format!("its reply is not an answer: {why}; it sent `{excerpt}`")
            };
            let failure = endpoint.misbehaved(what);
            return self.on_no_answer(failure, refusal::mentions_session(body));
        }
        self.state = State::Finished;
        Ok(())
    }

    /// Handles one read of the stream.
    fn on_stream_read(&mut self, read: Result<Read, EventTooLarge>) -> Result<(), UpstreamError> {
        self.touch();
        match read {
            Ok(Read::Messages(messages)) => {
                self.resumes = 0;
                if let State::Streaming(stream) = &self.state {
                    let latest = messages.last().map_or(0, Bytes::len);
                    let room = self.memory.grow_to(latest.max(stream.unfinished()));
                    room.map_err(|_| self.shared.endpoint.no_room())?;
                }
                for message in messages.into_iter().flat_map(server_message::messages) {
                    if let Err(why) = self.on_message(message.clone()) {
                        let diagnostics = &self.shared.endpoint.diagnostics;
                        diagnostics.event_skipped(&why, &message);
                    }
                }
                Ok(())
            }
            Ok(Read::End(error)) => {
                let resume_point = match &self.state {
                    State::Streaming(stream) => stream.resume_point(),
                    _ => ResumePoint::default(),
                };
                match error {
                    Some(error) => self.resume_at(resume_point, &format!("broke: {error}")),
                    None => self.resume_at(resume_point, "ended without an answer"),
                }
            }
            Err(too_large) => Err(self.shared.endpoint.too_large("an event", too_large.limit)),
        }
    }

    /// Handles one message; the error says why it is not valid.
    fn on_message(&mut self, message: Bytes) -> Result<(), String> {
        let shared = &self.shared;
        let server = &shared.endpoint.server;
        match ServerMessage::read(&message)? {
            ServerMessage::Response { id, outcome, .. } => {
                // An error without id means that the request could not be read; there is only this one.
                let is_ours = id.map_or(outcome.is_error, |id| id == self.call.id);
                let is_error = outcome.is_error;
                if is_ours && !self.is_answered() {
                    let answer = Answer::new(message, outcome).in_memory(self.memory.take());
                    if is_error {
                        self.on_error_answer(answer);
                    } else {
                        self.received.push(Message::Answer(answer));
                    }
                } else {
                    tracing::debug!(server = %server, ?id, "answer to no open request dropped");
                }
            }
            ServerMessage::TooDeep { id } => {
                if id == self.call.id && !self.is_answered() {
                    let answer = Answer::too_deep(server, id);
                    self.received.push(Message::Answer(answer));
                }
            }
            ServerMessage::Request { id, method, params } => {
                let session = &self.session;
                let request = shared.accept_request(session, id, &method, params, &message);
                self.is_running = true;
                if let Some(request) = request {
                    if self.is_answered() {
                        shared.inbound.publish(Event::ServerRequest(request));
                    } else {
                        self.received.push(Message::Request(request));
                    }
                }
            }
            ServerMessage::Notification {
                method,
                params,
                is_strict,
            } => {
                self.is_running = true;
                let is_subscription = self.call.kind == RequestKind::Subscription;
                let inbound = &shared.inbound;
                if !inbound.handle_notification(&method, params, is_subscription)
                    && !self.is_answered()
                {
                    let message = server_message::strict(&message, is_strict, &method, params);
                    self.received.push(Message::Notification(message));
                }
            }
        }
        Ok(())
    }

    /// Resumes a stream that ended before the answer.
    ///
    /// "If the client wishes to resume after a disconnection […], it SHOULD issue an HTTP GET to the
    /// MCP endpoint, and include the `Last-Event-ID` header" (MCP 2025-11-25, basic/transports).
    fn resume_at(&mut self, resume_point: ResumePoint, how: &str) -> Result<(), UpstreamError> {
        let endpoint = &self.shared.endpoint;
        let can_resume = self.session.is_legacy() && self.resumes < endpoint.limits.resumes;
        let Some(last_id) = can_resume.then(|| resume_point.header()).flatten() else {
            return Err(endpoint.broke_off(format!("the stream of its reply {how}")));
        };
        let headers: Arc<[Header]> = [(ACCEPT, STREAM), (LAST_EVENT_ID, last_id)].into();
        let pause = resume_point
            .retry
            .unwrap_or(RESUME_PAUSE * (1 << self.resumes.min(6)));
        self.resumes += 1;
        let shared = Arc::clone(&self.shared);
        let session = Arc::clone(&self.session);
        let token = self.call.token.clone();
        let response = async move {
            tokio::time::sleep(pause).await;
            let request = (Method::GET, headers, Bytes::new());
            let sending = shared.endpoint.send_for(token.as_ref(), &session, request);
            sending
                .await
                .map_err(|error| shared.endpoint.unreachable(&error))
        };
        self.state = State::Resuming(resume_point, Box::pin(response));
        Ok(())
    }

    fn on_resumed(
        &mut self,
        resume_point: ResumePoint,
        response: Result<Response<Incoming>, UpstreamError>,
    ) -> Result<(), UpstreamError> {
        let unresumed = "ended and could not be resumed";
        let response = match response {
            Ok(response) => response,
            Err(error) => {
                let how = format!("{unresumed}: {}", error.details());
                return self.resume_at(resume_point, &how);
            }
        };
        let (endpoint, status) = (&self.shared.endpoint, response.status());
        if status.is_success() && is_stream(response.headers()) {
            let limit = endpoint.limits.message;
            let stream = Stream::new(response.into_body(), limit, resume_point);
            self.state = State::Streaming(Box::new(stream));
            return Ok(());
        }
        if status.is_server_error() {
            return self.resume_at(resume_point, unresumed);
        }
        Err(endpoint.broke_off(format!(
            "the stream of its reply ended and was refused later with HTTP {status}"
        )))
    }

    fn is_answered(&self) -> bool {
        self.refusal().is_some() || matches!(self.received.last(), Some(Message::Answer(_)))
    }

    /// Drains the response after the answer was fetched, so that the socket can be reused.
    fn drain(&mut self) {
        let state = std::mem::replace(&mut self.state, State::Finished);
        if let State::Streaming(stream) = state {
            let _ = try_spawn(drain(stream.into_body()));
        }
    }
}

/// Sends the request.
fn begin(shared: &Shared, session: &Session, call: &Call) -> State {
    // Registered before it is sent, since the answer may be faster than the response.
    let answer = session.stream.as_ref().map(|stream| stream.expect(call.id));
    let request = (Method::POST, Arc::clone(&call.headers), call.body.clone());
    let (endpoint, token) = (&shared.endpoint, call.token.as_ref());
    let response = endpoint.send_for(token, session, request);
    match answer {
        None => State::Sending(response),
        Some(answer) => State::Posted {
            response: Some(response),
            answer,
        },
    }
}

/// The pause before a stream is resumed, if the server sends no `retry`.
const RESUME_PAUSE: Duration = Duration::from_secs(1);
