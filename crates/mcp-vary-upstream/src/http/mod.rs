//! A server behind a streamable HTTP endpoint.

mod body;
mod call_table;
mod connect;
mod exchange;
pub(crate) mod get_stream;
mod pool;
mod response;
mod session;
mod side_channel;
mod stream;
mod tls;

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
use super::error::{UpstreamError, means_other_era};
use super::mailbox::Budget;
use super::message::{Event, OutOfBand, Request, RequestKind};
use super::secrets::Secrets;
use crate::chain::BehindConnection;
use crate::liveness::Liveness;
use crate::server_log_level::ServerLogLevel;
use crate::server_requests::ServerRequests;
use mcp_vary_base::log_backoff::LogBackoff;
use mcp_vary_wire::counters::Counters;
use mcp_vary_wire::handshake::Hello;
use mcp_vary_wire::headers::header_value;
use mcp_vary_wire::headers::{MCP_METHOD, MCP_NAME, name_key};
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::server_message;

pub(super) use self::connect::connect;
use self::exchange::Call;
pub(super) use self::exchange::Exchange;
use self::pool::Pool;
pub(super) use self::session::Session;
use crate::http::call_table::Callers;
pub(super) use crate::http::get_stream::listen;
use crate::http::side_channel::{Aside, Asides, Expected};

/// A connection to one endpoint: a pool of sockets, and what the handshake fixed.
pub(super) struct Connection {
    server: Arc<str>,
    limits: Limits,
    capabilities: String,
    /// Whether one client has it alone.
    is_held: bool,
    /// Whether one request after the other has it.
    by_turns: bool,
    counters: Arc<Counters>,
    secrets: Secrets,
    /// The gateways behind it.
    behind: BehindConnection,
    asking: Arc<ServerRequests>,
    uri: Uri,
    pool: Pool,
    next_id: AtomicU64,
    session: ArcSwap<Session>,
    /// Counts the sessions; whoever waits for the next one waits for a change.
    generation: watch::Sender<u64>,
    renewing: Mutex<()>,
    /// Counts how often it was begun to hear what belongs to no request; what was told before that was missed.
    hearings: watch::Sender<u64>,
    /// The latest session whose stream for that was opened, or refused.
    listened: watch::Sender<u64>,
    configured: HeaderMap,
    asides: Arc<Asides>,
    callers: Arc<Callers>,
    budget: Arc<Budget>,
    /// Places for our replies to what the server asks, on their way.
    replying: Arc<Semaphore>,
    /// Places for cancellations on their way.
    withdrawing: Arc<Semaphore>,
    undelivered: AtomicU64,
    strays: AtomicU64,
    failures: LogBackoff,
    /// Places for clients' answers to what the server asks, on their way.
    answering: Arc<Semaphore>,
    events: broadcast::Sender<Event>,
    life: Arc<Liveness>,
    /// What the server said about itself at first.
    hello: OnceLock<Hello>,
    level: Arc<ServerLogLevel>,
    closed: AtomicBool,
}

/// Without what may be secret: the address is shown as logs show it.
impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("server", &self.server)
            .field("uri", &origin(&self.uri))
            .field("session", &self.session)
            .field("configured", &self.configured)
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
        let body = server_message::write(Some(id), &request.method, request.params.as_deref());
        let call = Call {
            id,
            body,
            headers,
            purpose,
        };
        let token = request
            .progress_token
            .filter(|_| session.era == Era::Legacy);
        let may_be_asked = self.by_turns && request.caller.is_some();
        let asked = may_be_asked.then_some(id);
        let room = (self.limits.line, &self.budget);
        // What names no call comes by a stream of its own, and only where there is one.
        let hears_more = session.era == Era::Legacy && *self.hearings.borrow() > 0;
        let owner = request.caller.filter(|_| session.era == Era::Legacy);
        if let Some(owner) = owner {
            self.callers.note(owner, request.out_of_band.client());
        }
        let shared = owner.filter(|_| hears_more && !self.is_held);
        let collects = shared.is_some() && matches!(request.out_of_band, OutOfBand::Call);
        let expected = Expected {
            progress: token.as_deref(),
            asked,
            more: collects,
        };
        let aside = self.asides.open(expected, room);
        let flight = shared.map(|_| {
            let receiver = match request.out_of_band {
                OutOfBand::Client(client) => Some(client),
                OutOfBand::Call => aside.as_ref().map(Aside::hears),
                OutOfBand::Discard => None,
            };
            self.callers.open(id, receiver)
        });
        let exchange = Exchange::send(Arc::clone(self), session, call);
        Ok(exchange.with_aside(aside).with_flight(flight))
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
                server_message::write(None, method, params),
            )
            .await;
        delivered.inspect_err(|error| self.log(error))
    }

    pub(super) const fn asking(&self) -> &Arc<ServerRequests> {
        &self.asking
    }

    pub(super) const fn life(&self) -> &Arc<Liveness> {
        &self.life
    }

    pub(super) fn hearings(&self) -> watch::Receiver<u64> {
        self.hearings.subscribe()
    }

    pub(super) fn renewals(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    pub(super) const fn level(&self) -> &Arc<ServerLogLevel> {
        &self.level
    }

    /// Logs what went wrong for a client: it is told what happened, why is for the operator alone.
    fn log(&self, error: &UpstreamError) {
        match error {
            UpstreamError::Unreachable { .. }
            | UpstreamError::Unanswered { .. }
            | UpstreamError::BrokeOff { .. } => {
                self.pool.renew();
                self.life.suspect();
            }
            UpstreamError::Status { status, .. } if means_other_era(*status) => self.life.suspect(),
            _ => {}
        }
        match self.failures.next() {
            Some(count) => {
                tracing::warn!(server = %self.server, count, error = error.details(), "call failed");
            }
            None => tracing::debug!(server = %self.server, error = error.details(), "call failed"),
        }
    }

    fn check_open(&self) -> Result<(), UpstreamError> {
        if let Some(error) = self.life.end_reason() {
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

    /// Ends the session, so that the server need not remember it, and the calls that still run.
    pub(super) async fn close(&self) {
        if self.closed.swap(true, Ordering::Relaxed) {
            return;
        }
        self.life
            .end(UpstreamError::closed_by_gateway(&self.server));
        let session = self.session.load_full();
        if session.id.is_some() {
            let farewell = self.send(Method::DELETE, &session, &HeaderMap::new(), Bytes::new());
            // 405 and silence are both allowed.
            let _ = tokio::time::timeout(FAREWELL, farewell).await;
        }
        let _ = self.events.send(Event::Closed {
            reason: format!("server `{}` was closed by the gateway", self.server),
        });
    }

    /// Logs an event that is no message: the first few, then ever more rarely.
    fn skip(&self, why: &str, event: &[u8]) {
        let count = self.strays.fetch_add(1, Ordering::Relaxed) + 1;
        if count <= 8 || count.is_power_of_two() {
            let event = self.secrets.excerpt(event, 200);
            tracing::warn!(server = %self.server, count, event, why, "event skipped");
        }
    }

    /// What a request came to that has no reply: whoever asked has to know whether it may have arrived.
    fn lost(&self, error: &hyper_util::client::legacy::Error) -> UpstreamError {
        if error.is_connect() {
            return self.unreachable(error);
        }
        UpstreamError::Unanswered {
            server: Arc::clone(&self.server),
            reason: chain(error),
        }
    }

    fn unreachable(&self, error: &(dyn std::error::Error + 'static)) -> UpstreamError {
        let mut reason = chain(error);
        if let Some(advice) = tls::advice(error) {
            reason = format!("{reason}; {advice}");
        }
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

/// An error with its causes, which say what went wrong below.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const JSON_OR_STREAM: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const FAREWELL: std::time::Duration = std::time::Duration::from_secs(5);
