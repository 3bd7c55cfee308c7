//! The command: what it prints, what it answers to strangers, and when it ends.

use std::process::Stdio;

use crate::support::{Era, Wire, connect, http, spawn};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;

#[tokio::test]
async fn it_says_one_line_and_ends_when_its_input_closes() {
    let (mut server, url, mut lines) = http(&[]).await;
    assert!(
        url.starts_with("http://127.0.0.1:") && url.ends_with("/mcp"),
        "{url}"
    );
    drop(server.stdin.take());
    assert!(server.wait().await.unwrap().success());
    assert_eq!(lines.next_line().await.unwrap(), None);
}

#[tokio::test]
async fn it_ends_when_it_is_told_to() {
    let (mut server, _url, _lines) = http(&[]).await;
    let id = server.id().unwrap().to_string();
    let kill = Command::new("kill").args(["-TERM", &id]).status().await;
    assert!(kill.unwrap().success());
    assert!(server.wait().await.unwrap().success());
}

#[tokio::test]
async fn stdio_ends_when_its_input_closes() {
    let mut server = spawn(&["--stdio"]);
    drop(server.stdin.take());
    assert!(server.wait().await.unwrap().success());
}

#[tokio::test]
async fn a_banner_comes_before_the_first_message() {
    let mut server = spawn(&["--stdio", "--banner"]);
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap();
    assert_eq!(line.as_deref(), Some("fixture-server is ready"));
}

#[tokio::test]
async fn a_crash_ends_the_process_without_an_answer() {
    let connection = connect(Era::Legacy, Wire::Stdio, &[]).await;
    let result = connection.try_call("crash", serde_json::json!({})).await;
    assert!(result.is_err(), "{result:?}");
}

#[tokio::test]
async fn it_wants_exactly_one_transport() {
    for arguments in [&[][..], &["--stdio", "--http", "127.0.0.1:0"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fixture-server"));
        let status = command.args(arguments).stderr(Stdio::null()).status().await;
        assert_eq!(status.unwrap().code(), Some(2), "{arguments:?}");
    }
}

#[tokio::test]
async fn strangers_are_turned_away() {
    let (_server, url, _lines) = http(&[]).await;
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let ours = format!("Host: {address}");
    answers(address, "/mcp", "Host: evil.example", "403").await;
    let foreign = format!("{ours}\r\nOrigin: http://evil.example");
    answers(address, "/mcp", &foreign, "403").await;
    answers(address, "/elsewhere", &ours, "404").await;
}

async fn answers(address: &str, path: &str, headers: &str, status: &str) {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let request = format!(
        "POST {path} HTTP/1.1\r\n{headers}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream
        .write_all(request.as_bytes())
        .await
        .expect("it reads");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .await
        .expect("it answers");
    let expected = format!("HTTP/1.1 {status} ");
    assert!(answer.starts_with(&expected), "{path} {headers}: {answer}");
}
