//! Official clients log in through the gateway, with a real authorization server.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::capability_servers::START_WAIT;
use crate::client_jobs::{self, Job, NOTIFIED, SDKS};
use crate::outcome::Outcome;
use crate::process::{self, command};
use crate::server::Server;
use crate::workspace::Workspace;
use crate::{cargo, npm, python};

/// The scope that requests need, as in `authorization-server.mjs`.
const SCOPE: &str = "mcp:read";

/// What the gateway logs, and its audit log.
const LOG: &str = "interop/auth-vary.log";
const AUDIT: &str = "interop/auth-audit.jsonl";

/// The same of the gateway that exchanges tokens, which logs everything.
const EXCHANGE_LOG: &str = "interop/exchange-vary.log";
const EXCHANGE_AUDIT: &str = "interop/exchange-audit.jsonl";

const OUTPUTS: [&str; 4] = [LOG, AUDIT, EXCHANGE_LOG, EXCHANGE_AUDIT];

/// The client by which tokens are exchanged, as in `authorization-server.mjs`.
const CLIENT: (&str, &str) = ("gateway", "of-the-gateway-of-the-gateway-of-the-gateway");

/// Vary judges some thousand tokens in that time.
const LIMIT: Duration = Duration::from_secs(5 * 60);

/// Below the ports that systems give to clients, so that no connection takes one before a program listens there.
const PORTS: Range<u16> = 20_000..32_000;

/// The number of ports that runs of several workspaces at once leave to each other.
const STEP: u32 = 20;

/// Every client logs in to the endpoint and to the address of a variant; tokens of two people are exchanged; keys change, and
/// their server dies.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    let (jobs, servers) = match prepare(workspace) {
        Ok(prepared) => prepared,
        Err(error) => return Outcome::failure(error),
    };
    let mut outcome = client_jobs::run_all(workspace, &jobs, None);
    drop(servers);
    let checks = OUTPUTS.map(|output| (output, has_no_token(workspace, output)));
    outcome.add(Outcome::of_all(&checks));
    outcome
}

/// Fails if there is a token in what the gateway wrote while clients logged in, or if it wrote nothing.
fn has_no_token(workspace: &Workspace, output: &str) -> Result<(), String> {
    let path = workspace.scratch(output)?;
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    if text.trim().is_empty() {
        return Err("the gateway wrote nothing".to_owned());
    }
    match text.lines().position(has_token) {
        None => Ok(()),
        Some(line) => Err(format!("line {} has a token", line + 1)),
    }
}

/// Whether there is a JSON Web Token in the line: two objects and a signature in base64, with dots between them.
fn has_token(line: &str) -> bool {
    let is_of_token = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let mut parts = line.split(|c| !is_of_token(c));
    parts.any(|word| {
        let start = word.find("eyJ").map(|at| &word[at..]);
        start.is_some_and(|token| {
            token
                .split_once('.')
                .is_some_and(|(_, after)| after.starts_with("eyJ"))
        })
    })
}

/// The jobs, and the servers that must run for as long as the jobs.
fn prepare(workspace: &Workspace) -> Result<(Vec<Job>, Vec<Server>), String> {
    npm::installed(workspace)?;
    python::installed(workspace)?;
    let vary = cargo::binary(workspace, "vary")?;
    let fixture = cargo::binary(workspace, "fixture-server")?;
    let mut ports = free_ports(PORTS);
    let gateways = [next(&mut ports)?, next(&mut ports)?];
    let ([argument, exchange], servers) = servers(workspace, (&vary, &fixture), gateways)?;
    let mut jobs = over_http("login", NOTIFIED, &argument);
    jobs.extend(exchanges(&exchange));
    let is_typescript = |job: &Job| job.script.ends_with(".mjs");
    let programs = json!({"vary": vary, "fixture": fixture});
    let rotations = over_http("rotation", SDKS, &programs).into_iter();
    for mut job in rotations.filter(is_typescript) {
        job.argument["ports"] = json!([next(&mut ports)?, next(&mut ports)?]);
        jobs.push(job);
    }
    jobs.push(Job {
        name: "vary login".to_owned(),
        script: "vary-login.mjs".to_owned(),
        argument: json!({"vary": vary, "url": argument["url"]}),
    });
    jobs.push(verdicts(workspace)?);
    Ok((jobs, servers))
}

/// The job of a second implementation, `jose`, which judges the tokens that `examples/token_verdicts.rs` of
/// `mcp-vary-auth` prints.
fn verdicts(workspace: &Workspace) -> Result<Job, String> {
    let mut verdicts = command(cargo::binary(workspace, "examples/token_verdicts")?);
    let printed = process::output(&mut verdicts, LIMIT)?;
    let tokens = workspace.scratch("interop/token-verdicts.jsonl")?;
    fs::write(&tokens, printed).map_err(|error| format!("{}: {error}", tokens.display()))?;
    Ok(Job {
        name: "verdicts of jose".to_owned(),
        script: "token-verdicts.mjs".to_owned(),
        argument: json!({"tokens": tokens}),
    })
}

/// The jobs of two people behind the gateway that exchanges their tokens.
fn exchanges(argument: &Value) -> Vec<Job> {
    let mut jobs = over_http("login", NOTIFIED, argument);
    for job in &mut jobs {
        job.name = job.name.replacen("login", "exchange", 1);
        job.argument["exchanged"] = json!(true);
    }
    jobs
}

/// The authorization server, and two gateways in front of servers whose requests are recorded; and the scripts' arguments
/// about them. The second gateway exchanges tokens.
fn servers(
    workspace: &Workspace,
    (vary, fixture): (&Path, &Path),
    ports: [u16; 2],
) -> Result<([Value; 2], Vec<Server>), String> {
    let node = |arguments: &[&str], name: &str| {
        let log = workspace.scratch(&format!("interop/auth-{name}.log"))?;
        Server::start(npm::node(workspace)?.args(arguments), &log)
    };
    let issuer = node(&["authorization-server.mjs"], "issuer")?;
    let log = workspace.scratch("interop/auth-fixture.log")?;
    let fixture = Server::start(command(fixture).args(["--http", "127.0.0.1:0"]), &log)?;
    let recorder = node(&["recording-proxy.mjs", &fixture.url], "recorder")?;
    let exchanged = node(&["recording-proxy.mjs", &fixture.url], "exchange-recorder")?;
    let [port, exchange_port] = ports;
    let plain = json!({"url": recorder.url});
    let gateway = gateway(
        workspace,
        vary,
        (port, "warn"),
        &issuer.url,
        &plain,
        [LOG, AUDIT],
    )?;
    let (client, secret) = CLIENT;
    let exchange = json!({"issuer": issuer.url, "client-id": client, "client-secret": secret});
    let entry = json!({"url": exchanged.url, "auth": {"token-exchange": exchange}});
    let outputs = [EXCHANGE_LOG, EXCHANGE_AUDIT];
    let exchanging = self::gateway(
        workspace,
        vary,
        (exchange_port, "trace"),
        &issuer.url,
        &entry,
        outputs,
    )?;
    let arguments = [
        json!({"url": gateway.url, "recorder": recorder.url}),
        json!({"url": exchanging.url, "recorder": exchanged.url}),
    ];
    let servers = vec![gateway, exchanging, recorder, exchanged, fixture, issuer];
    Ok((arguments, servers))
}

/// A gateway on this port, with this level of its log, for users of `issuer`. Its server is `entry`.
fn gateway(
    workspace: &Workspace,
    vary: &Path,
    (port, level): (u16, &str),
    issuer: &str,
    entry: &Value,
    [log, audit]: [&str; 2],
) -> Result<Server, String> {
    // Earlier runs wrote there, too.
    let audit = workspace.scratch(audit)?;
    fs::write(&audit, "").map_err(|error| error.to_string())?;
    let configuration = json!({
        "audit": {"to": format!("file {}", audit.display())},
        "public-url": format!("http://127.0.0.1:{port}"),
        "start-wait": START_WAIT,
        "auth": {"issuers": [{"issuer": issuer, "scopes": [SCOPE]}]},
        "servers": {"fixture": entry},
    });
    let log = workspace.scratch(log)?;
    let file = log.with_extension("json");
    fs::write(&file, configuration.to_string()).map_err(|error| error.to_string())?;
    let mut gateway = command(vary);
    gateway.args([
        "serve",
        "--log",
        level,
        "--listen",
        &format!("127.0.0.1:{port}"),
    ]);
    let mut server = Server::start(gateway.arg(&file), &log)?;
    // A log of everything may name the issuer first.
    server.url = format!("http://127.0.0.1:{port}/mcp");
    Ok(server)
}

/// A job for each SDK and era. Logins are for HTTP only.
fn over_http(what: &str, sdks: &[(&str, &[&str])], argument: &Value) -> Vec<Job> {
    let mut jobs = client_jobs::of_sdks(what, sdks, argument);
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
    fn a_token_is_found_wherever_it_is_in_a_line() {
        let token = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl";
        for line in [
            format!("Authorization: Bearer {token}"),
            format!(r#"{{"url":"/mcp?access_token={token}"}}"#),
            format!("a.{token}"),
        ] {
            assert!(has_token(&line), "{line}");
        }
        for line in [
            "eyJhbGciOiJFUzI1NiJ9",
            "a key: eyJ.x",
            "2026-11-22T10:00:00Z 127.0.0.1",
            "",
        ] {
            assert!(!has_token(line), "{line}");
        }
    }
}
