//! Clients that know tasks as in 2025-11-25, in front of servers that have the extension.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::*;

const TASKS: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "io.modelcontextprotocol/related-task";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A server of 2026-07-28 whose tool `job` becomes a task where the request declares the extension, and whose
/// other tools never do. How a task stands the test says.
#[derive(Clone, Default)]
struct Works(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    tasks: BTreeMap<String, Value>,
    /// The streams that listen: their id, the tasks that they ask for, and where to write.
    streams: Vec<(Value, Value, UnboundedSender<Bytes>)>,
    /// Whether a task goes on that was cancelled.
    is_stubborn: bool,
}

impl Works {
    async fn harness(&self) -> Harness {
        let works = self.clone();
        Harness::scripted(move |seen| works.answer(seen)).await
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap())
    }

    /// Lets a task stand so, and tells whoever listens.
    fn set(&self, id: &str, status: &str, more: Value) {
        self.with(|state| {
            let task = state.tasks.get_mut(id).unwrap();
            task["status"] = json!(status);
            for (key, value) in more.as_object().unwrap() {
                task[key] = value.clone();
            }
            for (subscription, ids, sender) in &state.streams {
                if !ids.as_array().is_some_and(|ids| ids.contains(&json!(id))) {
                    continue;
                }
                let mut params = task.clone();
                params["_meta"] = json!({SUBSCRIPTION: subscription});
                let _ = sender.send(event(&notification("notifications/tasks", params)).into());
            }
        });
    }

    /// Lets a task ask for an elicitation by each of these keys.
    fn ask(&self, id: &str, keys: &[&str]) {
        let requested = keys.iter().map(|key| {
            let question =
                json!({"method": "elicitation/create", "params": {"message": key, "x": 1.0}});
            ((*key).to_owned(), question)
        });
        let requested: serde_json::Map<_, _> = requested.collect();
        self.set(id, "input_required", json!({"inputRequests": requested}));
    }

    /// The id of the newest task.
    fn newest(&self) -> String {
        self.with(|state| format!("work-{}", state.tasks.len()))
    }

    /// Waits until it is asked to tell of exactly these tasks.
    async fn tells_of(&self, ids: &[&str]) {
        let holds = |state: &State| {
            let open = state.streams.iter().filter(|(.., it)| !it.is_closed());
            let open = open.filter_map(|(_, ids, _)| ids.as_array());
            let open: BTreeSet<_> = open.flatten().filter_map(Value::as_str).collect();
            open == ids.iter().copied().collect()
        };
        until(async || self.with(|state| holds(state))).await;
    }

    fn answer(&self, seen: &ReceivedRequest) -> Option<Reply> {
        let params = &seen.body["params"];
        let id = params["taskId"].as_str().unwrap_or_default();
        let is_known = self.with(|state| state.tasks.contains_key(id));
        let result = match seen.method() {
            "server/discover" => discovered(json!({"tools": {}, "extensions": {TASKS: {}}})),
            "tools/list" => tools(),
            "tools/call" => return Some(self.call(seen, params)),
            "subscriptions/listen" => return Some(self.listen(seen, &params["notifications"])),
            "tasks/get" | "tasks/update" | "tasks/cancel" if !is_known => {
                return Some(seen.refuse(200, -32602, &format!("no task {id}")));
            }
            "tasks/get" => {
                let mut task = self.with(|state| state.tasks[id].clone());
                task["resultType"] = json!("complete");
                task
            }
            "tasks/update" => {
                self.update(id, &params["inputResponses"]);
                json!({"resultType": "complete"})
            }
            "tasks/cancel" => {
                if !self.with(|state| state.is_stubborn) {
                    self.set(id, "cancelled", json!({}));
                }
                json!({"resultType": "complete"})
            }
            _ => return None,
        };
        Some(seen.answer(&result))
    }

    fn call(&self, seen: &ReceivedRequest, params: &Value) -> Reply {
        let wants_tasks = params["_meta"][CAPABILITIES]["extensions"][TASKS].is_object();
        match params["name"].as_str().unwrap() {
            "job" if wants_tasks => seen.answer(&self.make()),
            "first" if params["inputResponses"].is_null() => seen.answer(&json!({
                "resultType": "input_required", "requestState": "s",
                "inputRequests": {"who": {"method": "elicitation/create", "params": {"message": "Who?"}}},
            })),
            "first" => seen.answer(&self.make()),
            "broken" => seen.answer(&json!({"content": [], "isError": true})),
            "refused" => seen.refuse(200, -32602, "not like this"),
            _ => seen.answer(&done()),
        }
    }

    fn make(&self) -> Value {
        self.with(|state| {
            let id = format!("work-{}", state.tasks.len() + 1);
            let mut task = json!({
                "taskId": id, "status": "working", "createdAt": "2026-11-20T20:00:00Z",
                "lastUpdatedAt": "2026-11-20T20:00:00Z", "ttlMs": 1.50, "pollIntervalMs": 20, "x": 1.0,
            });
            state.tasks.insert(id, task.clone());
            task["resultType"] = json!("task");
            task
        })
    }

    /// Takes answers; a task that asks nothing any more is completed.
    fn update(&self, id: &str, responses: &Value) {
        let is_last = self.with(|state| {
            let task = state.tasks.get_mut(id).unwrap();
            for (key, response) in responses.as_object().unwrap() {
                let requested = task["inputRequests"].as_object_mut().unwrap();
                assert!(requested.remove(key).is_some(), "{key} was not asked");
                task["said"][key] = response.clone();
            }
            task["inputRequests"] == json!({})
        });
        if is_last {
            let reported = self.with(|state| state.tasks[id]["said"].clone());
            let result = json!({"content": [], "said": reported});
            self.set(id, "completed", json!({"result": result}));
        }
    }

    fn listen(&self, seen: &ReceivedRequest, filter: &Value) -> Reply {
        let (sender, reply) = Reply::subscription(seen.id(), filter);
        let stream = (seen.id().clone(), filter["taskIds"].clone(), sender);
        self.with(|state| state.streams.push(stream));
        reply
    }
}

/// A server without tasks yet, and a gateway in front of it.
async fn started() -> (Works, Harness) {
    let works = Works::default();
    let harness = works.harness().await;
    (works, harness)
}

fn tools() -> Value {
    let mut list = tool_list(&["job", "first", "quick", "broken", "refused"]);
    list["tools"][3]["execution"] = json!({"taskSupport": "forbidden", "x": 1.0});
    list["tools"][4]["execution"] = json!({"x": 1.0});
    list
}

fn done() -> Value {
    json!({"content": [{"type": "text", "text": "{\"a\":1}"}], "structuredContent": {"a": 1}})
}

/// A legacy client, on either transport. It waits for the result of a task on a connection of its own.
enum Client {
    Http(Box<LegacyClient>, Vec<RawHttp>),
    Stdio(Box<StdioPipe>),
}

impl Client {
    async fn each(harness: &Harness, capabilities: &Value) -> [Self; 2] {
        let legacy = LegacyClient::open(harness, "2025-11-25", capabilities).await;
        let pipe = legacy_pipe(&harness.gateway, "2025-11-25", capabilities).await;
        [
            Self::Http(Box::new(legacy), Vec::new()),
            Self::Stdio(Box::new(pipe)),
        ]
    }

    /// The answer to a request that asks nothing back.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        match self {
            Self::Http(legacy, _) => legacy.answer(method, params).await,
            Self::Stdio(pipe) => {
                let message = request(json!(1), method, params);
                pipe.send(message.to_string()).await;
                pipe.receive_until(|received| received["id"] == 1).await
            }
        }
    }

    /// Has a task made; its id.
    async fn make(&mut self, name: &str) -> String {
        let created = self.ask("tools/call", as_task(name)).await;
        let id = created["result"]["task"]["taskId"].as_str();
        id.unwrap_or_else(|| panic!("no task: {created}"))
            .to_owned()
    }

    /// Has a task made; its id, and that of the server.
    async fn make_at(&mut self, works: &Works) -> (String, String) {
        let id = self.make("job").await;
        (id, works.newest())
    }

    /// Begins to wait for the result of a task.
    async fn begin(&mut self, harness: &Harness, id: u64, task: &str) {
        let message = request(json!(id), "tasks/result", json!({"taskId": task}));
        match self {
            Self::Http(legacy, waiting) => {
                let mut http = harness.connect().await;
                http.send(&legacy.post(&message).bytes()).await;
                waiting.push(http);
            }
            Self::Stdio(pipe) => pipe.send(message.to_string()).await,
        }
    }

    /// The first thing that comes to whoever waits: a question, or the answer.
    async fn receive(&mut self, at: usize) -> Value {
        match self {
            Self::Http(_, waiting) => {
                let head = waiting[at].head().await;
                if head.header("content-type") == Some("text/event-stream") {
                    return waiting[at].event().await.unwrap();
                }
                let length = head.header("content-length").unwrap().parse().unwrap();
                serde_json::from_slice(&waiting[at].exactly(length).await).unwrap()
            }
            Self::Stdio(pipe) => past_status(pipe).await,
        }
    }

    /// What comes after a question.
    async fn receive_more(&mut self, at: usize) -> Value {
        match self {
            Self::Http(_, waiting) => waiting[at].event().await.unwrap(),
            Self::Stdio(pipe) => past_status(pipe).await,
        }
    }

    async fn send(&mut self, message: &Value) {
        match self {
            Self::Http(legacy, _) => {
                let post = legacy.post(message);
                assert_eq!(legacy.http.ask(&post).await.status, 202);
            }
            Self::Stdio(pipe) => pipe.send(message.to_string()).await,
        }
    }

    async fn reply(&mut self, question: &Value, result: &Value) {
        self.send(&response(question, result.clone())).await;
    }
}

async fn past_status(pipe: &mut StdioPipe) -> Value {
    let is_other = |it: &Value| it["method"] != "notifications/tasks/status";
    pipe.receive_until(is_other).await
}

fn as_task(name: &str) -> Value {
    let mut call = tool(name);
    call["task"] = json!({"ttl": 60_000});
    call
}

fn asks() -> Value {
    json!({"elicitation": {}})
}

fn accepts(name: &str) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

/// > If `execution.taskSupport` is not present or `"forbidden"`, clients MUST NOT attempt to invoke the tool as a
/// > task. (MCP 2025-11-25, basic/utilities/tasks)
#[tokio::test]
async fn a_legacy_client_is_told_that_it_may_wish_for_tasks() {
    let harness = Works::default().harness().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let expected = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
    client.initialized.has("/capabilities/tasks", expected);
    let listed = client.answer("tools/list", json!({})).await;
    let all = listed["result"]["tools"].as_array().unwrap().iter();
    let support: Value = all.map(|tool| tool["execution"].clone()).collect();
    let optional = json!({"taskSupport": "optional"});
    let expected = json!([
        optional, optional, optional, {"taskSupport": "forbidden", "x": 1.0}, {"x": 1.0, "taskSupport": "optional"},
    ]);
    assert_eq!(support, expected);
    let modern = harness.ask_modern("tools/list", json!({})).await;
    assert_eq!(modern["result"]["tools"], tools()["tools"]);
    // A client that declares the extension has tasks by that.
    let knows = json!({"extensions": {TASKS: {}}});
    let client = LegacyClient::open(&harness, "2025-11-25", &knows).await;
    client.initialized.has("/capabilities/tasks", Value::Null);
}

/// SV-28, CN-19: from the wish to the result, which is told as the call's would have been.
#[tokio::test]
async fn a_task_of_the_extension_is_one_of_the_core_form() {
    let (works, harness) = started().await;
    for mut client in Client::each(&harness, &features(&["agent", "format=json"])).await {
        let plain = client.ask("tools/call", tool("job")).await;
        plain.has("/result/content", json!([]));
        let call = under("compact", as_task("job"));
        let made = client.ask("tools/call", call).await;
        let task = made["result"]["task"].clone();
        let id = task["taskId"].as_str().unwrap();
        let own = works.newest();
        assert_ne!(id, own);
        let expected = json!({
            "taskId": id, "status": "working", "createdAt": "2026-11-20T20:00:00Z",
            "lastUpdatedAt": "2026-11-20T20:00:00Z", "ttl": 1.50, "pollInterval": 20, "x": 1.0,
        });
        made.has("/result", json!({"task": expected}));
        let calls = harness.peer.of("tools/call");
        let declared = |seen: &ReceivedRequest| {
            seen.body["params"]["_meta"][CAPABILITIES]["extensions"].clone()
        };
        let [plain, wished] = &calls[calls.len() - 2..] else {
            panic!("two calls");
        };
        assert_eq!(declared(plain), Value::Null);
        assert_eq!(declared(wished), json!({TASKS: {}}));
        wished.body.has("/params/task", Value::Null);

        let got = client.ask("tasks/get", json!({"taskId": id})).await;
        assert_eq!(got["result"], task);
        client.begin(&harness, 7, id).await;
        let asked = harness.peer.of("tasks/get").len();
        harness.peer.wait_for("tasks/get", asked + 2).await;
        works.set(&own, "completed", json!({"result": done()}));
        let answer = client.receive(0).await;
        answer.has("/id", 7);
        let result = &answer["result"];
        result.has("/structuredContent", json!({"a": 1}));
        assert_eq!(result["content"], json!([]), "as agents are told");
        assert_eq!(result["_meta"][RELATED], json!({"taskId": id}), "{result}");
        let got = client.ask("tasks/get", json!({"taskId": id})).await;
        let mut finished = task.clone();
        finished["status"] = json!("completed");
        got.has("/result", finished);
    }
}

/// > any elicitation that a task-augmented tool call depends on MUST share the same related task ID
/// > (MCP 2025-11-25, basic/utilities/tasks)
#[tokio::test]
async fn what_a_task_asks_is_asked_while_its_result_is_waited_for() {
    let (works, harness) = started().await;
    for mut client in Client::each(&harness, &asks()).await {
        let (id, own) = client.make_at(&works).await;
        works.ask(&own, &["who", "where"]);
        let got = client.ask("tasks/get", json!({"taskId": id})).await;
        got.has("/result/status", "input_required");
        got.has("/result/inputRequests", Value::Null);
        client.begin(&harness, 7, &id).await;
        let first = client.receive(0).await;
        let second = client.receive_more(0).await;
        let params =
            |message| json!({"message": message, "x": 1.0, "_meta": {RELATED: {"taskId": id}}});
        for (question, message) in [(&first, "who"), (&second, "where")] {
            question.has("/method", "elicitation/create");
            question.has("/params", params(message));
        }
        let mut told = accepts("Turing");
        told["_meta"] = json!({RELATED: {"taskId": id}});
        client.reply(&second, &told).await;
        client.reply(&first, &accepts("Ada")).await;
        let answer = client.receive_more(0).await;
        told["_meta"] = json!({RELATED: {"taskId": own}});
        let said = json!({"who": accepts("Ada"), "where": told});
        answer.has("/result/said", said);
        for update in harness.peer.of("tasks/update") {
            let expected = update.body["params"]["taskId"].as_str();
            assert_eq!(update.header("mcp-name"), expected);
        }
    }
}

/// Of two that wait one asks; when that one leaves the other does.
#[tokio::test]
async fn two_that_wait_for_one_task_ask_once() {
    let (works, harness) = started().await;
    for mut client in Client::each(&harness, &asks()).await {
        let (id, own) = client.make_at(&works).await;
        client.begin(&harness, 7, &id).await;
        works.ask(&own, &["who"]);
        let question = client.receive(0).await;
        client.begin(&harness, 8, &id).await;
        let asked = harness.peer.of("tasks/get").len();
        harness.peer.wait_for("tasks/get", asked + 6).await;
        let cancelled = notification("notifications/cancelled", json!({"requestId": 7}));
        client.send(&cancelled).await;
        let again = client.receive(1).await;
        assert_eq!(again["params"], question["params"]);
        assert_ne!(again["id"], question["id"]);
        client.reply(&again, &accepts("Ada")).await;
        let answer = client.receive_more(1).await;
        answer.has("/id", 8);
        answer.has("/result/said", json!({"who": accepts("Ada")}));
        client.begin(&harness, 9, &id).await;
        let at = if let Client::Http(..) = client { 2 } else { 0 };
        let answer = client.receive(at).await;
        answer.has("/result/said", json!({"who": accepts("Ada")}));
    }
}

/// What a client cannot be asked, refuses, or does not want to be asked any more.
#[tokio::test]
async fn a_question_that_nobody_answers_ends_the_waiting() {
    let (works, harness) = started().await;
    for mut client in Client::each(&harness, &json!({})).await {
        let (id, own) = client.make_at(&works).await;
        works.ask(&own, &["who"]);
        client.begin(&harness, 7, &id).await;
        let answer = client.receive(0).await;
        answer.fails(-32603, "server `peer` asks for `elicitation/create`");
    }
    for mut client in Client::each(&harness, &asks()).await {
        let (id, own) = client.make_at(&works).await;
        works.ask(&own, &["who"]);
        client.begin(&harness, 7, &id).await;
        let question = client.receive(0).await;
        let refusal =
            json!({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -1, "message": "no"}});
        client.send(&refusal).await;
        let answer = client.receive_more(0).await;
        answer.fails(-32603, "the client refused it");
        // It may be asked once more, and what is settled otherwise is not asked any more.
        client.begin(&harness, 8, &id).await;
        let at = if let Client::Http(..) = client { 1 } else { 0 };
        let question = client.receive(at).await;
        works.set(&own, "cancelled", json!({}));
        let withdrawn = client.receive_more(at).await;
        withdrawn.has("/method", "notifications/cancelled");
        assert_eq!(withdrawn["params"]["requestId"], question["id"]);
        let answer = client.receive_more(at).await;
        answer.fails(-32603, "the task was cancelled");
    }
}

/// > Receivers that accept a task-augmented request MUST return a `CreateTaskResult` as the response.
/// > (MCP 2025-11-25, basic/utilities/tasks)
#[tokio::test]
async fn a_result_that_comes_at_once_is_a_task_that_is_done() {
    let harness = Works::default().harness().await;
    for mut client in Client::each(&harness, &features(&["agent", "format=json"])).await {
        for (name, status) in [("quick", "completed"), ("broken", "failed")] {
            let made = client.ask("tools/call", as_task(name)).await;
            let task = &made["result"]["task"];
            assert_eq!(task["status"], "working", "{made}");
            task.has("/ttl", 60_000);
            let id = task["taskId"].as_str().unwrap().to_owned();
            let about = |id: &str| json!({"taskId": id});
            let got = client.ask("tasks/get", about(&id)).await;
            got.has("/result/status", status);
            let result = client.ask("tasks/result", about(&id)).await;
            let result = &result["result"];
            assert_eq!(result["content"], json!([]), "as agents are told");
            assert_eq!(result["_meta"][RELATED], json!({"taskId": id}));
            let is_error = (name == "broken").then_some(true);
            result.has("/isError", json!(is_error));
            let cancelled = client.ask("tasks/cancel", about(&id)).await;
            cancelled.fails(-32602, "Cannot cancel task");
            let listed = client.ask("tasks/list", json!({})).await;
            let tasks = listed["result"]["tasks"].as_array().unwrap();
            assert!(tasks.contains(&got["result"]), "{listed}");
        }
        let refused = client.ask("tools/call", as_task("refused")).await;
        refused.fails(-32602, "not like this");
    }
    let mut other = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let listed = other.answer("tasks/list", json!({})).await;
    assert_eq!(listed["result"], json!({"tasks": []}), "the client's own");
    assert_eq!(harness.gateway.status().completed_tasks, 4);
}

/// The call asks on its own stream before it becomes a task.
#[tokio::test]
async fn a_call_may_ask_before_it_is_a_task() {
    let harness = Works::default().harness().await;
    let mut client = legacy_pipe(&harness.gateway, "2025-11-25", &asks()).await;
    let call = request(json!(1), "tools/call", as_task("first"));
    let question = client.ask(&call).await;
    question.has("/params/message", "Who?");
    let made = client.ask(&response(&question, accepts("Ada"))).await;
    made.has("/result/task/status", "working");
    let second = &harness.peer.of("tools/call")[1];
    let found = &second.body["params"]["_meta"][CAPABILITIES]["extensions"];
    assert_eq!(*found, json!({TASKS: {}}));
}

#[tokio::test]
async fn how_a_task_ends_is_told_to_whoever_waits() {
    let (works, harness) = started().await;
    let error = json!({"code": -32042, "message": "work-9 is closed", "data": {"a": 1.0}});
    for mut client in Client::each(&harness, &json!({})).await {
        let ends: [(&str, Value, i64, &str); 4] = [
            (
                "failed",
                json!({"error": error}),
                -32042,
                "work-9 is closed",
            ),
            ("failed", json!({}), -32603, "without an error"),
            ("completed", json!({}), -32603, "without a result"),
            ("cancelled", json!({}), -32603, "the task was cancelled"),
        ];
        for (at, (status, more, code, words)) in ends.into_iter().enumerate() {
            let (id, own) = client.make_at(&works).await;
            works.set(&own, status, more);
            client.begin(&harness, 7, &id).await;
            let at = if let Client::Http(..) = client { at } else { 0 };
            client.receive(at).await.fails(code, words);
        }
        // A tool that fails is `completed` to the extension alone.
        let (id, own) = client.make_at(&works).await;
        let failed = json!({"content": [], "isError": true});
        works.set(&own, "completed", json!({"result": failed}));
        let got = client.ask("tasks/get", json!({"taskId": id})).await;
        got.has("/result/status", "failed");
    }
}

/// > Receivers MUST reject cancellation requests for tasks already in a terminal status […] with error code `-32602`
/// > (MCP 2025-11-25, basic/utilities/tasks)
#[tokio::test]
async fn a_task_is_cancelled_before_that_is_said() {
    let (works, harness) = started().await;
    for mut client in Client::each(&harness, &json!({})).await {
        let id = client.make("job").await;
        let cancelled = client.ask("tasks/cancel", json!({"taskId": id})).await;
        cancelled.has("/result/status", "cancelled");
        cancelled.has("/result/taskId", id.as_str());
        let again = client.ask("tasks/cancel", json!({"taskId": id})).await;
        again.fails(-32602, "it is `cancelled` already");
    }
    assert_eq!(harness.peer.of("tasks/cancel").len(), 2);
    works.with(|state| state.is_stubborn = true);
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let made = client.answer("tools/call", as_task("job")).await;
    let id = &made["result"]["task"]["taskId"];
    let answer = client.answer("tasks/cancel", json!({"taskId": id})).await;
    // What the server says.
    answer.has("/result/status", "working");
}

#[tokio::test]
async fn a_list_has_the_tasks_of_the_client_page_by_page() {
    let (works, harness) = started().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let mut ids = Vec::new();
    for _ in 0..52 {
        let made = client.answer("tools/call", as_task("job")).await;
        ids.push(made["result"]["task"]["taskId"].clone());
    }
    // One that the server has forgotten is left out.
    works.with(|state| state.tasks.remove("work-2"));
    let gone = ids.remove(1);
    let first = client.answer("tasks/list", json!({})).await;
    let first = &first["result"];
    let next = &first["nextCursor"];
    assert!(next.is_string(), "{first}");
    let second = client.answer("tasks/list", json!({"cursor": next})).await;
    let second = &second["result"];
    second.has("/nextCursor", Value::Null);
    let pages = [first, second].map(|page| page["tasks"].as_array().unwrap());
    let listed: Vec<_> = pages.into_iter().flatten().collect();
    for task in &listed {
        task.has("/ttl", 1.5);
        task.has("/ttlMs", Value::Null);
    }
    let listed: Vec<_> = listed.iter().map(|task| task["taskId"].clone()).collect();
    assert_eq!(listed, ids);
    for cursor in [json!("x"), json!(7)] {
        let answer = client.ask("tasks/list", json!({"cursor": cursor})).await;
        answer.json().fails(-32602, "Invalid cursor");
    }
    let mut other = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let listed = other.answer("tasks/list", json!({})).await;
    listed.has("/result/tasks", json!([]));
    for id in [gone, json!("work-1"), json!("vary:0")] {
        for method in ["tasks/get", "tasks/cancel", "tasks/result"] {
            let answer = client.answer(method, json!({"taskId": id})).await;
            answer.has("/error/code", -32602);
            assert!(!answer.to_string().contains("work-2"), "{answer}");
        }
    }
    let update = client.ask("tasks/update", json!({"taskId": ids[0]})).await;
    update.json().has("/error/code", -32601);
}

/// A server without sessions is asked to tell; nothing more is asked of a task that stays as it is.
#[tokio::test]
async fn a_session_hears_how_its_tasks_stand_in_the_core_form() {
    let (works, harness) = started().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let mut stream = stream_of(&harness, &client).await;
    let made = client.answer("tools/call", as_task("job")).await;
    let task = &made["result"]["task"];
    works.tells_of(&["work-1"]).await;
    for status in ["input_required", "completed"] {
        works.set(
            "work-1",
            status,
            json!({"inputRequests": {}, "result": done()}),
        );
        let told = soon(stream.event()).await.unwrap();
        let mut expected = task.clone();
        expected["status"] = json!(status);
        told.has("/method", "notifications/tasks/status");
        told.has("/params", expected);
    }
    works.tells_of(&[]).await;
}

#[tokio::test]
async fn a_server_that_is_gone_is_named() {
    let (_works, mut harness) = started().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let made = client.answer("tools/call", as_task("job")).await;
    let id = &made["result"]["task"]["taskId"];
    let other = ScriptedServer::start(|_| None).await;
    std::mem::replace(&mut harness.peer, other).stop().await;
    for method in ["tasks/result", "tasks/cancel", "tasks/get", "tasks/list"] {
        let answer = client.answer(method, json!({"taskId": id})).await;
        answer.fails(-32603, "server `peer`");
    }
}

/// A client that declares the extension has tasks by that, whatever it wishes for.
#[tokio::test]
async fn the_extension_goes_before_the_wish() {
    let harness = Works::default().harness().await;
    let knows = json!({"extensions": {TASKS: {}}});
    for way in [ClientKind::HttpLegacy, ClientKind::StdioLegacy] {
        let made = ask_as(&harness, way, &knows, "tools/call", as_task("job")).await;
        made.has("/result/resultType", "task");
        made.has("/result/ttlMs", 1.5);
    }
}

/// Before a server that makes tasks by neither form a wish is no wish.
#[tokio::test]
async fn nobody_is_offered_tasks_where_there_are_none() {
    let harness = Harness::scripted(|seen| match seen.method() {
        "tools/list" => Some(seen.answer(&tools())),
        "tools/call" => Some(seen.answer(&done())),
        "server/discover" => Some(seen.answer(&discovered(json!({"tools": {}})))),
        _ => None,
    })
    .await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    client.initialized.has("/capabilities/tasks", Value::Null);
    let answer = client.answer("tools/call", as_task("quick")).await;
    answer.has("/result", done());
    let answer = client.answer("tasks/list", json!({})).await;
    answer.has("/error/code", -32601);
}
