//! A client on a pair of pipes.

use std::fmt;
use std::io;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::message::initialize;
use crate::wait::soon;

/// A client that writes and reads lines, and the server at the other end.
pub struct StdioPipe {
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
    /// Ends when the server does.
    pub served: JoinHandle<io::Result<()>>,
    /// Stops the server.
    pub stop: CancellationToken,
}

impl fmt::Debug for StdioPipe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StdioPipe").finish_non_exhaustive()
    }
}

impl StdioPipe {
    /// Connects to a server, which gets its input, its output, and a shutdown signal.
    pub fn connect<F>(
        serve: impl FnOnce(DuplexStream, DuplexStream, WaitForCancellationFutureOwned) -> F,
    ) -> Self
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let (input, read) = tokio::io::duplex(1 << 16);
        let (write, output) = tokio::io::duplex(1 << 16);
        let stop = CancellationToken::new();
        Self {
            input,
            output: BufReader::new(output).lines(),
            served: tokio::spawn(serve(read, write, stop.clone().cancelled_owned())),
            stop,
        }
    }

    /// Sends `initialize`, and checks that it succeeds.
    pub async fn initialize(mut self, revision: &str, capabilities: &Value) -> Self {
        let answer = self.ask(&initialize(revision, capabilities)).await;
        assert!(answer["result"].is_object(), "{answer}");
        self
    }

    /// Writes one line.
    pub async fn send(&mut self, line: impl AsRef<[u8]>) {
        soon(self.input.write_all(line.as_ref())).await.unwrap();
        soon(self.input.write_all(b"\n")).await.unwrap();
    }

    /// The next line.
    pub async fn line(&mut self) -> String {
        soon(self.output.next_line())
            .await
            .unwrap()
            .expect("a line")
    }

    /// The next message.
    pub async fn receive(&mut self) -> Value {
        serde_json::from_str(&self.line().await).unwrap()
    }

    /// The next message for which this holds; those before it are passed over.
    pub async fn receive_until(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.receive().await;
            if holds(&message) {
                return message;
            }
        }
    }

    /// The next message after `message` was sent, apart from list changes.
    pub async fn ask(&mut self, message: &Value) -> Value {
        self.send(message.to_string()).await;
        serde_json::from_str(&self.response().await).unwrap()
    }

    /// The next line that is not a list change.
    pub async fn response(&mut self) -> String {
        loop {
            let line = self.line().await;
            let is_change = |message: Value| {
                let method = message["method"].as_str().unwrap_or_default();
                method.ends_with("/list_changed")
            };
            if !serde_json::from_str(&line).is_ok_and(is_change) {
                return line;
            }
        }
    }

    /// Closes the input, and returns the lines that still arrive.
    pub async fn close(mut self) -> Vec<String> {
        drop(self.input);
        let mut lines = Vec::new();
        while let Some(line) = soon(self.output.next_line()).await.unwrap() {
            lines.push(line);
        }
        soon(self.served).await.unwrap().unwrap();
        lines
    }
}
