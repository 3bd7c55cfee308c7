//! A server behind a streamable HTTP endpoint.

mod body;
mod call_table;
mod connect;
mod exchange;
pub(crate) mod get_stream;
mod pool;
pub(crate) mod proxy;
mod recovery;
mod response;
mod session;
mod side_channel;
mod stream;
pub(crate) mod tls;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use http_body_util::Full;
use hyper_util::client::legacy::ResponseFuture;
use tokio::sync::{Mutex, Semaphore, broadcast, watch};

use super::config::{Limits, origin};
use super::error::{UpstreamError, means_other_era, without_server};
use super::mailbox::Budget;
use super::message::{Event, OutOfBand, Request, RequestKind};
use super::secrets::Secrets;
use crate::chain::ConnectionGateways;
use crate::liveness::Liveness;
use crate::server_log_level::ServerLogLevel;
use crate::server_requests::ServerRequests;
use mcp_vary_base::io_error;
use mcp_vary_base::log_backoff::{LogBackoff, is_logged};
use mcp_vary_wire::counters::Counters;
use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::headers::header_value;
use mcp_vary_wire::headers::{MCP_METHOD, MCP_NAME, name_key};
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::server_message;

pub(super) use self::connect::connect;
use self::exchange::Call;
pub(super) use self::exchange::Exchange;
use self::pool::Pool;
pub(super) use self::session::Session;
use crate::http::call_table::CallTable;
pub(super) use crate::http::get_stream::read_standalone_stream;
use crate::http::side_channel::{Accepts, SideChannel, SideChannels};

/// A connection to one endpoint: a pool of sockets, and what the handshake fixed.
pub(super) struct Connection {
    server: Arc<str>,
    limits: Limits,
    capabilities: String,
    client_info: Option<String>,
    /// Whether one client uses the connection alone.
    is_dedicated: bool,
    /// Whether requests lease the connection one after the other.
    is_pooled: bool,
    counters: Arc<Counters>,
    secrets: Secrets,
    /// The gateways behind it.
    behind: ConnectionGateways,
    server_requests: Arc<ServerRequests>,
    uri: Uri,
    /// The address of the proxy on the way to it.
    proxy: Option<String>,
    /// Whether `ca` names authorities for it.
    has_ca: bool,
    pool: Pool,
    next_id: AtomicU64,
    session: ArcSwap<Session>,
    /// Counts the sessions; changes when a new one begins.
    generation: watch::Sender<u64>,
    renewal: Mutex<()>,
    /// Counts how often the standalone stream was opened; earlier messages were missed.
    stream_opened: watch::Sender<u64>,
    /// Whether the server offers no standalone stream, or not in this session. Some servers send the head of its response
    /// only with the first message, so until then the stream may be there.
    stream_refused: AtomicBool,
    /// The generation of the latest session whose standalone stream was opened or refused.
    stream_generation: watch::Sender<u64>,
    configured_headers: HeaderMap,
    /// Whether the last 401 referred to an authorization server.
    wants_login: AtomicBool,
    side_channels: Arc<SideChannels>,
    call_table: Arc<CallTable>,
    budget: Arc<Budget>,
    /// Permits for replies of the gateway to requests of the server.
    reply_permits: Arc<Semaphore>,
    /// Permits for cancellations.
    cancel_permits: Arc<Semaphore>,
    undelivered: AtomicU64,
    skipped_events: AtomicU64,
    failures: LogBackoff,
    /// Permits for answers of clients to requests of the server.
    answer_permits: Arc<Semaphore>,
    events: broadcast::Sender<Event>,
    liveness: Arc<Liveness>,
    /// The result of the first handshake.
    handshake: OnceLock<Handshake>,
    log_level: Arc<ServerLogLevel>,
    closed: AtomicBool,
}

/// Without secrets: only the origin of the address is shown.
impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("server", &self.server)
            .field("uri", &origin(&self.uri))
            .field("session", &self.session)
            .field("configured", &self.configured_headers)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Sends a request; nothing is awaited, the [`Exchange`] runs in its caller.
    pub(super) fn request(
        self: &Arc<Self>,
        request: Request,
        purpose: RequestKind,
    ) -> Result<Exchange, UpstreamError> {
        self.check_open()?;
        let session = self.session.load_full();
        let mut headers = HeaderMap::new();
        if session.era == Era::Modern {
            headers = modern_headers(&request.method, request.name.as_deref());
            headers.extend(request.param_headers);
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let body =
            server_message::write_request(Some(id), &request.method, request.params.as_deref());
        let call = Call {
            id,
            body,
            headers,
            kind: purpose,
        };
        let token = request
            .progress_token
            .filter(|_| session.era == Era::Legacy);
        let may_be_asked = self.is_pooled && request.caller.is_some();
        let asked = may_be_asked.then_some(id);
        let room = (self.limits.message, &self.budget);
        // Messages that name no call arrive on the standalone stream, if there is one.
        let hears_more = session.era == Era::Legacy && self.may_have_stream();
        let owner = request.caller.filter(|_| session.era == Era::Legacy);
        if let Some(owner) = owner {
            self.call_table
                .record_caller(owner, request.out_of_band.client());
        }
        let shared = owner.filter(|_| hears_more && !self.is_dedicated);
        let collects = shared.is_some() && matches!(request.out_of_band, OutOfBand::Call);
        let expected = Accepts {
            progress_token: token.as_deref(),
            server_requests: asked,
            out_of_band: collects,
        };
        let aside = self.side_channels.open(expected, room);
        let flight = shared.map(|_| {
            let receiver = match request.out_of_band {
                OutOfBand::Client(client) => Some(client),
                OutOfBand::Call => aside.as_ref().map(SideChannel::sink),
                OutOfBand::Discard => None,
            };
            self.call_table.insert(id, receiver)
        });
        let exchange = Exchange::send(Arc::clone(self), session, call);
        Ok(exchange.with_side_channel(aside).with_in_flight(flight))
    }

    pub(super) async fn notify(
        self: &Arc<Self>,
        method: &str,
        params: Option<&str>,
    ) -> Result<(), UpstreamError> {
        self.check_open()?;
        let session = self.session.load_full();
        let mut headers = HeaderMap::new();
        if session.era == Era::Modern {
            headers = modern_headers(method, None);
        }
        let delivered = self
            .deliver(
                &session,
                &headers,
                server_message::write_request(None, method, params),
            )
            .await;
        delivered.inspect_err(|error| self.log(error))
    }

    pub(super) const fn server_requests(&self) -> &Arc<ServerRequests> {
        &self.server_requests
    }

    pub(super) const fn liveness(&self) -> &Arc<Liveness> {
        &self.liveness
    }

    pub(super) fn stream_opened(&self) -> watch::Receiver<u64> {
        self.stream_opened.subscribe()
    }

    pub(super) fn session_renewed(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    pub(super) const fn log_level(&self) -> &Arc<ServerLogLevel> {
        &self.log_level
    }

    /// Logs a failed call with its details, which only the operator may see.
    fn log(&self, error: &UpstreamError) {
        match error {
            UpstreamError::Unreachable { .. }
            | UpstreamError::Unanswered { .. }
            | UpstreamError::BrokeOff { .. } => {
                self.pool.renew();
                self.liveness.suspect();
            }
            UpstreamError::Status { status, .. } if means_other_era(*status) => {
                self.liveness.suspect();
            }
            _ => {}
        }
        let (server, error) = (&*self.server, error.details());
        let error = without_server(&error, server);
        match self.failures.next() {
            Some(count) => tracing::warn!(server, count, error, "call failed"),
            None => tracing::debug!(server, error, "call failed"),
        }
    }

    fn check_open(&self) -> Result<(), UpstreamError> {
        if let Some(error) = self.liveness.end_reason() {
            return Err(error.clone());
        }
        if self.closed.load(Ordering::Relaxed) {
            return Err(UpstreamError::closed_by_gateway(&self.server));
        }
        Ok(())
    }

    /// One HTTP request of this session.
    fn send(
        &self,
        method: Method,
        session: &Session,
        more: &HeaderMap,
        body: Bytes,
    ) -> ResponseFuture {
        let mut request = http::Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        let mut headers = session.headers.clone();
        for (name, value) in more {
            headers.insert(name, value.clone());
        }
        *request.headers_mut() = headers;
        self.pool.request(request)
    }

    /// Ends the session at the server, and the calls in flight.
    pub(super) async fn close(&self) {
        if self.closed.swap(true, Ordering::Relaxed) {
            return;
        }
        self.liveness
            .end(UpstreamError::closed_by_gateway(&self.server));
        let session = self.session.load_full();
        if session.id.is_some() {
            let farewell = self.send(Method::DELETE, &session, &HeaderMap::new(), Bytes::new());
            // The server may answer 405 or not at all.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, farewell).await;
        }
        let _ = self.events.send(Event::Closed {
            reason: format!("server `{}` was closed by the gateway", self.server),
        });
    }

    /// Logs an event that is not a message: the first few, then at growing intervals.
    fn skip(&self, why: &str, event: &[u8]) {
        let count = self.skipped_events.fetch_add(1, Ordering::Relaxed) + 1;
        if is_logged(count) {
            let event = self.secrets.excerpt(event, 200);
            tracing::warn!(server = %self.server, count, event, why, "event skipped");
        }
    }

    /// The error for a request without a response. It shows whether the request may have arrived.
    fn delivery_error(&self, error: &hyper_util::client::legacy::Error) -> UpstreamError {
        if error.is_connect() {
            return self.unreachable(error);
        }
        UpstreamError::Unanswered {
            server: Arc::clone(&self.server),
            reason: root_cause(error),
        }
    }

    fn unreachable(&self, error: &(dyn std::error::Error + 'static)) -> UpstreamError {
        let (to, cause) = (endpoint(&self.uri), root_cause(error));
        let reason = match (&self.proxy, tls::advice(error, self.has_ca)) {
            (None, None) => format!("{to}: {cause}"),
            (None, Some(advice)) => format!("{to}: {cause}; {advice}"),
            (Some(proxy), Some(advice)) => {
                format!("through the proxy {proxy}: {to}: {cause}; {advice}")
            }
            // The library's words for a status other than 200 and 407.
            (Some(proxy), None) if cause.ends_with("unsuccessful") => {
                format!("through the proxy {proxy}: the proxy does not connect to {to}; {NO_PROXY}")
            }
            // Only the proxy is connected to; behind it, what fails is TLS.
            (Some(proxy), None) => format!(
                "the proxy {proxy} on the way to {to}: {cause}; correct `HTTPS_PROXY` or `HTTP_PROXY`, or {NO_PROXY}"
            ),
        };
        UpstreamError::Unreachable {
            server: Arc::clone(&self.server),
            reason,
        }
    }

    fn misbehaved(&self, what: impl Into<String>) -> UpstreamError {
        UpstreamError::Misbehaved {
            server: Arc::clone(&self.server),
            what: what.into(),
        }
    }

    fn timeout(&self) -> UpstreamError {
        UpstreamError::Timeout {
            server: Arc::clone(&self.server),
            limit: self.limits.idle,
        }
    }
}

/// The headers that mirror the body of a modern request.
///
/// Source: MCP 2026-07-28, basic/transports/streamable-http, "Standard Request Headers".
fn modern_headers(method: &str, name: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(MCP_METHOD, header_value(method));
    let is_named = name_key(method).is_some();
    if let Some(name) = name.filter(|_| is_named) {
        headers.insert(MCP_NAME, header_value(name));
    }
    headers
}

/// The part of `url` that an operator recognises it by.
fn endpoint(url: &Uri) -> String {
    origin(url) + &shown_path(url.path())
}

/// The path with `...` for the segments that may be keys, which are all but the usual ones.
fn shown_path(path: &str) -> String {
    let segments = path.split('/').map(|segment| match segment {
        "" | "api" | "http" | "mcp" | "messages" | "public" | "rpc" | "server" | "servers"
        | "sse" | "stream" | "v1" | "v2" | "v3" => segment,
        _ => "...",
    });
    segments.collect::<Vec<_>>().join("/")
}

/// Why a connection failed, without the errors around the cause and the number of the system's error.
fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match cause.downcast_ref::<std::io::Error>() {
        Some(error) => io_error::describe(error),
        None => cause.to_string(),
    }
}

const NO_PROXY: &str = "name the host in `NO_PROXY` if no proxy is needed for it";
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const JSON_OR_STREAM: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const CLOSE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);
