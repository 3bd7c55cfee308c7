//! A process with all processes that it starts.

use std::io::ErrorKind;
use std::process::ExitStatus;
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use tokio::process::Command;
use tokio::time::timeout;

/// How long a process may take to end after its input is closed, and again after `SIGTERM`.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// A process with all that it started.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    pub(crate) child: Box<dyn ChildWrapper>,
    /// Its number may since have been given to another group.
    is_killed: bool,
}

impl ProcessGroup {
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

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
