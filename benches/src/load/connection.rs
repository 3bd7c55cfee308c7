//! A persistent HTTP/1.1 connection that parses only what is needed to find the end of an answer.

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::script::capabilities;
use crate::endpoint::Endpoint;

/// One connection and the session that was opened on it.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: TcpStream,
    buffer: Vec<u8>,
    /// The assembled content of a chunked body.
    joined: Vec<u8>,
    /// The header line of its principal, if any.
    authorization: String,
    session: Option<String>,
}

/// An answer, which borrows the connection's buffer.
#[derive(Debug)]
pub(crate) struct Response<'a> {
    pub(crate) status: u16,
    head: &'a [u8],
    pub(crate) body: &'a [u8],
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Self {
            socket,
            buffer: Vec::with_capacity(16 << 10),
            joined: Vec::new(),
            authorization: String::new(),
            session: None,
        })
    }

    /// With a header line that names the principal of its requests.
    pub(crate) fn with_authorization(mut self, line: String) -> Self {
        self.authorization = line;
        self
    }

    /// The header lines of the principal and the session; empty without either.
    pub(crate) fn session(&self) -> &str {
        self.session.as_deref().unwrap_or(&self.authorization)
    }

    /// Opens a legacy session, if the server has any.
    pub(crate) async fn initialize(&mut self, place: &Endpoint) -> io::Result<()> {
        self.initialize_with(place, &[], false).await
    }

    /// Like [`initialize`](Self::initialize), for a client that declares these tags, and elicitation if `is_askable`.
    pub(crate) async fn initialize_with(
        &mut self,
        place: &Endpoint,
        tags: &[&str],
        is_askable: bool,
    ) -> io::Result<()> {
        let mut capabilities = capabilities(tags);
        if is_askable {
            capabilities["elicitation"] = json!({});
        }
        let capabilities = capabilities.to_string();
        let message = INITIALIZE.replace("CAPABILITIES", &capabilities);
        let response = self
            .exchange(&post(place, &self.authorization, &message))
            .await?;
        if response.status != 200 {
            let body = String::from_utf8_lossy(response.body).into_owned();
            let why = format!("`initialize` was answered with {}: {body}", response.status);
            return Err(io::Error::other(why));
        }
        let id = response.header("mcp-session-id").map(Cow::into_owned);
        let principal = &self.authorization;
        self.session = id.map(|id| format!("{principal}Mcp-Session-Id: {id}\r\n"));
        let initialized = post(place, self.session(), INITIALIZED);
        self.exchange(&initialized).await.map(drop)
    }

    /// Opens the standalone stream of the session, and keeps it open.
    pub(crate) async fn listen(&mut self, place: &Endpoint) -> io::Result<()> {
        let Endpoint {
            address,
            path,
            headers,
        } = place;
        let session = self.session();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\
             MCP-Protocol-Version: 2025-11-25\r\n{headers}{session}\r\n"
        );
        self.subscribe(request.as_bytes()).await
    }

    /// Sends a request whose answer is a stream, and keeps that open.
    pub(crate) async fn subscribe(&mut self, request: &[u8]) -> io::Result<()> {
        self.socket.write_all(request).await?;
        self.buffer.clear();
        self.head().await?;
        match self.buffer.get(9..12) {
            Some(b"200") => Ok(()),
            _ => Err(io::Error::other("the stream was refused")),
        }
    }

    /// Waits until `wanted` is received on the stream.
    pub(crate) async fn read_until(&mut self, wanted: &[u8]) -> io::Result<()> {
        loop {
            if let Some(at) = find(&self.buffer, wanted) {
                self.buffer.drain(..at + wanted.len());
                return Ok(());
            }
            self.more().await?;
        }
    }

    /// How often `wanted` has been received on the stream. Each occurrence is counted once.
    pub(crate) fn count_received(&mut self, wanted: &[u8]) -> usize {
        while matches!(self.socket.try_read_buf(&mut self.buffer), Ok(1..)) {}
        let mut count = 0;
        while let Some(at) = find(&self.buffer, wanted) {
            self.buffer.drain(..at + wanted.len());
            count += 1;
        }
        count
    }

    /// Sends one request and reads its whole answer.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> io::Result<Response<'_>> {
        self.socket.write_all(request).await?;
        self.buffer.clear();
        self.joined.clear();
        let head = self.head().await?;
        let length = header(&self.buffer[..head], "content-length");
        let length = length.and_then(|length| length.parse::<usize>().ok());
        let status = std::str::from_utf8(&self.buffer[9..12]).ok();
        let status = status.and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("no HTTP status"))?;
        if let Some(length) = length {
            while self.buffer.len() < head + length {
                self.more().await?;
            }
        } else if status == 200 {
            self.chunks(head).await?;
        }
        let (head, remaining) = self.buffer.split_at(head);
        let body = match length {
            Some(_) => remaining,
            None => &self.joined,
        };
        Ok(Response { status, head, body })
    }

    async fn more(&mut self) -> io::Result<()> {
        match self.socket.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// The length of the head.
    async fn head(&mut self) -> io::Result<usize> {
        loop {
            self.more().await?;
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                return Ok(end + 4);
            }
        }
    }

    /// Sends one request that causes a server request, answers that over `other`, and reads the rest.
    pub(crate) async fn exchange_asked(
        &mut self,
        request: &[u8],
        other: &mut Self,
        place: &Endpoint,
    ) -> io::Result<Response<'_>> {
        self.socket.write_all(request).await?;
        self.buffer.clear();
        self.joined.clear();
        let head = self.head().await?;
        let mut at = head;
        let requested = loop {
            at = self.chunk(at).await?.ok_or_else(|| {
                let reported = String::from_utf8_lossy(&self.buffer).into_owned();
                io::Error::other(format!("nothing is asked: {reported}"))
            })?;
            if let Some(requested) = requested(&self.joined) {
                break requested;
            }
        };
        let reported = format!(
            r#"{{"jsonrpc":"2.0","id":{requested},"result":{{"action":"accept","content":{{"name":"Ada"}}}}}}"#
        );
        let answer = post(place, self.session(), &reported);
        let status = other.exchange(&answer).await?.status;
        if status != 202 {
            return Err(io::Error::other(format!(
                "the answer has the status {status}"
            )));
        }
        self.chunks(at).await?;
        Ok(Response {
            status: 200,
            head: &self.buffer[..head],
            body: &self.joined,
        })
    }

    /// Reads a chunked body, whose next chunk begins at `at`.
    async fn chunks(&mut self, mut at: usize) -> io::Result<()> {
        while let Some(next) = self.chunk(at).await? {
            at = next;
        }
        Ok(())
    }

    /// Reads the chunk at `at`, and returns the position of the next one, if any.
    async fn chunk(&mut self, at: usize) -> io::Result<Option<usize>> {
        let line = loop {
            match find(&self.buffer[at..], b"\r\n") {
                Some(end) => break at + end,
                None => self.more().await?,
            }
        };
        let digits = std::str::from_utf8(&self.buffer[at..line]).unwrap_or_default();
        let size = usize::from_str_radix(digits.trim(), 16).map_err(io::Error::other)?;
        let start = line + 2;
        while self.buffer.len() < start + size + 2 {
            self.more().await?;
        }
        if size == 0 {
            return Ok(None);
        }
        self.joined
            .extend_from_slice(&self.buffer[start..start + size]);
        Ok(Some(start + size + 2))
    }
}

impl Response<'_> {
    pub(crate) fn header(&self, name: &str) -> Option<Cow<'_, str>> {
        header(self.head, name).map(Cow::Borrowed)
    }
}

/// The value of the header `name`, which is in lowercase.
fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    head.split(|byte| *byte == b'\n').find_map(|line| {
        let (sent, value) = line.split_at_checked(name.len())?;
        let value = value.strip_prefix(b":")?;
        let value = std::str::from_utf8(value).ok()?;
        sent.eq_ignore_ascii_case(name.as_bytes())
            .then_some(value.trim())
    })
}

/// The id of the server request as JSON text, if the request has been received completely.
fn requested(events: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(events).ok()?;
    let data = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    let data = data.filter_map(|line| line.strip_prefix("data: "));
    let mut messages = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let requested = messages.find(|message| message["method"] == "elicitation/create")?;
    Some(requested["id"].to_string())
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|some| some == wanted)
}

/// The body of a call of a tool, whose arguments are written as JSON.
pub(crate) fn call_body(tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

/// A legacy request with `body`; `session` is a header line or empty.
pub(crate) fn post(place: &Endpoint, session: &str, body: &str) -> Vec<u8> {
    let Endpoint {
        address,
        path,
        headers,
    } = place;
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: \
         application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n{headers}{session}\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":CAPABILITIES,"clientInfo":{"name":"vary-bench","version":"1.0.0"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
