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
