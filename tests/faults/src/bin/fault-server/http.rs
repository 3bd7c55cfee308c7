//! The server on a port: HTTP/1.1 by hand, a request at a time on each connection.

use std::io;
use std::sync::Arc;

use faults::script::{Era, Start};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::act::{Act, Server};
use crate::stdio::end;

/// Serves for ever.
///
/// # Errors
///
/// When no connection can be accepted.
pub(crate) async fn serve(server: &Arc<Server>, listener: &TcpListener) -> Result<(), String> {
    loop {
        let accepted = listener.accept().await;
        let (socket, _) = accepted.map_err(|error| error.to_string())?;
        let server = Arc::clone(server);
        tokio::spawn(async move {
            let mut connection = BufReader::new(socket);
            // A client that is gone ends its connection only.
            let _ = converse(&server, &mut connection).await;
        });
    }
}

type Connection = BufReader<TcpStream>;

async fn converse(server: &Server, connection: &mut Connection) -> io::Result<()> {
    let _ = connection.get_ref().set_nodelay(true);
    while let Some((head, body)) = request(connection).await? {
        if server.start == Start::Garbage {
            return html(connection).await;
        }
        if head.starts_with("POST ") {
            answer(server, connection, &head, &body).await?;
        } else if head.starts_with("GET ") && server.script.era == Era::Legacy {
            begin_stream(connection, "").await?;
            return until_gone(connection).await;
        } else {
            let status = if head.starts_with("DELETE ") {
                "200 OK"
            } else {
                "405 Method Not Allowed"
            };
            reply(connection, status, "application/json", "").await?;
        }
    }
    Ok(())
}

/// Head and body of the next request; none when the client is gone.
async fn request(connection: &mut Connection) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if connection.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        if line.trim_end().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await?;
    Ok(Some((head, body)))
}

async fn answer(
    server: &Server,
    connection: &mut Connection,
    head: &str,
    body: &[u8],
) -> io::Result<()> {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    let opens = message["method"] == "initialize";
    if server.script.era == Era::Legacy && !opens && !head.contains(&session()) {
        return reply(connection, "404 Not Found", "text/plain", "no such session").await;
    }
    let act = tokio::select! {
        act = server.act(&message) => act,
        gone = until_gone(connection) => return gone,
    };
    match act {
        Act::Answer(answer) => reply(connection, "200 OK", JSON, &answer.to_string()).await,
        Act::Noise(kind, answer) => noise(connection, &kind, &answer.to_string()).await,
        Act::Stream(first) => {
            begin_stream(connection, &event(&first.to_string())).await?;
            until_gone(connection).await
        }
        Act::Nothing if message.get("id").is_none() => {
            reply(connection, "202 Accepted", JSON, "").await
        }
        Act::Nothing => until_gone(connection).await,
        Act::End(code) => end(code),
    }
}

async fn noise(connection: &mut Connection, kind: &str, answer: &str) -> io::Result<()> {
    match kind {
        "a page" => return html(connection).await,
        "500" => {
            return reply(
                connection,
                "500 Internal Server Error",
                "text/plain",
                "no database",
            )
            .await;
        }
        "no JSON" => return reply(connection, "200 OK", JSON, "{\"jsonrpc\": \"2.0\", oops").await,
        "nothing" => return reply(connection, "200 OK", JSON, "").await,
        "no reply" => {}
        "no HTTP" => write(connection, "SSH-2.0-OpenSSH_9.7\r\n").await?,
        "half an answer" => {
            write(connection, &head("200 OK", JSON, answer.len())).await?;
            write(connection, &answer[..answer.len() / 2]).await?;
        }
        "a stream without answer" => {
            begin_stream(connection, ": nothing\n\n").await?;
            return end_stream(connection).await;
        }
        "another's answer" | "answer twice" => {
            let other = answer.replacen("\"id\":", "\"id\":9", 1);
            let first = if kind == "answer twice" {
                answer
            } else {
                &other
            };
            begin_stream(connection, &event(first)).await?;
            write(connection, &chunk(&event(answer))).await?;
            return end_stream(connection).await;
        }
        _ => return reply(connection, "200 OK", JSON, answer).await,
    }
    connection.get_mut().shutdown().await
}

async fn html(connection: &mut Connection) -> io::Result<()> {
    let page = "<!DOCTYPE html><title>It works!</title><h1>It works!</h1>";
    reply(connection, "200 OK", "text/html", page).await
}

async fn reply(
    connection: &mut Connection,
    status: &str,
    kind: &str,
    body: &str,
) -> io::Result<()> {
    let text = head(status, kind, body.len()) + body;
    write(connection, &text).await
}

/// The head of every reply; modern clients do not mind a session id.
fn head(status: &str, kind: &str, length: usize) -> String {
    let session = session();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Mcp-Session-Id: {session}\r\n\r\n"
    )
}

/// One session for everybody, until this process ends.
fn session() -> String {
    format!("session-of-{}.", std::process::id())
}

async fn begin_stream(connection: &mut Connection, first: &str) -> io::Result<()> {
    let mut text =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            .to_owned();
    if !first.is_empty() {
        text.push_str(&chunk(first));
    }
    write(connection, &text).await
}

/// Ends a stream. The connection stays open: a client may send its next request at once.
async fn end_stream(connection: &mut Connection) -> io::Result<()> {
    write(connection, "0\r\n\r\n").await
}

fn event(message: &str) -> String {
    format!("data: {message}\n\n")
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// Waits until the client has closed its side.
async fn until_gone(connection: &mut Connection) -> io::Result<()> {
    let mut remaining = [0; 64];
    while connection.read(&mut remaining).await? > 0 {}
    Ok(())
}

async fn write(connection: &mut Connection, text: &str) -> io::Result<()> {
    connection.get_mut().write_all(text.as_bytes()).await
}

const JSON: &str = "application/json";
