//! HTTP responses, and their bodies: one text, or events on their way to a client.

use super::validation::Rejection;
use crate::pipeline::exchange::pump::pump;
use crate::pipeline::exchange::{ExchangeServices, InFlightRequest, ResponseEvent};
use crate::subscriptions::ListenStream;
use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{HeaderName, Response, StatusCode};
use http_body::Frame;
use mcp_vary::error_code::{INTERNAL_ERROR, INVALID_REQUEST};
use mcp_vary_http::replay::{ReplayReader, ReplayStreams};
use mcp_vary_session::OutboxStream;
use mcp_vary_session::client::understands_priming;
use mcp_vary_store::{ForwardError, ReplicaBody};
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::response::{Reply, RpcError, in_memory};
use mcp_vary_wire::sse::{self, event};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Keeps reverse proxies from buffering events.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The response to a request that was rejected before it was read.
pub(super) fn rejected(rejection: Rejection) -> Response<Body> {
    let is_overloaded = rejection.status == StatusCode::SERVICE_UNAVAILABLE;
    let code = if is_overloaded {
        INTERNAL_ERROR
    } else {
        INVALID_REQUEST
    };
    let failure = RpcError::new(code, rejection.reason);
    let body = Body::from(failure.to_bytes(None));
    let mut response = typed_response(rejection.status, "application/json", body);
    if is_overloaded {
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

pub(super) fn json(reply: Reply) -> Response<Body> {
    let (status, retry_after, scopes) = (reply.status, reply.retry_after, reply.scopes.clone());
    let body = Body::from(reply.into_body());
    let mut response = typed_response(status, "application/json", body);
    if let Some(seconds) = retry_after {
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(scopes) = scopes {
        response.extensions_mut().insert(NeededScopes(scopes));
    }
    response
}

/// The scopes that a refused call needs, for the challenge of its response.
#[derive(Clone, Debug)]
pub(super) struct NeededScopes(pub(super) Arc<[String]>);

pub(super) fn event_stream(events: Body) -> Response<Body> {
    let mut response = typed_response(StatusCode::OK, "text/event-stream", events);
    let headers = response.headers_mut();
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    response
}

pub(super) fn accepted() -> Response<Body> {
    empty(StatusCode::ACCEPTED)
}

/// The response to a request with another method than those that are `allowed`.
pub(super) fn not_allowed(allowed: &'static str) -> Response<Body> {
    let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
    let headers = response.headers_mut();
    headers.insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// A response without a body.
pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

pub(super) fn typed_response(
    status: StatusCode,
    media: &'static str,
    body: Body,
) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(media));
    response
}

/// The body of any response of the gateway.
pub(crate) enum Body {
    Full(Option<Bytes>),
    Stream(Box<Stream>),
    /// What another replica sends; for a stream that only listens, until its end.
    Replica(Box<ReplicaBody>, Option<StreamEnd>),
}

/// Ready when a stream must end.
pub(crate) type StreamEnd = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Body {
    pub(crate) fn empty() -> Self {
        Self::Full(None)
    }

    /// Whether it is a stream that answers no call, so that its client can open it again.
    pub(super) fn only_listens(&self) -> bool {
        match self {
            Self::Full(_) => false,
            Self::Replica(_, end) => end.is_some(),
            Self::Stream(stream) => matches!(
                stream.source,
                Source::Replay(_, Some(_)) | Source::Listener(_) | Source::Page(..)
            ),
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Full(Some(bytes))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = ForwardError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ForwardError>>> {
        let data = match self.get_mut() {
            Self::Full(bytes) => bytes.take(),
            Self::Stream(stream) => ready!(stream.poll_data(cx)),
            Self::Replica(body, end) => {
                let has_ended = end
                    .as_mut()
                    .is_some_and(|end| end.as_mut().poll(cx).is_ready());
                match has_ended.then_some(None) {
                    Some(end) => end,
                    None => ready!(body.poll_data(cx)).transpose()?,
                }
            }
        };
        Poll::Ready(data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Full(None))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self {
            Self::Full(bytes) => {
                http_body::SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64)
            }
            Self::Stream(_) | Self::Replica(..) => http_body::SizeHint::default(),
        }
    }
}

/// Events in order, with keep-alive comments.
pub(crate) struct Stream {
    source: Source,
    first: Option<Bytes>,
    keep_alive: Pin<Box<Sleep>>,
}

enum Source {
    /// A request in flight, for as long as its client is connected.
    Request(Next),
    /// Messages of several requests of a batch.
    Channel(tokio::sync::mpsc::Receiver<Bytes>),
    /// A stream that can be resumed, and its source unless a request writes to it.
    Replay(ReplayReader, Option<StandaloneStream>),
    /// The notifications that a modern client subscribed to.
    Listener(Box<ListenStream>),
    /// Events for the operator's page, until the listener stops.
    Page(tokio::sync::mpsc::Receiver<Bytes>, StreamEnd),
    Finished,
}

/// The messages for a client that belong to none of its requests, until its session ends or expires, or the listener
/// stops.
pub(crate) struct StandaloneStream {
    pub(crate) messages: OutboxStream,
    pub(crate) ended: StreamEnd,
    pub(crate) services: Arc<ExchangeServices>,
}

type Next = Pin<Box<dyn Future<Output = (Box<InFlightRequest>, ResponseEvent)> + Send>>;

/// A keep-alive comment is sent after this long without an event.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(15);

impl Stream {
    /// The stream of `running`, whose first message has arrived, for a client that cannot resume it.
    pub(crate) fn of_request(running: Box<InFlightRequest>, first: &[u8]) -> Box<Self> {
        Self::new(Source::Request(next(running)), Some(event(first)))
    }

    /// The stream of an answer. If a client can resume it, it begins with a priming event.
    ///
    /// > the server SHOULD immediately send an SSE event consisting of an event ID and an empty `data` field in order
    /// > to prime the client to reconnect (MCP 2025-11-25, basic/transports, "Sending Messages to the Server")
    pub(crate) fn of_answer(
        streams: &ReplayStreams,
        resumable_id: Option<ClientId>,
        request: &str,
        answer: Reply,
    ) -> Box<Self> {
        let Some(client) = resumable_id else {
            let event = in_memory(event(&answer.body), answer.memory);
            return Self::new(Source::Finished, Some(event));
        };
        let connection = streams.open(client, Some(request), true);
        streams.finish_response(connection.log(), &answer.body);
        Self::of_replay(connection, None, None)
    }

    /// The stream of `running` for a client that can resume it.
    pub(crate) fn of_call(running: Box<InFlightRequest>, first: Option<&[u8]>) -> Box<Self> {
        let services = Arc::clone(&running.services);
        let client = running.client();
        let streams = &services.replay_streams;
        let primed = understands_priming(client.revision);
        let connection = streams.open(client.id, Some(running.id()), primed);
        if let Some(first) = first {
            streams.push(connection.log(), first);
        }
        let pumping = pump(Arc::clone(&services), running, Arc::clone(connection.log()));
        services.background_tasks.spawn(pumping);
        Self::of_replay(connection, None, None)
    }

    pub(crate) fn of_channel(
        messages: tokio::sync::mpsc::Receiver<Bytes>,
        first: &[u8],
    ) -> Box<Self> {
        Self::new(Source::Channel(messages), Some(event(first)))
    }

    /// A stream that can be resumed, after `first`.
    pub(crate) fn of_replay(
        connection: ReplayReader,
        standalone: Option<StandaloneStream>,
        first: Option<Bytes>,
    ) -> Box<Self> {
        Self::new(Source::Replay(connection, standalone), first)
    }

    /// The notifications that a modern client subscribed to, after the acknowledgement.
    pub(crate) fn of_listener(listener: Box<ListenStream>) -> Box<Self> {
        Self::new(Source::Listener(listener), None)
    }

    pub(super) fn of_page(
        events: tokio::sync::mpsc::Receiver<Bytes>,
        end: impl Future<Output = ()> + Send + 'static,
    ) -> Box<Self> {
        Self::new(Source::Page(events, Box::pin(end)), None)
    }

    fn new(source: Source, first: Option<Bytes>) -> Box<Self> {
        Box::new(Self {
            source,
            first,
            keep_alive: Box::pin(tokio::time::sleep(KEEP_ALIVE_AFTER)),
        })
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        if let Poll::Ready(event) = self.source.poll_event(cx) {
            self.keep_alive
                .as_mut()
                .reset(Instant::now() + KEEP_ALIVE_AFTER);
            return Poll::Ready(event);
        }
        ready!(self.keep_alive.as_mut().poll(cx));
        self.keep_alive
            .as_mut()
            .reset(Instant::now() + KEEP_ALIVE_AFTER);
        Poll::Ready(Some(Bytes::from_static(self.source.comment())))
    }
}

impl Source {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let (event, is_last) = match self {
            Self::Request(waiting) => {
                let (running, step) = ready!(waiting.as_mut().poll(cx));
                let (event, after) = match step {
                    ResponseEvent::Message(message) => {
                        (Some(event(&message)), Self::Request(next(running)))
                    }
                    ResponseEvent::Done(reply) => {
                        let event = in_memory(event(&reply.body), reply.memory);
                        (Some(event), Self::Finished)
                    }
                    ResponseEvent::Cancelled => (None, Self::Finished),
                };
                *self = after;
                (event, false)
            }
            Self::Channel(messages) => {
                let message = ready!(messages.poll_recv(cx));
                (message.map(|message| event(&message)), false)
            }
            Self::Listener(listener) => {
                let message = ready!(listener.poll_next(cx));
                (message.map(|message| event(&message)), false)
            }
            Self::Replay(connection, standalone) => {
                let event = ready!(poll_replay(connection, standalone.as_mut(), cx));
                let is_last = event.is_none();
                (event, is_last)
            }
            Self::Page(events, end) => match end.as_mut().poll(cx) {
                Poll::Ready(()) => (None, true),
                Poll::Pending => (ready!(events.poll_recv(cx)), false),
            },
            Self::Finished => (None, false),
        };
        if is_last {
            *self = Self::Finished;
        }
        Poll::Ready(event)
    }

    /// The comment that keeps the stream open.
    fn comment(&self) -> &'static [u8] {
        match self {
            Self::Replay(..) => sse::KEEP_ALIVE_WITH_IDS,
            _ => sse::KEEP_ALIVE,
        }
    }
}

/// The next event of a stream. A message that belongs to no request becomes an event first.
fn poll_replay(
    connection: &ReplayReader,
    mut standalone: Option<&mut StandaloneStream>,
    cx: &mut Context<'_>,
) -> Poll<Option<Bytes>> {
    loop {
        if let Poll::Ready(event) = connection.poll_event(cx) {
            return Poll::Ready(event);
        }
        let Some(standalone) = &mut standalone else {
            return Poll::Pending;
        };
        if standalone.ended.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        match ready!(standalone.messages.poll_next(cx)) {
            Some(message) => standalone
                .services
                .replay_streams
                .push(connection.log(), &message),
            None => return Poll::Ready(None),
        }
    }
}

fn next(mut running: Box<InFlightRequest>) -> Next {
    Box::pin(async move {
        let step = running.next().await;
        (running, step)
    })
}
