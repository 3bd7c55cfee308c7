//! The streamable HTTP front: connections, and the three methods of the MCP endpoint.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderName, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use mcp_vary_catalog::selection::variant_selection::{ENDPOINT, VariantRequest};
use mcp_vary_upstream::chain;
use mcp_vary_wire::event;
use mcp_vary_wire::event::EventId;
use mcp_vary_wire::headers::SESSION_ID;
use mcp_vary_wire::response::{INTERNAL_ERROR, INVALID_REQUEST, Reply, RpcError};
use mcp_vary_wire::revision::Era;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use super::cancel_orphans;
use super::connections::{ConnectionGuard, Connections};
use super::post;
use crate::frontend::sse_body::{Body, StandaloneStream as Telling, Stream, understands_priming};
use crate::frontend::validation::{self, Rejection};
use crate::frontend::write_timeout::WriteTimeout;
use crate::gateway::{Endpoint, Gateway};
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::session::Session;
use crate::session::replay::{ReplayReader, ResumedStream};

/// Keeps reverse proxies from holding events back.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

impl Gateway {
    /// Serves clients over streamable HTTP at `/mcp` until `shutdown`, then lets requests in flight
    /// finish, for as long as the limits say. Streams that only listen end at once; other listeners of
    /// the same gateway go on with theirs. When there are none, the connections to the servers end then, so that
    /// whoever still waits is answered with an error.
    ///
    /// # Errors
    ///
    /// When `listener` is not on a loopback address: there is no authentication yet, and without it
    /// everybody in reach could use the server behind.
    pub async fn serve_http(
        self: &Arc<Self>,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let entrance = self.new_endpoint();
        self.serve(AddressKind::Mcp, listener, shutdown, Some(entrance))
            .await
    }

    pub(super) async fn serve(
        self: &Arc<Self>,
        site: AddressKind,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
        entrance: Option<Endpoint>,
    ) -> io::Result<()> {
        refuse_off_loopback(&listener)?;
        let door = HttpServer {
            site,
            ..HttpServer::default()
        };
        tokio::select! {
            () = self.accept(&listener, &door) => {}
            () = shutdown => {}
        }
        drop(listener);
        door.close(self, entrance).await;
        Ok(())
    }

    /// Accepts connections for ever, as many at once as the limits allow; when there are more, one is closed.
    async fn accept(self: &Arc<Self>, listener: &TcpListener, door: &HttpServer) {
        let limits = self.current().config.limits;
        let connections = Connections::new(limits.connections, limits.read_timeout, &self.services);
        loop {
            match listener.accept().await {
                Ok((socket, _)) => {
                    let place = Arc::new(connections.admit(&door.closed).await);
                    let evicted = place.until_evicted();
                    let connection = self.connection(socket, door, place);
                    door.connections
                        .spawn(evicted.run_until_cancelled_owned(connection));
                }
                // Out of file descriptors, or the client is gone already: others must go on.
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
        door: &HttpServer,
        place: Arc<ConnectionGuard>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let _ = socket.set_nodelay(true);
        let shared = Arc::new((Arc::clone(self), door.stopping.clone()));
        let site = door.site;
        let service = service_fn(move |request: Request<Incoming>| {
            let (shared, place) = (Arc::clone(&shared), Arc::clone(&place));
            async move {
                let (gateway, stopping) = &*shared;
                let (head, body) = request.into_parts();
                let in_flight = place.start_request(&head);
                let is_of_gateway = chain::is_from_gateway(&head.headers);
                if let AddressKind::Mcp = site {
                    // Before it waits: a gateway that connects to itself must not wait for itself.
                    if is_of_gateway
                        && let Err(away) =
                            validation::check_chain(&head.headers, &gateway.current())
                    {
                        return Ok(in_flight.respond(rejected(away)));
                    }
                    gateway.until_serving().await;
                }
                let setup = gateway.current();
                let position = is_of_gateway.then(|| Arc::clone(&setup));
                let mut response = setup.http_response(site, head, body, stopping).await;
                if let Some(setup) = position {
                    setup.position.add_via(response.headers_mut());
                }
                Ok::<_, Infallible>(in_flight.respond(response))
            }
        });
        let limits = self.current().config.limits;
        let socket = WriteTimeout::new(socket, limits.write_timeout);
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.read_timeout)
            .max_buf_size(limits.headers.max(8 << 10))
            .serve_connection(TokioIo::new(socket), service);
        let connection = door.graceful.watch(connection);
        async move {
            if let Err(error) = connection.await {
                debug!(%error, "connection ended early");
            }
        }
    }
}

impl ConfigSnapshot {
    async fn http_response(
        self: Arc<Self>,
        site: AddressKind,
        head: Parts,
        body: Incoming,
        stopping: &CancellationToken,
    ) -> Response<Body> {
        let responded = match site {
            AddressKind::Mcp => self.route_http(&head, body, stopping).await,
            AddressKind::Admin => self.admin_response(&head),
        };
        match responded {
            Ok(response) => response,
            Err(away) => rejected(away),
        }
    }

    async fn route_http(
        self: Arc<Self>,
        head: &Parts,
        body: Incoming,
        stopping: &CancellationToken,
    ) -> Result<Response<Body>, Rejection> {
        validation::check_target(&head.uri)?;
        validation::check_origin(&head.headers)?;
        let told = VariantRequest::read(head, &self.config.selection).ok_or_else(|| Rejection {
            status: StatusCode::NOT_FOUND,
            reason: format!("there is nothing here; the MCP endpoint is {ENDPOINT}"),
        })?;
        match head.method {
            Method::POST => {
                validation::check_content_type(&head.headers)?;
                validation::check_accept(
                    &head.headers,
                    &["application/json", "text/event-stream"],
                )?;
                post::answer(self, head, &told, body, stopping).await
            }
            Method::GET => self.open_stream(head, stopping).await,
            Method::DELETE => Ok(self.end_session(head)),
            _ => Ok(not_allowed(head)),
        }
    }

    /// The stream on which a legacy client hears what the server says on its own, or one that it comes back
    /// to.
    async fn open_stream(
        &self,
        head: &Parts,
        stopping: &CancellationToken,
    ) -> Result<Response<Body>, Rejection> {
        if speaks_modern(head) {
            return Ok(not_allowed(head));
        }
        validation::check_accept(&head.headers, &["text/event-stream"])?;
        let session =
            match post::requested_version(&head.headers).and_then(|_| self.session_of(head)) {
                Ok(session) => session,
                Err(failure) => return Ok(json(failure.reply(None, Era::Legacy))),
            };
        let last = last_event_id(head);
        let streams = &self.services.replay_streams;
        match last
            .as_ref()
            .map(|last| streams.resume(session.client, last))
        {
            Some(ResumedStream::Ended) => Ok(not_allowed(head)),
            Some(ResumedStream::Expired(event)) => Ok(event_stream(Body::from(event))),
            Some(ResumedStream::Call(connection)) => {
                let first = sse_preamble(&session, last.as_ref());
                let stream = Stream::of_replay(connection, None, Some(first));
                Ok(event_stream(Body::Stream(stream)))
            }
            Some(ResumedStream::Standalone(connection)) => {
                let first = sse_preamble(&session, last.as_ref());
                self.receive_notification(&session, Some(connection), Some(first), stopping)
                    .await
            }
            Some(ResumedStream::New) | None => {
                self.receive_notification(&session, None, None, stopping)
                    .await
            }
        }
    }

    /// Tells a client what belongs to none of its requests, on the stream that it came back to or on another.
    async fn receive_notification(
        &self,
        session: &Arc<Session>,
        resumed: Option<ReplayReader>,
        first: Option<Bytes>,
        stopping: &CancellationToken,
    ) -> Result<Response<Body>, Rejection> {
        // The connection that a stream had before is not always gone yet.
        let limit = self.config.limits.streams * (1 + usize::from(resumed.is_some()));
        let messages = session.open_stream(limit).ok_or_else(|| Rejection {
            status: StatusCode::TOO_MANY_REQUESTS,
            reason: "this session has too many open streams; close one".to_owned(),
        })?;
        let primed = understands_priming(session.negotiated.revision);
        let first = first.or_else(|| (!primed).then(|| sse_preamble(session, None)));
        let streams = &self.services.replay_streams;
        let connection = resumed.unwrap_or_else(|| streams.open(session.client, None, primed));
        let left = session.remaining(self.services.now());
        let stopping = stopping.clone();
        let over = async move {
            let expired = tokio::time::sleep(left);
            stopping.run_until_cancelled(expired).await;
        };
        let told = Telling {
            messages,
            over: Box::pin(over),
            services: Arc::clone(&self.services),
        };
        self.notify_session(session).await;
        let stream = Stream::of_replay(connection, Some(told), first);
        Ok(event_stream(Body::Stream(stream)))
    }

    fn end_session(&self, head: &Parts) -> Response<Body> {
        if speaks_modern(head) {
            return not_allowed(head);
        }
        let found = post::requested_version(&head.headers).and_then(|_| self.session_of(head));
        let session = match found {
            Ok(session) => session,
            Err(failure) => return json(failure.reply(None, Era::Legacy)),
        };
        let id = head.headers.get(SESSION_ID).and_then(|id| id.to_str().ok());
        self.services.sessions.delete(id.unwrap_or_default());
        self.services.pending_server_requests.forget(session.client);
        self.services.hub.remove_session(session.client);
        self.pool.close_session(session.client);
        self.services.replay_streams.remove_client(session.client);
        json_response(StatusCode::OK, "application/json", Body::empty())
    }

    /// The session that a legacy request belongs to.
    ///
    /// > Servers that require a session ID SHOULD respond to requests without an `MCP-Session-Id`
    /// > header (other than initialization) with HTTP 400 Bad Request. The server MAY terminate the
    /// > session at any time, after which it MUST respond to requests containing that session ID with
    /// > HTTP 404 Not Found. (MCP 2025-11-25, basic/transports, "Session Management")
    pub(crate) fn session_of(&self, head: &Parts) -> Result<Arc<Session>, RpcError> {
        let Some(id) = head.headers.get(SESSION_ID) else {
            let why = "the Mcp-Session-Id header is missing; send `initialize` first";
            return Err(RpcError::invalid_request(why));
        };
        let found = id
            .to_str()
            .ok()
            .and_then(|id| self.services.sessions.find(id));
        found
            .filter(|session| self.placements.order_of(session).is_some())
            .ok_or_else(RpcError::session_not_found)
    }
}

fn rejected(away: Rejection) -> Response<Body> {
    let is_overloaded = away.status == StatusCode::SERVICE_UNAVAILABLE;
    let code = match is_overloaded {
        true => INTERNAL_ERROR,
        false => INVALID_REQUEST,
    };
    let failure = RpcError::new(code, away.reason);
    let body = Body::from(failure.to_bytes(None));
    let mut response = json_response(away.status, "application/json", body);
    if is_overloaded {
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// What a listener is for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum AddressKind {
    /// Clients of the MCP endpoint.
    #[default]
    Mcp,
    /// The operator.
    Admin,
}

/// What one listener has open.
#[derive(Default)]
struct HttpServer {
    site: AddressKind,
    graceful: GracefulShutdown,
    connections: TaskTracker,
    /// Cancelled when streams that only listen must end, so that connections can close.
    stopping: CancellationToken,
    /// Cancelled when connections must end, whatever is in flight.
    closed: CancellationToken,
}

impl HttpServer {
    /// Lets requests in flight finish, for as long as the limits say.
    async fn close(self, gateway: &Gateway, entrance: Option<Endpoint>) {
        self.stopping.cancel();
        self.connections.close();
        let drain = gateway.current().config.limits.drain;
        let mut finished = pin!(self.graceful.shutdown());
        if timeout(drain, &mut finished).await.is_err() {
            warn!("requests were still in flight at the end");
            cancel_orphans(gateway, entrance.as_ref(), finished).await;
            self.closed.cancel();
        }
        self.connections.wait().await;
    }
}

/// Where a client was when it lost its connection; an id that is none of ours says nothing.
fn last_event_id(head: &Parts) -> Option<EventId> {
    EventId::parse(head.headers.get("last-event-id")?.to_str().ok()?)
}

/// What the stream of a `GET` begins with, so that its client sees it open.
///
/// A client that comes back is told where it was, since it may lose this connection, too, before it hears
/// more.
fn sse_preamble(session: &Session, last: Option<&EventId>) -> Bytes {
    match last.filter(|_| understands_priming(session.negotiated.revision)) {
        Some(last) => event::priming_event(&last.to_text()),
        None => Bytes::from_static(b": open\n\n"),
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

/// Whether the request names a stateless revision, which has neither sessions nor their streams.
fn speaks_modern(head: &Parts) -> bool {
    let told = post::requested_version(&head.headers);
    told.is_ok_and(|told| told.is_some_and(|revision| revision.era() == Era::Modern))
}

fn not_allowed(head: &Parts) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    let allowed = if speaks_modern(head) {
        "POST"
    } else {
        "POST, GET, DELETE"
    };
    let headers = response.headers_mut();
    headers.insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

pub(crate) fn json(reply: Reply) -> Response<Body> {
    json_response(reply.status, "application/json", Body::from(reply.body))
}

pub(crate) fn event_stream(events: Body) -> Response<Body> {
    let mut response = json_response(StatusCode::OK, "text/event-stream", events);
    let headers = response.headers_mut();
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    response
}

pub(crate) fn accepted() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

pub(super) fn json_response(status: StatusCode, media: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(media));
    response
}
