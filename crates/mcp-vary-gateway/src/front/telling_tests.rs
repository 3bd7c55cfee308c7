//! What a session is told reaches its client, by either front.

use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};

use super::stdio::Connection;
use crate::config::{Config, Outside};
use crate::gateway::Gateway;
use crate::session::Session;
use crate::upstream::{Target, UpstreamConfig};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

/// A gateway whose server is down.
async fn gateway() -> Arc<Gateway> {
    let outside = Outside::new(|| 1_000, |bytes| bytes.fill(7));
    let server = UpstreamConfig::new("none", Target::command("/none", []));
    Gateway::open(Config::new(server, outside)).await
}

fn tell(session: &Session, messages: &[&'static str]) -> bool {
    let mut messages = messages.iter();
    messages.all(|message| session.tell(Bytes::from_static(message.as_bytes())))
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
    let (mut connection, writer) = Connection::over::<DuplexStream>(&gateway, output);
    connection.take_line(INITIALIZE).await;
    assert!(lines(&mut input, 1).await.contains("protocolVersion"));
    let session = connection.legacy_session().unwrap();
    assert!(session.listens() && tell(&session, &[r#"{"a":1}"#, r#"{"b":2}"#]));
    assert_eq!(lines(&mut input, 2).await, "{\"a\":1}\n{\"b\":2}\n");
    // What was told last is written before the end.
    assert!(tell(&session, &[r#"{"c":3}"#]));
    connection.finish().await;
    writer.await.unwrap().unwrap();
    assert_eq!(lines(&mut input, 9).await, "{\"c\":3}\n");
}

#[tokio::test]
async fn over_http_it_is_an_event_of_the_stream_that_is_open() {
    let gateway = gateway().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = Arc::clone(&gateway);
    tokio::spawn(async move { serving.serve_http(listener, std::future::pending()).await });
    let mut http = BufReader::new(TcpStream::connect(address).await.unwrap());
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{INITIALIZE}",
        INITIALIZE.len()
    );
    http.get_mut().write_all(head.as_bytes()).await.unwrap();
    let mut id = String::new();
    while !id.starts_with("mcp-session-id: ") {
        id = lines(&mut http, 1).await;
    }
    let id = id["mcp-session-id: ".len()..].trim();
    let session = gateway.lasting.sessions.find(id).unwrap();
    assert!(!session.listens() && tell(&session, &[r#"{"a":1}"#]));
    let mut http = BufReader::new(TcpStream::connect(address).await.unwrap());
    let head = format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: {id}\r\n\r\n"
    );
    http.get_mut().write_all(head.as_bytes()).await.unwrap();
    for expected in [r#"data: {"a":1}"#, r#"data: {"b":2}"#] {
        let mut line = String::new();
        while !line.starts_with("data: {") {
            line = lines(&mut http, 1).await;
        }
        assert_eq!(line.trim_end(), expected);
        assert!(session.listens() && tell(&session, &[r#"{"b":2}"#]));
    }
}
