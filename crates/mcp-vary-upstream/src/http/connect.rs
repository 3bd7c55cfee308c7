//! Connects to an endpoint and completes the handshake.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use http::header::{PROXY_AUTHORIZATION, VIA};
use http::{HeaderMap, Uri};
use mcp_vary_base::log_backoff::LogBackoff;
use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::revision::Revision;
use mcp_vary_wire::server_message;
use tokio::sync::{Mutex, Semaphore, broadcast, watch};

use super::exchange::{Call, Exchange};
use super::pool::{Connector, Pool};
use super::proxy::Proxy;
use super::session::Session;
use super::{Connection, endpoint, modern_headers, tls};
use crate::config::UpstreamConfig;
use crate::error::{ConnectError, UpstreamError};
use crate::handshake::{self, Discovered, GRACE, Initialized, Opening};
use crate::liveness::Liveness;
use crate::mailbox::Budget;
use crate::message::{Answer, Event, RequestKind};
use crate::secrets::{Secrets, without_user};
use crate::server_requests::MAX_UNREAD_REPLIES;

/// Connects to the server at `url` and completes the handshake.
pub(crate) async fn connect(
    config: &UpstreamConfig,
    (url, headers): (&Uri, &HeaderMap),
    opening: Opening,
    events: &broadcast::Sender<Event>,
) -> Result<(Arc<Connection>, Handshake), ConnectError> {
    let server: Arc<str> = config.name.as_str().into();
    let (connector, proxy) = connector(config, url)?;
    let secrets = Secrets::of(&config.target);
    let (url, headers) = without_user(url, headers);
    let configured = configured_headers(config, &headers, proxy.as_ref());
    let blank = Session::new(&configured, Revision::LATEST_MODERN, true, None, 0);
    let connection = Arc::new(Connection {
        server,
        limits: config.limits.clone(),
        capabilities: config.capabilities.clone(),
        client_info: config.client_info.clone(),
        is_dedicated: config.is_dedicated,
        is_pooled: config.is_pooled,
        counters: Arc::clone(&config.counters),
        secrets,
        behind: config.chain.track_connection(),
        server_requests: Arc::default(),
        pool: Pool::new(connector, &url),
        uri: url,
        proxy: proxy.map(|proxy| proxy.address()),
        has_ca: config.ca.is_some(),
        next_id: AtomicU64::new(1),
        session: ArcSwap::from_pointee(blank),
        generation: watch::Sender::new(0),
        renewal: Mutex::new(()),
        stream_opened: watch::Sender::new(0),
        stream_refused: AtomicBool::new(false),
        stream_generation: watch::Sender::new(0),
        configured_headers: configured,
        wants_login: AtomicBool::new(false),
        side_channels: Arc::default(),
        call_table: Arc::default(),
        budget: Arc::new(Budget::new(config.limits.waiting)),
        reply_permits: Arc::new(Semaphore::new(MAX_REPLIES)),
        cancel_permits: Arc::new(Semaphore::new(MAX_CANCELLATIONS)),
        undelivered: AtomicU64::new(0),
        skipped_events: AtomicU64::new(0),
        failures: LogBackoff::default(),
        answer_permits: Arc::new(Semaphore::new(MAX_UNREAD_REPLIES)),
        events: events.clone(),
        liveness: Liveness::new(),
        handshake: OnceLock::new(),
        log_level: Arc::default(),
        closed: AtomicBool::new(false),
    });
    let hello = connection.run_handshake_in_time(opening).await?;
    let _ = connection.handshake.set(hello.clone());
    Ok((connection, hello))
}

/// The connector for the server at `url`, and the proxy on the way to it.
fn connector(
    config: &UpstreamConfig,
    url: &Uri,
) -> Result<(Connector, Option<Proxy>), ConnectError> {
    let found = Proxy::find(url, config.variables).and_then(|proxy| {
        let (limit, ca) = (config.limits.connect, config.ca.as_deref());
        let connector = tls::connector(url, limit, ca, proxy.clone())?;
        Ok((connector, proxy))
    });
    found.map_err(|what| ConnectError::Handshake {
        server: config.name.as_str().into(),
        what,
    })
}

/// The headers of all requests: those of the configuration, and those for gateways and the proxy on the way.
fn configured_headers(
    config: &UpstreamConfig,
    headers: &HeaderMap,
    proxy: Option<&Proxy>,
) -> HeaderMap {
    let mut configured = mark_sensitive(headers);
    if let Some(via) = config.chain.via() {
        configured.append(VIA, via);
    }
    if let Some(authorization) = proxy.and_then(Proxy::authorization) {
        configured.insert(PROXY_AUTHORIZATION, authorization.clone());
    }
    configured
}

/// `error` without the secrets that the server may have repeated.
fn redact(error: ConnectError, secrets: &Secrets) -> ConnectError {
    match error {
        ConnectError::Handshake { server, what } => ConnectError::Handshake {
            server,
            what: secrets.hide(&what),
        },
        other => other,
    }
}

/// `headers` with values that are not shown by `Debug`: each may hold credentials.
fn mark_sensitive(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for value in headers.values_mut() {
        value.set_sensitive(true);
    }
    headers
}

impl Connection {
    /// Finds out the era of the server, within the time limit of handshakes. Errors are without secrets.
    async fn run_handshake_in_time(
        self: &Arc<Self>,
        opening: Opening,
    ) -> Result<Handshake, ConnectError> {
        let limit = self.limits.handshake;
        match tokio::time::timeout(limit, self.run_handshake(opening)).await {
            Ok(hello) => hello.map_err(|error| redact(error, &self.secrets)),
            Err(_elapsed) => Err(ConnectError::Timeout {
                server: Arc::clone(&self.server),
                limit,
                observed: "it did not answer `server/discover` or `initialize`".to_owned(),
            }),
        }
    }

    /// Finds out the era of the server.
    async fn run_handshake(self: &Arc<Self>, opening: Opening) -> Result<Handshake, ConnectError> {
        match opening {
            Opening::Discover => self.discover_or_initialize().await,
            Opening::Initialize => match self.initialize(Revision::LATEST_LEGACY).await {
                Err(error) => self.discover_instead(error).await,
                hello => hello,
            },
            Opening::InitializeOrDiscover | Opening::InitializeUnknown => {
                self.initialize_or_discover().await
            }
        }
    }

    /// Sends `initialize` first; `server/discover` if that is refused, and in addition if it stays unanswered for a while.
    ///
    /// The server is known to support 2026-07-28, which requires `Mcp-Method` on every `POST`. There is no `_meta`: servers
    /// on rmcp treat a request with `_meta` as one without a session.
    async fn initialize_or_discover(self: &Arc<Self>) -> Result<Handshake, ConnectError> {
        let headers = modern_headers("initialize", None);
        let mut initializing = pin!(self.initialize_with(Revision::LATEST_LEGACY, &headers));
        match tokio::time::timeout(self.limits.initialize, &mut initializing).await {
            Ok(Ok(hello)) => return Ok(hello),
            Ok(Err(error)) => return self.discover_instead(error).await,
            Err(_elapsed) => {}
        }
        tracing::debug!(server = %self.server, "initialize unanswered, server/discover sent");
        tokio::select! {
            biased;
            hello = &mut initializing => match hello {
                Ok(hello) => Ok(hello),
                Err(error) => self.discover_instead(error).await,
            },
            answer = self.discover() => match handshake::read_discover(&self.server, &answer?)? {
                // A server that starts slowly answers both at once.
                Discovered::Modern(hello) => match tokio::time::timeout(GRACE, initializing).await {
                    Ok(Ok(legacy)) => Ok(legacy),
                    Ok(Err(_)) | Err(_) => Ok(hello.refusing_initialize()),
                },
                Discovered::Retry(_) | Discovered::Legacy(_) => initializing.await,
            },
        }
    }

    /// Sends `server/discover` after `initialize` failed: for a server without sessions.
    async fn discover_instead(
        self: &Arc<Self>,
        refusal: ConnectError,
    ) -> Result<Handshake, ConnectError> {
        if !may_be_modern(&refusal) {
            return Err(refusal);
        }
        // A transient failure does not show the era.
        let is_lasting = !matches!(refusal, ConnectError::Failed(_));
        let answer = self.discover().await?;
        let hello = match handshake::read_discover(&self.server, &answer)? {
            Discovered::Modern(hello) => hello,
            Discovered::Retry(refusal) => self.discover_again(refusal).await?,
            Discovered::Legacy(_) => return Err(refusal),
        };
        Ok(if is_lasting {
            hello.refusing_initialize()
        } else {
            hello
        })
    }

    /// Sends `server/discover` first; `initialize` unless the answer is that of a modern server.
    async fn discover_or_initialize(self: &Arc<Self>) -> Result<Handshake, ConnectError> {
        // Half of the time, so that there is time for `initialize` if a legacy server does not answer.
        let limit = self.limits.handshake / 2;
        let revision = match tokio::time::timeout(limit, self.discover()).await {
            Ok(Ok(answer)) => match handshake::read_discover(&self.server, &answer)? {
                Discovered::Modern(hello) => return Ok(hello),
                Discovered::Retry(refusal) => return self.discover_again(refusal).await,
                Discovered::Legacy(revision) => revision,
            },
            Ok(Err(error)) if is_permanent(&error) => return Err(error.into()),
            Ok(Err(_)) | Err(_) => Revision::LATEST_LEGACY,
        };
        match self.initialize(revision).await {
            // The server was not ready for the first request.
            Err(refusal @ ConnectError::Handshake { .. }) => {
                let hello = self.discover_again(refusal.clone()).await;
                hello.map_err(|_| refusal)
            }
            hello => hello,
        }
    }

    async fn discover_again(
        self: &Arc<Self>,
        refusal: ConnectError,
    ) -> Result<Handshake, ConnectError> {
        let answer = self.discover().await?;
        match handshake::read_discover(&self.server, &answer)? {
            Discovered::Modern(hello) => Ok(hello),
            Discovered::Retry(_) | Discovered::Legacy(_) => Err(refusal),
        }
    }

    async fn discover(self: &Arc<Self>) -> Result<Answer, UpstreamError> {
        let call = self.call(
            "server/discover",
            &handshake::discover_params(&self.capabilities, self.client_info.as_deref()),
        );
        let call = Call {
            headers: modern_headers("server/discover", None),
            ..call
        };
        let mut exchange = Exchange::send(Arc::clone(self), self.session.load_full(), call);
        exchange.answer().await
    }

    pub(super) fn call(&self, method: &str, params: &str) -> Call {
        let id = self
            .next_id
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Call {
            id,
            body: server_message::write_request(Some(id), method, Some(params)),
            headers: HeaderMap::new(),
            kind: RequestKind::Handshake,
        }
    }

    /// Starts a session and makes it the current one.
    pub(super) async fn initialize(
        self: &Arc<Self>,
        first: Revision,
    ) -> Result<Handshake, ConnectError> {
        self.initialize_with(first, &HeaderMap::new()).await
    }

    async fn initialize_with(
        self: &Arc<Self>,
        first: Revision,
        headers: &HeaderMap,
    ) -> Result<Handshake, ConnectError> {
        let mut revision = first;
        for _ in 0..2 {
            let blank = Session::new(&self.configured_headers, revision, false, None, 0);
            let info = self.client_info.as_deref();
            let call = self.call(
                "initialize",
                &handshake::initialize_params(revision, &self.capabilities, info),
            );
            let call = Call {
                headers: headers.clone(),
                ..call
            };
            let mut exchange = Exchange::send(Arc::clone(self), Arc::new(blank), call);
            let answer = exchange
                .answer()
                .await
                .map_err(|error| self.explain(error))?;
            match handshake::read_initialize(&self.server, revision, &answer)? {
                Initialized::Ready(hello) => {
                    self.enter(&hello, &exchange).await?;
                    return Ok(hello);
                }
                Initialized::Retry(other) => revision = other,
            }
        }
        Err(ConnectError::Revision {
            server: Arc::clone(&self.server),
            theirs: format!("{revision} only when asked for another"),
        })
    }

    async fn enter(
        self: &Arc<Self>,
        hello: &Handshake,
        exchange: &Exchange,
    ) -> Result<(), ConnectError> {
        let generation = *self.generation.borrow() + 1;
        let id = exchange.session_id().cloned();
        let session = Session::new(
            &self.configured_headers,
            hello.revision,
            true,
            id,
            generation,
        );
        let session = Arc::new(session);
        let notification = server_message::write_request(None, "notifications/initialized", None);
        self.deliver(&session, &HeaderMap::new(), notification)
            .await?;
        let id = self
            .next_id
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let ping = Call {
            id,
            body: server_message::write_request(Some(id), "ping", None),
            headers: HeaderMap::new(),
            kind: RequestKind::Handshake,
        };
        let mut ping = Exchange::send(Arc::clone(self), Arc::clone(&session), ping);
        // Servers register tools right after `notifications/initialized`. Once they answer, this is done.
        let pinged = tokio::time::timeout(self.limits.probe, ping.answer()).await;
        let is_refused = matches!(pinged, Ok(Err(UpstreamError::Status { .. })));
        if pinged.is_err() || is_refused || ping.is_not_found() {
            // Later, the same answer would mean that the server hangs, lost the session, or was replaced.
            tracing::warn!(server = %self.server, "ping after initialize unanswered");
            self.liveness.set_ignores_ping();
        }
        self.restore_log_level(&session).await;
        self.session.store(session);
        self.generation.send_replace(generation);
        Ok(())
    }

    /// Names the usual reason for a refusal of `initialize`.
    fn explain(&self, error: UpstreamError) -> ConnectError {
        match &error {
            UpstreamError::Status {
                status, excerpt, ..
            } if matches!(status.as_u16(), 400 | 404 | 405) => ConnectError::Handshake {
                server: Arc::clone(&self.server),
                what: format!(
                    "`{}` answered `initialize` with HTTP {status} ({excerpt}); check the path of its \
                     address; if it has only the transport of 2024-11-05 (SSE), which Vary does not speak, let \
                     `npx -y mcp-remote URL` as its `command` translate",
                    endpoint(&self.uri)
                ),
            },
            _ => error.into(),
        }
    }
}

/// Whether a server that failed `initialize` with this error may be one without sessions.
fn may_be_modern(refusal: &ConnectError) -> bool {
    match refusal {
        ConnectError::Failed(error) => !is_permanent(error),
        _ => true,
    }
}

/// Whether `initialize` would fail as well.
fn is_permanent(error: &UpstreamError) -> bool {
    match error {
        UpstreamError::Status { status, .. } => {
            matches!(status.as_u16(), 401 | 403 | 407 | 429 | 508)
        }
        UpstreamError::Misbehaved { .. }
        | UpstreamError::TooLarge { .. }
        | UpstreamError::Timeout { .. } => false,
        UpstreamError::Closed { .. }
        | UpstreamError::Unreachable { .. }
        | UpstreamError::Unanswered { .. }
        | UpstreamError::BrokeOff { .. }
        | UpstreamError::Redirect { .. }
        | UpstreamError::Busy { .. }
        | UpstreamError::Unavailable { .. }
        | UpstreamError::Overloaded { .. }
        | UpstreamError::UnusableClaims { .. }
        | UpstreamError::NoConnectionLeft { .. }
        | UpstreamError::Finished { .. } => true,
    }
}

/// Whether a lost connection does not cancel requests in this era.
pub(super) fn is_legacy(session: &Session) -> bool {
    session.era == Era::Legacy
}

const MAX_REPLIES: usize = 32;
const MAX_CANCELLATIONS: usize = 1024;
