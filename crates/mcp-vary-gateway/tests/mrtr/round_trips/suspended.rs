//! Modern clients of legacy servers: a call is suspended until the client has answered.

use std::collections::BTreeMap;

use super::sealed::MODERN;
use super::with;
use crate::support::*;

/// A server on HTTP that asks before it answers.
#[derive(Default)]
struct Server {
    next: AtomicUsize,
    /// By the id of a question: the stream of its call, the call, and how often it asks on.
    open: Mutex<BTreeMap<u64, Open>>,
}

struct Open {
    stream: UnboundedSender<Bytes>,
    call: ReceivedRequest,
    left: usize,
}

impl Server {
    async fn start() -> ScriptedServer {
        let server = Arc::new(Self::default());
        let waiting = Arc::clone(&server);
        Script::legacy("asking")
            .declares(json!({"tools": {"listChanged": true}}))
            .tools(&["ask", "twice", "thought better", "visit"])
            .in_sessions(|_| "s".to_owned())
            .reply("tools/call", move |seen| {
                let name = &seen.body["params"]["name"];
                if name == "visit" {
                    return visit(seen);
                }
                let (stream, reply) = Reply::stream();
                let (left, call) = (usize::from(name == "twice"), seen.clone());
                server.send_question(Open { stream, call, left });
                reply
            })
            .may_reply("POST", move |seen| {
                let open = waiting.open.lock().unwrap().remove(&seen.id().as_u64()?)?;
                if open.left > 0 {
                    let left = open.left - 1;
                    waiting.send_question(Open { left, ..open });
                } else {
                    let reported = seen.body.get("result").or(seen.body.get("error"));
                    finish(&open, reported.unwrap());
                }
                Some(Reply::new(202, "text/plain", ""))
            })
            .start()
            .await
    }

    fn send_question(&self, open: Open) {
        let id = self.next.fetch_add(1, Ordering::SeqCst) as u64 + 1;
        let arguments = &open.call.body["params"]["arguments"];
        let (method, params) = (&arguments["method"], &arguments["params"]);
        let question = request(json!(id), method.as_str().unwrap(), params.clone());
        let _ = open.stream.send(event(&question).into());
        if open.call.body["params"]["name"] == "thought better" {
            let never_mind = notification("notifications/cancelled", json!({"requestId": id}));
            let _ = open.stream.send(event(&never_mind).into());
            finish(&open, &json!("nothing"));
            return;
        }
        self.open.lock().unwrap().insert(id, open);
    }
}

/// One step of progress, if that is wanted, and the answer.
fn finish(open: &Open, reported: &Value) {
    let token = &open.call.body["params"]["_meta"]["progressToken"];
    if !token.is_null() {
        let params = json!({"progressToken": token, "progress": 1});
        let step = notification("notifications/progress", params);
        let _ = open.stream.send(event(&step).into());
    }
    let result = json!({"content": [], "reply": {"result": reported}});
    let answer = open.call.message(&result);
    // The client may be gone.
    let _ = open.stream.send(event(&answer).into());
}

/// Wants an address visited, until it is asked for the second time.
fn visit(seen: &ReceivedRequest) -> Reply {
    static VISITED: AtomicUsize = AtomicUsize::new(0);
    if VISITED.fetch_add(1, Ordering::SeqCst) % 2 == 1 {
        return seen.answer(&json!({"content": [], "said": seen.body["params"]}));
    }
    let elicitation = json!({
        "mode": "url", "elicitationId": "e1", "url": "https://example.org", "message": "Sign in"});
    let error =
        json!({"code": -32042, "message": "sign in", "data": {"elicitations": [elicitation]}});
    let params = json!({"jsonrpc": "2.0", "id": seen.id(), "error": error});
    Reply::json(200, &params)
}

fn before_a_process() -> Config {
    config(of_script("asks.py"))
}

fn forms() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "roots": {}})
}

fn asking(name: &str) -> Value {
    let params = json!({"message": "Who?", "x": 1.50});
    json!({"name": name, "arguments": {"method": "elicitation/create", "params": params}})
}

fn accepts() -> Value {
    json!({"action": "accept", "content": {"name": "Ada"}, "y": 2.50})
}

/// What the client sends when it comes back.
fn again(params: &Value, requested: &Value) -> Value {
    let result = &requested["result"];
    assert_eq!(result["resultType"], "input_required", "{requested}");
    let requests = result["inputRequests"].as_object().unwrap();
    let responses: BTreeMap<_, _> = requests.keys().map(|key| (key, accepts())).collect();
    let arguments = json!({"requestState": result["requestState"], "inputResponses": responses});
    with(params, &arguments)
}

/// The request ends with the question, the call does not: it goes on with what the client says.
#[tokio::test]
async fn a_call_goes_on_when_its_client_comes_back() {
    let harness = Harness::behind_one(Server::start().await, |config| config).await;
    for way in MODERN {
        let before = harness.peer.of("tools/call").len();
        let asked = ask_as(&harness, way, &forms(), "tools/call", asking("ask")).await;
        let question =
            json!({"method": "elicitation/create", "params": {"message": "Who?", "x": 1.5}});
        asked.has("/result/inputRequests", json!({"1": question}));
        let back = again(&asking("ask"), &asked);
        let answer = way.ask(&harness, &forms(), "tools/call", back).await;
        answer.has("/result/reply/result", accepts());
        answer.has("/result/resultType", "complete");
        assert_eq!(harness.peer.of("tools/call").len(), before + 1);
    }
}

/// What a server was told of one client's roots it may keep, and must not use for another.
#[tokio::test]
async fn a_process_that_knows_roots_serves_no_other_request() {
    let gateway = Gateway::start(before_a_process()).await.unwrap();
    let mut pipe = open_pipe(&gateway);
    let roots = json!({"name": "ask", "arguments": {"method": "roots/list", "params": {}}});
    let mut pids = Vec::new();
    for params in [asking("ask"), roots, asking("ask")] {
        let call = |params: Value| modern(json!(1), "tools/call", params, &forms());
        let asked = pipe.ask(&call(params.clone())).await;
        let answer = pipe.ask(&call(again(&params, &asked))).await;
        pids.push(answer["result"]["pid"].as_u64().unwrap());
    }
    // One that was asked for a form is used again.
    assert_eq!(pids[0], pids[1]);
    assert_ne!(pids[1], pids[2]);
    gateway.close().await;
}

/// A process has a client alone for as long as its call waits.
#[tokio::test]
async fn a_process_waits_for_its_client_too() {
    let gateway = Gateway::start(before_a_process()).await.unwrap();
    let mut pipe = open_pipe(&gateway);
    let call = |id: u32, params: Value| modern(json!(id), "tools/call", params, &forms());
    let first = pipe.ask(&call(1, asking("ask"))).await;
    let roots = json!({"name": "ask", "arguments": {"method": "roots/list", "params": {}}});
    let second = pipe.ask(&call(2, roots.clone())).await;
    second.has("/result/inputRequests/1/method", "roots/list");
    let mut pids = Vec::new();
    for (id, params, asked) in [(3, asking("ask"), first), (4, roots, second)] {
        let answer = pipe.ask(&call(id, again(&params, &asked))).await;
        answer.has("/result/reply/result", accepts());
        pids.push(answer["result"]["pid"].clone());
    }
    assert_ne!(pids[0], pids[1]);
    gateway.close().await;
}

/// A server asks as often as it wants, each time under another key.
#[tokio::test]
async fn a_call_may_wait_more_than_once() {
    let harness = Harness::behind_one(Server::start().await, |config| config).await;
    for way in MODERN {
        let first = ask_as(&harness, way, &forms(), "tools/call", asking("twice")).await;
        let back = again(&asking("twice"), &first);
        let second = ask_as(&harness, way, &forms(), "tools/call", back.clone()).await;
        let found = &second["result"]["inputRequests"]["2"];
        assert!(found.is_object(), "{second}");
        let last = again(&asking("twice"), &second);
        let answer = way.ask(&harness, &forms(), "tools/call", last).await;
        answer.has("/result/reply/result", accepts());
        // The first state is not good any more.
        let replayed = way.ask(&harness, &forms(), "tools/call", back).await;
        replayed.fails(-32602, "no longer waits");
    }
}

/// > If the client fails to send all the information requested […], the server SHOULD respond with a new
/// > `InputRequiredResult` requesting the missing information again. (MCP 2026-07-28, basic/patterns/mrtr)
#[tokio::test]
async fn what_the_client_leaves_out_is_asked_again() {
    let harness = Harness::behind_one(Server::start().await, |config| config).await;
    for way in MODERN {
        let first = ask_as(&harness, way, &forms(), "tools/call", asking("ask")).await;
        let other = json!({"inputResponses": {"no such key": {}}});
        let empty = with(&again(&asking("ask"), &first), &other);
        let second = way.ask(&harness, &forms(), "tools/call", empty).await;
        let expected = &first["result"]["inputRequests"];
        assert_eq!(second["result"]["inputRequests"], *expected);
        let expected = &first["result"]["requestState"];
        assert_ne!(second["result"]["requestState"], *expected);
        let back = again(&asking("ask"), &second);
        let answer = way.ask(&harness, &forms(), "tools/call", back).await;
        answer.has("/result/reply/result", accepts());
    }
}

/// SV-26: nothing but the same request, under the same variant and as it was asked, finds its call; and it is run
/// once, whoever comes back how often.
#[tokio::test]
async fn a_call_is_found_by_its_own_request_and_once() {
    let harness = Harness::behind_one(Server::start().await, |config| config).await;
    for way in MODERN {
        let before = harness.peer.of("tools/call").len();
        let asked = ask_as(&harness, way, &forms(), "tools/call", asking("ask")).await;
        let back = again(&asking("ask"), &asked);
        let mut tampered = back.clone();
        let state = back["requestState"].as_str().unwrap();
        let (start, end) = state.split_at(state.len() - 1);
        tampered["requestState"] = json!(format!("{start}{}", if end == "A" { "B" } else { "A" }));
        let mut other = back.clone();
        other["arguments"]["params"]["message"] = json!("What?");
        let mut named = back.clone();
        named["name"] = json!("twice");
        for wrong in [tampered, other, named, under("compact", back.clone())] {
            let refused = way.ask(&harness, &forms(), "tools/call", wrong).await;
            refused.fails(-32602, "Invalid request state");
        }
        for bad in [json!(7), json!({"1": 7}), json!({"1": null})] {
            let bad = with(&back, &json!({"inputResponses": bad}));
            let refused = way.ask(&harness, &forms(), "tools/call", bad).await;
            refused.fails(-32602, "`inputResponses");
        }
        // It has waited all the time.
        let answer = ask_as(&harness, way, &forms(), "tools/call", back.clone()).await;
        answer.has("/result/reply/result", accepts());
        let twice = way.ask(&harness, &forms(), "tools/call", back).await;
        twice.fails(-32602, "no longer waits");
        assert_eq!(harness.peer.of("tools/call").len(), before + 1);
    }
}

/// A call waits at one gateway; another one that shares its keys says so and runs nothing.
#[tokio::test]
async fn another_gateway_does_not_run_the_call_again() {
    let with_key = |config: Config| config.with_key([1; 32]);
    let first = Harness::behind_one(Server::start().await, with_key).await;
    let second = Harness::behind_one(Server::start().await, with_key).await;
    let asked = ask_modern_as(&first, &forms(), "tools/call", asking("ask")).await;
    let back = again(&asking("ask"), &asked);
    let refused = ask_modern_as(&second, &forms(), "tools/call", back.clone()).await;
    refused.fails(-32603, "waits at another gateway");
    assert_eq!(second.peer.of("tools/call").len(), 0);
    let answer = ask_modern_as(&first, &forms(), "tools/call", back).await;
    answer.has("/result/reply/result", accepts());
}

/// A client that does not come back is waited for as long as is configured; then the server hears of it.
#[tokio::test]
async fn a_call_whose_client_is_gone_is_cancelled() {
    let adapt = edited(|config| config.limits.ask_timeout = Duration::from_millis(1));
    let harness = Harness::behind_one(Server::start().await, adapt).await;
    let mut pipe = open_pipe(&harness.gateway);
    let message = modern(json!(1), "tools/call", asking("ask"), &forms());
    let asked = pipe.ask(&message).await;
    let back = again(&asking("ask"), &asked);
    pipe.close().await;
    let cancelled = soon(harness.peer.wait_for("notifications/cancelled", 1)).await;
    let call = &harness.peer.of("tools/call")[0];
    assert_eq!(cancelled[0].body["params"]["requestId"], *call.id());
    let late = ask_modern_as(&harness, &forms(), "tools/call", back).await;
    late.fails(-32602, "expired");
    assert_eq!(harness.peer.of("tools/call").len(), 1);
}

/// One call too many is cancelled, and its client told; those that wait do not suffer by it.
#[tokio::test]
async fn only_so_many_calls_wait() {
    for (in_all, per_principal) in [(1, 64), (256, 1)] {
        let harness = Harness::edited(Server::start().await, |config| {
            config.limits.suspended_calls = in_all;
            config.limits.suspended_calls_per_principal = per_principal;
        })
        .await;
        let asked = ask_modern_as(&harness, &forms(), "tools/call", asking("ask")).await;
        let refused = ask_modern_as(&harness, &forms(), "tools/call", asking("twice")).await;
        refused.fails(-32603, "too many calls wait");
        let cancelled = soon(harness.peer.wait_for("notifications/cancelled", 1)).await;
        let calls = harness.peer.of("tools/call");
        assert_eq!(cancelled[0].body["params"]["requestId"], *calls[1].id());
        let back = again(&asking("ask"), &asked);
        let answer = ask_modern_as(&harness, &forms(), "tools/call", back).await;
        answer.has("/result/reply/result", accepts());
        // There is room again.
        let asked = ask_modern_as(&harness, &forms(), "tools/call", asking("ask")).await;
        asked.has("/result/resultType", "input_required");
    }
}

/// What stops with the gateway is cancelled at the servers.
#[tokio::test]
async fn calls_do_not_wait_for_a_gateway_that_has_stopped() {
    let harness = Harness::behind_one(Server::start().await, |config| config).await;
    let asked = ask_modern_as(&harness, &forms(), "tools/call", asking("ask")).await;
    asked.has("/result/resultType", "input_required");
    harness.gateway.close().await;
    soon(harness.peer.wait_for("DELETE", 1)).await;
}

/// The server is refused in the name of a client that cannot be asked, and its call goes on.
#[tokio::test]
async fn who_cannot_be_asked_is_not() {
    let harness = Harness::behind_one(Server::start().await, |config| config).await;
    for way in MODERN {
        for capabilities in [
            json!({}),
            json!({"roots": {}}),
            json!({"elicitation": {"url": {}}}),
        ] {
            let answer = ask_as(&harness, way, &capabilities, "tools/call", asking("ask")).await;
            let code = answer["result"]["reply"]["result"]["code"].as_i64();
            assert!(matches!(code, Some(-32601 | -32602)), "{answer}");
        }
    }
}

/// A server that does not want its question answered any more may have answered the call.
#[tokio::test]
async fn a_question_that_was_withdrawn_needs_no_answer() {
    let harness = Harness::behind_one(Server::start().await, |config| config).await;
    let params = asking("thought better");
    let asked = ask_modern_as(&harness, &forms(), "tools/call", params.clone()).await;
    let back = again(&params, &asked);
    let answer = ask_modern_as(&harness, &forms(), "tools/call", back).await;
    answer.has("/result/reply/result", "nothing");
}

/// Progress is told with the token of the request that runs, not of the one that has ended.
#[tokio::test]
async fn progress_follows_the_request() {
    let harness = Harness::behind_one(Server::start().await, |config| config).await;
    let token = |params: &Value, token: &str| {
        let mut params = params.clone();
        params["_meta"]["progressToken"] = json!(token);
        params
    };
    let params = token(&asking("ask"), "first");
    let asked = ask_modern_as(&harness, &forms(), "tools/call", params).await;
    let back = token(&again(&asking("ask"), &asked), "second");
    let mut http = harness.connect().await;
    let post = HttpRequest::modern(&modern(json!(2), "tools/call", back, &forms()));
    http.send(&post.bytes()).await;
    let expected = Some("text/event-stream");
    assert_eq!(http.head().await.header("content-type"), expected);
    let events = http.events().await;
    assert_eq!(events[0]["params"]["progressToken"], "second", "{events:?}");
    events[1].has("/id", 2);
    events[1].has("/result/reply/result", accepts());
}

/// `-32042` of a legacy server is a question to a modern client, and the call is made anew after it.
#[tokio::test]
async fn an_address_to_visit_first_is_asked_for() {
    let harness = Harness::behind_one(Server::start().await, |config| config).await;
    for way in MODERN {
        let asked = ask_as(&harness, way, &forms(), "tools/call", tool("visit")).await;
        let params = json!({"mode": "url", "url": "https://example.org", "message": "Sign in"});
        let question = json!({"method": "elicitation/create", "params": params});
        asked.has("/result/inputRequests", json!({"1": question}));
        let back = again(&tool("visit"), &asked);
        let mut declined = back.clone();
        declined["inputResponses"]["1"] = json!({"action": "decline"});
        let refused = way.ask(&harness, &forms(), "tools/call", declined).await;
        refused.fails(-32603, "the user declined");
        let answer = way.ask(&harness, &forms(), "tools/call", back).await;
        let said = &answer["result"]["said"];
        assert!(said.is_object(), "{answer}");
        assert_eq!(said.get("requestState"), None);
        assert_eq!(said.get("inputResponses"), None);
        // Who cannot be shown an address is told what the server said.
        let capabilities = json!({"elicitation": {}});
        let refused = ask_as(&harness, way, &capabilities, "tools/call", tool("visit")).await;
        refused.fails(-32603, "sign in");
        ask_as(&harness, way, &capabilities, "tools/call", tool("visit")).await;
    }
}

/// What a client says to a question that was never asked does not reach a legacy server.
#[tokio::test]
async fn a_legacy_server_hears_of_no_rounds() {
    let harness = Harness::behind_one(Server::start().await, |config| config).await;
    for way in MODERN {
        let params = with(&asking("ask"), &json!({"inputResponses": {"1": accepts()}}));
        way.ask(&harness, &forms(), "tools/call", params).await;
        let calls = harness.peer.of("tools/call");
        let params = &calls.last().unwrap().body["params"];
        assert_eq!(params.get("inputResponses"), None, "{params}");
    }
}

/// Whoever has a connection alone is not held up by those who come without one.
#[tokio::test]
async fn what_waits_for_others_is_not_counted_for_a_process() {
    let adapt = edited(|config| config.limits.suspended_calls_per_principal = 1);
    let harness = Harness::behind_one(Server::start().await, adapt).await;
    let asked = ask_modern_as(&harness, &forms(), "tools/call", asking("ask")).await;
    asked.has("/result/resultType", "input_required");
    for _ in 0..2 {
        let mut pipe = open_pipe(&harness.gateway);
        let call = |id: u64| modern(json!(id), "tools/call", asking("ask"), &forms());
        let asked = pipe.ask(&call(1)).await;
        asked.has("/result/resultType", "input_required");
        let refused = pipe.ask(&call(2)).await;
        refused.fails(-32603, "too many calls wait");
    }
}
