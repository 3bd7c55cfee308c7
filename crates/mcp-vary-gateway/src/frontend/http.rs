//! The HTTP server: listeners and their connections.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use mcp_vary_upstream::chain;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use super::connections::{ConnectionGuard, Connections};
use super::header_timer::HeaderTimer;
use super::listener_kind::ListenerKind;
use super::responses::rejected;
use super::validation;
use super::write_timeout::WriteTimeout;
use super::{cancel_late_calls, endpoint};
use crate::gateway::{Endpoint, Gateway};

impl Gateway {
    /// Serves clients over streamable HTTP at `/mcp` until `shutdown`, then lets requests in flight finish for at most
    /// `limits.drain`. Streams that only listen end at once. Other listeners of the same gateway continue. If there are
    /// none, the connections to the servers end then, so that clients that still wait are answered with an error.
    ///
    /// # Errors
    ///
    /// When `listener` is not on a loopback address: there is no authentication yet, and without it any machine that
    /// can connect could use the servers.
    pub async fn serve_http(
        self: &Arc<Self>,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let endpoint = self.new_endpoint();
        self.serve(ListenerKind::Mcp, listener, shutdown, Some(endpoint))
            .await
    }

    pub(super) async fn serve(
        self: &Arc<Self>,
        kind: ListenerKind,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
        endpoint: Option<Endpoint>,
    ) -> io::Result<()> {
        refuse_off_loopback(&listener)?;
        let limits = self.current().config.limits;
        let services = &self.services;
        let server = HttpServer {
            kind,
            graceful: GracefulShutdown::new(),
            connections: Connections::new(limits.connections, limits.read_timeout, services),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
        };
        tokio::select! {
            () = self.accept(&listener, &server) => {}
            () = shutdown => {}
        }
        drop(listener);
        server.close(self, endpoint).await;
        Ok(())
    }

    /// Accepts connections, without end and as many at once as the limits allow. If there are more, one is closed.
    async fn accept(self: &Arc<Self>, listener: &TcpListener, server: &HttpServer) {
        loop {
            match listener.accept().await {
                Ok((socket, _)) => {
                    let guard = Arc::new(server.connections.admit().await);
                    let connection = self.connection(socket, server, Arc::clone(&guard));
                    guard.set_task(server.tasks.spawn(connection).abort_handle());
                }
                // Out of file descriptors, or the client has left: other connections must continue.
                Err(error) => {
                    warn!(%error, "connection not accepted");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }

    /// Serves one connection until it ends.
    fn connection(
        self: &Arc<Self>,
        socket: TcpStream,
        server: &HttpServer,
        guard: Arc<ConnectionGuard>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let _ = socket.set_nodelay(true);
        let shared = Arc::new((Arc::clone(self), server.stopping.clone()));
        let kind = server.kind;
        let service = service_fn(move |request: Request<Incoming>| {
            let (shared, guard) = (Arc::clone(&shared), Arc::clone(&guard));
            async move {
                let (gateway, stopping) = &*shared;
                let (head, body) = request.into_parts();
                let in_flight = guard.start_request(&head);
                let is_from_gateway = chain::is_from_gateway(&head.headers);
                if let ListenerKind::Mcp = kind {
                    // Before the request waits: a gateway that connects to itself must not wait for itself.
                    if is_from_gateway
                        && let Err(rejection) =
                            validation::check_chain(&head.headers, &gateway.current())
                    {
                        return Ok(in_flight.respond(rejected(rejection)));
                    }
                    gateway.until_serving().await;
                }
                let snapshot = gateway.current();
                let position = is_from_gateway.then(|| Arc::clone(&snapshot));
                let mut response = endpoint::respond(snapshot, kind, head, body, stopping).await;
                if let Some(snapshot) = position {
                    snapshot.position.add_via(response.headers_mut());
                }
                Ok::<_, Infallible>(in_flight.respond(response))
            }
        });
        let limits = self.current().config.limits;
        let socket = WriteTimeout::new(socket, limits.write_timeout);
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(HeaderTimer::default())
            .header_read_timeout(limits.read_timeout)
            .max_buf_size(limits.headers.max(8 << 10))
            .serve_connection(TokioIo::new(socket), service);
        let connection = server.graceful.watch(connection);
        async move {
            if let Err(error) = connection.await {
                debug!(%error, "connection ended early");
            }
        }
    }
}

/// One listener.
struct HttpServer {
    kind: ListenerKind,
    graceful: GracefulShutdown,
    connections: Arc<Connections>,
    /// Each serves one connection.
    tasks: TaskTracker,
    /// Cancelled when streams that only listen must end, so that connections can close.
    stopping: CancellationToken,
}

impl HttpServer {
    /// Lets requests in flight finish for at most `limits.drain`.
    async fn close(self, gateway: &Gateway, endpoint: Option<Endpoint>) {
        self.stopping.cancel();
        self.tasks.close();
        let drain = gateway.current().config.limits.drain;
        let mut finished = pin!(self.graceful.shutdown());
        if timeout(drain, &mut finished).await.is_err() {
            warn!("requests were still in flight at the end");
            cancel_late_calls(gateway, endpoint.as_ref(), finished).await;
            self.connections.close_all();
        }
        self.tasks.wait().await;
    }
}

fn refuse_off_loopback(listener: &TcpListener) -> io::Result<()> {
    let address = listener.local_addr()?;
    if address.ip().is_loopback() {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        format!(
            "{address} can be reached from other machines, and there is no authentication yet: \
             everybody there could use the server behind; listen on 127.0.0.1 instead"
        ),
    ))
}
