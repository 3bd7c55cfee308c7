//! Requests that need the state of another replica: which replica that is, and the way there.
//!
//! Ids that lead to the state of one process name it: those of sessions, streams, tasks and kept results, and the states of
//! calls. If the replica that they name cannot be reached, the request is answered here, as without a store.

use bytes::Bytes;
use http::Response;
use http::request::Parts;
use mcp_vary::json::edit;
use mcp_vary_http::replay::ReplayStreams;
use mcp_vary_results::result_store::ResultStore;
use mcp_vary_store::{ForwardError, RequestHead};
use mcp_vary_wire::envelope::Message;
use mcp_vary_wire::headers::SESSION_ID;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::server_request_support::ServerRequestSupport;
use mcp_vary_wire::sse::EventId;
use tracing::debug;

use super::peer::ClientAddress;
use super::responses::{Body, accepted, json};
use super::stopping::Stopping;
use crate::mrtr::{self, REQUEST_STATE};
use crate::pipeline::READ_RESULT;
use crate::pipeline::inbound::session_of;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::tasks;
use mcp_vary_session::authentication::PeerCertificate;
use mcp_vary_session::caller::Caller;

/// Marks a request that another replica has forwarded. It is not forwarded again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forwarded;

/// A message that may name a replica, and its params if they could be read.
type Named<'a> = (&'a Message<'a>, Option<&'a Params<'a>>);

/// The replica whose state a request needs; `None` if it is this one, or any.
fn owner(
    snapshot: &ConfigSnapshot,
    head: &Parts,
    caller: &Caller,
    message: Option<Named<'_>>,
) -> Option<u32> {
    let store = snapshot.services.store.as_ref()?;
    if head.extensions.get::<Forwarded>().is_some() {
        return None;
    }
    let named = match message {
        Some((message, params)) => params.and_then(|params| named_by_params(message, params)),
        None => last_event_id(head).map(|id| ReplayStreams::replica_of(&id)),
    };
    let listens = message.is_none_or(|(message, _)| is_subscription(message));
    let of_session = || owner_of_session(snapshot, head, caller, (store.tag(), listens));
    let owner = named.or_else(of_session)?;
    (owner != store.tag()).then_some(owner)
}

/// Whether a message decides what the stream of its session gets: both are at one replica, the one that has opened the
/// session.
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

/// The replica that has opened a session, if the request `listens`, or if servers may see the session as one client there: it
/// has connections of its own. `this`: the tag of this replica.
fn owner_of_session(
    snapshot: &ConfigSnapshot,
    head: &Parts,
    caller: &Caller,
    (this, listens): (u32, bool),
) -> Option<u32> {
    if !head.headers.contains_key(SESSION_ID) {
        return None;
    }
    let session = session_of(snapshot, &head.headers, caller).ok()?;
    let has_connections = |owner: &u32| {
        *owner == this
            || listens
            || snapshot.pool.servers.isolate_sessions()
            || ServerRequestSupport::from_capabilities(&session.negotiated.class).is_any()
    };
    Some(session.replica()).filter(has_connections)
}

/// The answer of the replica whose state a `POST` needs; `None` if the request is answered here, since it needs none, or
/// that replica has not got it.
pub(super) async fn answer_elsewhere(
    snapshot: &ConfigSnapshot,
    head: &Parts,
    caller: &Caller,
    body: &Bytes,
    message: Option<Named<'_>>,
) -> Option<Response<Body>> {
    let owner = owner(snapshot, head, caller, message)?;
    match ask(snapshot, head, body, owner).await {
        Ok(response) => Some(response),
        Err(ForwardError::NotSent) => None,
        Err(ForwardError::Unanswered) => {
            let id = message.and_then(|(message, _)| message.id);
            let params = message.and_then(|(_, params)| params);
            let is_modern = params.is_some_and(Params::is_modern);
            let era = if is_modern { Era::Modern } else { Era::Legacy };
            Some(json(unanswered().reply(id, era)))
        }
    }
}

/// The stream of the replica whose state a `GET` needs, until this one stops; `None` if the request is answered here.
pub(super) async fn listen_elsewhere(
    snapshot: &ConfigSnapshot,
    head: &Parts,
    caller: &Caller,
    stopping: &Stopping,
) -> Option<Response<Body>> {
    let owner = owner(snapshot, head, caller, None)?;
    // A stream changes nothing: it can be opened here, whatever has happened there.
    let response = ask(snapshot, head, &Bytes::new(), owner).await.ok()?;
    let stopping = stopping.clone();
    let end = async move { stopping.stream_ends().await };
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
    if message.method.as_deref() != Some("notifications/cancelled")
        || head.extensions.get::<Forwarded>().is_some()
    {
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

async fn ask(
    snapshot: &ConfigSnapshot,
    head: &Parts,
    body: &Bytes,
    owner: u32,
) -> Result<Response<Body>, ForwardError> {
    let store = snapshot.services.store.as_ref();
    let store = store.ok_or(ForwardError::NotSent)?;
    let certificate = head.extensions.get::<PeerCertificate>();
    let request = RequestHead {
        method: head.method.clone(),
        uri: head.uri.clone(),
        headers: head.headers.clone(),
        address: ClientAddress::of(head),
        certificate: certificate.map(|it| it.subject().to_owned()),
    };
    let answer = Box::pin(store.forward(owner, &request, body)).await;
    let mut answer = answer.inspect_err(|error| debug!(owner, %error, "request not forwarded"))?;
    let body = match answer.body.take_whole() {
        Some(whole) => Body::from(whole),
        None => Body::Replica(Box::new(answer.body), None),
    };
    let mut response = Response::new(body);
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    Ok(response)
}

fn unanswered() -> RpcError {
    RpcError::internal(
        "the replica that has what the request needs does not answer; the request may have been executed",
    )
}

/// The last event that a client received before it lost its connection; `None` for an id that the gateway did not
/// write.
pub(super) fn last_event_id(head: &Parts) -> Option<EventId> {
    EventId::parse(head.headers.get("last-event-id")?.to_str().ok()?)
}
