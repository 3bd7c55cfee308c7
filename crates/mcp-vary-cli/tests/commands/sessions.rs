//! What ten thousand sessions leave in the memory of `vary serve`.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::program::{INITIALIZE, Server, WEATHER};

const SESSIONS: usize = 10_000;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Opens a session on a connection of its own, and leaves.
fn open(server: &Server) {
    let mut socket = TcpStream::connect(server.address).unwrap();
    let opened = exchange(&mut socket, server, INITIALIZE, "");
    assert!(opened.starts_with("HTTP/1.1 200 OK"), "{opened}");
    let mut lines = opened.lines();
    let session = lines.find(|line| line.to_ascii_lowercase().starts_with("mcp-session-id: "));
    let accepted = exchange(&mut socket, server, INITIALIZED, session.unwrap());
    assert!(accepted.starts_with("HTTP/1.1 202 Accepted"), "{accepted}");
}

/// Posts a message and reads the response, whose body is whole when it has the length that was told.
fn exchange(socket: &mut TcpStream, server: &Server, body: &str, header: &str) -> String {
    let mut request = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n", server.address);
    for header in [
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        header,
    ] {
        if !header.is_empty() {
            write!(request, "{header}\r\n").unwrap();
        }
    }
    write!(request, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    let mut piece = [0; 16 << 10];
    loop {
        let read = socket.read(&mut piece).unwrap();
        assert_ne!(read, 0, "{response}");
        response.push_str(std::str::from_utf8(&piece[..read]).unwrap());
        let Some((head, body)) = response.split_once("\r\n\r\n") else {
            continue;
        };
        let mut lines = head.lines();
        let length = lines.find_map(|line| line.strip_prefix("content-length: "));
        if body.len() == length.map_or(0, |length| length.parse().unwrap()) {
            return response;
        }
    }
}

/// The resident memory of a process in bytes.
fn resident(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim()
        .trim_end_matches(" kB")
        .parse::<usize>()
        .unwrap()
        << 10
}

/// A session that was initialized and left takes at most 1 KiB, with everything that serving takes when it
/// is done for the first time; and more sessions than there are places for take none.
#[test]
fn sessions_that_were_left_take_little_memory() {
    let server = Server::start(&[&["serve", "--listen", "0"], &WEATHER[..]].concat());
    let empty = resident(server.child.id());
    (0..SESSIONS).for_each(|_| open(&server));
    let full = resident(server.child.id());
    let each = full.saturating_sub(empty) / SESSIONS;
    assert!(each <= 1 << 10, "{each} bytes each");
    (0..SESSIONS / 2).for_each(|_| open(&server));
    let more = resident(server.child.id()).saturating_sub(full);
    assert!(more <= 1 << 20, "{more} bytes more");
}
