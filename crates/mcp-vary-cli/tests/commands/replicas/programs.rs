//! What a program of one replica has begun, and only it can go on with.

use std::path::PathBuf;

use mcp_vary_testkit::message::notification;
use serde_json::Value;

use super::forwarding::{call_in, forwarded, of, open, stream_of, text_of};
use super::*;

/// A server of 2026-07-28 on stdio. It asks for roots in calls of `ask`, and makes tasks of calls of `job`; other processes know
/// neither.
const PROGRAM: &str = r#"
import json, os, sys
OWN = f"process-{os.getpid()}"

def said(text):
    return {"resultType": "complete", "content": [{"type": "text", "text": text}]}

def refused(text):
    return {"error": {"code": -32602, "message": text}}

def answer(method, params):
    if method == "server/discover":
        capabilities = {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
        return {"result": {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities}}
    if method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ["ask", "job"]]
        return {"result": {"resultType": "complete", "tools": tools}}
    if method == "tools/call" and params["name"] == "ask":
        if "requestState" not in params:
            requests = {"roots": {"method": "roots/list", "params": {}}}
            return {"result": {"resultType": "input_required", "inputRequests": requests, "requestState": OWN}}
        if params["requestState"] != OWN:
            return refused("the state of another process")
        return {"result": said(json.dumps(params["inputResponses"]["roots"]))}
    if method == "tools/call":
        return {"result": {"resultType": "task", "taskId": OWN, "status": "working", "ttlMs": None}}
    if method in ["tasks/get", "tasks/cancel"]:
        if params["taskId"] != OWN:
            return refused("the task of another process")
        if method == "tasks/cancel":
            return {"result": {"resultType": "complete"}}
        done = {"taskId": OWN, "status": "completed", "ttlMs": None, "result": said("done")}
        return {"result": {"resultType": "complete", **done}}
    return {"error": {"code": -32601, "message": "Method not found"}}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        reply = {"jsonrpc": "2.0", "id": message["id"], **answer(message["method"], message.get("params") or {})}
        print(json.dumps(reply), flush=True)
"#;

/// Three replicas before it.
pub(super) async fn replicas(name: &str) -> Replicas {
    let script = serde_json::to_string(PROGRAM).unwrap();
    let server = format!("{{command: python3, args: [-c, {script}]}}");
    Replicas::before(&server, name, &[""; 3]).await
}

/// A request of a client that has roots and knows tasks.
pub(super) fn modern_request(method: &str, params: Value) -> HttpRequest {
    let tasks = json!({"io.modelcontextprotocol/tasks": {}});
    let capabilities = json!({"roots": {}, "extensions": tasks});
    HttpRequest::modern(&modern(json!(1), method, params, &capabilities))
}

pub(super) fn call_of(tool: &str) -> Value {
    json!({"name": tool, "arguments": {}})
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn a_program_gets_the_next_round_of_its_call_wherever_that_arrives() {
    let replicas = replicas("rounds").await;
    let [a, b, _] = replicas.all.as_slice() else {
        unreachable!("three were started")
    };
    let required = a.ask(&modern_request("tools/call", call_of("ask"))).await;
    let required = required.answer();
    let mut again = call_of("ask");
    again["requestState"] = required["result"]["requestState"].clone();
    again["inputResponses"] = json!({"roots": {"roots": []}});
    for replica in [b, a] {
        let answer = replica
            .ask(&modern_request("tools/call", again.clone()))
            .await;
        assert_eq!(text_of(&answer.answer()), r#"{"roots": []}"#);
    }
    assert_eq!([forwarded(a, "ok").await, forwarded(b, "ok").await], [0, 1]);
    replicas.end();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn the_task_of_a_program_is_found_at_any_replica_until_its_own_ends() {
    let mut replicas = replicas("tasks").await;
    let created = replicas.all[0]
        .ask(&modern_request("tools/call", call_of("job")))
        .await;
    let created = created.answer();
    let task = json!({"taskId": created["result"]["taskId"]});
    for replica in &replicas.all {
        let found = replica
            .ask(&modern_request("tasks/get", task.clone()))
            .await;
        let found = found.answer();
        assert_eq!(found["result"]["taskId"], task["taskId"], "{found}");
        assert_eq!(found["result"]["status"], "completed", "{found}");
        let cancelled = replica
            .ask(&modern_request("tasks/cancel", task.clone()))
            .await;
        assert!(cancelled.answer()["result"].is_object());
    }
    replicas.all.remove(0).end();
    let gone = replicas.all[0]
        .ask(&modern_request("tasks/get", task))
        .await;
    let error = &gone.answer()["error"];
    assert_eq!(error["code"], -32602, "{error}");
    assert_eq!(error["message"], "the task of another process");
    replicas.end();
}

/// A server of 2025-11-25 on stdio. It changes its resource once that is subscribed to, answers no call, and writes what is
/// cancelled to a file.
const CHANGING: &str = r#"
import json, sys, threading

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

RESULTS = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "resources": {"subscribe": True}},
        "serverInfo": {"name": "changing", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "wait", "inputSchema": {"type": "object"}}]},
    "resources/list": {"resources": [{"uri": f"memo://{i}", "name": f"memo {i}"} for i in range(4)]},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/subscribe": {},
}
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "notifications/cancelled":
        with open(sys.argv[1], "a") as file:
            file.write("cancelled\n")
    elif method in RESULTS:
        send(id=message["id"], result=RESULTS[method])
        if method == "resources/subscribe":
            updated = {"method": "notifications/resources/updated", "params": {"uri": message["params"]["uri"]}}
            threading.Timer(0.2, send, kwargs=updated).start()
    elif "id" in message and method != "tools/call":
        send(id=message["id"], error={"code": -32601, "message": "Method not found"})
"#;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn a_session_is_notified_of_and_cancels_what_it_has_begun_at_another_replica() {
    let script = serde_json::to_string(CHANGING).unwrap();
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("replicas-cancelled");
    let _ = fs::remove_file(&file);
    let server = format!("{{command: python3, args: [-c, {script}, {file:?}]}}");
    let replicas = Replicas::before(&server, "changing", &[""; 3]).await;
    let [a, b, c] = replicas.all.as_slice() else {
        unreachable!("three were started")
    };
    // Wherever the session was opened.
    let places = [(a, b, c), (a, a, b), (b, c, c), (c, b, c)];
    for (number, (opened_at, streamed_at, subscribed_at)) in places.into_iter().enumerate() {
        let uri = format!("memo://{number}");
        let session = open(opened_at, &json!({})).await;
        let mut stream = streamed_at.connect().await;
        stream.send(&stream_of(&session).bytes()).await;
        assert_eq!(stream.head().await.status, 200);
        let subscribe = request(json!(1), "resources/subscribe", json!({"uri": uri}));
        let subscribed = subscribed_at.ask(&of(&session, &subscribe)).await.answer();
        assert_eq!(subscribed["result"], json!({}));
        let updated = tokio::time::timeout(Duration::from_secs(20), stream.event()).await;
        let updated = updated
            .unwrap_or_else(|_| panic!("not notified: {number}"))
            .unwrap();
        assert_eq!(updated["method"], "notifications/resources/updated");
        assert_eq!(updated["params"]["uri"], *uri);
    }
    let session = open(a, &json!({})).await;
    let mut waiting = b.connect().await;
    waiting.send(&call_in(&session, "wait").bytes()).await;
    let cancel = notification("notifications/cancelled", json!({"requestId": "wait"}));
    // Until the call has begun, there is nothing to cancel.
    until(async || {
        assert_eq!(c.ask(&of(&session, &cancel)).await.status, 202);
        fs::read_to_string(&file).is_ok_and(|text| text == "cancelled\n")
    })
    .await;
    replicas.end();
}
