//! One request over HTTP, read to the end of its connection, so that a second answer would be seen.

use mcp_vary_testkit::http_client::HttpRequest;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A response and the messages in it.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) session: Option<String>,
    pub(super) messages: Vec<Value>,
}

/// Sends `post` to `url` on a connection of its own.
///
/// # Errors
///
/// When the connection fails or what comes back is no HTTP.
pub(super) async fn send(url: &str, post: HttpRequest) -> Result<Reply, String> {
    let remaining = url.strip_prefix("http://").unwrap_or(url);
    let (host, path) = remaining
        .split_once('/')
        .ok_or_else(|| format!("`{url}` is no address"))?;
    let post = post.line(&format!("POST /{path} HTTP/1.1"));
    let post = post.with("Host", host).with("Connection", "close");
    let reported = |error: std::io::Error| error.to_string();
    let mut socket = TcpStream::connect(host).await.map_err(reported)?;
    socket.write_all(&post.bytes()).await.map_err(reported)?;
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).await.map_err(reported)?;
    read(&bytes)
}

fn read(bytes: &[u8]) -> Result<Reply, String> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text
        .split_once("\r\n\r\n")
        .ok_or("the connection ended without a response")?;
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let body = match header(head, "transfer-encoding") {
        Some(_) => whole(body).ok_or("the response broke off")?,
        None => body.to_owned(),
    };
    let messages = match header(head, "content-type") {
        Some("text/event-stream") => events(&body),
        _ => serde_json::Deserializer::from_str(&body)
            .into_iter()
            .filter_map(Result::ok)
            .collect(),
    };
    Ok(Reply {
        status: status.ok_or("no HTTP status")?,
        session: header(head, "mcp-session-id").map(str::to_owned),
        messages,
    })
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines
        .filter(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
        .next()
}

/// The chunks of a body together; none when the last one is missing.
fn whole(mut body: &str) -> Option<String> {
    let mut text = String::new();
    loop {
        let (length, remaining) = body.split_once("\r\n")?;
        let length = usize::from_str_radix(length, 16).ok()?;
        if length == 0 {
            return Some(text);
        }
        text.push_str(remaining.get(..length)?);
        body = remaining.get(length + 2..)?;
    }
}

fn events(body: &str) -> Vec<Value> {
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_of_chunks_is_read_whole() {
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n\
            12\r\ndata: {\"id\":\"1\"}\n\n\r\n0\r\n\r\n";
        let reply = read(bytes).unwrap();
        assert_eq!(
            (reply.status, reply.messages),
            (200, vec![serde_json::json!({"id": "1"})])
        );
    }

    #[test]
    fn a_response_that_breaks_off_is_none() {
        let bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n12\r\ndata";
        assert_eq!(read(bytes).unwrap_err(), "the response broke off");
        assert!(read(b"").is_err());
    }

    #[test]
    fn two_answers_are_two() {
        let bytes =
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"id\":1}{\"id\":1}";
        assert_eq!(read(bytes).unwrap().messages.len(), 2);
    }
}
