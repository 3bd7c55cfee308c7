//! Messages over HTTP and over pipes, as bytes of the test's own.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines,
    ReadHalf, WriteHalf,
};
use tokio::net::TcpStream;

/// Waits for what happens any time now; longer than any machine needs, so that only a failure takes it.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(60);
    tokio::time::timeout(limit, what)
        .await
        .expect("it does not happen")
}

/// The answer to one HTTP request: a message, a stream of them, or none.
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    connection: BufReader<TcpStream>,
    /// What was read of a stream, to be cut into events.
    read: Vec<u8>,
    /// The id of the last event that had one.
    pub(crate) last_event: Option<String>,
    is_over: bool,
}

impl Answer {
    /// Sends a request on a connection of its own, and reads the head of its answer.
    pub(crate) async fn to(
        address: SocketAddr,
        verb: &str,
        headers: &[(&str, String)],
        body: &str,
    ) -> Self {
        let mut connection = TcpStream::connect(address).await.expect("Vary listens");
        let mut request = format!("{verb} /mcp HTTP/1.1\r\nHost: localhost\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        let sent = connection.write_all(request.as_bytes()).await;
        sent.expect("Vary reads");
        let mut answer = Self {
            status: 0,
            headers: Vec::new(),
            connection: BufReader::new(connection),
            read: Vec::new(),
            last_event: None,
            is_over: false,
        };
        answer.read_head().await;
        answer
    }

    async fn read_head(&mut self) {
        let status = self.line().await;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        self.status = status.expect("a status line");
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(": ") else {
                break;
            };
            let header = (name.to_ascii_lowercase(), value.to_owned());
            self.headers.push(header);
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// The next message; none at the end.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        if self.is_over {
            return None;
        }
        if self.header("content-type") != Some("text/event-stream") {
            self.is_over = true;
            let length: usize = self.header("content-length")?.parse().ok()?;
            let body = self.exactly(length).await;
            return (length > 0).then(|| json(&String::from_utf8_lossy(&body)));
        }
        loop {
            let event = self.event().await?;
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

    /// The next event of the stream, as it is written.
    async fn event(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.read.windows(2).position(|two| two == b"\n\n") {
                let event = self.read.drain(..end + 2).collect();
                return Some(String::from_utf8(event).expect("events are text"));
            }
            let length = self.line().await;
            let length = usize::from_str_radix(&length, 16).unwrap_or_default();
            if length == 0 {
                self.is_over = true;
                return None;
            }
            let chunk = self.exactly(length).await;
            self.line().await;
            self.read.extend(chunk);
        }
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        let read = soon(self.connection.read_line(&mut line)).await;
        read.expect("Vary answers in text");
        line.trim_end().to_owned()
    }

    async fn exactly(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let read = soon(self.connection.read_exact(&mut bytes)).await;
        read.expect("Vary sends what it announced");
        bytes
    }
}

/// The client's end of a pair of pipes.
pub(crate) struct Pipes {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl Pipes {
    pub(crate) fn new(stream: DuplexStream) -> Self {
        let (output, input) = tokio::io::split(stream);
        Self {
            input,
            output: BufReader::new(output).lines(),
        }
    }

    pub(crate) async fn say(&mut self, message: &Value) {
        let line = format!("{message}\n");
        let written = soon(self.input.write_all(line.as_bytes())).await;
        written.expect("Vary reads");
    }

    /// The next message.
    pub(crate) async fn message(&mut self) -> Value {
        let line = soon(self.output.next_line()).await;
        json(&line.expect("Vary writes text").expect("Vary is there"))
    }

    /// Closes the input, and waits for the end of the output.
    pub(crate) async fn close(mut self) {
        let closed = soon(self.input.shutdown()).await;
        closed.expect("pipes can be closed");
        while let Ok(Some(_)) = soon(self.output.next_line()).await {}
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {text}"))
}
