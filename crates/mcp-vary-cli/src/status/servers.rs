//! The servers of a status: a row for each, and what is to be said about it.

use std::fmt::Write as _;

use mcp_vary_upstream::credential_source::CredentialStatus;
use serde_json::Value;

use super::server_table::server_table;
use super::{duration, list, number, text};
use crate::login::until;
use crate::print::servers::{unread_list, upstream_variant_note};

/// The servers, below each why it is not up, or why its lists could not be read.
pub(super) fn servers(servers: &[Value], width: usize) -> String {
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
        let tools = server["tools"].as_u64();
        let calls = &server["calls"];
        let revisions: Vec<_> = list(server, "revisions").iter().map(text).collect();
        rows.push(vec![
            text(&server["name"]).to_owned(),
            text(&server["state"]).to_owned(),
            duration(server["since"].as_u64().unwrap_or(0)),
            revisions.join(", "),
            tools.map_or_else(|| "-".to_owned(), |tools| tools.to_string()),
            connections(&server["connections"]),
            connections(&server["dedicated"]),
            number(&evicted(server)),
            number(&calls["count"]),
            number(&calls["errors"]),
            milliseconds(&calls["p50"]),
            milliseconds(&calls["p95"]),
        ]);
    }
    let mut out = String::new();
    let table = server_table(rows, width);
    for (at, line) in table.lines().enumerate() {
        let server = at.checked_sub(1).and_then(|at| servers.get(at));
        let reasons = server
            .into_iter()
            .flat_map(|it| not_up(it).into_iter().chain(unread(it)));
        let reasons = reasons.map(|reason| format!("  {reason}\n"));
        let _ = write!(out, "{line}\n{}", reasons.collect::<String>());
    }
    let notes = servers.iter().flat_map(|it| {
        let ids: Vec<_> = list(it, "upstreamVariants").iter().map(text).collect();
        let variants = upstream_variant_note(text(&it["name"]), &ids);
        let found = undeclared(it).into_iter();
        found.chain(login(it)).chain(variants)
    });
    let notes: Vec<_> = notes.collect();
    if !notes.is_empty() {
        let _ = write!(out, "\n{}\n", notes.join("\n"));
    }
    out
}

/// Why a server is not up, and when Vary tries again.
fn not_up(server: &Value) -> Option<String> {
    let reason = server["reason"].as_str()?;
    let again = server["nextAttempt"].as_u64();
    let again = match again {
        None => String::new(),
        Some(0) => "; it is being tried again".to_owned(),
        Some(seconds) => format!("; next attempt in {seconds} s"),
    };
    Some(format!("{reason}{again}"))
}

/// Why lists of a server could not be read.
fn unread(server: &Value) -> impl Iterator<Item = String> {
    let failed = server["failedLists"].as_object().into_iter().flatten();
    let name = text(&server["name"]);
    let unread = failed.map(move |(list, why)| {
        let unread = unread_list(list, text(why));
        format!("server `{name}`: {unread}; it is read again with the next request of a client")
    });
    let faults = list(server, "listFaults").iter().map(text);
    unread.chain(faults.map(move |fault| format!("server `{name}`: {fault}")))
}

/// The login at a server, and until when it is valid.
fn login(server: &Value) -> Option<String> {
    let login = server["login"].as_object()?;
    let is = |key: &str| login.get(key).and_then(Value::as_bool).unwrap_or(false);
    let end = until(CredentialStatus {
        expires_at: login.get("expires").and_then(Value::as_u64),
        is_refreshed: is("refreshed"),
        has_ended: is("ended"),
    });
    Some(format!("login at `{}`: {end}", text(&server["name"])))
}

/// How many connections of both kinds were closed for other clients.
fn evicted(server: &Value) -> Value {
    let counts = ["connections", "dedicated"].map(|kind| server[kind]["evicted"].as_u64());
    counts.into_iter().flatten().reduce(|a, b| a + b).into()
}

/// The open connections of all that may be.
fn connections(connections: &Value) -> String {
    if connections.is_object() {
        format!(
            "{}/{}",
            number(&connections["open"]),
            number(&connections["limit"])
        )
    } else {
        "-".to_owned()
    }
}

/// A number of milliseconds as text, with three digits that count.
fn milliseconds(value: &Value) -> String {
    match value.as_f64() {
        None => "-".to_owned(),
        Some(ms) if ms < 10.0 => format!("{ms:.2} ms"),
        Some(ms) if ms < 100.0 => format!("{ms:.1} ms"),
        Some(ms) if ms < 10_000.0 => format!("{ms:.0} ms"),
        Some(ms) => format!("{:.1} s", ms / 1000.0),
    }
}

/// The methods that a server has although it does not declare them.
fn undeclared(server: &Value) -> Option<String> {
    let methods = server["undeclared"].as_object()?.iter();
    let works = methods.filter(|(_, has)| has.as_bool() == Some(true));
    let works: Vec<_> = works.map(|(method, _)| format!("`{method}`")).collect();
    (!works.is_empty()).then(|| {
        let name = text(&server["name"]);
        format!(
            "server `{name}` also answers {}, which it does not declare",
            works.join(", ")
        )
    })
}
