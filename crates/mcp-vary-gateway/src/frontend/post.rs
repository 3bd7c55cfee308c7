//! One `POST`: a message, and its answer or stream.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::envelope::{self, Message, WireError};
use mcp_vary_wire::headers::SESSION_ID;
use mcp_vary_wire::response::{Reply, RpcError};
use mcp_vary_wire::revision::Era;

use super::batch::{self, Batch};
use super::connection_timer::{ConnectionSleep, ConnectionTimer};
use super::request_body::{discard, read_body};
use super::responses::{accepted, event_stream, json};
use crate::frontend::sse_body::{Body, Stream};
use crate::frontend::validation::{self, Rejection};
use crate::pipeline::exchange::{InFlightRequest, ResponseEvent};
use crate::pipeline::inbound::{
    Inbound, MessageSource, Outcome, Sender, bad_request, handle, requested_version, session_of,
};
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::session::caller::Caller;
use crate::session::memory_cost;
use crate::session::replay::ReplayStreams;

/// Answers a `POST` whose head was validated. A stream of notifications ends with the future that `stream_end` returns.
pub(super) async fn answer<E: Future<Output = ()> + Send + 'static>(
    snapshot: Arc<ConfigSnapshot>,
    head: &Parts,
    caller: &mut Caller,
    body: Incoming,
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
        Outcome::Accepted => accepted(),
        Outcome::Refused(reply) => json(reply),
        Outcome::SessionOpened(reply, id) => with_session_id(json(reply), id),
        Outcome::Answered(reply, client) => {
            let streams = &snapshot.services.exchange.replay_streams;
            let id = message.id.unwrap_or_default();
            replied(reply, is_streamed, streams, client, id)
        }
        Outcome::InFlight(mut running) => {
            let is_late = stream_timer.wait(snapshot.config.limits.stream_after);
            // A request that its server works on no longer needs the configuration, which may be replaced.
            drop(snapshot);
            running.hold_memory(memory);
            buffer_or_stream(running, is_late, is_streamed).await
        }
        Outcome::Listening(listener, _) => {
            let stream = Stream::of_listener(listener.until(stream_end()));
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
    let stream = Stream::of_answer(streams, resumable_id, request, &reply.body);
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
    let (era, resumable_id) = (running.client().era(), running.client().resumable_id());
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
            let streams = &running.services().replay_streams;
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

/// Checks that the session of a request exists, before its body takes memory from others.
fn check_session(
    snapshot: &ConfigSnapshot,
    head: &Parts,
    caller: &Caller,
    body: &Incoming,
) -> Result<(), RpcError> {
    let length = body.size_hint().exact();
    let length = length.map_or(usize::MAX, |it| usize::try_from(it).unwrap_or(usize::MAX));
    // For a small body the check comes later, so that the answer can repeat its id.
    if memory_cost::of_message(length) == 0 || !head.headers.contains_key(SESSION_ID) {
        return Ok(());
    }
    let version = requested_version(&head.headers).ok().flatten();
    if version.is_some_and(|version| version.era() == Era::Modern) {
        return Ok(());
    }
    session_of(snapshot, &head.headers, caller).map(drop)
}
