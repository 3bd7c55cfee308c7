//! The servers of a soak: four of them, for each era and transport, and Vary in front of all.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout};

use crate::gateway::Gateway;
use crate::process;

/// The programs of a soak, and its files.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the caller names all of them")]
pub struct SoakPrograms {
    /// The binary `vary`.
    pub vary: PathBuf,
    /// The binary `fixture-server`.
    pub server: PathBuf,
    /// The binary `task-server`.
    pub tasks: PathBuf,
    /// A directory for what the soak writes.
    pub scratch: PathBuf,
}

/// A server behind Vary.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) name: &'static str,
    pub(super) is_modern: bool,
    is_http: bool,
    /// The tool that takes as long as it is asked to, and may become a task.
    pub(super) slow: &'static str,
}

/// The servers, which clients use in rotation.
pub(super) const SERVERS: [Server; 4] = [
    server("stdio-legacy", false, false),
    server("http-legacy", false, true),
    server("stdio-modern", true, false),
    server("http-modern", true, true),
];

/// A server whose only tool can be called as a task of 2025-11-25 and no other way.
pub(super) const TASKS: Server = Server {
    slow: "job",
    ..server("tasks-legacy", false, false)
};

const fn server(name: &'static str, is_modern: bool, is_http: bool) -> Server {
    Server {
        name,
        is_modern,
        is_http,
        slow: "slow_compute",
    }
}

impl Server {
    /// The scheme of its resources is its name: Vary lists only the first of two resources with one URI.
    fn arguments(&self) -> [&'static str; 4] {
        let era = if self.is_modern { "modern" } else { "legacy" };
        ["--era", era, "--scheme", self.name]
    }
}

/// What clients connect to, or start.
pub(super) struct Deployment {
    /// HOST:PORT.
    pub(super) address: String,
    /// The process of the gateway.
    pub(super) process: u32,
    pub(super) vary: PathBuf,
    /// The configuration of clients on stdio.
    pub(super) config: PathBuf,
}

/// The processes that are measured.
pub(super) struct Observed {
    pub(super) gateway: Gateway,
    /// HOST:PORT of its status.
    pub(super) admin: String,
    pub(super) port: u16,
    /// The servers over HTTP, which end with this.
    pub(super) endpoints: Vec<Endpoint>,
    /// The beginning of the paths of server processes.
    pub(super) mark: String,
}

/// A server over HTTP.
pub(super) struct Endpoint {
    pub(super) process: u32,
    url: String,
    _child: (Child, BufReader<ChildStdout>),
}

impl Endpoint {
    async fn start(program: &Path, server: &Server) -> Result<Self, String> {
        let mut command = process::command(program);
        command.args(["--http", "127.0.0.1:0"]);
        command.args(server.arguments());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let process = child.id().ok_or("it ended at once")?;
        let mut output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut line = String::new();
        let read = output.read_line(&mut line).await;
        read.map_err(|error| error.to_string())?;
        let url = line.trim().strip_prefix("listening on ");
        let url = url.ok_or_else(|| format!("a server says: {line}"))?;
        Ok(Self {
            process,
            url: url.to_owned(),
            _child: (child, output),
        })
    }
}

/// Starts the servers and Vary.
pub(super) async fn start(programs: &SoakPrograms) -> Result<(Deployment, Observed), String> {
    let scratch = &programs.scratch;
    let _ = fs::remove_dir_all(scratch);
    fs::create_dir_all(scratch).map_err(|error| error.to_string())?;
    let program = scratch.join("soaked-server");
    symlink(&programs.server, &program).map_err(|error| error.to_string())?;
    let mut endpoints = Vec::new();
    for server in SERVERS.iter().filter(|server| server.is_http) {
        // Under another name, since these are not children of Vary.
        endpoints.push(Endpoint::start(&programs.server, server).await?);
    }
    let mut servers = entries(&program, &endpoints);
    let at_work = scratch.join("soaked-server-with-tasks");
    symlink(&programs.tasks, &at_work).map_err(|error| error.to_string())?;
    let entry = json!({"command": at_work, "idle-timeout": "10s"});
    servers.insert(TASKS.name.to_owned(), entry);
    let (config, piped) = (scratch.join("http.json"), scratch.join("stdio.json"));
    write(&config, &servers, Some("127.0.0.1:0"))?;
    write(&piped, &servers, None)?;
    let arguments = [config.display().to_string()];
    let mut gateway = Gateway::on_http(&programs.vary, &arguments)?;
    let url = gateway.url().await?;
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let port = address
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok());
    let deployment = Deployment {
        address: address.to_owned(),
        process: gateway.process(),
        vary: programs.vary.clone(),
        config: piped,
    };
    let observed = Observed {
        admin: gateway.admin().await?,
        gateway,
        port: port.ok_or("it serves on no port")?,
        endpoints,
        mark: program.display().to_string(),
    };
    Ok((deployment, observed))
}

fn entries(program: &Path, endpoints: &[Endpoint]) -> Map<String, Value> {
    let mut endpoints = endpoints.iter();
    let entry = |server: &Server| {
        let endpoint = server.is_http.then(|| endpoints.next()).flatten();
        let mut entry = match endpoint {
            Some(endpoint) => json!({"url": endpoint.url}),
            None => {
                let arguments = ["--stdio"].into_iter().chain(server.arguments());
                json!({"command": program, "args": arguments.collect::<Vec<_>>()})
            }
        };
        entry["idle-timeout"] = json!("10s");
        (server.name.to_owned(), entry)
    };
    SERVERS.iter().map(entry).collect()
}

/// The token for the status.
pub(super) const ADMIN_TOKEN: &str = "the-token-of-a-soak";

/// Stalled writes to a client end its connection after this long.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// Short limits: the end of a soak waits until everything has expired.
fn write(path: &Path, servers: &Map<String, Value>, admin: Option<&str>) -> Result<(), String> {
    let mut config = json!({
        "servers": servers,
        "session-lifetime": "20s",
        "limits": {
            "replay-ttl": "15s", "result-ttl": "1s", "ask-timeout": "30s", "task-lifetime": "10s",
            "suspended-calls-per-principal": 256, "sessions": 2000, "body": "64 KiB",
            "read-timeout": "5s", "write-timeout": format!("{}s", WRITE_TIMEOUT.as_secs()),
        },
    });
    if let Some(admin) = admin {
        config["admin"] = admin.into();
        config["admin-token"] = ADMIN_TOKEN.into();
    }
    fs::write(path, config.to_string()).map_err(|error| format!("{}: {error}", path.display()))
}
