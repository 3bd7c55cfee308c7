//! Requests about tasks.

use mcp_vary_rates::Per;

use super::clients::{Client, calls, limits};
use crate::support::*;

/// A server whose tool `job` runs as a task.
fn server() -> Script {
    let task = |status: &str| {
        json!({
            "taskId": "t-1", "status": status, "ttl": 60_000, "pollInterval": 1_000,
            "createdAt": "2026-11-22T00:00:00Z", "lastUpdatedAt": "2026-11-22T00:00:00Z",
        })
    };
    Script::legacy("jobs")
        .declares(json!({"tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}))
        .lists(json!({"tools": [
            {"name": "job", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}},
        ]}))
        .result("tools/call", json!({"task": task("working")}))
        .result("tasks/get", task("working"))
        .result("tasks/cancel", task("cancelled"))
        .result("tasks/list", json!({"tasks": []}))
}

#[tokio::test]
async fn a_task_can_be_cancelled_and_listed_at_any_rate() {
    let peer = server().start().await;
    let (rates, _clock) = limits(vec![calls("calls", Per::Principal, "2/min")]);
    let mut config = config(Target::http(peer.url.clone()));
    config.rates = rates;
    let harness = Harness::behind(peer, config).await;
    let mut client = Client::open(&harness, ClientKind::HttpLegacy).await;
    let call = json!({"name": "job", "arguments": {}, "task": {"ttl": 60_000}});
    let begun = client.response("tools/call", call).await;
    let id = begun.message["result"]["task"]["taskId"].clone();
    assert!(id.is_string(), "{begun:?}");
    client
        .response("tasks/get", json!({"taskId": id}))
        .await
        .passes();
    let refused = client.response("tasks/get", json!({"taskId": id})).await;
    refused.is_refused_by("calls", 30);
    assert_eq!(harness.peer.of("tasks/get").len(), 1);
    client.response("tasks/list", json!({})).await.passes();
    client
        .response("tasks/cancel", json!({"taskId": id}))
        .await
        .passes();
    // A task that nobody has is unknown, and not limited.
    let unknown = client
        .response("tasks/get", json!({"taskId": "none"}))
        .await;
    assert_eq!(unknown.message["error"]["code"], -32602, "{unknown:?}");
}
