//! The transports of messages, as far as they decide who a client is.

use std::sync::Arc;

use http::HeaderMap;
use mcp_vary_wire::envelope::Message;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::{Era, Revision};

use super::client_message::receive_client_message;
use super::connection_sessions::ConnectionSessions;
use super::http_headers::{check_modern, follow_claims, requested_version, session_of};
use crate::pipeline::clients::{legacy_client, modern_client, wait_for_servers};
use crate::pipeline::request::IncomingRequest;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::session::Session;
use crate::session::caller::Caller;
use crate::session::client::Client;

/// Where a message was read.
pub(crate) enum MessageSource<'a, 's> {
    /// The body of a `POST` with these headers.
    Post(&'a HeaderMap),
    /// An element of a batch in this session.
    Batch(&'s Arc<Session>),
    /// A line of a connection that has one client.
    Connection(&'s mut ConnectionSessions),
}

impl<'a> MessageSource<'a, '_> {
    /// The headers of an HTTP request.
    pub(super) fn headers(&self) -> Option<&'a HeaderMap> {
        match self {
            Self::Post(headers) => Some(headers),
            Self::Batch(_) | Self::Connection(_) => None,
        }
    }

    /// The era of a message with these `params`.
    ///
    /// # Errors
    ///
    /// When the version header names no revision.
    pub(super) fn era(&self, params: &Params<'_>) -> Result<Era, RpcError> {
        match self {
            // Batches exist in a legacy revision only.
            Self::Batch(_) => Ok(Era::Legacy),
            // The revision in the body is compared with the header later.
            _ if params.is_modern() => Ok(Era::Modern),
            Self::Post(headers) => {
                let version = requested_version(headers)?;
                Ok(version.map_or(Era::Legacy, Revision::era))
            }
            Self::Connection(_) => Ok(Era::Legacy),
        }
    }

    /// The client of a request.
    ///
    /// # Errors
    ///
    /// When its session does not exist, its headers contradict its body, or it does not declare what it must.
    pub(super) async fn client(
        &mut self,
        snapshot: &ConfigSnapshot,
        caller: &Caller,
        request: &IncomingRequest<'_>,
        era: Era,
    ) -> Result<Client, RpcError> {
        let (method, params) = (request.method, &request.params);
        if era == Era::Modern {
            if let Self::Post(headers) = self {
                check_modern(headers, method, params)?;
            }
            wait_for_servers(snapshot, method, caller, params).await;
            return self.modern_client(snapshot, caller, method, params);
        }
        let session = match self {
            Self::Connection(sessions) => Box::pin(sessions.current(snapshot)).await?,
            _ => self.session(snapshot, caller).await?,
        };
        match (session, self) {
            (Some(session), _) => legacy_client(snapshot, &session, caller, params),
            (None, Self::Connection(sessions)) if method == "ping" => {
                let mut client = legacy_client(snapshot, sessions.modern(), caller, params)?;
                client.revision = Revision::LATEST_LEGACY;
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
        snapshot: &ConfigSnapshot,
        caller: &Caller,
        method: &str,
        params: &Params<'_>,
    ) -> Result<Client, RpcError> {
        let mut client = modern_client(snapshot, method, caller, params)?;
        if let Self::Connection(sessions) = self {
            client.id = sessions.modern().client;
            client.connection = Some(client.id);
        }
        Ok(client)
    }

    /// The session that has the requests of `client` in flight; `None` for modern HTTP, where a client cancels by
    /// disconnecting.
    pub(super) fn in_flight_session<'c>(&'c self, client: &'c Client) -> Option<&'c Arc<Session>> {
        match self {
            Self::Connection(sessions) if client.session.is_none() => Some(sessions.modern()),
            _ => client.session.as_ref(),
        }
    }

    /// The legacy session; `None` before `initialize`.
    pub(super) async fn session(
        &self,
        snapshot: &ConfigSnapshot,
        caller: &Caller,
    ) -> Result<Option<Arc<Session>>, RpcError> {
        Ok(match self {
            Self::Post(headers) => {
                let session = session_of(snapshot, headers, caller)?;
                follow_claims(snapshot, &session, caller).await;
                Some(session)
            }
            Self::Batch(session) => Some(Arc::clone(session)),
            Self::Connection(sessions) => sessions.legacy().cloned(),
        })
    }

    /// Handles a notification or a response in each session that it may belong to.
    ///
    /// # Errors
    ///
    /// When a response answers no request of the gateway.
    pub(super) fn receive(
        &self,
        snapshot: &ConfigSnapshot,
        session: Option<&Arc<Session>>,
        message: &Message<'_>,
        params: &Params<'_>,
    ) -> Result<(), RpcError> {
        if let Self::Connection(sessions) = self {
            for session in sessions.all() {
                // The response is for one of them.
                let _ = receive_client_message(snapshot, session, message, params);
            }
            return Ok(());
        }
        session.map_or(Ok(()), |session| {
            receive_client_message(snapshot, session, message, params)
        })
    }
}
