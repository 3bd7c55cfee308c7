//! Three gateways that share a store, behind HAProxy, which sends requests in turn.

use std::fs;
use std::iter;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::{Value, json};

use crate::server::{Server, StartingServer, serve};
use crate::workspace::Workspace;
use crate::{debian, npm, process};

/// The file of the documentation.
const HAPROXY: &str = "docs/how-to/load-balancers/haproxy.cfg";

/// A `redis-server`, until this is dropped.
pub(crate) struct Store {
    address: SocketAddr,
    _server: Server,
}

impl Store {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// When a program is missing, or does not start.
    pub(crate) fn start(workspace: &Workspace) -> Result<Self, String> {
        debian::install(workspace)?;
        let address = free_address()?;
        let log = workspace.scratch("replicas/redis.log")?;
        let mut redis = process::command("redis-server");
        redis
            .args(["--bind", "127.0.0.1", "--save", "", "--port"])
            .arg(address.port().to_string());
        let server = StartingServer::begin(&mut redis, &log)?.at(address)?;
        Ok(Self {
            address,
            _server: server,
        })
    }

    /// Starts gateways with this configuration and the store.
    ///
    /// # Errors
    ///
    /// When one does not start.
    pub(crate) fn replicas(
        &self,
        workspace: &Workspace,
        vary: &Path,
        name: &str,
        mut configuration: Value,
    ) -> Result<Replicas, String> {
        configuration["store"] = json!(format!("redis://{}", self.address));
        // Each set of replicas has keys of its own, so that it shares nothing with others.
        configuration["keys"] = json!([format!("{name}-0123456789abcdef0123456789abcdef")]);
        let file = workspace.scratch(&format!("replicas/{name}.json"))?;
        write(&file, &configuration.to_string())?;
        let mut starting = Vec::new();
        for number in 0..NUMBER {
            let mut command = serve(vary);
            npm::with_packages(workspace, command.arg(&file))?;
            let log = workspace.scratch(&format!("replicas/{name}-{number}.log"))?;
            starting.push(StartingServer::begin(&mut command, &log)?);
        }
        let gateways: Result<Vec<_>, _> = starting.into_iter().map(StartingServer::ready).collect();
        let mut servers = gateways?;
        let front = haproxy(workspace, name, &servers)?;
        let url = front.url.clone();
        servers.push(front);
        Ok(Replicas { url, servers })
    }
}

/// Gateways behind HAProxy. They end when this is dropped.
pub(crate) struct Replicas {
    /// HAProxy's, which clients ask.
    pub(crate) url: String,
    /// All of these programs.
    pub(crate) servers: Vec<Server>,
}

/// Starts HAProxy with the file of the documentation, in turn.
fn haproxy(workspace: &Workspace, name: &str, gateways: &[Server]) -> Result<Server, String> {
    let address = free_address()?;
    let urls: Vec<&str> = gateways.iter().map(|it| it.url.as_str()).collect();
    let text = in_turn(&workspace.read(HAPROXY)?, address, &urls)?;
    let file = workspace.scratch(&format!("replicas/{name}.cfg"))?;
    write(&file, &text)?;
    let log = workspace.scratch(&format!("replicas/{name}-haproxy.log"))?;
    let mut command = process::command("haproxy");
    StartingServer::begin(command.args(["-db", "-f"]).arg(file), &log)?.at(address)
}

/// The documentation's file with these addresses; a request may go to any replica, and all are taken for ready.
fn in_turn(shown: &str, address: SocketAddr, urls: &[&str]) -> Result<String, String> {
    let is_help = |line: &&str| {
        let line = line.trim();
        line.starts_with("stick") || line.starts_with("hash-type")
    };
    let lines = shown.lines().filter(|line| !is_help(line));
    let mut text: String = lines.map(|line| format!("{line}\n")).collect();
    let mut replacements = vec![
        (
            "balance hdr(Mcp-Session-Id)".to_owned(),
            "balance roundrobin".to_owned(),
        ),
        ("bind :8800".to_owned(), format!("bind {address}")),
    ];
    for (number, url) in urls.iter().enumerate() {
        let server = url.trim_start_matches("http://").trim_end_matches("/mcp");
        let shown = format!("10.0.0.1{}:8800 check port 8802", number + 1);
        replacements.push((shown, server.to_owned()));
    }
    for (shown, replacement) in replacements {
        if !text.contains(&shown) {
            return Err(format!("{HAPROXY}: it has no `{shown}`"));
        }
        text = text.replace(&shown, &replacement);
    }
    Ok(text)
}

/// An address that no program had a moment ago, for programs that do not say which one they got. The system gives its port to
/// no connection: those of Linux begin at 32,768.
fn free_address() -> Result<SocketAddr, String> {
    static NEXT: AtomicU16 = AtomicU16::new(5_000);
    let ports = iter::repeat_with(|| NEXT.fetch_add(1, Ordering::Relaxed));
    let addresses = ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let mut free = addresses
        .take(4_000)
        .filter(|it| TcpListener::bind(it).is_ok());
    free.next().ok_or_else(|| "no port is free".to_owned())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

const NUMBER: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shown_file_is_used_without_what_keeps_a_session_at_one_replica() {
        let shown = Workspace::here().read(HAPROXY).unwrap();
        let urls = [
            "http://127.0.0.1:1/mcp",
            "http://127.0.0.1:2/mcp",
            "http://127.0.0.1:3/mcp",
        ];
        let text = in_turn(&shown, SocketAddr::from(([127, 0, 0, 1], 4)), &urls).unwrap();
        for line in [
            "  bind 127.0.0.1:4",
            "  balance roundrobin",
            "  server c 127.0.0.1:3",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} in {text}");
        }
        assert!(
            !text.contains("stick") && !text.contains("10.0.0."),
            "{text}"
        );
    }
}
