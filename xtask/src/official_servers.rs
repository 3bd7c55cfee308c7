//! The official servers, each with Vary in front of it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::fork_server::ForkServers;
use crate::server::{Server, serve};
use crate::workspace::Workspace;
use crate::{npm, python};

/// A server with Vary in front of it.
pub(crate) struct OfficialServer {
    pub(crate) name: &'static str,
    /// Vary over HTTP.
    pub(crate) http: Server,
    /// The command that starts Vary with the server over stdio.
    pub(crate) stdio: Vec<String>,
}

/// Starts Vary in front of each official server.
///
/// # Errors
///
/// When one does not start.
pub(crate) fn start(
    workspace: &Workspace,
    vary: &Path,
    forks: &ForkServers,
    directory: &str,
) -> Result<Vec<OfficialServer>, String> {
    let mut begun = Vec::new();
    for (name, upstream) in commands(workspace, directory)? {
        let log = workspace.scratch(&format!("interop/{name}-vary.log"))?;
        let mut command = serve(vary);
        command.arg("--").args(&upstream);
        npm::with_packages(workspace, &mut command)?;
        let http = Server::start(&mut command, &log)?;
        let mut stdio = vec![vary.display().to_string()];
        stdio.extend(["serve", "--stdio", "--"].map(str::to_owned));
        stdio.extend(quickly(workspace, forks, &upstream)?);
        begun.push(OfficialServer { name, http, stdio });
    }
    Ok(begun)
}

/// The servers, and the commands with which a user starts them.
///
/// # Errors
///
/// When one is not installed.
pub(crate) fn commands(
    workspace: &Workspace,
    directory: &str,
) -> Result<Vec<(&'static str, Vec<String>)>, String> {
    let npx = |package: &str| ["npx", "-y", package].map(str::to_owned).to_vec();
    let mut filesystem = npx("@modelcontextprotocol/server-filesystem");
    filesystem.push(directory.to_owned());
    let time = python::program(workspace, "python", "mcp-server-time")?;
    Ok(vec![
        ("everything", npx("@modelcontextprotocol/server-everything")),
        ("filesystem", filesystem),
        ("time", vec![time.display().to_string()]),
    ])
}

/// A command that starts the same server in less time: the installed program of the package, or a fork.
///
/// Over stdio every connection starts the server, the Inspector's every request; npx takes longer to start than the
/// servers themselves. Over HTTP each server runs once, as a user would start it.
fn quickly(
    workspace: &Workspace,
    forks: &ForkServers,
    command: &[String],
) -> Result<Vec<String>, String> {
    Ok(match command {
        [npx, yes, package, arguments @ ..] if npx == "npx" && yes == "-y" => {
            let program = package.replacen("@modelcontextprotocol/", "mcp-", 1);
            [program]
                .into_iter()
                .chain(arguments.iter().cloned())
                .collect()
        }
        [time] => forks.command(workspace, "python", time)?,
        _ => command.to_vec(),
    })
}

/// The directory that the filesystem server can access.
pub(crate) fn files(workspace: &Workspace) -> Result<String, String> {
    let greeting = workspace.scratch("interop/files/greeting.txt")?;
    fs::write(&greeting, "Grüezi mitenand\n").map_err(|error| error.to_string())?;
    let directory = greeting.parent().map(PathBuf::from).unwrap_or_default();
    Ok(directory.display().to_string())
}
