//! Messages of a session reach its client, over stdio and over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use mcp_vary_base::environment::Environment;
use mcp_vary_upstream::{Target, UpstreamConfig};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};

use super::stdio::StdioConnection;
use crate::gateway::Gateway;
use mcp_vary_session::Session;
use mcp_vary_settings::config::Config;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

/// A gateway whose server is down.
async fn gateway() -> Arc<Gateway> {
    let outside = Environment::new(|| 1_000, |bytes| bytes.fill(7));
    let server = UpstreamConfig::new("none", Target::command("/none", []));
    Gateway::open(Config::new(server, outside)).await
}

fn tell(session: &Session, messages: &[&'static str]) -> bool {
    let mut messages = messages.iter();
    messages.all(|message| session.enqueue(Bytes::from_static(message.as_bytes())))
}

async fn lines<R: tokio::io::AsyncRead + Unpin>(input: &mut BufReader<R>, count: usize) -> String {
    let mut read = String::new();
    for _ in 0..count {
        input.read_line(&mut read).await.unwrap();
    }
    read
}

#[tokio::test]
async fn over_stdio_it_is_written_in_order() {
    let (output, input) = duplex(1 << 16);
    let mut input = BufReader::new(input);
    let gateway = gateway().await;
    let (mut connection, writer) = StdioConnection::over::<DuplexStream>(&gateway, output);
    connection.receive_line(INITIALIZE).await;
    assert!(lines(&mut input, 1).await.contains("protocolVersion"));
    let session = connection.legacy_session().unwrap();
    assert!(session.has_stream() && tell(&session, &[r#"{"a":1}"#, r#"{"b":2}"#]));
    assert_eq!(lines(&mut input, 2).await, "{\"a\":1}\n{\"b\":2}\n");
    // What was told last is written before the end.
    assert!(tell(&session, &[r#"{"c":3}"#]));
    connection.finish().await;
    writer.await.unwrap().unwrap();
    assert_eq!(lines(&mut input, 9).await, "{\"c\":3}\n");
}

/// A session over HTTP, and what is read of its `GET` streams.
struct Client {
    address: SocketAddr,
    id: String,
    session: Arc<Session>,
}

impl Client {
    async fn open(gateway: &Arc<Gateway>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = Arc::clone(gateway);
        tokio::spawn(async move { serving.serve_http(listener, std::future::pending()).await });
        let mut http = BufReader::new(TcpStream::connect(address).await.unwrap());
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{INITIALIZE}",
            INITIALIZE.len()
        );
        http.get_mut().write_all(head.as_bytes()).await.unwrap();
        let id = field(&mut http, "mcp-session-id: ").await;
        let session = gateway.services.sessions.find(&id).unwrap();
        Self {
            address,
            id,
            session,
        }
    }

    /// Opens a stream, and reads the id that it begins with.
    async fn listen(&self, last: &str) -> (BufReader<TcpStream>, String) {
        let mut http = BufReader::new(TcpStream::connect(self.address).await.unwrap());
        let head = format!(
            "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\
             Mcp-Session-Id: {}\r\nLast-Event-ID: {last}\r\n\r\n",
            self.id
        );
        http.get_mut().write_all(head.as_bytes()).await.unwrap();
        let first = field(&mut http, "id: ").await;
        (http, first)
    }
}

/// The next line that begins with `name`, without that.
async fn field(http: &mut BufReader<TcpStream>, name: &str) -> String {
    loop {
        let line = lines(http, 1).await;
        if let Some(value) = line.trim_end().strip_prefix(name) {
            return value.to_owned();
        }
    }
}

async fn receives(http: &mut BufReader<TcpStream>, messages: &[&str]) {
    for message in messages {
        assert_eq!(field(http, "data: {").await, message[1..]);
    }
}

#[tokio::test]
async fn over_http_it_is_an_event_of_the_stream_that_is_open() {
    let gateway = gateway().await;
    let client = Client::open(&gateway).await;
    let session = &client.session;
    assert!(!session.has_stream() && tell(session, &[r#"{"a":1}"#]));
    let (mut http, _) = client.listen("").await;
    receives(&mut http, &[r#"{"a":1}"#]).await;
    assert!(session.has_stream() && tell(session, &[r#"{"b":2}"#]));
    receives(&mut http, &[r#"{"b":2}"#]).await;
}

/// What was sent and may be lost is sent again, then what was told in between, and nothing of another stream.
#[tokio::test]
async fn who_comes_back_to_a_stream_hears_what_it_missed_there() {
    let gateway = gateway().await;
    let client = Client::open(&gateway).await;
    let session = &client.session;
    let (mut http, first) = client.listen("").await;
    assert!(tell(session, &[r#"{"a":1}"#]));
    receives(&mut http, &[r#"{"a":1}"#]).await;
    let (mut other, _) = client.listen("").await;
    assert!(tell(session, &[r#"{"b":2}"#]));
    receives(&mut other, &[r#"{"b":2}"#]).await;
    drop((http, other));
    while session.has_stream() {
        tokio::task::yield_now().await;
    }
    assert!(tell(session, &[r#"{"c":3}"#]));
    let (mut http, again) = client.listen(&first).await;
    assert_eq!(again, first);
    receives(&mut http, &[r#"{"a":1}"#, r#"{"c":3}"#]).await;
    assert!(tell(session, &[r#"{"d":4}"#]));
    receives(&mut http, &[r#"{"d":4}"#]).await;
}
