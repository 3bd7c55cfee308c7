//! One process of the server.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::json::cut;
use crate::limits::Limits;
use crate::lines::next_line;
use crate::process_group::{GRACE, ProcessGroup};
use crate::stderr::StderrTail;

use super::NO_RESPONSE;
use super::message::{Outgoing, Reply, response_to};

/// The most bytes of a line that are read.
const LINE: usize = 4 << 20;

/// The most lines that are read for one response. The others are notifications, requests, or no messages.
const LINES: usize = 10_000;

/// Programs that download a server before they start it.
const RUNNERS: [&str; 7] = ["bunx", "docker", "npx", "pipx", "pnpx", "podman", "uvx"];

/// The most characters that are shown of a line that is not JSON.
const SHOWN_CHARACTERS: usize = 400;

/// A process that speaks MCP on its standard streams.
///
/// # Properties
///
/// It leads a process group, which is killed when this is dropped: package runners start the real server.
#[derive(Debug)]
pub(crate) struct Process {
    /// The program, as it was started.
    program: String,
    capabilities: String,
    streams: Mutex<Option<Streams>>,
    group: Mutex<ProcessGroup>,
    stderr: StderrTail,
    stderr_reader: Mutex<Option<JoinHandle<()>>>,
    /// Its reply to `initialize`, for the next client with the same capabilities.
    initialized: OnceLock<Reply>,
    has_answered: AtomicBool,
    /// A message was sent whose response was not received: the next one may be its response.
    awaits_response: AtomicBool,
}

#[derive(Debug)]
struct Streams {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts `command` for clients that declare `capabilities`.
    pub(crate) fn start(command: &[String], capabilities: &str) -> Result<Self, String> {
        let (program, arguments) = command.split_first().ok_or("the command is empty")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut group = ProcessGroup::start(program, command)?;
        let child = &mut group.child;
        let streams = child.stdin().take().zip(child.stdout().take());
        let Some(((input, output), stderr)) = streams.zip(child.stderr().take()) else {
            return Err(format!("`{program}` has no standard streams"));
        };
        let (stderr, stderr_reader) = StderrTail::read(stderr);
        let output = BufReader::new(output);
        Ok(Self {
            program: program.clone(),
            capabilities: capabilities.to_owned(),
            streams: Mutex::new(Some(Streams { input, output })),
            group: Mutex::new(group),
            stderr,
            stderr_reader: Mutex::new(Some(stderr_reader)),
            initialized: OnceLock::new(),
            has_answered: AtomicBool::new(false),
            awaits_response: AtomicBool::new(false),
        })
    }

    pub(crate) fn capabilities(&self) -> &str {
        &self.capabilities
    }

    /// Whether another client can use it.
    pub(crate) fn is_usable(&self) -> bool {
        let is_initialized = self.capabilities.is_empty() || self.initialized.get().is_some();
        is_initialized && !self.awaits_response.load(Ordering::Relaxed)
    }

    /// The reply to a handshake that this process has done already.
    pub(crate) fn cached_reply(&self, message: &Outgoing<'_>) -> Option<Reply> {
        let initialized = self.initialized.get()?;
        match message.method {
            "initialize" => Some(Reply {
                status: "stdout, earlier".to_owned(),
                ..initialized.clone()
            }),
            "notifications/initialized" => Some(no_reply()),
            _ => None,
        }
    }

    /// Sends a message, and receives the response if it is a request.
    ///
    /// The first response may take longer: the process has to start.
    pub(crate) async fn send(
        &self,
        message: &Outgoing<'_>,
        limits: Limits,
    ) -> Result<Reply, String> {
        let limit = if self.has_answered.load(Ordering::Relaxed) {
            limits.request
        } else {
            limits.start.max(limits.request)
        };
        if self.awaits_response.swap(true, Ordering::Relaxed) {
            return Err("the process has left an earlier request unanswered".to_owned());
        }
        let mut skipped = SkippedLines::default();
        let exchange = timeout(limit, self.exchange(message, &mut skipped)).await;
        let reply = exchange.map_err(|_| {
            let seconds = limit.as_secs_f32();
            let found = skipped.describe();
            let advice = self.download_advice();
            format!("{NO_RESPONSE} {seconds} s{found}{advice}")
        })??;
        self.awaits_response.store(false, Ordering::Relaxed);
        if message.id.is_some() {
            self.has_answered.store(true, Ordering::Relaxed);
        }
        let response = reply.message.as_ref();
        let has_result = response.is_some_and(|response| response.get("result").is_some());
        if message.method == "initialize" && has_result {
            _ = self.initialized.set(reply.clone());
        }
        Ok(reply)
    }

    async fn exchange(
        &self,
        message: &Outgoing<'_>,
        skipped: &mut SkippedLines,
    ) -> Result<Reply, String> {
        let mut guard = self.streams.lock().await;
        let streams = guard.as_mut().ok_or("the process was ended")?;
        if write(&mut streams.input, &message.text).await.is_err() {
            return Err(self.describe_end(skipped).await);
        }
        let Some(id) = message.id else {
            return Ok(no_reply());
        };
        for _ in 0..LINES {
            let line = match next_line(&mut streams.output, LINE).await {
                Ok(Some(line)) => line,
                Ok(None) => return Err(self.describe_end(skipped).await),
                Err(error) => return Err(format!("standard output cannot be read: {error}")),
            };
            if let Some(response) = response_to(&line, Some(id)) {
                return Ok(Reply {
                    message: Some(response),
                    status: "stdout".to_owned(),
                    body: String::from_utf8_lossy(&line).into_owned(),
                    ..Reply::default()
                });
            }
            match serde_json::from_slice::<Value>(&line) {
                Ok(other) => answer(&mut streams.input, &other).await,
                Err(_) => skipped.add(&line),
            }
        }
        let found = skipped.describe();
        Err(format!("no response in {LINES} lines{found}"))
    }

    /// What to do about a program that may still be downloading the server.
    fn download_advice(&self) -> String {
        let name = Path::new(&self.program).file_stem().and_then(OsStr::to_str);
        match name.filter(|name| RUNNERS.contains(name)) {
            Some(runner) if !self.has_answered.load(Ordering::Relaxed) => format!(
                "; `{runner}` may still be downloading: run it once by itself, then check again"
            ),
            _ => String::new(),
        }
    }

    /// Why there is no response: the process has closed its streams.
    async fn describe_end(&self, skipped: &SkippedLines) -> String {
        let status = self.group.lock().await.wait().await;
        if let Some(reader) = self.stderr_reader.lock().await.take() {
            _ = timeout(GRACE, reader).await;
        }
        let found = skipped.describe();
        match status {
            Some(status) => format!("the process ended ({status}) before it answered{found}"),
            None => format!("the process closed its standard output before it answered{found}"),
        }
    }

    /// The last lines of its standard error.
    pub(crate) fn stderr(&self) -> String {
        self.stderr.summary()
    }

    /// Ends the process as the specification has it (2025-11-25, Lifecycle, Shutdown): closes its input, waits, sends
    /// `SIGTERM`, waits, kills.
    pub(crate) async fn end(&self) {
        *self.streams.lock().await = None;
        let mut group = self.group.lock().await;
        if group.wait().await.is_none() {
            group.terminate();
            group.wait().await;
        }
        group.kill();
        group.wait().await;
    }
}

/// The reply to a notification.
fn no_reply() -> Reply {
    Reply {
        status: "nothing".to_owned(),
        ..Reply::default()
    }
}

/// Lines on standard output that are not JSON.
#[derive(Debug, Default)]
struct SkippedLines {
    count: usize,
    first: String,
}

impl SkippedLines {
    fn add(&mut self, line: &[u8]) {
        if self.count == 0 {
            self.first = cut(&String::from_utf8_lossy(line), SHOWN_CHARACTERS);
        }
        self.count += 1;
    }

    /// The end of a sentence about a missing response.
    fn describe(&self) -> String {
        match self.count {
            0 => String::new(),
            1 => format!(
                "; it wrote a line to standard output that is not JSON: {:?}",
                self.first
            ),
            count => format!(
                "; it wrote {count} lines to standard output that are not JSON, the first is {:?}",
                self.first
            ),
        }
    }
}

/// The answer to a server that sends a client's request: it is read as the refusal of that request, which it repeated.
pub(crate) const REPEATED_REQUEST: &str = "it repeats what it is sent";

/// Answers a request of the server: `ping` with a result, others with an error, as the client declared nothing.
async fn answer(input: &mut ChildStdin, message: &Value) {
    let Some((id, method)) = message.get("id").zip(message.get("method")) else {
        return;
    };
    let answer = match method.as_str() {
        Some("ping") => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
        // A program that repeats what it reads sends this back, too, and it is read as the refusal.
        Some("initialize" | "server/discover") => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32600, "message": REPEATED_REQUEST}})
        }
        _ => {
            let error = json!({"code": -32601, "message": "Method not found"});
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        }
    };
    // If it cannot be written, the process has ended, which reading its output shows.
    _ = write(input, &answer.to_string()).await;
}

async fn write(input: &mut ChildStdin, message: &str) -> io::Result<()> {
    input.write_all(format!("{message}\n").as_bytes()).await?;
    input.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_not_json_are_counted_and_the_first_is_shown() {
        let long = format!("ü{}", "x".repeat(1000));
        let shown = format!("ü{}…", "x".repeat(SHOWN_CHARACTERS - 1));
        for (lines, expected) in [
            (&[][..], String::new()),
            (
                &["ready on \"stdio\""],
                r#"; it wrote a line to standard output that is not JSON: "ready on \"stdio\"""#
                    .to_owned(),
            ),
            (
                &[&long, "b"],
                format!(
                    "; it wrote 2 lines to standard output that are not JSON, the first is {shown:?}"
                ),
            ),
        ] {
            let mut skipped = SkippedLines::default();
            lines.iter().for_each(|line| skipped.add(line.as_bytes()));
            assert_eq!(skipped.describe(), expected);
        }
    }
}
