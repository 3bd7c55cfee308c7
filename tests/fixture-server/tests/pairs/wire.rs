//! The response to one HTTP request, message by message.

use std::net::SocketAddr;

use mcp_vary_testkit::http_client::{HttpRequest, HttpResponse, RawHttp};
use serde_json::Value;

/// The answer to one HTTP request: a message, a stream of them, or none.
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: HttpResponse,
    connection: RawHttp,
    /// The id of the last event that had one.
    pub(crate) last_event: Option<String>,
    is_over: bool,
}

impl Answer {
    /// Sends a request on a new connection, and reads the head of its answer.
    pub(crate) async fn to(address: SocketAddr, request: &HttpRequest) -> Self {
        let mut connection = RawHttp::connect(address).await;
        connection.send(&request.bytes()).await;
        let head = connection.head().await;
        Self {
            status: head.status,
            head,
            connection,
            last_event: None,
            is_over: false,
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    /// The next message; none at the end.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        if self.is_over {
            return None;
        }
        if self.header("content-type") != Some("text/event-stream") {
            self.is_over = true;
            let length: usize = self.header("content-length")?.parse().ok()?;
            let body = self.connection.exactly(length).await;
            return (length > 0).then(|| json(&String::from_utf8_lossy(&body)));
        }
        loop {
            let Some(event) = self.connection.written_event().await else {
                self.is_over = true;
                return None;
            };
            let field = |name: &str| {
                let mut lines = event.lines().filter_map(|line| line.strip_prefix(name));
                lines.next().map(str::to_owned)
            };
            if let Some(id) = field("id: ") {
                self.last_event = Some(id);
            }
            if let Some(data) = field("data: ").filter(|data| !data.is_empty()) {
                return Some(json(&data));
            }
        }
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {text}"))
}
