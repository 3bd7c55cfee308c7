//! Servers that lose their sessions again and again under clients of both eras, in each way in which servers say so.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use mcp_vary_testkit::session_server::{LOST_SESSIONS, LostSession, SessionServer};
use serde_json::json;
use tokio::task::JoinSet;

use crate::client::{Client, Said};
use crate::gateway::Gateway;
use crate::script::Era;

/// What came of the restarts.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Restarts {
    /// A line for each way.
    pub table: String,
    /// The ways in which every client went on, and nothing ran twice.
    pub passed: usize,
    /// What went wrong, a sentence each.
    pub failed: Vec<String>,
}

/// Restarts a server for each way `rounds` times under so many clients of both eras, behind one gateway, whose configuration is
/// written to the file `config`.
///
/// # Errors
///
/// When no runtime, server or gateway can be started.
pub fn restarts(
    vary: &Path,
    config: &Path,
    rounds: usize,
    clients: usize,
) -> Result<Restarts, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(run(vary, config, rounds, clients))
}

async fn run(
    vary: &Path,
    config: &Path,
    rounds: usize,
    clients: usize,
) -> Result<Restarts, String> {
    let mut text = json!({"servers": {}});
    let mut servers = Vec::new();
    for (at, lost) in LOST_SESSIONS.iter().enumerate() {
        let server = SessionServer::start(*lost, |_| None).await;
        text["servers"][name(at)] = json!({"url": server.server.url.to_string()});
        servers.push(server);
    }
    std::fs::write(config, text.to_string()).map_err(|error| error.to_string())?;
    let mut gateway = Gateway::on_http(vary, &[config.display().to_string()])?;
    let url = gateway.url().await?;
    let mut all = Vec::new();
    for era in Era::BOTH {
        for _ in 0..clients / 2 {
            all.push(Arc::new(Client::over_http(era, &url).await?));
        }
    }
    let mut running = JoinSet::new();
    for (at, server) in servers.into_iter().enumerate() {
        let (clients, lost) = (all.clone(), LOST_SESSIONS[at]);
        running.spawn(async move { (at, one(at, lost, server, &clients, rounds).await) });
    }
    let mut outcomes = running.join_all().await;
    outcomes.sort_by_key(|(at, _)| *at);
    let mut report = Restarts::default();
    for (at, outcome) in outcomes {
        let lost = LOST_SESSIONS[at].name;
        let line = outcome.as_ref().unwrap_or_else(|why| why);
        let _ = writeln!(report.table, "{lost:<18} {line}");
        match outcome {
            Ok(_) => report.passed += 1,
            Err(why) => report.failed.push(format!("{lost}: {why}")),
        }
    }
    Ok(report)
}

fn name(at: usize) -> String {
    format!("way{at}")
}

/// One server; returns what was counted.
async fn one(
    at: usize,
    lost: LostSession,
    server: SessionServer,
    clients: &[Arc<Client>],
    rounds: usize,
) -> Result<String, String> {
    let tool = format!("{}_good", name(at));
    let (mut worked, mut refused) = (0, 0);
    for round in 0..=rounds {
        // The first round is before any restart.
        for part in ["first", "next"] {
            let is_after_restart = round > 0 && part == "first";
            if is_after_restart {
                server.forget();
            }
            let answers = each(&tool, &format!("{round}-{part}"), clients).await;
            let runs = server.runs();
            for (call, answer) in answers {
                let times = runs.get(&call).copied().unwrap_or_default();
                match &answer {
                    _ if answer.text() == Some("done") && times == 1 => worked += 1,
                    // Nobody knows whether it ran, so that it is not sent again.
                    Said::Error { message, .. }
                        if is_after_restart
                            && !lost.shows_not_run
                            && message.contains(&format!("server `{}`", name(at))) =>
                    {
                        refused += 1;
                    }
                    _ => return Err(format!("call {call} ran {times} times: {answer}")),
                }
            }
        }
    }
    let runs = server.runs();
    if let Some((call, times)) = runs.iter().find(|(_, times)| **times != 1) {
        return Err(format!("call {call} ran {times} times"));
    }
    let (ran, opened) = (runs.len(), server.opened());
    Ok(format!(
        "{worked} calls worked, {refused} were refused, {ran} ran, none twice; {opened} sessions"
    ))
}

/// What all clients are told of one call each, at the same time.
async fn each(tool: &str, call: &str, clients: &[Arc<Client>]) -> Vec<(String, Said)> {
    let mut calls = JoinSet::new();
    for (number, client) in clients.iter().enumerate() {
        let (client, tool) = (Arc::clone(client), tool.to_owned());
        let call = format!("{call}-{number}");
        calls.spawn(async move {
            let seen = client.call(&tool, &call, json!({})).await;
            (call, seen.said)
        });
    }
    calls.join_all().await
}
