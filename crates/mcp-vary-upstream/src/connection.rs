//! One connection to one server, and a request on it until its answer.

use std::borrow::Cow;
use std::future::ready;
use std::sync::Arc;

use mcp_vary_base::lock::ScopedLock;
use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::revision::Era;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::config::{Target, UpstreamConfig};
use crate::error::{ConnectError, UpstreamError};
use crate::handshake::Opening;
use crate::liveness::{CallGuard, Liveness};
use crate::message::{Answer, Event, Message, Request, RequestKind};
use crate::server_log_level::ServerLogLevel;
use crate::server_requests::ServerRequests;
use crate::{handshake, http, list_changes, stdio, upstream_variant};

/// A connection to a server that is ready.
///
/// # Properties
///
/// Dropping it ends the process or the session, and all background tasks of the connection.
#[derive(Debug)]
pub struct UpstreamConnection {
    pub(crate) config: UpstreamConfig,
    pub(crate) handshake: Handshake,
    pub(crate) transport: Transport,
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

#[derive(Debug)]
pub(crate) enum Transport {
    Stdio(stdio::Connection),
    Http(Arc<http::Connection>),
}

impl UpstreamConnection {
    /// Connects to the server and waits until it is ready.
    ///
    /// # Errors
    ///
    /// When the server cannot be started or reached, is not an MCP server, shares no revision with the gateway, or is not
    /// ready within its limit.
    pub async fn connect(config: UpstreamConfig) -> Result<Arc<Self>, ConnectError> {
        let opening = match config.legacy_first {
            true => Opening::InitializeOrDiscover,
            false => Opening::Discover,
        };
        Self::connect_until_stopped(config, ready(opening), &CancellationToken::new()).await
    }

    /// Connects with `opening`, which a process waits for after its start. If `stop` is cancelled first, the process is ended before the error is returned.
    pub(crate) async fn connect_until_stopped(
        config: UpstreamConfig,
        opening: impl Future<Output = Opening>,
        stop: &CancellationToken,
    ) -> Result<Arc<Self>, ConnectError> {
        let (events, early) = broadcast::channel(EVENT_CAPACITY);
        let (link, hello) = match &config.target {
            Target::Command { .. } => {
                let (connection, hello) = stdio::connect(&config, opening, &events, stop).await?;
                (Transport::Stdio(connection), hello)
            }
            Target::Http { url, headers } => {
                let opening = opening.await;
                let connecting =
                    http::Connection::connect(&config, (url, headers), opening, &events);
                let connected = stop.run_until_cancelled(connecting).await;
                let (connection, hello) = connected.unwrap_or_else(|| {
                    let server = config.name.as_str().into();
                    Err(UpstreamError::closed_by_gateway(&server).into())
                })?;
                (Transport::Http(connection), hello)
            }
        };
        tracing::info!(server = %config.name, revision = %hello.revision, "server connected");
        // Some servers send requests right after the handshake, before anything can subscribe to the events.
        let early = config.is_dedicated.then_some(early);
        let upstream = Self::new(config, link, hello, (events, early));
        if let Some(variant) = &upstream.config.variant {
            let checked =
                upstream_variant::check(&upstream.config.name, variant, &upstream.handshake);
            if let Err(refused) = checked {
                upstream.close().await;
                return Err(refused);
            }
        }
        if let Transport::Http(connection) = &upstream.transport {
            connection.wait_for_stream().await;
        }
        Ok(upstream)
    }

    fn new(
        config: UpstreamConfig,
        link: Transport,
        hello: Handshake,
        (events, early): (broadcast::Sender<Event>, Option<broadcast::Receiver<Event>>),
    ) -> Arc<Self> {
        let stop = CancellationToken::new();
        let upstream = Arc::new(Self {
            client_meta: match hello.era() {
                Era::Legacy => Vec::new(),
                Era::Modern => {
                    handshake::client_meta(&config.capabilities, config.client_info.as_deref())
                }
            },
            log_level: match &link {
                Transport::Stdio(_) => Arc::default(),
                Transport::Http(connection) => Arc::clone(connection.log_level()),
            },
            liveness: Arc::clone(match &link {
                Transport::Stdio(connection) => connection.liveness(),
                Transport::Http(connection) => connection.liveness(),
            }),
            server_requests: Arc::clone(match &link {
                Transport::Stdio(connection) => connection.server_requests(),
                Transport::Http(connection) => connection.server_requests(),
            }),
            config,
            handshake: hello,
            transport: link,
            events,
            early_events: ScopedLock::new(early),
            _stop_when_dropped: stop.clone().drop_guard(),
            stop,
        });
        list_changes::start(&upstream);
        upstream
    }

    /// The name that the operator gave the server.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// The result of the handshake: the server's revision, capabilities and identity.
    #[must_use]
    pub const fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    /// The client capabilities that were declared to the server, JSON text.
    #[must_use]
    pub fn capabilities(&self) -> &str {
        &self.config.capabilities
    }

    /// The `_meta` members that each request must carry: key and JSON text. Empty for a legacy server.
    #[must_use]
    pub fn client_meta(&self) -> &[(&'static str, String)] {
        &self.client_meta
    }

    /// Whether the server reads `Mcp-Param-*` headers: modern HTTP endpoints do.
    #[must_use]
    pub fn accepts_param_headers(&self) -> bool {
        matches!(self.transport, Transport::Http(_)) && self.handshake.era() == Era::Modern
    }

    /// The log level of a legacy server on this connection. It is restored when the session is renewed.
    pub fn log_level(&self) -> &ServerLogLevel {
        &self.log_level
    }

    /// Changes whenever a new session replaced the server's session, whose state is lost; `None` where that cannot happen.
    pub(crate) fn session_renewed(&self) -> Option<watch::Receiver<u64>> {
        match &self.transport {
            Transport::Stdio(_) => None,
            Transport::Http(connection) => Some(connection.session_renewed()),
        }
    }

    /// Changes whenever the stream for messages that belong to no request is opened; earlier messages were missed.
    /// `None` where none can be missed.
    pub(crate) fn stream_opened(&self) -> Option<watch::Receiver<u64>> {
        match &self.transport {
            Transport::Stdio(_) => None,
            Transport::Http(connection) => Some(connection.stream_opened()),
        }
    }

    /// The events of this connection from now on. On a dedicated connection the first subscriber also gets the earlier ones.
    #[must_use]
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
        purpose: RequestKind,
    ) -> Result<Exchange, UpstreamError> {
        if let Some(variant) = &self.config.variant {
            upstream_variant::select(variant, &mut request);
        }
        let inner = match &self.transport {
            Transport::Stdio(connection) => {
                Inner::Stdio(connection.request(request, purpose).await?)
            }
            Transport::Http(connection) => Inner::Http(connection.request(request, purpose)?),
        };
        let running = purpose.is_work().then(|| self.liveness.begin_call());
        Ok(Exchange {
            inner,
            _running: running,
        })
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
        let method = method.into();
        match &self.transport {
            Transport::Stdio(connection) => connection.notify(&method, params.as_deref()).await,
            Transport::Http(connection) => connection.notify(&method, params.as_deref()).await,
        }
    }

    /// Ends the process or the session, and waits until that is done.
    ///
    /// Calls in flight fail.
    pub async fn close(&self) {
        self.stop.cancel();
        match &self.transport {
            Transport::Stdio(connection) => connection.close().await,
            Transport::Http(connection) => connection.close().await,
        }
    }
}

impl Drop for UpstreamConnection {
    fn drop(&mut self) {
        // A process ends with its connection; a session must be ended explicitly.
        if let Transport::Http(connection) = &self.transport
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let connection = Arc::clone(connection);
            runtime.spawn(async move { connection.close().await });
        }
    }
}

/// One request, until its answer.
///
/// # Properties
///
/// Notifications come in the order in which the server sent them, then exactly one answer or error.
/// Dropping it before that cancels the request at the server: on stdio and in legacy HTTP with
/// `notifications/cancelled`, in modern HTTP by closing its connection.
#[derive(Debug)]
pub struct Exchange {
    inner: Inner,
    _running: Option<CallGuard>,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a box would cost each call an allocation"
)]
enum Inner {
    Stdio(stdio::Exchange),
    Http(http::Exchange),
}

impl Exchange {
    /// The next message. Safe to drop while it waits: nothing is lost.
    ///
    /// # Errors
    ///
    /// When the call has failed; nothing follows then.
    pub async fn next(&mut self) -> Result<Message, UpstreamError> {
        match &mut self.inner {
            Inner::Stdio(exchange) => exchange.next().await,
            Inner::Http(exchange) => exchange.next().await,
        }
    }

    /// The answer; notifications before it are dropped.
    ///
    /// # Errors
    ///
    /// When the call has failed.
    pub async fn answer(mut self) -> Result<Answer, UpstreamError> {
        loop {
            if let Message::Answer(answer) = self.next().await? {
                return Ok(answer);
            }
        }
    }

    /// Cancels the request at the server, as dropping does, and sends the reason where the protocol has a place for it.
    pub fn cancel(mut self, reason: Option<&str>) {
        match &mut self.inner {
            Inner::Stdio(exchange) => exchange.cancel(reason),
            Inner::Http(exchange) => exchange.cancel(reason),
        }
    }
}

/// How many events are buffered for a subscriber before it misses the oldest.
pub(crate) const EVENT_CAPACITY: usize = 256;
