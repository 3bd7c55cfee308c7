//! Requests of servers reach the client that they are for, and no other.

mod endpoints;
mod one_process;

use std::net::SocketAddr;

use mcp_vary_upstream::Isolation;

use crate::support::*;

/// The configuration before the process that asks.
fn asking() -> Config {
    config(of_script("asks.py"))
}

/// A gateway before the process that asks, and where it serves.
async fn before(config: Config) -> (Arc<Gateway>, SocketAddr) {
    let gateway = Gateway::start(config).await.unwrap();
    let (address, _) = serve(&gateway).await;
    (gateway, address)
}

fn all() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {"listChanged": true}})
}

/// The params of a call of the tool `name`.
fn asks(name: &str, method: &str, params: Value) -> Value {
    json!({"name": name, "arguments": {"method": method, "params": params}})
}

/// A client over HTTP that hears what it is asked beside its calls.
struct Client {
    address: SocketAddr,
    legacy: LegacyClient,
    stream: RawHttp,
    next: u64,
}

impl Client {
    async fn open(address: SocketAddr, capabilities: &Value) -> Self {
        let legacy = LegacyClient::at(address, "2025-11-25", capabilities).await;
        let mut stream = RawHttp::connect(address).await;
        let get = HttpRequest::get(&legacy.session).with("accept", "text/event-stream");
        stream.open_stream(&get).await;
        Self {
            address,
            legacy,
            stream,
            next: 100,
        }
    }

    /// Sends a call; its answer, or what comes before that, is read from the connection that is returned.
    async fn call(&mut self, params: Value) -> RawHttp {
        let mut http = RawHttp::connect(self.address).await;
        self.next += 1;
        let call = request(json!(self.next), "tools/call", params);
        http.send(&self.legacy.post(&call).bytes()).await;
        http
    }

    async fn called(&mut self, params: Value) -> Value {
        let answer = self.call(params).await.response().await.json();
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// Sends something that has no answer.
    async fn send(&mut self, message: &Value) {
        let post = self.legacy.post(message);
        let answer = self.legacy.http.ask(&post).await;
        assert_eq!((answer.status, answer.text().as_str()), (202, ""));
    }

    async fn state(&mut self) -> Value {
        self.called(tool("state")).await
    }

    /// The call 99, with what its server asks.
    async fn asked(&self) -> (RawHttp, Value) {
        let mut call = self.asking_call("ask").await;
        call.head().await;
        let question = next(&mut call).await;
        (call, question)
    }

    /// Sends the call 99 of a tool that asks something.
    async fn asking_call(&self, name: &str) -> RawHttp {
        let mut http = RawHttp::connect(self.address).await;
        let params = asks(name, "elicitation/create", json!({"message": "m"}));
        let post = self.legacy.post(&request(json!(99), "tools/call", params));
        http.send(&post.bytes()).await;
        http
    }
}

async fn next(http: &mut RawHttp) -> Value {
    soon(http.event()).await.expect("the stream goes on")
}

/// EXT-8: requests and notifications of an extension reach a client that declared it. To others they are refused by name.
#[tokio::test]
async fn what_a_server_sends_of_an_extension_reaches_who_declared_it() {
    let mut config = asking();
    config.servers[0].forwarded_extensions = vec!["com.example/ledger".to_owned()];
    let (_gateway, address) = before(config).await;
    let declared = json!({"elicitation": {}, "extensions": {"com.example/ledger": {}}});
    let mut client = Client::open(address, &declared).await;
    let confirm = asks("ask", "ledger/confirm", json!({"x": 1}));
    let mut call = client.call(confirm.clone()).await;
    call.head().await;
    let question = next(&mut call).await;
    question.has("/method", "ledger/confirm");
    let sure = json!({"sure": true});
    client.send(&response(&question, sure.clone())).await;
    next(&mut call).await.has("/result/reply/result", sure);
    let changed = asks("tell", "notifications/ledger/changed", json!({}));
    client.called(changed).await;
    let notified = next(&mut client.stream).await;
    notified.has("/method", "notifications/ledger/changed");
    let mut other = Client::open(address, &json!({"elicitation": {}})).await;
    let refused = other.called(confirm).await;
    let why = "the client declared no extension that has `ledger/confirm`";
    refused.has("/reply/error/message", why);
}

#[tokio::test]
async fn a_question_goes_out_on_the_stream_of_its_call_and_the_answer_back() {
    let (_gateway, address) = before(asking()).await;
    let mut client = Client::open(address, &json!({"elicitation": {}})).await;
    let params = json!({"message": "who?", "requestedSchema": {"type": "object"}, "x": 1.10});
    let arguments = asks("ask", "elicitation/create", params.clone());
    let mut call = client.call(arguments).await;
    let expected = Some("text/event-stream");
    assert_eq!(call.head().await.header("content-type"), expected);
    let question = next(&mut call).await;
    let expected = (&json!("elicitation/create"), &params);
    assert_eq!((&question["method"], &question["params"]), expected);
    let said = json!({"action": "accept", "content": {"name": "Ada"}, "_meta": {"y": 2.50}});
    client.send(&response(&question, said.clone())).await;
    let answer = next(&mut call).await;
    answer.has("/result/reply/result", said);
    assert_eq!(soon(call.event()).await, None);
    // It was told what the client can do.
    let state = client.state().await;
    state.has("/client", json!({"elicitation": {}}));
}

#[tokio::test]
async fn a_question_goes_out_on_standard_output() {
    let (gateway, _) = before(asking()).await;
    let mut pipe = legacy_pipe(&gateway, "2025-06-18", &json!({"sampling": {}})).await;
    let call = asks("ask", "sampling/createMessage", json!({"messages": []}));
    let question = pipe.ask(&request(json!(7), "tools/call", call)).await;
    question.has("/method", "sampling/createMessage");
    let refusal = json!({"code": -1, "message": "User rejected sampling request"});
    let said = json!({"jsonrpc": "2.0", "id": question["id"], "error": refusal});
    let answer = pipe.ask(&said).await;
    answer.has("/id", 7);
    answer.has("/result/reply/error", refusal);
    // What answers nothing is ignored.
    let ids = [
        json!(1),
        question["id"].clone(),
        json!("x"),
        json!(-1),
        json!(1.5),
    ];
    for id in ids {
        let message = json!({"jsonrpc": "2.0", "id": id, "result": {}});
        pipe.send(message.to_string()).await;
    }
    let mut answer = pipe.ask(&request(json!(8), "ping", json!({}))).await;
    while answer["id"] != 8 {
        assert!(answer["error"].is_object(), "{answer}");
        answer = pipe.receive().await;
    }
}

/// > Servers MUST NOT send requests with modes that are not supported by the client, and so for sampling with
/// > tools. (MCP 2025-11-25, client/elicitation and client/sampling)
///
/// CN-16: a tag of the same name is no such capability.
#[tokio::test]
async fn nobody_is_asked_what_he_did_not_declare() {
    let (gateway, _) = before(asking()).await;
    let tags = features(&["elicitation", "sampling", "roots", "interactive"]);
    for [capabilities, method, params, code] in rows(
        r#"
        {}                | elicitation/create     | {} | -32601
        {}                | sampling/createMessage | {} | -32601
        {"roots": {}}     | elicitation/create     | {} | -32601
        {"elicitation": {}} | elicitation/create   | {"mode": "url", "url": "https://example.org", "elicitationId": "e", "message": "m"} | -32602
        {"sampling": {}}  | sampling/createMessage | {"tools": []} | -32602
        {"elicitation": {}} | no/such              | {} | -32601
        tags              | elicitation/create     | {} | -32601
        tags              | sampling/createMessage | {} | -32601
    "#,
    ) {
        let capabilities = match capabilities {
            "tags" => tags.clone(),
            capabilities => cell(capabilities),
        };
        let call = request(json!(7), "tools/call", asks("ask", method, cell(params)));
        let mut pipe = legacy_pipe(&gateway, "2025-11-25", &capabilities).await;
        let mut answer = pipe.ask(&call).await;
        if answer["method"] == "roots/list" {
            answer = pipe.ask(&response(&answer, json!({"roots": []}))).await;
        }
        let error = &answer["result"]["reply"]["error"];
        assert_eq!(
            error["code"],
            cell(code),
            "{capabilities} {method} {answer}"
        );
    }
}

/// CN-16: no tag skips a question, such as one for consent: what a client declares of itself does not answer for its user.
#[tokio::test]
async fn tags_against_questions_do_not_skip_them() {
    let (gateway, _) = before(asking()).await;
    let mut capabilities = features(&["agent", "!interactive", "!elicitation"]);
    capabilities["elicitation"] = json!({});
    let call = || asks("ask", "elicitation/create", json!({"message": "Pay?"}));
    let mut pipe = legacy_pipe(&gateway, "2025-11-25", &capabilities).await;
    let asked = pipe.ask(&request(json!(7), "tools/call", call())).await;
    asked.has("/method", "elicitation/create");
    let refusal = response(&asked, json!({"action": "decline"}));
    let answer = pipe.ask(&refusal).await;
    answer.has("/result/reply/result/action", "decline");
    let mut pipe = open_pipe(&gateway);
    let call = modern(json!(7), "tools/call", call(), &capabilities);
    let asked = pipe.ask(&call).await;
    let requests = asked["result"]["inputRequests"].as_object();
    let requests = requests.unwrap_or_else(|| panic!("{asked}"));
    let question = requests.values().next().unwrap();
    question.has("/method", "elicitation/create");
    question.has("/params/message", "Pay?");
}

/// Clients that cannot be asked cost what they did: one process serves them all.
#[tokio::test]
async fn clients_that_cannot_be_asked_share_one_process() {
    let (_gateway, address) = before(asking()).await;
    let mut pids = Vec::new();
    for capabilities in [json!({}), json!({"experimental": {"x": {}}})] {
        for _ in 0..2 {
            let mut client = Client::open(address, &capabilities).await;
            pids.push(client.state().await["pid"].clone());
        }
    }
    assert!(pids.iter().all(|pid| *pid == pids[0]), "{pids:?}");
}

#[tokio::test]
async fn what_the_server_takes_back_the_client_is_told() {
    let (_gateway, address) = before(asking()).await;
    let mut client = Client::open(address, &json!({"elicitation": {}})).await;
    let mut call = client.asking_call("never mind").await;
    assert_eq!(call.head().await.status, 200);
    let question = next(&mut call).await;
    let cancelled = next(&mut call).await;
    cancelled.has("/method", "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
    // An answer that was on its way is of no use to anybody.
    client.send(&response(&question, json!({}))).await;
    client.called(tool("go")).await;
    assert!(next(&mut call).await["result"].is_object());
    client.state().await.has("/replies", json!([]));
}

#[tokio::test]
async fn who_cancels_a_call_is_not_waited_for() {
    let (_gateway, address) = before(asking()).await;
    let mut client = Client::open(address, &json!({"elicitation": {}})).await;
    let (mut call, question) = client.asked().await;
    let cancel = notification("notifications/cancelled", json!({"requestId": 99}));
    client.send(&cancel).await;
    assert_eq!(soon(call.event()).await, None);
    client.send(&response(&question, json!({}))).await;
    let state = client.state().await;
    let told: Vec<_> = state["told"].as_array().unwrap().iter().collect();
    told[0].has("/method", "notifications/cancelled");
    // The answer that it got was ours.
    state.has("/asked", 1);
}

#[tokio::test]
async fn who_does_not_answer_in_time_is_asked_no_longer() {
    let mut short = limits();
    short.ask_timeout = Duration::from_millis(100);
    let (_gateway, address) = before(asking().with_limits(short)).await;
    let client = Client::open(address, &json!({"elicitation": {}})).await;
    let (mut call, question) = client.asked().await;
    let cancelled = next(&mut call).await;
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
    let answer = next(&mut call).await;
    let error = &answer["result"]["reply"]["error"];
    let expected = "the client did not answer in time";
    assert_eq!(error["message"], expected, "{answer}");
}

/// A client that has closed its input, or has no session any more, cannot answer. The server is not made to wait until
/// `ask-timeout`.
#[tokio::test]
async fn nobody_waits_for_the_answer_of_a_client_that_is_gone() {
    let (gateway, address) = before(asking()).await;
    let elicits = json!({"elicitation": {}});
    let is_free = async || {
        let status = || gateway.status();
        until(async || status().pending_server_requests + status().dedicated_connections == 0)
            .await;
    };

    // In a call, after one, and in one whose connection is lost.
    for (name, is_lost) in [("ask", false), ("ask", true), ("later", false)] {
        let mut client = Client::open(address, &elicits).await;
        let mut call = client.asking_call(name).await;
        let question = match name {
            "later" => next(&mut client.stream).await,
            _ => {
                call.head().await;
                next(&mut call).await
            }
        };
        assert_eq!(question["method"], "elicitation/create", "{name}");
        assert_eq!(gateway.status().pending_server_requests, 1, "{name}");
        let call = (!is_lost).then_some(call);
        client.legacy.delete().await;
        is_free().await;
        drop(call);
    }

    let mut pipe = legacy_pipe(&gateway, "2025-11-25", &elicits).await;
    let params = asks("ask", "elicitation/create", json!({"message": "m"}));
    let question = pipe.ask(&request(json!(7), "tools/call", params)).await;
    question.has("/method", "elicitation/create");
    assert_eq!(gateway.status().pending_server_requests, 1);
    // What it cannot answer it is answered all the same.
    let rest = pipe.close().await;
    let answer = rest.iter().find(|line| line.contains("\"id\":7"));
    let answer: Value = serde_json::from_str(answer.expect("an answer")).unwrap();
    let error = &answer["result"]["reply"]["error"];
    assert_eq!(error["message"], "the client is gone", "{answer}");
    is_free().await;
}

/// Nobody can come back to the stream of a batch; its requests run on as others do whose clients are gone: so many at
/// once.
#[tokio::test]
async fn a_batch_whose_client_is_gone_takes_one_of_the_places_for_such() {
    let mut none = limits();
    none.orphaned_requests = 0;
    let (_gateway, address) = before(asking().with_limits(none)).await;
    let mut client = LegacyClient::at(address, "2025-03-26", &json!({"sampling": {}})).await;
    let params = asks("ask", "sampling/createMessage", json!({"messages": []}));
    let mut batch = RawHttp::connect(address).await;
    let post = client.post(&json!([request(json!(99), "tools/call", params)]));
    batch.send(&post.bytes()).await;
    batch.head().await;
    assert_eq!(next(&mut batch).await["method"], "sampling/createMessage");
    drop(batch);
    until(async || {
        let state = client.answer("tools/call", tool("state")).await;
        let mut told = state["result"]["told"].as_array().unwrap().iter();
        told.any(|told| told["method"] == "notifications/cancelled")
    })
    .await;
}

/// A stream that is lost can be come back to for as long as its session lasts, and so long a question waits.
#[tokio::test]
async fn nobody_waits_for_the_answer_of_a_session_that_has_expired() {
    let mut config = asking();
    config.session_lifetime = Duration::from_secs(1);
    let (gateway, address) = before(config).await;
    let mut client = Client::open(address, &json!({"elicitation": {}})).await;
    let mut lost = client.asking_call("ask").await;
    lost.head().await;
    assert_eq!(next(&mut lost).await["method"], "elicitation/create");
    drop(lost);
    let params = asks("ask", "elicitation/create", json!({"message": "m"}));
    let mut call = client.call(params).await;
    call.head().await;
    let question = next(&mut call).await;
    let cancelled = next(&mut call).await;
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
    let answer = next(&mut call).await;
    assert!(answer["result"]["reply"]["error"].is_object(), "{answer}");
    assert_eq!(soon(client.stream.event()).await, None);
    until(async || gateway.status().pending_server_requests == 0).await;
}

#[tokio::test]
async fn roots_are_asked_for_at_once_and_again_when_they_changed() {
    let (_gateway, address) = before(asking()).await;
    let mut client = Client::open(address, &json!({"roots": {"listChanged": true}})).await;
    for name in ["one", "two"] {
        if name == "two" {
            let changed = notification("notifications/roots/list_changed", json!({}));
            client.send(&changed).await;
        } else {
            client.state().await;
        }
        let question = next(&mut client.stream).await;
        question.has("/method", "roots/list");
        let roots = json!({"roots": [{"uri": format!("file:///{name}")}]});
        client.send(&response(&question, roots.clone())).await;
        client.state().await.has("/roots", roots);
    }
}

#[tokio::test]
async fn what_is_asked_between_calls_is_told_on_the_session_s_stream() {
    let (_gateway, address) = before(asking()).await;
    let mut client = Client::open(address, &json!({"elicitation": {}})).await;
    let mut other = Client::open(address, &json!({"elicitation": {}})).await;
    other.state().await;
    let arguments = asks("later", "elicitation/create", json!({"message": "m"}));
    client.called(arguments).await;
    let question = next(&mut client.stream).await;
    question.has("/params/message", "m");
    // Another session cannot answer it.
    let answers = ["other", "cancel"].map(|it| response(&question, json!({"action": it})));
    other.send(&answers[0]).await;
    client.send(&answers[1]).await;
    let state = client.state().await;
    state.has("/replies/0/result/action", "cancel");
    // So is what it says then.
    for [method, params] in rows(
        r#"
        notifications/elicitation/complete | {"elicitationId": "e"}
        notifications/message              | {"level": "info", "data": "x"}
    "#,
    ) {
        let params = cell(params);
        client.called(asks("tell", method, params.clone())).await;
        let told = next(&mut client.stream).await;
        let expected = (&json!(method), &params);
        assert_eq!((&told["method"], &told["params"]), expected);
    }
}

#[tokio::test]
async fn progress_of_an_answer_reaches_the_server_by_its_own_token() {
    let (_gateway, address) = before(asking()).await;
    let mut client = Client::open(address, &json!({"sampling": {}})).await;
    let params = json!({"messages": [], "_meta": {"progressToken": "theirs", "z": 1}});
    let params = asks("ask", "sampling/createMessage", params);
    let mut call = client.call(params).await;
    call.head().await;
    let question = next(&mut call).await;
    let token = &question["params"]["_meta"]["progressToken"];
    assert_ne!(token, "theirs");
    question.has("/params/_meta/z", 1);
    let progress = json!({"progressToken": token, "progress": 0.5});
    let message = notification("notifications/progress", progress);
    client.send(&message).await;
    let message = response(&question, json!({"role": "assistant"}));
    client.send(&message).await;
    let answer = next(&mut call).await;
    let told = &answer["result"]["told"][0];
    told.has("/method", "notifications/progress");
    let expected = json!({"progressToken": "theirs", "progress": 0.5});
    told.has("/params", expected);
}

#[tokio::test]
async fn an_address_that_must_be_visited_first_is_passed_on() {
    let (_gateway, address) = before(asking()).await;
    let mut client = Client::open(address, &all()).await;
    let visit =
        json!({"mode": "url", "elicitationId": "e", "url": "https://example.org", "message": "m"});
    let mut call = client.call(asks("visit", "", visit.clone())).await;
    let error = call.response().await.json()["error"].clone();
    error.has("/code", -32042);
    error.has("/data", json!({"elicitations": [visit]}));
}

/// Every process counts its requests from one, so that whoever were asked another's question would answer it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_one_server_never_get_each_other_s_questions() {
    let (_gateway, address) = before(asking()).await;
    let clients = (0..6).map(|who| {
        tokio::spawn(async move {
            let mut client = Client::open(address, &json!({"elicitation": {}})).await;
            for round in 0..12 {
                // Two at once, answered in the other order.
                let mut open = Vec::new();
                for half in 0..2 {
                    let label = format!("{who}.{round}.{half}");
                    let params = json!({"message": label});
                    let mut call = client.call(asks("ask", "elicitation/create", params)).await;
                    call.head().await;
                    let question = next(&mut call).await;
                    question.has("/params/message", label.as_str());
                    open.push((call, question, label));
                }
                for (mut call, question, label) in open.into_iter().rev() {
                    let said = json!({"action": "accept", "content": {"label": label}});
                    client.send(&response(&question, said.clone())).await;
                    let answer = next(&mut call).await;
                    answer.has("/result/reply/result", said);
                }
            }
            client.state().await["pid"].as_u64().unwrap()
        })
    });
    let clients: Vec<_> = clients.collect();
    let mut pids = Vec::new();
    for client in clients {
        pids.push(soon(client).await.unwrap());
    }
    pids.sort_unstable();
    pids.dedup();
    assert_eq!(pids.len(), 6);
}

#[tokio::test]
async fn a_connection_of_one_s_own_ends_with_its_session() {
    let (gateway, address) = before(asking()).await;
    let mut client = Client::open(address, &all()).await;
    let pid = client.state().await["pid"].clone();
    client.legacy.delete().await;
    is_gone(&pid).await;

    let mut pipe = legacy_pipe(&gateway, "2025-11-25", &json!({"elicitation": {}})).await;
    let message = request(json!(1), "tools/call", tool("state"));
    let answer = pipe.ask(&message).await;
    pipe.close().await;
    is_gone(&answer["result"]["pid"]).await;
}

#[tokio::test]
async fn a_connection_that_nobody_uses_ends_and_is_made_again() {
    let mut config = asking();
    config.servers[0].limits.idle_timeout = Duration::from_millis(50);
    let (_gateway, address) = before(config).await;
    let mut client = Client::open(address, &json!({"elicitation": {}})).await;
    let pid = client.state().await["pid"].clone();
    is_gone(&pid).await;
    assert_ne!(client.state().await["pid"], pid);
}

#[tokio::test]
async fn who_is_idle_gives_way_and_who_is_not_does_not() {
    let mut config = asking();
    config.servers[0].limits.dedicated_connections = 1;
    let (_gateway, address) = before(config).await;
    let mut first = Client::open(address, &json!({"elicitation": {}})).await;
    let mut second = Client::open(address, &json!({"elicitation": {}})).await;
    let pid = first.state().await["pid"].clone();
    // The first is idle.
    assert_ne!(second.state().await["pid"], pid);
    is_gone(&pid).await;
    let (mut call, question) = second.asked().await;
    let refused = first.call(tool("state")).await.response().await.json();
    refused.contains("/error/message", "`peer`");
    refused.contains("/error/message", "all are in use");
    second.send(&response(&question, json!({}))).await;
    assert!(next(&mut call).await["result"].is_object());
    first.state().await;
}

/// Clients that give up hang up without a word. What they leave holds a connection until somebody else needs it.
#[tokio::test]
async fn a_call_whose_client_is_gone_gives_way_and_one_whose_client_waits_does_not() {
    for name in ["ask", "hang"] {
        let mut config = asking();
        config.servers[0].limits.dedicated_connections = 1;
        let (_gateway, address) = before(config).await;
        let first = Client::open(address, &json!({"elicitation": {}})).await;
        let mut second = Client::open(address, &json!({"elicitation": {}})).await;
        let mut call = first.asking_call(name).await;
        if name == "ask" {
            call.head().await;
            next(&mut call).await;
        }
        let refused = until_some(async || {
            let refused = second.call(tool("state")).await.response().await.json();
            refused["error"].is_object().then_some(refused)
        });
        refused.await.contains("/error/message", "all are in use");
        drop(call);
        let answered = until_some(async || {
            let answer = second.call(tool("state")).await.response().await.json();
            answer["result"].is_object().then_some(answer)
        });
        answered.await;
    }
}

#[tokio::test]
async fn connections_that_are_evicted_and_opened_again_are_counted_and_logged() {
    let (log, _listening) = CapturedLog::listen("mcp_vary", Level::WARN);
    let mut config = asking();
    config.servers[0].limits.dedicated_connections = 1;
    let (gateway, address) = before(config).await;
    let mut first = Client::open(address, &json!({"elicitation": {}})).await;
    let mut second = Client::open(address, &json!({"elicitation": {}})).await;
    for _ in 0..3 {
        first.state().await;
        second.state().await;
    }
    let status = gateway.status();
    let dedicated = status.servers[0].dedicated.unwrap();
    let counts = (dedicated.open, dedicated.limit, dedicated.evicted);
    assert_eq!(counts, (1, 1, 5));
    assert_eq!(status.servers[0].connections.unwrap().evicted, 0);
    let lines = log.take().concat();
    let advice = "opened again within a minute; raise its `dedicated-connections`";
    assert!(lines.contains(advice), "{lines}");
}

/// The start of a process is no time of the server, however long it takes.
#[tokio::test]
async fn a_call_that_waits_for_a_start_takes_its_server_no_longer() {
    let script = format!("{}/tests/servers/asks.py", env!("CARGO_MANIFEST_DIR"));
    let start = format!("sleep 1; exec python3 {script}");
    let config = config(Target::command("sh", ["-c".to_owned(), start]));
    let (gateway, address) = before(config).await;
    for _ in 0..3 {
        let mut client = Client::open(address, &json!({"elicitation": {}})).await;
        client.state().await;
    }
    let calls = gateway.status().servers[0].calls.clone().unwrap();
    assert_eq!((calls.count, calls.errors), (3, 0));
    assert!(calls.p95.unwrap() < 800.0, "{calls:?}");
}

#[tokio::test]
async fn a_reload_leaves_a_connection_to_its_client() {
    let (gateway, address) = before(asking()).await;
    let mut client = Client::open(address, &json!({"elicitation": {}})).await;
    let (mut call, question) = client.asked().await;
    gateway.reload(asking()).await.unwrap();
    let pid = client.state().await["pid"].clone();
    client.send(&response(&question, json!({"a": 1}))).await;
    let answer = next(&mut call).await;
    answer.has("/result/reply/result", json!({"a": 1}));
    assert_eq!(answer["result"]["pid"], pid);
    // Another server takes its place: who is asked can still answer.
    let (mut call, question) = client.asked().await;
    let mut other = asking();
    other.servers[0].limits.ready_timeout = Duration::from_secs(7);
    gateway.reload(other).await.unwrap();
    assert_ne!(client.state().await["pid"], pid);
    client.send(&response(&question, json!({"a": 2}))).await;
    let answer = next(&mut call).await;
    assert_eq!(answer["result"]["pid"], pid);
    is_gone(&pid).await;
}

/// Where sessions share nothing, there is one process for the lists and the calls of a session.
#[tokio::test]
async fn an_isolated_session_is_asked_on_its_one_connection() {
    let mut config = asking();
    config.servers[0].isolation = Isolation::Session;
    let (_gateway, address) = before(config).await;
    let mut client = Client::open(address, &json!({"roots": {}})).await;
    client.legacy.ask("tools/list", json!({})).await;
    let state = client.state().await;
    assert!(state["lists"].as_u64() >= Some(1), "{state}");
    let question = next(&mut client.stream).await;
    let roots = json!({"roots": [{"uri": "file:///mine"}]});
    client.send(&response(&question, roots.clone())).await;
    client.state().await.has("/roots", roots);
}

/// Requests without a session take turns on connections that none of them shares.
#[tokio::test]
async fn requests_without_a_session_have_a_connection_while_they_run() {
    let (_gateway, address) = before(asking()).await;
    let state = async || {
        let capabilities = json!({"elicitation": {}});
        let mut http = RawHttp::connect(address).await;
        let answer = http.ask_modern_as("tools/call", tool("state"), &capabilities);
        let answer = answer.await.json();
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    };
    let first = state().await;
    first.has("/client", json!({"elicitation": {}}));
    assert_eq!(state().await["pid"], first["pid"]);
}
