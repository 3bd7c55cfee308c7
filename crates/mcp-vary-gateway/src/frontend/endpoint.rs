//! The MCP endpoint and its three HTTP methods.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use mcp_vary_catalog::selection::variant_selection::VariantRequest;
use mcp_vary_http::ConnectionTimer;
use mcp_vary_http::replay::{ReplayReader, ResumedStream};
use mcp_vary_wire::endpoint_path::{ENDPOINT, EndpointPath};
use mcp_vary_wire::headers::SESSION_ID;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::sse::{self, EventId};

use super::authentication::{self, Authenticated};
use super::forwarding::{self, last_event_id};
use super::peer::ClientAddress;
use super::request_body::RequestBody;
use super::responses::{Body, StandaloneStream, Stream, event_stream, json, typed_response};
use super::stopping::Stopping;
use super::validation::{self, Rejection};
use super::{browser_page, peer, post, responses};
use crate::pipeline::inbound::{find_session, follow_claims, requested_version, session_of};
use crate::pipeline::snapshot::ConfigSnapshot;
use mcp_vary_observation::Observation;
use mcp_vary_session::Session;
use mcp_vary_session::caller::Caller;
use mcp_vary_session::client::understands_priming;

/// What the requests of one connection share.
#[derive(Debug)]
pub(super) struct ConnectionScope {
    /// Ends streams that only listen, so that the connection can close.
    pub(super) stopping: Stopping,
    /// For the time after which an answer becomes a stream.
    pub(super) stream_timer: ConnectionTimer,
}

/// Answers a request to the MCP endpoint.
///
/// # Errors
///
/// When the request cannot be read or accepted.
pub(super) async fn respond(
    snapshot: Arc<ConfigSnapshot>,
    head: &Parts,
    body: RequestBody,
    scope: &ConnectionScope,
) -> Result<Response<Body>, Rejection> {
    if let Some(page) = browser_page::response(&snapshot.config.listener, head) {
        return Ok(page);
    }
    let path = EndpointPath::of_request(head.uri.path()).ok_or_else(|| Rejection {
        status: StatusCode::NOT_FOUND,
        reason: format!("there is nothing here; the MCP endpoint is {ENDPOINT}"),
    })?;
    let authenticated = match authentication::authenticate(&snapshot, head, &path).await {
        Ok(authenticated) => authenticated,
        Err(response) => {
            post::discard(&snapshot, head, body);
            return Ok(response);
        }
    };
    let requested = VariantRequest::read(&path, &head.headers, &snapshot.config.selection);
    let mut caller = caller(&snapshot, head, authenticated.as_ref(), requested);
    let lifetime = authenticated.map(|authenticated| authenticated.lifetime(&snapshot));
    let is_temporary = lifetime.is_some();
    // Few requests are streams that need it.
    let stream_end = || authentication::stream_end(scope.stopping.clone(), lifetime);
    match head.method {
        Method::POST => {
            validation::check_content_type(&head.headers)?;
            validation::check_accept(&head.headers, &["application/json", "text/event-stream"])?;
            // Not the configuration, which may be replaced while a server works.
            let service = snapshot.authentication.clone();
            let response = post::answer(
                snapshot,
                head,
                &mut caller,
                body,
                &scope.stream_timer,
                stream_end,
            )
            .await?;
            Ok(authentication::challenge(service.as_ref(), &path, response))
        }
        Method::GET => {
            let stopping = &scope.stopping;
            if let Some(store) = snapshot.services.store.as_deref()
                && let Some(response) =
                    forwarding::listen_elsewhere(store, &snapshot, head, &caller, stopping).await
            {
                return Ok(response);
            }
            let mut response = open_stream(&snapshot, head, &caller, stream_end()).await?;
            if is_temporary {
                // The connection ends with the stream: a peer that only waits for that sees the end of its credential.
                let closes = HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, closes);
            }
            Ok(response)
        }
        Method::DELETE => Ok(Box::pin(end_session(&snapshot, head, &caller)).await),
        _ => Ok(not_allowed(head)),
    }
}

/// The caller of an `authenticated` request. A credential that is pinned to a variant leaves no other (SV-9).
fn caller(
    snapshot: &ConfigSnapshot,
    head: &Parts,
    authenticated: Option<&Authenticated>,
    requested: VariantRequest,
) -> Caller {
    let admission = authenticated.map(|authenticated| &authenticated.admission);
    let principal = admission.map(|admission| Arc::clone(&admission.principal));
    Caller {
        origin: peer::origin(snapshot, head, admission),
        observation: Observation::default(),
        session: find_session(snapshot, &head.headers, principal.as_ref()),
        principal,
        requested: VariantRequest {
            pin: admission.and_then(|admission| admission.pin.clone()),
            ..requested
        },
        address: ClientAddress::of(head),
    }
}

/// Opens the stream on which a legacy client receives messages that belong to none of its requests, or resumes a
/// stream.
async fn open_stream(
    snapshot: &ConfigSnapshot,
    head: &Parts,
    caller: &Caller,
    stream_end: impl Future<Output = ()> + Send + 'static,
) -> Result<Response<Body>, Rejection> {
    if speaks_modern(head) {
        return Ok(not_allowed(head));
    }
    validation::check_accept(&head.headers, &["text/event-stream"])?;
    let session = match requested_version(&head.headers)
        .and_then(|_| session_of(snapshot, &head.headers, caller))
    {
        Ok(session) => session,
        Err(failure) => return Ok(json(failure.reply(None, Era::Legacy))),
    };
    follow_claims(snapshot, session, caller).await;
    let last = last_event_id(head);
    if let Some(last) = &last {
        snapshot.services.take_over_stream(last).await;
    }
    let streams = &snapshot.services.exchange.replay_streams;
    match last
        .as_ref()
        .map(|last| streams.resume(session.client, last))
    {
        Some(ResumedStream::Ended) => Ok(not_allowed(head)),
        Some(ResumedStream::Expired(event)) => Ok(event_stream(Body::from(event))),
        Some(ResumedStream::Request(connection)) => {
            let first = sse_preamble(session, last.as_ref());
            let stream = Stream::of_replay(connection, None, Some(first));
            Ok(event_stream(Body::Stream(stream)))
        }
        Some(ResumedStream::Standalone(connection)) => {
            let first = sse_preamble(session, last.as_ref());
            let resumed = Some((connection, first));
            standalone_stream(snapshot, session, resumed, stream_end).await
        }
        Some(ResumedStream::New) | None => {
            standalone_stream(snapshot, session, None, stream_end).await
        }
    }
}

/// The stream of messages that belong to none of the client's requests: the `resumed` one with its first event, or a
/// new one.
async fn standalone_stream(
    snapshot: &ConfigSnapshot,
    session: &Arc<Session>,
    resumed: Option<(ReplayReader, Bytes)>,
    stream_end: impl Future<Output = ()> + Send + 'static,
) -> Result<Response<Body>, Rejection> {
    // The previous connection of a resumed stream may still be open.
    let limit = snapshot.config.limits.streams * (1 + usize::from(resumed.is_some()));
    let messages = session.open_stream(limit).ok_or_else(|| Rejection {
        status: StatusCode::TOO_MANY_REQUESTS,
        reason: "this session has too many open streams; close one".to_owned(),
    })?;
    let primed = understands_priming(session.negotiated.revision);
    let (resumed, replayed) = resumed.unzip();
    let first = replayed.or_else(|| (!primed).then(|| sse_preamble(session, None)));
    let streams = &snapshot.services.exchange.replay_streams;
    let connection = resumed.unwrap_or_else(|| streams.open(session.client, None, primed));
    let remaining = session.remaining(snapshot.services.exchange.now());
    let moved = session_moves(snapshot, session);
    let ended = async move {
        tokio::select! {
            () = tokio::time::sleep(remaining) => {}
            () = stream_end => {}
            () = moved => {}
        }
    };
    let source = StandaloneStream {
        messages,
        ended: Box::pin(ended),
        services: Arc::clone(&snapshot.services.exchange),
    };
    snapshot.notify_session(session).await;
    let stream = Stream::of_replay(connection, Some(source), first);
    Ok(event_stream(Body::Stream(stream)))
}

/// Ready when another replica serves a session that is at home here. Not all streams end, and come back, in one moment.
fn session_moves(
    snapshot: &ConfigSnapshot,
    session: &Session,
) -> impl Future<Output = ()> + Send + use<> {
    let store = snapshot.services.store.clone();
    let home = session.home();
    let at_home = store.filter(|store| home.is_some_and(|home| store.home(home) == store.tag()));
    let pause = Duration::from_millis(session.client % 1000);
    async move {
        match at_home {
            Some(store) => store.handed_over().await,
            None => pending().await,
        }
        tokio::time::sleep(pause).await;
    }
}

async fn end_session(snapshot: &ConfigSnapshot, head: &Parts, caller: &Caller) -> Response<Body> {
    if speaks_modern(head) {
        return not_allowed(head);
    }
    let found =
        requested_version(&head.headers).and_then(|_| session_of(snapshot, &head.headers, caller));
    let session = match found {
        Ok(session) => session,
        Err(failure) => return json(failure.reply(None, Era::Legacy)),
    };
    let id = head.headers.get(SESSION_ID).and_then(|id| id.to_str().ok());
    let ended = snapshot.services.sessions.delete(id.unwrap_or_default());
    snapshot.forget_client(session.client);
    // Before the answer, so that other replicas know it even if this one ends now.
    if let (Some(store), Some(ended)) = (&snapshot.services.store, ended) {
        store.end_session(ended).await;
    }
    typed_response(StatusCode::OK, "application/json", Body::empty())
}

/// The first event of a `GET` stream, which shows the client that it is open.
///
/// A client that resumes gets its position again: it may lose this connection, too, before the next event.
fn sse_preamble(session: &Session, last: Option<&EventId>) -> Bytes {
    let primed = understands_priming(session.negotiated.revision);
    match last {
        Some(last) if primed => sse::priming_event(&last.to_text()),
        _ => Bytes::from_static(sse::OPENING_COMMENT),
    }
}

/// Whether the request names a stateless revision, which has no sessions and no streams of theirs.
fn speaks_modern(head: &Parts) -> bool {
    let version = requested_version(&head.headers);
    version.is_ok_and(|version| version.is_some_and(|revision| revision.era() == Era::Modern))
}

fn not_allowed(head: &Parts) -> Response<Body> {
    let allowed = if speaks_modern(head) {
        "POST"
    } else {
        "POST, GET, DELETE"
    };
    responses::not_allowed(allowed)
}
