//! The mock server over standard input and output.
//!
//! The client starts a relay, a program that copies its standard input to a port of this machine and what comes back to its
//! standard output. So the mock server is in one process, whatever the client does with the relay.

use std::io::{self, BufRead as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;

use serde_json::Value;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{self, TcpListener};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::lines::next_line;

use super::http::HEAD_START;
use super::{MESSAGE, MockServer, WAITING};

/// Copies lines between standard input and output and the mock server at `address`, until one of them ends.
///
/// # Errors
///
/// If `address` is not one of this machine's loopback addresses with a port, or there is no mock server.
pub fn relay(address: &str) -> io::Result<()> {
    let socket_address: SocketAddr = address
        .parse()
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "not an address with a port"))?;
    if !socket_address.ip().is_loopback() {
        let error = "not a loopback address; only a run of the checks has a mock server";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
    }
    let mut to_server = TcpStream::connect(socket_address)?;
    let from_server = to_server.try_clone()?;
    let output = thread::spawn(move || {
        let mut reader = io::BufReader::new(from_server);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            let mut output = io::stdout().lock();
            output.write_all(&line)?;
            output.flush()?;
            line.clear();
        }
        io::Result::Ok(())
    });
    // A client that has ended leaves nobody to report errors to.
    _ = io::copy(&mut io::stdin().lock(), &mut to_server);
    _ = to_server.shutdown(Shutdown::Write);
    _ = output.join();
    Ok(())
}

/// Accepts relays until this is dropped.
pub(crate) async fn serve(listener: TcpListener, server: Arc<MockServer>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(converse(stream, Arc::clone(&server)));
    }
}

/// One connection of a client.
async fn converse(stream: net::TcpStream, server: Arc<MockServer>) {
    let (input, output) = stream.into_split();
    let (sink, messages) = mpsc::channel(WAITING);
    let writer = tokio::spawn(write(output, messages));
    let mut input = BufReader::new(input);
    while let Ok(Some(line)) = next_line(&mut input, MESSAGE).await {
        let Ok(message) = serde_json::from_slice::<Value>(&line) else {
            continue;
        };
        if let Some(answer) = server.receive(message, Some(&sink))
            && sink.send(answer).await.is_err()
        {
            break;
        }
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            sleep(HEAD_START).await;
            server.send_changes();
        });
    }
    writer.abort();
}

async fn write(mut output: OwnedWriteHalf, mut messages: mpsc::Receiver<Value>) {
    while let Some(message) = messages.recv().await {
        let line = format!("{message}\n");
        if output.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}
