//! The one way in: a message of a client, from any transport, and its outcome.
//!
//! The frontends read messages and write outcomes. In between each message takes the same steps: its params are read, a
//! request begins to be observed, its client is found, it is [admitted](Inbound::admit) to its session and then
//! [dispatched](handle_admitted) by its method.

mod client_message;
mod connection_sessions;
mod open_session;
mod sender;

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::envelope::Message;
use mcp_vary_wire::extension_methods::is_of_an_extension;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::{self, Reply, RpcError};
use mcp_vary_wire::revision::Era;

pub(crate) use self::connection_sessions::ConnectionSessions;
use self::open_session::open_session;
pub(crate) use self::sender::{
    MessageSource, Sender, find_session, follow_claims, requested_version, session_of,
};
use crate::pipeline::clients::legacy_client;
use crate::pipeline::methods::{Dispatch, forward_notification};
use crate::pipeline::request::IncomingRequest;
use crate::pipeline::router;
use crate::pipeline::snapshot::ConfigSnapshot;
use mcp_vary_observation::{AuditedRequest, Observation};
use mcp_vary_session::InFlightGuard;
use mcp_vary_session::client::Client;

/// A message of a client, as a frontend read it.
pub(crate) struct Inbound<'a, 's> {
    pub(crate) message: &'a Message<'a>,
    /// The params, if they were read with the message.
    pub(crate) params: Option<Params<'a>>,
    /// The bytes that the message was read from.
    pub(crate) body: &'a Bytes,
    pub(crate) sender: Sender<'a, 's>,
}

/// The outcome of a message.
pub(crate) enum Outcome {
    /// A notification or a response was received. It has no answer.
    Accepted,
    /// The message was refused before its dispatch. Only HTTP reports that of notifications and responses, since its
    /// `POST` has a response in any case.
    Refused(Reply),
    /// `initialize` opened a session, with an id for the header unless the connection has one client.
    SessionOpened(Reply, Option<String>),
    /// A request was dispatched. The client is named if it can resume a stream with the answer.
    Dispatched(Dispatch, Option<ClientId>),
}

/// A request, or a notification of an extension, that goes on to its method.
pub(crate) struct Admitted<'a> {
    pub(crate) client: Arc<Client>,
    /// The registration in its session; `None` for notifications and for modern HTTP.
    pub(crate) guard: Option<InFlightGuard>,
    pub(crate) request: IncomingRequest<'a>,
}

/// Handles a message from its arrival to its answer, or until a server works on it.
pub(crate) async fn handle(inbound: Inbound<'_, '_>) -> Outcome {
    let snapshot = inbound.sender.snapshot;
    match inbound.admit().await {
        Ok(Admitted {
            client,
            guard,
            request,
        }) => handle_admitted(snapshot, &client, guard, request).await,
        Err(outcome) => outcome,
    }
}

/// Dispatches what was admitted by its method.
pub(crate) async fn handle_admitted(
    snapshot: &Arc<ConfigSnapshot>,
    client: &Arc<Client>,
    guard: Option<InFlightGuard>,
    request: IncomingRequest<'_>,
) -> Outcome {
    if request.is_notification() {
        Box::pin(forward_notification(snapshot, client, request)).await;
        return Outcome::Accepted;
    }
    let mut dispatch = router::dispatch(snapshot, client, request).await;
    match &mut dispatch {
        // A client may use the id again as soon as it reads the answer.
        Dispatch::Done(_) => drop(guard),
        Dispatch::InFlight(running) => running.in_flight_guard = guard,
        Dispatch::Listen(listening) => listening.guard = guard,
    }
    Outcome::Dispatched(dispatch, client.resumable_id())
}

impl<'a> Inbound<'a, '_> {
    /// Does what has to be done in the order of arrival: observes a request, finds its client, and registers it in its
    /// session.
    ///
    /// # Errors
    ///
    /// The outcome of a message that is not dispatched.
    pub(crate) async fn admit(mut self) -> Result<Admitted<'a>, Outcome> {
        let message = self.message;
        let params = Params::of(message, self.params.take()).map_err(|refusal| {
            let counters = &self.sender.snapshot.services.counters;
            refused(
                &refusal.into_counted_error(counters),
                message.id,
                Era::Legacy,
            )
        })?;
        let decided = self.sender.era(&params);
        let era = decided.map_err(|failure| refused(&failure, message.id, Era::Modern))?;
        let mut request = IncomingRequest::new(message, params, self.body);
        request.find_client(&self.sender.snapshot.services.client_uses);
        if !message.is_request() {
            return Box::pin(self.receive(request, era)).await;
        }
        if let (MessageSource::Post(headers), Era::Modern) = (&self.sender.source, era) {
            request.headers = Some(headers);
        }
        self.sender.caller.observation = self.observe(&request, era).await?;
        let admitted = self.admit_request(request, era).await;
        if let Err(Outcome::Refused(reply) | Outcome::SessionOpened(reply, _)) = &admitted {
            self.sender.caller.observation.answered(reply);
        }
        admitted
    }

    /// Begins to observe a request.
    async fn observe(
        &self,
        request: &IncomingRequest<'_>,
        era: Era,
    ) -> Result<Observation, Outcome> {
        let caller = &*self.sender.caller;
        let snapshot = self.sender.snapshot;
        let services = &snapshot.services;
        let observers = &services.observers;
        let now = snapshot.config.environment.now;
        let principal = caller.principal.as_ref();
        let audited = AuditedRequest {
            origin: &caller.origin,
            principal,
            era,
            method: request.method,
            id: request.id,
            params: &request.params,
            client: request
                .client
                .as_ref()
                .and_then(|client| client.info.clone()),
            message: request.message,
            length: self.body.len(),
            config: snapshot.config.digest.as_ref(),
            reported: observers.feed.begin(request.method),
            person: principal.and_then(|principal| services.people.person(principal, now())),
        };
        let begun = Observation::begin(observers, audited).await;
        begun.map_err(|full| {
            let failure = RpcError::internal(full.to_string());
            Outcome::Refused(Reply {
                status: StatusCode::SERVICE_UNAVAILABLE,
                ..failure.reply(Some(request.id), era)
            })
        })
    }

    /// Finds the client of a request, and registers the request in its session.
    async fn admit_request(
        &mut self,
        request: IncomingRequest<'a>,
        era: Era,
    ) -> Result<Admitted<'a>, Outcome> {
        let id = request.id;
        let sender = &mut self.sender;
        if let MessageSource::Batch = sender.source {
            // The status is sent with the first answer of the batch.
            sender.caller.observation.status_sent();
        }
        let refuse = |failure: RpcError| match era {
            Era::Legacy => Outcome::Refused(failure.reply(Some(id), era)),
            Era::Modern => refused(&failure, Some(id), era),
        };
        if (era, request.method) == (Era::Legacy, "initialize") {
            let opened = open_session(sender, &request.params, self.message.params);
            let (result, session_id) = Box::pin(opened).await.map_err(refuse)?;
            let reply = response::result(id, result.as_bytes());
            return Err(Outcome::SessionOpened(reply, session_id));
        }
        let client = sender.client(&request, era).await.map_err(refuse)?;
        Ok(Admitted {
            guard: sender.register(&client, id).map_err(refuse)?,
            client,
            request,
        })
    }

    /// Receives a notification or a response. Only a notification of an extension goes on.
    async fn receive(
        &self,
        request: IncomingRequest<'a>,
        era: Era,
    ) -> Result<Admitted<'a>, Outcome> {
        let sender = &self.sender;
        let message = self.message;
        if let (MessageSource::Post(_), Era::Legacy, "initialize") =
            (&sender.source, era, request.method)
        {
            let failure = RpcError::invalid_request("`initialize` needs an id");
            return Err(refused(&failure, message.id, era));
        }
        let session = match era {
            Era::Legacy => sender.session().await,
            Era::Modern => Ok(None),
        };
        let session =
            session.map_err(|failure| Outcome::Refused(failure.reply(message.id, era)))?;
        // > If the server cannot accept the input, it MUST return an HTTP error status code (e.g., 400 Bad Request).
        // > The HTTP response body MAY comprise a JSON-RPC error response that has no `id`.
        // > (MCP 2025-11-25, basic/transports, "Sending Messages to the Server")
        sender
            .receive(session.as_ref(), message, &request.params)
            .map_err(|failure| refused(&failure, None, era))?;
        if !is_of_an_extension(request.method) {
            return Err(Outcome::Accepted);
        }
        let client = match (era, session) {
            (Era::Modern, _) => sender.modern_client(request.method, &request.params),
            (Era::Legacy, Some(session)) => {
                legacy_client(sender.snapshot, &session, sender.caller, &request.params)
            }
            (Era::Legacy, None) => return Err(Outcome::Accepted),
        };
        Ok(Admitted {
            // A notification of a client that cannot be served is ignored.
            client: client.map_err(|_| Outcome::Accepted)?,
            guard: None,
            request,
        })
    }
}

/// The outcome of a message that HTTP answers with the status 400.
fn refused(failure: &RpcError, id: Option<&str>, era: Era) -> Outcome {
    Outcome::Refused(bad_request(failure, id, era))
}

/// A refusal with the status 400, whatever its code.
pub(crate) fn bad_request(failure: &RpcError, id: Option<&str>, era: Era) -> Reply {
    Reply {
        status: StatusCode::BAD_REQUEST,
        ..failure.reply(id, era)
    }
}
