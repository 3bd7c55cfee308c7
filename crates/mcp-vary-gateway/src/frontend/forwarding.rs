//! Requests that need the state of another replica: which replica that is, and the way there.
//!
//! Ids that lead to the state of one process name it: those of sessions, streams, tasks and kept results, and the states of
//! calls. If that replica has ended, the heir of a session answers. What no replica answers is answered here, as without a
//! store.

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};
use mcp_vary::json::edit;
use mcp_vary_catalog::gateway_tool::GatewayTool;
use mcp_vary_http::replay::ReplayStreams;
use mcp_vary_results::result_store::ResultStore;
use mcp_vary_store::{ForwardError, ReplicaResponse, RequestHead, SessionHome, Store};
use mcp_vary_wire::envelope::Message;
use mcp_vary_wire::headers::SESSION_ID;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::{Reply, RpcError};
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::server_request_support::ServerRequestSupport;
use mcp_vary_wire::sse::EventId;
use tracing::debug;

use super::peer::ClientAddress;
use super::responses::{Body, accepted, json};
use super::stopping::Stopping;
use crate::mrtr::{self, REQUEST_STATE};
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::tasks;
use mcp_vary_session::authentication::PeerCertificate;
use mcp_vary_session::caller::Caller;

const READ_RESULT: &str = GatewayTool::ReadResult.usual_name();

/// Marks a request that another replica has forwarded. It is not forwarded again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forwarded;

/// A message that may name a replica, and its params if they could be read.
type Named<'a> = (&'a Message<'a>, Option<&'a Params<'a>>);

/// The replica that a request names, whose state it needs.
fn named_replica(head: &Parts, message: Option<Named<'_>>) -> Option<u32> {
    match message {
        Some((message, params)) => params.and_then(|params| named_by_params(message, params)),
        None => last_event_id(head).map(|id| ReplayStreams::replica_of(&id)),
    }
}

/// Whether a message decides what the stream of its session gets: both are at one replica, the home of the session.
fn is_subscription(message: &Message<'_>) -> bool {
    let method = message.method.as_deref();
    matches!(
        method,
        Some("resources/subscribe" | "resources/unsubscribe")
    )
}

/// The replica that the params name: by the state of a call, by the id of a task, or by the URI of a kept result.
fn named_by_params(message: &Message<'_>, params: &Params<'_>) -> Option<u32> {
    if let Some(state) = params.members.get(REQUEST_STATE) {
        return mrtr::replica_of(state);
    }
    let method = message.method.as_deref()?;
    if method.starts_with("tasks/")
        && let Some(id) = params.members.get("taskId")
    {
        return tasks::replica_of(id.trim_matches('"'));
    }
    if method == "subscriptions/listen" {
        // The first task decides: tasks of several replicas need a stream each.
        let ids = edit::get(params.members.get("notifications")?, "taskIds")?;
        let first = ids
            .trim_start_matches(['[', ' ', '\n', '\r', '\t'])
            .strip_prefix('"')?;
        return tasks::replica_of(first.split_once('"')?.0);
    }
    let uri = match method {
        "resources/read" => params.members.get("uri"),
        // Its name may be longer in some views. Arguments of other tools are not read.
        "tools/call" if params.members.get("name")?.contains(READ_RESULT) => {
            edit::get(params.members.get("arguments")?, "uri")
        }
        _ => None,
    };
    ResultStore::replica_of(uri?.trim_matches('"'))
}

/// The session of a request, if its home must answer, and is another replica: the request `listens`, or servers may see the
/// session as one client there, since it has connections of its own.
fn session_elsewhere(
    snapshot: &ConfigSnapshot,
    store: &Store,
    head: &Parts,
    caller: &Caller,
    message: Option<Named<'_>>,
) -> Option<SessionHome> {
    let session = caller.session.as_ref().filter(|it| !it.has_ended())?;
    let home = session.home()?;
    if store.home(home) == store.tag() {
        return None;
    }
    let listens = match message {
        Some((message, _)) => is_subscription(message),
        // What is left of a request can be read anywhere.
        None => last_event_id(head).is_none_or(|last| last.request.is_none()),
    };
    let has_connections = || {
        snapshot.pool.servers.isolates_sessions
            || ServerRequestSupport::from_capabilities(&session.negotiated.class).is_any()
    };
    (listens || has_connections()).then_some(home)
}

/// The answer of another replica, if the request needs the state of one, or its session is at home there.
///
/// # Errors
///
/// If that replica may have handled the request, or as many are forwarded as may be. If it cannot be reached, there is no
/// answer: the request is handled here.
async fn ask_owner(
    store: &Store,
    snapshot: &ConfigSnapshot,
    head: &Parts,
    caller: &Caller,
    body: &Bytes,
    message: Option<Named<'_>>,
) -> Result<Option<Response<Body>>, ForwardError> {
    let session = || session_elsewhere(snapshot, store, head, caller, message);
    if head.extensions.get::<Forwarded>().is_some() {
        if let Some(session) = session() {
            store.learn_home(session).await;
        }
        return Ok(None);
    }
    let named = named_replica(head, message);
    if named == Some(store.tag()) {
        return Ok(None);
    }
    if let Some(named) = named {
        match Box::pin(store.forward(named, &request_head(head), body)).await {
            Ok(answer) => return Ok(Some(response_of(answer))),
            Err(failure @ (ForwardError::Unanswered | ForwardError::Full)) => return Err(failure),
            Err(error) => debug!(named, %error, "request not forwarded"),
        }
    }
    let Some(session) = session() else {
        return Ok(None);
    };
    match Box::pin(store.forward_home(session, &request_head(head), body)).await {
        Ok(answer) => Ok(answer.map(response_of)),
        Err(failure @ (ForwardError::Unanswered | ForwardError::Full)) => Err(failure),
        Err(error) => {
            debug!(?session, %error, "request not forwarded");
            Ok(None)
        }
    }
}

/// The answer of the replica whose state a `POST` needs; `None` if the request is answered here, since it needs none, or
/// that replica has not got it.
pub(super) async fn answer_elsewhere(
    store: &Store,
    snapshot: &ConfigSnapshot,
    head: &Parts,
    caller: &Caller,
    body: &Bytes,
    message: Option<Named<'_>>,
) -> Option<Response<Body>> {
    match ask_owner(store, snapshot, head, caller, body, message).await {
        Ok(response) => response,
        Err(failure) => {
            let id = message.and_then(|(message, _)| message.id);
            let params = message.and_then(|(_, params)| params);
            let is_modern = params.is_some_and(Params::is_modern);
            let era = if is_modern { Era::Modern } else { Era::Legacy };
            let reply = unanswered(failure).reply(id, era);
            Some(json(match failure {
                ForwardError::Full => Reply {
                    status: StatusCode::SERVICE_UNAVAILABLE,
                    retry_after: Some(1),
                    ..reply
                },
                _ => reply,
            }))
        }
    }
}

/// The stream of the replica whose state a `GET` needs, until this one stops; `None` if the request is answered here.
pub(super) async fn listen_elsewhere(
    store: &Store,
    snapshot: &ConfigSnapshot,
    head: &Parts,
    caller: &Caller,
    stopping: &Stopping,
) -> Option<Response<Body>> {
    // A stream changes nothing: it can be opened here, whatever has happened there.
    let answered = ask_owner(store, snapshot, head, caller, &Bytes::new(), None).await;
    let response = answered.ok().flatten()?;
    let stream_stopping = stopping.clone();
    let end = async move { stream_stopping.stream_ends().await };
    Some(response.map(|body| match body {
        Body::Replica(body, _) => Body::Replica(body, Some(Box::pin(end))),
        body => body,
    }))
}

/// The answer to an accepted message. First, a cancellation of a request that does not run here is sent to the other
/// replicas.
pub(super) async fn accept(
    snapshot: &ConfigSnapshot,
    head: &Parts,
    message: &Message<'_>,
) -> Response<Body> {
    cancel_elsewhere(snapshot, head, message).await;
    accepted()
}

async fn cancel_elsewhere(snapshot: &ConfigSnapshot, head: &Parts, message: &Message<'_>) {
    if message.method.as_deref() != Some("notifications/cancelled") {
        return;
    }
    let store = snapshot.services.store.as_ref();
    let request = message
        .params
        .and_then(|params| edit::get(params, "requestId"));
    let session = head.headers.get(SESSION_ID).and_then(|id| id.to_str().ok());
    if let (Some(store), Some(request), Some(session)) = (store, request, session)
        && let Some(key) = snapshot.services.sessions.elsewhere(session, request)
    {
        store.cancel(key, request).await;
    }
}

fn request_head(head: &Parts) -> RequestHead {
    let certificate = head.extensions.get::<PeerCertificate>();
    RequestHead {
        method: head.method.clone(),
        uri: head.uri.clone(),
        headers: head.headers.clone(),
        address: ClientAddress::of(head),
        certificate: certificate.map(|certificate| certificate.subject().to_owned()),
    }
}

fn response_of(mut answer: ReplicaResponse) -> Response<Body> {
    let body = match answer.body.take_whole() {
        Some(whole) => Body::from(whole),
        None => Body::Replica(Box::new(answer.body), None),
    };
    let mut response = Response::new(body);
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    response
}

fn unanswered(failure: ForwardError) -> RpcError {
    RpcError::internal(match failure {
        ForwardError::Full => {
            "another replica has what the request needs, and too many requests are forwarded now, of all clients or of this one; \
             try again"
        }
        _ => {
            "the replica that has what the request needs does not answer; the request may have been executed"
        }
    })
}

/// The last event that a client received before it lost its connection; `None` for an id that the gateway did not
/// write.
pub(super) fn last_event_id(head: &Parts) -> Option<EventId> {
    EventId::parse(head.headers.get("last-event-id")?.to_str().ok()?)
}
