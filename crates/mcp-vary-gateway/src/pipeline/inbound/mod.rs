//! The one way in: a message of a client, from any transport, and its outcome.
//!
//! The frontends read messages and write outcomes. In between each message takes the same steps: its params are read, a
//! request begins to be observed, its client is found, it is [admitted](admit) to its session and then
//! [dispatched](handle) by its method.

mod client_message;
mod connection_sessions;
mod http_headers;
mod open_session;
mod source;

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::envelope::Message;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::{Reply, RpcError};
use mcp_vary_wire::revision::{Era, Revision};

pub(crate) use self::connection_sessions::ConnectionSessions;
pub(crate) use self::http_headers::{follow_claims, requested_version, session_of};
use self::open_session::{OpenedSession, open_session};
pub(crate) use self::source::MessageSource;
use crate::audit::{AuditedRequest, Observation};
use crate::pipeline::clients::legacy_client;
use crate::pipeline::exchange::InFlightRequest;
use crate::pipeline::methods::{Dispatch, forward_notification, is_of_an_extension};
use crate::pipeline::request::IncomingRequest;
use crate::pipeline::router;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::session::caller::Caller;
use crate::session::client::Client;
use crate::session::{AdmissionError, InFlightGuard, Session};
use crate::subscriptions::ListenStream;

/// A message of a client, as a frontend read it.
pub(crate) struct Inbound<'a, 's> {
    pub(crate) message: &'a Message<'a>,
    /// The params, if they were read with the message.
    pub(crate) params: Option<Params<'a>>,
    /// The bytes that the message was read from, if they may be shared.
    pub(crate) body: Option<&'a Bytes>,
    /// The length of the message.
    pub(crate) length: usize,
    /// Who sent it. Its observation begins with the message.
    pub(crate) caller: &'s mut Caller,
    pub(crate) source: MessageSource<'a, 's>,
}

/// The outcome of a message.
pub(crate) enum Outcome {
    /// A notification or a response was received. It has no answer.
    Accepted,
    /// A notification or a response was refused. Only HTTP reports that, since its `POST` has a response in any case.
    NotAccepted(Reply),
    /// A request was refused before its dispatch.
    Refused(Reply),
    /// `initialize` opened a session.
    SessionOpened(OpenedSession),
    /// The gateway answered a request of this client.
    Answered {
        reply: Reply,
        client: ClientId,
        revision: Revision,
    },
    /// A server works on the request.
    InFlight(Box<InFlightRequest>),
    /// The client is notified of changes until it cancels the request or the gateway ends the stream.
    Listening(Box<ListenStream>, Option<InFlightGuard>),
}

/// A message that goes on to its method.
pub(crate) enum Admitted<'a> {
    Request {
        client: Client,
        /// The registration in its session; `None` for modern HTTP.
        guard: Option<InFlightGuard>,
        request: IncomingRequest<'a>,
    },
    /// A notification of an extension.
    Notification {
        client: Client,
        method: &'a str,
        params: Params<'a>,
    },
}

/// Handles a message from its arrival to its answer, or until a server works on it.
pub(crate) async fn handle(snapshot: &Arc<ConfigSnapshot>, inbound: Inbound<'_, '_>) -> Outcome {
    match admit(snapshot, inbound).await {
        Ok(Admitted::Request {
            client,
            guard,
            request,
        }) => dispatch(snapshot, &client, guard, request).await,
        Ok(Admitted::Notification {
            client,
            method,
            params,
        }) => {
            Box::pin(forward_notification(snapshot, &client, method, params)).await;
            Outcome::Accepted
        }
        Err(outcome) => outcome,
    }
}

/// Dispatches an admitted request by its method.
pub(crate) async fn dispatch(
    snapshot: &Arc<ConfigSnapshot>,
    client: &Client,
    guard: Option<InFlightGuard>,
    request: IncomingRequest<'_>,
) -> Outcome {
    match router::dispatch(snapshot, client, request).await {
        // The guard is dropped: a client may use the id again as soon as it reads the answer.
        Dispatch::Done(reply) => Outcome::Answered {
            reply,
            client: client.id,
            revision: client.revision,
        },
        Dispatch::InFlight(mut running) => {
            running.hold_guard(guard);
            Outcome::InFlight(running)
        }
        Dispatch::Listen(listener) => Outcome::Listening(listener, guard),
    }
}

/// Does what has to be done in the order of arrival: observes a request, finds its client, and registers it in its session.
///
/// # Errors
///
/// The outcome of a message that has one already.
pub(crate) async fn admit<'a>(
    snapshot: &Arc<ConfigSnapshot>,
    inbound: Inbound<'a, '_>,
) -> Result<Admitted<'a>, Outcome> {
    let Inbound {
        message,
        params,
        body,
        length,
        caller,
        mut source,
    } = inbound;
    let params = Params::of(message, params).map_err(|refusal| {
        let failure = refusal.into_counted_error(&snapshot.services.counters);
        unreadable(message, &failure, Era::Legacy)
    })?;
    let era = source
        .era(&params)
        .map_err(|failure| unreadable(message, &failure, Era::Modern))?;
    let (Some(method), Some(id)) = (message.method.as_deref(), message.id) else {
        return Box::pin(receive(snapshot, message, params, era, caller, &source)).await;
    };
    let request = IncomingRequest {
        id,
        method,
        params,
        headers: source.headers().filter(|_| era == Era::Modern),
        message: body,
    };
    caller.observation = observe(snapshot, caller, &request, era, length).await?;
    if let MessageSource::Batch(_) = source {
        // The status is sent with the first answer of the batch.
        caller.observation.status_sent();
    }
    let admitted = match method {
        "initialize" if era == Era::Legacy => {
            let opened = Box::pin(open_session(
                snapshot,
                &request,
                message.params,
                caller,
                &mut source,
            ));
            Err(match opened.await {
                Ok(opened) => Outcome::SessionOpened(opened),
                Err(failure) => Outcome::Refused(failure.reply(Some(id), era)),
            })
        }
        _ => admit_request(snapshot, request, era, caller, &mut source).await,
    };
    if let Err(Outcome::Refused(reply) | Outcome::SessionOpened(OpenedSession { reply, .. })) =
        &admitted
    {
        caller.observation.answered(reply);
    }
    admitted
}

/// Begins to observe a request.
async fn observe(
    snapshot: &ConfigSnapshot,
    caller: &Caller,
    request: &IncomingRequest<'_>,
    era: Era,
    length: usize,
) -> Result<Observation, Outcome> {
    let audited = AuditedRequest {
        origin: &caller.origin,
        principal: caller.principal.as_ref(),
        era,
        method: request.method,
        id: request.id,
        params: &request.params,
        message: request.message,
        length,
        config: snapshot.config.digest.as_ref(),
    };
    let begun = Observation::begin(snapshot.services.audit.as_ref(), &audited).await;
    begun.map_err(|full| {
        let failure = RpcError::internal(full.to_string());
        Outcome::Refused(Reply {
            status: StatusCode::SERVICE_UNAVAILABLE,
            ..failure.reply(Some(request.id), era)
        })
    })
}

/// Finds the client of a request, and registers the request in its session.
async fn admit_request<'a>(
    snapshot: &ConfigSnapshot,
    request: IncomingRequest<'a>,
    era: Era,
    caller: &Caller,
    source: &mut MessageSource<'a, '_>,
) -> Result<Admitted<'a>, Outcome> {
    let client = source.client(snapshot, caller, &request, era).await;
    let client = client.map_err(|failure| {
        Outcome::Refused(match era {
            Era::Legacy => failure.reply(Some(request.id), era),
            Era::Modern => bad_request(&failure, Some(request.id), era),
        })
    })?;
    let session = source.in_flight_session(&client);
    let guard = session.map(|session| register(snapshot, session, request.id));
    Ok(Admitted::Request {
        guard: guard.transpose()?,
        client,
        request,
    })
}

/// Registers a request in its session.
fn register(
    snapshot: &ConfigSnapshot,
    session: &Arc<Session>,
    id: &str,
) -> Result<InFlightGuard, Outcome> {
    let guard = session.begin(id, snapshot.config.limits.in_flight);
    guard.map_err(|refusal| {
        let why = match refusal {
            AdmissionError::IdInUse => "the id belongs to a request that is not answered yet",
            AdmissionError::TooMany => {
                "too many requests of this session are in flight; wait for answers"
            }
        };
        Outcome::Refused(RpcError::invalid_request(why).reply(Some(id), Era::Legacy))
    })
}

/// Receives a notification or a response. Only a notification of an extension goes on.
async fn receive<'a>(
    snapshot: &ConfigSnapshot,
    message: &'a Message<'a>,
    params: Params<'a>,
    era: Era,
    caller: &Caller,
    source: &MessageSource<'a, '_>,
) -> Result<Admitted<'a>, Outcome> {
    let method = message.method.as_deref();
    if let (MessageSource::Post(_), Era::Legacy, Some("initialize")) = (source, era, method) {
        let failure = RpcError::invalid_request("`initialize` needs an id");
        return Err(unreadable(message, &failure, era));
    }
    let session = match era {
        Era::Legacy => source.session(snapshot, caller).await,
        Era::Modern => Ok(None),
    };
    let session =
        session.map_err(|failure| Outcome::NotAccepted(failure.reply(message.id, era)))?;
    // > If the server cannot accept the input, it MUST return an HTTP error status code (e.g., 400 Bad Request).
    // > The HTTP response body MAY comprise a JSON-RPC error response that has no `id`.
    // > (MCP 2025-11-25, basic/transports, "Sending Messages to the Server")
    source
        .receive(snapshot, session.as_ref(), message, &params)
        .map_err(|failure| Outcome::NotAccepted(bad_request(&failure, None, era)))?;
    let Some(method) = method.filter(|method| is_of_an_extension(method)) else {
        return Err(Outcome::Accepted);
    };
    let client = match (era, session) {
        (Era::Modern, _) => source.modern_client(snapshot, caller, method, &params),
        (Era::Legacy, Some(session)) => legacy_client(snapshot, &session, caller, &params),
        (Era::Legacy, None) => return Err(Outcome::Accepted),
    };
    // A notification of a client that cannot be served is ignored.
    let client = client.map_err(|_| Outcome::Accepted)?;
    Ok(Admitted::Notification {
        client,
        method,
        params,
    })
}

/// The outcome of a message that cannot be read.
fn unreadable(message: &Message<'_>, failure: &RpcError, era: Era) -> Outcome {
    let reply = bad_request(failure, message.id, era);
    match message.id {
        Some(_) => Outcome::Refused(reply),
        None => Outcome::NotAccepted(reply),
    }
}

fn bad_request(failure: &RpcError, id: Option<&str>, era: Era) -> Reply {
    Reply {
        status: StatusCode::BAD_REQUEST,
        ..failure.reply(id, era)
    }
}
