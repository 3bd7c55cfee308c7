//! Who sent a message, and what its transport says about the client: the headers of HTTP name the revision and the session.

use super::client_message::receive_client_message;
use super::connection_sessions::ConnectionSessions;
use crate::pipeline::clients::{legacy_client, modern_client};
use crate::pipeline::request::IncomingRequest;
use crate::pipeline::snapshot::ConfigSnapshot;
use http::HeaderMap;
use mcp_vary_access::Principal;
use mcp_vary_session::caller::Caller;
use mcp_vary_session::client::{Client, check_version, modern_version};
use mcp_vary_session::{AdmissionError, InFlightGuard, Session};
use mcp_vary_wire::envelope::Message;
use mcp_vary_wire::headers::{self, SESSION_ID, VERSION};
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::{Era, Revision};
use std::sync::Arc;

/// Who sent a message, under one configuration.
pub(crate) struct Sender<'a, 's> {
    pub(crate) snapshot: &'s Arc<ConfigSnapshot>,
    /// Its observation is that of the message.
    pub(crate) caller: &'s mut Caller,
    pub(crate) source: MessageSource<'a, 's>,
}

/// Where a message was read.
pub(crate) enum MessageSource<'a, 's> {
    /// The body of a `POST` with these headers.
    Post(&'a HeaderMap),
    /// An element of a batch in the session of its caller.
    Batch,
    /// A line of a connection that has one client.
    Connection(&'s mut ConnectionSessions),
}

impl Sender<'_, '_> {
    /// The era of a message with these `params`.
    ///
    /// # Errors
    ///
    /// When the version header names no revision.
    pub(super) fn era(&self, params: &Params<'_>) -> Result<Era, RpcError> {
        match self.source {
            // Batches exist in a legacy revision only.
            MessageSource::Batch => Ok(Era::Legacy),
            // The revision in the body is compared with the header later.
            _ if params.is_modern() => Ok(Era::Modern),
            MessageSource::Post(headers) => {
                Ok(requested_version(headers)?.map_or(Era::Legacy, Revision::era))
            }
            MessageSource::Connection(_) => Ok(Era::Legacy),
        }
    }

    /// The client of a request.
    ///
    /// # Errors
    ///
    /// When its session does not exist, its headers contradict its body, or it does not declare what it must.
    pub(super) async fn client(
        &mut self,
        request: &IncomingRequest<'_>,
        era: Era,
    ) -> Result<Arc<Client>, RpcError> {
        let method = request.method;
        let params = &request.params;
        if era == Era::Modern {
            if let MessageSource::Post(headers) = self.source {
                check_modern(headers, method, params)?;
            }
            return self.modern_client(method, params);
        }
        match (self.current_session().await?, &self.source) {
            (Some(session), _) => legacy_client(self.snapshot, &session, self.caller, params),
            (None, MessageSource::Connection(sessions)) if method == "ping" => {
                let modern = sessions.modern();
                let mut client = legacy_client(self.snapshot, modern, self.caller, params)?;
                Arc::make_mut(&mut client).revision = Revision::LATEST_LEGACY;
                Ok(client)
            }
            (None, _) => Err(RpcError::invalid_params(
                "send `initialize` first, or name the protocol version and the client's capabilities in `_meta`",
            )),
        }
    }

    /// The client of a modern message.
    pub(super) fn modern_client(
        &self,
        method: &str,
        params: &Params<'_>,
    ) -> Result<Arc<Client>, RpcError> {
        let mut client = modern_client(self.snapshot, method, self.caller, params)?;
        if let MessageSource::Connection(sessions) = &self.source {
            let client = Arc::make_mut(&mut client);
            client.id = sessions.modern().client;
            client.connection = Some(client.id);
        }
        Ok(client)
    }

    /// The legacy session for a request or batch; `None` before `initialize`.
    ///
    /// # Errors
    ///
    /// When the header names none, or when one of its variants was removed.
    pub(crate) async fn current_session(&mut self) -> Result<Option<Arc<Session>>, RpcError> {
        if let MessageSource::Connection(sessions) = &mut self.source {
            Box::pin(sessions.renegotiate(self.snapshot)).await?;
        }
        self.session().await
    }

    /// The legacy session; `None` before `initialize`.
    pub(super) async fn session(&self) -> Result<Option<Arc<Session>>, RpcError> {
        Ok(match &self.source {
            MessageSource::Post(headers) => {
                let session = session_of(self.snapshot, headers, self.caller)?;
                follow_claims(self.snapshot, session, self.caller).await;
                Some(Arc::clone(session))
            }
            MessageSource::Batch => self.caller.session.clone(),
            MessageSource::Connection(sessions) => sessions.legacy().cloned(),
        })
    }

    /// Registers a request of `client` in its session, by which it can be cancelled. `None` for modern HTTP, where a
    /// client cancels by disconnecting.
    pub(super) fn register(
        &self,
        client: &Client,
        id: &str,
    ) -> Result<Option<InFlightGuard>, RpcError> {
        let session = match &self.source {
            MessageSource::Connection(sessions) if client.session.is_none() => sessions.modern(),
            _ => match &client.session {
                Some(session) => session,
                None => return Ok(None),
            },
        };
        let guard = session.begin(id, self.snapshot.config.limits.in_flight);
        guard.map(Some).map_err(|refusal| {
            RpcError::invalid_request(match refusal {
                AdmissionError::IdInUse => "the id belongs to a request that is not answered yet",
                AdmissionError::TooMany => {
                    "too many requests of this session are in flight; wait for answers"
                }
            })
        })
    }

    /// Handles a notification or a response in each session that it may belong to.
    ///
    /// # Errors
    ///
    /// When a response answers no request of the gateway.
    pub(super) fn receive(
        &self,
        session: Option<&Arc<Session>>,
        message: &Message<'_>,
        params: &Params<'_>,
    ) -> Result<(), RpcError> {
        let receive =
            |session: &Session| receive_client_message(self.snapshot, session, message, params);
        match &self.source {
            MessageSource::Connection(sessions) => {
                // A response is for one of them.
                sessions.all().for_each(|session| drop(receive(session)));
                Ok(())
            }
            _ => session.map_or(Ok(()), |session| receive(session)),
        }
    }
}

/// The revision in the version header, if there is one.
///
/// > If the server receives a request with an invalid or unsupported `MCP-Protocol-Version`, it MUST
/// > respond with `400 Bad Request`. (MCP 2025-11-25, basic/transports, "Protocol Version Header")
pub(crate) fn requested_version(headers: &HeaderMap) -> Result<Option<Revision>, RpcError> {
    let Some(version) = headers.get(VERSION) else {
        return Ok(None);
    };
    let revision = version.to_str().ok().and_then(Revision::parse);
    let unsupported =
        || RpcError::unsupported_version(&String::from_utf8_lossy(version.as_bytes()));
    revision.map(Some).ok_or_else(unsupported)
}

/// Compares the headers of a modern request with its body.
pub(super) fn check_modern(
    headers: &HeaderMap,
    method: &str,
    params: &Params<'_>,
) -> Result<(), RpcError> {
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

/// The session that the headers of a request name, if it is one of this principal.
pub(crate) fn find_session(
    snapshot: &ConfigSnapshot,
    headers: &HeaderMap,
    principal: Option<&Arc<Principal>>,
) -> Option<Arc<Session>> {
    let id = headers.get(SESSION_ID)?.to_str().ok()?;
    let session = snapshot.services.sessions.find(id)?;
    // To others the session is unknown: they learn nothing, and a client whose user has changed begins anew.
    let is_theirs = session.negotiated.principal == principal.map(|principal| principal.id());
    (is_theirs && snapshot.placements.order_of(&session).is_some()).then_some(session)
}

/// The session of a legacy request, unless it has ended since it was found.
///
/// # Errors
///
/// When the header is missing, or no session of the caller has this id.
///
/// > Servers that require a session ID SHOULD respond to requests without an `MCP-Session-Id`
/// > header (other than initialization) with HTTP 400 Bad Request. The server MAY terminate the
/// > session at any time, after which it MUST respond to requests containing that session ID with
/// > HTTP 404 Not Found. (MCP 2025-11-25, basic/transports, "Session Management")
pub(crate) fn session_of<'c>(
    snapshot: &ConfigSnapshot,
    headers: &HeaderMap,
    caller: &'c Caller,
) -> Result<&'c Arc<Session>, RpcError> {
    if !headers.contains_key(SESSION_ID) {
        let why = "the Mcp-Session-Id header is missing; send `initialize` first";
        return Err(RpcError::invalid_request(why));
    }
    let now = snapshot.services.exchange.now();
    let is_open = |session: &&Arc<Session>| !session.has_ended() && session.expires() > now;
    let session = caller.session.as_ref().filter(is_open);
    session.ok_or_else(RpcError::session_not_found)
}

/// Shows a session what its principal may see now. The claims of the principal, and with them the headers of servers, may
/// have changed since the last request.
pub(crate) async fn follow_claims(snapshot: &ConfigSnapshot, session: &Session, caller: &Caller) {
    let depends_on_claims =
        snapshot.config.access.is_some() || snapshot.pool.servers.are_per_client();
    if depends_on_claims && session.remember_principal(caller.principal.as_ref()) {
        let hub = &snapshot.services.hub;
        Box::pin(hub.follow_claims(session, &snapshot.placements)).await;
    }
}
