//! The real `vary serve`, and what can be seen of it from outside.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use crate::process::{self, LONG, until};

/// A running gateway; killed when dropped.
#[derive(Debug)]
pub(crate) struct Gateway {
    child: Child,
    process: u32,
    talk: Talk,
}

/// What it wrote to its standard error.
#[derive(Clone, Debug, Default)]
struct Talk(Arc<Mutex<String>>);

impl Gateway {
    /// Starts `vary serve` with `arguments` on a free port.
    pub(crate) fn on_http(vary: &Path, arguments: &[String]) -> Result<Self, String> {
        Self::on_address(vary, "127.0.0.1:0", arguments)
    }

    /// Starts `vary serve` with `arguments` on `address`.
    pub(crate) fn on_address(
        vary: &Path,
        address: &str,
        arguments: &[String],
    ) -> Result<Self, String> {
        Self::start(vary, &["serve", "--listen", address], arguments)
    }

    /// Starts `vary serve --stdio` with `arguments`; gives its streams, too.
    pub(crate) fn on_stdio(
        vary: &Path,
        arguments: &[String],
    ) -> Result<(Self, ChildStdin, ChildStdout), String> {
        let mut gateway = Self::start(vary, &["serve", "--stdio"], arguments)?;
        let streams = (gateway.child.stdin.take(), gateway.child.stdout.take());
        match streams {
            (Some(input), Some(output)) => Ok((gateway, input, output)),
            _ => Err("no streams".to_owned()),
        }
    }

    fn start(vary: &Path, before: &[&str], arguments: &[String]) -> Result<Self, String> {
        let mut command = process::command(vary);
        command.args(before).args(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let process = child.id().ok_or("it ended at once")?;
        let talk = Talk::default();
        let output = child.stderr.take().ok_or("no standard error")?;
        tokio::spawn(talk.clone().hear(output));
        Ok(Self {
            child,
            process,
            talk,
        })
    }

    /// Where it serves, once it does.
    pub(crate) async fn url(&mut self) -> Result<String, String> {
        let talk = self.talk.clone();
        until(|| {
            let reported = talk.text();
            let remaining = reported
                .split_once("serving at ")
                .map(|(_, remaining)| remaining);
            match remaining.and_then(|remaining| remaining.split_once('\n')) {
                Some((url, _)) => Ok(url.to_owned()),
                None => Err(format!("vary does not serve; it says: {reported}")),
            }
        })
        .await
    }

    /// The address of its status and its page, HOST:PORT, once it is printed.
    pub(crate) async fn admin(&self) -> Result<String, String> {
        until(|| {
            let printed = self.talk.text();
            let found = printed
                .split_once("vary status ")
                .and_then(|(_, after)| after.split_once('\n'));
            let address = found.map(|(address, _)| address.to_owned());
            address.ok_or_else(|| format!("vary says no address of its status; it says: {printed}"))
        })
        .await
    }

    /// All that it has said.
    pub(crate) fn said(&self) -> String {
        self.talk.text()
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<(), String> {
        process::signal(self.process, signal)
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(&mut self) -> Result<ExitStatus, String> {
        match tokio::time::timeout(LONG, self.child.wait()).await {
            Ok(status) => status.map_err(|error| error.to_string()),
            Err(_) => Err(format!("vary does not end; it says: {}", self.said())),
        }
    }

    /// Its number.
    pub(crate) fn process(&self) -> u32 {
        self.process
    }

    pub(crate) fn descriptors(&self) -> Result<usize, String> {
        process::descriptors(self.process)
    }

    pub(crate) fn children(&self) -> Result<usize, String> {
        process::children(self.process)
    }
}

impl Talk {
    async fn hear(self, output: ChildStderr) {
        let mut lines = BufReader::new(output).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            text.push_str(&line);
            text.push('\n');
        }
    }

    fn text(&self) -> String {
        let text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        text.clone()
    }
}
