//! A scripted HTTP endpoint on a port of its own.

#![allow(dead_code, reason = "no test binary needs all of it")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};

/// A request as the endpoint saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) verb: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Seen {
    /// The method of the message, or the verb of a request without one.
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or(&self.verb)
    }

    pub(crate) fn id(&self) -> &Value {
        &self.body["id"]
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// A JSON reply that answers this request.
    pub(crate) fn answer(&self, result: &Value) -> Reply {
        Reply::json(200, &self.message(result))
    }

    pub(crate) fn refuse(&self, status: u16, code: i32, message: &str) -> Reply {
        let error = json!({"code": code, "message": message});
        Reply::json(
            status,
            &json!({"jsonrpc": "2.0", "id": self.id(), "error": error}),
        )
    }

    /// The message that answers this request.
    pub(crate) fn message(&self, result: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.id(), "result": result})
    }
}

/// What the endpoint does with a request.
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Pieces,
    silent: bool,
    /// Whether it is what a modern server says of itself.
    is_modern: bool,
}

impl Reply {
    pub(crate) fn new(status: u16, kind: &str, body: impl Into<Bytes>) -> Self {
        let (sender, pieces) = mpsc::unbounded_channel();
        let body: Bytes = body.into();
        let is_modern = String::from_utf8_lossy(&body).contains("supportedVersions");
        sender.send(body).unwrap();
        Self {
            is_modern,
            status,
            headers: vec![("content-type", kind.to_owned())],
            body: Pieces(pieces),
            silent: false,
        }
    }

    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }

    pub(crate) fn events(body: impl Into<Bytes>) -> Self {
        Self::new(200, "text/event-stream; charset=utf-8", body)
    }

    /// A stream of events that the test goes on writing.
    pub(crate) fn stream() -> (mpsc::UnboundedSender<Bytes>, Self) {
        let (sender, pieces) = mpsc::unbounded_channel();
        let mut reply = Self::events("");
        reply.body = Pieces(pieces);
        (sender, reply)
    }

    /// A reply that ends in the middle, with its connection.
    pub(crate) fn broken() -> Self {
        Self::new(200, "application/json", "{").with_header("content-length", "100")
    }

    /// No reply, ever.
    pub(crate) fn silence() -> Self {
        let mut reply = Self::new(200, "text/plain", "");
        reply.silent = true;
        reply
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// One event of a stream.
pub(crate) fn event(message: &Value) -> String {
    format!("data: {message}\n\n")
}

/// A body whose pieces come through a channel; it ends when the sender is dropped.
pub(crate) struct Pieces(mpsc::UnboundedReceiver<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.0.poll_recv(context);
        piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// Decides about a request; `None` leaves it to what a polite server of that era does.
pub(crate) type Script = Box<dyn Fn(&Seen) -> Option<Reply> + Send + Sync>;

/// The endpoint.
pub(crate) struct Peer {
    pub(crate) url: http::Uri,
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    accepting: tokio::task::JoinHandle<()>,
}

struct Shared {
    script: Script,
    seen: Mutex<Vec<Seen>>,
    changed: Notify,
    connections: AtomicUsize,
    /// Requests whose client left before the reply.
    abandoned: AtomicUsize,
    /// Whether the script has answered `server/discover`: then there are no sessions unless it makes some.
    is_modern: AtomicBool,
}

impl Peer {
    pub(crate) async fn start(
        script: impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into(), script).await
    }

    /// At a given address, that of one that was stopped for example.
    pub(crate) async fn start_at(
        address: SocketAddr,
        script: impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            script: Box::new(script),
            seen: Mutex::new(Vec::new()),
            changed: Notify::new(),
            connections: AtomicUsize::new(0),
            abandoned: AtomicUsize::new(0),
            is_modern: AtomicBool::new(false),
        });
        Self {
            url: format!("http://{address}/mcp").parse().unwrap(),
            address,
            accepting: tokio::spawn(accept(listener, Arc::clone(&shared))),
            shared,
        }
    }

    /// Ends it, and all connections to it, as when its process is killed.
    pub(crate) async fn stop(mut self) -> SocketAddr {
        self.accepting.abort();
        let _ = (&mut self.accepting).await;
        self.address
    }

    /// The requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// Those with this method or verb.
    pub(crate) fn of(&self, method: &str) -> Vec<Seen> {
        let seen = self.seen().into_iter();
        seen.filter(|seen| seen.method() == method).collect()
    }

    /// Waits until `count` requests with this method or verb have come.
    pub(crate) async fn saw(&self, method: &str, count: usize) -> Vec<Seen> {
        self.until(|| self.of(method).len() >= count).await;
        self.of(method)
    }

    pub(crate) async fn saw_abandoned(&self, count: usize) {
        let abandoned = || self.shared.abandoned.load(Ordering::SeqCst);
        self.until(|| abandoned() >= count).await;
    }

    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    async fn until(&self, holds: impl Fn() -> bool) {
        loop {
            let changed = self.shared.changed.notified();
            if holds() {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        shared.connections.fetch_add(1, Ordering::SeqCst);
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let service = service_fn(|request| serve(request, &shared));
            // A client that leaves early is what some tests are about.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn serve(
    request: Request<Incoming>,
    shared: &Arc<Shared>,
) -> Result<Response<Pieces>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    let seen = Seen {
        verb: head.method.to_string(),
        headers: head.headers,
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    };
    shared.seen.lock().unwrap().push(seen.clone());
    shared.changed.notify_waiters();
    let scripted = (shared.script)(&seen);
    if scripted.as_ref().is_some_and(|reply| reply.is_modern) {
        shared.is_modern.store(true, Ordering::SeqCst);
    }
    let reply = scripted.unwrap_or_else(|| match seen.method() {
        "initialize" if shared.is_modern.load(Ordering::SeqCst) => {
            seen.refuse(400, -32601, "Method not found")
        }
        _ => politely(&seen),
    });
    if reply.silent {
        let _guard = Abandoned(shared);
        std::future::pending::<()>().await;
    }
    let mut response = Response::new(reply.body);
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap();
    for (name, value) in reply.headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    Ok(response)
}

struct Abandoned<'a>(&'a Shared);

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        self.0.abandoned.fetch_add(1, Ordering::SeqCst);
        self.0.changed.notify_waiters();
    }
}

/// What a legacy server without streams does.
fn politely(seen: &Seen) -> Reply {
    match seen.method() {
        "initialize" => initialize(seen, "s-1"),
        "ping" => seen.answer(&json!({})),
        "tools/call" => seen.answer(&json!({"echo": seen.body["params"]})),
        "GET" => Reply::new(405, "text/plain", "no stream"),
        "DELETE" => Reply::new(200, "text/plain", ""),
        _ if seen.id().is_null() || seen.body.get("method").is_none() => {
            Reply::new(202, "text/plain", "")
        }
        _ => seen.refuse(400, -32601, "Method not found"),
    }
}

pub(crate) fn initialize(seen: &Seen, session: &str) -> Reply {
    let result = json!({
        "protocolVersion": seen.body["params"]["protocolVersion"],
        "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "peer", "version": "1"},
    });
    seen.answer(&result).with_header("mcp-session-id", session)
}

pub(crate) fn discover(seen: &Seen) -> Reply {
    seen.answer(&json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {"listChanged": true}},
    }))
}
