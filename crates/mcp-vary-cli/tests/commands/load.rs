//! Clients of both revisions that send requests until they are stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use mcp_vary_testkit::http_client::{HttpRequest, HttpResponse, RawHttp};
use mcp_vary_testkit::message::{initialize, modern, notification, request};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// What clients counted, and whether they go on.
#[derive(Default)]
pub(crate) struct Load {
    requests: AtomicUsize,
    /// Streams that were opened, and those that a gateway ended.
    opened: AtomicUsize,
    ended: AtomicUsize,
    stops: AtomicBool,
    /// The calls whose answers were right.
    answered: Mutex<BTreeSet<String>>,
    /// When each client began the last request whose answer was right.
    succeeded: Mutex<BTreeMap<usize, Instant>>,
    failures: Mutex<Vec<Failure>>,
}

/// A request without a right answer.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) began: Instant,
    /// Status and body; `closed` if the connection was closed before an answer.
    pub(crate) answer: String,
}

impl Load {
    fn goes_on(&self) -> bool {
        !self.stops.load(Ordering::Relaxed)
    }

    /// Requests with right answers.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Whether each of the clients has had a right answer to a request that it began later.
    pub(crate) fn all_succeeded_since(&self, time: Instant, clients: usize) -> bool {
        let succeeded = self.succeeded.lock().unwrap();
        succeeded.values().filter(|began| **began > time).count() == clients
    }

    /// Streams that were opened, and those that a gateway ended.
    pub(crate) fn streams(&self) -> [usize; 2] {
        [&self.opened, &self.ended].map(|it| it.load(Ordering::Relaxed))
    }

    /// Starts `rounds` clients of each kind: of 2026-07-28, or in a session with these capabilities.
    pub(crate) async fn start(
        self: &Arc<Self>,
        proxy: SocketAddr,
        rounds: usize,
        kinds: &[Option<Value>],
    ) -> Vec<JoinHandle<()>> {
        let mut clients = Vec::new();
        for kind in (0..rounds).flat_map(|_| kinds) {
            let session = match kind {
                Some(capabilities) => Some(session(proxy, capabilities).await),
                None => None,
            };
            let (load, client) = (Arc::clone(self), clients.len());
            clients.push(tokio::spawn(async move {
                load.call_and_list(proxy, client, session).await;
            }));
        }
        clients
    }

    /// Starts clients that listen, `number` of each revision.
    pub(crate) async fn listeners(
        self: &Arc<Self>,
        proxy: SocketAddr,
        number: usize,
    ) -> Vec<JoinHandle<()>> {
        let mut streams = Vec::new();
        for _ in 0..number {
            let listen = json!({"notifications": {"toolsListChanged": true}});
            let listen = modern(json!(1), "subscriptions/listen", listen, &json!({}));
            let get = HttpRequest::of(&session(proxy, &json!({})).await, "")
                .line("GET /mcp HTTP/1.1")
                .with("Accept", "text/event-stream");
            for open in [HttpRequest::modern(&listen), get] {
                let load = Arc::clone(self);
                streams.push(tokio::spawn(async move { load.listen(proxy, open).await }));
            }
        }
        streams
    }

    /// Stops clients; returns the calls that were answered right, and what failed.
    pub(crate) async fn stop(
        &self,
        clients: Vec<JoinHandle<()>>,
    ) -> (BTreeSet<String>, Vec<Failure>) {
        self.stops.store(true, Ordering::Relaxed);
        for client in clients {
            client.await.unwrap();
        }
        let answered = std::mem::take(&mut *self.answered.lock().unwrap());
        (
            answered,
            std::mem::take(&mut *self.failures.lock().unwrap()),
        )
    }

    /// Reads a stream to its end, and opens it again.
    async fn listen(&self, proxy: SocketAddr, open: HttpRequest) {
        while self.goes_on() {
            let mut http = RawHttp::connect(proxy).await;
            http.send(&open.bytes()).await;
            let head = http.head().await;
            assert_eq!(head.status, 200, "a stream is opened");
            self.opened.fetch_add(1, Ordering::Relaxed);
            // The last ones are open when the test ends.
            while http.written_event().await.is_some() {}
            self.ended.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Calls a tool and lists tools in turn. The tool answers with the place that it was asked for.
    async fn call_and_list(&self, proxy: SocketAddr, client: usize, session: Option<String>) {
        let mut http = RawHttp::connect(proxy).await;
        let mut id = 0;
        while self.goes_on() {
            id += 1;
            let place = format!("{client}-{id}.");
            let (method, params) = match id % 2 {
                0 => ("tools/list", json!({})),
                _ => (
                    "tools/call",
                    json!({"name": "get_weather", "arguments": {"location": place}}),
                ),
            };
            let request = match &session {
                Some(session) => {
                    HttpRequest::of(session, request(json!(id), method, params).to_string())
                }
                None => HttpRequest::modern(&modern(json!(id), method, params, &json!({}))),
            };
            let began = Instant::now();
            let answer = http.ask_unless_closed(&request).await;
            let text = answer.as_ref().map(HttpResponse::text).unwrap_or_default();
            let is_right = answer.as_ref().is_some_and(|it| {
                let is_answer =
                    || it.answer()["id"] == json!(id) && it.answer()["result"].is_object();
                it.status == 200 && is_answer() && (id % 2 == 0 || text.contains(&place))
            });
            if is_right {
                self.requests.fetch_add(1, Ordering::Relaxed);
                self.succeeded.lock().unwrap().insert(client, began);
                if id % 2 == 1 {
                    self.answered.lock().unwrap().insert(place);
                }
            } else {
                let answer = answer.map_or_else(
                    || "closed".to_owned(),
                    |it| format!("{}: {text}", it.status),
                );
                let failure = Failure { began, answer };
                self.failures.lock().unwrap().push(failure);
                http = RawHttp::connect(proxy).await;
            }
        }
    }
}

/// Opens a session of 2025-11-25.
pub(crate) async fn session(proxy: SocketAddr, capabilities: &Value) -> String {
    let mut http = RawHttp::connect(proxy).await;
    let first = initialize("2025-11-25", capabilities);
    let opened = http.ask(&HttpRequest::new(first.to_string())).await;
    let id = opened.header("mcp-session-id").unwrap().to_owned();
    let ready = notification("notifications/initialized", json!({}));
    let ready = http.ask(&HttpRequest::of(&id, ready.to_string())).await;
    assert_eq!(ready.status, 202);
    id
}
