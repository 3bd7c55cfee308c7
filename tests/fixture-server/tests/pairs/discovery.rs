//! What a client learns of the server before it uses it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::pair::{Era, Pair};

/// The name of the server, and whether the client may speak its revision.
pub(crate) async fn introduction(pair: Arc<Pair>) -> String {
    let client = pair.client().await;
    let handshake = &client.hello["result"];
    let (revision, name) = match client.era {
        Era::Legacy => (
            &handshake["protocolVersion"],
            &handshake["serverInfo"]["name"],
        ),
        Era::Modern => (
            &handshake["supportedVersions"],
            &handshake["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        ),
    };
    let spoken = match client.era {
        Era::Legacy => revision == "2025-11-25",
        Era::Modern => revision
            .as_array()
            .is_some_and(|all| all.contains(&json!("2026-07-28"))),
    };
    let spoken = if spoken { "its revision" } else { "another" };
    format!("{name} in {spoken}")
}

pub(crate) async fn instructions(pair: Arc<Pair>) -> String {
    let client = pair.client().await;
    client.hello["result"]["instructions"].to_string()
}

/// The capabilities with all that they say, but for what Vary adds of itself.
pub(crate) async fn capabilities(pair: Arc<Pair>) -> String {
    let client = pair.client().await;
    let mut flags = BTreeSet::new();
    flatten("", &client.hello["result"]["capabilities"], &mut flags);
    flags.retain(|flag| !OURS.iter().any(|ours| flag.contains(ours)));
    Vec::from_iter(flags).join(" ")
}

fn flatten(path: &str, value: &Value, flags: &mut BTreeSet<String>) {
    match value.as_object() {
        Some(members) if !members.is_empty() => {
            for (key, value) in members {
                let dot = if path.is_empty() { "" } else { "." };
                flatten(&format!("{path}{dot}{key}"), value, flags);
            }
        }
        Some(_) => drop(flags.insert(path.to_owned())),
        None => drop(flags.insert(format!("{path}={value}"))),
    }
}

/// A sign of life.
pub(crate) async fn ping(pair: Arc<Pair>) -> String {
    let mut client = pair.client().await;
    let answer = client.ask("ping", json!({})).await.answer;
    match answer.get("result") {
        Some(result) => result.to_string(),
        None => answer["error"]["code"].to_string(),
    }
}

const OURS: [&str; 2] = ["/server-variants", "/content-negotiation"];
