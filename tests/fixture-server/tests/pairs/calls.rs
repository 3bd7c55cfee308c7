//! Calls of tools: what they say at the end, and the progress before.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::pair::{Era, Pair};

/// Arguments there and back.
pub(crate) async fn echo(pair: Arc<Pair>) -> String {
    let mut client = pair.client().await;
    let arguments = json!({"z": 1.0, "a": [null, "ü\u{2028}"], "big": 12_345_678_901_234_567_u64});
    let result = client.call("echo", arguments.clone()).await;
    let structured = result["structuredContent"] == arguments;
    let text = result["content"][0]["text"].as_str() == Some(&*arguments.to_string());
    if structured && text {
        "what it said, as structure and as text".to_owned()
    } else {
        result.to_string()
    }
}

/// One block of each kind, and a structure.
pub(crate) async fn every_kind(pair: Arc<Pair>) -> String {
    let mut client = pair.client().await;
    let result = client.call("raw", json!({"kind": "mixed"})).await;
    let blocks = result["content"].as_array().expect("content is a list");
    let kinds: Vec<_> = blocks
        .iter()
        .filter_map(|block| block["type"].as_str())
        .collect();
    format!("{} {}", kinds.join(" "), result["structuredContent"])
}

/// A structure that is no object, as servers may give since 2026-07-28.
pub(crate) async fn array(pair: Arc<Pair>) -> String {
    let mut client = pair.client().await;
    let result = client.call("raw", json!({"kind": "array"})).await;
    let text = &result["content"][0]["text"];
    match result.get("structuredContent") {
        Some(structure) => format!("structure {structure}, text {text}"),
        None => format!("text {text}"),
    }
}

/// What the server sees of the client: the revision that it speaks, and its name.
pub(crate) async fn seen(pair: Arc<Pair>) -> String {
    let mut client = pair.client().await;
    let params =
        json!({"name": "seen", "arguments": {"a": 1}, "_meta": {"example.com/kept": {"b": 2}}});
    let answer = client.ask("tools/call", params).await.answer;
    let seen = &answer["result"]["structuredContent"];
    let native = match pair.server.era {
        Era::Legacy => "2025-11-25",
        Era::Modern => "2026-07-28",
    };
    let revision = if seen["protocolVersion"] == native {
        "its own revision"
    } else {
        "another revision"
    };
    let (arguments, meta) = (&seen["arguments"], &seen["meta"]["example.com/kept"]);
    format!("{revision}, {arguments}, {meta}")
}

/// Steps with a token.
pub(crate) async fn progress(pair: Arc<Pair>) -> String {
    steps(&pair, json!({"progressToken": "mine"})).await
}

/// Steps without.
pub(crate) async fn silence(pair: Arc<Pair>) -> String {
    steps(&pair, json!({})).await
}

async fn steps(pair: &Pair, meta: Value) -> String {
    let mut client = pair.client().await;
    let params = json!({"name": "progress", "arguments": {"steps": 3}, "_meta": meta});
    let received = client.ask("tools/call", params).await;
    let steps = received.of("notifications/progress").into_iter();
    let steps = steps.map(|step| {
        format!(
            "{} {}/{}, ",
            step["progressToken"], step["progress"], step["total"]
        )
    });
    let reported = &received.answer["result"]["content"][0]["text"];
    format!("{}then {reported}", steps.collect::<String>())
}
