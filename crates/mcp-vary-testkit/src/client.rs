//! Clients of each era on each transport.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::http_client::{HttpRequest, HttpResponse, RawHttp};
use crate::message::{initialize, modern, request};
use crate::stdio_pipe::StdioPipe;

/// A gateway that clients can connect to, over HTTP and on pipes.
pub trait Endpoint {
    /// Its address for HTTP.
    fn address(&self) -> SocketAddr;

    /// A client on a new pair of pipes.
    fn open_pipe(&self) -> StdioPipe;
}

impl<E: Endpoint> Endpoint for Arc<E> {
    fn address(&self) -> SocketAddr {
        E::address(self)
    }

    fn open_pipe(&self) -> StdioPipe {
        E::open_pipe(self)
    }
}

/// A client with a session over HTTP.
#[derive(Debug)]
pub struct LegacyClient {
    /// Its connection.
    pub http: RawHttp,
    /// The id of its session.
    pub session: String,
    /// The result of `initialize`.
    pub initialized: Value,
}

impl LegacyClient {
    /// Opens a session with `endpoint`.
    pub async fn open(endpoint: &impl Endpoint, revision: &str, capabilities: &Value) -> Self {
        Self::at(endpoint.address(), revision, capabilities).await
    }

    /// Opens a session with the server at `address`.
    pub async fn at(address: SocketAddr, revision: &str, capabilities: &Value) -> Self {
        let mut http = RawHttp::connect(address).await;
        let answer = http
            .ask(&HttpRequest::new(
                initialize(revision, capabilities).to_string(),
            ))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        Self {
            session: answer.header("mcp-session-id").unwrap().to_owned(),
            initialized: answer.json()["result"].clone(),
            http,
        }
    }

    /// `message` in its session.
    pub fn post(&self, message: &Value) -> HttpRequest {
        HttpRequest::of(&self.session, message.to_string())
    }

    /// Sends a request, and returns its response.
    pub async fn ask(&mut self, method: &str, params: Value) -> HttpResponse {
        self.send(&request(json!(1), method, params)).await
    }

    /// Sends a request, and returns the message that answers it.
    pub async fn answer(&mut self, method: &str, params: Value) -> Value {
        self.ask(method, params).await.json()
    }

    /// Sends a message in its session.
    pub async fn send(&mut self, message: &Value) -> HttpResponse {
        self.send_text(message.to_string()).await
    }

    /// Ends its session.
    pub async fn delete(&mut self) {
        let delete = HttpRequest::delete(&self.session);
        assert_eq!(self.http.ask(&delete).await.status, 200);
    }

    /// Sends what may not be a message, in its session.
    pub async fn send_text(&mut self, body: impl Into<Vec<u8>>) -> HttpResponse {
        let post = HttpRequest::of(&self.session, body);
        self.http.ask(&post).await
    }
}

/// The era and the transport of a client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ClientKind {
    /// A session over HTTP.
    HttpLegacy,
    /// Requests over HTTP without a session.
    HttpModern,
    /// A session on pipes.
    StdioLegacy,
    /// Requests on pipes without a session.
    StdioModern,
}

impl ClientKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [
        Self::HttpLegacy,
        Self::HttpModern,
        Self::StdioLegacy,
        Self::StdioModern,
    ];

    /// Whether it speaks 2026-07-28.
    pub fn is_modern(self) -> bool {
        matches!(self, Self::HttpModern | Self::StdioModern)
    }

    /// The bytes that answer one request of a new client with these capabilities.
    pub async fn text(
        self,
        endpoint: &impl Endpoint,
        capabilities: &Value,
        method: &str,
        params: Value,
    ) -> String {
        let mut client = Client::open(endpoint, self, capabilities).await;
        client.text(method, params).await
    }

    /// The same as JSON.
    pub async fn ask(
        self,
        endpoint: &impl Endpoint,
        capabilities: &Value,
        method: &str,
        params: Value,
    ) -> Value {
        let text = self.text(endpoint, capabilities, method, params).await;
        serde_json::from_str(&text).unwrap()
    }

    /// What a gateway says of itself to a new client with these capabilities: the result of `initialize`, or of
    /// `server/discover`.
    pub async fn introduction(self, endpoint: &impl Endpoint, capabilities: &Value) -> Value {
        match self {
            Self::HttpLegacy => {
                let client = LegacyClient::open(endpoint, "2025-11-25", capabilities).await;
                client.initialized
            }
            Self::StdioLegacy => {
                let mut pipe = endpoint.open_pipe();
                pipe.ask(&initialize("2025-11-25", capabilities)).await["result"].take()
            }
            Self::HttpModern | Self::StdioModern => {
                let method = "server/discover";
                self.ask(endpoint, capabilities, method, json!({})).await["result"].take()
            }
        }
    }
}

/// A client of one kind that stays connected.
#[derive(Debug)]
pub struct Client {
    kind: ClientKind,
    capabilities: Value,
    link: Link,
    next: u64,
}

#[derive(Debug)]
enum Link {
    Session(LegacyClient),
    Http(RawHttp),
    Pipe(StdioPipe),
}

impl Client {
    /// Connects; a legacy client opens a session.
    pub async fn open(endpoint: &impl Endpoint, kind: ClientKind, capabilities: &Value) -> Self {
        let revision = "2025-11-25";
        Self {
            kind,
            capabilities: capabilities.clone(),
            link: match kind {
                ClientKind::HttpLegacy => {
                    Link::Session(LegacyClient::open(endpoint, revision, capabilities).await)
                }
                ClientKind::HttpModern => Link::Http(RawHttp::connect(endpoint.address()).await),
                ClientKind::StdioLegacy => Link::Pipe(
                    endpoint
                        .open_pipe()
                        .initialize(revision, capabilities)
                        .await,
                ),
                ClientKind::StdioModern => Link::Pipe(endpoint.open_pipe()),
            },
            next: 0,
        }
    }

    /// The bytes that answer its next request. The first has the id 1.
    pub async fn text(&mut self, method: &str, params: Value) -> String {
        self.next += 1;
        let id = json!(self.next);
        let message = if self.kind.is_modern() {
            modern(id, method, params, &self.capabilities)
        } else {
            request(id, method, params)
        };
        match &mut self.link {
            Link::Session(session) => session.send(&message).await.text(),
            Link::Http(http) => http.ask(&HttpRequest::modern(&message)).await.text(),
            Link::Pipe(pipe) => {
                pipe.send(message.to_string()).await;
                pipe.response().await
            }
        }
    }

    /// The same as JSON.
    pub async fn ask(&mut self, method: &str, params: Value) -> Value {
        let text = self.text(method, params).await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}
