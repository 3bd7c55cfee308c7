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
    /// What each of its requests over HTTP has.
    headers: Vec<(String, String)>,
    path: String,
}

#[derive(Debug)]
enum Link {
    /// A connection, and the id of a session.
    Http(RawHttp, Option<String>),
    Pipe(StdioPipe),
}

impl Client {
    /// Connects; a legacy client opens a session.
    pub async fn open(endpoint: &impl Endpoint, kind: ClientKind, capabilities: &Value) -> Self {
        Self::open_with(endpoint, kind, capabilities, &[]).await
    }

    /// Connects, and sends these headers with each request over HTTP.
    pub async fn open_with(
        endpoint: &impl Endpoint,
        kind: ClientKind,
        capabilities: &Value,
        headers: &[(&str, &str)],
    ) -> Self {
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let link = match kind {
            ClientKind::HttpLegacy => {
                let mut http = RawHttp::connect(endpoint.address()).await;
                let post = with_headers(HttpRequest::initialize(capabilities), &headers);
                let session = http.open_session(&post).await;
                Link::Http(http, Some(session))
            }
            ClientKind::HttpModern => Link::Http(RawHttp::connect(endpoint.address()).await, None),
            ClientKind::StdioLegacy => {
                let pipe = endpoint.open_pipe();
                Link::Pipe(pipe.initialize("2025-11-25", capabilities).await)
            }
            ClientKind::StdioModern => Link::Pipe(endpoint.open_pipe()),
        };
        Self {
            kind,
            capabilities: capabilities.clone(),
            link,
            next: 0,
            headers,
            path: "/mcp".to_owned(),
        }
    }

    /// Sends its further requests to this path.
    pub fn at(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// The response to its next request, of which the first has the id 1. On pipes it has the status 0 and no headers.
    pub async fn response(&mut self, method: &str, params: Value) -> HttpResponse {
        self.next += 1;
        let id = json!(self.next);
        let message = if self.kind.is_modern() {
            modern(id, method, params, &self.capabilities)
        } else {
            request(id, method, params)
        };
        match &mut self.link {
            Link::Http(http, session) => {
                let post = match session {
                    Some(session) => HttpRequest::of(session, message.to_string()),
                    None => HttpRequest::modern(&message),
                };
                let post = post.line(&format!("POST {} HTTP/1.1", self.path));
                http.ask(&with_headers(post, &self.headers)).await
            }
            Link::Pipe(pipe) => {
                pipe.send(message.to_string()).await;
                HttpResponse::without_head(pipe.response().await)
            }
        }
    }

    /// The bytes that answer its next request.
    pub async fn text(&mut self, method: &str, params: Value) -> String {
        self.response(method, params).await.text()
    }

    /// The message that answers its next request.
    pub async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.response(method, params).await.json()
    }

    /// The message that answers the call of a tool.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.ask("tools/call", params).await
    }
}

fn with_headers(post: HttpRequest, headers: &[(String, String)]) -> HttpRequest {
    headers
        .iter()
        .fold(post, |post, (name, value)| post.with(name, value))
}
