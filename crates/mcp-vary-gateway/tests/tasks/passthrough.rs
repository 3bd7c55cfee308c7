//! Tasks, extensions and traces that the gateway does not translate: they arrive as they were sent.

mod extensions;

use crate::support::*;

const TASKS: &str = "io.modelcontextprotocol/tasks";
const OTHER: &str = "com.example/ledger";
const NEGOTIATION: &str = "io.modelcontextprotocol/content-negotiation";
const RELATED: &str = "io.modelcontextprotocol/related-task";

fn capabilities(era: Era) -> Value {
    let mut all = json!({"tools": {}, "extensions": {OTHER: {"level": 1.5}}});
    match era {
        Era::Legacy => {
            all["tasks"] = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
        }
        Era::Modern => all["extensions"][TASKS] = json!({}),
    }
    all
}

/// A server whose tool `job` becomes a task where the client can and wants it.
fn jobs(name: &'static str, era: Era) -> Script {
    let task = move |status: &str, params: &Value| json!({"taskId": format!("{name}-7"), "status": status, "ttl": 1.50, "said": params});
    let done = json!({
        "content": [{"type": "text", "text": "{\"a\":1}"}], "structuredContent": {"a": 1},
        "_meta": {RELATED: {"taskId": format!("{name}-7")}},
    });
    let script = Script::new(era, name)
        .declares(capabilities(era))
        .lists(json!({"tools": [
            {"name": "job", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}},
        ]}))
        .on_call(|params| json!({"content": [], "said": params}))
        .on("ledger/balance", |params| json!({"balance": 1.10, "said": params}));
    let script = match era {
        Era::Legacy => script
            .may_reply("tools/call", move |seen| {
                let is_task = seen.body["params"]["task"].is_object();
                is_task.then(|| begun(name, seen))
            })
            .on("tasks/get", move |params| task("working", params))
            .on("tasks/cancel", move |params| task("working", params))
            .result("tasks/result", done)
            .on("tasks/list", move |params| match params["cursor"] {
                Value::Null => {
                    json!({"tasks": [{"taskId": "of-another", "status": "working"}], "nextCursor": "2"})
                }
                _ => json!({"tasks": [task("working", params)]}),
            }),
        Era::Modern => script
            .may_reply("tools/call", move |seen| {
                let params = &seen.body["params"];
                let mut created = task("working", params);
                created["resultType"] = json!("task");
                wants_tasks(params).then(|| seen.answer(&created))
            })
            .on("tasks/get", move |params| {
                let mut completed = task("completed", params);
                completed["result"] = done.clone();
                completed
            })
            .results(json!({
                "tasks/cancel": {"resultType": "complete"},
                "tasks/update": {"resultType": "complete"},
            })),
    };
    let refuse_unknown = move |seen: &ReceivedRequest| {
        let id = seen.body["params"]["taskId"].as_str().unwrap_or_default();
        let is_known = id == format!("{name}-7");
        (!is_known).then(|| seen.refuse(200, -32602, &format!("no task {id}")))
    };
    script
        .may_reply("tasks/get", refuse_unknown)
        .may_reply("tasks/cancel", refuse_unknown)
        .may_reply("tasks/update", refuse_unknown)
}

/// Says first how tasks of two clients stand, one of which is made just now.
fn begun(name: &str, seen: &ReceivedRequest) -> Reply {
    let status = |id: &str| {
        let params = json!({"taskId": id, "status": "working"});
        event(&json!({"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": params}))
    };
    let created =
        json!({"task": {"taskId": format!("{name}-7"), "status": "working", "ttl": 1.50}});
    let events = [
        status("of-another"),
        status(&format!("{name}-7")),
        event(&seen.message(&created)),
    ];
    Reply::events(events.concat())
}

fn wants_tasks(params: &Value) -> bool {
    let key = "io.modelcontextprotocol/clientCapabilities";
    params["_meta"][key]["extensions"][TASKS].is_object()
}

/// A gateway before two servers of one era.
async fn two(era: Era) -> (Harness, ScriptedServer) {
    let (one, other) = (
        jobs("one", era).start().await,
        jobs("two", era).start().await,
    );
    let config = before(&[("one", &one), ("two", &other)]);
    (Harness::behind(one, config).await, other)
}

/// The params of a call that wishes for a task.
fn as_task(name: &str) -> Value {
    json!({"name": name, "arguments": {}, "task": {}})
}

fn knows_tasks() -> Value {
    json!({"extensions": {TASKS: {}}})
}

#[track_caller]
fn is_not_found(answer: &Value) {
    answer.has("/error/code", -32602);
}

/// SV-28: a task is asked for where it was made, by an id that is the client's alone.
#[tokio::test]
async fn a_task_of_2025_is_found_by_the_id_that_its_client_got() {
    let (harness, _two) = two(Era::Legacy).await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let expected = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
    client.initialized.has("/capabilities/tasks", expected);
    let mut call = under("compact", tool("two_job"));
    call["task"] = json!({"ttl": 60_000});
    let made = client.ask("tools/call", call).await;
    let made = made.answer();
    let task = &made["result"]["task"];
    let id = task["taskId"].as_str().unwrap();
    assert!(id != "two-7" && task["ttl"] == 1.50, "{made}");

    for method in ["tasks/get", "tasks/cancel"] {
        let answer = client.answer(method, json!({"taskId": id})).await;
        assert_eq!(answer["result"]["taskId"], id, "{method}");
        assert_eq!(answer["result"]["said"]["taskId"], "two-7", "{method}");
    }
    let result = client.answer("tasks/result", json!({"taskId": id})).await;
    assert_eq!(result["result"]["_meta"][RELATED]["taskId"], id);
    let unknown = client.answer("tasks/get", json!({"taskId": "two-7"})).await;
    is_not_found(&unknown);
    let update = client.answer("tasks/update", json!({"taskId": id})).await;
    update.has("/error/code", -32601);

    let listed = client.answer("tasks/list", json!({})).await;
    listed.has("/result/tasks/0/taskId", id);
    // No other client's.
    listed.has("/result/tasks/1", Value::Null);
    let mut other = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let listed = other.answer("tasks/list", json!({})).await;
    listed.has("/result/tasks", json!([]));
}

/// A client that can be asked something has its calls made on a connection of its own, and so its tasks.
#[tokio::test]
async fn a_client_with_a_connection_of_its_own_finds_its_tasks_there() {
    let script = jobs("one", Era::Legacy)
        .in_sessions(|seen| {
            let is_asked = seen.body["params"]["capabilities"]["roots"].is_object();
            if is_asked { "own" } else { "shared" }.to_owned()
        })
        .may_reply("tasks/list", |seen| {
            let is_shared = seen.header("mcp-session-id") != Some("own");
            is_shared.then(|| seen.answer(&json!({"tasks": []})))
        });
    let harness = Harness::of_server(script).await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({"roots": {}})).await;
    let call = as_task("job");
    let made = client.ask("tools/call", call).await.answer();
    let listed = client.answer("tasks/list", json!({})).await;
    let listed = &listed["result"]["tasks"];
    assert_eq!(listed[0]["taskId"], made["result"]["task"]["taskId"]);
}

/// A status is told where the task is known to be the client's: not of others, and not before it has the id.
#[tokio::test]
async fn the_status_of_a_task_reaches_nobody_else() {
    let (harness, _two) = two(Era::Legacy).await;
    let call = as_task("one_job");
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    for told in [0, 1] {
        let text = client.ask("tools/call", call.clone()).await.text();
        let found = text.matches("notifications/tasks/status").count();
        assert_eq!(found, told, "{text}");
        let is_foreign = text.contains("of-another") || text.contains("one-7");
        assert!(!is_foreign, "{text}");
    }
}

/// SEP-2663, SV-28: the server decides; only clients that declare the extension get a task, or may ask for one.
#[tokio::test]
async fn a_task_of_the_extension_goes_back_to_its_server() {
    let (harness, two) = two(Era::Modern).await;
    for way in [ClientKind::HttpModern, ClientKind::StdioModern] {
        let knows_tasks = knows_tasks();
        let ask = |method, params| way.ask(&harness, &knows_tasks, method, params);
        let made = ask("tools/call", tool("two_job")).await;
        let made = &made["result"];
        made.has("/resultType", "task");
        made.has("/ttl", 1.5);
        let id = made["taskId"].as_str().unwrap().to_owned();
        assert_ne!(id, "two-7");

        let got = ask("tasks/get", json!({"taskId": id})).await;
        got.has("/result/taskId", id.as_str());
        got.has("/result/resultType", "complete");
        got.has("/result/result/structuredContent", json!({"a": 1}));
        for method in ["tasks/update", "tasks/cancel"] {
            let arguments = json!({"taskId": id, "inputResponses": {"a": {"b": 1.0}}});
            let answer = ask(method, arguments).await;
            let expected = json!({"resultType": "complete"});
            assert_eq!(answer["result"], expected, "{method}");
        }
        is_not_found(&ask("tasks/get", json!({"taskId": "gone"})).await);
        for method in ["tasks/result", "tasks/list"] {
            let answer = ask(method, json!({"taskId": id})).await;
            assert_eq!(answer["error"]["code"], -32601, "{method}");
        }
        let undeclared = harness.ask(way, "tasks/get", json!({"taskId": id})).await;
        undeclared.has("/error/code", -32021);
        let missing = &undeclared["error"]["data"]["requiredCapabilities"]["extensions"];
        assert_eq!(missing, &json!({TASKS: {}}));
        let plain = harness.ask(way, "tools/call", tool("two_job")).await;
        plain.has("/result/content", json!([]));
    }
    for update in two.of("tasks/update") {
        let expected = json!({"a": {"b": 1.0}});
        update.body.has("/params/inputResponses", expected);
    }
    for asked in two.of("tasks/get") {
        assert_eq!(asked.header("mcp-name"), Some("two-7"));
    }
}

/// FastMCP 4 sends no `Mcp-Name` with these.
#[tokio::test]
async fn a_task_is_found_without_the_header_that_repeats_its_id() {
    let (harness, _two) = two(Era::Modern).await;
    let knows_tasks = knows_tasks();
    let mut http = harness.connect().await;
    let made = http
        .ask_modern_as("tools/call", tool("two_job"), &knows_tasks)
        .await
        .json();
    let id = &made["result"]["taskId"];
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({"taskId": id, "inputResponses": {}});
        let post = HttpRequest::modern(&modern(json!(2), method, params, &knows_tasks));
        let answer = http.ask(&post.clone().without("Mcp-Name")).await;
        assert_eq!(answer.status, 200, "{method}");
        assert!(answer.json()["result"].is_object(), "{}", answer.text());
        let answer = http.ask(&post.clone().with("Mcp-Name", "another")).await;
        assert_eq!(answer.refusal(), (400, -32020, json!(2)), "{method}");
        let answer = http.ask(&post.without("Mcp-Method")).await;
        assert_eq!(answer.refusal(), (400, -32020, json!(2)), "{method}");
    }
}

/// A server that misses what the client has not declared is right; one that misses what it has, and the gateway does
/// not carry, refuses the gateway.
#[tokio::test]
async fn a_capability_is_missing_that_the_client_has_not_declared_with_all_that_is_asked_of_it() {
    let script = jobs("one", Era::Modern).reply("tools/call", |seen| {
        let data = json!({"requiredCapabilities": seen.body["params"]["arguments"]});
        let error = json!({"code": -32021, "message": "no", "data": data});
        let message = json!({"jsonrpc": "2.0", "id": seen.id(), "error": error});
        Reply::json(400, &message)
    });
    let harness = Harness::of_server(script).await;
    let extension = |id: &str| json!({"extensions": {id: {}}});
    let sampling = |value: Value| json!({"sampling": value});
    let (plain, with_tools) = (sampling(json!({})), sampling(json!({"tools": {}})));
    for (required, declared, code) in [
        (extension(OTHER), extension(NEGOTIATION), -32021),
        (extension(OTHER), extension(OTHER), -32603),
        (with_tools.clone(), plain.clone(), -32021),
        (plain, with_tools, -32603),
    ] {
        let call = json!({"name": "job", "arguments": required});
        let answer = ask_modern_as(&harness, &declared, "tools/call", call).await;
        assert_eq!(answer["error"]["code"], code, "{required}: {answer}");
    }
}

/// CN-19, SV-28: what a task has come to is told as the call would have been, in the variant that it was made under.
#[tokio::test]
async fn the_result_of_a_task_is_shaped_as_that_of_a_call() {
    let (harness, _two) = two(Era::Modern).await;
    let mut capabilities = features(&["agent", "format=json"]);
    capabilities["extensions"][TASKS] = json!({});
    let ask = |method, params| ClientKind::HttpModern.ask(&harness, &capabilities, method, params);
    let made = ask("tools/call", under("compact", tool("one_job"))).await;
    let got = ask("tasks/get", json!({"taskId": made["result"]["taskId"]})).await;
    let result = &got["result"]["result"];
    assert_eq!(result["content"], json!([]), "{got}");
    assert_eq!(result["_meta"]["vary/applied"]["variant"], "compact");

    let (harness, _two) = two(Era::Legacy).await;
    let mut client =
        LegacyClient::open(&harness, "2025-11-25", &features(&["agent", "format=json"])).await;
    let call = as_task("one_job");
    let made = client.ask("tools/call", call).await.answer();
    let id = &made["result"]["task"]["taskId"];
    let result = client.answer("tasks/result", json!({"taskId": id})).await;
    result.has("/result/content", json!([]));
}

/// A modern client that wishes for a task as 2025-11-25 does gets an ordinary answer.
#[tokio::test]
async fn a_modern_client_has_no_wish() {
    let mut wished = tool("one_job");
    wished["task"] = json!({});
    let (harness, _two) = two(Era::Legacy).await;
    let ask = |method, params| {
        let (harness, knows_tasks) = (&harness, knows_tasks());
        async move { ask_modern_as(harness, &knows_tasks, method, params).await }
    };
    let answer = ask("tools/call", wished).await;
    assert!(answer["result"]["said"]["task"].is_null(), "{answer}");
    let found = ask("server/discover", json!({})).await;
    let found = &found["result"]["capabilities"]["tasks"];
    assert!(found.is_null(), "{found}");
}

/// A legacy client gets no tasks of a modern server.
///
/// > Receivers that do not declare the task capability for a request type MUST process requests of that type
/// > normally, ignoring any task-augmentation metadata if present. (MCP 2025-11-25, basic/utilities/tasks)
#[tokio::test]
async fn a_wish_of_a_legacy_client_is_ignored_before_modern_servers() {
    let (harness, _two) = two(Era::Modern).await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    client.initialized.has("/capabilities/tasks", Value::Null);
    let listed = client.answer("tools/list", json!({})).await;
    listed.has("/result/tools/0/execution/taskSupport", "optional");
    let answer = client.answer("tools/call", as_task("one_job")).await;
    answer.has("/result/content", json!([]));
    answer.has("/result/said/task", Value::Null);
    for method in ["tasks/list", "tasks/get", "tasks/result", "tasks/cancel"] {
        let answer = client.answer(method, json!({"taskId": "one-7"})).await;
        answer.has("/error/code", -32601);
    }
}

/// An extension belongs to no era: a legacy client that declares it gets the tasks of a modern server.
#[tokio::test]
async fn the_extension_crosses_the_eras() {
    let (harness, _two) = two(Era::Modern).await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &knows_tasks()).await;
    let told = &client.initialized["capabilities"]["extensions"][TASKS];
    assert_eq!(told, &json!({}));
    let made = client.answer("tools/call", tool("one_job")).await;
    let id = &made["result"]["taskId"];
    let got = client.answer("tasks/get", json!({"taskId": id})).await;
    assert_eq!(got["result"]["taskId"], *id);
    got.has("/result/status", "completed");
    let none = client.answer("tasks/result", json!({"taskId": id})).await;
    none.has("/error/code", -32601);
}

/// > traceparent, tracestate, baggage (MCP 2026-07-28, basic/index, "`_meta`")
#[tokio::test]
async fn a_trace_goes_on_behind_the_gateway() {
    let trace = json!({
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
        "tracestate": "vendor=1", "baggage": "a=b",
    });
    for era in [Era::Legacy, Era::Modern] {
        let harness = Harness::of_server(jobs("one", era)).await;
        for way in ClientKind::ALL {
            let mut call = tool("job");
            call["_meta"] = trace.clone();
            let said = harness.ask(way, "tools/call", call).await;
            let meta = &said["result"]["said"]["_meta"];
            for (key, value) in trace.as_object().unwrap() {
                assert_eq!(&meta[key], value, "{way:?} {said}");
            }
        }
    }
}

/// What a process, or a session, works on is lost with it.
#[tokio::test]
async fn a_connection_stays_open_for_as_long_as_a_task_that_was_made_there() {
    for lasts in [json!(60_000), json!(null)] {
        let opened = AtomicUsize::new(0);
        let made = json!({"task": {"taskId": "one-7", "status": "working", "ttl": lasts}});
        let script = jobs("one", Era::Legacy)
            .in_sessions(move |_| format!("s-{}", opened.fetch_add(1, Ordering::Relaxed)))
            .result("tools/call", made);
        let harness = Harness::edited(script.start().await, |config| {
            config.servers[0].limits.idle_timeout = Duration::from_millis(1)
        });
        let harness = harness.await;
        let ui = |n: usize| json!({"extensions": {"io.modelcontextprotocol/ui": {"n": n}}});
        let mut client = LegacyClient::open(&harness, "2025-11-25", &ui(1)).await;
        let call = as_task("job");
        let made = client.answer("tools/call", call).await;
        let id = &made["result"]["task"]["taskId"];
        // Another connection, which was used later, is closed.
        ask_modern_as(&harness, &ui(2), "tools/list", json!({})).await;
        soon(harness.peer.wait_for("DELETE", 1)).await;
        client.ask("tasks/get", json!({"taskId": id})).await;
        let session = |method| {
            let seen = &harness.peer.of(method)[0];
            seen.header("mcp-session-id").map(str::to_owned)
        };
        assert_eq!(session("tasks/get"), session("tools/call"));
        assert_ne!(session("DELETE"), session("tools/call"));
    }
}

/// A server whose task asks something; what it says goes on where the result was asked for.
async fn asking() -> (Harness, Slot) {
    let slot = Slot::default();
    let streams = slot.clone();
    let script = Script::legacy("asking")
        .declares(capabilities(Era::Legacy))
        .tools(&["job"])
        .in_sessions(|_| "s-1".to_owned())
        .results(json!({"tools/call": {"task": {"taskId": "t-7", "status": "working"}}}))
        .reply("tasks/result", move |seen| {
            let (sender, reply) = Reply::stream();
            *streams.lock().unwrap() = Some((seen.clone(), sender));
            reply
        });
    (Harness::of_server(script).await, slot)
}

/// The request for a result, and where it is answered.
type Slot = Arc<Mutex<Option<(ReceivedRequest, UnboundedSender<Bytes>)>>>;

fn related(id: &str) -> Value {
    json!({RELATED: {"taskId": id}, "x-vendor": 1.0})
}

/// > All requests, responses, and notifications associated with a task MUST include the
/// > `io.modelcontextprotocol/related-task` key in `_meta` (MCP 2025-11-25, basic/utilities/tasks)
#[tokio::test]
async fn what_is_said_about_a_task_names_it_as_its_hearer_does() {
    let (harness, slot) = asking().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({"elicitation": {}})).await;
    let mut call = as_task("job");
    call["_meta"]["progressToken"] = json!("p");
    let made = client.answer("tools/call", call).await;
    let id = made["result"]["task"]["taskId"].as_str().unwrap();
    let token = harness.peer.of("tools/call")[0].body["params"]["_meta"]["progressToken"].clone();

    let mut result = harness.connect().await;
    let asked = json!({"taskId": id, "_meta": related(id)});
    let asked = client.post(&request(json!(9), "tasks/result", asked));
    result.send(&asked.bytes()).await;
    harness.peer.wait_for("tasks/result", 1).await;
    let (seen, server) = slot.lock().unwrap().take().unwrap();
    let received = &seen.body["params"]["_meta"][RELATED];
    assert_eq!(*received, json!({"taskId": "t-7"}));
    let say = |message: &Value| server.send(event(message).into()).unwrap();
    let log = json!({"level": "info", "data": 1.0, "_meta": related("t-7")});
    say(&notification("notifications/message", log));
    let progress = json!({"progressToken": token, "progress": 1.0, "_meta": related("t-7")});
    say(&notification("notifications/progress", progress));
    let question =
        json!({"message": "m", "requestedSchema": {}, "task": {"ttl": 1}, "_meta": related("t-7")});
    say(&request(json!(5), "elicitation/create", question));

    assert_eq!(result.head().await.status, 200);
    let mut hear = async || soon(result.event()).await.unwrap();
    let ours = related(id);
    let log = hear().await;
    let expected = json!({"level": "info", "data": 1.0, "_meta": ours});
    log.has("/params", expected);
    // > The `progressToken` provided in the initial request remains valid throughout the task lifetime.
    let progress = hear().await;
    let expected = json!({"progressToken": "p", "progress": 1.0, "_meta": ours});
    progress.has("/params", expected);
    let question = hear().await;
    let params = &question["params"];
    // No server is told that the client makes tasks of its own.
    let expected = json!({"message": "m", "requestedSchema": {}, "_meta": ours});
    assert_eq!(*params, expected);
    let answer = json!({"action": "accept", "content": {}, "_meta": ours});
    let answer = response(&question, answer);
    assert_eq!(client.send(&answer).await.status, 202);
    let answer = message_with_id(&harness, 5).await;
    answer.body.has("/result/_meta", related("t-7"));
    say(&seen.message(&json!({"content": [], "_meta": related("t-7")})));
    assert_eq!(hear().await["result"]["_meta"], ours);
}

/// The message with this id, once the server has received it.
async fn message_with_id(harness: &Harness, id: i64) -> ReceivedRequest {
    let find = || {
        let mut seen = harness.peer.received().into_iter();
        seen.find(|seen| *seen.id() == id)
    };
    until_some(async || find()).await
}

/// What a client is told of the task `id` by each method: code and message.
async fn asked_in_vain(client: &mut LegacyClient, id: &str) -> Vec<(i64, String)> {
    let mut sent = Vec::new();
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let answer = soon(client.ask(method, json!({"taskId": id}))).await;
        let (_, code, _) = answer.refusal();
        let message = answer.json()["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned();
        sent.push((code, message));
    }
    sent
}

async fn made_in_a_session(client: &mut LegacyClient, name: &str) -> String {
    let created = client.ask("tools/call", as_task(name)).await.answer();
    let id = created["result"]["task"]["taskId"].as_str();
    id.unwrap_or_else(|| panic!("{created}")).to_owned()
}

/// SV-28: whoever asks for a task whose server is gone learns which server that was.
#[tokio::test]
async fn a_task_whose_server_is_gone_is_told_so() {
    let (harness, two) = two(Era::Legacy).await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let one_task = made_in_a_session(&mut client, "one_job").await;
    let two_task = made_in_a_session(&mut client, "two_job").await;
    // It does not answer any more.
    two.stop().await;
    for (code, message) in asked_in_vain(&mut client, &two_task).await {
        assert_eq!(code, -32603, "{message}");
        assert!(message.contains("server `two`"), "{message}");
    }
    // It is taken out of the configuration, and then there is none left with tasks at all.
    let plain = ScriptedServer::start(|_| None).await;
    for server in [("one", &harness.peer), ("three", &plain)] {
        let other = before(&[server]);
        harness.reload(other).await;
        for (code, message) in asked_in_vain(&mut client, &two_task).await {
            let gone =
                "Task not found: server `two`, which made it, is not behind this gateway any more";
            assert_eq!((code, message.as_str()), (-32602, gone));
        }
    }
    let (code, message) = asked_in_vain(&mut client, &one_task).await.remove(0);
    assert_eq!(code, -32602, "{message}");
    assert!(message.contains("server `one`"), "{message}");
}

/// A server that was started again knows nothing of its tasks, and says so in its own words.
#[tokio::test]
async fn a_task_that_its_server_lost_is_told_as_the_server_tells_it() {
    let (harness, two) = two(Era::Legacy).await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let id = made_in_a_session(&mut client, "two_job").await;
    let (code, message) = {
        let address = two.stop().await;
        let script = jobs("two", Era::Legacy);
        let again = ScriptedServer::start_at(address, move |seen| match seen.method() {
            method if method.starts_with("tasks/") => {
                let task = seen.body["params"]["taskId"].as_str().unwrap_or_default();
                Some(seen.refuse(200, -32602, &format!("no task {task} here")))
            }
            _ => script.reply_to(seen),
        });
        let _again = again.await;
        until_some(async || {
            let told = asked_in_vain(&mut client, &id).await.remove(0);
            (told.0 != -32603).then_some(told)
        })
        .await
    };
    assert_eq!((code, message), (-32602, format!("no task {id} here")));
}

/// A task that nobody could ask for is none, and the server is named.
#[tokio::test]
async fn an_id_that_is_too_long_is_refused() {
    for (length, is_made) in [(1024, true), (1025, false)] {
        let made = json!({"task": {"taskId": "x".repeat(length), "status": "working"}});
        let script = jobs("peer", Era::Legacy)
            .result("tools/call", made)
            .on("tasks/get", |params| json!({"taskId": params["taskId"]}));
        let harness = Harness::of_server(script).await;
        let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        let call = as_task("job");
        let made = client.answer("tools/call", call).await;
        if is_made {
            let id = &made["result"]["task"]["taskId"];
            let got = client.answer("tasks/get", json!({"taskId": id})).await;
            assert_eq!(&got["result"]["taskId"], id);
        } else {
            let expected = "server `peer` created a task with an id of 1025 bytes";
            made.starts("/error/message", expected);
        }
    }
}

/// > Servers MUST NOT send an `inputRequests` that the client has not declared support for
/// > (MCP 2026-07-28, basic/patterns/mrtr, "Server Requirements")
#[tokio::test]
async fn a_task_asks_only_what_its_client_declared() {
    let question =
        json!({"method": "elicitation/create", "params": {"message": "m", "requestedSchema": {}}});
    let asking = json!({
        "resultType": "complete", "taskId": "one-7", "status": "input_required",
        "inputRequests": {"a": question},
    });
    let script = jobs("one", Era::Modern).result("tasks/get", asking);
    let harness = Harness::of_server(script).await;
    let mut knows = knows_tasks();
    let made = ask_modern_as(&harness, &knows, "tools/call", tool("job")).await;
    let get = json!({"taskId": made["result"]["taskId"]});
    let refused = ask_modern_as(&harness, &knows, "tasks/get", get.clone()).await;
    let message = refused["error"]["message"].as_str().unwrap();
    let expected = "server `peer` asks for `elicitation/create`";
    assert!(message.starts_with(expected), "{refused}");
    knows["elicitation"] = json!({"form": {}});
    let asked = ask_as(&harness, ClientKind::HttpModern, &knows, "tasks/get", get).await;
    asked.has("/result/inputRequests/a/params/message", "m");
}
