//! How long tasks live, and how much of their outcomes is stored.

use super::*;

/// Servers that are still the same keep their tasks when the gateway is configured anew.
#[tokio::test]
async fn a_task_outlives_a_configuration() {
    let (works, harness) = started().await;
    let client = Asks::new(&harness, ClientKind::HttpModern, can_be_asked());
    let id = client.created().await;
    works.is_waited_for("work-1").await;
    let mut changed = config(Target::http(harness.peer.url.clone()));
    changed.limits.max_rounds = 3;
    harness.reload(changed).await;
    let number = works.asks("work-1", "elicitation/create", form()).await;
    client.until(&id, "input_required").await;
    let params = json!({"1": {"action": "decline"}});
    client.updated(&id, params).await;
    works.reply(number).await;
    works.ends("work-1", Ok(json!({"content": []}))).await;
    client.until(&id, "completed").await;
}

/// A process that ends takes its tasks with it, which have failed then, and is started again for others.
#[tokio::test]
async fn a_task_whose_process_ends_has_failed() {
    let gateway = Gateway::start(process()).await.unwrap();
    let mut pipe = open_pipe(&gateway);
    for capabilities in [knows_tasks(), can_be_asked()] {
        let call = json!({"name": "job", "arguments": {"ask": "die"}});
        let call = modern(json!(1), "tools/call", call, &capabilities);
        let made = until_some(async || {
            let made = pipe.ask(&call).await;
            made["result"]["taskId"].is_string().then_some(made)
        })
        .await;
        let get = json!({"taskId": made["result"]["taskId"]});
        let get = modern(json!(2), "tasks/get", get, &capabilities);
        let task = until_some(async || {
            let task = pipe.ask(&get).await;
            (task["result"]["status"] == "failed").then_some(task)
        })
        .await;
        task.contains("/result/error/message", "gone");
    }
    until(async || gateway.status().proxied_tasks == 0).await;
}

/// What tasks came to is kept in so many bytes: the oldest gives way, and what is too large for itself is not kept.
#[tokio::test]
async fn what_tasks_came_to_is_kept_within_bounds() {
    let works = Works::default();
    let harness = Harness::edited(works.peer().await, |config| {
        config.limits.result_store = 2_000
    })
    .await;
    let client = Asks::new(&harness, ClientKind::HttpModern, can_be_asked());
    let of = |length: usize| json!({"content": [{"type": "text", "text": "x".repeat(length)}]});
    let large = client.created().await;
    works.ends("work-1", Ok(of(600))).await;
    let task = client.until(&large, "failed").await;
    task.contains("/error/message", "too large to be stored");
    let mut ids = Vec::new();
    for at in 2..=5 {
        let id = client.created().await;
        works.ends(&format!("work-{at}"), Ok(of(400))).await;
        client.until(&id, "completed").await;
        ids.push(id);
    }
    for id in &ids[2..] {
        assert_eq!(client.get(id).await["status"], "completed");
    }
    // Nobody knows it any more.
    works.forgets("work-1");
    let get = json!({"taskId": large});
    until(async || client.ask_anew("tasks/get", get.clone()).await["error"]["code"] == -32602)
        .await;
}

/// A process says beside its calls what a task asks: a session that knows the extension finds it in the task.
#[tokio::test]
async fn what_a_process_asks_for_a_session_stands_in_its_task() {
    let gateway = Gateway::start(process()).await.unwrap();
    let mut pipe = legacy_pipe(&gateway, "2025-11-25", &can_be_asked()).await;
    let call = json!({"name": "job", "arguments": {"ask": "waits"}});
    let made = pipe.ask(&request(json!(1), "tools/call", call)).await;
    let id = made["result"]["taskId"].clone();
    let told = pipe.receive_until(|received| {
        assert_ne!(received["method"], "elicitation/create", "{received}");
        received["params"]["inputRequests"].is_object()
    });
    let told = soon(told).await;
    assert_eq!(told["params"]["taskId"], id);
    let said = json!({"taskId": id, "inputResponses": {"1": {"action": "decline"}}});
    let update = request(json!(2), "tasks/update", said);
    pipe.send(update.to_string()).await;
    pipe.receive_until(|received| received["params"]["status"] == "completed")
        .await;
}
