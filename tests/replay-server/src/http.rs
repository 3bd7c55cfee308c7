//! The server on a port: HTTP/1.1 by hand, a thread for each connection, without sessions.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use crate::answer::Replay;
use crate::stdio::LONGEST;

/// Bytes of a request's head; who sends more is no client of MCP.
const LONGEST_HEAD: u64 = 64 << 10;

/// Serves streamable HTTP at `/mcp` on `listener` until it fails.
///
/// # Errors
///
/// When no connection can be accepted.
pub fn serve_http(replay: Replay, listener: &TcpListener) -> io::Result<()> {
    let replay = Arc::new(replay);
    loop {
        let (socket, _) = listener.accept()?;
        let replay = Arc::clone(&replay);
        thread::spawn(move || {
            // A client that is gone, or speaks no HTTP, ends its connection only.
            let _ = converse(&replay, socket);
        });
    }
}

fn converse(replay: &Replay, socket: TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut connection = BufReader::new(socket);
    while let Some((start, body)) = request(&mut connection)? {
        let terms: Vec<&str> = start.split(' ').collect();
        let path = terms.get(1).and_then(|target| target.split('?').next());
        let (status, answer) = match (terms.first(), path) {
            (_, path) if path != Some("/mcp") => ("404 Not Found", None),
            (Some(&"POST"), _) => match replay.answer(&body) {
                Some(answer) => ("200 OK", Some(answer)),
                None => ("202 Accepted", None),
            },
            _ => ("405 Method Not Allowed", None),
        };
        let answer = answer.unwrap_or_default();
        let length = answer.len();
        let reply = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{answer}"
        );
        connection.get_mut().write_all(reply.as_bytes())?;
    }
    Ok(())
}

/// The first line and the body of the next request; none when the client is gone.
fn request(connection: &mut BufReader<TcpStream>) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut head = connection.by_ref().take(LONGEST_HEAD);
    let mut start = String::new();
    if head.read_line(&mut start)? == 0 {
        return Ok(None);
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        if head.read_line(&mut line)? == 0 {
            return Err(io::Error::other("the head has no end"));
        }
        if line.trim_end().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(io::Error::other)?;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(io::Error::other("a body needs its length"));
        }
    }
    if length > LONGEST {
        return Err(io::Error::other("a body is longer than 16 MiB"));
    }
    let mut body = Vec::new();
    connection.by_ref().take(length).read_to_end(&mut body)?;
    Ok(Some((start, body)))
}
