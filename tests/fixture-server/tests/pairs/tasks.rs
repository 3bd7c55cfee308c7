//! Calls that the server goes on working at when it has answered.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::client::Client;
use crate::pair::Pair;

/// A task from its call to its result.
pub(crate) async fn result(pair: Arc<Pair>) -> String {
    let mut client = pair.client_that_can(capable()).await;
    let arguments = json!({"seconds": 0, "label": "it"});
    let created = call(&mut client, "slow_compute", arguments).await;
    match created["result"]["taskId"].as_str() {
        Some(id) => ended(&mut client, id).await,
        None => format!("no task: {created}"),
    }
}

/// A task that asks its client before it goes on.
pub(crate) async fn question(pair: Arc<Pair>) -> String {
    let mut client = pair.client_that_can(capable()).await;
    let created = call(&mut client, "confirm_delete", json!({"filename": "a"})).await;
    let Some(id) = created["result"]["taskId"].as_str() else {
        return format!("no task: {created}");
    };
    let requested = until(&mut client, id, "input_required").await;
    let answer = json!({"action": "accept", "content": {"confirm": true}});
    let questions = requested["inputRequests"].as_object();
    let Some((key, _)) = questions.and_then(|all| all.iter().next()) else {
        return format!("no question: {requested}");
    };
    let params = json!({"taskId": id, "inputResponses": {key: answer}});
    let updated = client.ask("tasks/update", params).await.answer;
    assert!(updated["result"].is_object(), "{updated}");
    ended(&mut client, id).await
}

/// A task that its client does not want any more.
pub(crate) async fn cancellation(pair: Arc<Pair>) -> String {
    let mut client = pair.client_that_can(capable()).await;
    let arguments = json!({"seconds": 3_600, "label": "it"});
    let created = call(&mut client, "slow_compute", arguments).await;
    let Some(id) = created["result"]["taskId"].as_str() else {
        return format!("no task: {created}");
    };
    let params = json!({"taskId": id});
    let cancelled = client.ask("tasks/cancel", params).await.answer;
    assert!(cancelled["result"].is_object(), "{cancelled}");
    until(&mut client, id, "cancelled").await;
    "the server stops".to_owned()
}

/// A task that the client wishes for.
pub(crate) async fn wish(pair: Arc<Pair>) -> String {
    let mut client = pair.client().await;
    let arguments = json!({"seconds": 0.1, "label": "it"});
    let params = json!({"name": "slow_compute", "arguments": arguments, "task": {"ttl": 60_000}});
    let answer = client.ask("tools/call", params).await.answer;
    let text = &answer["result"]["content"][0]["text"];
    if text == "computed it" {
        return "no task".to_owned();
    }
    answer.to_string()
}

/// What a client declares that takes tasks, and can be asked.
fn capable() -> Value {
    json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

async fn call(client: &mut Client, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    client.ask("tools/call", params).await.answer
}

async fn ended(client: &mut Client, id: &str) -> String {
    let task = until(client, id, "completed").await;
    task["result"]["content"][0]["text"].to_string()
}

/// The task when it stands so.
async fn until(client: &mut Client, id: &str, status: &str) -> Value {
    loop {
        let params = json!({"taskId": id});
        let mut answer = client.ask("tasks/get", params).await.answer;
        let task = answer["result"].take();
        assert!(task.is_object(), "{answer}");
        if task["status"] == status {
            return task;
        }
        assert!(
            ["working", "input_required"].contains(&task["status"].as_str().unwrap_or_default()),
            "{task}"
        );
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
