//! HTTP requests with every byte chosen by the test, and what is answered.

use std::fmt::Write as _;
use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::message::{initialize, modern};
use crate::wait::soon;

/// One HTTP request. A test changes what it wants to be wrong.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl HttpRequest {
    /// A `POST` without session or version.
    pub fn new(body: impl Into<Vec<u8>>) -> Self {
        let headers = [
            ("Host", "localhost"),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        Self {
            line: "POST /mcp HTTP/1.1".to_owned(),
            headers: headers
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            body: body.into(),
        }
    }

    /// A `POST` in a session.
    pub fn of(session: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::new(body).with("Mcp-Session-Id", session)
    }

    /// A `POST` with the headers that 2026-07-28 requires.
    pub fn modern(message: &Value) -> Self {
        let post = Self::new(message.to_string())
            .with("MCP-Protocol-Version", "2026-07-28")
            .with("Mcp-Method", message["method"].as_str().unwrap_or_default());
        let params = &message["params"];
        let named = ["name", "uri", "taskId"].map(|key| params[key].as_str());
        match named.into_iter().flatten().next() {
            Some(name) => post.with("Mcp-Name", name),
            None => post,
        }
    }

    /// The request 1 of a modern client that declares nothing.
    pub fn modern_request(method: &str, params: Value) -> Self {
        Self::modern_request_as(method, params, &json!({}))
    }

    /// The same for a client of these capabilities.
    pub fn modern_request_as(method: &str, params: Value, capabilities: &Value) -> Self {
        Self::modern(&modern(json!(1), method, params, capabilities))
    }

    /// The `initialize` of a client of 2025-11-25.
    pub fn initialize(capabilities: &Value) -> Self {
        Self::new(initialize("2025-11-25", capabilities).to_string())
    }

    /// Opens the stream of a session.
    pub fn get(session: &str) -> Self {
        Self::of(session, "").line("GET /mcp HTTP/1.1")
    }

    /// Ends a session.
    pub fn delete(session: &str) -> Self {
        Self::of(session, "").line("DELETE /mcp HTTP/1.1")
    }

    /// With another request line.
    pub fn line(mut self, line: &str) -> Self {
        line.clone_into(&mut self.line);
        self
    }

    /// With this header instead of any other of its name.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self = self.without(name);
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// With this header in addition to any other of its name.
    pub fn with_another(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Without the headers of this name.
    pub fn without(mut self, name: &str) -> Self {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// The response to it on a new connection.
    pub async fn send_to(&self, address: SocketAddr) -> HttpResponse {
        RawHttp::connect(address).await.ask(self).await
    }

    /// The request line and the headers, to the empty line.
    pub fn head(&self) -> Vec<u8> {
        let mut head = format!("{}\r\n", self.line);
        for (name, value) in &self.headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    /// The whole request.
    pub fn bytes(&self) -> Vec<u8> {
        let length = self.body.len().to_string();
        let mut bytes = self.clone().with("Content-Length", length).head();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// One HTTP response.
#[derive(Debug)]
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    headers: Vec<(String, String)>,
    /// The body, without the framing of chunks.
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// What a message on a line is: a body alone.
    pub(crate) fn without_head(body: String) -> Self {
        Self {
            status: 0,
            headers: Vec::new(),
            body: body.into_bytes(),
        }
    }

    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self
            .headers
            .iter()
            .filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The response message: the body, or the last message of a stream.
    pub fn answer(&self) -> Value {
        let text = self.text();
        let last = text.rsplit("data: ").find(|part| part.starts_with('{'));
        let last = last.unwrap_or(&text);
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Status, error code and id.
    pub fn refusal(&self) -> (u16, i64, Value) {
        let message = self.json();
        let code = message["error"]["code"].as_i64();
        let code = code.unwrap_or_else(|| panic!("no error: {message}"));
        (self.status, code, message["id"].clone())
    }
}

/// A client's HTTP connection.
#[derive(Debug)]
pub struct RawHttp {
    stream: BufReader<TcpStream>,
    events: Vec<u8>,
}

impl RawHttp {
    /// Connects to `address`.
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        Self {
            stream: BufReader::new(stream),
            events: Vec::new(),
        }
    }

    /// Writes as much as the other side reads. It may have stopped reading for a reason.
    pub async fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes).await;
    }

    /// Closes the sending half of the connection.
    pub async fn close_sending(&mut self) {
        self.stream.get_mut().shutdown().await.unwrap();
    }

    /// Sends a request, and reads its response.
    pub async fn ask(&mut self, post: &HttpRequest) -> HttpResponse {
        self.send(&post.bytes()).await;
        self.response().await
    }

    /// The response to the request 1 of a modern client that declares nothing.
    pub async fn ask_modern(&mut self, method: &str, params: Value) -> HttpResponse {
        self.ask_modern_as(method, params, &json!({})).await
    }

    /// The same for a client of these capabilities.
    pub async fn ask_modern_as(
        &mut self,
        method: &str,
        params: Value,
        capabilities: &Value,
    ) -> HttpResponse {
        let post = HttpRequest::modern_request_as(method, params, capabilities);
        self.ask(&post).await
    }

    /// Opens a session; its id.
    pub async fn open_session(&mut self, post: &HttpRequest) -> String {
        let opened = self.ask(post).await;
        assert_eq!(opened.status, 200, "{}", opened.text());
        opened.header("mcp-session-id").unwrap().to_owned()
    }

    /// Sends a request whose response is a stream; the head of that.
    pub async fn open_stream(&mut self, post: &HttpRequest) -> HttpResponse {
        self.send(&post.bytes()).await;
        let head = self.head().await;
        assert_eq!(head.status, 200);
        head
    }

    /// The response to a request; none if the connection is closed before one begins.
    pub async fn ask_unless_closed(&mut self, post: &HttpRequest) -> Option<HttpResponse> {
        self.send(&post.bytes()).await;
        self.response_unless_closed().await
    }

    /// A whole response; none if the connection is closed before it begins.
    pub async fn response_unless_closed(&mut self) -> Option<HttpResponse> {
        let begun = soon(self.stream.fill_buf()).await;
        if begun.is_ok_and(|bytes| !bytes.is_empty()) {
            Some(self.response().await)
        } else {
            None
        }
    }

    /// The head of a response.
    pub async fn head(&mut self) -> HttpResponse {
        let status = self.line().await;
        let status = status
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let mut response = HttpResponse {
            status: status.expect("a status line"),
            headers: Vec::new(),
            body: Vec::new(),
        };
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(": ") else {
                return response;
            };
            response.headers.push((name.to_owned(), value.to_owned()));
        }
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        soon(self.stream.read_line(&mut line)).await.unwrap();
        line.trim_end().to_owned()
    }

    /// A whole response.
    pub async fn response(&mut self) -> HttpResponse {
        let mut response = self.head().await;
        if let Some(length) = response.header("content-length") {
            let length: usize = length.parse().unwrap();
            response.body = self.exactly(length).await;
        } else if response.header("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk().await {
                response.body.extend(chunk);
            }
        }
        response
    }

    /// The next `length` bytes.
    pub async fn exactly(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        soon(self.stream.read_exact(&mut bytes)).await.unwrap();
        bytes
    }

    async fn chunk(&mut self) -> Option<Vec<u8>> {
        let length = self.line().await;
        let length = usize::from_str_radix(&length, 16).ok()?;
        let chunk = self.exactly(length).await;
        self.line().await;
        (length > 0).then_some(chunk)
    }

    /// The message of the next event that has one; none at the end of the stream.
    pub async fn event(&mut self) -> Option<Value> {
        loop {
            let event = self.written_event().await?;
            let data: String = event
                .lines()
                .filter_map(|line| line.strip_prefix("data: "))
                .collect();
            if !data.is_empty() {
                return Some(serde_json::from_str(&data).unwrap());
            }
        }
    }

    /// The bytes of the next event, with its empty line; none at the end of the stream.
    pub async fn written_event(&mut self) -> Option<String> {
        loop {
            let end = self.events.windows(2).position(|two| two == b"\n\n");
            if let Some(end) = end {
                let event: Vec<u8> = self.events.drain(..end + 2).collect();
                return Some(String::from_utf8(event).unwrap());
            }
            let chunk = self.chunk().await?;
            self.events.extend(chunk);
        }
    }

    /// All events until the end of the stream.
    pub async fn events(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.event().await {
            events.push(event);
        }
        events
    }

    /// Whether the other side has closed the connection without a further byte.
    pub async fn is_closed(&mut self) -> bool {
        let mut remaining = Vec::new();
        let read = soon(self.stream.read_to_end(&mut remaining)).await;
        read.is_err() || remaining.is_empty()
    }
}
