//! A scripted MCP server over HTTP, on a free port.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

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

use crate::message::{SUBSCRIPTION, notification};
use crate::wait::soon;

/// A request as the server received it.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// The HTTP method.
    pub verb: String,
    /// The path and the query.
    pub path: String,
    /// The HTTP headers.
    pub headers: HeaderMap,
    /// The message; null if the body is not JSON.
    pub body: Value,
    /// The body as it was written.
    pub text: String,
}

impl ReceivedRequest {
    /// The method of the message; the HTTP method if there is no message.
    pub fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or(&self.verb)
    }

    /// The id of the message; null without one.
    pub fn id(&self) -> &Value {
        &self.body["id"]
    }

    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// A JSON reply with this result.
    pub fn answer(&self, result: &Value) -> Reply {
        Reply::json(200, &self.message(result))
    }

    /// A JSON reply whose result is `result`, byte for byte.
    pub fn answer_text(&self, result: &str) -> Reply {
        let id = self.id();
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        Reply::new(200, "application/json", body)
    }

    /// A JSON reply with this result that opens a session.
    pub fn open(&self, session: impl Into<String>, result: &Value) -> Reply {
        self.answer(result).with_header("mcp-session-id", session)
    }

    /// A JSON reply with an error.
    pub fn refuse(&self, status: u16, code: i32, message: &str) -> Reply {
        let error = json!({"code": code, "message": message});
        let message = json!({"jsonrpc": "2.0", "id": self.id(), "error": error});
        Reply::json(status, &message)
    }

    /// The response message with this result.
    pub fn message(&self, result: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.id(), "result": result})
    }
}

/// The server's reply to a request.
#[derive(Debug)]
pub struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Pieces,
    silent: bool,
    /// Notified when the head may be sent.
    gate: Option<Arc<Notify>>,
    /// Whether it is the description of a modern server.
    is_modern: bool,
}

impl Reply {
    /// A whole body of this content type.
    pub fn new(status: u16, kind: &str, body: impl Into<Bytes>) -> Self {
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
            gate: None,
        }
    }

    /// A JSON body.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }

    /// A body of server-sent events, which ends after them.
    pub fn events(body: impl Into<Bytes>) -> Self {
        Self::new(200, "text/event-stream; charset=utf-8", body)
    }

    /// A stream of events that the test writes; it ends when the sender is dropped.
    pub fn stream() -> (mpsc::UnboundedSender<Bytes>, Self) {
        let (sender, pieces) = mpsc::unbounded_channel();
        let mut reply = Self::events("");
        reply.body = Pieces(pieces);
        (sender, reply)
    }

    /// The stream of a subscription, which begins with the acknowledgement of its `filter`. With the id `null`, the
    /// stream of a legacy session, which has none.
    pub fn subscription(id: &Value, filter: &Value) -> (mpsc::UnboundedSender<Bytes>, Self) {
        let (sender, reply) = Self::stream();
        if !id.is_null() {
            let params = json!({"notifications": filter, "_meta": {SUBSCRIPTION: id}});
            let method = "notifications/subscriptions/acknowledged";
            let _ = sender.send(event(&notification(method, params)).into());
        }
        (sender, reply)
    }

    /// A reply that is cut off when its connection is closed.
    pub fn broken() -> Self {
        Self::new(200, "application/json", "{").with_header("content-length", "100")
    }

    /// Never replies.
    pub fn silence() -> Self {
        let mut reply = Self::new(200, "text/plain", "");
        reply.silent = true;
        reply
    }

    /// Sent, with its head, only once `gate` is notified.
    pub fn after(mut self, gate: &Arc<Notify>) -> Self {
        self.gate = Some(Arc::clone(gate));
        self
    }

    /// With another header.
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// One event of a stream.
pub fn event(message: &Value) -> String {
    format!("data: {message}\n\n")
}

/// A body whose pieces are received from a channel; it ends when the sender is dropped.
#[derive(Debug)]
struct Pieces(mpsc::UnboundedReceiver<Bytes>);

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

/// The reply to a request; `None` for the reply of an ordinary server.
type Script = Box<dyn Fn(&ReceivedRequest) -> Option<Reply> + Send + Sync>;

/// The server.
pub struct ScriptedServer {
    /// Its endpoint.
    pub url: http::Uri,
    /// Its address.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    accepting: tokio::task::JoinHandle<()>,
}

struct Shared {
    script: Script,
    seen: Mutex<Vec<ReceivedRequest>>,
    changed: Notify,
    connections: AtomicUsize,
    /// Requests whose client disconnected before the reply.
    abandoned: AtomicUsize,
    /// Whether the script has answered `server/discover`: then only the script opens sessions.
    is_modern: AtomicBool,
}

impl fmt::Debug for ScriptedServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut server = formatter.debug_struct("ScriptedServer");
        server
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl ScriptedServer {
    /// Starts on a free port. If `script` returns no reply, the server replies like an ordinary one.
    pub async fn start(
        script: impl Fn(&ReceivedRequest) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into(), script).await
    }

    /// Starts at a given address, such as that of a stopped server.
    pub async fn start_at(
        address: SocketAddr,
        script: impl Fn(&ReceivedRequest) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        let listener = soon(bound(address)).await;
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

    /// Ends the server and its connections, as when its process is killed.
    pub async fn stop(mut self) -> SocketAddr {
        self.accepting.abort();
        let _ = (&mut self.accepting).await;
        self.address
    }

    /// The requests so far.
    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// The requests with this method so far.
    pub fn of(&self, method: &str) -> Vec<ReceivedRequest> {
        let received = self.received().into_iter();
        received.filter(|seen| seen.method() == method).collect()
    }

    /// Waits for `count` requests with this method.
    ///
    /// # Panics
    ///
    /// If `count` is 0, since there is nothing to wait for: check [`Self::of`] after an event that follows.
    pub async fn wait_for(&self, method: &str, count: usize) -> Vec<ReceivedRequest> {
        assert!(count > 0, "nothing to wait for");
        self.until(|| self.of(method).len() >= count).await;
        self.of(method)
    }

    /// Waits until `count` requests without a reply have lost their client.
    pub async fn wait_for_abandoned(&self, count: usize) {
        let abandoned = || self.shared.abandoned.load(Ordering::SeqCst);
        self.until(|| abandoned() >= count).await;
    }

    /// The number of accepted connections.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    async fn until(&self, holds: impl Fn() -> bool) {
        soon(async {
            loop {
                let changed = self.shared.changed.notified();
                if holds() {
                    return;
                }
                changed.await;
            }
        })
        .await;
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// A listener at `address`. A client of another test may have the port for a moment.
async fn bound(address: SocketAddr) -> TcpListener {
    loop {
        match TcpListener::bind(address).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            listener => return listener.unwrap(),
        }
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
            // Some tests are about clients that disconnect early.
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
    let seen = ReceivedRequest {
        verb: head.method.to_string(),
        path: head.uri.to_string(),
        headers: head.headers,
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        text: String::from_utf8_lossy(&body).into_owned(),
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
        _ => ordinary_reply(&seen),
    });
    if reply.silent {
        let _guard = Abandoned(shared);
        std::future::pending::<()>().await;
    }
    if let Some(gate) = reply.gate {
        gate.notified().await;
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

/// The reply of a legacy server without streams.
fn ordinary_reply(seen: &ReceivedRequest) -> Reply {
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

/// A reply to `initialize` that opens a session.
pub fn initialize(seen: &ReceivedRequest, session: &str) -> Reply {
    let result = json!({
        "protocolVersion": seen.body["params"]["protocolVersion"],
        "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "peer", "version": "1"},
    });
    seen.answer(&result).with_header("mcp-session-id", session)
}

/// A reply to `server/discover`.
pub fn discover(seen: &ReceivedRequest) -> Reply {
    seen.answer(&json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {"listChanged": true}},
    }))
}
