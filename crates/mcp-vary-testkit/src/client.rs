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
        let id = json!(1);
        match self {
            Self::HttpLegacy => {
                let mut client = LegacyClient::open(endpoint, "2025-11-25", capabilities).await;
                client.ask(method, params).await.text()
            }
            Self::HttpModern => {
                let post = HttpRequest::modern(&modern(id, method, params, capabilities));
                let mut http = RawHttp::connect(endpoint.address()).await;
                http.ask(&post).await.text()
            }
            Self::StdioLegacy => {
                let pipe = endpoint.open_pipe();
                let mut pipe = pipe.initialize("2025-11-25", capabilities).await;
                pipe.send(request(id, method, params).to_string()).await;
                pipe.line().await
            }
            Self::StdioModern => {
                let mut pipe = endpoint.open_pipe();
                pipe.send(modern(id, method, params, capabilities).to_string())
                    .await;
                pipe.line().await
            }
        }
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
}
