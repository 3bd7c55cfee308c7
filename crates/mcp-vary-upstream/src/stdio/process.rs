//! A child process with everything that it starts.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use mcp_vary_wire::sanitize::excerpt;
use tokio::process::{Child, Command};

use crate::chain;
use crate::error::ConnectError;

/// A child that leads a process group of its own.
///
/// # Properties
///
/// Dropping it kills the group, so that neither the child nor what it started (package runners start
/// the real server) outlives its owner, even when the owner's task is aborted.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) child: Child,
    group: Group,
}

impl Process {
    /// Starts `program`.
    ///
    /// # Errors
    ///
    /// When it is not there or cannot be started.
    pub(super) fn start(
        server: &Arc<str>,
        program: &str,
        args: &[String],
        env: &BTreeMap<String, String>,
        cwd: Option<&Path>,
        gateways: Option<&str>,
    ) -> Result<Self, ConnectError> {
        let mut command = Command::new(program);
        command
            .args(args)
            .envs(env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(gateways) = gateways {
            command.env(chain::VARIABLE, gateways);
        }
        if let Some(cwd) = cwd {
            command.current_dir(cwd);
        }
        #[cfg(unix)]
        command.process_group(0);
        let child = command
            .spawn()
            .map_err(|error| cannot_start(server, program, cwd, &error))?;
        let group = Group(child.id());
        Ok(Self { child, group })
    }

    /// Waits until the child has ended, then ends the rest of its group.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        self.group.end();
        status
    }

    /// Ends the group: waits, asks with `SIGTERM`, waits, kills. Its input must be closed already.
    ///
    /// The order is that of the specification, 2025-11-25, `basic/lifecycle`, "Shutdown".
    pub(super) async fn stop(&mut self, grace: Duration) {
        if tokio::time::timeout(grace, self.wait()).await.is_err() {
            self.group.signal(Signal::Terminate);
            let _ = tokio::time::timeout(grace, self.wait()).await;
        }
        self.group.end();
        let _ = self.child.start_kill();
        let _ = self.child.wait().await;
    }
}

fn cannot_start(
    server: &Arc<str>,
    program: &str,
    cwd: Option<&Path>,
    error: &io::Error,
) -> ConnectError {
    let server = Arc::clone(server);
    let program = excerpt(program.as_bytes(), 200);
    match cwd {
        Some(cwd) if !cwd.is_dir() => ConnectError::Start {
            server,
            program,
            reason: format!("its directory `{}` does not exist", cwd.display()),
        },
        _ if error.kind() == io::ErrorKind::NotFound => ConnectError::NotFound { server, program },
        _ => ConnectError::Start {
            server,
            program,
            reason: error.to_string(),
        },
    }
}

#[derive(Clone, Copy)]
enum Signal {
    Terminate,
    Kill,
}

/// The process group of a child, killed when dropped.
#[derive(Debug)]
struct Group(Option<u32>);

impl Group {
    /// Kills what is left; afterwards the number may belong to someone else and is forgotten.
    fn end(&mut self) {
        self.signal(Signal::Kill);
        self.0 = None;
    }

    #[cfg(unix)]
    fn signal(&self, signal: Signal) {
        use rustix::process::{Pid, Signal as Number, kill_process_group};
        let number = match signal {
            Signal::Terminate => Number::TERM,
            Signal::Kill => Number::KILL,
        };
        let leader = self.0.and_then(|id| i32::try_from(id).ok());
        if let Some(group) = leader.and_then(Pid::from_raw) {
            // A group that is gone already is what was wanted.
            let _ = kill_process_group(group, number);
        }
    }

    #[cfg(not(unix))]
    fn signal(&self, _: Signal) {}
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}
