//! The servers of a status: a row for each, and what is to be said about it.

use std::fmt::Write as _;

use mcp_vary_gateway::ConnectionStatus;

use super::document::ServerStatus;
use super::server_table::server_table;
use super::{duration, number};
use crate::credentials::until;
use crate::print::servers::{unread_list, upstream_variant_note};

/// The servers, below each why it is not up, or why its lists could not be read.
pub(super) fn servers(servers: &[ServerStatus], width: usize) -> String {
    let mut rows = vec![
        [
            "server",
            "state",
            "for",
            "revisions",
            "tools",
            "connections",
            "dedicated",
            "evicted",
            "calls",
            "errors",
            "p50",
            "p95",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for server in servers {
        let calls = server.calls.as_ref();
        rows.push(vec![
            server.name.clone(),
            server.state.clone(),
            duration(server.since),
            server.revisions.join(", "),
            number(server.tools),
            connections(server.connections.as_ref()),
            connections(server.dedicated.as_ref()),
            number(evicted(server)),
            number(calls.map(|calls| calls.count)),
            number(calls.map(|calls| calls.errors)),
            milliseconds(calls.and_then(|calls| calls.p50)),
            milliseconds(calls.and_then(|calls| calls.p95)),
        ]);
    }
    let mut out = String::new();
    let table = server_table(rows, width);
    for (at, line) in table.lines().enumerate() {
        let server = at.checked_sub(1).and_then(|at| servers.get(at));
        let found = server
            .into_iter()
            .flat_map(|server| not_up(server).chain(unread(server)));
        let reasons = found.map(|reason| format!("  {reason}\n"));
        let _ = write!(out, "{line}\n{}", reasons.collect::<String>());
    }
    let lines = servers.iter().flat_map(|server| {
        let variants = upstream_variant_note(&server.name, &server.upstream_variants);
        let found = undeclared(server).into_iter();
        found.chain(login(server)).chain(variants)
    });
    let notes: Vec<_> = lines.collect();
    if !notes.is_empty() {
        let _ = write!(out, "\n{}\n", notes.join("\n"));
    }
    out
}

/// Why a server is not up, when Vary tries again, and what it wrote last.
fn not_up(server: &ServerStatus) -> impl Iterator<Item = String> {
    let again = match server.next_attempt {
        None => String::new(),
        Some(0) => "; it is being tried again".to_owned(),
        Some(seconds) => format!("; next attempt in {seconds} s"),
    };
    let reason = server.reason.iter();
    let lines = server.stderr.iter().map(|line| format!("stderr: {line}"));
    reason
        .map(move |reason| format!("{reason}{again}"))
        .chain(lines)
}

/// Why lists of a server could not be read.
fn unread(server: &ServerStatus) -> impl Iterator<Item = String> {
    let name = &server.name;
    let unread = server.failed_lists.iter().map(move |(list, why)| {
        let unread = unread_list(list, why);
        format!("server `{name}`: {unread}; it is read again with the next request of a client")
    });
    let faults = server.list_faults.iter();
    unread.chain(faults.map(move |fault| format!("server `{name}`: {fault}")))
}

/// The login at a server, and until when it is valid.
fn login(server: &ServerStatus) -> Option<String> {
    let end = until(server.login?);
    Some(format!("login at `{}`: {end}", server.name))
}

/// How many connections of both kinds were closed for other clients.
fn evicted(server: &ServerStatus) -> Option<u64> {
    let kinds = [&server.connections, &server.dedicated];
    let counts = kinds.into_iter().flatten().map(|kind| kind.evicted);
    counts.reduce(|a, b| a + b)
}

/// The open connections of all that may be.
fn connections(connections: Option<&ConnectionStatus>) -> String {
    connections.map_or_else(
        || "-".to_owned(),
        |counts| format!("{}/{}", counts.open, counts.limit),
    )
}

/// A number of milliseconds as text, with three digits that count.
fn milliseconds(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(ms) if ms < 10.0 => format!("{ms:.2} ms"),
        Some(ms) if ms < 100.0 => format!("{ms:.1} ms"),
        Some(ms) if ms < 10_000.0 => format!("{ms:.0} ms"),
        Some(ms) => format!("{:.1} s", ms / 1000.0),
    }
}

/// The methods that a server has although it does not declare them.
fn undeclared(server: &ServerStatus) -> Option<String> {
    let answered = server.undeclared.iter().filter(|(_, has)| **has);
    let works: Vec<_> = answered.map(|(method, _)| format!("`{method}`")).collect();
    (!works.is_empty()).then(|| {
        format!(
            "server `{}` also answers {}, which it does not declare",
            server.name,
            works.join(", ")
        )
    })
}
