//! One process of the server, with all processes that it starts.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::json::cut;
use crate::limits::Limits;
use crate::lines::next_line;
use crate::transport::{Outgoing, Reply, response_to};

/// The most bytes of a line that are read.
const LINE: usize = 4 << 20;

/// The most lines that are read for one response. The others are notifications, requests, or no messages.
const LINES: usize = 10_000;

/// The last lines of standard error that are kept, and the most characters of one.
const STDERR_LINES: usize = 40;
/// The lines of them that a message repeats.
const SHOWN_LINES: usize = 5;
const STDERR_CHARACTERS: usize = 400;

/// How long a process may take to end after its input is closed, and again after `SIGTERM`.
const GRACE: Duration = Duration::from_secs(1);

/// A process that speaks MCP on its standard streams.
///
/// # Properties
///
/// It leads a process group, which is killed when this is dropped: package runners start the real server.
#[derive(Debug)]
pub(crate) struct Process {
    capabilities: String,
    streams: AsyncMutex<Option<Streams>>,
    group: AsyncMutex<Group>,
    stderr: Arc<Mutex<VecDeque<String>>>,
    stderr_reader: AsyncMutex<Option<JoinHandle<()>>>,
    /// What it answered to `initialize`, for the next client with the same capabilities.
    greeting: OnceLock<Reply>,
    has_answered: AtomicBool,
    /// A message was sent whose response was not received: the next one may be its response.
    is_out_of_step: AtomicBool,
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
        let mut group = Group::start(program, command)?;
        let child = &mut group.child;
        let taken = (
            child.stdin().take(),
            child.stdout().take(),
            child.stderr().take(),
        );
        let (Some(input), Some(output), Some(stderr)) = taken else {
            return Err(format!("`{program}` has no standard streams"));
        };
        let lines = Arc::default();
        let reader = tokio::spawn(read_stderr(stderr, Arc::clone(&lines)));
        let output = BufReader::new(output);
        Ok(Self {
            capabilities: capabilities.to_owned(),
            streams: AsyncMutex::new(Some(Streams { input, output })),
            group: AsyncMutex::new(group),
            stderr: lines,
            stderr_reader: AsyncMutex::new(Some(reader)),
            greeting: OnceLock::new(),
            has_answered: AtomicBool::new(false),
            is_out_of_step: AtomicBool::new(false),
        })
    }

    pub(crate) fn capabilities(&self) -> &str {
        &self.capabilities
    }

    /// Whether another client can use it.
    pub(crate) fn is_usable(&self) -> bool {
        let is_greeted = self.capabilities.is_empty() || self.greeting.get().is_some();
        is_greeted && !self.is_out_of_step.load(Ordering::Relaxed)
    }

    /// The reply to a handshake that this process has done already.
    pub(crate) fn remembered(&self, message: &Outgoing<'_>) -> Option<Reply> {
        let greeting = self.greeting.get()?;
        match message.method {
            "initialize" => Some(Reply {
                status: "stdout, earlier".to_owned(),
                ..greeting.clone()
            }),
            "notifications/initialized" => Some(nothing()),
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
        let limit = match self.has_answered.load(Ordering::Relaxed) {
            true => limits.request,
            false => limits.start.max(limits.request),
        };
        if self.is_out_of_step.swap(true, Ordering::Relaxed) {
            return Err("the process has left an earlier request unanswered".to_owned());
        }
        let mut skipped = Skipped::default();
        let exchange = self.exchange(message, &mut skipped);
        let reply = match timeout(limit, exchange).await {
            Ok(reply) => reply?,
            Err(_) => {
                let seconds = limit.as_secs_f32();
                return Err(format!(
                    "no response within {seconds} s{}",
                    skipped.describe()
                ));
            }
        };
        self.is_out_of_step.store(false, Ordering::Relaxed);
        if message.id.is_some() {
            self.has_answered.store(true, Ordering::Relaxed);
        }
        let is_greeting = message.method == "initialize"
            && reply
                .message
                .as_ref()
                .is_some_and(|it| it.get("result").is_some());
        if is_greeting {
            _ = self.greeting.set(reply.clone());
        }
        Ok(reply)
    }

    async fn exchange(
        &self,
        message: &Outgoing<'_>,
        skipped: &mut Skipped,
    ) -> Result<Reply, String> {
        let mut streams = self.streams.lock().await;
        let streams = streams.as_mut().ok_or("the process was ended")?;
        if write(&mut streams.input, &message.text).await.is_err() {
            return Err(self.ended(skipped).await);
        }
        let Some(id) = message.id else {
            return Ok(nothing());
        };
        for _ in 0..LINES {
            let line = match next_line(&mut streams.output, LINE).await {
                Ok(Some(line)) => line,
                Ok(None) => return Err(self.ended(skipped).await),
                Err(error) => return Err(format!("standard output cannot be read: {error}")),
            };
            if let Some(response) = response_to(&line, Some(id)) {
                return Ok(Reply {
                    session: None,
                    message: Some(response),
                    is_refusal: false,
                    status: "stdout".to_owned(),
                    body: String::from_utf8_lossy(&line).into_owned(),
                });
            }
            match serde_json::from_slice::<Value>(&line) {
                Ok(other) => answer(&mut streams.input, &other).await,
                Err(_) => skipped.note(&line),
            }
        }
        Err(format!(
            "no response in {LINES} lines{}",
            skipped.describe()
        ))
    }

    /// Why there is no response: the process has closed its streams.
    async fn ended(&self, skipped: &Skipped) -> String {
        let status = self.group.lock().await.wait().await;
        if let Some(reader) = self.stderr_reader.lock().await.take() {
            _ = timeout(GRACE, reader).await;
        }
        let skipped = skipped.describe();
        match status {
            Some(status) => format!("the process ended ({status}) before it answered{skipped}"),
            None => format!("the process closed its standard output before it answered{skipped}"),
        }
    }

    /// The last lines of its standard error.
    pub(crate) fn stderr(&self) -> String {
        last_lines(&self.stderr)
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

/// A process with all that it started.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) child: Box<dyn ChildWrapper>,
    /// Its number may since have been given to another group.
    is_killed: bool,
}

impl Group {
    /// Starts `command` as the leader of a group.
    pub(crate) fn start(program: &str, command: Command) -> Result<Self, String> {
        let mut command = CommandWrap::from(command);
        command.wrap(KillOnDrop);
        #[cfg(unix)]
        command.wrap(process_wrap::tokio::ProcessGroup::leader());
        #[cfg(windows)]
        command.wrap(process_wrap::tokio::JobObject);
        let child = command
            .spawn()
            .map_err(|error| match error.kind() {
                ErrorKind::NotFound => format!(
                    "the program `{program}` was not found; install it, put its directory on `PATH`, or give its full path"
                ),
                _ => format!("`{program}` cannot be started: {error}"),
            })?;
        Ok(Self {
            child,
            is_killed: false,
        })
    }

    /// Waits until the process itself has ended, for at most a second.
    pub(crate) async fn wait(&mut self) -> Option<ExitStatus> {
        // The group's own `wait` would wait for the others, too, where this process adopts orphans.
        let status = timeout(GRACE, self.child.inner_mut().wait()).await;
        status.ok().and_then(Result::ok)
    }

    #[cfg(unix)]
    pub(crate) fn terminate(&self) {
        _ = self.child.signal(rustix::process::Signal::TERM.as_raw());
    }

    /// Windows has no signal that asks a process to end.
    #[cfg(not(unix))]
    pub(crate) fn terminate(&self) {}

    pub(crate) fn kill(&mut self) {
        if !self.is_killed {
            // An error means that the group has ended already.
            _ = self.child.start_kill();
            self.is_killed = true;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The reply to a notification.
fn nothing() -> Reply {
    Reply {
        session: None,
        message: None,
        is_refusal: false,
        status: "nothing".to_owned(),
        body: String::new(),
    }
}

/// Lines on standard output that are not JSON.
#[derive(Debug, Default)]
struct Skipped {
    count: usize,
    last: String,
}

impl Skipped {
    fn note(&mut self, line: &[u8]) {
        self.count += 1;
        self.last = cut(&String::from_utf8_lossy(line), STDERR_CHARACTERS);
    }

    /// The end of a sentence about a missing response.
    fn describe(&self) -> String {
        match self.count {
            0 => String::new(),
            count => format!(
                "; it wrote {count} lines to standard output that are not JSON, the last is {:?}",
                self.last
            ),
        }
    }
}

/// Answers a request of the server: `ping` with a result, others with an error, as the client declared nothing.
async fn answer(input: &mut ChildStdin, message: &Value) {
    let (Some(id), Some(method)) = (message.get("id"), message.get("method")) else {
        return;
    };
    let answer = match method.as_str() {
        Some("ping") => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
        // A program that repeats what it reads sends this back, too, and it is read as the refusal.
        Some(method @ ("initialize" | "server/discover")) => {
            let message = format!(
                "`{method}` is a request of clients; a program that repeats what it is sent, as `cat` does, is not an MCP server"
            );
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32600, "message": message}})
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

/// The last lines of standard error, and the first one before them that names an error: stack traces follow it.
pub(crate) fn last_lines(lines: &Mutex<VecDeque<String>>) -> String {
    let lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
    let older = lines.len().saturating_sub(SHOWN_LINES);
    let is_error = |line: &&String| line.to_ascii_lowercase().contains("error");
    let error = lines.iter().take(older).find(is_error);
    let error = error.into_iter().flat_map(|line| [line.as_str(), "..."]);
    let shown = error.chain(lines.iter().skip(older).map(String::as_str));
    shown.collect::<Vec<_>>().join(" | ")
}

/// Keeps the last lines of standard error.
pub(crate) async fn read_stderr(stderr: ChildStderr, lines: Arc<Mutex<VecDeque<String>>>) {
    let mut reader = BufReader::new(stderr);
    loop {
        let line = match next_line(&mut reader, LINE).await {
            Ok(Some(line)) => line,
            // What is not read would stop the process.
            Err(error) if error.kind() == ErrorKind::InvalidData => continue,
            Ok(None) | Err(_) => return,
        };
        let line = cut(String::from_utf8_lossy(&line).trim(), STDERR_CHARACTERS);
        if line.is_empty() {
            continue;
        }
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == STDERR_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}
