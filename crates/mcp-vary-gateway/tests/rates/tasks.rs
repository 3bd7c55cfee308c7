//! Requests about tasks.

use mcp_vary_rates::Per;

use super::clients::{Client, calls, limits};
use crate::support::*;

/// A server whose tool `job` runs as a task.
fn answer(seen: &ReceivedRequest) -> Option<Reply> {
    let task = |status: &str| {
        json!({
            "taskId": "t-1", "status": status, "ttl": 60_000, "pollInterval": 1_000,
            "createdAt": "2026-11-22T00:00:00Z", "lastUpdatedAt": "2026-11-22T00:00:00Z",
        })
    };
    let result = match seen.method() {
        "initialize" => introduced(
            "jobs",
            json!({"tools": {}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}),
        ),
        "tools/list" => json!({"tools": [
            {"name": "job", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}},
        ]}),
        "tools/call" => json!({"task": task("working")}),
        "tasks/get" => task("working"),
        "tasks/cancel" => task("cancelled"),
        "tasks/list" => json!({"tasks": []}),
        _ => return None,
    };
    Some(seen.answer(&result))
}

async fn ask(client: &mut Client, method: &str, id: &Value) -> super::clients::Answer {
    client.ask(method, json!({"taskId": id})).await
}

#[tokio::test]
async fn a_task_can_be_cancelled_and_listed_at_any_rate() {
    let peer = ScriptedServer::start(answer).await;
    let (rates, _clock) = limits(vec![calls("calls", Per::Principal, "2/min")]);
    let mut config = config(Target::http(peer.url.clone()));
    config.rates = rates;
    let harness = Harness::behind(peer, config).await;
    let mut client = Client::open(&harness, ClientKind::HttpLegacy).await;
    let call = json!({"name": "job", "arguments": {}, "task": {"ttl": 60_000}});
    let begun = client.ask("tools/call", call).await;
    let id = begun.message["result"]["task"]["taskId"].clone();
    assert!(id.is_string(), "{begun:?}");
    ask(&mut client, "tasks/get", &id).await.passes();
    let refused = ask(&mut client, "tasks/get", &id).await;
    refused.is_refused_by("calls", 30);
    assert_eq!(harness.peer.of("tasks/get").len(), 1);
    client.ask("tasks/list", json!({})).await.passes();
    ask(&mut client, "tasks/cancel", &id).await.passes();
    // A task that nobody has is unknown, and not limited.
    let unknown = ask(&mut client, "tasks/get", &json!("none")).await;
    assert_eq!(unknown.message["error"]["code"], -32602, "{unknown:?}");
}
