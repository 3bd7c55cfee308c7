//! Runs other programs with a time limit, and ends their whole process group with them.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How often a running program is polled.
const POLL: Duration = Duration::from_millis(10);

/// The time that a program has to end after a signal.
const GRACE: Duration = Duration::from_secs(5);

/// The number of last lines of a failed program's log that are shown.
const TAIL: usize = 60;

/// A program in a separate process group, which ends with this one.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    // An interrupt from the terminal does not reach another process group; the kernel's
    // parent-death signal does, and `setpriv` is part of every Debian.
    let mut command = if cfg!(target_os = "linux") {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    // Python compiles a package when it first imports it. Without this variable it keeps the result: the tests start
    // hundreds of processes with the same packages.
    command.env_remove("PYTHONDONTWRITEBYTECODE");
    command.process_group(0).stdin(Stdio::null());
    command
}

/// Runs `command` to its end, both outputs into `log`.
///
/// # Errors
///
/// When it cannot start, fails, or takes longer than `limit`; the message ends with the log's tail.
pub(crate) fn run(command: &mut Command, log: &Path, limit: Duration) -> Result<(), String> {
    let shown = show(command);
    let status = status(command, log, limit)?;
    if status.success() {
        return Ok(());
    }
    Err(format!("{shown}: {status}\n{}", tail(log)))
}

/// Runs `command` to its end, both outputs into `log`, and returns its exit status.
///
/// # Errors
///
/// When it cannot start or takes longer than `limit`.
pub(crate) fn status(
    command: &mut Command,
    log: &Path,
    limit: Duration,
) -> Result<ExitStatus, String> {
    let mut group = Group::logged(command, log)?;
    let ended = group.wait(limit);
    ended.map_err(|error| format!("{}: {error}\n{}", show(command), tail(log)))
}

/// Runs `command` to its end and returns its standard output.
///
/// # Errors
///
/// When it cannot start, fails, or takes longer than `limit`.
pub(crate) fn output(command: &mut Command, limit: Duration) -> Result<String, String> {
    let shown = show(command);
    command.stdout(Stdio::piped());
    let mut group = Group::start(command)?;
    let pipe = group.0.stdout.take();
    // The reader has a thread, so that a full pipe cannot stop the program from ending.
    let reader = thread::spawn(move || pipe.map_or(Ok(String::new()), io::read_to_string));
    let ended = group
        .wait(limit)
        .map_err(|error| format!("{shown}: {error}"))?;
    let text = match reader.join() {
        Ok(text) => text.map_err(|error| format!("{shown}: {error}"))?,
        Err(_) => return Err(format!("{shown}: reading its output failed")),
    };
    if ended.success() {
        Ok(text)
    } else {
        Err(format!("{shown}: {ended}"))
    }
}

/// A program with all processes that it started. They are ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Group(Child);

impl Group {
    /// Starts `command`, which must come from [`command`].
    ///
    /// # Errors
    ///
    /// When it cannot start.
    fn start(command: &mut Command) -> Result<Self, String> {
        let started = command.spawn().map(Self);
        started.map_err(|error| format!("{}: {error}", show(command)))
    }

    /// The same; both of its outputs go to `log`.
    ///
    /// # Errors
    ///
    /// When it cannot start.
    pub(crate) fn logged(command: &mut Command, log: &Path) -> Result<Self, String> {
        let file = File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
        let copy = file.try_clone().map_err(|error| error.to_string())?;
        Self::start(command.stdout(file).stderr(copy))
    }

    /// Waits until the program ends by itself.
    ///
    /// # Errors
    ///
    /// When `limit` has passed. The group is killed.
    pub(crate) fn wait(&mut self, limit: Duration) -> Result<ExitStatus, String> {
        let started = Instant::now();
        while started.elapsed() < limit {
            match self.0.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) => thread::sleep(POLL),
                Err(error) => return Err(error.to_string()),
            }
        }
        self.end();
        Err(format!("killed after {} s", limit.as_secs()))
    }

    /// Looks again and again until there is a value.
    ///
    /// # Errors
    ///
    /// When the program has ended, or `limit` has passed.
    pub(crate) fn until<T>(
        &mut self,
        limit: Duration,
        find: impl Fn() -> Option<T>,
    ) -> Result<T, String> {
        let started = Instant::now();
        while started.elapsed() < limit {
            if let Some(found) = find() {
                return Ok(found);
            }
            if let Some(status) = self.0.try_wait().map_err(|error| error.to_string())? {
                return Err(format!("ended: {status}"));
            }
            thread::sleep(POLL);
        }
        Err(format!("is not ready after {} s", limit.as_secs()))
    }

    /// Ends the whole group, first with a signal, so that a gateway can stop its servers.
    fn end(&mut self) {
        self.signal("TERM");
        let signalled = Instant::now();
        while signalled.elapsed() < GRACE && matches!(self.0.try_wait(), Ok(None)) {
            thread::sleep(POLL);
        }
        self.signal("KILL");
        let _ = self.0.wait();
    }

    fn signal(&self, name: &str) {
        // The standard library ends single processes only. `kill` is built into every `sh`.
        let group = format!("kill -{name} -{}", self.0.id());
        let _ = Command::new("sh")
            .args(["-c", &group])
            .stderr(Stdio::null())
            .status();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// The last lines of `log`, indented.
pub(crate) fn tail(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(TAIL);
    let mut tail = String::new();
    if skipped > 0 {
        let _ = writeln!(tail, "    ... {skipped} more lines in {}", log.display());
    }
    for line in &lines[skipped..] {
        let _ = writeln!(tail, "    {line}");
    }
    tail
}

/// `command` as a command line.
fn show(command: &Command) -> String {
    let mut parts: Vec<String> = vec![PathBuf::from(command.get_program()).display().to_string()];
    parts.extend(command.get_args().map(|word| word.display().to_string()));
    if let Some(end) = parts.iter().position(|word| word == "--")
        && parts[0] == "setpriv"
    {
        parts.drain(..=end);
    }
    parts.join(" ")
}
