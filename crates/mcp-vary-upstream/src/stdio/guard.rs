//! A process that ends the servers of this one, once this one is gone without having ended them: killed, or interrupted twice.
//!
//! `PR_SET_PDEATHSIG` would end the program that was started, and not what it started: a package runner, but not the server.

use std::io;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use super::stragglers;

static COMMAND: OnceLock<fn() -> Command> = OnceLock::new();

/// Starts the guard with `command` and one more argument before the first server is started; the command has to call
/// [`guard_servers`] with that argument. Only Linux tells which processes are a server's.
pub fn set_server_guard(command: fn() -> Command) {
    // The first one counts.
    let _ = COMMAND.set(command);
}

/// Waits until the process that started this one is gone, then kills its servers and what they started: `prefix` is the
/// argument that it gave.
pub fn guard_servers(prefix: &str) {
    // The system closes the other end with its process.
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    stragglers::kill_all(|value| value.starts_with(prefix));
    // A process has the variable only after its program was loaded.
    thread::sleep(Duration::from_millis(200));
    stragglers::kill_all(|value| value.starts_with(prefix));
}

/// Starts the guard, unless that was done. `outer` is the value of the variable of the start of this process.
pub(super) fn ensure(outer: Option<String>) {
    static GUARD: OnceLock<Option<Child>> = OnceLock::new();
    GUARD.get_or_init(|| {
        let command = cfg!(target_os = "linux").then(|| COMMAND.get()).flatten()?;
        let guard = start(command(), &stragglers::own_prefix(outer));
        let started = guard.inspect_err(|error| {
            tracing::warn!(%error, "servers may outlive this process if it is killed: their guard cannot be started");
        });
        started.ok()
    });
}

fn start(mut command: Command, prefix: &str) -> io::Result<Child> {
    // What ends the group of this process must not end the guard first.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
        .arg(prefix)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}
