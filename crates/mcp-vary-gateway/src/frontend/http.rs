//! The HTTP server: listeners and their connections.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use mcp_vary_base::tasks::TaskTracker;
use mcp_vary_http::connections::{ConnectionGuard, Connections};
use mcp_vary_http::tls::TlsAcceptor;
use mcp_vary_http::{ConnectionTimer, WriteTimeout};
use mcp_vary_upstream::chain;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tracing::{debug, warn};

use super::endpoint::ConnectionScope;
use super::peer::Peer;
use super::request_body::RequestBody;
use super::responses::{Body, rejected};
use super::stopping::Stopping;
use super::validation::{self, Addressing, Rejection};
use super::{admin, authentication, cancel_late_calls, cors, endpoint, probes};
use crate::gateway::{Endpoint, Gateway};
use crate::pipeline::snapshot::ConfigSnapshot;
use mcp_vary_session::authentication::PeerCertificate;

impl Gateway {
    /// Serves clients over streamable HTTP at `/mcp` until `shutdown`, and for `limits.drain_delay` more, in which it is not
    /// ready. Then lets requests in flight finish for at most `limits.drain`. Streams that only listen end one after the
    /// other, within two seconds. Other listeners of the same gateway continue. If there are
    /// none, the connections to the servers end then, so that clients that still wait are answered with an error.
    ///
    /// # Errors
    ///
    /// When `listener` is not on a loopback address and the configuration does not allow that
    /// ([`Config::check_listen_address`](crate::Config::check_listen_address)), or when the files of TLS cannot be used.
    pub async fn serve_http(
        self: &Arc<Self>,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let server = HttpServer {
            tls: self.tls_for(listener.local_addr()?)?,
            ..HttpServer::new(ListenerKind::Mcp, self)
        };
        let endpoint = self.new_endpoint();
        self.serve(server, listener, shutdown, Some(endpoint)).await;
        Ok(())
    }

    /// Answers `GET /status` with the [`Status`](crate::Status) as JSON until `shutdown`. With
    /// [`Config::operator`](crate::Config::operator), also `POST /reload` and `POST /drain` with its token.
    ///
    /// It is for the operator on this machine. Requests from pages of other origins, and under other names of the
    /// machine, are refused as they are on the MCP endpoint. The status contains no secrets.
    ///
    /// # Errors
    ///
    /// When `listener` is not on a loopback address.
    pub async fn serve_admin(
        self: &Arc<Self>,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() {
            let why = format!(
                "{address} can be reached from other machines, and the status is for this one; listen on 127.0.0.1:{}",
                address.port()
            );
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let server = HttpServer::new(ListenerKind::Admin, self);
        self.serve(server, listener, shutdown, None).await;
        Ok(())
    }

    /// Answers as [`serve_admin`](Self::serve_admin) does, on a socket whose file only the operator can open. So commands need
    /// no token there.
    #[cfg(unix)]
    pub async fn serve_admin_socket(
        self: &Arc<Self>,
        listener: tokio::net::UnixListener,
        shutdown: impl Future<Output = ()>,
    ) {
        let server = HttpServer::new(ListenerKind::AdminSocket, self);
        let accept = async {
            loop {
                match listener.accept().await {
                    Ok((socket, _)) => {
                        let guard = Arc::new(server.connections.admit().await);
                        let connection = server.connection(self, Arc::clone(&guard));
                        let serving = connection.serve_user(socket);
                        guard.set_task(server.tasks.spawn(serving).abort_handle());
                    }
                    Err(error) => wait_after(&error).await,
                }
            }
        };
        tokio::select! {
            () = accept => {}
            () = shutdown => {}
        }
        server.close(self, None).await;
    }

    /// Answers `GET /livez`, `/readyz`, `/healthz` and `/metrics` until `shutdown`, to anybody who can connect.
    ///
    /// There are no secrets, but metrics show the names of servers, tools, variants and rules, those included that access
    /// rules hide from clients. There are metrics only if the gateway was opened with
    /// [`Config::metrics`](crate::Config::metrics).
    pub async fn serve_probes(
        self: &Arc<Self>,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) {
        let server = HttpServer::new(ListenerKind::Probes, self);
        self.serve(server, listener, shutdown, None).await;
    }

    /// The TLS of a listener on `address`, if the configuration has any. A configuration must not be held for as long as
    /// the listener serves: others replace it.
    fn tls_for(&self, address: SocketAddr) -> io::Result<Option<Arc<TlsAcceptor>>> {
        let snapshot = self.current();
        let allowed = snapshot.config.check_listen_address(address);
        allowed.map_err(|error| io::Error::new(io::ErrorKind::Unsupported, error))?;
        let tls = snapshot.config.listener.tls.clone().map(TlsAcceptor::open);
        Ok(tls.transpose()?.map(Arc::new))
    }

    async fn serve(
        self: &Arc<Self>,
        server: HttpServer,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
        endpoint: Option<Endpoint>,
    ) {
        let stopping = server.stopping.clone();
        let forwarded = server.forwarded.clone();
        let is_mcp = matches!(server.kind, ListenerKind::Mcp);
        let mut answer_replicas = pin!(async {
            if is_mcp {
                self.answer_replicas(&stopping, &forwarded).await;
            }
            pending().await
        });
        let stops = async {
            shutdown.await;
            if let Some(store) = &self.services.store
                && endpoint.as_ref().is_some_and(Endpoint::is_last)
            {
                store.hand_over().await;
            }
        };
        tokio::select! {
            () = self.accept(&listener, &server) => {}
            () = &mut answer_replicas => {}
            () = stops => {}
        }
        if let Some(endpoint) = &endpoint {
            self.begin_stop(endpoint);
        }
        let closing = async {
            if endpoint.is_some() {
                // Load balancers learn that it is not ready before it accepts no more connections.
                let configured = self.current().config.limits.drain_delay;
                // Those who wait already are accepted at any rate.
                let delay = configured.max(Duration::from_millis(1));
                let _ = timeout(delay, self.accept(&listener, &server)).await;
            }
            drop(listener);
            server.close(self, endpoint).await;
        };
        // What other replicas sent before they learned of the stop is answered, too.
        tokio::select! {
            () = closing => {}
            () = answer_replicas => {}
        }
    }

    /// Accepts connections, without end and as many at once as the limits allow. If there are more, one is closed.
    async fn accept(self: &Arc<Self>, listener: &TcpListener, server: &HttpServer) {
        let mut refusals = 0_u64;
        loop {
            match listener.accept().await {
                Ok((socket, remote)) => {
                    let Ok(local) = socket.local_addr() else {
                        continue;
                    };
                    let peer = Peer::new(remote, local);
                    if matches!(server.kind, ListenerKind::Mcp)
                        && !peer.is_accepted(&self.current().config)
                    {
                        refusals += 1;
                        if refusals.is_power_of_two() {
                            warn!(%remote, refusals, "connection refused, it does not come from one of `trusted-proxies`");
                        }
                        continue;
                    }
                    let guard = Arc::new(server.connections.admit().await);
                    let connection = self.connection(socket, peer, server, Arc::clone(&guard));
                    guard.set_task(server.tasks.spawn(connection).abort_handle());
                }
                Err(error) => wait_after(&error).await,
            }
        }
    }

    /// Serves one connection until it ends.
    fn connection(
        self: &Arc<Self>,
        socket: TcpStream,
        peer: Peer,
        server: &HttpServer,
        guard: Arc<ConnectionGuard>,
    ) -> BoxFuture<'static, ()> {
        let _ = socket.set_nodelay(true);
        let connection = server.connection(self, guard);
        match server.tls.clone() {
            None => Box::pin(connection.serve(socket, peer)),
            Some(tls) => {
                Box::pin(async move { connection.serve_over_tls(&tls, socket, peer).await })
            }
        }
    }
}

/// What connects to a listener.
#[derive(Clone, Copy, Debug)]
enum ListenerKind {
    Mcp,
    /// The operator, or another user of this machine.
    Admin,
    /// The operator, over a socket that only they can open.
    #[cfg(unix)]
    AdminSocket,
    /// Probes of the operator's machines.
    Probes,
}

impl ListenerKind {
    /// Whether the operator's requests are answered.
    const fn is_for_operator(self) -> bool {
        !matches!(self, Self::Mcp | Self::Probes)
    }
}

/// What one connection needs of its listener.
struct HttpConnection {
    gateway: Arc<Gateway>,
    kind: ListenerKind,
    guard: Arc<ConnectionGuard>,
    stopping: Stopping,
    graceful: Watcher,
}

impl HttpConnection {
    /// Completes the handshake, then answers the requests.
    async fn serve_over_tls(self, tls: &Arc<TlsAcceptor>, socket: TcpStream, peer: Peer) {
        // The connection is counted already, so that handshakes are bounded in number as well as in time.
        let limit = self.gateway.current().config.limits.read_timeout;
        let stopping = self.stopping.token.clone();
        let handshake = timeout(limit, tls.accept(socket));
        match stopping.run_until_cancelled(handshake).await {
            Some(Ok(Ok((stream, subject)))) => {
                match subject.as_deref().map(PeerCertificate::of).transpose() {
                    Ok(certificate) => self.serve(stream, peer.encrypted(certificate)).await,
                    Err(error) => debug!(%error, "TLS handshake failed"),
                }
            }
            Some(Ok(Err(error))) => debug!(%error, "TLS handshake failed"),
            Some(Err(_)) => debug!("TLS handshake took too long"),
            None => {}
        }
    }

    /// Answers the requests of the user of this process.
    #[cfg(unix)]
    fn serve_user(self, socket: tokio::net::UnixStream) -> BoxFuture<'static, ()> {
        Box::pin(self.serve(socket, Peer::this_user()))
    }

    /// Answers the requests of `stream` until it ends.
    async fn serve<S>(self, stream: S, peer: Peer)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let limits = self.gateway.current().config.limits;
        let scope = ConnectionScope {
            stopping: self.stopping,
            stream_timer: ConnectionTimer::default(),
        };
        let shared = Arc::new((self.gateway, scope, peer, self.guard));
        let kind = self.kind;
        let service = service_fn(move |request: Request<Incoming>| {
            let shared = Arc::clone(&shared);
            async move {
                let (gateway, scope, peer, guard) = &*shared;
                let (head, body) = request.into_parts();
                let in_flight = guard.start_request(&head);
                let is_from_gateway = chain::is_from_gateway(&head.headers);
                if let ListenerKind::Mcp = kind {
                    // Before the request waits: a gateway that connects to itself must not wait for itself.
                    if is_from_gateway
                        && let Err(rejection) =
                            validation::check_chain(&head.headers, &gateway.current())
                    {
                        return Ok(in_flight.respond(rejected(rejection), false));
                    }
                    if !gateway.is_serving() {
                        if head.method == Method::POST {
                            gateway.expect_era(validation::announced_era(&head.headers));
                        }
                        gateway.until_serving().await;
                    }
                }
                let snapshot = gateway.current();
                if let ListenerKind::Probes = kind {
                    let response = probes::respond(gateway, snapshot, &head, peer.is_local);
                    return Ok(in_flight.respond(response.await, false));
                }
                let chain_snapshot = is_from_gateway.then(|| Arc::clone(&snapshot));
                let body = RequestBody::Client(body);
                let mut response = respond(snapshot, kind, peer, head, body, scope).await;
                if let Some(snapshot) = chain_snapshot {
                    snapshot.position.add_via(response.headers_mut());
                }
                let only_listens = response.body().only_listens();
                Ok::<_, Infallible>(in_flight.respond(response, only_listens))
            }
        });
        let stream = WriteTimeout::new(stream, limits.write_timeout);
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(ConnectionTimer::default())
            .header_read_timeout(limits.read_timeout)
            .max_buf_size(limits.headers.max(8 << 10))
            .serve_connection(TokioIo::new(stream), service);
        if let Err(error) = self.graceful.watch(connection).await {
            debug!(%error, "connection ended early");
        }
    }
}

/// Answers a request. What is checked here depends on the connection, and on no credential.
async fn respond(
    snapshot: Arc<ConfigSnapshot>,
    kind: ListenerKind,
    peer: &Peer,
    mut head: Parts,
    body: RequestBody,
    scope: &ConnectionScope,
) -> Response<Body> {
    let config = &snapshot.config;
    let observers = &snapshot.services.observers;
    let is_recorded = observers.audit.is_some() || observers.tracer.is_some();
    if kind.is_for_operator() {
        head.extensions.insert(peer.address());
        let needs_token = matches!(kind, ListenerKind::Admin);
        return admin::recorded_response(&snapshot, &head, body, needs_token, &scope.stopping)
            .await;
    }
    // Any page may read these documents, whatever its origin.
    if let Some(response) = authentication::metadata(&snapshot, &head) {
        return response;
    }
    if !peer.is_served(config) {
        return rejected(Rejection {
            status: StatusCode::FORBIDDEN,
            reason: "the configuration of the gateway has changed, and does not serve this connection any more".into(),
        });
    }
    let origin = cors::listed_origin(&head.headers, &config.listener);
    let addressing = Addressing::new(&config.listener, peer.is_local);
    let mut response = match addressing.check(&head.uri, &head.headers) {
        Err(rejection) => rejected(rejection),
        Ok(()) => match origin.as_ref().and_then(|_| cors::preflight(&head)) {
            Some(response) => response,
            None => {
                peer.describe(&mut head, config, is_recorded);
                let response = endpoint::respond(snapshot, &head, body, scope).await;
                response.unwrap_or_else(rejected)
            }
        },
    };
    if let Some(origin) = origin {
        cors::expose(response.headers_mut(), origin);
    }
    response
}

/// The most connections for probes, and of the operator's own programs. Few send them, and each scrape writes all series.
const PROBE_CONNECTIONS: usize = 64;

/// Out of file descriptors, or the client has left: other connections must continue.
async fn wait_after(error: &io::Error) {
    warn!(%error, "connection not accepted");
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// The connections of one listener.
struct HttpServer {
    kind: ListenerKind,
    /// Without it the listener speaks plain HTTP.
    tls: Option<Arc<TlsAcceptor>>,
    graceful: GracefulShutdown,
    connections: Arc<Connections>,
    /// Each serves one connection.
    tasks: TaskTracker,
    /// Each answers a request of another replica.
    forwarded: TaskTracker,
    /// Ends streams that only listen, so that connections can close.
    stopping: Stopping,
}

impl HttpServer {
    fn new(kind: ListenerKind, gateway: &Gateway) -> Self {
        let limits = gateway.current().config.limits;
        let counters = &gateway.services.counters;
        let most = match kind {
            ListenerKind::Mcp | ListenerKind::Admin => limits.connections,
            _ => limits.connections.min(PROBE_CONNECTIONS),
        };
        Self {
            kind,
            tls: None,
            graceful: GracefulShutdown::new(),
            connections: Connections::new(most, limits.read_timeout, counters),
            tasks: TaskTracker::new(),
            forwarded: TaskTracker::new(),
            stopping: Stopping::default(),
        }
    }

    fn connection(&self, gateway: &Arc<Gateway>, guard: Arc<ConnectionGuard>) -> HttpConnection {
        HttpConnection {
            gateway: Arc::clone(gateway),
            kind: self.kind,
            guard,
            stopping: self.stopping.clone(),
            graceful: self.graceful.watcher(),
        }
    }

    /// Lets requests in flight finish for at most `limits.drain`.
    async fn close(self, gateway: &Gateway, endpoint: Option<Endpoint>) {
        let drain = gateway.current().config.limits.drain;
        self.stopping.begin(drain);
        self.tasks.close();
        self.forwarded.close();
        let mut finished = pin!(async {
            self.graceful.shutdown().await;
            self.forwarded.wait().await;
        });
        if timeout(drain, &mut finished).await.is_err() {
            warn!("requests were still in flight at the end");
            cancel_late_calls(gateway, endpoint.as_ref(), finished).await;
            self.connections.close_all();
        }
        self.tasks.wait().await;
    }
}
