//! The process of a client under test.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::io::AsyncReadExt as _;
use tokio::process::{ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::{Instant as Deadline, sleep, timeout};

use crate::era::Era;
use crate::limits::Limits;
use crate::mock_server::MockServer;
use crate::observation::{End, Scenario};
use crate::process_group::ProcessGroup;
use crate::stderr::StderrTail;

/// How long one run may take in any case. A sixth of it is the limit of silence by default; it grows with that.
const LONGEST: Duration = Duration::from_secs(30);

/// How often the state of a run is read.
const TICK: Duration = Duration::from_millis(20);

/// How long the end of standard output and standard error is waited for after the client has ended.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// The most bytes of standard output that are read for the checks.
const OUTPUT: usize = 64 << 10;

/// The process of the client.
#[derive(Debug)]
pub(crate) struct ClientProcess {
    group: ProcessGroup,
    stdout: Arc<Mutex<Vec<u8>>>,
    stderr: StderrTail,
    readers: [JoinHandle<()>; 2],
}

impl ClientProcess {
    pub(crate) fn start(command: &[String], scenario: Scenario, era: Era) -> Result<Self, String> {
        let (program, arguments) = command.split_first().ok_or("the command is empty")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("MCP_CONFORMANCE_SCENARIO", scenario.name())
            .env("MCP_CONFORMANCE_PROTOCOL_VERSION", era.revision())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut group = ProcessGroup::start(program, command)?;
        let streams = group.child.stdout().take().zip(group.child.stderr().take());
        let Some((output, errors)) = streams else {
            return Err(format!("`{program}` has no standard streams"));
        };
        let stdout = Arc::default();
        let stdout_reader = tokio::spawn(read_stdout(output, Arc::clone(&stdout)));
        let (stderr, stderr_reader) = StderrTail::read(errors);
        Ok(Self {
            group,
            stdout,
            stderr,
            readers: [stdout_reader, stderr_reader],
        })
    }

    /// Waits until the client has ended, or has been silent or there for too long.
    pub(crate) async fn wait(
        &mut self,
        server: &MockServer,
        limits: Limits,
        deadline: Deadline,
    ) -> End {
        let started = Instant::now();
        let longest = LONGEST.max(limits.request * 6);
        loop {
            match self.group.child.try_wait() {
                Ok(Some(status)) if status.success() => return End::Success,
                Ok(Some(status)) => return End::Failure(status.to_string()),
                Ok(None) => {}
                Err(error) => return End::Failure(error.to_string()),
            }
            let is_silent = match server.silence() {
                Some(silence) => silence >= limits.request,
                None => started.elapsed() >= limits.start,
            };
            if is_silent {
                return End::Silence;
            }
            if server.is_full() || started.elapsed() >= longest || Deadline::now() >= deadline {
                return End::Limit;
            }
            sleep(TICK).await;
        }
    }

    /// Ends the client with all that it started, and reads what it wrote last.
    pub(crate) async fn close(&mut self) {
        self.group.terminate();
        _ = self.group.wait().await;
        self.group.kill();
        // A process that left the group may still have the streams.
        _ = timeout(LAST_OUTPUT, join_all(&mut self.readers)).await;
    }

    pub(crate) fn stdout(&self) -> String {
        let bytes = self.stdout.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(crate) fn stderr(&self) -> String {
        self.stderr.summary()
    }
}

/// Stores the beginning of standard output, and reads all of it, so that the client can go on.
async fn read_stdout(mut stdout: ChildStdout, stored: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = vec![0; 8 << 10];
    while let Ok(count @ 1..) = stdout.read(&mut buffer).await {
        let mut bytes = stored.lock().unwrap_or_else(PoisonError::into_inner);
        let room = OUTPUT.saturating_sub(bytes.len());
        bytes.extend_from_slice(buffer.get(..count.min(room)).unwrap_or_default());
    }
}
