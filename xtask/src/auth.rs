//! Official clients log in through the gateway, with a real authorization server.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::behind::START_WAIT;
use crate::interop::{self, Job, NOTIFIED, SDKS};
use crate::npm;
use crate::outcome::Outcome;
use crate::process::{self, command};
use crate::server::Server;
use crate::workspace::Workspace;

/// The scope that requests need, as in `authorization-server.mjs`.
const SCOPE: &str = "mcp:read";

/// Vary judges some thousand tokens in that time.
const LIMIT: Duration = Duration::from_secs(5 * 60);

/// Below the ports that systems give to clients, so that no connection takes one before a program listens there.
const PORTS: Range<u16> = 20_000..32_000;

/// The number of ports that runs of several workspaces at once leave to each other.
const STEP: u32 = 20;

/// Every client logs in to the endpoint and to the address of a variant; keys change, and their server dies.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    match prepared(workspace) {
        Ok((jobs, _servers)) => interop::run_all(workspace, jobs.into()),
        Err(error) => Outcome::failure(error),
    }
}

/// The jobs, and the servers that must run for as long as the jobs.
fn prepared(workspace: &Workspace) -> Result<(Vec<Job>, Vec<Server>), String> {
    workspace.npm()?;
    workspace.python()?;
    let vary = workspace.binary("vary")?;
    let fixture = workspace.binary("fixture-server")?;
    let mut ports = free_ports(PORTS);
    let (argument, servers) = servers(workspace, (&vary, &fixture), next(&mut ports)?)?;
    let mut jobs = over_http("login", NOTIFIED, &argument);
    let is_typescript = |job: &Job| job.script.ends_with(".mjs");
    let programs = json!({"vary": vary, "fixture": fixture});
    let rotations = over_http("rotation", SDKS, &programs).into_iter();
    for mut job in rotations.filter(is_typescript) {
        job.argument["ports"] = json!([next(&mut ports)?, next(&mut ports)?]);
        jobs.push(job);
    }
    jobs.push(verdicts(workspace)?);
    Ok((jobs, servers))
}

/// The job of a second implementation, `jose`, which judges the tokens that `examples/token_verdicts.rs` of
/// `mcp-vary-auth` prints.
fn verdicts(workspace: &Workspace) -> Result<Job, String> {
    let mut verdicts = command(workspace.binary("examples/token_verdicts")?);
    let printed = process::output(&mut verdicts, LIMIT)?;
    let tokens = workspace.scratch("interop/token-verdicts.jsonl")?;
    fs::write(&tokens, printed).map_err(|error| format!("{}: {error}", tokens.display()))?;
    Ok(Job {
        name: "verdicts of jose".to_owned(),
        script: "token-verdicts.mjs".to_owned(),
        argument: json!({"tokens": tokens}),
    })
}

/// The authorization server, and a gateway on `port` in front of a server whose requests are recorded; and the scripts'
/// argument about them.
fn servers(
    workspace: &Workspace,
    (vary, fixture): (&Path, &Path),
    port: u16,
) -> Result<(Value, Vec<Server>), String> {
    let node = |arguments: &[&str], name: &str| {
        let log = workspace.scratch(&format!("interop/auth-{name}.log"))?;
        Server::start(npm::node(workspace)?.args(arguments), &log)
    };
    let issuer = node(&["authorization-server.mjs"], "issuer")?;
    let log = workspace.scratch("interop/auth-fixture.log")?;
    let fixture = Server::start(command(fixture).args(["--http", "127.0.0.1:0"]), &log)?;
    let recorder = node(&["recording-proxy.mjs", &fixture.url], "recorder")?;
    let file = workspace.scratch("interop/auth.json")?;
    let configuration = json!({
        "public-url": format!("http://127.0.0.1:{port}"),
        "start-wait": START_WAIT,
        "auth": {"issuers": [{"issuer": issuer.url, "scopes": [SCOPE]}]},
        "servers": {"fixture": {"url": recorder.url}},
    });
    fs::write(&file, configuration.to_string()).map_err(|error| error.to_string())?;
    let log = workspace.scratch("interop/auth-vary.log")?;
    let mut gateway = command(vary);
    gateway.args(["serve", "--listen", &format!("127.0.0.1:{port}")]);
    let gateway = Server::start(gateway.arg(&file), &log)?;
    let argument = json!({"url": gateway.url, "recorder": recorder.url});
    Ok((argument, vec![gateway, recorder, fixture, issuer]))
}

/// A job for each SDK and era. Logins are for HTTP only.
fn over_http(what: &str, sdks: &[(&str, &[&str])], argument: &Value) -> Vec<Job> {
    let mut jobs = interop::of_sdks(what, sdks, argument);
    jobs.retain(|job| job.argument["way"] == "http");
    jobs
}

/// The ports of `range` on which nothing listens. The first depends on this process.
///
/// For programs that have to know their port before they listen: it is in the URL that the other side is configured with.
fn free_ports(range: Range<u16>) -> impl Iterator<Item = u16> {
    let length = u32::from(range.end - range.start);
    let skipped = std::process::id().wrapping_mul(STEP) % length;
    let ports = range.clone().cycle().skip(skipped as usize);
    let ports = ports.take(range.len());
    ports.filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
}

fn next(ports: &mut impl Iterator<Item = u16>) -> Result<u16, String> {
    let none = || format!("no port of {} to {} is free", PORTS.start, PORTS.end);
    ports.next().ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_is_not_offered() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let offered: Vec<u16> = free_ports(port..port + 1).collect();
        assert_eq!(offered, [0; 0]);
        let free = free_ports(PORTS).next().unwrap();
        assert!(PORTS.contains(&free), "{free}");
    }

    #[test]
    fn every_client_logs_in_over_http_in_each_era() {
        let jobs = over_http("login", NOTIFIED, &json!({"url": "u"}));
        let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "login http typescript-1 legacy",
                "login http typescript-2 legacy",
                "login http typescript-2 modern",
                "login http python-1 legacy",
                "login http python legacy",
                "login http python modern",
                "login http fastmcp legacy",
                "login http fastmcp modern",
            ]
        );
    }
}
