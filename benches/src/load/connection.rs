//! One HTTP/1.1 connection, kept alive; reads as little as is needed to find an answer's end.

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Place;
use super::script::capabilities;

/// One connection and the session that was opened on it.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: TcpStream,
    buffer: Vec<u8>,
    /// Where a chunked body is put together.
    joined: Vec<u8>,
    session: Option<String>,
}

/// An answer, while its connection is not used again.
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
            session: None,
        })
    }

    /// The header line of the session; empty without one.
    pub(crate) fn session(&self) -> &str {
        self.session.as_deref().unwrap_or_default()
    }

    /// Opens a legacy session, if the server has any.
    pub(crate) async fn initialize(&mut self, place: &Place) -> io::Result<()> {
        self.initialize_with(place, &[]).await
    }

    /// The same for a client that declares these tags.
    pub(crate) async fn initialize_with(&mut self, place: &Place, tags: &[&str]) -> io::Result<()> {
        let capabilities = capabilities(tags).to_string();
        let message = INITIALIZE.replace("CAPABILITIES", &capabilities);
        let response = self.exchange(&post(place, "", &message)).await?;
        if response.status != 200 {
            let body = String::from_utf8_lossy(response.body).into_owned();
            let why = format!("`initialize` was answered with {}: {body}", response.status);
            return Err(io::Error::other(why));
        }
        let id = response.header("mcp-session-id").map(Cow::into_owned);
        self.session = id.map(|id| format!("Mcp-Session-Id: {id}\r\n"));
        let initialized = post(place, self.session(), INITIALIZED);
        self.exchange(&initialized).await.map(drop)
    }

    /// Opens the stream on which the server says things on its own, and leaves it open.
    pub(crate) async fn listen(&mut self, place: &Place) -> io::Result<()> {
        let Place { address, path } = place;
        let session = self.session();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\
             MCP-Protocol-Version: 2025-11-25\r\n{session}\r\n"
        );
        self.socket.write_all(request.as_bytes()).await?;
        self.buffer.clear();
        self.head().await?;
        match self.buffer.get(9..12) {
            Some(b"200") => Ok(()),
            _ => Err(io::Error::other("the stream was refused")),
        }
    }

    /// Waits until the stream says `wanted`.
    pub(crate) async fn hear(&mut self, wanted: &[u8]) -> io::Result<()> {
        loop {
            if let Some(at) = find(&self.buffer, wanted) {
                self.buffer.drain(..at + wanted.len());
                return Ok(());
            }
            self.more().await?;
        }
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
        let (head, rest) = self.buffer.split_at(head);
        let body = match length {
            Some(_) => rest,
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

    /// Reads a chunked body, whose first chunk begins at `at`.
    async fn chunks(&mut self, mut at: usize) -> io::Result<()> {
        loop {
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
                return Ok(());
            }
            self.joined
                .extend_from_slice(&self.buffer[start..start + size]);
            at = start + size + 2;
        }
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
        let (told, value) = line.split_at_checked(name.len())?;
        let value = value.strip_prefix(b":")?;
        let value = std::str::from_utf8(value).ok()?;
        told.eq_ignore_ascii_case(name.as_bytes())
            .then_some(value.trim())
    })
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|some| some == wanted)
}

/// A legacy request that holds `body`; `session` is a header line or nothing.
pub(crate) fn post(place: &Place, session: &str, body: &str) -> Vec<u8> {
    let Place { address, path } = place;
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: \
         application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n{session}\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":CAPABILITIES,"clientInfo":{"name":"vary-bench","version":"1.0.0"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
