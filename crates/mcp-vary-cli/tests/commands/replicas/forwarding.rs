//! What is begun at one replica and continued at others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use mcp_vary_testkit::message::{features, link, notification};
use mcp_vary_testkit::scripted_server::{ReceivedRequest, Reply, ScriptedServer, event};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedSender;

use super::*;
use crate::text::assert_contains;

/// A server of 2025-11-25 with sessions. It asks for the roots of its client in the middle of calls of `ask` and `ask_on`.
#[derive(Default)]
pub(super) struct Asking {
    next: AtomicU64,
    /// Calls that wait for an answer, by the id of the question.
    open: Mutex<BTreeMap<u64, (UnboundedSender<Bytes>, ReceivedRequest)>>,
    /// Streams that stay open.
    waiting: Mutex<Vec<UnboundedSender<Bytes>>>,
    /// The `GET` streams, by session.
    streams: Mutex<BTreeMap<String, UnboundedSender<Bytes>>>,
    /// The sessions that have subscribed to the resource.
    subscribed: Mutex<BTreeSet<String>>,
}

const TOOLS: [&str; 8] = [
    "plain", "ask", "ask_on", "wait", "log", "large", "rows", "touch",
];

impl Asking {
    pub(super) async fn start() -> ScriptedServer {
        let server = Self::default();
        ScriptedServer::start(move |seen| {
            let answer = server.answer_of_resources(seen);
            answer.or_else(|| server.answer_of_calls(seen))
        })
        .await
    }

    fn notify_subscribed(&self) {
        let params = json!({"uri": "note://one"});
        let changed = notification("notifications/resources/updated", params);
        let streams = self.streams.lock().unwrap();
        for session in self.subscribed.lock().unwrap().iter() {
            if let Some(stream) = streams.get(session) {
                // It may have ended.
                let _ = stream.send(event(&changed).into());
            }
        }
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The answer to what is asked about resources.
    fn answer_of_resources(&self, seen: &ReceivedRequest) -> Option<Reply> {
        match seen.method() {
            "resources/list" => {
                let note = json!({"uri": "note://one", "name": "one"});
                Some(seen.answer(&json!({"resources": [note]})))
            }
            "resources/templates/list" => Some(seen.answer(&json!({"resourceTemplates": []}))),
            "resources/subscribe" => {
                self.subscribed.lock().unwrap().insert(session_of(seen));
                Some(seen.answer(&json!({})))
            }
            _ if seen.body["params"]["name"] == "touch" => {
                self.notify_subscribed();
                Some(seen.answer(&text("touched")))
            }
            _ => None,
        }
    }

    fn initialized(&self, seen: &ReceivedRequest) -> Reply {
        let session = format!("s-{}", self.number());
        let result = json!({
            "protocolVersion": seen.body["params"]["protocolVersion"],
            "capabilities": {"tools": {}, "resources": {"subscribe": true}},
            "serverInfo": {"name": "asking", "version": "1"},
        });
        seen.answer(&result).with_header("mcp-session-id", &session)
    }

    fn answer_of_calls(&self, seen: &ReceivedRequest) -> Option<Reply> {
        match (seen.method(), seen.body["params"]["name"].as_str()) {
            ("initialize", _) => Some(self.initialized(seen)),
            ("GET", _) => {
                let (stream, reply) = Reply::stream();
                self.streams
                    .lock()
                    .unwrap()
                    .insert(session_of(seen), stream);
                Some(reply)
            }
            ("tools/list", _) => {
                let tool = |name| json!({"name": name, "inputSchema": {"type": "object"}});
                Some(seen.answer(&json!({"tools": TOOLS.map(tool)})))
            }
            ("tools/call", Some("plain")) => Some(seen.answer(&text("done"))),
            ("tools/call", Some("large")) => Some(seen.answer(&text(&"x".repeat(1 << 20)))),
            ("tools/call", Some("rows")) => {
                let note = "What it is all about, said at some length.";
                let rows = (0..1000).map(|id| json!({"id": id, "note": note}));
                let rows = json!({"rows": rows.collect::<Vec<_>>()});
                Some(seen.answer(&json!({"content": [], "structuredContent": rows})))
            }
            ("tools/call", Some("ask" | "ask_on")) => {
                let (stream, reply) = Reply::stream();
                let id = self.number();
                let question = request(json!(id), "roots/list", json!({}));
                stream.send(event(&question).into()).unwrap();
                self.open.lock().unwrap().insert(id, (stream, seen.clone()));
                Some(reply)
            }
            ("tools/call", Some(name)) => {
                let (stream, reply) = Reply::stream();
                let params = json!({"level": "error", "data": "on the way"});
                let log = notification("notifications/message", params);
                stream.send(event(&log).into()).unwrap();
                if name == "log" {
                    let answer = seen.message(&text("logged"));
                    tokio::spawn(async move {
                        tokio::time::sleep(Duration::from_secs(1)).await;
                        let _ = stream.send(event(&answer).into());
                    });
                } else {
                    self.waiting.lock().unwrap().push(stream);
                }
                Some(reply)
            }
            _ if seen.body.get("method").is_none() && seen.id().is_u64() => {
                let open = self.open.lock().unwrap().remove(&seen.id().as_u64()?);
                let (stream, call) = open?;
                if call.body["params"]["name"] == "ask" {
                    let answer = call.message(&text(&seen.body["result"].to_string()));
                    // Its client may be gone.
                    let _ = stream.send(event(&answer).into());
                } else {
                    self.waiting.lock().unwrap().push(stream);
                }
                Some(Reply::new(202, "text/plain", ""))
            }
            _ => None,
        }
    }
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn session_of(seen: &ReceivedRequest) -> String {
    seen.header("mcp-session-id").unwrap_or_default().to_owned()
}

pub(super) const ROOTS: &str = r#"{"roots":[{"uri":"file:///one"}]}"#;

pub(super) fn roots() -> Value {
    serde_json::from_str(ROOTS).unwrap()
}

/// Three replicas before such a server.
pub(super) async fn replicas(name: &str, settings: &str) -> (ScriptedServer, Replicas) {
    let server = Asking::start().await;
    let entry = format!("{{url: \"{}\"}}", server.url);
    let replicas = Replicas::before(&entry, name, &[settings; 3]).await;
    (server, replicas)
}

/// A message in a session.
pub(super) fn of(session: &str, message: &Value) -> HttpRequest {
    HttpRequest::of(session, message.to_string()).with("MCP-Protocol-Version", "2025-11-25")
}

/// A call in a session, whose id is the name of its tool.
pub(super) fn call_in(session: &str, tool: &str) -> HttpRequest {
    let params = json!({"name": tool, "arguments": {}});
    of(session, &request(json!(tool), "tools/call", params))
}

/// A `GET` in a session.
pub(super) fn stream_of(session: &str) -> HttpRequest {
    HttpRequest::of(session, "")
        .line("GET /mcp HTTP/1.1")
        .without("Content-Type")
        .with("MCP-Protocol-Version", "2025-11-25")
}

/// The session that a client with these capabilities opens.
pub(super) async fn open(replica: &Gateway, capabilities: &Value) -> String {
    let first = HttpRequest::new(initialize("2025-11-25", capabilities).to_string());
    let opened = replica.ask(&first).await;
    opened.header("mcp-session-id").unwrap().to_owned()
}

/// A call by a client of 2026-07-28 that has roots.
pub(super) fn modern_call(tool: &str, again: Value) -> HttpRequest {
    let mut params = json!({"name": tool, "arguments": {}});
    if let Value::Object(members) = again {
        params.as_object_mut().unwrap().extend(members);
    }
    HttpRequest::modern(&modern(
        json!(tool),
        "tools/call",
        params,
        &json!({"roots": {}}),
    ))
}

/// A request of a client that wants short results.
pub(super) fn compact(method: &str, params: Value) -> HttpRequest {
    let capabilities = features(&["verbosity=compact"]);
    HttpRequest::modern(&modern(json!(1), method, params, &capabilities))
}

/// The next round of a call that asks for roots.
pub(super) fn next_round(required: &Value) -> Value {
    let result = &required["result"];
    let requests = result["inputRequests"].as_object();
    let (key, question) = requests
        .unwrap_or_else(|| panic!("{required}"))
        .iter()
        .next()
        .unwrap();
    assert_eq!(question["method"], "roots/list");
    json!({"requestState": result["requestState"], "inputResponses": {key: roots()}})
}

pub(super) fn text_of(answer: &Value) -> &str {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{answer}"))
}

/// The calls of a tool that the server has got.
fn calls(server: &ScriptedServer, tool: &str) -> Vec<ReceivedRequest> {
    let mut calls = server.of("tools/call");
    calls.retain(|seen| seen.body["params"]["name"] == tool);
    calls
}

/// The metric of forwarded requests with this outcome.
pub(super) async fn forwarded(replica: &Gateway, outcome: &str) -> u64 {
    operations(replica, "forward", outcome).await
}

/// The metric of an operation on the store with this outcome.
pub(super) async fn operations(replica: &Gateway, operation: &str, outcome: &str) -> u64 {
    let metrics = replica.get("/metrics").await.text();
    let labels = format!("operation=\"{operation}\",outcome=\"{outcome}\"");
    let name = format!("vary_store_operations_total{{{labels}}} ");
    let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
    line.map_or(0, |number| number.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn a_session_that_servers_can_ask_has_one_connection_wherever_its_requests_arrive() {
    let (server, replicas) = replicas("askable", "").await;
    let [a, b, c] = replicas.all.as_slice() else {
        unreachable!("three were started")
    };
    let session = open(a, &json!({"roots": {}})).await;
    let mut own = b.connect().await;
    own.send(&stream_of(&session).bytes()).await;
    assert_eq!(own.head().await.status, 200);
    for replica in [a, b, c] {
        let answer = replica.ask(&call_in(&session, "plain")).await.answer();
        assert_eq!(text_of(&answer), "done");
    }
    let large = b.ask(&call_in(&session, "large")).await.answer();
    assert_eq!(text_of(&large), "x".repeat(1 << 20));
    // The server asks on the call at `b`; its client answers at `c`.
    let mut asking = b.connect().await;
    asking.send(&call_in(&session, "ask").bytes()).await;
    assert_eq!(asking.head().await.status, 200);
    let question = asking.event().await.unwrap();
    assert_eq!(question["method"], "roots/list");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": roots()});
    let accepted = c.ask(&of(&session, &answer)).await;
    assert_eq!(accepted.status, 202, "{}", accepted.text());
    assert_eq!(text_of(&asking.event().await.unwrap()), ROOTS);
    // A call is cancelled at another replica than it was sent to.
    let mut waiting = b.connect().await;
    waiting.send(&call_in(&session, "wait").bytes()).await;
    server.wait_for("tools/call", 6).await;
    let cancel = notification("notifications/cancelled", json!({"requestId": "wait"}));
    assert_eq!(c.ask(&of(&session, &cancel)).await.status, 202);
    server.wait_for("notifications/cancelled", 1).await;
    // For the server it is one client all the time, and nothing came twice.
    let all = server.of("tools/call");
    let sessions: Vec<_> = all
        .iter()
        .map(|seen| seen.header("mcp-session-id"))
        .collect();
    assert!(
        all.len() == 6 && sessions.iter().all(|it| *it == sessions[0]),
        "{sessions:?}"
    );
    assert!(forwarded(b, "ok").await >= 5 && forwarded(a, "ok").await == 0);
    a.delete(&session).await;
    until(async || own.event().await.is_none()).await;
    replicas.end();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn a_suspended_call_goes_on_wherever_its_next_round_arrives() {
    let (server, replicas) = replicas("suspended", "").await;
    let [a, b, c] = replicas.all.as_slice() else {
        unreachable!("three were started")
    };
    let required = a.ask(&modern_call("ask", Value::Null)).await.answer();
    let again = modern_call("ask", next_round(&required));
    assert_eq!(text_of(&b.ask(&again).await.answer()), ROOTS);
    // A state can be used once, anywhere.
    let (used, used_here) = (c.ask(&again).await, a.ask(&again).await);
    assert_eq!(used.status, used_here.status);
    assert_eq!(used.json(), used_here.json());
    assert_eq!(used.json()["error"]["code"], -32602);
    assert_eq!(calls(&server, "ask").len(), 1);
    // A client that hangs up at `c` has cancelled its call at `a`.
    let required = a.ask(&modern_call("ask_on", Value::Null)).await.answer();
    let mut http = c.connect().await;
    http.send(&modern_call("ask_on", next_round(&required)).bytes())
        .await;
    let is_answered = |seen: &ReceivedRequest| seen.body["result"] == roots();
    until(async || {
        server
            .of("POST")
            .iter()
            .filter(|it| is_answered(it))
            .count()
            == 2
    })
    .await;
    assert!(server.of("notifications/cancelled").is_empty());
    drop(http);
    server.wait_for("notifications/cancelled", 1).await;
    // Ordinary calls are forwarded nowhere.
    let before = forwarded(b, "ok").await;
    let plain = b.ask(&modern_call("plain", Value::Null)).await.answer();
    assert_eq!(text_of(&plain), "done");
    assert_eq!(forwarded(b, "ok").await, before);
    replicas.end();
}

/// Calls a tool, and loses the connection after the first event. Returns its id.
pub(super) async fn interrupted(replica: &Gateway, session: &str, tool: &str) -> String {
    let mut http = replica.connect().await;
    let call = call_in(session, tool).with("Accept", "text/event-stream, application/json;q=0.5");
    http.send(&call.bytes()).await;
    assert_eq!(http.head().await.status, 200);
    let first = http.written_event().await.unwrap();
    let id = first.lines().find_map(|line| line.strip_prefix("id: "));
    id.unwrap_or_else(|| panic!("{first}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn a_stream_is_resumed_and_a_kept_result_read_at_any_replica() {
    let (server, replicas) = replicas("resumed", "").await;
    let [a, b, c] = replicas.all.as_slice() else {
        unreachable!("three were started")
    };
    let session = open(a, &json!({})).await;
    // Wherever the session was opened.
    for (at, resumed_at) in [(a, b), (b, a), (b, c)] {
        let last = interrupted(at, &session, "log").await;
        let mut resumed = resumed_at.connect().await;
        let resume = stream_of(&session).with("Last-Event-ID", last);
        resumed.send(&resume.bytes()).await;
        assert_eq!(resumed.head().await.status, 200);
        let mut last = None;
        while let Some(event) = resumed.event().await {
            last = Some(event);
        }
        assert_eq!(text_of(&last.unwrap()), "logged");
    }
    assert_eq!(calls(&server, "log").len(), 3);
    // A client that wants short results reads what was left out.
    let rows = json!({"name": "rows", "arguments": {}});
    let shortened = a.ask(&compact("tools/call", rows)).await.answer();
    let uri = link(&shortened["result"]);
    let read = compact("resources/read", json!({"uri": uri}));
    let here = a.ask(&read).await;
    assert_eq!(here.status, 200, "{}", here.text());
    for replica in [b, c] {
        let there = replica.ask(&read).await;
        assert_eq!(there.json(), here.json());
    }
    replicas.end();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn what_belonged_to_a_dead_replica_is_answered_as_documented_and_nothing_runs_twice() {
    let (server, mut replicas) = replicas("dead", "").await;
    let [a, b, c] = replicas.all.as_slice() else {
        unreachable!("three were started")
    };
    let session = open(a, &json!({"roots": {}})).await;
    let plain = open(a, &json!({})).await;
    let required = a.ask(&modern_call("ask", Value::Null)).await.answer();
    let last = interrupted(a, &plain, "wait").await;
    let mut asking = b.connect().await;
    asking.send(&call_in(&session, "ask").bytes()).await;
    asking.head().await;
    let question = asking.event().await.unwrap();
    signal("KILL", a.server.child.id());
    let died = Instant::now();
    // What was in flight ends without an answer.
    until(async || asking.is_closed().await).await;
    assert!(
        died.elapsed() < Duration::from_secs(5),
        "{:?}",
        died.elapsed()
    );
    let began = Instant::now();
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": roots()});
    let refused = c.ask(&of(&session, &answer)).await;
    let message = refused.json()["error"]["message"].to_string();
    assert!(
        refused.status == 400 && message.contains("has not asked that"),
        "{message}"
    );
    let lost = b
        .ask(&modern_call("ask", next_round(&required)))
        .await
        .json();
    let message = lost["error"]["message"].to_string();
    assert_contains(&message, &["the call waits at another gateway"]);
    let resumed = c
        .ask(&stream_of(&plain).with("Last-Event-ID", last))
        .await
        .answer();
    let message = resumed["error"]["message"].to_string();
    assert_contains(&message, &["the response is no longer stored"]);
    // Sessions go on, with a connection of the replica that serves them now.
    for replica in [b, c] {
        let answer = replica.ask(&call_in(&session, "plain")).await.answer();
        assert_eq!(text_of(&answer), "done");
    }
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(calls(&server, "ask").len(), 2);
    assert_eq!(calls(&server, "plain").len(), 2);
    assert_eq!(calls(&server, "wait").len(), 1);
    drop(replicas.all.remove(0));
    replicas.end();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn a_replica_that_stops_finishes_what_it_answers_for_others_and_begins_no_more() {
    let (server, mut replicas) = replicas("stopping", "").await;
    let [a, b, _] = replicas.all.as_slice() else {
        unreachable!("three were started")
    };
    let session = open(a, &json!({"roots": {}})).await;
    let mut http = b.connect().await;
    http.send(&call_in(&session, "log").bytes()).await;
    server.wait_for("tools/call", 1).await;
    signal("TERM", a.server.child.id());
    until(async || TcpStream::connect(a.server.address).await.is_err()).await;
    // The server sees another connection: that of `b`.
    let answer = b.ask(&call_in(&session, "plain")).await.answer();
    assert_eq!(text_of(&answer), "done");
    assert_eq!(text_of(&http.response().await.answer()), "logged");
    let calls = server.of("tools/call");
    assert_eq!(calls.len(), 2);
    assert_ne!(
        calls[0].header("mcp-session-id"),
        calls[1].header("mcp-session-id")
    );
    replicas.all.remove(0).end();
    replicas.end();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn without_the_store_each_replica_answers_for_itself() {
    let (server, mut replicas) = replicas("cut-off", "").await;
    replicas.redis = None;
    let [a, b, _] = replicas.all.as_slice() else {
        unreachable!("three were started")
    };
    for replica in &replicas.all {
        replica.is_ready_with_store("away").await;
    }
    let session = open(a, &json!({"roots": {}})).await;
    for replica in [a, b] {
        let answer = replica.ask(&call_in(&session, "plain")).await.answer();
        assert_eq!(text_of(&answer), "done");
    }
    let sessions = calls(&server, "plain");
    assert_ne!(
        sessions[0].header("mcp-session-id"),
        sessions[1].header("mcp-session-id")
    );
    let required = a.ask(&modern_call("ask", Value::Null)).await.answer();
    let lost = b
        .ask(&modern_call("ask", next_round(&required)))
        .await
        .json();
    assert_eq!(lost["error"]["code"], -32603);
    replicas.end();
}

/// Two people with a key each.
const TWO_KEYS: &str = "auth: {keys: [{name: bob, sha256: e877dbe9390178860c0dca550f574ce64bcdea8b7c3b6dd2953d63d807b38f42}, \
     {name: ann, sha256: 9d620970db4a3e5fcd68a9d3a407a393dc1ce77cb76e832197e13647717ae834}]}";
const BOB: &str = KEY;
const ANN: &str = "vary_1111111111111111111111111111111111111111111";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn the_streams_of_one_person_leave_those_of_others_their_exchanges() {
    let (_server, replicas) = replicas("shares", TWO_KEYS).await;
    let [a, b, c] = replicas.all.as_slice() else {
        unreachable!("three were started")
    };
    let with = |post: HttpRequest, key: &str| post.with("Authorization", format!("Bearer {key}"));
    let open_with = async |key: &str| {
        let first = HttpRequest::new(initialize("2025-11-25", &json!({"roots": {}})).to_string());
        let opened = a.ask(&with(first, key)).await;
        opened.header("mcp-session-id").unwrap().to_owned()
    };
    let mut streams = Vec::new();
    let mut session = String::new();
    for number in 0..280 {
        if number % 4 == 0 {
            session = open_with(BOB).await;
        }
        let mut stream = b.connect().await;
        stream.send(&with(stream_of(&session), BOB).bytes()).await;
        assert_eq!(stream.head().await.status, 200);
        streams.push(stream);
    }
    // His own requests find no room at `b`, which does not answer in the place of `a`.
    let refused = b.ask(&with(call_in(&session, "plain"), BOB)).await;
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_contains(&refused.text(), &["too many requests are forwarded now"]);
    // A server asks on Ann's call at `b`, and her client answers at `c`.
    let session = open_with(ANN).await;
    let mut asking = b.connect().await;
    asking
        .send(&with(call_in(&session, "ask"), ANN).bytes())
        .await;
    assert_eq!(asking.head().await.status, 200);
    let question = asking.event().await.unwrap();
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": roots()});
    let accepted = c.ask(&with(of(&session, &answer), ANN)).await;
    assert_eq!(accepted.status, 202, "{}", accepted.text());
    assert_eq!(text_of(&asking.event().await.unwrap()), ROOTS);
    drop(streams);
    replicas.end();
}
