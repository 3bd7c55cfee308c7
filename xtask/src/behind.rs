//! Servers that ask their clients, tell of changes and go on working, with Vary before them.

use std::path::Path;

use serde_json::{Value, json};

use crate::server::Server;
use crate::workspace::Workspace;
use crate::{npm, process};

/// Gateways before the servers by the names that the scripts know, and what the scripts are told of them; and the
/// servers that have to live as long.
pub(crate) fn begun(workspace: &Workspace, vary: &Path) -> Result<(Value, Vec<Server>), String> {
    let log = workspace.scratch("interop/everything-http.log")?;
    let mut command = npm::node(workspace)?;
    let over_http = Server::start(command.arg("everything-http.mjs"), &log)?;
    let fixture = workspace.binary("fixture-server")?;
    let fixture = fixture.to_str().unwrap_or("fixture-server");
    let everything = "@modelcontextprotocol/server-everything";
    let servers: &[(&str, &[&str])] = &[
        ("everything", &["--", "npx", "-y", everything]),
        ("everything-http", &["--url", &over_http.url]),
        // Asks for what the official one does not.
        ("asking", &["--", "node", "asking-server.mjs"]),
        // Tells how its tasks stand, which the fixture cannot.
        ("tasks", &["--", "node", "tasks-server.mjs"]),
        ("fixture", &["--", fixture, "--stdio"]),
        // The others know sessions.
        ("modern", &["--", fixture, "--stdio", "--era", "modern"]),
    ];
    let mut argument = json!({});
    let mut running = Vec::new();
    for (name, target) in servers {
        let log = workspace.scratch(&format!("interop/behind-{name}.log"))?;
        let mut command = process::command(vary);
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        npm::with_packages(workspace, command.args(*target))?;
        let server = Server::start(&mut command, &log)?;
        let stdio = [vary.to_str().unwrap_or("vary"), "serve", "--stdio"];
        let stdio = [&stdio[..], target].concat();
        argument[name] = json!({"url": server.url, "command": stdio});
        running.push(server);
    }
    running.push(over_http);
    Ok((argument, running))
}
