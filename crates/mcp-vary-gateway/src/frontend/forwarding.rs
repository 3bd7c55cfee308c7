//! Requests that need the state of another replica: which replica that is, the way there, and the answer to such requests
//! here.
//!
//! Ids that lead to the state of one process name it: those of sessions, streams and kept results, and the states of
//! suspended calls. If the replica that they name cannot be reached, the request is answered here, as without a store.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body::Body as _;
use mcp_vary::json::edit;
use mcp_vary_http::ConnectionTimer;
use mcp_vary_http::replay::ReplayStreams;
use mcp_vary_results::result_store::ResultStore;
use mcp_vary_store::{ForwardError, ReplicaCall, RequestHead, Responder};
use mcp_vary_wire::envelope::Message;
use mcp_vary_wire::headers::SESSION_ID;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::server_request_support::ServerRequestSupport;
use tokio_util::task::TaskTracker;
use tracing::debug;

use super::endpoint::{self, ConnectionScope, last_event_id};
use super::peer::ClientAddress;
use super::request_body::RequestBody;
use super::responses::{Body, json, rejected};
use super::stopping::Stopping;
use crate::authentication::PeerCertificate;
use crate::gateway::Gateway;
use crate::mrtr::{REQUEST_STATE, suspending_replica};
use crate::pipeline::READ_RESULT;
use crate::pipeline::inbound::session_of;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::session::caller::Caller;

/// Marks a request that another replica has forwarded. It is not forwarded again.
#[derive(Clone, Copy, Debug)]
struct Forwarded;

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
    let owner = named.or_else(|| owner_of_session(snapshot, head, caller, store.tag()))?;
    (owner != store.tag()).then_some(owner)
}

/// The replica that the params name: by the state of a suspended call, or by the URI of a kept result.
fn named_by_params(message: &Message<'_>, params: &Params<'_>) -> Option<u32> {
    if let Some(state) = params.members.get(REQUEST_STATE) {
        return suspending_replica(state);
    }
    let uri = match message.method.as_deref()? {
        "resources/read" => params.members.get("uri"),
        // Its name may be longer in some views. Arguments of other tools are not read.
        "tools/call" if params.members.get("name")?.contains(READ_RESULT) => {
            edit::get(params.members.get("arguments")?, "uri")
        }
        _ => None,
    };
    ResultStore::replica_of(uri?.trim_matches('"'))
}

/// The replica that has opened a session, if servers may see it as one client there: it has connections of its own. `own`:
/// this replica.
fn owner_of_session(
    snapshot: &ConfigSnapshot,
    head: &Parts,
    caller: &Caller,
    own: u32,
) -> Option<u32> {
    if !head.headers.contains_key(SESSION_ID) {
        return None;
    }
    let session = session_of(snapshot, &head.headers, caller).ok()?;
    let has_connections = |owner: &u32| {
        *owner == own
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

/// The requests of other replicas that are answered here.
#[derive(Debug, Default)]
pub(crate) struct ForwardedRequests {
    tasks: TaskTracker,
    /// Ends streams that only listen.
    stopping: Stopping,
}

impl ForwardedRequests {
    /// Lets requests finish, and ends streams that only listen.
    pub(super) async fn finish(&self, drain: Duration) {
        self.stopping.begin(drain);
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Gateway {
    /// Answers a request that another replica has forwarded, until nobody waits for the answer or the gateway stops. One
    /// that will stop soon refuses it: then the other replica answers.
    pub(crate) fn answer_replica(self: Arc<Self>, call: ReplicaCall) {
        if self.is_stopping() {
            return;
        }
        let (services, tasks) = (Arc::clone(&self.services), self.forwarded.tasks.clone());
        let background_tasks = services.background_tasks.clone();
        let answered = tasks.track_future(async move {
            let answered = services
                .shutdown
                .run_until_cancelled(answer_call(&self, call));
            if let Some(Err(error)) = answered.await {
                debug!(%error, "forwarded request not answered");
            }
        });
        background_tasks.spawn(answered);
    }
}

async fn answer_call(gateway: &Gateway, call: ReplicaCall) -> Result<(), ForwardError> {
    let (request, body, responder) = call.open().await?;
    let abandoned = responder.abandoned();
    let body = RequestBody::Replica(body);
    tokio::select! {
        answered = answer(gateway, request, body, responder) => answered,
        () = abandoned => Ok(()),
    }
}

async fn answer(
    gateway: &Gateway,
    request: RequestHead,
    body: RequestBody,
    mut responder: Responder,
) -> Result<(), ForwardError> {
    gateway.until_serving().await;
    let (mut head, ()) = Request::new(()).into_parts();
    (head.method, head.uri, head.headers) = (request.method, request.uri, request.headers);
    head.extensions.insert(Forwarded);
    if let Some(address) = request.address {
        head.extensions.insert(ClientAddress(address));
    }
    if let Some(subject) = request.certificate {
        let certificate = PeerCertificate::of(&subject);
        let certificate = certificate.map_err(|_| ForwardError::Unanswered)?;
        head.extensions.insert(certificate);
    }
    let scope = ConnectionScope {
        stopping: gateway.forwarded.stopping.clone(),
        stream_timer: ConnectionTimer::default(),
    };
    let response = Box::pin(endpoint::respond(gateway.current(), &head, body, &scope)).await;
    let (head, mut body) = response.unwrap_or_else(rejected).into_parts();
    if let Body::Full(bytes) = &mut body {
        let bytes = bytes.take().unwrap_or_default();
        let begun = responder.begin(head.status, &head.headers, &bytes, true);
        return begun.await;
    }
    responder
        .begin(head.status, &head.headers, &[], false)
        .await?;
    let mut body = pin!(body);
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        if let Ok(data) = frame?.into_data() {
            responder.send(data).await?;
        }
    }
    responder.end().await
}
