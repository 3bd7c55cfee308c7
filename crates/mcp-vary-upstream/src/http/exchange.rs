//! One request over HTTP, until its answer.
//!
//! A state machine that its caller drives: no task, no channel. Every state keeps what it has read, so
//! that `next` may be dropped and called again.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::client::legacy::ResponseFuture;
use mcp_vary::error_code::SERVER_ERROR;
use mcp_vary::json::Members;
use mcp_vary_wire::headers::SESSION_ID;
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::server_message::{self, ServerMessage};
use tokio::time::Instant;

use super::Connection;
use super::body::{Collect, describe, drain};
use super::connect::is_legacy;
use super::session::Session;
use super::stream::{Read, ResumePoint, Stream};
use crate::error::{UpstreamError, error_code};
use crate::handshake::is_modern_error;
use crate::http::call_table::InFlightCall;
use crate::http::response::is_stream;
use crate::http::side_channel::SideChannel;
use crate::message::{Answer, Event, Message, RESOURCE_UPDATED, RequestKind};

/// The request; retained to send it again in a new session.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: u64,
    pub(super) body: Bytes,
    pub(super) headers: HeaderMap,
    pub(super) kind: RequestKind,
}

/// One request over HTTP, until its answer.
pub(crate) struct Exchange {
    pub(super) connection: Arc<Connection>,
    pub(super) session: Arc<Session>,
    pub(super) call: Call,
    pub(super) state: State,
    /// Messages for this call that arrive outside its own response.
    side_channel: Option<SideChannel>,
    /// The entry of this call in the connection's call table.
    _in_flight: Option<InFlightCall>,
    /// Messages that were received and not fetched.
    received: Received,
    deadline: Instant,
    session_id: Option<HeaderValue>,
    is_not_found: bool,
    pub(super) was_renewed: bool,
    was_sent: bool,
    /// Attempts in a row to resume the stream.
    pub(super) resumes: u32,
}

/// Received messages in order. Usually that is the answer alone, which needs no allocation.
#[derive(Debug, Default)]
struct Received {
    first: Option<Message>,
    more: VecDeque<Message>,
}

impl Received {
    fn push(&mut self, message: Message) {
        if self.first.is_none() && self.more.is_empty() {
            self.first = Some(message);
        } else {
            self.more.push_back(message);
        }
    }

    fn take(&mut self) -> Option<Message> {
        self.first.take().or_else(|| self.more.pop_front())
    }

    fn last(&self) -> Option<&Message> {
        self.more.back().or(self.first.as_ref())
    }
}

pub(super) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + Sync>>;

pub(super) enum State {
    Sending(ResponseFuture),
    ReadingBody(Collect),
    ReadingError(StatusCode, Collect),
    Streaming(Box<Stream>),
    Resuming(
        ResumePoint,
        BoxFuture<Result<Response<Incoming>, UpstreamError>>,
    ),
    Renewing(BoxFuture<Result<(), UpstreamError>>),
    Finished,
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("server", &self.connection.server)
            .field("id", &self.call.id)
            .finish_non_exhaustive()
    }
}

impl Exchange {
    pub(super) fn send(connection: Arc<Connection>, session: Arc<Session>, call: Call) -> Self {
        let response = connection.send(Method::POST, &session, &call.headers, call.body.clone());
        Self {
            deadline: Instant::now() + connection.limits.idle,
            connection,
            session,
            call,
            state: State::Sending(response),
            side_channel: None,
            _in_flight: None,
            received: Received::default(),
            session_id: None,
            is_not_found: false,
            was_renewed: false,
            was_sent: false,
            resumes: 0,
        }
    }

    /// The same exchange, which also receives the messages of `side_channel`.
    pub(super) fn with_side_channel(mut self, aside: Option<SideChannel>) -> Self {
        self.side_channel = aside;
        self
    }

    /// The same exchange; its entry is removed from the call table when it is dropped.
    pub(super) fn with_in_flight(mut self, flight: Option<InFlightCall>) -> Self {
        self._in_flight = flight;
        self
    }

    /// The session id in the response.
    pub(super) const fn session_id(&self) -> Option<&HeaderValue> {
        self.session_id.as_ref()
    }

    /// Whether the server answered as it does for an expired session.
    pub(super) const fn is_not_found(&self) -> bool {
        self.is_not_found
    }

    /// The next message. Safe to drop while it waits.
    pub(crate) async fn next(&mut self) -> Result<Message, UpstreamError> {
        self.was_sent = true;
        loop {
            let aside = self
                .side_channel
                .as_ref()
                .and_then(|aside| aside.mailbox.take());
            if let Some(message) = aside {
                return Ok(message);
            }
            if let Some(message) = self.received.take() {
                if matches!(message, Message::Answer(_)) {
                    self.finish();
                }
                return Ok(message);
            }
            let step = if self.call.kind.is_work() {
                tokio::time::timeout_at(self.deadline, self.advance()).await
            } else {
                Ok(self.advance().await)
            };
            match step {
                Err(_elapsed) if self.is_waiting_for_client() => {}
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    self.state = State::Finished;
                    if self.call.kind.is_work() {
                        self.connection.log(&error);
                    }
                    return Err(error);
                }
                Err(_elapsed) => {
                    self.cancel(Some("the gateway's time limit"));
                    return Err(self.connection.timeout());
                }
            }
        }
    }

    /// Whether the server is or was recently waiting for an answer of the client, which explains its silence.
    fn is_waiting_for_client(&mut self) -> bool {
        let (now, idle) = (Instant::now(), self.connection.limits.idle);
        let until = self.connection.server_requests.idle_since();
        self.deadline = until.map_or(now, |calm| calm) + idle;
        self.deadline > now
    }

    /// The answer; notifications before it are dropped.
    pub(super) async fn answer(&mut self) -> Result<Answer, UpstreamError> {
        loop {
            if let Message::Answer(answer) = self.next().await? {
                return Ok(answer);
            }
        }
    }

    /// Waits for one step, a message on the side channel, or the end of the connection.
    async fn advance(&mut self) -> Result<(), UpstreamError> {
        let life = Arc::clone(&self.connection.liveness);
        let mailbox = self
            .side_channel
            .as_ref()
            .map(|aside| Arc::clone(&aside.mailbox));
        let Some(mailbox) = mailbox else {
            return tokio::select! {
                biased;
                step = self.step() => step,
                error = life.ended() => Err(error),
            };
        };
        tokio::select! {
            biased;
            () = mailbox.arrived() => {
                self.touch();
                Ok(())
            }
            step = self.step() => step,
            error = life.ended() => Err(error),
        }
    }

    /// Waits for the next event of the current state and handles it.
    async fn step(&mut self) -> Result<(), UpstreamError> {
        match &mut self.state {
            State::Sending(response) => {
                let response = response.await;
                let response = response.map_err(|error| self.connection.delivery_error(&error))?;
                self.touch();
                self.on_response(response)
            }
            State::ReadingBody(body) => {
                let body = body.run().await;
                let body = body.map_err(|error| self.connection.body_error(&error))?;
                self.on_body(&body)
            }
            State::ReadingError(status, body) => {
                let (status, body) = (*status, body.run().await.unwrap_or_default());
                self.on_error_body(status, &body)
            }
            State::Streaming(stream) => {
                let read = stream.read().await;
                self.on_stream_read(read)
            }
            State::Resuming(bookmark, response) => {
                let response = response.await;
                let bookmark = std::mem::take(bookmark);
                self.on_resumed(bookmark, response)
            }
            State::Renewing(renewal) => {
                renewal.await?;
                self.resend();
                Ok(())
            }
            State::Finished => Err(UpstreamError::Finished {
                server: Arc::clone(&self.connection.server),
            }),
        }
    }

    pub(super) fn touch(&mut self) {
        let now = Instant::now();
        self.connection.liveness.touch_at(now);
        self.deadline = now + self.connection.limits.idle;
    }

    /// Decides by the head of the response how its body is read.
    fn on_response(&mut self, response: Response<Incoming>) -> Result<(), UpstreamError> {
        let status = response.status();
        if let Some(redirect) = self.connection.redirect_error(&response) {
            return Err(redirect);
        }
        self.connection.note_challenge(&response);
        self.is_not_found = status == StatusCode::NOT_FOUND;
        if self.is_not_found && self.can_renew() {
            self.renew();
            return Ok(());
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            let what = format!("it answered a request with HTTP {status} and nothing else");
            return Err(self.connection.misbehaved(what));
        }
        self.connection.behind.record(response.headers());
        self.session_id = response.headers().get(SESSION_ID).cloned();
        let is_stream = is_stream(response.headers());
        let (limits, body) = (&self.connection.limits, response.into_body());
        self.state = if !status.is_success() {
            State::ReadingError(status, Collect::new(body, limits.body))
        } else if is_stream {
            State::Streaming(Box::new(Stream::new(
                body,
                limits.message,
                ResumePoint::default(),
            )))
        } else {
            State::ReadingBody(Collect::new(body, limits.body))
        };
        Ok(())
    }

    /// Handles a response that is one JSON text.
    fn on_body(&mut self, body: &Bytes) -> Result<(), UpstreamError> {
        let mut why = Cow::Borrowed("it contains no answer");
        for message in server_message::messages(body.clone()) {
            // An error without id means that the request could not be read; there is only this one.
            if let Err(error) = self.on_message(message, true) {
                why = error.into();
            }
        }
        if !self.is_answered() {
            let said = self.connection.secrets.excerpt(body, 200);
            let what = format!("its reply is {}; it sent `{said}`", describe(body, &why));
            return Err(self.connection.misbehaved(what));
        }
        self.state = State::Finished;
        Ok(())
    }

    /// Handles one message; the error says why it is not valid.
    fn on_message(&mut self, message: Bytes, anonymous_is_ours: bool) -> Result<(), String> {
        let server = &self.connection.server;
        match ServerMessage::read(&message)? {
            ServerMessage::Response { id, outcome } => {
                let is_ours = match id {
                    Some(id) => id == self.call.id,
                    None => anonymous_is_ours && outcome.is_error,
                };
                if is_ours && !self.is_answered() {
                    let answer = Answer::new(message, outcome);
                    self.received.push(Message::Answer(answer));
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
                let parts = (id, &*method, params);
                let asked = self
                    .connection
                    .on_server_request(&self.session, parts, &message);
                if let Some(request) = asked {
                    if self.is_answered() {
                        self.connection.publish(Event::ServerRequest(request));
                    } else {
                        self.received.push(Message::Request(request));
                    }
                }
            }
            ServerMessage::Notification { method, params } => {
                let is_subscription = self.call.kind == RequestKind::Subscription;
                self.connection
                    .server_requests
                    .on_notification(&method, params);
                if let Some(kind) = Kind::changed_by(&method) {
                    self.connection.publish(Event::ListChanged(kind));
                } else if method == RESOURCE_UPDATED && !is_subscription {
                    self.connection.publish_resource_updated(params);
                } else if !self.is_answered() {
                    self.received.push(Message::Notification(message));
                }
            }
        }
        Ok(())
    }

    /// Handles one message of a stream; invalid ones are skipped.
    fn on_event(&mut self, message: &Bytes) {
        if let Err(why) = self.on_message(message.clone(), false) {
            self.connection.skip(&why, message);
        }
    }

    fn is_answered(&self) -> bool {
        matches!(self.received.last(), Some(Message::Answer(_)))
    }

    /// Drains the response after the answer was fetched, so that the socket can be reused.
    fn finish(&mut self) {
        let state = std::mem::replace(&mut self.state, State::Finished);
        if let State::Streaming(stream) = state
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(drain(stream.into_body()));
        }
    }

    /// Handles an HTTP error: its body is the answer if it is a JSON-RPC error; otherwise the gateway makes the error.
    fn on_error_body(&mut self, status: StatusCode, body: &Bytes) -> Result<(), UpstreamError> {
        let refused = self.connection.status_error(status, body);
        if matches!(status.as_u16(), 401 | 403 | 407) {
            return Err(refused);
        }
        let Ok(ServerMessage::Response { id, outcome }) = ServerMessage::read(body) else {
            return Err(refused);
        };
        let error = String::from_utf8_lossy(&body[outcome.payload.clone()]).into_owned();
        if status == StatusCode::BAD_REQUEST && self.can_renew() && is_session_expired(&error) {
            self.renew();
            return Ok(());
        }
        let is_modern = is_modern_error(&error);
        let is_strange = status == StatusCode::NOT_FOUND || is_modern && is_legacy(&self.session);
        if is_strange && self.call.kind.is_work() {
            // A server of the other era may have replaced the one of the handshake.
            self.connection.liveness.suspect();
        }
        let is_ours = match id {
            Some(id) => id == self.call.id,
            None => is_modern,
        };
        if !is_ours || !outcome.is_error {
            return Err(refused);
        }
        let answer = Answer::new(body.clone(), outcome);
        self.received.push(Message::Answer(answer));
        self.state = State::Finished;
        Ok(())
    }

    /// Handles one read of the stream.
    fn on_stream_read(
        &mut self,
        read: Result<Read, mcp_vary_wire::sse::EventTooLarge>,
    ) -> Result<(), UpstreamError> {
        self.touch();
        match read {
            Ok(Read::Messages(messages)) => {
                self.resumes = 0;
                for data in messages {
                    for message in server_message::messages(data) {
                        self.on_event(&message);
                    }
                }
                Ok(())
            }
            Ok(Read::End(error)) => {
                let how = error.map_or_else(
                    || "ended without an answer".to_owned(),
                    |error| format!("broke: {error}"),
                );
                self.resume(&how)
            }
            Err(too_large) => Err(UpstreamError::TooLarge {
                server: Arc::clone(&self.connection.server),
                what: "an event",
                limit: too_large.limit,
            }),
        }
    }

    /// Ends the exchange and cancels the request at the server, unless it has answered.
    ///
    /// Legacy: "Disconnection SHOULD NOT be interpreted as the client cancelling its request", so a
    /// notification says so. Modern: "Closing the SSE response stream MUST be treated by the server
    /// as cancellation".
    pub(crate) fn cancel(&mut self, reason: Option<&str>) {
        let is_over = matches!(self.state, State::Finished) || self.is_answered();
        self.state = State::Finished;
        let is_told = is_legacy(&self.session) && self.call.kind.is_cancellable();
        if !is_over && self.was_sent && is_told {
            self.connection.cancel(&self.session, self.call.id, reason);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.cancel(None);
    }
}

/// Whether an error means that the session has expired: servers written after an early example send it instead of a 404.
fn is_session_expired(error: &str) -> bool {
    let members = Members::parse(error).unwrap_or_default();
    let message = members.get_str("message").unwrap_or_default();
    error_code(&members) == Some(SERVER_ERROR) && message.to_lowercase().contains("session")
}
