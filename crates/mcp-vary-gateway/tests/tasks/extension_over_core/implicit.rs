//! Calls that become tasks although the client knows no tasks: it gets the result.

use super::*;

/// A client without sessions that knows no tasks gets what the task comes to, as if the call had taken so long.
#[tokio::test]
async fn who_knows_no_tasks_gets_the_result_of_one() {
    for way in MODERN {
        let (works, harness) = started().await;
        let client = Asks::new(&harness, way, json!({}));
        let (answer, ()) = tokio::join!(
            client.ask_anew("tools/call", tool("job")),
            works.ends("work-1", Ok(done()))
        );
        let mut result = done();
        result["resultType"] = json!("complete");
        result.as_object_mut().unwrap().remove("_meta");
        assert_eq!(answer["result"], result, "{way:?}");
        let (answer, ()) = tokio::join!(
            client.ask_anew("tools/call", tool("job")),
            works.ends(
                "work-2",
                Err(json!({"code": -32050, "message": "no paper"}))
            )
        );
        answer.has("/error/code", -32050);
        assert!(harness.peer.of("tasks/cancel").is_empty());
    }
}

/// What it is told on the way is told as of any call, and who hangs up has cancelled.
#[tokio::test]
async fn a_call_that_is_a_task_is_heard_of_and_cancelled_like_any_other() {
    let (works, harness) = started().await;
    let mut http = harness.connect().await;
    let mut call = tool("job");
    call["_meta"]["progressToken"] = json!("mine");
    let call = modern(json!(1), "tools/call", call, &json!({}));
    http.send(&HttpRequest::modern(&call).bytes()).await;
    let asked = harness.peer.wait_for("tools/call", 1).await;
    let token = &asked[0].body["params"]["_meta"]["progressToken"];
    let params = json!({"progressToken": token, "progress": 1.5});
    let progress = notification("notifications/progress", params);
    works.tells("work-1", &progress).await;
    assert_eq!(http.head().await.status, 200);
    let received = soon(http.event()).await.unwrap();
    received.has("/params", json!({"progressToken": "mine", "progress": 1.5}));
    drop(http);
    let cancelled = soon(harness.peer.wait_for("tasks/cancel", 1)).await;
    assert_eq!(cancelled[0].body["params"]["taskId"], "work-1");
}

/// What is asked on the way is asked as by any call of a server with sessions, before the task is made and after.
#[tokio::test]
async fn a_call_that_is_a_task_may_ask() {
    let gateway = Gateway::start(process()).await.unwrap();
    let mut pipe = open_pipe(&gateway);
    let can = json!({"elicitation": {}});
    for (number, asks) in ["first", "waits"].into_iter().enumerate() {
        let call = json!({"name": "job", "arguments": {"ask": asks}});
        let first = modern(json!(2 * number), "tools/call", call.clone(), &can);
        let asked = pipe.ask(&first).await;
        let asked = &asked["result"];
        assert_eq!(asked["resultType"], "input_required", "{asks} {asked}");
        let mut again = call;
        again["requestState"] = asked["requestState"].clone();
        again["inputResponses"] = json!({"1": {"action": "accept", "content": {"n": number}}});
        let message = modern(json!(2 * number + 1), "tools/call", again, &can);
        let answer = pipe.ask(&message).await;
        let text = answer["result"]["content"][0]["text"].as_str();
        let text: Value = serde_json::from_str(text.unwrap_or_else(|| panic!("{answer}"))).unwrap();
        text.has("/said/content/n", number);
    }
    assert_eq!(gateway.status().suspended_calls, 0);
}

/// One that asks before it makes a task is come back to, and the task is watched then.
#[tokio::test]
async fn a_call_may_ask_before_it_becomes_a_task() {
    let gateway = Gateway::start(process()).await.unwrap();
    let mut pipe = open_pipe(&gateway);
    let mut call = json!({"name": "job", "arguments": {"ask": "first"}});
    let message = modern(json!(1), "tools/call", call.clone(), &can_be_asked());
    let asked = pipe.ask(&message).await;
    call["requestState"] = asked["result"]["requestState"].clone();
    call["inputResponses"] = json!({"1": {"action": "decline"}});
    let message = modern(json!(2), "tools/call", call, &can_be_asked());
    let made = pipe.ask(&message).await;
    let id = &made["result"]["taskId"];
    assert!(id.is_string(), "{made}");
    let get = modern(
        json!(3),
        "tasks/get",
        json!({"taskId": id}),
        &can_be_asked(),
    );
    let task = until_some(async || {
        let task = pipe.ask(&get).await;
        (task["result"]["status"] == "completed").then_some(task)
    })
    .await;
    task.contains("/result/result/content/0/text", "decline");
}
