//! Clients that know the extension, in front of servers with tasks as in 2025-11-25.

mod implicit;
mod lifetime;
mod server;

use std::collections::BTreeSet;

use self::server::Works;

use crate::support::*;

const TASKS: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "io.modelcontextprotocol/related-task";
const MODERN: [ClientKind; 2] = [ClientKind::HttpModern, ClientKind::StdioModern];

fn knows_tasks() -> Value {
    json!({"extensions": {TASKS: {}}})
}

fn can_be_asked() -> Value {
    json!({"extensions": {TASKS: {}}, "elicitation": {}})
}

/// A server without tasks yet, and a gateway in front of it.
async fn started() -> (Works, Harness) {
    let works = Works::default();
    let harness = Harness::behind_one(works.peer().await, |config| config).await;
    (works, harness)
}

/// A client of one kind, and the gateway in front of it.
struct Asks<'a> {
    harness: &'a Harness,
    client_kind: ClientKind,
    capabilities: Value,
}

impl<'a> Asks<'a> {
    fn new(harness: &'a Harness, client_kind: ClientKind, capabilities: Value) -> Self {
        Self {
            harness,
            client_kind,
            capabilities,
        }
    }

    /// Sends a request as a new client.
    async fn ask_anew(&self, method: &str, params: Value) -> Value {
        let (kind, capabilities) = (self.client_kind, &self.capabilities);
        soon(kind.ask(self.harness, capabilities, method, params)).await
    }

    /// The id of a task that is made for it.
    async fn created(&self) -> String {
        let created = self.ask_anew("tools/call", tool("job")).await;
        let id = created["result"]["taskId"].as_str();
        id.unwrap_or_else(|| panic!("no task: {created}"))
            .to_owned()
    }

    async fn get(&self, id: &str) -> Value {
        let mut got = self.ask_anew("tasks/get", json!({"taskId": id})).await;
        assert!(got["result"].is_object(), "{got}");
        got["result"].take()
    }

    /// The task when it stands so.
    async fn until(&self, id: &str, status: &str) -> Value {
        until_some(async || {
            let task = self.get(id).await;
            (task["status"] == status).then_some(task)
        })
        .await
    }

    async fn updated(&self, id: &str, responses: Value) {
        let params = json!({"taskId": id, "inputResponses": responses});
        let answer = self.ask_anew("tasks/update", params).await;
        answer.has("/result", json!({"resultType": "complete"}));
    }
}

fn done() -> Value {
    json!({
        "content": [{"type": "text", "text": "{\"a\":1}"}], "structuredContent": {"a": 1},
        "isError": true, "_meta": {RELATED: {"taskId": "work-1"}},
    })
}

fn form() -> Value {
    json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}})
}

/// SEP-2663: the server decides, and the gateway speaks for it: what can only be called as a task becomes one.
#[tokio::test]
async fn a_tool_that_needs_a_task_gets_one() {
    for way in MODERN {
        let (works, harness) = started().await;
        let client = Asks::new(&harness, way, knows_tasks());
        let found = client.ask_anew("server/discover", json!({})).await;
        let found = &found["result"]["capabilities"]["extensions"][TASKS];
        assert_eq!(*found, json!({}));

        let made = client.ask_anew("tools/call", tool("job")).await;
        let id = made["result"]["taskId"].as_str().unwrap().to_owned();
        assert_ne!(id, "work-1");
        let expected = json!({
            "resultType": "task", "taskId": id, "status": "working", "statusMessage": "begun",
            "ttlMs": 60_000, "pollIntervalMs": 50, "x-vendor": 1.50, "_meta": {"x": 1.50},
        });
        assert_eq!(made["result"], expected, "{way:?}");
        let asked = harness.peer.of("tools/call");
        assert_eq!(asked[0].body["params"]["task"], json!({}));

        let working = json!({
            "resultType": "complete", "taskId": id, "status": "working", "statusMessage": "begun",
            "ttlMs": 60_000, "pollIntervalMs": 50, "x-vendor": 1.50,
        });
        assert_eq!(client.get(&id).await, working);
        works.ends("work-1", Ok(done())).await;
        let task = client.until(&id, "completed").await;
        let mut result = done();
        result["resultType"] = json!("complete");
        result["_meta"][RELATED]["taskId"] = json!(id);
        // What the tool says of itself is no failure of the call.
        task.has("/result", result);
        task.has("/resultType", "complete");

        for name in ["may", "plain"] {
            let answer = client.ask_anew("tools/call", tool(name)).await;
            assert_ne!(answer["result"]["resultType"], "task", "{name} {answer}");
        }
    }
}

/// Who has not declared the extension gets no task of it, and may not ask for one.
#[tokio::test]
async fn who_does_not_declare_the_extension_gets_no_task() {
    let (_works, harness) = started().await;
    let knowing = Asks::new(&harness, ClientKind::HttpModern, knows_tasks());
    let id = knowing.created().await;
    let other = Asks::new(&harness, ClientKind::HttpModern, json!({}));
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let answer = other.ask_anew(method, json!({"taskId": id})).await;
        answer.has("/error/code", -32021);
    }
    // In its own era it is told so by the server.
    let mut legacy = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let answer = legacy.answer("tools/call", tool("job")).await;
    answer.has("/error/code", -32601);
}

/// What a task asks stands in what is said of it, and what the client says to that goes to the server.
#[tokio::test]
async fn a_task_asks_and_is_answered() {
    for way in MODERN {
        for aside in ["result", "stream"] {
            let (works, harness) = started().await;
            let client = Asks::new(&harness, way, can_be_asked());
            let id = client.created().await;
            let method = "elicitation/create";
            let number = match aside {
                "stream" => works.asks_aside("work-1", method, form()).await,
                _ => works.asks("work-1", method, form()).await,
            };
            let task = client.until(&id, "input_required").await;
            let mut params = form();
            params["_meta"] = json!({RELATED: {"taskId": id}});
            let question = json!({"method": "elicitation/create", "params": params});
            let expected = json!({"1": question});
            assert_eq!(task["inputRequests"], expected, "{way:?} {aside}");
            task.has("/pollIntervalMs", 50);

            // What nobody asked is ignored, and what is asked stays.
            let arguments = json!({"7": {"action": "cancel"}});
            client.updated(&id, arguments).await;
            let expected = &task["inputRequests"];
            assert_eq!(client.get(&id).await["inputRequests"], *expected);
            let said = json!({"action": "accept", "content": {"a": 1.5}});
            client.updated(&id, json!({"1": said})).await;
            assert_eq!(works.reply(number).await, said);
            works.stands("work-1", "working");
            assert_eq!(client.get(&id).await["status"], "working");
            // A key means one question for ever.
            let number = works.asks("work-1", "elicitation/create", form()).await;
            let task = client.until(&id, "input_required").await;
            assert!(task["inputRequests"]["2"].is_object(), "{task}");
            let arguments = json!({"1": said, "2": {"action": "decline"}});
            client.updated(&id, arguments).await;
            assert_eq!(works.reply(number).await, json!({"action": "decline"}));
            works.ends("work-1", Ok(json!({"content": []}))).await;
            client.until(&id, "completed").await;
        }
    }
}

/// Never asked what its client has not declared: the server is told so, as the client would.
#[tokio::test]
async fn a_task_asks_nothing_else_than_was_declared() {
    let (works, harness) = started().await;
    for (capabilities, task) in [(can_be_asked(), "work-1"), (knows_tasks(), "work-2")] {
        let client = Asks::new(&harness, ClientKind::HttpModern, capabilities);
        let id = client.created().await;
        let number = works.asks(task, "sampling/createMessage", json!({})).await;
        assert_eq!(works.reply(number).await["code"], -32601);
        works.stands(task, "working");
        assert_eq!(client.get(&id).await["status"], "working");
    }
}

/// A failure of the call is one of the task, with the error that the call would have had.
#[tokio::test]
async fn a_task_fails_with_the_error_of_its_call() {
    let (works, harness) = started().await;
    let client = Asks::new(&harness, ClientKind::HttpModern, knows_tasks());
    let id = client.created().await;
    let error = json!({"code": -32050, "message": "no paper", "data": {"tray": 2.50}});
    works.ends("work-1", Err(error.clone())).await;
    let task = client.until(&id, "failed").await;
    task.has("/error", error);
    assert!(task["result"].is_null() && task["inputRequests"].is_null());
}

/// > Cancellation is cooperative. (SEP-2663, "Task Cancellation")
#[tokio::test]
async fn a_task_is_cancelled_as_often_as_its_client_likes() {
    for way in MODERN {
        let (works, harness) = started().await;
        let client = Asks::new(&harness, way, can_be_asked());
        let id = client.created().await;
        let number = works.asks("work-1", "elicitation/create", form()).await;
        client.until(&id, "input_required").await;
        for _ in 0..2 {
            let answer = client.ask_anew("tasks/cancel", json!({"taskId": id})).await;
            answer.has("/result", json!({"resultType": "complete"}));
            let task = client.get(&id).await;
            task.has("/status", "cancelled");
            assert!(task["error"].is_null() && task["inputRequests"].is_null());
        }
        assert_eq!(harness.peer.of("tasks/cancel").len(), 1);
        // Nobody is asked any more.
        assert!(works.reply(number).await["code"].is_i64());
        // Answers that are late are taken, and dropped.
        let params = json!({"1": {"action": "accept"}});
        client.updated(&id, params).await;

        // A server that cannot end it goes on.
        let other = client.created().await;
        works.never_cancels();
        let answer = client
            .ask_anew("tasks/cancel", json!({"taskId": other}))
            .await;
        answer.has("/result", json!({"resultType": "complete"}));
        works.ends("work-2", Ok(json!({"content": []}))).await;
        client.until(&other, "completed").await;
    }
}

/// SV-28: ids that were not made here, or for another kind of request, are nobody's.
#[tokio::test]
async fn an_id_of_nobody_is_not_found() {
    let (_works, harness) = started().await;
    let client = Asks::new(&harness, ClientKind::HttpModern, knows_tasks());
    let id = client.created().await;
    let (_other, elsewhere) = started().await;
    let elsewhere = Asks::new(&elsewhere, ClientKind::HttpModern, knows_tasks());
    for (client, id) in [(&client, "work-1"), (&client, ""), (&elsewhere, &*id)] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let answer = client.ask_anew(method, json!({"taskId": id})).await;
            assert_eq!(answer["error"]["code"], -32602, "{method} {answer}");
        }
    }
    for responses in [json!([]), json!({"1": 7})] {
        let params = json!({"taskId": id, "inputResponses": responses});
        let answer = client.ask_anew("tasks/update", params).await;
        answer.has("/error/code", -32602);
    }
}

/// Each task of a client that can be asked has a session of its server alone until it is over; then the next has it.
#[tokio::test]
async fn a_task_that_may_ask_has_its_connection_alone() {
    let (works, harness) = started().await;
    let client = Asks::new(&harness, ClientKind::HttpModern, can_be_asked());
    let (one, other) = (client.created().await, client.created().await);
    assert_ne!(works.session_of("work-1"), works.session_of("work-2"));
    assert_eq!(harness.gateway.status().proxied_tasks, 2);
    for (task, id) in [("work-1", &one), ("work-2", &other)] {
        works.ends(task, Ok(json!({"content": []}))).await;
        client.until(id, "completed").await;
    }
    // What is over gives its session back in a moment.
    let before = [works.session_of("work-1"), works.session_of("work-2")];
    let mut last = 2;
    soon(async {
        loop {
            let id = client.created().await;
            last += 1;
            let task = format!("work-{last}");
            works.ends(&task, Ok(json!({"content": []}))).await;
            client.until(&id, "completed").await;
            if before.contains(&works.session_of(&task)) {
                return;
            }
        }
    })
    .await;
    // Those who cannot be asked share one.
    let plain = Asks::new(&harness, ClientKind::HttpModern, knows_tasks());
    plain.created().await;
    plain.created().await;
    let sessions = [1, 2].map(|more| works.session_of(&format!("work-{}", last + more)));
    assert_eq!(sessions[0], sessions[1]);
}

/// One too many is refused, and ended at its server.
#[tokio::test]
async fn no_more_tasks_are_watched_than_may_be() {
    let works = Works::default();
    let limit = |config: &mut Config| config.limits.suspended_calls_per_principal = 1;
    let harness = Harness::edited(works.peer().await, limit).await;
    let client = Asks::new(&harness, ClientKind::HttpModern, knows_tasks());
    let id = client.created().await;
    let refused = client.ask_anew("tools/call", tool("job")).await;
    refused.contains("/error/message", "too many tasks are running");
    harness.peer.wait_for("tasks/cancel", 1).await;
    let cancelled = &harness.peer.of("tasks/cancel")[0].body;
    cancelled.has("/params/taskId", "work-2");
    // One that is over does not count.
    works.ends("work-1", Ok(json!({"content": []}))).await;
    client.until(&id, "completed").await;
    client.created().await;
}

/// Nothing is watched for longer than the operator allows; who asks then is told so.
#[tokio::test]
async fn a_task_has_its_time() {
    let works = Works::default().with_said(json!({"ttl": null}));
    let harness = Harness::edited(works.peer().await, |config| {
        config.limits.task_lifetime = Duration::from_millis(300)
    })
    .await;
    let client = Asks::new(&harness, ClientKind::HttpModern, can_be_asked());
    let made = client.ask_anew("tools/call", tool("job")).await;
    made.has("/result/ttlMs", 300);
    let cancelled = soon(harness.peer.wait_for("tasks/cancel", 1)).await;
    assert_eq!(cancelled[0].body["params"]["taskId"], "work-1");
    let status = || harness.gateway.status();
    until(async || status().proxied_tasks + status().dedicated_connections == 0).await;
    let id = made["result"]["taskId"].as_str().unwrap();
    let answer = client.ask_anew("tasks/get", json!({"taskId": id})).await;
    answer.fails(-32602, "its time is over");
    assert!(!answer["error"].to_string().contains("work-1"), "{answer}");
}

/// A stream that breaks has not taken the task with it.
#[tokio::test]
async fn a_task_outlives_a_stream() {
    let (works, harness) = started().await;
    let client = Asks::new(&harness, ClientKind::HttpModern, knows_tasks());
    let id = client.created().await;
    works.interrupts("work-1").await;
    works.ends("work-1", Ok(done())).await;
    client.until(&id, "completed").await;
}

/// A server that is started again knows nothing of its tasks: they have failed, which their clients are told.
#[tokio::test]
async fn a_task_whose_server_is_lost_has_failed() {
    let (works, harness) = started().await;
    let client = Asks::new(&harness, ClientKind::HttpModern, knows_tasks());
    let id = client.created().await;
    works.is_waited_for("work-1").await;
    works.forgets("work-1");
    let task = client.until(&id, "failed").await;
    task.contains("/error/message", "its task is gone");
}

/// A server that lets go of a task with its result may say that there is none before the result has come.
#[tokio::test]
async fn a_task_that_is_let_go_of_with_its_result_has_come_to_it() {
    let (works, harness) = started().await;
    let client = Asks::new(&harness, ClientKind::HttpModern, knows_tasks());
    let id = client.created().await;
    let delivers = works.lets_go("work-1").await;
    let asked = harness.peer.of("tasks/get").len();
    let result = async {
        soon(harness.peer.wait_for("tasks/get", asked + 1)).await;
        delivers(Ok(done()));
    };
    let (task, ()) = tokio::join!(client.get(&id), result);
    task.has("/status", "completed");
}

/// A gateway that was started again asks the server, which may still know the task.
#[tokio::test]
async fn a_task_outlives_its_gateway_where_its_server_knows_it() {
    let works = Works::default();
    let peer = works.peer().await;
    let first = config(Target::http(peer.url.clone()));
    let key = first.key;
    let harness = Harness::behind(peer, first).await;
    let client = Asks::new(&harness, ClientKind::HttpModern, knows_tasks());
    let (id, other) = (client.created().await, client.created().await);
    works.ends("work-1", Ok(done())).await;

    let again = Harness::edited(works.everywhere().await, |config| config.key = key).await;
    let client = Asks::new(&again, ClientKind::HttpModern, knows_tasks());
    let mut stream = listening(&again, &knows_tasks(), &[&id]).await;
    assert_eq!(sent(&mut stream).await["status"], "completed");
    let task = client.until(&id, "completed").await;
    task.has("/result/structuredContent", json!({"a": 1}));
    let number = works.asks("work-2", "elicitation/create", form()).await;
    assert_eq!(works.reply(number).await["code"], -32601);
    works.ends("work-2", Ok(json!({"content": []}))).await;
    client.until(&other, "completed").await;
}

/// CN-19, SV-28: told as the call's would be, in the variant that the task was made under.
#[tokio::test]
async fn what_a_task_came_to_is_shaped_as_the_result_of_its_call() {
    let (works, harness) = started().await;
    let mut capabilities = features(&["agent", "format=json"]);
    capabilities["extensions"][TASKS] = json!({});
    let client = Asks::new(&harness, ClientKind::HttpModern, capabilities);
    let params = under("compact", tool("job"));
    let made = client.ask_anew("tools/call", params).await;
    let id = made["result"]["taskId"].as_str().unwrap();
    let mut result = done();
    result["isError"] = json!(false);
    works.ends("work-1", Ok(result)).await;
    let task = client.until(id, "completed").await;
    task.has("/result/content", json!([]));
    let expected = "compact";
    assert_eq!(task["result"]["_meta"]["vary/applied"]["variant"], expected);
}

/// A client on a stream of its own that listens to these tasks, all of which are known.
async fn listening(harness: &Harness, capabilities: &Value, ids: &[&str]) -> RawHttp {
    let (http, acknowledged) = listening_to_tasks(harness, capabilities, ids).await;
    assert_eq!(acknowledged, json!({"taskIds": ids}));
    http
}

/// The next task that a stream tells of, without what says which stream it is.
async fn sent(stream: &mut RawHttp) -> Value {
    loop {
        let mut sent = soon(stream.event()).await.expect("the stream goes on");
        if sent["method"] == "notifications/tasks" {
            let mut task = sent["params"].take();
            if let Some(meta) = task["_meta"].as_object_mut() {
                meta.remove(SUBSCRIPTION);
            }
            return task;
        }
    }
}

/// SEP-2663: each notification says all that `tasks/get` would say.
#[tokio::test]
async fn who_listens_to_a_task_hears_what_it_asks_and_comes_to() {
    let (works, harness) = started().await;
    let client = Asks::new(&harness, ClientKind::HttpModern, can_be_asked());
    let id = client.created().await;
    let mut shapes = features(&["agent", "format=json"]);
    shapes["extensions"][TASKS] = json!({});
    let mut plain = listening(&harness, &can_be_asked(), &[&id]).await;
    let mut shaped = listening(&harness, &shapes, &[&id]).await;

    works.is_heard("work-1").await;
    works.says("work-1", "working", "half of it");
    let task = sent(&mut plain).await;
    assert_eq!(
        (
            &task["taskId"],
            &task["status"],
            &task["statusMessage"],
            &task["ttlMs"]
        ),
        (
            &json!(id),
            &json!("working"),
            &json!("half of it"),
            &json!(60_000)
        )
    );
    let number = works.asks("work-1", "elicitation/create", form()).await;
    let task = sent(&mut plain).await;
    task.has("/status", "input_required");
    let found = &task["inputRequests"]["1"]["params"]["_meta"][RELATED]["taskId"];
    assert_eq!(*found, json!(id));
    let params = json!({"1": {"action": "decline"}});
    client.updated(&id, params).await;
    works.reply(number).await;
    assert_eq!(sent(&mut plain).await["status"], "working");
    let mut result = done();
    result["isError"] = json!(false);
    works.ends("work-1", Ok(result)).await;
    let task = sent(&mut plain).await;
    task.has("/status", "completed");
    task.has("/result/structuredContent", json!({"a": 1}));
    assert_eq!(task["result"]["_meta"][RELATED]["taskId"], json!(id));
    // Each as it declared.
    let task = loop {
        let task = sent(&mut shaped).await;
        if task["status"] == "completed" {
            break task;
        }
    };
    task.has("/result/content", json!([]));
}

/// SEP-2663: a client that listens to a task is notified when it is cancelled.
#[tokio::test]
async fn a_client_that_listens_to_a_task_is_notified_that_it_was_cancelled() {
    let (_works, harness) = started().await;
    let client = Asks::new(&harness, ClientKind::HttpModern, can_be_asked());
    let cancelled = client.created().await;
    let mut stream = listening(&harness, &can_be_asked(), &[&cancelled]).await;
    let params = json!({"taskId": cancelled});
    client.ask_anew("tasks/cancel", params).await;
    assert_eq!(sent(&mut stream).await["status"], "cancelled");
}

/// The extension belongs to no era: a session that declares it has its tasks so, and hears of them and of their
/// progress; one that wishes for a task of its own era has that.
#[tokio::test]
async fn a_session_that_knows_the_extension_has_its_tasks_so() {
    let (works, harness) = started().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &can_be_asked()).await;
    let mut stream = stream_of(&harness, &client).await;
    let mut call = tool("job");
    call["_meta"]["progressToken"] = json!("mine");
    let made = client.answer("tools/call", call).await;
    let id = made["result"]["taskId"].as_str().unwrap().to_owned();
    made.has("/result/ttlMs", 60_000);
    let call = &harness.peer.of("tools/call")[0].body;
    let token = call["params"]["_meta"]["progressToken"].clone();
    let meta = json!({RELATED: {"taskId": "work-1"}});
    let params = json!({"progressToken": token, "progress": 1.5, "_meta": meta});
    let progress = notification("notifications/progress", params);
    works.tells("work-1", &progress).await;
    let received = soon(stream.event()).await.unwrap();
    let meta = json!({RELATED: {"taskId": id}});
    let expected = json!({"progressToken": "mine", "progress": 1.5, "_meta": meta});
    received.has("/params", expected);

    let number = works.asks("work-1", "elicitation/create", form()).await;
    let task = sent(&mut stream).await;
    assert!(task["inputRequests"]["1"].is_object(), "{task}");
    let params = json!({"taskId": id, "inputResponses": {"1": {"action": "decline"}}});
    let answer = client.answer("tasks/update", params).await;
    answer.has("/result", json!({}));
    works.reply(number).await;
    assert_eq!(sent(&mut stream).await["status"], "working");
    works.ends("work-1", Ok(json!({"content": []}))).await;
    assert_eq!(sent(&mut stream).await["status"], "completed");
    let got = client.answer("tasks/get", json!({"taskId": id})).await;
    got.has("/result/result/content", json!([]));

    let mut wished = tool("job");
    wished["task"] = json!({"ttl": 1000});
    let made = client.answer("tools/call", wished).await;
    let task = &made["result"]["task"];
    assert_eq!(task["ttl"], 60_000, "{made}");
    let params = json!({"taskId": task["taskId"]});
    let got = client.answer("tasks/get", params).await;
    got.has("/result/pollInterval", 50);
}

/// The configuration before a process whose tasks are called alike in each.
fn process() -> Config {
    config(of_script("works.py"))
}

/// A process says of nothing which task it is about, and several may call theirs alike.
#[tokio::test]
async fn tasks_of_processes_are_told_apart() {
    let gateway = Gateway::start(process()).await.unwrap();
    let mut pipe = open_pipe(&gateway);
    let mut number = 0;
    let mut ask = async |method: &str, params: Value, capabilities: &Value| {
        number += 1;
        let message = modern(json!(number), method, params, capabilities);
        let answer = pipe.ask(&message).await;
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    };
    let mut ids = Vec::new();
    for asks in ["at once", "waits", "at once"] {
        let call = json!({"name": "job", "arguments": {"ask": asks}});
        let made = ask("tools/call", call, &can_be_asked()).await;
        ids.push(made["taskId"].clone());
    }
    let mut processes = BTreeSet::new();
    for (at, id) in ids.iter().enumerate() {
        let get = json!({"taskId": id});
        until(async || {
            ask("tasks/get", get.clone(), &can_be_asked()).await["status"] == "input_required"
        })
        .await;
        let said = json!({"1": {"action": "accept", "content": {"at": at}}});
        let update = json!({"taskId": id, "inputResponses": said});
        ask("tasks/update", update, &can_be_asked()).await;
        let task = until_some(async || {
            let task = ask("tasks/get", get.clone(), &can_be_asked()).await;
            (task["status"] == "completed").then_some(task)
        })
        .await;
        let text = task["result"]["content"][0]["text"].as_str().unwrap();
        let text: Value = serde_json::from_str(text).unwrap();
        text.has("/said/content/at", at);
        processes.insert(text["pid"].to_string());
    }
    assert_eq!(processes.len(), 3);
    // Who cannot be asked has the process that all share.
    let call = json!({"name": "job", "arguments": {}});
    let made = ask("tools/call", call, &knows_tasks()).await;
    let get = json!({"taskId": made["taskId"]});
    soon(async {
        while ask("tasks/get", get.clone(), &knows_tasks()).await["status"] != "completed" {}
    })
    .await;
}

/// The process of the only client runs all of its tasks.
#[tokio::test]
async fn a_task_of_the_only_client_asks_nothing_for_another_task() {
    let mut config = process();
    let first = modern(json!(1), "server/discover", json!({}), &can_be_asked());
    config.only_client = Gateway::only_client(format!("{first}\n").as_bytes());
    assert!(config.only_client.is_some(), "{first}");
    let gateway = Gateway::start(config).await.unwrap();
    let mut pipe = open_pipe(&gateway);
    let mut number = 0;
    let mut ask = async |method: &str, params: Value| {
        number += 1;
        let message = modern(json!(number), method, params, &can_be_asked());
        pipe.ask(&message).await["result"].take()
    };
    let mut ids = Vec::new();
    // The first goes on until it is cancelled.
    for asks in ["nothing", "at once"] {
        let call = json!({"name": "job", "arguments": {"ask": asks}});
        ids.push(ask("tools/call", call).await["taskId"].take());
    }
    let [silent, asking] = [0, 1].map(|at| json!({"taskId": ids[at]}));
    until(async || ask("tasks/get", asking.clone()).await["status"] == "input_required").await;
    let got = ask("tasks/get", silent).await;
    assert_eq!(got["status"], "working", "{got}");
}
