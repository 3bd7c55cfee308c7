//! Clients of every kind that receive notifications of changes.

use std::collections::VecDeque;
use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::client::{ClientKind, Endpoint, LegacyClient};
use crate::http_client::{HttpRequest, RawHttp};
use crate::message::{SUBSCRIPTION, VARIANT, modern, request};
use crate::stdio_pipe::StdioPipe;
use crate::wait::soon;

/// The capabilities of a client that declares server variants and nothing else.
pub fn declaring_variants() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/server-variants": {}}})
}

/// A client that receives notifications.
#[derive(Debug)]
pub struct NotificationClient {
    kind: ClientKind,
    capabilities: Value,
    address: SocketAddr,
    legacy: Option<LegacyClient>,
    stream: Option<RawHttp>,
    pipe: Option<StdioPipe>,
    /// The messages that arrived while the client waited for a response.
    received: VecDeque<Value>,
    next: u64,
}

impl NotificationClient {
    /// A session with a stream, or a modern client that subscribes to `filter` in `variant`. It declares server variants.
    pub async fn open(
        endpoint: &impl Endpoint,
        kind: ClientKind,
        filter: Value,
        variant: Option<&str>,
    ) -> Self {
        Self::open_as(endpoint, kind, (filter, variant), &declaring_variants()).await
    }

    /// The same for a client of these capabilities.
    pub async fn open_as(
        endpoint: &impl Endpoint,
        kind: ClientKind,
        (filter, variant): (Value, Option<&str>),
        capabilities: &Value,
    ) -> Self {
        let mut client = Self {
            kind,
            capabilities: capabilities.clone(),
            address: endpoint.address(),
            legacy: None,
            stream: None,
            pipe: None,
            received: VecDeque::new(),
            next: 10,
        };
        match kind {
            ClientKind::HttpLegacy => {
                let legacy = LegacyClient::open(endpoint, "2025-11-25", capabilities).await;
                client.stream = Some(stream_of(endpoint, &legacy).await);
                client.legacy = Some(legacy);
            }
            ClientKind::StdioLegacy => {
                let pipe = endpoint
                    .open_pipe()
                    .initialize("2025-11-25", capabilities)
                    .await;
                client.pipe = Some(pipe);
            }
            ClientKind::HttpModern => {
                let mut http = RawHttp::connect(endpoint.address()).await;
                let listen = listen(&filter, variant, capabilities);
                http.send(&HttpRequest::modern(&listen).bytes()).await;
                assert_eq!(http.head().await.status, 200);
                client.stream = Some(http);
            }
            ClientKind::StdioModern => {
                let mut pipe = endpoint.open_pipe();
                let listen = listen(&filter, variant, capabilities);
                pipe.send(listen.to_string()).await;
                client.pipe = Some(pipe);
            }
        }
        client
    }

    /// The same, after the acknowledgement of a modern one.
    pub async fn listening(
        endpoint: &impl Endpoint,
        kind: ClientKind,
        filter: Value,
        variant: Option<&str>,
    ) -> Self {
        Self::listening_as(endpoint, kind, (filter, variant), &declaring_variants()).await
    }

    /// The same for a client of these capabilities.
    pub async fn listening_as(
        endpoint: &impl Endpoint,
        kind: ClientKind,
        what: (Value, Option<&str>),
        capabilities: &Value,
    ) -> Self {
        let mut client = Self::open_as(endpoint, kind, what, capabilities).await;
        if kind.is_modern() {
            let message = client.receive().await;
            assert_eq!(
                message["method"], "notifications/subscriptions/acknowledged",
                "{message}"
            );
        }
        client
    }

    /// The next message that is not a response; `None` at the end of the stream.
    pub async fn receive_or_end(&mut self) -> Option<Value> {
        if let Some(received) = self.received.pop_front() {
            return Some(received);
        }
        match (&mut self.stream, &mut self.pipe) {
            (Some(stream), _) => soon(stream.event()).await,
            (None, Some(pipe)) => Some(pipe.receive().await),
            (None, None) => None,
        }
    }

    /// The next message that is not a response.
    pub async fn receive(&mut self) -> Value {
        self.receive_or_end().await.expect("a message")
    }

    /// The next notification.
    pub async fn change(&mut self) -> Change {
        let message = self.receive().await;
        assert_eq!(message["jsonrpc"], "2.0");
        assert!(message.get("id").is_none(), "{message}");
        let (params, meta) = (&message["params"], &message["params"]["_meta"]);
        if self.kind.is_modern() {
            assert_eq!(meta[SUBSCRIPTION], "listen", "{message}");
        } else {
            assert!(meta.get(SUBSCRIPTION).is_none(), "{message}");
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let method = text(&message["method"]).unwrap();
        (
            method.strip_prefix("notifications/").unwrap().to_owned(),
            text(&meta[VARIANT]),
            text(&params["uri"]),
        )
    }

    /// Sends a request, and returns its response.
    pub async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let message = match self.kind.is_modern() {
            true => modern(json!(self.next), method, params, &self.capabilities),
            false => request(json!(self.next), method, params),
        };
        if self.kind == ClientKind::HttpModern {
            let mut http = RawHttp::connect(self.address).await;
            return http.ask(&HttpRequest::modern(&message)).await.answer();
        }
        if let Some(legacy) = &mut self.legacy {
            let post = legacy.post(&message);
            return legacy.http.ask(&post).await.answer();
        }
        let pipe = self.pipe.as_mut().unwrap();
        pipe.send(message.to_string()).await;
        loop {
            let message = pipe.receive().await;
            if message["id"] == self.next {
                return message;
            }
            self.received.push_back(message);
        }
    }

    /// Sends a request that succeeds with nothing to say, such as `resources/subscribe`.
    pub async fn succeeds(&mut self, method: &str, params: Value) {
        let answer = self.ask(method, params).await;
        assert_eq!(answer["result"], json!({}), "{:?}: {answer}", self.kind);
    }

    /// Closes the stream of its session. The session stays open.
    pub fn close_stream(&mut self) {
        self.stream = None;
    }

    /// Opens another stream for its session.
    pub async fn open_stream(&mut self, endpoint: &impl Endpoint) {
        self.stream = Some(stream_of(endpoint, self.legacy.as_ref().unwrap()).await);
    }

    /// Disconnects.
    pub fn close(self) {
        drop((self.stream, self.pipe));
    }

    /// The id of its session.
    pub fn session(&self) -> String {
        self.legacy.as_ref().unwrap().session.clone()
    }

    /// Its pipes.
    pub fn pipe(&mut self) -> &mut StdioPipe {
        self.pipe.as_mut().unwrap()
    }
}

/// A notification: its method without the prefix, its variant, its URI.
pub type Change = (String, Option<String>, Option<String>);

/// The notification that a list of `variant` changed.
pub fn changed(list: &str, variant: &str) -> Change {
    (
        format!("{list}/list_changed"),
        Some(variant.to_owned()),
        None,
    )
}

/// The notification that a resource of `variant` changed.
pub fn updated(uri: &str, variant: &str) -> Change {
    let method = "resources/updated".to_owned();
    (method, Some(variant.to_owned()), Some(uri.to_owned()))
}

fn listen(filter: &Value, variant: Option<&str>, capabilities: &Value) -> Value {
    let mut params = json!({"notifications": filter});
    if let Some(variant) = variant {
        params["_meta"][VARIANT] = json!(variant);
    }
    modern(
        json!("listen"),
        "subscriptions/listen",
        params,
        capabilities,
    )
}

/// The stream that a session opens by `GET`.
pub async fn stream_of(endpoint: &impl Endpoint, legacy: &LegacyClient) -> RawHttp {
    let mut http = RawHttp::connect(endpoint.address()).await;
    let get = HttpRequest::of(&legacy.session, "")
        .line("GET /mcp HTTP/1.1")
        .without("Content-Type")
        .with("Accept", "text/event-stream");
    http.send(&get.head()).await;
    assert_eq!(http.head().await.status, 200);
    http
}

/// A filter for every list, and for these resources.
pub fn everything(uris: &[&str]) -> Value {
    json!({
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": uris,
    })
}

/// The stream of a modern client that listens to these tasks, and the acknowledged filter.
pub async fn listening_to_tasks(
    endpoint: &impl Endpoint,
    capabilities: &Value,
    ids: &[&str],
) -> (RawHttp, Value) {
    let mut http = RawHttp::connect(endpoint.address()).await;
    let params = json!({"notifications": {"taskIds": ids}});
    let listen = modern(
        json!("listen"),
        "subscriptions/listen",
        params,
        capabilities,
    );
    http.send(&HttpRequest::modern(&listen).bytes()).await;
    assert_eq!(http.head().await.status, 200);
    let message = soon(http.event()).await.unwrap();
    assert_eq!(
        message["method"], "notifications/subscriptions/acknowledged",
        "{message}"
    );
    assert_eq!(message["params"]["_meta"][SUBSCRIPTION], "listen");
    (http, message["params"]["notifications"].clone())
}
