//! Starts sessions: finds out the era of the server, and completes the handshake.

pub(super) mod renewal;

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcp_vary_base::lock::ScopedLock;
use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::log_level::level_params;
use mcp_vary_wire::revision::Revision;
use mcp_vary_wire::server_message;
use tokio::sync::Mutex;

use self::renewal::Renewal;
use super::attempt::{Attempt, Call};
use super::event_stream_reader::{enter_event_stream, request_event_stream};
use super::headers::{Header, modern_headers};
use super::session::Session;
use super::shared::Shared;
use super::stream::Stream;
use crate::config::UpstreamConfig;
use crate::connect_error::{ConnectError, RAISE_START_TIMEOUT};
use crate::error::{UpstreamError, without_server};
use crate::handshake::{self, Discovered, GRACE, Initialized, Opening};
use crate::handshake_progress::HandshakeProgress;
use crate::message::{Answer, RequestKind};
use crate::server_log_level::ServerLogLevel;

/// Starts the session of a connection, and a new one when the server has lost it.
pub(super) struct Handshaker {
    pub(super) shared: Arc<Shared>,
    capabilities: String,
    client_info: Option<String>,
    is_sse: bool,
    /// The log level, which a new session gets as well.
    pub(super) log_level: Arc<ServerLogLevel>,
    /// Whether the server has opened a stream of the transport of 2024-11-05.
    has_stream: AtomicBool,
    /// The requests of the first handshake.
    progress: HandshakeProgress,
    /// The result of the first handshake.
    first: OnceLock<Handshake>,
    /// Why the server refused `notifications/initialized`, as logged last; shared by all connections to it.
    refused_notification: Arc<ScopedLock<Option<String>>>,
    renewal: Mutex<Renewal>,
}

impl Handshaker {
    pub(super) fn new(config: &UpstreamConfig, shared: Shared) -> Self {
        Self {
            shared: Arc::new(shared),
            capabilities: config.capabilities.clone(),
            client_info: config.client_info.clone(),
            is_sse: config.is_sse,
            log_level: Arc::default(),
            has_stream: AtomicBool::new(false),
            progress: HandshakeProgress::default(),
            first: OnceLock::new(),
            refused_notification: Arc::clone(&config.refused_notification),
            renewal: Mutex::default(),
        }
    }

    /// Starts the first session, within the time limit of handshakes. Errors are without secrets.
    pub(super) async fn connect(&self, opening: Opening) -> Result<Handshake, ConnectError> {
        let endpoint = &self.shared.endpoint;
        let limit = endpoint.limits.handshake;
        let handshake = match tokio::time::timeout(limit, self.open(opening)).await {
            Ok(Ok(handshake)) => handshake,
            Ok(Err(ConnectError::Handshake {
                server,
                what,
                refusal,
            })) => {
                return Err(ConnectError::Handshake {
                    server,
                    what: endpoint.diagnostics.hide(&what),
                    refusal: refusal.map(|error| endpoint.diagnostics.hide(&error)),
                });
            }
            Ok(Err(error)) => return Err(endpoint.explain_failure(error)),
            Err(_elapsed) => {
                return Err(ConnectError::Timeout {
                    server: Arc::clone(&endpoint.server),
                    limit,
                    observed: self.unanswered(),
                });
            }
        };
        Ok(self.first.get_or_init(|| handshake).clone())
    }

    /// How far a server came that was not ready in time, and what to do.
    fn unanswered(&self) -> String {
        let url = self.shared.endpoint.shown();
        let observed = if let Some(progress) = self.progress.summary() {
            format!("`{url}` {progress}; look at the log of the server")
        } else if self.has_stream.load(Ordering::Relaxed) {
            format!(
                "`{url}` opened its event stream (the transport of 2024-11-05, SSE), and did not answer `initialize` there; look \
                 at the log of the server"
            )
        } else {
            format!(
                "`{url}` did not answer `server/discover` or `initialize`; check that an MCP server listens there, and look at \
                 its log"
            )
        };
        format!("{observed}; if it needs longer, {RAISE_START_TIMEOUT}")
    }

    /// Finds out the era of the server.
    async fn open(&self, opening: Opening) -> Result<Handshake, ConnectError> {
        if self.is_sse {
            let limit = self.shared.endpoint.limits.handshake;
            let requested = request_event_stream(&self.shared, limit).await;
            let stream = requested.map_err(|error| self.shared.endpoint.explain_stream(error))?;
            return self.initialize_on_stream(stream, limit).await;
        }
        match opening {
            Opening::Discover => self.discover_or_initialize().await,
            Opening::Initialize => match self.initialize(Revision::LATEST_LEGACY).await {
                Err(error) => self.discover_instead(error).await,
                handshake => handshake,
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
    async fn initialize_or_discover(&self) -> Result<Handshake, ConnectError> {
        let Shared { endpoint, .. } = &*self.shared;
        let headers = modern_headers("initialize", None);
        let mut initializing = pin!(self.initialize_with(Revision::LATEST_LEGACY, &headers));
        match tokio::time::timeout(endpoint.limits.initialize, &mut initializing).await {
            Ok(Ok(handshake)) => return Ok(handshake),
            Ok(Err(error)) => return self.discover_instead(error).await,
            Err(_elapsed) => {}
        }
        tracing::debug!(server = %endpoint.server, "initialize unanswered, server/discover sent");
        tokio::select! {
            biased;
            handshake = &mut initializing => match handshake {
                Ok(handshake) => Ok(handshake),
                Err(error) => self.discover_instead(error).await,
            },
            discovered = self.discover() => match discovered {
                // A server that starts slowly answers both at once.
                Ok(Discovered::Modern(handshake)) => {
                    match tokio::time::timeout(GRACE, initializing).await {
                        Ok(Ok(legacy)) => Ok(legacy),
                        Ok(Err(_)) | Err(_) => Ok(handshake.refusing_initialize()),
                    }
                }
                Ok(Discovered::Retry(_) | Discovered::Legacy(_)) => initializing.await,
                Err(ConnectError::Failed(refusal)) if is_general(&refusal) => {
                    initializing.await.map_err(|_| refusal.into())
                }
                Err(error) => Err(error),
            },
        }
    }

    /// Sends `server/discover` after `initialize` failed: for a server without sessions.
    async fn discover_instead(&self, refusal: ConnectError) -> Result<Handshake, ConnectError> {
        if !may_be_modern(&refusal) {
            return Err(refusal);
        }
        // A transient failure does not show the era.
        let is_lasting = !matches!(refusal, ConnectError::Failed(_));
        let handshake = match self.discover().await? {
            Discovered::Modern(handshake) => handshake,
            Discovered::Retry(refusal) => self.discover_again(refusal).await?,
            Discovered::Legacy(_) => return Err(refusal),
        };
        Ok(if is_lasting {
            handshake.refusing_initialize()
        } else {
            handshake
        })
    }

    /// Sends `server/discover` first; `initialize` unless the answer is that of a modern server.
    async fn discover_or_initialize(&self) -> Result<Handshake, ConnectError> {
        // Half of the time, so that there is time for `initialize` if a legacy server does not answer.
        let limit = self.shared.endpoint.limits.handshake / 2;
        let mut refusal = None;
        let revision = match tokio::time::timeout(limit, self.send_discover()).await {
            Ok(Ok(answer)) => match self.read_discover(&answer)? {
                Discovered::Modern(handshake) => return Ok(handshake),
                Discovered::Retry(refusal) => return self.discover_again(refusal).await,
                Discovered::Legacy(revision) => revision,
            },
            Ok(Err(error)) if is_permanent(&error) => return Err(error.into()),
            Ok(Err(error)) => {
                refusal = Some(error).filter(is_general);
                Revision::LATEST_LEGACY
            }
            Err(_elapsed) => Revision::LATEST_LEGACY,
        };
        match (self.initialize(revision).await, refusal) {
            (Err(_), Some(refusal)) => Err(refusal.into()),
            // The server was not ready for the first request.
            (Err(refusal @ ConnectError::Handshake { .. }), None) => {
                let handshake = self.discover_again(refusal.clone()).await;
                handshake.map_err(|_| refusal)
            }
            (handshake, _) => handshake,
        }
    }

    async fn discover_again(&self, refusal: ConnectError) -> Result<Handshake, ConnectError> {
        match self.discover().await? {
            Discovered::Modern(handshake) => Ok(handshake),
            Discovered::Retry(_) | Discovered::Legacy(_) => Err(refusal),
        }
    }

    async fn discover(&self) -> Result<Discovered, ConnectError> {
        self.read_discover(&self.send_discover().await?)
    }

    fn read_discover(&self, answer: &Answer) -> Result<Discovered, ConnectError> {
        handshake::read_discover(&self.shared.endpoint.server, answer)
    }

    async fn send_discover(&self) -> Result<Answer, UpstreamError> {
        let info = self.client_info.as_deref();
        let params = handshake::discover_params(&self.capabilities, info);
        let headers = modern_headers("server/discover", None);
        let call = self.call("server/discover", Some(&params), &headers);
        let session = self.shared.session.load();
        let mut attempt = Attempt::send(&self.shared, session, call);
        self.answer(&mut attempt).await
    }

    /// Starts a session and makes it the current one.
    async fn initialize(&self, first: Revision) -> Result<Handshake, ConnectError> {
        self.initialize_with(first, &[]).await
    }

    async fn initialize_with(
        &self,
        first: Revision,
        headers: &[Header],
    ) -> Result<Handshake, ConnectError> {
        let blank = |revision| self.shared.endpoint.blank_session(revision, false);
        let refusal = match self.initialize_in(blank, first, headers).await {
            Ok(handshake) => return Ok(handshake),
            Err(refusal) => refusal,
        };
        let error = match refusal {
            InitializeError::Refused(error) if self.may_have_stream(&error) => error,
            refusal => return Err(refusal.into()),
        };
        let endpoint = &self.shared.endpoint;
        let limit = endpoint.limits.probe;
        let stream = match request_event_stream(&self.shared, limit).await {
            Ok(stream) => stream,
            Err(why) => {
                let server = &endpoint.server;
                let message = why.to_string();
                let why = without_server(&message, server);
                tracing::debug!(server = %server, why, "no stream of the transport of 2024-11-05");
                return Err(endpoint.explain_refusal(error, None));
            }
        };
        let handshake = self.initialize_on_stream(stream, limit).await;
        handshake.map_err(|why| {
            let message = why.to_string();
            endpoint.explain_refusal(error, Some(without_server(&message, &endpoint.server)))
        })
    }

    /// Whether a server that refuses `initialize` may have only the transport of 2024-11-05.
    ///
    /// > If it fails with the following HTTP status codes "400 Bad Request", "404 Not Found" or "405 Method Not Allowed":
    /// > Issue a GET request to the server URL, expecting that this will open an SSE stream and return an `endpoint`
    /// > event as the first event. (MCP 2025-11-25, basic/transports, "Backwards Compatibility")
    fn may_have_stream(&self, refusal: &UpstreamError) -> bool {
        let is_first = self.first.get().is_none();
        match refusal {
            UpstreamError::Status { status, .. } => {
                is_first && matches!(status.as_u16(), 400 | 404 | 405)
            }
            _ => false,
        }
    }

    /// Starts a session in the transport of 2024-11-05.
    async fn initialize_on_stream(
        &self,
        stream: Stream,
        limit: Duration,
    ) -> Result<Handshake, ConnectError> {
        let session = enter_event_stream(&self.shared, stream, limit).await?;
        self.has_stream.store(true, Ordering::Relaxed);
        let blank = |_| session.clone();
        let initializing = self.initialize_in(blank, Revision::LATEST_LEGACY, &[]);
        initializing.await.map_err(ConnectError::from)
    }

    async fn initialize_in(
        &self,
        blank: impl Fn(Revision) -> Session,
        first: Revision,
        headers: &[Header],
    ) -> Result<Handshake, InitializeError> {
        let endpoint = &self.shared.endpoint;
        let mut revision = first;
        for _ in 0..2 {
            let info = self.client_info.as_deref();
            let params = handshake::initialize_params(revision, &self.capabilities, info);
            let call = self.call("initialize", Some(&params), headers);
            let blank = Arc::new(blank(revision));
            let mut attempt = Attempt::send(&self.shared, blank, call);
            let received = self.answer(&mut attempt).await;
            let answer = received.map_err(InitializeError::Refused)?;
            match handshake::read_initialize(&endpoint.server, revision, &answer)? {
                Initialized::Ready(handshake) => {
                    self.enter(&handshake, &attempt).await?;
                    return Ok(handshake);
                }
                Initialized::Retry(other) => revision = other,
            }
        }
        Err(InitializeError::Failed(ConnectError::Revision {
            server: Arc::clone(&endpoint.server),
            theirs: format!("{revision} only when asked for another"),
        }))
    }

    /// Completes the session that `initializing` started, and makes it the current one.
    async fn enter(
        &self,
        handshake: &Handshake,
        initializing: &Attempt,
    ) -> Result<(), ConnectError> {
        let shared = &self.shared;
        let endpoint = &shared.endpoint;
        let generation = shared.session.load().generation + 1;
        let mut blank = endpoint.blank_session(handshake.revision, true);
        blank.stream.clone_from(&initializing.session.stream);
        let session = Arc::new(blank.started(initializing.session_id(), generation));
        let notification = server_message::write_request(None, "notifications/initialized", None);
        let delivered = endpoint.deliver(&session, &[], notification).await;
        endpoint.check_open()?;
        if let Err(refusal) = delivered {
            self.log_unread_notification(&refusal);
        }
        let ping = self.call("ping", None, &[]);
        let mut ping = Attempt::send(shared, Arc::clone(&session), ping);
        // Servers register tools right after `notifications/initialized`. Once they answer, this is done.
        let limit = endpoint.limits.first_ping();
        let pinged = tokio::time::timeout(limit, self.answer(&mut ping)).await;
        let is_refused = matches!(pinged, Ok(Err(UpstreamError::Status { .. })));
        if pinged.is_err() || is_refused || ping.is_not_found() {
            // Later, the same answer would mean that the server hangs, lost the session, or was replaced.
            tracing::warn!(server = %endpoint.server, "ping after initialize unanswered");
            endpoint.liveness.set_ignores_ping();
        }
        self.restore_log_level(&session).await;
        shared.session.replace(session);
        Ok(())
    }

    /// Logs, once for each cause, that the server refused `notifications/initialized`: it has answered `initialize`, and may
    /// work.
    fn log_unread_notification(&self, refusal: &UpstreamError) {
        let server = &*self.shared.endpoint.server;
        let details = refusal.details();
        let why = without_server(&details, server);
        let last = self.refused_notification.lock().replace(why.to_owned());
        if last.as_deref() != Some(why) {
            tracing::warn!(
                server,
                why,
                "notifications/initialized refused, the server is used all the same"
            );
        } else {
            tracing::debug!(server, why, "notifications/initialized refused");
        }
    }

    /// Gives a new session the log level that the one before had, as far as that goes.
    async fn restore_log_level(&self, session: &Arc<Session>) {
        let Some(level) = self.log_level.current() else {
            return;
        };
        let endpoint = &self.shared.endpoint;
        let params = level_params(level);
        let call = self.call("logging/setLevel", Some(&params), &[]);
        let mut attempt = Attempt::send(&self.shared, Arc::clone(session), call);
        let answered = tokio::time::timeout(endpoint.limits.probe, attempt.answer()).await;
        if !matches!(answered, Ok(Ok(answer)) if answer.outcome().is_ok()) {
            tracing::warn!(server = %endpoint.server, "the log level of its new session was not set");
            self.log_level.forget();
        }
    }

    async fn answer(&self, attempt: &mut Attempt) -> Result<Answer, UpstreamError> {
        let answer = attempt.answer().await?;
        self.progress.note_answered(attempt.call.id);
        Ok(answer)
    }

    fn call(&self, method: &'static str, params: Option<&str>, headers: &[Header]) -> Call {
        let id = self.shared.next_id();
        if self.first.get().is_none() {
            self.progress.note_sent(id, method);
        }
        Call {
            memory: None,
            id,
            body: server_message::write_request(Some(id), method, params),
            headers: headers.into(),
            kind: RequestKind::Handshake,
            token: None,
        }
    }
}

/// Whether a server that failed `initialize` with this error may be one without sessions.
fn may_be_modern(refusal: &ConnectError) -> bool {
    match refusal {
        ConnectError::Failed(error) => !is_permanent(error) && !is_general(error),
        _ => true,
    }
}

/// Why `initialize` failed.
enum InitializeError {
    /// The request has no answer.
    Refused(UpstreamError),
    /// The answer cannot be used, or what follows it failed.
    Failed(ConnectError),
}

impl From<ConnectError> for InitializeError {
    fn from(error: ConnectError) -> Self {
        Self::Failed(error)
    }
}

impl From<InitializeError> for ConnectError {
    fn from(error: InitializeError) -> Self {
        match error {
            InitializeError::Refused(error) => error.into(),
            InitializeError::Failed(error) => error,
        }
    }
}

/// Whether an error of the first request need not be about its method. `initialize` is sent all the same: "the modern
/// request returns a `4xx` without a recognized modern error body, and the client falls back to `initialize`" (MCP
/// 2026-07-28, basic/versioning). If that fails as well, this is the error.
fn is_general(error: &UpstreamError) -> bool {
    match error {
        UpstreamError::Status { status, .. } => matches!(status.as_u16(), 401 | 403 | 429),
        UpstreamError::Credentials { status, .. } => status.is_some(),
        UpstreamError::Unanswered { .. } | UpstreamError::BrokeOff { .. } => true,
        _ => false,
    }
}

/// Whether `initialize` would fail as well.
fn is_permanent(error: &UpstreamError) -> bool {
    match error {
        UpstreamError::Status { status, .. } => matches!(status.as_u16(), 407 | 508),
        UpstreamError::Credentials { status, .. } => status.is_none(),
        UpstreamError::Misbehaved { .. }
        | UpstreamError::Unreadable { .. }
        | UpstreamError::TooLarge { .. }
        | UpstreamError::NoRoom { .. }
        | UpstreamError::Timeout { .. }
        | UpstreamError::Unanswered { .. }
        | UpstreamError::BrokeOff { .. } => false,
        UpstreamError::Closed { .. }
        | UpstreamError::Unreachable { .. }
        | UpstreamError::Redirect { .. }
        | UpstreamError::Busy { .. }
        | UpstreamError::Unavailable { .. }
        | UpstreamError::Overloaded { .. }
        | UpstreamError::UnusableClaims { .. }
        | UpstreamError::NoConnectionLeft { .. }
        | UpstreamError::Finished { .. } => true,
    }
}
