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
use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::client::legacy::ResponseFuture;
use mcp_vary_wire::headers::SESSION_ID;
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::server_message::{self, Frame};
use tokio::time::Instant;

use super::body::{Collect, drain};
use super::connect::is_legacy;
use super::session::Session;
use super::stream::{Bookmark, Read, Stream};
use super::{Connection, LAST_EVENT_ID, STREAM};
use crate::error::UpstreamError;
use crate::handshake::is_modern_error;
use crate::http::call_table::Flight;
use crate::http::response::is_stream;
use crate::http::side_channel::Aside;
use crate::message::{Answer, Event, Message, RESOURCE_UPDATED, RequestKind};

/// What is asked; kept to ask again where the server did not run it.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: u64,
    pub(super) body: Bytes,
    pub(super) headers: HeaderMap,
    pub(super) purpose: RequestKind,
}

/// One request over HTTP, until its answer.
pub(crate) struct Exchange {
    connection: Arc<Connection>,
    session: Arc<Session>,
    call: Call,
    state: State,
    /// What comes for this call beside its own stream.
    aside: Option<Aside>,
    /// Counts it among those that others may be told about by mistake.
    _flight: Option<Flight>,
    /// What has arrived and was not fetched.
    arrived: Arrived,
    deadline: Instant,
    session_id: Option<HeaderValue>,
    was_not_found: bool,
    was_renewed: bool,
    was_sent: bool,
    /// Attempts in a row to resume the stream.
    resumes: u32,
}

/// What has arrived, in order. Mostly that is the answer alone, which needs no room elsewhere.
#[derive(Debug, Default)]
struct Arrived {
    first: Option<Message>,
    rest: VecDeque<Message>,
}

impl Arrived {
    fn push(&mut self, message: Message) {
        if self.first.is_none() && self.rest.is_empty() {
            self.first = Some(message);
        } else {
            self.rest.push_back(message);
        }
    }

    fn take(&mut self) -> Option<Message> {
        self.first.take().or_else(|| self.rest.pop_front())
    }

    fn last(&self) -> Option<&Message> {
        self.rest.back().or(self.first.as_ref())
    }
}

type Later<T> = Pin<Box<dyn Future<Output = T> + Send + Sync>>;

enum State {
    Sending(ResponseFuture),
    Answering(Collect),
    Refused(StatusCode, Collect),
    Streaming(Box<Stream>),
    Resuming(Bookmark, Later<Result<Response<Incoming>, UpstreamError>>),
    Renewing(Later<Result<(), UpstreamError>>),
    Over,
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
            aside: None,
            _flight: None,
            arrived: Arrived::default(),
            session_id: None,
            was_not_found: false,
            was_renewed: false,
            was_sent: false,
            resumes: 0,
        }
    }

    /// The same exchange; what comes in `aside` belongs to it too.
    pub(super) fn with_aside(mut self, aside: Option<Aside>) -> Self {
        self.aside = aside;
        self
    }

    /// The same exchange; it counts as a call of its owner until it is dropped.
    pub(super) fn with_flight(mut self, flight: Option<Flight>) -> Self {
        self._flight = flight;
        self
    }

    /// What the server called the session in its reply.
    pub(super) const fn session_id(&self) -> Option<&HeaderValue> {
        self.session_id.as_ref()
    }

    /// Whether the server answered as it does in a session that is gone.
    pub(super) const fn was_not_found(&self) -> bool {
        self.was_not_found
    }

    /// The next message. Safe to drop while it waits.
    pub(crate) async fn next(&mut self) -> Result<Message, UpstreamError> {
        self.was_sent = true;
        loop {
            let aside = self.aside.as_ref().and_then(|aside| aside.mailbox.take());
            if let Some(message) = aside {
                return Ok(message);
            }
            if let Some(message) = self.arrived.take() {
                if matches!(message, Message::Answer(_)) {
                    self.finish();
                }
                return Ok(message);
            }
            let step = if self.call.purpose.has_idle_timeout() {
                tokio::time::timeout_at(self.deadline, self.advance()).await
            } else {
                Ok(self.advance().await)
            };
            match step {
                Err(_elapsed) if self.waits_for_the_client() => {}
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    self.state = State::Over;
                    if self.call.purpose == RequestKind::Call {
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

    /// Whether the server is silent since it waits for the client, or has done so until lately.
    fn waits_for_the_client(&mut self) -> bool {
        let (now, idle) = (Instant::now(), self.connection.limits.idle);
        let until = self.connection.asking.idle_since();
        self.deadline = until.map_or(now, |calm| calm) + idle;
        self.deadline > now
    }

    /// The answer; notifications before it are dropped.
    pub(super) async fn wait(&mut self) -> Result<Answer, UpstreamError> {
        loop {
            if let Message::Answer(answer) = self.next().await? {
                return Ok(answer);
            }
        }
    }

    /// One step, something beside the stream, or the end of the connection.
    async fn advance(&mut self) -> Result<(), UpstreamError> {
        let life = Arc::clone(&self.connection.life);
        let mailbox = self.aside.as_ref().map(|aside| Arc::clone(&aside.mailbox));
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

    /// Waits for one thing and takes it in.
    async fn step(&mut self) -> Result<(), UpstreamError> {
        match &mut self.state {
            State::Sending(response) => {
                let response = response.await;
                let response = response.map_err(|error| self.connection.lost(&error))?;
                self.touch();
                self.begin(response)
            }
            State::Answering(body) => {
                let body = body.run().await;
                let body = body.map_err(|error| self.connection.body_error(&error))?;
                self.answer(&body)
            }
            State::Refused(status, body) => {
                let (status, body) = (*status, body.run().await.unwrap_or_default());
                self.refuse(status, &body)
            }
            State::Streaming(stream) => {
                let read = stream.read().await;
                self.read(read)
            }
            State::Resuming(bookmark, response) => {
                let response = response.await;
                let bookmark = std::mem::take(bookmark);
                self.resumed(bookmark, response)
            }
            State::Renewing(renewal) => {
                renewal.await?;
                self.send_again();
                Ok(())
            }
            State::Over => Err(UpstreamError::Finished {
                server: Arc::clone(&self.connection.server),
            }),
        }
    }

    fn touch(&mut self) {
        let now = Instant::now();
        self.connection.life.touch_at(now);
        self.deadline = now + self.connection.limits.idle;
    }

    /// The head of the reply decides how the rest is read.
    fn begin(&mut self, response: Response<Incoming>) -> Result<(), UpstreamError> {
        let status = response.status();
        if let Some(redirect) = self.connection.redirect(&response) {
            return Err(redirect);
        }
        self.was_not_found = status == StatusCode::NOT_FOUND;
        if self.was_not_found && self.can_renew() {
            self.renew();
            return Ok(());
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            let what = format!("it answered a request with HTTP {status} and nothing else");
            return Err(self.connection.misbehaved(what));
        }
        self.connection.behind.note(response.headers());
        self.session_id = response.headers().get(SESSION_ID).cloned();
        let is_stream = is_stream(response.headers());
        let (limits, body) = (&self.connection.limits, response.into_body());
        self.state = if !status.is_success() {
            State::Refused(status, Collect::new(body, limits.body))
        } else if is_stream {
            State::Streaming(Box::new(Stream::new(
                body,
                limits.line,
                Bookmark::default(),
            )))
        } else {
            State::Answering(Collect::new(body, limits.body))
        };
        Ok(())
    }

    /// Takes in a reply that is one JSON text.
    fn answer(&mut self, body: &Bytes) -> Result<(), UpstreamError> {
        let mut why = Cow::Borrowed("it holds no answer");
        for message in server_message::messages(body.clone()) {
            // An error without id says that the request could not be read; there is only this one.
            if let Err(error) = self.accept(message, true) {
                why = error.into();
            }
        }
        if !self.is_answered() {
            let said = self.connection.secrets.excerpt(body, 200);
            let what = format!("its reply is no answer, since {why}; it said `{said}`");
            return Err(self.connection.misbehaved(what));
        }
        self.state = State::Over;
        Ok(())
    }

    /// Takes in one message; the error says why it is none.
    fn accept(&mut self, message: Bytes, anonymous_is_ours: bool) -> Result<(), String> {
        let server = &self.connection.server;
        match Frame::read(&message)? {
            Frame::Answer { id, outcome } => {
                let is_ours = match id {
                    Some(id) => id == self.call.id,
                    None => anonymous_is_ours && outcome.is_error,
                };
                if is_ours && !self.is_answered() {
                    let answer = Answer::new(message, outcome);
                    self.arrived.push(Message::Answer(answer));
                } else {
                    tracing::debug!(server = %server, ?id, "answer to no open request dropped");
                }
            }
            Frame::TooDeep { id } => {
                if id == self.call.id && !self.is_answered() {
                    let answer = Answer::too_deep(server, id);
                    self.arrived.push(Message::Answer(answer));
                }
            }
            Frame::Request { id, method, params } => {
                let parts = (id, &*method, params);
                let asked = self.connection.asked(&self.session, parts, &message);
                if let Some(request) = asked {
                    if self.is_answered() {
                        self.connection.tell(Event::ServerRequest(request));
                    } else {
                        self.arrived.push(Message::Request(request));
                    }
                }
            }
            Frame::Notification { method, params } => {
                let is_subscription = self.call.purpose == RequestKind::Subscription;
                self.connection.asking.on_notification(&method, params);
                if let Some(kind) = Kind::changed_by(&method) {
                    self.connection.tell(Event::ListChanged(kind));
                } else if method == RESOURCE_UPDATED && !is_subscription {
                    self.connection.tell_updated(params);
                } else if !self.is_answered() {
                    self.arrived.push(Message::Notification(message));
                }
            }
        }
        Ok(())
    }

    /// Takes in one message of a stream; what is none is skipped.
    fn accept_event(&mut self, message: &Bytes) {
        if let Err(why) = self.accept(message.clone(), false) {
            self.connection.skip(&why, message);
        }
    }

    fn is_answered(&self) -> bool {
        matches!(self.arrived.last(), Some(Message::Answer(_)))
    }

    /// The answer has been fetched: lets the connection be used again.
    fn finish(&mut self) {
        let state = std::mem::replace(&mut self.state, State::Over);
        if let State::Streaming(stream) = state
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(drain(stream.into_body()));
        }
    }

    /// A refusal is the answer where it holds one; otherwise it is the gateway's error.
    fn refuse(&mut self, status: StatusCode, body: &Bytes) -> Result<(), UpstreamError> {
        let refused = self.connection.refused(status, body);
        if matches!(status.as_u16(), 401 | 403 | 407) {
            return Err(refused);
        }
        let Ok(Frame::Answer { id, outcome }) = Frame::read(body) else {
            return Err(refused);
        };
        let error = String::from_utf8_lossy(&body[outcome.payload.clone()]).into_owned();
        if status == StatusCode::BAD_REQUEST && self.can_renew() && says_session_is_gone(&error) {
            self.renew();
            return Ok(());
        }
        let is_modern = is_modern_error(&error);
        let is_strange = status == StatusCode::NOT_FOUND || is_modern && is_legacy(&self.session);
        if is_strange && self.call.purpose == RequestKind::Call {
            // A server of the other era may have taken the place of the one that was connected to.
            self.connection.life.suspect();
        }
        let is_ours = match id {
            Some(id) => id == self.call.id,
            None => is_modern,
        };
        if !is_ours || !outcome.is_error {
            return Err(refused);
        }
        let answer = Answer::new(body.clone(), outcome);
        self.arrived.push(Message::Answer(answer));
        self.state = State::Over;
        Ok(())
    }

    /// Takes in what a stream brought.
    fn read(
        &mut self,
        read: Result<Read, mcp_vary_wire::sse::TooLarge>,
    ) -> Result<(), UpstreamError> {
        self.touch();
        match read {
            Ok(Read::Messages(messages)) => {
                self.resumes = 0;
                for data in messages {
                    for message in server_message::messages(data) {
                        self.accept_event(&message);
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

    /// Asks for the rest of a stream that ended too early.
    ///
    /// "If the client wishes to resume after a disconnection […], it SHOULD issue an HTTP GET to the
    /// MCP endpoint, and include the `Last-Event-ID` header" (MCP 2025-11-25, basic/transports).
    fn resume(&mut self, how: &str) -> Result<(), UpstreamError> {
        let bookmark = match &self.state {
            State::Streaming(stream) => stream.bookmark(),
            State::Resuming(bookmark, _) => bookmark.clone(),
            _ => Bookmark::default(),
        };
        self.resume_at(bookmark, how)
    }

    fn resume_at(&mut self, bookmark: Bookmark, how: &str) -> Result<(), UpstreamError> {
        let connection = Arc::clone(&self.connection);
        let last_id = bookmark.header().filter(|_| is_legacy(&self.session));
        let Some(last_id) = last_id.filter(|_| self.resumes < connection.limits.resumes) else {
            let server = Arc::clone(&connection.server);
            let reason = format!("the stream of its reply {how}");
            return Err(UpstreamError::BrokeOff { server, reason });
        };
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, STREAM);
        headers.insert(LAST_EVENT_ID, last_id);
        let pause = bookmark.retry.unwrap_or(PAUSE * (1 << self.resumes.min(6)));
        self.resumes += 1;
        let session = Arc::clone(&self.session);
        let response = async move {
            tokio::time::sleep(pause).await;
            let response = connection.send(Method::GET, &session, &headers, Bytes::new());
            response
                .await
                .map_err(|error| connection.unreachable(&error))
        };
        self.state = State::Resuming(bookmark, Box::pin(response));
        Ok(())
    }

    fn resumed(
        &mut self,
        bookmark: Bookmark,
        response: Result<Response<Incoming>, UpstreamError>,
    ) -> Result<(), UpstreamError> {
        match response {
            Ok(response) if response.status().is_success() && is_stream(response.headers()) => {
                let limit = self.connection.limits.line;
                let stream = Stream::new(response.into_body(), limit, bookmark);
                self.state = State::Streaming(Box::new(stream));
                Ok(())
            }
            Ok(response) if response.status().is_server_error() => {
                self.resume_at(bookmark, "ended and could not be resumed")
            }
            Ok(response) => {
                let how = format!(
                    "ended and was refused later with HTTP {}",
                    response.status()
                );
                let server = Arc::clone(&self.connection.server);
                let reason = format!("the stream of its reply {how}");
                Err(UpstreamError::BrokeOff { server, reason })
            }
            Err(error) => self.resume_at(
                bookmark,
                &format!("ended and could not be resumed: {}", error.details()),
            ),
        }
    }

    /// Whether the server may have forgotten the session, and nobody has told it anew for this call.
    fn can_renew(&self) -> bool {
        self.session.id.is_some()
            && !self.was_renewed
            && self.call.purpose != RequestKind::Handshake
    }

    fn renew(&mut self) {
        self.was_renewed = true;
        let renewal = Arc::clone(&self.connection).renew(self.session.generation);
        self.state = State::Renewing(Box::pin(renewal));
    }

    fn send_again(&mut self) {
        self.touch();
        self.session = self.connection.session.load_full();
        let (headers, body) = (&self.call.headers, self.call.body.clone());
        let response = self
            .connection
            .send(Method::POST, &self.session, headers, body);
        self.state = State::Sending(response);
    }

    /// Ends the exchange and tells the server, unless it has answered.
    ///
    /// Legacy: "Disconnection SHOULD NOT be interpreted as the client cancelling its request", so a
    /// notification says so. Modern: "Closing the SSE response stream MUST be treated by the server
    /// as cancellation".
    pub(crate) fn cancel(&mut self, reason: Option<&str>) {
        let is_over = matches!(self.state, State::Over) || self.is_answered();
        self.state = State::Over;
        let is_told = is_legacy(&self.session) && self.call.purpose.is_cancellable();
        if !is_over && self.was_sent && is_told {
            self.connection
                .withdraw(&self.session, self.call.id, reason);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.cancel(None);
    }
}

/// Whether an error says what a 404 should: servers written after an early example do this.
fn says_session_is_gone(error: &str) -> bool {
    let members = mcp_vary::json::Members::parse(error).unwrap_or_default();
    let message = members.get_str("message").unwrap_or_default();
    members.get("code") == Some("-32000") && message.to_lowercase().contains("session")
}

/// Before a stream is resumed, when the server names no time.
const PAUSE: std::time::Duration = std::time::Duration::from_secs(1);
