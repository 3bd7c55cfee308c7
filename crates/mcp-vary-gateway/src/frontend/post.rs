//! One `POST`: its body, read within bounds or discarded, and the answer or stream for its message.

use super::batch::{self, Batch};
use super::forwarding;
use super::request_body::RequestBody;
use super::responses::{Body, Stream, accepted, event_stream, json};
use crate::frontend::validation::{self, Rejection};
use crate::pipeline::exchange::{InFlightRequest, ResponseEvent};
use crate::pipeline::inbound::{
    Inbound, MessageSource, Outcome, Sender, bad_request, handle, requested_version, session_of,
};
use crate::pipeline::methods::Dispatch;
use crate::pipeline::snapshot::ConfigSnapshot;
use bytes::{Bytes, BytesMut};
use http::header::EXPECT;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use mcp_vary_base::memory_budget::{Exhausted, Lease};
use mcp_vary_http::replay::ReplayStreams;
use mcp_vary_http::{ConnectionSleep, ConnectionTimer};
use mcp_vary_session::caller::Caller;
use mcp_vary_session::memory_cost;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::counters::Counter;
use mcp_vary_wire::envelope::{self, Message, WireError};
use mcp_vary_wire::headers::SESSION_ID;
use mcp_vary_wire::response::{Reply, RpcError};
use mcp_vary_wire::revision::Era;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Answers a `POST` whose head was validated. A stream of notifications ends with the future that `stream_end` returns.
pub(super) async fn answer<E: Future<Output = ()> + Send + 'static>(
    snapshot: Arc<ConfigSnapshot>,
    head: &Parts,
    caller: &mut Caller,
    body: RequestBody,
    stream_timer: &ConnectionTimer,
    stream_end: impl FnOnce() -> E,
) -> Result<Response<Body>, Rejection> {
    if let Err(failure) = check_session(&snapshot, head, caller, &body) {
        discard(&snapshot, head, body);
        return Ok(json(failure.reply(None, Era::Legacy)));
    }
    let (bytes, memory) = read_body(&snapshot, head, body).await?;
    if let Some(messages) = envelope::batch(&bytes) {
        let batch = Batch {
            body: &bytes,
            messages,
            memory,
        };
        return Ok(Box::pin(batch::answer(snapshot, head, caller, batch)).await);
    }
    let (message, params) = match Message::read_with_params(&bytes) {
        Ok(read) => read,
        Err(why) => return Ok(json(unreadable(&why))),
    };
    let named = Some((&message, params.as_ref()));
    if let Some(store) = snapshot.services.store.as_deref()
        && let Some(response) =
            forwarding::answer_elsewhere(store, &snapshot, head, caller, &bytes, named).await
    {
        return Ok(response);
    }
    let inbound = Inbound {
        message: &message,
        params,
        body: &bytes,
        sender: Sender {
            snapshot: &snapshot,
            caller,
            source: MessageSource::Post(&head.headers),
        },
    };
    let outcome = handle(inbound).await;
    let is_streamed = validation::prefers_stream(&head.headers);
    Ok(match outcome {
        Outcome::Accepted => forwarding::accept(&snapshot, head, &message).await,
        Outcome::Refused(reply) => json(reply),
        Outcome::SessionOpened(reply, id) => with_session_id(json(reply), id),
        Outcome::Dispatched(Dispatch::Done(reply), client) => {
            let streams = &snapshot.services.exchange.replay_streams;
            let id = message.id.unwrap_or_default();
            replied(reply, is_streamed, streams, client, id)
        }
        Outcome::Dispatched(Dispatch::InFlight(mut running), _) => {
            let is_late = stream_timer.wait(snapshot.config.limits.stream_after);
            // A request that its server works on no longer needs the configuration, which may be replaced.
            drop(snapshot);
            running.memory = Some(memory);
            buffer_or_stream(running, is_late, is_streamed).await
        }
        Outcome::Dispatched(Dispatch::Listen(listening), _) => {
            let stream = Stream::of_listener(listening.stream.until(stream_end()));
            event_stream(Body::Stream(stream))
        }
    })
}

fn unreadable(error: &WireError) -> Reply {
    bad_request(&RpcError::from(error), error.id.as_deref(), Era::Legacy)
}

/// Adds the id of the session that the request opened.
fn with_session_id(mut response: Response<Body>, id: Option<String>) -> Response<Body> {
    if let Some(Ok(value)) = id.map(HeaderValue::try_from) {
        response.headers_mut().insert(SESSION_ID, value);
    }
    response
}

/// The answer in the form that the client prefers. An answer with another status than 200 is always JSON.
fn replied(
    reply: Reply,
    is_streamed: bool,
    streams: &ReplayStreams,
    resumable_id: Option<ClientId>,
    request: &str,
) -> Response<Body> {
    if !is_streamed || reply.status != StatusCode::OK {
        return json(reply);
    }
    let stream = Stream::of_answer(streams, resumable_id, request, reply);
    event_stream(Body::Stream(stream))
}

/// The first message decides: an answer is sent as JSON unless the client prefers a stream, anything else opens a stream.
///
/// For clients that can resume streams, an answer that `is_late` opens one, too: a client that waits for JSON gets no keep-alives,
/// and cannot resume when its connection is lost.
async fn buffer_or_stream(
    mut running: Box<InFlightRequest>,
    is_late: ConnectionSleep,
    is_streamed: bool,
) -> Response<Body> {
    let era = running.client().era();
    let resumable_id = running.client().resumable_id();
    let first = match resumable_id {
        Some(_) => tokio::select! {
            biased;
            first = running.next() => Some(first),
            () = is_late => None,
        },
        None => Some(running.next().await),
    };
    match first {
        Some(ResponseEvent::Done(reply)) => {
            let streams = &running.services.replay_streams;
            replied(reply, is_streamed, streams, resumable_id, running.id())
        }
        Some(ResponseEvent::Message(first)) if era == Era::Modern => {
            event_stream(Body::Stream(Stream::of_request(running, &first)))
        }
        Some(ResponseEvent::Message(first)) => {
            event_stream(Body::Stream(Stream::of_call(running, Some(&first))))
        }
        None => {
            running.observation.status_sent();
            event_stream(Body::Stream(Stream::of_call(running, None)))
        }
        // A cancelled request has no answer, but its `POST` must end.
        Some(ResponseEvent::Cancelled) => accepted(),
    }
}

/// Checks that a request has a session, before its body takes memory from others.
fn check_session(
    snapshot: &ConfigSnapshot,
    head: &Parts,
    caller: &Caller,
    body: &RequestBody,
) -> Result<(), RpcError> {
    let declared = body.size_hint().exact();
    let length = declared.map_or(usize::MAX, |it| usize::try_from(it).unwrap_or(usize::MAX));
    // For a small body the check comes later, so that the answer can repeat its id.
    if memory_cost::of_message(length) == 0 || !head.headers.contains_key(SESSION_ID) {
        return Ok(());
    }
    let version = requested_version(&head.headers).ok().flatten();
    if version.is_some_and(|version| version.era() == Era::Modern) {
        return Ok(());
    }
    session_of(snapshot, &head.headers, caller)?;
    Ok(())
}

/// The body, and the lease of its memory.
pub(super) async fn read_body(
    snapshot: &ConfigSnapshot,
    head: &Parts,
    mut body: RequestBody,
) -> Result<(Bytes, Lease), Rejection> {
    let limits = &snapshot.config.limits;
    let rejection = |status, reason: String| Rejection { status, reason };
    let mut memory = snapshot.services.memory.empty_lease();
    let read = {
        let mut reading = pin!(collect(&mut body, limits.body, &mut memory));
        // Most bodies arrive with their head, and need no timer.
        match poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await {
            Poll::Ready(read) => Ok(read),
            Poll::Pending => tokio::time::timeout(limits.read_timeout, reading).await,
        }
    };
    if let Ok(Err(BodyError::TooLarge | BodyError::NoMemory)) = read {
        discard(snapshot, head, body);
    }
    match read {
        Ok(Ok(bytes)) => Ok((bytes, memory)),
        Ok(Err(BodyError::NoMemory)) => {
            let counters = &snapshot.services.counters;
            counters.increment(Counter::RefusedForMemory);
            let reason = Exhausted::REASON.to_owned();
            Err(rejection(StatusCode::SERVICE_UNAVAILABLE, reason))
        }
        Ok(Err(BodyError::TooLarge)) => Err(rejection(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the message is larger than {} bytes", limits.body),
        )),
        Ok(Err(BodyError::Broken)) => Err(rejection(
            StatusCode::BAD_REQUEST,
            "the message ended early".to_owned(),
        )),
        Err(_) => Err(rejection(
            StatusCode::REQUEST_TIMEOUT,
            format!(
                "the message did not arrive within {:?}",
                limits.read_timeout
            ),
        )),
    }
}

/// Reads the remainder of a refused body while the response is sent: many clients read only after they have written
/// everything, and would lose the response if the connection was closed before. Time and bytes are bounded.
pub(super) fn discard(snapshot: &ConfigSnapshot, head: &Parts, mut body: RequestBody) {
    // A client that waits for `100 Continue` before it sends the body (RFC 9110, section 10.1.1) does not get it.
    if head.headers.contains_key(EXPECT) {
        return;
    }
    let remainder = async move {
        let mut read = 0;
        while let Some(Ok(frame)) = body.frame().await {
            read += frame.data_ref().map_or(0, Bytes::len);
            if read > MAX_DISCARDED {
                break;
            }
        }
    };
    let shutdown = snapshot.services.shutdown.clone();
    let discarding =
        shutdown.run_until_cancelled_owned(tokio::time::timeout(DISCARD_TIMEOUT, remainder));
    snapshot.services.background_tasks.spawn(discarding);
}

/// The most bytes of a refused body that are read.
const MAX_DISCARDED: usize = 64 << 20;
/// The longest time for that.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(10);

/// The most bytes that are reserved for an announced body. The buffer grows as the body arrives.
const PREALLOCATED: usize = 1 << 20;

enum BodyError {
    TooLarge,
    NoMemory,
    Broken,
}

/// The whole body; one frame, the common case, is not copied.
async fn collect(
    body: &mut RequestBody,
    limit: usize,
    memory: &mut Lease,
) -> Result<Bytes, BodyError> {
    // The declared length is enough to refuse a body before it is sent.
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyError::TooLarge);
    }
    let mut first: Option<Bytes> = None;
    let mut whole: Option<BytesMut> = None;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else {
            continue;
        };
        let so_far = whole.as_ref().map_or(0, BytesMut::len) + first.as_ref().map_or(0, Bytes::len);
        if so_far + data.len() > limit {
            return Err(BodyError::TooLarge);
        }
        memory
            .grow_to(memory_cost::of_message(so_far + data.len()))
            .map_err(|_| BodyError::NoMemory)?;
        match (&mut whole, first.take()) {
            (Some(whole), _) => whole.extend_from_slice(&data),
            (None, None) => first = Some(data),
            (None, Some(before)) => {
                let remaining = usize::try_from(body.size_hint().lower()).unwrap_or(0);
                let length = before.len() + data.len() + remaining;
                let mut joined = BytesMut::with_capacity(length.min(limit).min(PREALLOCATED));
                joined.extend_from_slice(&before);
                joined.extend_from_slice(&data);
                whole = Some(joined);
            }
        }
    }
    Ok(whole.map(BytesMut::freeze).or(first).unwrap_or_default())
}
