//! Fork servers: Python processes that have imported an SDK, and run each script in a fork of themselves.
//!
//! The import takes longer than most tests of an SDK. Over HTTP each server in Python runs once in a process that was
//! started for it, as a user would start it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process as this;
use std::time::Duration;

use crate::process::{self, Group, tail};
use crate::workspace::Workspace;
use crate::{npm, python};

/// The environments, and what the fork server of each imports: what its clients and servers need.
const ENVIRONMENTS: [(&str, &str); 3] = [
    (
        "python",
        "anyio._backends._asyncio httpx2 jsonschema mcp.client.client mcp.client.extension \
         mcp.client.stdio mcp.client.streamable_http mcp.client.subscriptions mcp.server.mcpserver \
         mcp_server_time",
    ),
    (
        python::FIRST,
        "anyio._backends._asyncio httpx jsonschema mcp.client.session mcp.client.stdio \
         mcp.client.streamable_http",
    ),
    (
        python::FASTMCP,
        "anyio._backends._asyncio docket.tasks fastmcp.client.transports fastmcp.server.context \
         fastmcp.server.elicitation fastmcp.server.server fastmcp.server.sessions \
         fastmcp_tasks.lifespan griffe jsonschema mcp.client.client mcp.client.stdio \
         mcp.client.streamable_http mcp.client.subscriptions",
    ),
];

/// Only for a server that hangs: the imports take less on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A fork server for each environment. They end, with their forks, when this is dropped.
#[derive(Debug)]
pub(crate) struct ForkServers(Vec<ForkServer>);

#[derive(Debug)]
struct ForkServer {
    environment: &'static str,
    /// The Python of the environment.
    python: PathBuf,
    /// The socket on which it listens.
    socket: PathBuf,
    log: PathBuf,
    group: Group,
}

impl ForkServers {
    /// Starts them all.
    ///
    /// # Errors
    ///
    /// When one cannot start, or does not listen in time.
    pub(crate) fn start(workspace: &Workspace) -> Result<Self, String> {
        let mut servers = Vec::new();
        for (environment, modules) in ENVIRONMENTS {
            let python = python::program(workspace, environment, "python")?;
            servers.push(ForkServer::begin(workspace, environment, python, modules)?);
        }
        for server in &mut servers {
            server.ready()?;
        }
        Ok(Self(servers))
    }

    /// The command that runs a Python script, or a program that is one, in a fork.
    ///
    /// # Errors
    ///
    /// When the environment has no fork server.
    pub(crate) fn command(
        &self,
        workspace: &Workspace,
        environment: &str,
        script: &str,
    ) -> Result<Vec<String>, String> {
        let server = self.0.iter().find(|it| it.environment == environment);
        let server = server.ok_or_else(|| format!("{environment} has no fork server"))?;
        Ok(server.command(workspace, script))
    }
}

impl ForkServer {
    fn begin(
        workspace: &Workspace,
        environment: &'static str,
        python: PathBuf,
        modules: &str,
    ) -> Result<Self, String> {
        // The path of a socket has at most 107 bytes; that of the workspace may be longer.
        let name = format!("vary-{}-{environment}.socket", this::id());
        let socket = env::temp_dir().join(name);
        let log = workspace.scratch(&format!("interop/fork-server-{environment}.log"))?;
        let mut command = process::command(&python);
        npm::with_packages(workspace, &mut command)?;
        command
            .arg("fork_server.py")
            .arg(&socket)
            .args(modules.split(' '));
        let group = Group::logged(&mut command, &log)?;
        Ok(Self {
            environment,
            python,
            socket,
            log,
            group,
        })
    }

    /// Waits until it listens.
    fn ready(&mut self) -> Result<(), String> {
        let is_there = || self.socket.exists().then_some(());
        let ready = self.group.until(LIMIT, is_there);
        ready.map_err(|why| {
            let name = self.environment;
            format!("the fork server of {name} {why}\n{}", tail(&self.log))
        })
    }

    fn command(&self, workspace: &Workspace, script: &str) -> Vec<String> {
        let forked = workspace.path(npm::DIRECTORY).join("forked.py");
        let shown = |path: &Path| path.display().to_string();
        // Without the environment's packages, it starts in a hundredth of a second.
        let mut command = vec![shown(&self.python), "-IS".to_owned(), shown(&forked)];
        command.extend([shown(&self.socket), script.to_owned()]);
        command
    }
}

impl Drop for ForkServer {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::process::{Child, ChildStdout, Command, Stdio};
    use std::sync::mpsc;
    use std::thread;

    /// A fork server without an SDK, and a script that runs in a fork of it and has printed `ready`.
    fn ready(name: &'static str, script: &str) -> (ForkServer, Child, BufReader<ChildStdout>) {
        let workspace = Workspace::here();
        let mut server = ForkServer::begin(&workspace, name, "python3".into(), "json").unwrap();
        server.ready().unwrap();
        let file = workspace.scratch(&format!("interop/{name}.py")).unwrap();
        fs::write(&file, script).unwrap();
        let words = server.command(&workspace, file.to_str().unwrap());
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .arg("a b")
            .env("SAID", "x")
            .current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        (server, child, stdout)
    }

    /// What is still printed until the other side closes the stream.
    fn remaining_output(mut stdout: BufReader<ChildStdout>) -> String {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut text = String::new();
            let _ = stdout.read_to_string(&mut text);
            let _ = sender.send(text);
        });
        receiver.recv_timeout(LIMIT).unwrap()
    }

    #[test]
    fn a_script_in_a_fork_has_what_its_command_has() {
        let (_server, mut child, stdout) = ready(
            "forks-a-script",
            "import os, sys\nprint('ready', flush=True)\n\
             print(sys.argv[1:], os.environ['SAID'], os.getcwd(), input())\nsys.exit(3)\n",
        );
        child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
        assert_eq!(remaining_output(stdout), "['a b'] x / hello\n");
        assert_eq!(child.wait().unwrap().code(), Some(3));
    }

    #[test]
    fn a_signal_reaches_the_script() {
        let (_server, mut child, stdout) = ready(
            "forks-a-signal",
            "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n\
             print('ready', flush=True)\ntime.sleep(600)\n",
        );
        let signalled = Command::new("kill").arg(child.id().to_string()).status();
        assert!(signalled.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(7));
        assert_eq!(remaining_output(stdout), "");
    }

    #[test]
    fn a_script_ends_with_the_process_that_asked_for_it() {
        let (_server, mut child, stdout) = ready(
            "forks-a-death",
            "import time\nprint('ready', flush=True)\ntime.sleep(600)\n",
        );
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().code(), None);
        assert_eq!(remaining_output(stdout), "");
    }

    #[test]
    fn a_fork_server_that_cannot_import_is_an_error() {
        let workspace = Workspace::here();
        let mut server = ForkServer::begin(
            &workspace,
            "forks-nothing",
            "python3".into(),
            "no_such_module",
        )
        .unwrap();
        let error = server.ready().unwrap_err();
        assert!(
            error.starts_with("the fork server of forks-nothing ended: exit status: 1"),
            "{error}"
        );
        assert!(
            error.contains("No module named 'no_such_module'"),
            "{error}"
        );
    }
}
