//! A server behind a streamable HTTP endpoint.

mod address;
mod attempt;
mod call_table;
mod collect;
mod cookies;
mod credentials;
mod delivery;
mod diagnostics;
mod endpoint;
mod event_stream;
mod event_stream_reader;
mod exchange;
mod get_stream;
mod handshaker;
mod headers;
mod inbound;
mod outgoing_request;
mod pool;
mod received;
mod sending;
mod session;
mod shared;
mod side_channel;
mod standalone_stream;
mod stream;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::server_message;
use tokio::sync::{broadcast, watch};

use self::attempt::Call;
use self::endpoint::Endpoint;
pub(super) use self::exchange::Exchange;
use self::handshaker::Handshaker;
use self::headers::modern_headers;
use self::inbound::{CallRoutes, SessionStream};
use self::shared::Shared;
use super::config::UpstreamConfig;
use super::connect_error::ConnectError;
use super::error::UpstreamError;
use super::handshake::Opening;
use super::message::{Event, Request, RequestKind};
use crate::liveness::Liveness;
use crate::server_log_level::ServerLogLevel;
use crate::server_requests::ServerRequests;

/// A connection to one endpoint.
pub(super) struct Connection {
    shared: Arc<Shared>,
    handshaker: Arc<Handshaker>,
    is_closed: AtomicBool,
}

mcp_vary_base::debug_by_name!(Connection);

impl Connection {
    /// Connects to the server at `url` and completes the handshake.
    pub(super) async fn connect(
        config: &UpstreamConfig,
        (url, headers): (&Uri, &HeaderMap),
        opening: Opening,
        events: &broadcast::Sender<Event>,
    ) -> Result<(Arc<Self>, Handshake), ConnectError> {
        let endpoint = Endpoint::new(config, url, headers)?;
        let handshaker = Handshaker::new(config, Shared::new(config, endpoint, events));
        let handshake = handshaker.connect(opening).await?;
        let connection = Self {
            shared: Arc::clone(&handshaker.shared),
            handshaker: Arc::new(handshaker),
            is_closed: AtomicBool::new(false),
        };
        Ok((Arc::new(connection), handshake))
    }

    /// Sends a request; nothing is awaited, the [`Exchange`] runs in its caller.
    pub(super) fn request(
        &self,
        request: Request,
        kind: RequestKind,
    ) -> Result<Exchange, UpstreamError> {
        let shared = &self.shared;
        shared.endpoint.check_open()?;
        let session = shared.session.load();
        let id = shared.next_id();
        let body =
            server_message::write_request(Some(id), &request.method, request.params.as_deref());
        let (routes, mut headers) = match session.era {
            Era::Legacy => {
                let stream = match session.stream {
                    Some(_) => SessionStream::Only,
                    None if shared.stream.may_be_open() => SessionStream::Standalone,
                    None => SessionStream::Absent,
                };
                let routes = shared.inbound.open_routes(id, &request, stream);
                (routes, Vec::new())
            }
            Era::Modern => {
                let mut headers = modern_headers(&request.method, request.name.as_deref());
                headers.extend(request.param_headers);
                (CallRoutes::default(), headers)
            }
        };
        headers.extend(request.trace_headers);
        let call = Call {
            memory: request.memory,
            id,
            body,
            headers: headers.into(),
            kind,
            token: request.token,
        };
        Ok(Exchange::send(&self.handshaker, session, call, routes))
    }

    pub(super) async fn notify(
        &self,
        method: &str,
        params: Option<&str>,
    ) -> Result<(), UpstreamError> {
        let endpoint = &self.shared.endpoint;
        endpoint.check_open()?;
        let session = self.shared.session.load();
        let headers = match session.era {
            Era::Legacy => Vec::new(),
            Era::Modern => modern_headers(method, None),
        };
        let message = server_message::write_request(None, method, params);
        let delivered = endpoint.deliver(&session, &headers, message).await;
        delivered.inspect_err(|error| {
            endpoint.on_failure(error);
            if session.id.is_some() && matches!(error, UpstreamError::Status { .. }) {
                // The session may be lost.
                endpoint.liveness.suspect();
            }
        })
    }

    pub(super) fn server_requests(&self) -> &Arc<ServerRequests> {
        &self.shared.inbound.server_requests
    }

    pub(super) fn without_secrets(&self, text: &str) -> String {
        self.shared.endpoint.diagnostics.hide(text)
    }

    pub(super) fn liveness(&self) -> &Arc<Liveness> {
        &self.shared.endpoint.liveness
    }

    pub(super) fn log_level(&self) -> &Arc<ServerLogLevel> {
        &self.handshaker.log_level
    }

    /// The number of the session, which changes when a new one replaces it.
    pub(super) fn session_renewed(&self) -> watch::Receiver<u64> {
        self.shared.session.generation()
    }

    /// How often the standalone stream was opened.
    pub(super) fn stream_opened(&self) -> watch::Receiver<u64> {
        self.shared.stream.openings()
    }

    /// Reads the standalone stream of a legacy server until the server rejects it.
    pub(super) fn read_standalone_stream(&self) -> impl Future<Output = ()> + use<> {
        get_stream::read_standalone_stream(Arc::clone(&self.shared))
    }

    /// On a dedicated connection, waits until the standalone stream of the session is open or refused.
    pub(super) async fn wait_for_stream(&self) {
        self.shared.wait_for_stream().await;
    }

    /// Ends the session at the server, and the calls in flight.
    pub(super) async fn close(&self) {
        if self.is_closed.swap(true, Ordering::Relaxed) {
            return;
        }
        let endpoint = &self.shared.endpoint;
        let reason = UpstreamError::closed_by_gateway(&endpoint.server);
        endpoint.liveness.end(reason);
        let session = self.shared.session.load();
        if session.id.is_some() {
            let deletion = endpoint.send(Method::DELETE, &session, &[], Bytes::new());
            // The server may answer 405 or not at all.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, deletion).await;
        }
        self.shared.inbound.publish(Event::Closed {
            reason: format!("server `{}` was closed by the gateway", endpoint.server),
        });
    }
}

const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
