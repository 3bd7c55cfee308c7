//! A client's connection, byte by byte, so that it can end anywhere.

use mcp_vary_testkit::http_client::HttpRequest;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// One connection; dropped, it is closed whatever is under way.
pub(super) struct Http {
    stream: TcpStream,
    read: String,
}

impl Http {
    pub(super) async fn connect(address: &str) -> Result<Self, String> {
        let stream = TcpStream::connect(address).await;
        Ok(Self {
            stream: stream.map_err(|error| error.to_string())?,
            read: String::new(),
        })
    }

    pub(super) async fn send(&mut self, text: &str) -> Result<(), String> {
        let sent = self.stream.write_all(text.as_bytes()).await;
        sent.map_err(|error| error.to_string())
    }

    /// Reads until `what` was read, and gives all up to its end.
    pub(super) async fn until(&mut self, what: &str) -> Result<String, String> {
        loop {
            if let Some(at) = self.read.find(what) {
                let unread = self.read.split_off(at + what.len());
                return Ok(std::mem::replace(&mut self.read, unread));
            }
            if self.more().await? == 0 {
                return Err(format!("no `{what}` in {}", self.read));
            }
        }
    }

    /// Reads until the other side closes.
    pub(super) async fn read_to_the_end(&mut self) -> Result<String, String> {
        while self.more().await? > 0 {}
        Ok(std::mem::take(&mut self.read))
    }

    /// A whole answer that is no stream.
    pub(super) async fn answer(&mut self) -> Result<Value, String> {
        let head = self.until("\r\n\r\n").await?;
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_it = name.eq_ignore_ascii_case("content-length");
            is_it.then(|| value.trim().parse::<usize>().ok())?
        });
        let length = length.ok_or_else(|| format!("no length: {head}"))?;
        while self.read.len() < length {
            if self.more().await? == 0 {
                return Err(format!("it ends early: {head}{}", self.read));
            }
        }
        let unread = self.read.split_off(length);
        let body = std::mem::replace(&mut self.read, unread);
        serde_json::from_str(&body).map_err(|error| format!("{error}: {body}"))
    }

    async fn more(&mut self) -> Result<usize, String> {
        let mut buffer = [0; 4096];
        let read = self.stream.read(&mut buffer).await;
        let read = read.map_err(|error| error.to_string())?;
        self.read
            .push_str(&String::from_utf8_lossy(&buffer[..read]));
        Ok(read)
    }
}

/// A request with a body; `session` is empty or the header of one.
pub(super) fn post(session: &str, message: &Value) -> String {
    let post = HttpRequest::new(message.to_string());
    text(&match session.split_once(": ") {
        Some((name, value)) => post.with(name, value.trim_end()),
        None => post,
    })
}

fn text(post: &HttpRequest) -> String {
    String::from_utf8_lossy(&post.bytes()).into_owned()
}

pub(super) fn request(id: u32, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A session, and a connection that it was opened on.
pub(super) struct Legacy {
    pub(super) http: Http,
    pub(super) session: String,
}

impl Legacy {
    pub(super) async fn open(address: &str, capabilities: &Value) -> Result<Self, String> {
        Self::of(address, "2025-11-25", capabilities).await
    }

    pub(super) async fn of(
        address: &str,
        revision: &str,
        capabilities: &Value,
    ) -> Result<Self, String> {
        let mut http = Http::connect(address).await?;
        let message = initialize(revision, capabilities);
        http.send(&post("", &message)).await?;
        let head = http.until("\r\n\r\n").await?;
        let id = head
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "));
        let session = format!("Mcp-Session-Id: {}\r\n", id.ok_or_else(|| head.clone())?);
        http.until("\"id\":1").await?;
        Ok(Self { http, session })
    }

    pub(super) async fn send(&mut self, message: &Value) -> Result<(), String> {
        self.http.send(&post(&self.session, message)).await
    }

    /// Sends something that has no answer, on a connection of its own.
    pub(super) async fn say(&self, message: &Value, address: &str) -> Result<(), String> {
        let mut http = Http::connect(address).await?;
        http.send(&post(&self.session, message)).await?;
        http.until("HTTP/1.1 202").await.map(drop)
    }

    pub(super) async fn cancel(&self, id: u32, address: &str) -> Result<(), String> {
        let cancel = notification("notifications/cancelled", &json!({"requestId": id}));
        self.say(&cancel, address).await
    }

    /// Ends the session, on another connection.
    pub(super) async fn end(&self, address: &str) -> Result<(), String> {
        let http = Http::connect(address).await?;
        let session = self.session.clone();
        let mut other = Self { http, session };
        other.verb("DELETE", "").await?;
        other.http.until("HTTP/1.1 200").await.map(drop)
    }

    /// A request without a body.
    pub(super) async fn verb(&mut self, verb: &str, headers: &str) -> Result<(), String> {
        let session = &self.session;
        let head = format!(
            "{verb} /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{session}{headers}\r\n"
        );
        self.http.send(&head).await
    }

    /// Goes on over another connection; the one before is closed.
    pub(super) async fn reconnect(&mut self, address: &str) -> Result<(), String> {
        self.http = Http::connect(address).await?;
        Ok(())
    }
}

pub(super) fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

pub(super) fn initialize(revision: &str, capabilities: &Value) -> Value {
    let params = json!({
        "protocolVersion": revision,
        "capabilities": capabilities,
        "clientInfo": {"name": "soak", "version": "1"},
    });
    request(1, "initialize", &params)
}

/// A message of 2026-07-28, of a client with these capabilities.
pub(super) fn modern_message(mut message: Value, capabilities: &Value) -> Value {
    let meta = &mut message["params"]["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    meta["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "soak", "version": "1"});
    message
}

/// The same as an HTTP request.
pub(super) fn modern(message: Value, capabilities: &Value) -> String {
    text(&HttpRequest::modern(&modern_message(message, capabilities)))
}
