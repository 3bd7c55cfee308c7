//! Servers that ask their clients for something, with Vary before them.

use std::path::Path;

use serde_json::{Value, json};

use crate::server::Server;
use crate::workspace::Workspace;
use crate::{npm, process};

/// The servers by the names that the scripts know, and how each is started: the official one, and one that asks
/// for what that does not.
const SERVERS: &[(&str, &[&str])] = &[
    (
        "everything",
        &["npx", "-y", "@modelcontextprotocol/server-everything"],
    ),
    ("asking", &["node", "asking-server.mjs"]),
];

/// Gateways before the servers, and what the scripts are told of them.
pub(crate) fn begun(workspace: &Workspace, vary: &Path) -> Result<(Value, Vec<Server>), String> {
    let mut argument = json!({});
    let mut running = Vec::new();
    let fixture = workspace.binary("fixture-server")?;
    let fixture = fixture.to_str().unwrap_or("fixture-server");
    // The official ones know sessions alone; this one does not.
    let modern = ("fixture", &[fixture, "--stdio", "--era", "modern"][..]);
    for (name, program) in SERVERS.iter().chain([&modern]) {
        let log = workspace.scratch(&format!("interop/asking-{name}.log"))?;
        let mut command = process::command(vary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--"]);
        npm::with_packages(workspace, command.args(*program))?;
        let server = Server::start(&mut command, &log)?;
        let stdio = [vary.to_str().unwrap_or("vary"), "serve", "--stdio", "--"];
        let stdio = [&stdio[..], program].concat();
        argument[name] = json!({"url": server.url, "command": stdio});
        running.push(server);
    }
    Ok((argument, running))
}
