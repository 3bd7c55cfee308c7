//! One connection to one MCP server, shared by many clients: bytes in, bytes out.
//!
//! Nothing is decoded beyond the envelope, so that what the gateway does not understand arrives as it
//! was sent. [`Upstream::connect`] finds out the server's era by the specification's rules; after that
//! each [`Request`] becomes an [`Exchange`]: notifications in order, then exactly one answer.

#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "the crates of this workspace build and match these values, and are released together"
)]

use mcp_vary_wire::handshake::Hello;

pub mod chain;
mod clients;
mod config;
mod error;
mod handshake;
mod http;
mod learned;
mod list_changes;
mod liveness;
pub mod log_level;
mod mailbox;
mod message;
pub mod secret;
mod secrets;
pub mod sent;
mod server_log_level;
mod server_requests;
mod stdio;
mod supervised;

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{broadcast, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::config::{Isolation, Limits, Repeat, Target, UpstreamConfig};
pub use self::error::{ConnectError, UpstreamError};
pub use self::handshake::Opening;
use crate::server_requests::Asking;
pub use crate::server_requests::ServerRequest;

pub use self::learned::Learned;
use self::message::Purpose;
use crate::liveness::{Life, Running};
pub use crate::server_log_level::UpstreamLevel;
pub use crate::supervised::{Line, State};
pub use crate::supervised::{Places, Refused, Subscription};

pub use self::message::{Answer, Event, Message, Owner, Request};
pub use self::message::{Beside, Hears};
#[doc(hidden)]
pub use self::stdio::read_lines;
use mcp_vary_wire::revision::Era;

/// A connection to a server that is ready.
///
/// # Properties
///
/// Dropping it ends the process or the session and everything the connection runs in the background.
#[derive(Debug)]
pub struct Upstream {
    config: UpstreamConfig,
    hello: Hello,
    link: Link,
    events: broadcast::Sender<Event>,
    /// What was told before anybody listened.
    early: Mutex<Option<broadcast::Receiver<Event>>>,
    client_meta: Vec<(&'static str, String)>,
    level: Arc<UpstreamLevel>,
    life: Arc<Life>,
    asking: Arc<Asking>,
    stop: CancellationToken,
    _stop_when_dropped: DropGuard,
}

#[derive(Debug)]
enum Link {
    Stdio(stdio::Connection),
    Http(Arc<http::Connection>),
}

impl Upstream {
    /// Connects to the server and waits until it is ready.
    ///
    /// # Errors
    ///
    /// When it cannot be started or reached, is no MCP server, shares no revision with us, or takes
    /// longer than its limit.
    pub async fn connect(config: UpstreamConfig) -> Result<Arc<Self>, ConnectError> {
        let opening = match config.legacy_first {
            true => Opening::InitializeOrDiscover,
            false => Opening::Discover,
        };
        Self::connect_unless(config, opening, &CancellationToken::new()).await
    }

    /// The same with `opening`, unless `stop` comes first: then what was begun is ended before the error is returned.
    async fn connect_unless(
        config: UpstreamConfig,
        opening: Opening,
        stop: &CancellationToken,
    ) -> Result<Arc<Self>, ConnectError> {
        let (events, early) = broadcast::channel(EVENTS);
        let (link, hello) = match &config.target {
            Target::Command { .. } => {
                let (connection, hello) = stdio::connect(&config, opening, &events, stop).await?;
                (Link::Stdio(connection), hello)
            }
            Target::Http { url, headers } => {
                let connecting = http::connect(&config, (url, headers), opening, &events);
                let connected = stop.run_until_cancelled(connecting).await;
                let (connection, hello) = connected.unwrap_or_else(|| {
                    let server = config.name.as_str().into();
                    Err(UpstreamError::closed_by_gateway(&server).into())
                })?;
                (Link::Http(connection), hello)
            }
        };
        tracing::info!(server = %config.name, revision = %hello.revision, "server connected");
        // Some servers ask as soon as they are connected to, before anybody can listen.
        let early = config.is_held.then_some(early);
        let upstream = Self::new(config, link, hello, (events, early));
        if let Link::Http(connection) = &upstream.link {
            connection.listened().await;
        }
        Ok(upstream)
    }

    fn new(
        config: UpstreamConfig,
        link: Link,
        hello: Hello,
        (events, early): (broadcast::Sender<Event>, Option<broadcast::Receiver<Event>>),
    ) -> Arc<Self> {
        let stop = CancellationToken::new();
        let upstream = Arc::new(Self {
            client_meta: match hello.era() {
                Era::Legacy => Vec::new(),
                Era::Modern => handshake::client_meta(&config.capabilities),
            },
            level: match &link {
                Link::Stdio(_) => Arc::default(),
                Link::Http(connection) => Arc::clone(connection.level()),
            },
            life: Arc::clone(match &link {
                Link::Stdio(connection) => connection.life(),
                Link::Http(connection) => connection.life(),
            }),
            asking: Arc::clone(match &link {
                Link::Stdio(connection) => connection.asking(),
                Link::Http(connection) => connection.asking(),
            }),
            config,
            hello,
            link,
            events,
            early: Mutex::new(early),
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

    /// What the server said about itself.
    #[must_use]
    pub const fn hello(&self) -> &Hello {
        &self.hello
    }

    /// The client capabilities that the server was told, JSON text.
    #[must_use]
    pub fn capabilities(&self) -> &str {
        &self.config.capabilities
    }

    /// The `_meta` members that each request must carry: key and JSON text. Empty for a legacy server.
    #[must_use]
    pub fn client_meta(&self) -> &[(&'static str, String)] {
        &self.client_meta
    }

    /// Whether arguments that a tool marks travel as headers, too: to a modern endpoint.
    #[must_use]
    pub fn takes_param_headers(&self) -> bool {
        matches!(self.link, Link::Http(_)) && self.hello.era() == Era::Modern
    }

    /// The log level that a legacy server has on this connection; set again when its session is renewed.
    pub fn level(&self) -> &UpstreamLevel {
        &self.level
    }

    /// Changes whenever the server's session was replaced by another, which knows nothing of the one before;
    /// `None` where that cannot happen.
    fn renewals(&self) -> Option<watch::Receiver<u64>> {
        match &self.link {
            Link::Stdio(_) => None,
            Link::Http(connection) => Some(connection.renewals()),
        }
    }

    /// Changes whenever what belongs to no request begins to be heard; what was told before that was missed.
    /// `None` where nothing can be missed.
    fn hearings(&self) -> Option<watch::Receiver<u64>> {
        match &self.link {
            Link::Stdio(_) => None,
            Link::Http(connection) => Some(connection.hearings()),
        }
    }

    /// What the server tells without being asked, from now on. Who asks first for that of a connection that one
    /// client has alone gets what came before, too.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<Event> {
        let early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(early) = { early }.take() {
            return early;
        }
        self.events.subscribe()
    }

    /// Sends a request.
    ///
    /// # Errors
    ///
    /// When the connection is gone or the server does not take the request.
    pub async fn request(&self, request: Request) -> Result<Exchange, UpstreamError> {
        self.open(request, Purpose::Call).await
    }

    /// The same for what the server answers when it is there, however late; nobody's call is taken for it.
    pub async fn wait_for(&self, request: Request) -> Result<Exchange, UpstreamError> {
        self.open(request, Purpose::Wait).await
    }

    async fn open(&self, request: Request, purpose: Purpose) -> Result<Exchange, UpstreamError> {
        let inner = match &self.link {
            Link::Stdio(connection) => Inner::Stdio(connection.request(request, purpose).await?),
            Link::Http(connection) => Inner::Http(connection.request(request, purpose)?),
        };
        let running = (purpose == Purpose::Call).then(|| self.life.run());
        Ok(Exchange {
            inner,
            _running: running,
        })
    }

    /// Sends a notification; `params` is JSON text.
    ///
    /// # Errors
    ///
    /// When the connection is gone or the server does not take the notification.
    pub async fn notify(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: Option<String>,
    ) -> Result<(), UpstreamError> {
        let method = method.into();
        match &self.link {
            Link::Stdio(connection) => connection.notify(&method, params.as_deref()).await,
            Link::Http(connection) => connection.notify(&method, params.as_deref()).await,
        }
    }

    /// Ends the process or the session, and waits until that is done.
    ///
    /// Calls in flight fail.
    pub async fn close(&self) {
        self.stop.cancel();
        match &self.link {
            Link::Stdio(connection) => connection.close().await,
            Link::Http(connection) => connection.close().await,
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        // A process ends with its connection; a session has to be ended.
        if let Link::Http(connection) = &self.link
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
    _running: Option<Running>,
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

    /// Cancels the request at the server, as dropping does, and says why where that can be said.
    pub fn cancel(mut self, reason: Option<&str>) {
        match &mut self.inner {
            Inner::Stdio(exchange) => exchange.cancel(reason),
            Inner::Http(exchange) => exchange.cancel(reason),
        }
    }
}

/// How many events may wait for a subscriber before it misses the oldest.
const EVENTS: usize = 256;
