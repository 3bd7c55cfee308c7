//! A child process with all processes that it starts.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::json;
use mcp_vary_base::environment::Variables;
use mcp_vary_base::io_error;
use mcp_vary_wire::sanitize::excerpt;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

use super::guard;
use super::stragglers::{self, Sweep};
use crate::chain;
use crate::command_line::shell_word;
use crate::connect_error::ConnectError;

/// A child process that leads a process group; on Windows, a job object.
///
/// # Properties
///
/// Dropping it kills the group, so that neither the child nor the processes that it started (package runners start
/// the real server) outlive the connection, even when the task that supervises it is aborted. On Linux that holds for
/// processes that left the group, too, a moment later. The job object is not covered by tests.
#[derive(Debug)]
pub(crate) struct Process {
    child: Box<dyn ChildWrapper>,
    /// The group was killed; its number may since have been given to another one. The sweep kills those that left it.
    killed_by: Option<Sweep>,
    /// Marks the processes that left the group.
    marker: String,
}

impl Process {
    /// Starts `program`.
    ///
    /// # Errors
    ///
    /// When it is not there or cannot be started.
    pub(crate) fn start(
        server: &Arc<str>,
        program: &str,
        args: &[String],
        env: &BTreeMap<String, String>,
        cwd: Option<&Path>,
        (gateways, variables): (Option<&str>, Variables),
    ) -> Result<Self, ConnectError> {
        let outer = variables(stragglers::VARIABLE);
        guard::ensure(outer.clone());
        let marker = stragglers::next_value(outer);
        let mut command = Command::new(program);
        command
            .args(args)
            .envs(env)
            .env(stragglers::VARIABLE, &marker)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(gateways) = gateways {
            command.env(chain::ENV_VAR, gateways);
        }
        if let Some(cwd) = cwd {
            command.current_dir(cwd);
        }
        let mut command = CommandWrap::from(command);
        command.wrap(KillOnDrop);
        #[cfg(unix)]
        command.wrap(process_wrap::tokio::ProcessGroup::leader());
        #[cfg(windows)]
        command.wrap(process_wrap::tokio::JobObject);
        let child = command
            .spawn()
            .map_err(|error| cannot_start(server, (program, args), cwd, &error))?;
        Ok(Self {
            child,
            killed_by: None,
            marker,
        })
    }

    /// Its process group, by number.
    pub(super) fn group(&self) -> Option<u32> {
        self.child.id()
    }

    /// The standard input, output and error of the child; `None` if they were taken before.
    pub(crate) fn take_streams(&mut self) -> Option<(ChildStdin, ChildStdout, ChildStderr)> {
        let streams = (
            self.child.stdin().take()?,
            self.child.stdout().take()?,
            self.child.stderr().take()?,
        );
        Some(streams)
    }

    /// Waits until the child has ended, then kills the other processes of its group.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        // The group's own `wait` would wait for the others, too, where this process adopts orphans (as process 1).
        let status = self.child.inner_mut().wait().await;
        self.kill_group();
        status
    }

    /// Ends the group: waits, sends `SIGTERM`, waits, kills. Its input must be closed already.
    ///
    /// The order is that of the specification, 2025-11-25, `basic/lifecycle`, "Shutdown".
    pub(super) async fn stop(&mut self, grace: Duration) {
        if tokio::time::timeout(grace, self.wait()).await.is_err() {
            self.terminate_group();
            let _ = tokio::time::timeout(grace, self.wait()).await;
        }
        self.kill_group();
        let _ = self.child.inner_mut().wait().await;
        if let Some(sweep) = self.killed_by {
            stragglers::swept(sweep).await;
        }
    }

    #[cfg(unix)]
    fn terminate_group(&self) {
        let _ = self.child.signal(rustix::process::Signal::TERM.as_raw());
    }

    /// Windows has no signal that asks a process to end.
    #[cfg(not(unix))]
    fn terminate_group(&self) {}

    fn kill_group(&mut self) {
        if self.killed_by.is_none() {
            // An error means that the group has ended already.
            let _ = self.child.start_kill();
            self.killed_by = Some(stragglers::kill(self.marker.clone()));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_group();
    }
}

fn cannot_start(
    server: &Arc<str>,
    (program, args): (&str, &[String]),
    cwd: Option<&Path>,
    error: &io::Error,
) -> ConnectError {
    let server = Arc::clone(server);
    let program = excerpt(program.as_bytes(), 200);
    match cwd {
        Some(cwd) if let Some(problem) = directory_problem(cwd) => ConnectError::Start {
            server,
            program,
            reason: format!("its directory `{}` {problem}", cwd.display()),
        },
        // The system reports a missing interpreter as it reports a missing program.
        _ if error.kind() == io::ErrorKind::NotFound
            && cwd.unwrap_or(Path::new("")).join(&program).is_file() =>
        {
            ConnectError::Start {
                server,
                reason: missing_interpreter(&cwd.unwrap_or(Path::new("")).join(&program)),
                program,
            }
        }
        _ if error.kind() == io::ErrorKind::NotFound => ConnectError::NotFound {
            server,
            advice: split_path_advice(&program, args)
                .unwrap_or_else(|| missing_program_advice(&program, cwd.unwrap_or(Path::new("")))),
            program,
        },
        _ => ConnectError::Start {
            reason: io_error::describe(error) + start_advice(&program, cwd, error),
            server,
            program,
        },
    }
}

/// Why a script that exists was not found: the first line of the file at `path` names another program.
fn missing_interpreter(path: &Path) -> String {
    match (interpreter(path), windows_line_ends(path)) {
        (_, Some(line_ends)) => line_ends,
        (Some(named), None) => format!("its first line names `{named}`, which does not exist"),
        (None, None) => "a library or program that it needs does not exist".to_owned(),
    }
}

/// That the script at `path` cannot run, since its lines end as on Windows, and what to do; `None` for others.
pub(super) fn windows_line_ends(path: &Path) -> Option<String> {
    let program = interpreter(path)?;
    let named = program.strip_suffix('\r')?;
    let file = shell_word(&path.display().to_string());
    Some(format!(
        "its first line names `{named}\\r`: it has the line ends of Windows; take them out: sed -i 's/\\r$//' {file}"
    ))
}

/// What the first line of the script at `path` names after `#!`.
fn interpreter(path: &Path) -> Option<String> {
    let mut start = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(MAX_FIRST_LINE).read_to_end(&mut start).ok()?;
    let line = start
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let (line, end) = line
        .strip_suffix(b"\r")
        .map_or((line, ""), |line| (line, "\r"));
    Some(excerpt(line, 100).trim().to_owned() + end)
}

/// The most bytes of a first line that are read.
const MAX_FIRST_LINE: u64 = 256;

/// Why no program can be started in a directory.
fn directory_problem(cwd: &Path) -> Option<String> {
    if cwd.is_file() {
        return Some("is a file".to_owned());
    }
    // To look `.` up needs the permission to enter the directory, not the one to list it.
    match std::fs::metadata(cwd.join(".")) {
        Ok(_) => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some("does not exist".to_owned()),
        Err(error) => Some(format!("cannot be entered: {}", io_error::describe(&error))),
    }
}

/// What to do about a path of Windows that a shell has split at its spaces, or whose `\` it has taken.
fn split_path_advice(program: &str, args: &[String]) -> Option<String> {
    let mut start = program.chars();
    let is_drive = start.next()?.is_ascii_alphabetic() && start.next()? == ':';
    let path = match start.next()? {
        _ if !is_drive => return None,
        '\\' | '/' => {
            let is_end = |word: &String| {
                let lowercase = word.to_ascii_lowercase();
                [".exe", ".cmd", ".bat"].iter().any(|end| lowercase.ends_with(end))
            };
            let end = args.iter().take(MAX_SPACES).position(is_end)?;
            format!("{program} {}", args.get(..=end)?.join(" "))
        }
        _ => return Some("a shell took each `\\` of its path: write the path in quotes, as in 'C:\\Tools\\server.exe'".to_owned()),
    };
    let path = excerpt(path.as_bytes(), 200);
    Some(format!(
        "its path has spaces: write it in quotes, as in \"{path}\""
    ))
}

/// How many spaces the path of a program may have.
const MAX_SPACES: usize = 8;

/// What to do about a `program` that does not exist, looked for from the directory `cwd`.
fn missing_program_advice(program: &str, cwd: &Path) -> String {
    let command = program.trim();
    let parts: Vec<&str> = command.split_whitespace().collect();
    let is_drive = |start: &str| matches!(start, ":\\" | ":/");
    let is_absolute = command.starts_with('/') || command.get(1..3).is_some_and(is_drive);
    match &parts[..] {
        _ if let Some((path, args)) = split_after_extension(command)
            && path.contains(' ') =>
        {
            let quoted: Vec<String> = args.split_whitespace().map(json::string).collect();
            format!(
                "write only the program as `command`, and put the arguments into `args`, as in `command: '{path}'` and \
                 `args: [{}]` (in JSON, write `\\\\` for each backslash)",
                quoted.join(", ")
            )
        }
        [first, args @ ..] if !args.is_empty() => {
            // A path may have spaces. That of a program ends before the next path or option.
            let is_path =
                |part: &&str| part.starts_with('-') || part.get(1..3).is_some_and(is_drive);
            if is_absolute && !args.iter().any(is_path) && !cwd.join(first).is_file() {
                return "there is no file with this path; check it, or write only the name of the program if it is on `PATH`"
                    .to_owned();
            }
            let quoted: Vec<String> = args.iter().map(|part| json::string(part)).collect();
            format!(
                "it has spaces: write only the program as `command`, and put the arguments into `args`, as in \
                 `\"command\": {}, \"args\": [{}]` (on a command line, leave out the quotes)",
                json::string(first),
                quoted.join(", ")
            )
        }
        _ if is_absolute => "there is no file with this path; check it".to_owned(),
        _ if command.contains('/') => {
            let directory = std::path::absolute(cwd.join(".")).unwrap_or_else(|_| cwd.to_owned());
            format!(
                "it is looked for in {}; write its whole path, or name its directory in `cwd`",
                directory.display()
            )
        }
        _ => "install it, put its directory on `PATH`, or give its full path".to_owned(),
    }
}

/// A program of Windows and its arguments, if it has any. Its path may have spaces, and ends with its extension.
fn split_after_extension(program: &str) -> Option<(&str, &str)> {
    let lower = program.to_ascii_lowercase();
    let ends = [".exe ", ".cmd ", ".bat "].into_iter();
    let end = ends.filter_map(|end| lower.find(end)).min()? + 4;
    program.split_at_checked(end)
}

/// What to do about a program that is there but cannot be started.
fn start_advice(program: &str, cwd: Option<&Path>, error: &io::Error) -> &'static str {
    let path = cwd.unwrap_or(Path::new("")).join(program);
    match error.kind() {
        io::ErrorKind::PermissionDenied if path.is_dir() => {
            "; it is a directory: name the program in it"
        }
        _ if error.to_string().starts_with("Exec format error") => {
            "; it begins with no `#!` line: write the program that runs it as `command`"
        }
        io::ErrorKind::PermissionDenied if path.is_file() => {
            "; it is not executable: run `chmod +x` on it, or write the program that runs it as `command`, as in \
             `command: python3` and `args: [server.py]`"
        }
        io::ErrorKind::PermissionDenied if !program.contains('/') => {
            "; a folder of `PATH` cannot be entered, or a file of this name there is not executable: write the full path of \
             the program"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_path_that_cannot_be_entered_is_named_as_a_cause() {
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let advice = start_advice("vary-no-such-program", None, &denied);
        assert!(
            advice.starts_with("; a folder of `PATH` cannot be entered, or "),
            "{advice}"
        );
        assert_eq!(start_advice("/srv/program", None, &denied), "");
    }
}
