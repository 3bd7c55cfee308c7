//! One connection to one server.

use std::borrow::Cow;
use std::future::ready;
use std::sync::Arc;

use mcp_vary_base::lock::ScopedLock;
use mcp_vary_base::tasks::{spawn, try_spawn};
use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::revision::Era;
use tokio::sync::broadcast;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::config::{Target, UpstreamConfig};
use crate::connect_error::ConnectError;
use crate::error::UpstreamError;
use crate::handshake::{Opening, client_meta};
use crate::list_changes::ListSubscription;
use crate::liveness::Liveness;
use crate::message::{EVENT_CAPACITY, Event, Request, RequestKind};
use crate::server_log_level::ServerLogLevel;
use crate::server_requests::ServerRequests;
use crate::transport::{Exchange, Transport};
use crate::{http, stdio, upstream_variant};

/// A connection to a server that is ready.
///
/// # Properties
///
/// Dropping it ends the process or the session, and all background tasks of the connection.
#[derive(Debug)]
pub struct UpstreamConnection {
    pub(crate) config: UpstreamConfig,
    pub(crate) handshake: Handshake,
    pub(crate) transport: Arc<Transport>,
    pub(crate) events: broadcast::Sender<Event>,
    /// Events from before the first subscriber.
    early_events: ScopedLock<Option<broadcast::Receiver<Event>>>,
    client_meta: Vec<(&'static str, String)>,
    log_level: Arc<ServerLogLevel>,
    pub(crate) liveness: Arc<Liveness>,
    pub(crate) server_requests: Arc<ServerRequests>,
    pub(crate) stop: CancellationToken,
    _stop_when_dropped: DropGuard,
}

impl UpstreamConnection {
    /// Connects to the server and waits until it is ready.
    ///
    /// # Errors
    ///
    /// When the server cannot be started or reached, is not an MCP server, shares no revision with the gateway, or is not
    /// ready within its limit.
    pub async fn connect(config: UpstreamConfig) -> Result<Arc<Self>, ConnectError> {
        Self::connect_until(config, &CancellationToken::new()).await
    }

    /// The same, until `stop` is cancelled: then a process that was started is ended before the error is returned.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect), and when `stop` is cancelled.
    pub async fn connect_until(
        config: UpstreamConfig,
        stop: &CancellationToken,
    ) -> Result<Arc<Self>, ConnectError> {
        let opening = if config.legacy_first {
            Opening::InitializeOrDiscover
        } else {
            Opening::Discover
        };
        Self::connect_with(config, ready(opening), stop).await
    }

    /// The same with `opening`, which a process waits for after its start.
    pub(crate) async fn connect_with(
        config: UpstreamConfig,
        opening: impl Future<Output = Opening>,
        stop: &CancellationToken,
    ) -> Result<Arc<Self>, ConnectError> {
        let mut channel = broadcast::channel(EVENT_CAPACITY);
        let (transport, handshake) = match &config.target {
            Target::Command { .. } | Target::InProcess(_) => {
                let (connection, handshake) =
                    stdio::connect(&config, opening, &mut channel, stop).await?;
                (Transport::Stdio(connection), handshake)
            }
            Target::Http { url, headers } => {
                let chosen = opening.await;
                let connecting =
                    http::Connection::connect(&config, (url, headers), chosen, &channel.0);
                let connected = stop.run_until_cancelled(connecting).await;
                let (connection, handshake) = connected.unwrap_or_else(|| {
                    let server = config.name.as_str().into();
                    Err(UpstreamError::closed_by_gateway(&server).into())
                })?;
                (Transport::Http(connection), handshake)
            }
        };
        tracing::info!(server = %config.name, revision = %handshake.revision, "server connected");
        // Some servers send requests right after the handshake, before anything can subscribe to the events.
        let (events, early) = channel;
        let early = config.is_dedicated.then_some(early);
        let upstream = Self::new(config, transport, handshake, (events, early));
        if let Some(variant) = &upstream.config.variant {
            let checked =
                upstream_variant::check(&upstream.config.name, variant, &upstream.handshake);
            if let Err(refused) = checked {
                upstream.close().await;
                return Err(refused);
            }
        }
        if let Transport::Http(connection) = &*upstream.transport {
            connection.wait_for_stream().await;
        }
        Ok(upstream)
    }

    fn new(
        config: UpstreamConfig,
        transport: Transport,
        handshake: Handshake,
        (events, early): (broadcast::Sender<Event>, Option<broadcast::Receiver<Event>>),
    ) -> Arc<Self> {
        let stop = CancellationToken::new();
        let upstream = Arc::new(Self {
            client_meta: match handshake.era() {
                Era::Legacy => Vec::new(),
                Era::Modern => client_meta(&config.capabilities, config.client_info.as_deref()),
            },
            log_level: transport.log_level(),
            liveness: Arc::clone(transport.liveness()),
            server_requests: Arc::clone(transport.server_requests()),
            config,
            handshake,
            transport: Arc::new(transport),
            events,
            early_events: ScopedLock::new(early),
            _stop_when_dropped: stop.clone().drop_guard(),
            stop,
        });
        upstream.receive_list_changes();
        upstream
    }

    /// Starts to receive list changes if the server may announce them; ends with the connection.
    fn receive_list_changes(&self) {
        let stop = self.stop.clone();
        match (self.handshake.era(), &*self.transport) {
            // A legacy process announces changes on its standard output.
            (Era::Legacy, Transport::Stdio(_)) => {}
            (Era::Legacy, Transport::Http(connection)) => {
                let reading = connection.read_standalone_stream();
                spawn(async move { stop.run_until_cancelled(reading).await });
            }
            (Era::Modern, _) => {
                if let Some(lists) = ListSubscription::new(&self.config, &self.handshake) {
                    let transport = Arc::downgrade(&self.transport);
                    let running = lists.run(transport, self.events.clone());
                    spawn(async move { stop.run_until_cancelled(running).await });
                }
            }
        }
    }

    /// The name that the operator gave the server.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// The result of the handshake: the server's revision, capabilities and identity.
    pub const fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    /// The last lines that the server's process wrote to its standard error; none over HTTP.
    pub fn stderr_lines(&self) -> Vec<String> {
        self.transport.stderr_lines()
    }

    /// The client capabilities that were declared to the server, JSON text.
    pub fn capabilities(&self) -> &str {
        &self.config.capabilities
    }

    /// The `_meta` members that each request must carry: key and JSON text. Empty for a legacy server.
    pub fn client_meta(&self) -> &[(&'static str, String)] {
        &self.client_meta
    }

    /// Whether the server reads `Mcp-Param-*` headers: modern HTTP endpoints do.
    pub fn accepts_param_headers(&self) -> bool {
        matches!(*self.transport, Transport::Http(_)) && self.handshake.era() == Era::Modern
    }

    /// The log level of a legacy server on this connection. It is restored when the session is renewed.
    pub fn log_level(&self) -> &ServerLogLevel {
        &self.log_level
    }

    /// The events of this connection from now on. On a dedicated connection the first subscriber also gets the earlier ones.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        let early = self.early_events.lock();
        if let Some(early) = { early }.take() {
            return early;
        }
        self.events.subscribe()
    }

    /// Sends a request.
    ///
    /// # Errors
    ///
    /// When the connection is closed or the server does not accept the request.
    pub async fn request(&self, request: Request) -> Result<Exchange, UpstreamError> {
        self.send(request, RequestKind::Call).await
    }

    /// Sends a request for a list of the server, which is no client's call: what the server says meanwhile is not about it.
    ///
    /// # Errors
    ///
    /// As for [`request`](Self::request).
    pub async fn request_list(&self, request: Request) -> Result<Exchange, UpstreamError> {
        self.send(request, RequestKind::List).await
    }

    /// Sends a request that may take any time to be answered and does not count as a client's call.
    pub async fn request_unbounded(&self, request: Request) -> Result<Exchange, UpstreamError> {
        self.send(request, RequestKind::Unbounded).await
    }

    pub(crate) async fn send(
        &self,
        mut request: Request,
        kind: RequestKind,
    ) -> Result<Exchange, UpstreamError> {
        if let Some(variant) = &self.config.variant {
            upstream_variant::select(variant, &mut request);
        }
        self.transport.request(request, kind).await
    }

    /// A text of the server with `***` in place of each secret that it was given.
    pub fn without_secrets(&self, text: &str) -> String {
        self.transport.without_secrets(text)
    }

    /// Sends a notification; `params` is JSON text.
    ///
    /// # Errors
    ///
    /// When the connection is closed or the server does not accept the notification.
    pub async fn notify(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: Option<String>,
    ) -> Result<(), UpstreamError> {
        let name = method.into();
        self.transport.notify(&name, params.as_deref()).await
    }

    /// Ends the process or the session, and waits until that is done.
    ///
    /// Calls in flight fail.
    pub async fn close(&self) {
        self.stop.cancel();
        self.transport.close().await;
    }
}

impl Drop for UpstreamConnection {
    fn drop(&mut self) {
        // A process ends with its connection; a session must be ended explicitly.
        if let Transport::Http(connection) = &*self.transport {
            let connection = Arc::clone(connection);
            let _ = try_spawn(async move { connection.close().await });
        }
    }
}
