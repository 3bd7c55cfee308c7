//! Servers that tell of changes, with Vary before them.

use std::path::Path;

use serde_json::{Value, json};

use crate::server::Server;
use crate::workspace::Workspace;
use crate::{npm, process};

/// Gateways before the fixture, which tells of what its tools change, and before the official server; and what the
/// scripts are told of them.
pub(crate) fn begun(workspace: &Workspace, vary: &Path) -> Result<(Value, Vec<Server>), String> {
    let fixture = workspace.binary("fixture-server")?;
    let fixture = fixture.display().to_string();
    let everything = "@modelcontextprotocol/server-everything";
    let servers: [(&str, &[&str]); 2] = [
        ("fixture", &[&fixture, "--stdio"]),
        ("everything", &["npx", "-y", everything]),
    ];
    let mut argument = json!({});
    let mut running = Vec::new();
    for (name, program) in servers {
        let log = workspace.scratch(&format!("interop/hearing-{name}.log"))?;
        let mut command = process::command(vary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--"]);
        npm::with_packages(workspace, command.args(program))?;
        let server = Server::start(&mut command, &log)?;
        let stdio = [vary.to_str().unwrap_or("vary"), "serve", "--stdio", "--"];
        let stdio = [&stdio[..], program].concat();
        argument[name] = json!({"url": server.url, "command": stdio});
        running.push(server);
    }
    Ok((argument, running))
}
