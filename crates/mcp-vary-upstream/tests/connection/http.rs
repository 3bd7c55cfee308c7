//! The gateway as a client of HTTP endpoints, against a scripted peer on a socket.

mod client_certificate;
mod credentials;
mod encodings;
mod event_stream;
mod failures;
mod header_command;
mod list_changes;
mod lost_sessions;
mod requests;
mod server_requests;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::HeaderValue;
use mcp_vary_testkit::scripted_server::{
    ReceivedRequest, Reply, ScriptedServer, discover, event, initialize,
};
use mcp_vary_testkit::wait::soon;
use mcp_vary_upstream::{
    CallerId, ConnectError, Event, Limits, Message, Request, Target, UpstreamConfig,
    UpstreamConnection, UpstreamError,
};
use mcp_vary_wire::headers::header_value;
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::revision::Revision;
use serde_json::{Value, json};
use tokio::sync::{broadcast, mpsc};

use crate::{all, fails, parse, says};

fn config(peer: &ScriptedServer) -> UpstreamConfig {
    let mut limits = Limits::default();
    limits.body = 1 << 20;
    limits.message = 1 << 20;
    UpstreamConfig::new("remote", Target::http(peer.url.clone())).with_limits(limits)
}

async fn connect(peer: &ScriptedServer) -> Arc<UpstreamConnection> {
    UpstreamConnection::connect(config(peer)).await.unwrap()
}

fn call(name: &str) -> Request {
    let params = json!({"name": name, "arguments": {}});
    Request::new("tools/call", Some(params.to_string())).with_name(name)
}

async fn result(upstream: &Arc<UpstreamConnection>, name: &str) -> Result<Value, String> {
    all(upstream.request(call(name)).await.unwrap()).await.1
}

/// A legacy server; `script` decides about `tools/call`.
async fn legacy(
    script: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
) -> ScriptedServer {
    ScriptedServer::start(move |seen| (seen.method() == "tools/call").then(|| script(seen))).await
}

/// A modern server; `script` decides about `tools/call`.
async fn modern(
    script: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
) -> ScriptedServer {
    ScriptedServer::start(move |seen| match seen.method() {
        "server/discover" => Some(discover(seen)),
        "tools/call" => Some(script(seen)),
        "subscriptions/listen" => Some(seen.refuse(404, -32601, "Method not found")),
        _ => None,
    })
    .await
}

/// A server with this answer to `server/discover`, which `case` names, speaks `revision`.
async fn speaks(case: &str, discover: fn(&ReceivedRequest) -> Reply, revision: Revision) {
    let peer = ScriptedServer::start(move |seen| {
        (seen.method() == "server/discover").then(|| discover(seen))
    })
    .await;
    let upstream = connect(&peer).await;
    assert_eq!(upstream.handshake().revision, revision, "{case}");
    assert!(result(&upstream, "x").await.is_ok(), "{case}");
}

#[tokio::test]
async fn the_era_is_found_out_whatever_the_server_does_with_unknown_methods() {
    speaks("modern", discover, Revision::V2026_07_28).await;
    let unknown: [fn(&ReceivedRequest) -> Reply; 8] = [
        |seen| seen.refuse(200, -32601, "unknown"),
        |seen| seen.refuse(400, -32000, "Bad Request: Server not initialized"),
        |_| Reply::new(400, "text/plain", ""),
        |_| Reply::new(404, "text/html", "<h1>Not found</h1>"),
        |_| Reply::new(422, "text/plain", "missing session id"),
        |_| Reply::new(500, "text/plain", "oops"),
        |_| Reply::new(200, "text/plain", "hello"),
        |_| Reply::new(202, "text/plain", ""),
    ];
    for (at, reply) in unknown.into_iter().enumerate() {
        speaks(&format!("unknown[{at}]"), reply, Revision::V2025_11_25).await;
    }
    let older = |_: &ReceivedRequest| {
        let data = json!({"supported": ["2025-06-18", "1900-01-01"]});
        let error =
            json!({"code": -32022, "message": "Unsupported protocol version", "data": data});
        Reply::json(400, &json!({"jsonrpc": "2.0", "id": null, "error": error}))
    };
    speaks("older", older, Revision::V2025_06_18).await;
}

#[tokio::test]
async fn a_modern_server_without_common_revision_is_named_with_its_revisions() {
    let peer = ScriptedServer::start(|seen| {
        let data = json!({"supported": ["2099-01-01"]});
        let error = json!({"code": -32022, "message": "no", "data": data});
        Some(Reply::json(
            400,
            &json!({"jsonrpc": "2.0", "id": seen.id(), "error": error}),
        ))
    })
    .await;
    let error = fails(config(&peer)).await;
    assert!(matches!(error, ConnectError::Revision { .. }));
    says(&error, &["`remote`", "2099-01-01", "2026-07-28"]);
}

/// A modern server that refuses the revision that it names, so often.
async fn refusing(
    times: usize,
) -> (
    ScriptedServer,
    Result<Arc<UpstreamConnection>, ConnectError>,
) {
    let wanted = AtomicUsize::new(0);
    let peer = ScriptedServer::start(move |seen| {
        if wanted.fetch_add(1, Ordering::SeqCst) >= times {
            return Some(discover(seen));
        }
        let data = json!({"supported": ["2026-07-28"], "requested": "2026-07-28"});
        let error = json!({"code": -32022, "message": "no", "data": data});
        let message = json!({"jsonrpc": "2.0", "id": seen.id(), "error": error});
        Some(Reply::json(400, &message))
    })
    .await;
    let connected = UpstreamConnection::connect(config(&peer)).await;
    (peer, connected)
}

#[tokio::test]
async fn a_server_that_refuses_the_revision_it_names_is_asked_once_more_and_never_for_a_session() {
    let (peer, connected) = refusing(1).await;
    assert_eq!(
        connected.unwrap().handshake().revision,
        Revision::V2026_07_28
    );
    let methods: Vec<_> = peer
        .received()
        .iter()
        .map(|seen| seen.method().to_owned())
        .collect();
    assert_eq!(methods[..2], ["server/discover"; 2]);
    assert!(peer.of("initialize").is_empty());
    let (peer, connected) = refusing(2).await;
    says(
        &connected.unwrap_err(),
        &["`remote`", "refused `server/discover`", "-32022"],
    );
    assert_eq!(peer.received().len(), 2);
}

#[tokio::test]
async fn a_handshake_may_come_as_a_stream() {
    let peer = ScriptedServer::start(|seen| match seen.method() {
        "initialize" => {
            let result = json!({"protocolVersion": "2025-06-18", "capabilities": {}});
            let text = format!("id: 1\ndata:\n\n{}", event(&seen.message(&result)));
            Some(Reply::events(text).with_header("mcp-session-id", "s-7"))
        }
        _ => None,
    })
    .await;
    let upstream = connect(&peer).await;
    assert_eq!(upstream.handshake().revision, Revision::V2025_06_18);
    result(&upstream, "x").await.unwrap();
    assert_eq!(
        peer.of("tools/call")[0].header("mcp-session-id"),
        Some("s-7")
    );
}

#[tokio::test]
async fn a_legacy_session_has_the_headers_of_its_revision() {
    let peer = ScriptedServer::start(|_| None).await;
    let mut config = config(&peer);
    if let Target::Http { headers, .. } = &mut config.target {
        headers.insert("authorization", HeaderValue::from_static("Bearer secret"));
        headers.insert("accept", HeaderValue::from_static("text/plain"));
    }
    let upstream = UpstreamConnection::connect(config).await.unwrap();
    result(&upstream, "x").await.unwrap();
    let methods: Vec<_> = peer
        .received()
        .iter()
        .map(|seen| seen.method().to_owned())
        .collect();
    let before_get = methods.iter().filter(|method| *method != "GET");
    assert!(
        before_get.eq([
            "server/discover",
            "initialize",
            "notifications/initialized",
            "ping",
            "tools/call"
        ]
        .iter())
    );
    let initialize = &peer.of("initialize")[0];
    assert_eq!(initialize.header("mcp-protocol-version"), None);
    assert_eq!(initialize.header("mcp-session-id"), None);
    let call = &peer.of("tools/call")[0];
    assert_eq!(call.header("mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!(call.header("mcp-session-id"), Some("s-1"));
    assert_eq!(call.header("authorization"), Some("Bearer secret"));
    assert_eq!(
        call.header("accept"),
        Some("application/json, text/event-stream")
    );
    assert_eq!(call.header("mcp-method"), None);
    assert_eq!(call.header("mcp-name"), None);
    upstream.close().await;
    let farewell = &peer.of("DELETE")[0];
    assert_eq!(farewell.header("mcp-session-id"), Some("s-1"));
    let later = upstream
        .request(Request::new("ping", None))
        .await
        .unwrap_err();
    assert!(matches!(later, UpstreamError::Closed { .. }));
}

#[tokio::test]
async fn a_modern_request_mirrors_its_body_in_headers() {
    let peer = modern(|seen| seen.answer(&json!({}))).await;
    let upstream = connect(&peer).await;
    let header = ("mcp-param-region".parse().unwrap(), header_value("Zürich"));
    let named = call("größe").with_param_headers(vec![header]);
    all(upstream.request(named).await.unwrap()).await.1.unwrap();
    let seen = &peer.of("tools/call")[0];
    assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(seen.header("mcp-method"), Some("tools/call"));
    assert_eq!(seen.header("mcp-name"), Some("=?base64?Z3LDtsOfZQ==?="));
    assert_eq!(
        seen.header("mcp-param-region"),
        Some("=?base64?WsO8cmljaA==?=")
    );
    assert_eq!(seen.header("mcp-session-id"), None);
    let probe = &peer.of("server/discover")[0];
    assert_eq!(probe.header("mcp-method"), Some("server/discover"));
    assert_eq!(probe.body["params"]["_meta"].as_object().unwrap().len(), 3);
    let list = Request::new("tools/list", None).with_name("x");
    let _ = all(upstream.request(list).await.unwrap()).await;
    assert_eq!(peer.of("tools/list")[0].header("mcp-name"), None);
}

#[tokio::test]
async fn a_thousand_notifications_keep_their_order_in_pieces_of_any_size() {
    let peer = legacy(|seen| {
        let mut text = String::from("\u{feff}: hello\r\n\r\n");
        for at in 0..1000 {
            let message = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": at}});
            text += &event(&message);
        }
        text += &event(&seen.message(&json!({"ok": 1})));
        let (sender, reply) = Reply::stream();
        for piece in text.as_bytes().chunks(333) {
            sender.send(piece.to_vec().into()).unwrap();
        }
        reply
    })
    .await;
    let upstream = connect(&peer).await;
    let (notifications, answer) = all(upstream.request(call("x")).await.unwrap()).await;
    let progress = notifications
        .iter()
        .map(|message| message["params"]["progress"].as_u64());
    assert!(progress.eq((0..1000).map(Some)));
    assert_eq!(answer, Ok(json!({"ok": 1})));
}

#[tokio::test]
async fn calls_run_side_by_side_and_connections_are_used_again() {
    let peer = legacy(|seen| seen.answer(&seen.body["params"]["name"])).await;
    let upstream = connect(&peer).await;
    for at in 0..20 {
        assert_eq!(
            result(&upstream, &at.to_string()).await,
            Ok(json!(at.to_string()))
        );
    }
    let connections = peer.connections();
    assert!(connections <= 3, "{connections} connections");
    let mut calls = tokio::task::JoinSet::new();
    for at in 0..50 {
        let upstream = Arc::clone(&upstream);
        calls.spawn(async move {
            assert_eq!(
                result(&upstream, &at.to_string()).await,
                Ok(json!(at.to_string()))
            );
        });
    }
    assert_eq!(calls.join_all().await.len(), 50);
}

#[tokio::test]
async fn a_connection_is_used_again_after_a_stream() {
    let peer = legacy(|seen| Reply::events(event(&seen.message(&json!({}))))).await;
    let upstream = connect(&peer).await;
    for _ in 0..10 {
        result(&upstream, "x").await.unwrap();
        tokio::task::yield_now().await;
    }
    let connections = peer.connections();
    assert!(connections < 8, "{connections} connections");
}

#[tokio::test]
async fn a_dropped_legacy_call_is_cancelled_by_its_own_id() {
    let peer = legacy(|_| Reply::silence()).await;
    let upstream = connect(&peer).await;
    let exchange = upstream.request(call("x")).await.unwrap();
    let running = tokio::spawn(all(exchange));
    let id = peer.wait_for("tools/call", 1).await[0].id().clone();
    running.abort();
    let cancelled = peer.wait_for("notifications/cancelled", 1).await;
    assert_eq!(cancelled[0].body["params"], json!({"requestId": id}));
    assert_eq!(cancelled[0].header("mcp-session-id"), Some("s-1"));
}

#[tokio::test]
async fn a_dropped_modern_call_closes_its_connection_and_says_nothing() {
    let (senders, mut streams) = mpsc::unbounded_channel();
    let peer = modern(move |seen| {
        if seen.body["params"]["name"] == "silent" {
            return Reply::silence();
        }
        let (sender, reply) = Reply::stream();
        sender
            .send("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n".into())
            .unwrap();
        senders.send(sender).unwrap();
        reply
    })
    .await;
    let upstream = connect(&peer).await;
    let running = tokio::spawn(all(upstream.request(call("silent")).await.unwrap()));
    peer.wait_for("tools/call", 1).await;
    running.abort();
    peer.wait_for_abandoned(1).await;
    let mut exchange = upstream.request(call("stream")).await.unwrap();
    assert!(matches!(
        exchange.next().await,
        Ok(Message::Notification(_))
    ));
    drop(exchange);
    soon(streams.recv()).await.unwrap().closed().await;
    assert!(peer.of("notifications/cancelled").is_empty());
}

#[tokio::test]
async fn waiting_can_be_interrupted_without_loss() {
    let (senders, mut streams) = mpsc::unbounded_channel();
    let peer = legacy(move |seen| {
        let (sender, reply) = Reply::stream();
        senders
            .send((sender, seen.message(&json!({"a": "bc"}))))
            .unwrap();
        reply
    })
    .await;
    let upstream = connect(&peer).await;
    let mut exchange = upstream.request(call("x")).await.unwrap();
    let writing = tokio::spawn(async move {
        let (sender, message) = soon(streams.recv()).await.unwrap();
        for byte in event(&message).bytes() {
            sender.send(vec![byte].into()).unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    let answer = loop {
        let next = tokio::time::timeout(Duration::from_micros(300), exchange.next()).await;
        if let Ok(message) = next {
            break message.unwrap();
        }
    };
    let Message::Answer(answer) = answer else {
        panic!("no answer")
    };
    assert_eq!(answer.outcome(), Ok(r#"{"a":"bc"}"#));
    writing.await.unwrap();
}

#[tokio::test]
async fn an_expired_session_is_renewed_once_and_no_call_runs_twice() {
    let ran = Arc::new(AtomicUsize::new(0));
    let runs = Arc::clone(&ran);
    let sessions = AtomicUsize::new(0);
    let peer = ScriptedServer::start(move |seen| match seen.method() {
        "initialize" => {
            let number = sessions.fetch_add(1, Ordering::SeqCst) + 1;
            Some(initialize(seen, &format!("s-{number}")))
        }
        "tools/call" if seen.header("mcp-session-id") == Some("s-1") => {
            Some(Reply::new(404, "text/plain", "Session not found"))
        }
        "tools/call" => {
            runs.fetch_add(1, Ordering::SeqCst);
            Some(seen.answer(&json!({})))
        }
        _ => None,
    })
    .await;
    let upstream = connect(&peer).await;
    let mut events = upstream.events();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let upstream = Arc::clone(&upstream);
        calls.spawn(async move { result(&upstream, "x").await.unwrap() });
    }
    assert_eq!(calls.join_all().await.len(), 10);
    assert_eq!(peer.of("initialize").len(), 2);
    assert_eq!(ran.load(Ordering::SeqCst), 10);
    assert!(matches!(
        soon(events.recv()).await,
        Ok(Event::ListMayHaveChanged(Kind::Tools))
    ));
}

#[tokio::test]
async fn a_session_that_is_gone_for_good_is_an_error() {
    let peer = legacy(|_| Reply::new(404, "text/plain", "Session not found")).await;
    let upstream = connect(&peer).await;
    let error = result(&upstream, "x").await.unwrap_err();
    says(&error, &["`remote`", "404 Not Found", "Session not found"]);
    assert_eq!(peer.of("tools/call").len(), 2);
}

#[tokio::test]
async fn a_server_that_says_400_for_an_expired_session_is_understood() {
    let calls = AtomicUsize::new(0);
    let peer = legacy(move |seen| match calls.fetch_add(1, Ordering::SeqCst) {
        0 => seen.refuse(400, -32000, "Bad Request: No valid session ID provided"),
        _ => seen.answer(&json!({})),
    })
    .await;
    let upstream = connect(&peer).await;
    assert_eq!(result(&upstream, "x").await, Ok(json!({})));
    assert_eq!(peer.of("initialize").len(), 2);
}

#[tokio::test]
async fn a_broken_stream_is_resumed_where_it_was_left() {
    let peer = ScriptedServer::start(move |seen| match seen.method() {
        "tools/call" => {
            let one =
                json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": 1}});
            Some(Reply::events(format!(
                "retry: 5\nid: e-1\n{}id: e-2\ndata:\n\n",
                event(&one)
            )))
        }
        "GET" if seen.header("last-event-id") == Some("e-2") => {
            let two =
                json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": 2}});
            Some(Reply::events(format!("id: e-3\n{}", event(&two))))
        }
        "GET" if seen.header("last-event-id") == Some("e-3") => Some(Reply::events(event(
            &json!({"jsonrpc": "2.0", "id": 4, "result": {"done": true}}),
        ))),
        _ => None,
    })
    .await;
    let upstream = connect(&peer).await;
    let (notifications, answer) = all(upstream.request(call("x")).await.unwrap()).await;
    let data: Vec<_> = notifications
        .iter()
        .map(|message| &message["params"]["data"])
        .collect();
    assert_eq!(data, [1, 2]);
    assert_eq!(answer, Ok(json!({"done": true})));
    let resumed = peer
        .of("GET")
        .into_iter()
        .find(|seen| seen.header("last-event-id").is_some());
    let resumed = resumed.unwrap();
    assert_eq!(resumed.header("accept"), Some("text/event-stream"));
    assert_eq!(resumed.header("mcp-session-id"), Some("s-1"));
}

#[tokio::test]
async fn attempts_to_resume_are_bounded() {
    let peer = ScriptedServer::start(move |seen| match seen.method() {
        "tools/call" => Some(Reply::events("retry: 1\nid: e-1\ndata:\n\n")),
        "GET" if seen.header("last-event-id").is_some() => Some(Reply::new(503, "text/plain", "")),
        _ => None,
    })
    .await;
    let upstream = connect(&peer).await;
    let error = result(&upstream, "x").await.unwrap_err();
    says(&error, &["`remote`", "could not be resumed"]);
    let attempts = peer
        .of("GET")
        .into_iter()
        .filter(|seen| seen.header("last-event-id").is_some());
    assert_eq!(attempts.count(), 5);
}

#[tokio::test]
async fn a_stream_that_ends_without_an_answer_is_an_error() {
    let peer = legacy(|_| Reply::events(": nothing\n\n")).await;
    let error = result(&connect(&peer).await, "x").await.unwrap_err();
    says(&error, &["`remote`", "ended without an answer"]);
    // A modern stream is not resumed, whatever ids it has.
    let peer = modern(|_| Reply::events("id: 1\ndata:\n\n")).await;
    let error = result(&connect(&peer).await, "x").await.unwrap_err();
    says(&error, &["`remote`", "ended without an answer"]);
}

type Senders = mpsc::UnboundedReceiver<mpsc::UnboundedSender<bytes::Bytes>>;

/// A server that opens a stream for `method`, which the test writes; before that, it refuses as `refusals` say.
/// It knows no event `gone`.
async fn streams(
    method: &'static str,
    refusals: impl IntoIterator<Item = fn(&ReceivedRequest) -> Reply>,
) -> (ScriptedServer, Senders) {
    let (senders, streams) = mpsc::unbounded_channel();
    let refusals = Mutex::new(refusals.into_iter().collect::<VecDeque<_>>());
    let peer = ScriptedServer::start(move |seen| match seen.method() {
        "server/discover" if method != "GET" => Some(discover(seen)),
        requested if requested == method => {
            if seen.header("last-event-id") == Some("gone") {
                return Some(Reply::new(400, "text/plain", "no such event"));
            }
            if let Some(refusal) = refusals.lock().unwrap().pop_front() {
                return Some(refusal(seen));
            }
            let (sender, reply) = Reply::stream();
            let _ = senders.send(sender);
            Some(reply)
        }
        _ => None,
    })
    .await;
    (peer, streams)
}

#[tokio::test]
async fn replies_to_a_server_that_asks_without_end_are_bounded() {
    let peer = ScriptedServer::start(|seen| match seen.method() {
        "tools/call" => {
            let ping = event(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}));
            let answer = event(&seen.message(&json!({})));
            Some(Reply::events(ping.repeat(1000) + &answer))
        }
        // Its replies are never taken.
        "POST" => Some(Reply::silence()),
        _ => None,
    })
    .await;
    let upstream = connect(&peer).await;
    result(&upstream, "x").await.unwrap();
    peer.wait_for("POST", 32).await;
    // Whatever was to be sent has been; the next calls come after it.
    for _ in 0..100 {
        upstream.notify("notifications/x", None).await.unwrap();
    }
    assert_eq!(peer.of("POST").len(), 32);
}

#[tokio::test]
async fn nothing_secret_is_shown_by_debug() {
    let peer = ScriptedServer::start(|seen| match seen.method() {
        "initialize" => Some(initialize(seen, "secret-session")),
        _ => None,
    })
    .await;
    let mut config = config(&peer);
    if let Target::Http { url, headers } = &mut config.target {
        *url = format!("{}/secret-path?key=secret-query", peer.url)
            .parse()
            .unwrap();
        headers.insert("x-key", HeaderValue::from_static("secret-header"));
    }
    let upstream = UpstreamConnection::connect(config).await.unwrap();
    let exchange = upstream.request(call("x")).await.unwrap();
    let shown = format!("{upstream:#?} {exchange:#?}");
    assert!(
        shown.contains("remote") && !shown.contains("secret"),
        "{shown}"
    );
}

#[tokio::test]
async fn progress_beside_the_stream_of_its_call_finds_it() {
    let (senders, mut streams) = mpsc::unbounded_channel();
    let peer = ScriptedServer::start(move |seen| match seen.method() {
        "GET" | "tools/call" => {
            let (sender, reply) = Reply::stream();
            let _ = senders.send((sender, seen.clone()));
            Some(reply)
        }
        _ => None,
    })
    .await;
    let upstream = connect(&peer).await;
    let (standalone, seen) = soon(streams.recv()).await.unwrap();
    assert_eq!(seen.verb, "GET");
    let request = Request {
        progress_token: Some("\"t\"".to_owned()),
        ..call("x")
    };
    let mut exchange = upstream.request(request).await.unwrap();
    let progress = "notifications/progress";
    let (fetch, fetched) = tokio::sync::oneshot::channel();
    let running = tokio::spawn(async move {
        let first = exchange.next().await;
        fetch.send(()).unwrap();
        (first, all(exchange).await)
    });
    let (sender, seen) = soon(streams.recv()).await.unwrap();
    for token in ["other", "t"] {
        let params = json!({"progressToken": token, "progress": 1});
        let message = json!({"jsonrpc": "2.0", "method": progress, "params": params});
        standalone.send(event(&message).into()).unwrap();
    }
    // Two sockets have no order, so the answer follows once the progress has been fetched.
    fetched.await.unwrap();
    sender
        .send(event(&seen.message(&json!({}))).into())
        .unwrap();
    let (first, rest) = running.await.unwrap();
    let Ok(Message::Notification(first)) = first else {
        panic!("no progress");
    };
    assert_eq!(parse(&first)["params"]["progressToken"], "t");
    assert_eq!(rest, (Vec::new(), Ok(json!({}))));
}

#[tokio::test]
async fn a_dropped_connection_ends_its_session() {
    let peer = ScriptedServer::start(|_| None).await;
    drop(connect(&peer).await);
    let farewell = peer.wait_for("DELETE", 1).await;
    assert_eq!(farewell[0].header("mcp-session-id"), Some("s-1"));
}
