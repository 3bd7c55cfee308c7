//! What a replica left that has ended: any other one takes it over from the store.

use mcp_vary_testkit::message::link;
use serde_json::Value;

use super::forwarding::{
    compact, forwarded, interrupted, open, operations, replicas, stream_of, text_of,
};
use super::programs::{call_of, modern_request};
use super::*;

/// Kills the first replica after it has saved so many values.
async fn kill_first(replicas: &mut Replicas, saved: u64) {
    let first = replicas.all.remove(0);
    until(async || operations(&first, "save", "ok").await == saved).await;
    signal("KILL", first.server.child.id());
    drop(first);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn a_kept_result_and_a_finished_stream_are_read_after_the_death_of_their_replica() {
    let (server, mut replicas) = replicas("takeover", "").await;
    let a = &replicas.all[0];
    let rows = json!({"name": "rows", "arguments": {}});
    let shortened = a.ask(&compact("tools/call", rows)).await.answer();
    let read = compact("resources/read", json!({"uri": link(&shortened["result"])}));
    let expected = a.ask(&read).await;
    assert_eq!(expected.status, 200, "{}", expected.text());
    let session = open(a, &json!({})).await;
    let other = open(a, &json!({})).await;
    let last = interrupted(a, &session, "log").await;
    kill_first(&mut replicas, 2).await;
    for replica in &replicas.all {
        assert_eq!(replica.ask(&read).await.json(), expected.json());
        let resume = |session| stream_of(session).with("Last-Event-ID", last.clone());
        let mut resumed = replica.connect().await;
        resumed.send(&resume(&session).bytes()).await;
        assert_eq!(resumed.head().await.status, 200);
        let log = resumed.event().await.unwrap();
        assert_eq!(log["method"], "notifications/message");
        assert_eq!(text_of(&resumed.event().await.unwrap()), "logged");
        assert_eq!(resumed.event().await, None);
        // Another session does not get it, nor does it learn that it exists.
        let refused = replica.ask(&resume(&other)).await.answer();
        let message = refused["error"]["message"].to_string();
        assert!(message.contains("no longer stored"), "{message}");
        assert_eq!(operations(replica, "load", "ok").await, 2);
        assert_eq!(forwarded(replica, "ok").await, 0);
    }
    assert_eq!(server.of("tools/call").len(), 2);
    // Without the store it is as with one gateway that has ended.
    let read_again = read.clone();
    replicas.redis = None;
    let last_one = replicas.all.pop().unwrap();
    last_one.is_ready_with_store("away").await;
    assert_eq!(
        last_one.ask(&read_again).await.status,
        200,
        "it was taken over"
    );
    last_one.end();
    replicas.end();
}

/// A server of 2025-11-25 on stdio, all of whose calls are tasks, which are finished at once.
const TASKS: &str = r#"
import json, os, sys

TASK = {"taskId": f"process-{os.getpid()}", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 60000}
RESULTS = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}},
        "serverInfo": {"name": "tasks", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "job", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}]},
    "tools/call": {"task": {**TASK, "status": "working"}},
    "tasks/get": {**TASK, "status": "completed"},
    "tasks/result": {"content": [{"type": "text", "text": "done"}]},
}
for line in sys.stdin:
    message = json.loads(line)
    about = message.get("params", {}).get("taskId", TASK["taskId"])
    if message.get("method") in RESULTS and about == TASK["taskId"]:
        outcome = {"result": RESULTS[message["method"]]}
    else:
        outcome = {"error": {"code": -32602, "message": "not here"}}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)
"#;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn a_task_that_vary_has_finished_for_a_server_is_found_after_the_death_of_its_replica() {
    let script = serde_json::to_string(TASKS).unwrap();
    let server = format!("{{command: python3, args: [-c, {script}]}}");
    let mut replicas = Replicas::before(&server, "ended-tasks", &[""; 3]).await;
    let created = replicas.all[0]
        .ask(&modern_request("tools/call", call_of("job")))
        .await;
    let task = json!({"taskId": created.answer()["result"]["taskId"]});
    let get = modern_request("tasks/get", task.clone());
    let is_completed = |found: &Value| found["result"]["status"] == "completed";
    until(async || is_completed(&replicas.all[0].ask(&get).await.answer())).await;
    let expected = replicas.all[0].ask(&get).await.answer();
    assert_eq!(expected["result"]["result"]["content"][0]["text"], "done");
    kill_first(&mut replicas, 1).await;
    for replica in &replicas.all {
        assert_eq!(replica.ask(&get).await.answer(), expected);
        for method in ["tasks/cancel", "tasks/update"] {
            let params = json!({"taskId": task["taskId"], "inputResponses": {}});
            let answer = replica.ask(&modern_request(method, params)).await.answer();
            assert!(answer["result"].is_object(), "{method}: {answer}");
        }
        assert_eq!(replica.ask(&get).await.answer(), expected);
    }
    replicas.end();
}
