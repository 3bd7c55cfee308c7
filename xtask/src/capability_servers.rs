//! Servers with server requests, change notifications and tasks, with Vary in front of them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::fork_server::ForkServers;
use crate::replicas::Store;
use crate::server::{Server, StartingServer, serve};
use crate::workspace::Workspace;
use crate::{cargo, npm, process, python};

/// Starts the gateways in front of the servers; with a store, three in front of each. Returns the scripts' argument about
/// them, by the names that the scripts know, and the servers, which must run as long as the scripts.
pub(crate) fn start(
    workspace: &Workspace,
    vary: &Path,
    forks: &ForkServers,
    store: Option<&Store>,
) -> Result<(Value, Vec<Server>), String> {
    let fixture = cargo::binary(workspace, "fixture-server")?;
    let fixture = fixture.to_str().unwrap_or("fixture-server");
    let mut targets = vec![
        // The installed program: over stdio every client starts it, and npx takes longer to start than the server.
        ("everything".to_owned(), stdio(&["mcp-server-everything"])),
        // Sends server requests that the official server does not send.
        ("asking".to_owned(), stdio(&["node", "asking-server.mjs"])),
        // Sends notifications about the status of its tasks, which the fixture cannot.
        ("tasks".to_owned(), stdio(&["node", "tasks-server.mjs"])),
        ("fixture".to_owned(), stdio(&[fixture, "--stdio"])),
        // The other servers have sessions.
        (
            "modern".to_owned(),
            stdio(&[fixture, "--stdio", "--era", "modern"]),
        ),
    ];
    let mut starting = Vec::new();
    let mut begin = |name: &str, command: &[&str]| -> Result<(), String> {
        let log = workspace.scratch(&format!("interop/{name}.log"))?;
        let mut program = process::command(command[0]);
        npm::with_packages(workspace, program.args(&command[1..]))?;
        let server = StartingServer::begin(&mut program, &log)?;
        starting.push((name.to_owned(), server));
        Ok(())
    };
    begin("everything-http", &["node", "everything-http.mjs"])?;
    // The transport of 2024-11-05, of the TypeScript SDK 1 and of the Python SDK.
    begin("everything-sse", &["node", "everything-http.mjs", "sse"])?;
    for (name, environment, script) in OF_BOTH_ERAS {
        let program = match environment {
            Some(environment) => python::program(workspace, environment, "python")?,
            None => "node".into(),
        };
        let program = program.display().to_string();
        let command = match environment {
            Some(environment) => forks.command(workspace, environment, script)?,
            None => vec![program.clone(), script.to_owned()],
        };
        targets.push((
            name.to_owned(),
            json!({"command": command[0], "args": command[1..]}),
        ));
        begin(&format!("{name}-http"), &[&program, script, "http"])?;
        if name == SSE {
            begin(&format!("{name}-sse"), &[&program, script, "sse"])?;
        }
    }
    let mut running = Vec::new();
    for (name, server) in starting {
        let server = server.ready()?;
        targets.push((name, json!({"url": server.url})));
        running.push(server);
    }
    let (argument, gateways) = match store {
        None => gateways(workspace, vary, targets)?,
        Some(store) => replicas(workspace, vary, targets, store)?,
    };
    running.extend(gateways);
    Ok((argument, running))
}

/// A gateway in front of each target, and the scripts' argument about them.
fn gateways(
    workspace: &Workspace,
    vary: &Path,
    targets: Vec<(String, Value)>,
) -> Result<(Value, Vec<Server>), String> {
    let mut starting = Vec::new();
    for (name, target) in targets {
        let file = workspace.scratch(&format!("interop/behind-{name}.json"))?;
        let configuration = configuration(&name, target);
        fs::write(&file, configuration.to_string()).map_err(|error| error.to_string())?;
        let log = workspace.scratch(&format!("interop/behind-{name}.log"))?;
        let mut command = serve(vary);
        npm::with_packages(workspace, command.arg(&file))?;
        starting.push((name, file, StartingServer::begin(&mut command, &log)?));
    }
    let mut argument = json!({});
    let mut running = Vec::new();
    for (name, file, server) in starting {
        let server = server.ready()?;
        let stdio = json!([vary, "serve", "--stdio", file]);
        argument[&name] = json!({"url": server.url, "command": stdio});
        running.push(server);
    }
    Ok((argument, running))
}

/// The same with three replicas in front of each.
fn replicas(
    workspace: &Workspace,
    vary: &Path,
    targets: Vec<(String, Value)>,
    store: &Store,
) -> Result<(Value, Vec<Server>), String> {
    let mut argument = json!({});
    let mut running = Vec::new();
    for (name, target) in targets {
        let configuration = configuration(&name, target);
        let replicas = store.replicas(workspace, vary, &name, configuration)?;
        // Nobody starts a gateway on stdio here.
        argument[&name] = json!({"url": replicas.url, "command": []});
        running.extend(replicas.servers);
    }
    Ok((argument, running))
}

/// The configuration of a gateway in front of a server.
fn configuration(name: &str, mut server: Value) -> Value {
    server["ready-timeout"] = json!(START_WAIT);
    json!({
        "start-wait": START_WAIT,
        "limits": {"classes": CLASSES},
        "servers": {name: server},
    })
}

/// The entry of a server that Vary starts.
fn stdio(command: &[&str]) -> Value {
    json!({"command": command[0], "args": command[1..]})
}

/// The servers of both eras, each with a different SDK: its name, its environment if it is in Python, and its script.
/// Over stdio each client of the gateway starts one.
const OF_BOTH_ERAS: [(&str, Option<&str>, &str); 3] = [
    ("typescript-sdk", None, "sdk-server.mjs"),
    ("python-sdk", Some("python"), "sdk_server.py"),
    ("fastmcp", Some(python::FASTMCP), "fastmcp_server.py"),
];

/// The one of these that also has the transport of 2024-11-05.
const SSE: &str = "python-sdk";

/// More classes than the clients of all jobs have. Beyond the limit a client shares the class of another one, and gets its own
/// when that is free: between two requests it may so change the process of a server, and not see what it added there.
const CLASSES: usize = 64;

/// Longer than a server takes to start while other jobs take up the machine.
pub(crate) const START_WAIT: &str = "60s";
