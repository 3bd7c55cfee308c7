//! One `POST`: a message, and its answer or stream.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use mcp_vary::feature::Features;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::counters::Counter;
use mcp_vary_wire::envelope::{self, Message};
use mcp_vary_wire::headers::{self, SESSION_ID, VERSION};
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::{self, Reply, RpcError};
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::revision::Revision;

use super::batch;
use super::connection_timer::{ConnectionSleep, ConnectionTimer};
use super::recording::{ReceivedRequest, recorded};
use super::request_body::{discard, read_body};
use super::responses::{accepted, event_stream, json};
use super::session_header::{follow_claims, session_of};
use super::{admit, receive_client_message};
use crate::frontend::sse_body::{Body, Stream, understands_priming};
use crate::frontend::validation::{self, Rejection};
use crate::pipeline::clients::{legacy_client, modern_client, wait_for_servers};
use crate::pipeline::exchange::{InFlightRequest, ResponseEvent};
use crate::pipeline::methods::Dispatch;
use crate::pipeline::methods::initialize::initialize;
use crate::pipeline::methods::{forward_notification, is_of_an_extension};
use crate::pipeline::request::IncomingRequest;
use crate::pipeline::router::dispatch;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::session::InFlightGuard;
use crate::session::caller::Caller;
use crate::session::client::{Client, check_version, modern_version};
use crate::session::memory_cost;
use crate::session::replay::ReplayStreams;
use crate::subscriptions::ListenStream;

/// Answers a `POST` whose head was validated. A stream of notifications ends with the future that `stream_end` returns.
pub(super) async fn answer<E: Future<Output = ()> + Send + 'static>(
    gateway: Arc<ConfigSnapshot>,
    head: &Parts,
    caller: &Caller,
    body: Incoming,
    stream_timer: &ConnectionTimer,
    stream_end: impl FnOnce() -> E,
) -> Result<Response<Body>, Rejection> {
    if let Err(failure) = check_session(&gateway, head, caller, &body) {
        discard(&gateway, head, body);
        return Ok(json(failure.reply(None, Era::Legacy)));
    }
    let (bytes, memory) = read_body(&gateway, head, body).await?;
    if let Some(messages) = envelope::batch(&bytes) {
        return Ok(Box::pin(batch::answer(gateway, head, caller, messages, memory)).await);
    }
    let (message, params) = match Message::read_with_params(&bytes) {
        Ok(read) => read,
        Err(why) => {
            let reply = RpcError::from(&why).reply(why.id.as_deref(), Era::Legacy);
            return Ok(json(Reply {
                status: StatusCode::BAD_REQUEST,
                ..reply
            }));
        }
    };
    let begun = dispatch_message(&gateway, head, caller, (&bytes, &message), params).await;
    let patience = gateway.config.limits.stream_after;
    let is_streamed = validation::prefers_stream(&head.headers);
    Ok(match begun {
        Ok(Dispatched::Answered(response)) => response,
        Ok(Dispatched::Replied(reply, resuming)) => {
            let id = message.id.unwrap_or_default();
            let streams = &gateway.services.exchange.replay_streams;
            let resumable = resuming.map(|client| (streams, client, id));
            replied(reply, is_streamed, resumable)
        }
        Ok(Dispatched::Running(mut running)) => {
            // A request that its server works on no longer needs the configuration, which may be replaced.
            drop(gateway);
            running.hold_memory(memory);
            let late = stream_timer.wait(patience);
            buffer_or_stream(running, late, is_streamed).await
        }
        Ok(Dispatched::Listening(listener)) => {
            let listener = listener.until(stream_end());
            event_stream(Body::Stream(Stream::of_listener(listener)))
        }
        Err(reply) => json(reply),
    })
}

/// A message after its dispatch.
enum Dispatched {
    Answered(Response<Body>),
    /// The answer, and the client if it can resume streams that begin with a priming event.
    Replied(Reply, Option<ClientId>),
    /// The server works on it.
    Running(Box<InFlightRequest>),
    /// A stream of notifications.
    Listening(Box<ListenStream>),
}

async fn dispatch_message(
    gateway: &Arc<ConfigSnapshot>,
    head: &Parts,
    caller: &Caller,
    (body, message): (&Bytes, &Message<'_>),
    params: Option<Params<'_>>,
) -> Result<Dispatched, Reply> {
    let bad = |failure: RpcError, era| Reply {
        status: StatusCode::BAD_REQUEST,
        ..failure.reply(message.id, era)
    };
    let params = Params::of(message, params).map_err(|refusal| {
        let failure = refusal.into_counted_error(&gateway.services.counters);
        bad(failure, Era::Legacy)
    })?;
    let era = match params.is_modern() {
        // The revision in the body is compared with the header later.
        true => Era::Modern,
        false => requested_version(&head.headers)
            .map_err(|failure| bad(failure, Era::Modern))?
            .map_or(Era::Legacy, Revision::era),
    };
    let received = ReceivedRequest {
        era,
        message,
        params: &params,
        bytes: Some(body),
        length: body.len(),
    };
    let caller = &*recorded(gateway, caller, &received).await?;
    let dispatched = match era {
        Era::Modern => modern(gateway, head, caller, (body, message), params).await,
        Era::Legacy if message.method.as_deref() == Some("initialize") => {
            let id = message.id.ok_or_else(|| {
                bad(
                    RpcError::invalid_request("`initialize` needs an id"),
                    Era::Legacy,
                )
            })?;
            Box::pin(open_session(gateway, id, caller, &params)).await
        }
        Era::Legacy => legacy(gateway, head, caller, message, params).await,
    };
    if let (Err(reply), Some(record)) = (&dispatched, &caller.record) {
        record.finish(reply);
    }
    dispatched
}

/// The revision in the version header, if there is one.
///
/// > If the server receives a request with an invalid or unsupported `MCP-Protocol-Version`, it MUST
/// > respond with `400 Bad Request`. (MCP 2025-11-25, basic/transports, "Protocol Version Header")
pub(crate) fn requested_version(headers: &HeaderMap) -> Result<Option<Revision>, RpcError> {
    let Some(version) = headers.get(VERSION) else {
        return Ok(None);
    };
    let version = String::from_utf8_lossy(version.as_bytes());
    Revision::parse(&version)
        .map(Some)
        .ok_or_else(|| RpcError::unsupported_version(&version))
}

async fn open_session(
    gateway: &Arc<ConfigSnapshot>,
    id: &str,
    caller: &Caller,
    params: &Params<'_>,
) -> Result<Dispatched, Reply> {
    let (fixed, result) = initialize(gateway, caller, params)
        .await
        .map_err(|failure| failure.reply(Some(id), Era::Legacy))?;
    let lifetime = gateway.config.session_lifetime;
    let count = |features: Option<&Features>| features.map_or(0, |it| it.tags().len());
    let declared = count(fixed.features.as_deref());
    let (session_id, session) = gateway.services.sessions.open(fixed, lifetime);
    session.remember_principal(caller.principal.as_ref());
    let dropped = declared.saturating_sub(count(session.negotiated.features.as_deref()));
    if dropped > 0 {
        let services = &gateway.services;
        services.counters.add(Counter::DroppedTags, dropped as u64);
        services.ignored_declarations.tags_dropped(dropped);
    }
    let reply = response::result(id, result.as_bytes());
    if let Some(record) = &caller.record {
        record.set_session(&session_id);
        record.use_variant(Some(session.client), || None);
        record.finish(&reply);
    }
    let mut response = json(reply);
    if let Ok(value) = HeaderValue::try_from(session_id) {
        response.headers_mut().insert(SESSION_ID, value);
    }
    Ok(Dispatched::Answered(response))
}

async fn legacy(
    gateway: &Arc<ConfigSnapshot>,
    head: &Parts,
    caller: &Caller,
    message: &Message<'_>,
    params: Params<'_>,
) -> Result<Dispatched, Reply> {
    let session = &session_of(gateway, head, caller)
        .map_err(|failure| failure.reply(message.id, Era::Legacy))?;
    follow_claims(gateway, session, caller).await;
    let (Some(method), Some(id)) = (message.method.as_deref(), message.id) else {
        // > If the server cannot accept the input, it MUST return an HTTP error status code (e.g., 400 Bad Request).
        // > The HTTP response body MAY comprise a JSON-RPC error response that has no `id`.
        // > (MCP 2025-11-25, basic/transports, "Sending Messages to the Server")
        receive_client_message(gateway, session, message, &params).map_err(|failure| Reply {
            status: StatusCode::BAD_REQUEST,
            ..failure.reply(None, Era::Legacy)
        })?;
        if let Some(method) = message
            .method
            .as_deref()
            .filter(|it| is_of_an_extension(it))
            && let Ok(client) = legacy_client(gateway, session, caller, &params)
        {
            Box::pin(forward_notification(gateway, &client, method, params)).await;
        }
        return Ok(Dispatched::Answered(accepted()));
    };
    let place = admit(gateway, session, id)?;
    let client = legacy_client(gateway, session, caller, &params)
        .map_err(|failure| failure.reply(Some(id), Era::Legacy))?;
    let asked = IncomingRequest {
        id,
        method,
        params,
        headers: None,
        message: None,
    };
    let outcome = dispatch(gateway, &client, asked).await;
    Ok(dispatched(outcome, Some(place), resume_stream(&client)))
}

async fn modern(
    gateway: &Arc<ConfigSnapshot>,
    head: &Parts,
    caller: &Caller,
    (body, message): (&Bytes, &Message<'_>),
    params: Params<'_>,
) -> Result<Dispatched, Reply> {
    let (Some(method), Some(id)) = (message.method.as_deref(), message.id) else {
        if let Some(method) = message
            .method
            .as_deref()
            .filter(|it| is_of_an_extension(it))
            && let Ok(client) = modern_client(gateway, method, caller, &params)
        {
            Box::pin(forward_notification(gateway, &client, method, params)).await;
        }
        return Ok(Dispatched::Answered(accepted()));
    };
    let bad = |failure: RpcError| Reply {
        status: StatusCode::BAD_REQUEST,
        ..failure.reply(Some(id), Era::Modern)
    };
    check_modern(&head.headers, method, &params).map_err(bad)?;
    wait_for_servers(gateway, method, caller, &params).await;
    let client = modern_client(gateway, method, caller, &params).map_err(bad)?;
    let asked = IncomingRequest {
        id,
        method,
        params,
        headers: Some(&head.headers),
        message: Some(body),
    };
    let outcome = dispatch(gateway, &client, asked).await;
    Ok(dispatched(outcome, None, None))
}

/// Compares the headers of a modern request with its body.
fn check_modern(headers: &HeaderMap, method: &str, params: &Params<'_>) -> Result<(), RpcError> {
    let named = headers::name_key(method).and_then(|key| params.members.get_text(key));
    let version = headers
        .get(VERSION)
        .ok_or_else(|| RpcError::header_mismatch("MCP-Protocol-Version header is missing"))?;
    let in_body = modern_version(params)?;
    if version.as_bytes() != in_body.as_bytes() {
        return Err(RpcError::header_mismatch(
            "MCP-Protocol-Version header value does not match the body",
        ));
    }
    check_version(&in_body)?;
    headers::check_standard(headers, method, named.as_deref())
}

fn dispatched(
    outcome: Dispatch,
    place: Option<InFlightGuard>,
    resuming: Option<ClientId>,
) -> Dispatched {
    match (outcome, place) {
        (Dispatch::Done(reply), _) => Dispatched::Replied(reply, resuming),
        (Dispatch::InFlight(mut running), Some(place)) => {
            running.hold_guard(place);
            Dispatched::Running(running)
        }
        (Dispatch::InFlight(running), None) => Dispatched::Running(running),
        (Dispatch::Listen(listener), _) => Dispatched::Listening(listener),
    }
}

/// The client, if it can resume streams that begin with a priming event.
fn resume_stream(client: &Client) -> Option<ClientId> {
    let revision = client.revision;
    let is_primed = understands_priming(revision) && revision.era() == Era::Legacy;
    is_primed.then_some(client.id)
}

/// The answer in the form that the client prefers. `resumable` is the client that can resume a stream, and the id of its
/// request. An answer with another status than 200 is always JSON.
fn replied(
    reply: Reply,
    is_streamed: bool,
    resumable: Option<(&ReplayStreams, ClientId, &str)>,
) -> Response<Body> {
    if !is_streamed || reply.status != StatusCode::OK {
        return json(reply);
    }
    let stream = match resumable {
        Some((streams, client, id)) => {
            Stream::of_resumable_answer(streams, client, id, &reply.body)
        }
        None => Stream::of_answer(&reply.body),
    };
    event_stream(Body::Stream(stream))
}

/// The first message decides: an answer is sent as JSON unless the client prefers a stream, anything else opens a stream.
///
/// For clients that can resume streams, an answer that is `late` opens one, too: a client that waits for JSON gets no keep-alives,
/// and cannot resume when its connection is lost.
async fn buffer_or_stream(
    mut running: Box<InFlightRequest>,
    late: ConnectionSleep,
    is_streamed: bool,
) -> Response<Body> {
    let revision = running.client().revision;
    let resuming = resume_stream(running.client());
    let first = match resuming {
        Some(_) => tokio::select! {
            biased;
            first = running.next() => Some(first),
            () = late => None,
        },
        None => Some(running.next().await),
    };
    match first {
        Some(ResponseEvent::Done(reply)) => {
            let streams = &running.services().replay_streams;
            let resumable = resuming.map(|client| (streams, client, running.id()));
            replied(reply, is_streamed, resumable)
        }
        Some(ResponseEvent::Message(first)) if revision.era() == Era::Modern => {
            event_stream(Body::Stream(Stream::of_request(running, &first)))
        }
        Some(ResponseEvent::Message(first)) => {
            event_stream(Body::Stream(Stream::of_call(running, Some(&first))))
        }
        None => {
            if let Some(record) = &running.client().record {
                record.status_sent();
            }
            event_stream(Body::Stream(Stream::of_call(running, None)))
        }
        // A cancelled request has no answer, but its `POST` must end.
        Some(ResponseEvent::Cancelled) => accepted(),
    }
}

/// Checks that the session of a request exists, before its body takes memory from others.
fn check_session(
    gateway: &ConfigSnapshot,
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
    session_of(gateway, head, caller).map(drop)
}
