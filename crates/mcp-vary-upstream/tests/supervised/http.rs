//! Endpoints.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use mcp_vary_testkit::captured_log::CapturedLog;
use mcp_vary_testkit::raw_request::RawRequest;
use mcp_vary_testkit::scripted_server::{
    ReceivedRequest, Reply, ScriptedServer, discover, initialize,
};
use mcp_vary_testkit::session_server::{DISGUISED_LOSSES, LOST_SESSIONS, SessionServer};
use mcp_vary_testkit::wait::{soon, until};
use mcp_vary_upstream::{ConcurrencyLimit, Message, SupervisedConnection, Target, UpstreamConfig};
use mcp_vary_wire::revision::Era;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::sync::Barrier;
use tracing::Level;

use crate::support::{call, limits, next, open, pauses, result, says};

const UNANSWERED: &str = "server `remote` closed the connection without an answer";

fn config(peer: &ScriptedServer) -> UpstreamConfig {
    let mut limits = limits();
    limits.max_backoff = Duration::from_millis(100);
    UpstreamConfig::new("remote", Target::http(peer.url.clone())).with_limits(limits)
}

/// Answers calls but `hang`.
fn script(era: Era) -> impl Fn(&ReceivedRequest) -> Option<Reply> + Send + Sync + 'static {
    move |seen| match (seen.method(), era) {
        ("server/discover", Era::Modern) => Some(discover(seen)),
        ("initialize", Era::Modern) => Some(seen.refuse(400, -32601, "Method not found")),
        ("subscriptions/listen", _) => Some(seen.refuse(404, -32601, "Method not found")),
        ("tools/call", _) if seen.body["params"]["name"] == "hang" => Some(Reply::silence()),
        _ => None,
    }
}

/// Whichever it was, the line is told once that it was lost and once that it is back.
async fn comes_back(first: Era, second: Era) {
    let peer = ScriptedServer::start(script(first)).await;
    let line = SupervisedConnection::open(config(&peer));
    let mut events = line.events();
    let upstream = line.first_attempt().await.unwrap();
    let hanging = upstream.request(call("hang", &json!({}))).await.unwrap();
    let hanging = tokio::spawn(hanging.answer());
    peer.wait_for("tools/call", 1).await;
    let address = peer.stop().await;
    let error = hanging.await.unwrap().unwrap_err();
    // It had arrived, so that nobody knows what became of it.
    assert_eq!(error.to_string(), UNANSWERED);
    assert_eq!(next(&mut events).await, "connected");
    let lost = next(&mut events).await;
    assert_eq!(lost, "lost: server `remote` cannot be reached");
    assert_eq!(pauses(&line, 2).await, [40, 80]);
    // Whoever still had the old connection in hand is told of the loss, too, not of its end.
    let error = match upstream.request(call("echo", &json!({}))).await {
        Ok(late) => late.answer().await.unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(error.to_string(), "server `remote` cannot be reached");
    let down = line.ready().await.unwrap_err();
    let why = "server `remote` is down: it cannot be reached; it is";
    says(&down, &[why]);
    says(&down.details(), &["refused"]);
    let peer = ScriptedServer::start_at(address, script(second)).await;
    assert_eq!(next(&mut events).await, "connected");
    let upstream = line.ready().await.unwrap();
    assert_eq!(upstream.handshake().era(), second);
    result(&upstream, "echo", &json!({})).await;
    // What failed was not repeated.
    assert_eq!(peer.of("tools/call").len(), 1);
    line.close().await;
}

#[tokio::test]
async fn an_endpoint_that_died_is_connected_to_again() {
    comes_back(Era::Legacy, Era::Legacy).await;
    comes_back(Era::Modern, Era::Modern).await;
    comes_back(Era::Legacy, Era::Modern).await;
    comes_back(Era::Modern, Era::Legacy).await;
}

#[tokio::test]
async fn the_end_of_an_endpoint_is_found_out_though_nobody_calls() {
    for era in [Era::Legacy, Era::Modern] {
        let peer = ScriptedServer::start(script(era)).await;
        let mut config = config(&peer);
        config.limits.ping = Duration::from_millis(50);
        let line = SupervisedConnection::open(config);
        line.first_attempt().await.unwrap();
        let mut events = line.events();
        peer.stop().await;
        let lost = next(&mut events).await;
        assert_eq!(lost, "lost: server `remote` cannot be reached");
        line.close().await;
    }
}

#[tokio::test]
async fn an_endpoint_that_hangs_is_given_up_with_its_calls() {
    for era in [Era::Legacy, Era::Modern] {
        let hangs = Arc::new(AtomicBool::new(false));
        let (is_hung, polite) = (Arc::clone(&hangs), script(era));
        let peer = ScriptedServer::start(move |seen| {
            let silence = is_hung.load(Ordering::SeqCst);
            silence.then(Reply::silence).or_else(|| polite(seen))
        })
        .await;
        let mut config = config(&peer);
        config.limits.ping = Duration::from_millis(50);
        config.limits.hang_timeout = Duration::from_secs(1);
        config.limits.idle = Duration::from_secs(3);
        let question = match era {
            Era::Legacy => "ping",
            Era::Modern => "server/discover",
        };
        let (line, upstream) = open(config).await;
        let mut events = line.events();
        hangs.store(true, Ordering::SeqCst);
        let first = upstream.request(call("x", &json!({}))).await.unwrap();
        let first = tokio::spawn(first.answer());
        // Asked while a call runs, the endpoint has as long as the call.
        let asked = peer.of(question).len();
        peer.wait_for(question, asked + 1).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let second = upstream.request(call("x", &json!({}))).await.unwrap();
        let error = second.answer().await.unwrap_err();
        says(&error, &["`remote` hung", "3s after a health check"]);
        assert!(first.await.unwrap().is_err());
        says(&next(&mut events).await, &["lost: server `remote` hung"]);
        hangs.store(false, Ordering::SeqCst);
        assert_eq!(next(&mut events).await, "connected");
        result(&line.ready().await.unwrap(), "x", &json!({})).await;
        line.close().await;
    }
}

#[tokio::test]
async fn a_session_of_another_server_makes_the_line_connect_anew() {
    let sessions = AtomicUsize::new(0);
    let peer = ScriptedServer::start(move |seen| match seen.method() {
        "initialize" => {
            let number = sessions.fetch_add(1, Ordering::SeqCst) + 1;
            let result = json!({
                "protocolVersion": seen.body["params"]["protocolVersion"],
                "capabilities": if number == 1 { json!({"tools": {}}) } else { json!({"prompts": {}}) },
            });
            Some(seen.answer(&result).with_header("mcp-session-id", format!("s-{number}")))
        }
        _ if seen.header("mcp-session-id") == Some("s-1") && seen.verb != "DELETE" => {
            let is_call = seen.method() == "tools/call";
            is_call.then(|| Reply::new(404, "text/plain", "Session not found"))
        }
        _ => None,
    })
    .await;
    let (line, upstream) = open(config(&peer)).await;
    let mut events = line.events();
    assert_eq!(upstream.handshake().capabilities, r#"{"tools":{}}"#);
    // The call itself was refused, and is asked in the new session.
    result(&upstream, "x", &json!({})).await;
    assert_eq!(next(&mut events).await, "connected");
    let upstream = line.ready().await.unwrap();
    assert_eq!(upstream.handshake().capabilities, r#"{"prompts":{}}"#);
    result(&upstream, "x", &json!({})).await;
    // The session that was only in between is ended.
    let ended = peer.wait_for("DELETE", 1).await;
    assert_eq!(ended[0].header("mcp-session-id"), Some("s-2"));
    line.close().await;
}

#[tokio::test]
async fn calls_run_on_when_a_modern_endpoint_says_something_else_about_itself() {
    let (writer, stream) = Reply::stream();
    let stream = std::sync::Mutex::new(Some(stream));
    let is_other = Arc::new(AtomicBool::new(false));
    let other = Arc::clone(&is_other);
    let peer = ScriptedServer::start(move |seen| match seen.method() {
        "server/discover" if other.load(Ordering::SeqCst) => Some(seen.answer(&json!({
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"prompts": {}},
        }))),
        "server/discover" => Some(discover(seen)),
        "subscriptions/listen" => Some(seen.refuse(404, -32601, "Method not found")),
        "tools/call" => stream.lock().unwrap().take(),
        _ => None,
    })
    .await;
    let mut config = config(&peer);
    config.limits.ping = Duration::from_millis(50);
    let (line, upstream) = open(config).await;
    let mut events = line.events();
    let mut running = upstream.request(call("x", &json!({}))).await.unwrap();
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
    writer.send(format!("data: {progress}\n\n").into()).unwrap();
    assert!(matches!(running.next().await, Ok(Message::Notification(_))));
    is_other.store(true, Ordering::SeqCst);
    assert_eq!(next(&mut events).await, "connected");
    let now = line.ready().await.unwrap();
    assert_eq!(now.handshake().capabilities, r#"{"prompts":{}}"#);
    let answer = json!({"jsonrpc": "2.0", "id": peer.of("tools/call")[0].id(), "result": {}});
    writer.send(format!("data: {answer}\n\n").into()).unwrap();
    assert!(matches!(running.next().await, Ok(Message::Answer(_))));
    line.close().await;
}

/// A server of the other era takes the place of an endpoint before anybody noticed that it was gone.
async fn is_recognized(first: Era, second: Era, refusal: fn(&ReceivedRequest) -> Reply) {
    let peer = ScriptedServer::start(script(first)).await;
    let (line, upstream) = open(config(&peer)).await;
    let mut events = line.events();
    let address = peer.stop().await;
    let polite = script(second);
    let peer = ScriptedServer::start_at(address, move |seen| {
        let version = seen.header("mcp-protocol-version");
        let is_known = match second {
            Era::Modern => version == Some("2026-07-28"),
            Era::Legacy => seen.header("mcp-session-id").is_some(),
        };
        let is_first = matches!(seen.method(), "initialize" | "DELETE" | "GET");
        match seen.method() {
            "initialize" if second == Era::Modern => Some(refusal(seen)),
            _ if is_first || is_known => polite(seen),
            _ => Some(refusal(seen)),
        }
    })
    .await;
    // Whoever calls first finds out.
    let exchange = upstream.request(call("x", &json!({}))).await.unwrap();
    let answer = exchange.answer().await;
    assert!(answer.is_err() || answer.unwrap().outcome().is_err());
    while line.ready().await.unwrap().handshake().era() != second {
        next(&mut events).await;
    }
    result(&line.ready().await.unwrap(), "x", &json!({})).await;
    assert_eq!(peer.of("tools/call").len(), 2);
    line.close().await;
}

#[tokio::test]
async fn a_server_of_the_other_era_is_recognized_by_its_refusals() {
    let unsupported = |seen: &ReceivedRequest| {
        let error = json!({"code": -32022, "message": "no", "data": {"supported": ["2026-07-28"]}});
        let message = json!({"jsonrpc": "2.0", "id": seen.id(), "error": error});
        Reply::json(400, &message)
    };
    is_recognized(Era::Legacy, Era::Modern, unsupported).await;
    let empty = |_: &ReceivedRequest| Reply::new(400, "text/plain", "");
    is_recognized(Era::Legacy, Era::Modern, empty).await;
    let unknown = |seen: &ReceivedRequest| seen.refuse(404, -32601, "Method not found");
    is_recognized(Era::Legacy, Era::Modern, unknown).await;
    is_recognized(Era::Modern, Era::Legacy, unknown).await;
    let uninitialized = |_: &ReceivedRequest| {
        let error = json!({"code": -32000, "message": "Bad Request: Server not initialized"});
        Reply::json(400, &json!({"jsonrpc": "2.0", "id": null, "error": error}))
    };
    is_recognized(Era::Modern, Era::Legacy, uninitialized).await;
}

#[tokio::test]
async fn a_silent_endpoint_is_asked_once_in_a_while_and_left_alone_whatever_it_answers() {
    for status in [200, 400, 500, 503] {
        let peer = ScriptedServer::start(move |seen| match seen.method() {
            "initialize" => Some(initialize(seen, "s").with_header("mcp-session-id", "s")),
            "ping" if status != 200 => Some(seen.refuse(status, -32601, "what?")),
            _ => None,
        })
        .await;
        let mut config = config(&peer);
        config.limits.ping = Duration::from_millis(100);
        let (line, upstream) = open(config).await;
        let began = std::time::Instant::now();
        let before = peer.of("ping").len();
        let asked = peer.wait_for("ping", before + 4).await.len() - before;
        let most = began.elapsed().as_millis() / 100 + 1;
        assert!(asked as u128 <= most, "{asked} questions, not {most}");
        let now = line.ready().await.unwrap();
        assert!(Arc::ptr_eq(&upstream, &now), "HTTP {status}");
        line.close().await;
    }
}

#[tokio::test]
async fn a_server_that_does_not_find_ping_is_not_asked_again() {
    let sessions = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sessions);
    let peer = ScriptedServer::start(move |seen| match seen.method() {
        "initialize" => {
            count.fetch_add(1, Ordering::SeqCst);
            None
        }
        "ping" => Some(seen.refuse(404, -32601, "Method not found")),
        _ => None,
    })
    .await;
    let often = |peer: &ScriptedServer| {
        let mut config = config(peer);
        config.limits.ping = Duration::from_millis(20);
        config.limits.hang_timeout = Duration::from_secs(10);
        SupervisedConnection::open(config)
    };
    let line = often(&peer);
    let upstream = soon(line.first_attempt()).await.unwrap();
    peer.wait_for("ping", 1).await;
    // In the same time a server that finds `ping` is asked again and again.
    let other = ScriptedServer::start(|seen| match seen.method() {
        "ping" => Some(seen.refuse(500, -32603, "Internal error")),
        _ => None,
    })
    .await;
    let control = often(&other);
    other.wait_for("ping", 10).await;
    control.close().await;
    result(&upstream, "x", &json!({})).await;
    assert_eq!(peer.of("ping").len(), 1);
    assert_eq!(sessions.load(Ordering::SeqCst), 1);
    line.close().await;
}

#[tokio::test]
async fn a_session_that_is_forgotten_is_found_out_though_nobody_calls() {
    let peer = ScriptedServer::start(script(Era::Legacy)).await;
    let mut config = config(&peer);
    config.limits.ping = Duration::from_millis(50);
    let line = SupervisedConnection::open(config);
    line.first_attempt().await.unwrap();
    let address = peer.stop().await;
    // Another one, in its place before anybody noticed, with other sessions and other lists.
    let peer = ScriptedServer::start_at(address, |seen| match seen.method() {
        "initialize" => Some(initialize(seen, "s-2")),
        _ if seen.header("mcp-session-id") == Some("s-1") => {
            Some(Reply::new(404, "text/plain", "Session not found"))
        }
        _ => None,
    })
    .await;
    peer.wait_for("initialize", 1).await;
    line.close().await;
}

#[tokio::test]
async fn a_lost_session_is_found_out_by_pings_however_the_server_says_so() {
    let mut waiting = tokio::task::JoinSet::new();
    for lost in LOST_SESSIONS.iter().chain(DISGUISED_LOSSES) {
        waiting.spawn(async move {
            let peer = SessionServer::start(*lost, |_| None).await;
            let mut config = config(&peer.server);
            config.limits.ping = Duration::from_millis(50);
            let (line, _) = open(config).await;
            peer.forget();
            peer.server.wait_for("initialize", 2).await;
            line.close().await;
        });
    }
    waiting.join_all().await;
}

#[tokio::test]
async fn a_lost_session_that_looks_like_errors_of_calls_heals_between_calls() {
    for lost in DISGUISED_LOSSES {
        let peer = SessionServer::start(*lost, |_| None).await;
        let (line, upstream) = open(config(&peer.server)).await;
        let is_good = async || {
            let call = call("good", &json!({"call": "a"}));
            let answer = upstream.request(call).await.unwrap().answer();
            soon(answer).await.unwrap().outcome().is_ok()
        };
        assert!(is_good().await, "{}", lost.name);
        peer.forget();
        // Calls keep the connection alive, so that it is never silent for long enough to be pinged.
        until(is_good).await;
        assert_eq!(peer.opened(), 2, "{}", lost.name);
        line.close().await;
    }
}

/// Answers the handshake, and calls as `stays` says: where it says no, the connection is closed unanswered.
async fn rude<Stays>(
    listener: TcpListener,
    stays: impl Fn(usize, String) -> Stays + Send + Sync + 'static,
) where
    Stays: Future<Output = bool> + Send + 'static,
{
    let stays = Arc::new(stays);
    for number in 0.. {
        let (mut socket, _) = listener.accept().await.unwrap();
        let stays = Arc::clone(&stays);
        tokio::spawn(async move {
            while let Some(request) = RawRequest::read(&mut socket).await {
                let body: serde_json::Value =
                    serde_json::from_str(&request.body).unwrap_or_default();
                let result = match body["method"].as_str() {
                    Some("tools/call") => {
                        let tool = body["params"]["name"].as_str().unwrap_or_default();
                        if !stays(number, tool.to_owned()).await {
                            return;
                        }
                        json!({"content": []})
                    }
                    Some("server/discover") => {
                        json!({"supportedVersions": ["2026-07-28"], "capabilities": {}})
                    }
                    _ => json!({}),
                };
                let answer =
                    json!({"jsonrpc": "2.0", "id": body["id"], "result": result}).to_string();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ";
                let reply = format!("{head}{}\r\n\r\n{answer}", answer.len());
                socket.write_all(reply.as_bytes()).await.unwrap();
            }
        });
    }
}

/// The listener of a server that is [`rude`], and a connection to it.
async fn line_to_rude() -> (TcpListener, Arc<SupervisedConnection>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let config = UpstreamConfig::new("remote", Target::http(url.parse().unwrap()));
    let line = SupervisedConnection::open(config.with_limits(limits()));
    (listener, line)
}

#[tokio::test]
async fn a_call_that_may_have_been_received_is_not_sent_again() {
    let (listener, line) = line_to_rude().await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let serving = tokio::spawn(rude(listener, move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        ready(false)
    }));
    for count in 1..=3 {
        // The connection of the handshake, or of the question that follows, is used again.
        let upstream = line.ready().await.unwrap();
        let exchange = upstream.request(call("x", &json!({}))).await.unwrap();
        let error = exchange.answer().await.unwrap_err();
        assert_eq!(error.to_string(), UNANSWERED);
        assert_eq!(calls.load(Ordering::SeqCst), count);
    }
    line.close().await;
    serving.abort();
}

/// A server that dies closes its connections one after the other.
#[tokio::test]
async fn a_connection_that_was_open_when_the_server_was_lost_is_not_used_again() {
    let (listener, line) = line_to_rude().await;
    let newest = Arc::new(AtomicUsize::new(0));
    let lost = Arc::new(AtomicUsize::new(usize::MAX));
    let both = Arc::new(Barrier::new(2));
    let serving = tokio::spawn(rude(listener, move |number, tool| {
        let last = newest.fetch_max(number, Ordering::SeqCst).max(number);
        let (lost, both) = (Arc::clone(&lost), Arc::clone(&both));
        async move {
            match tool.as_str() {
                "together" => {
                    both.wait().await;
                    true
                }
                "die" => {
                    lost.store(last, Ordering::SeqCst);
                    false
                }
                _ => number > lost.load(Ordering::SeqCst),
            }
        }
    }));
    let upstream = line.ready().await.unwrap();
    let none = json!({});
    tokio::join!(
        result(&upstream, "together", &none),
        result(&upstream, "together", &none)
    );
    let exchange = upstream.request(call("die", &none)).await.unwrap();
    let error = exchange.answer().await.unwrap_err();
    assert_eq!(error.to_string(), UNANSWERED);
    let upstream = line.ready().await.unwrap();
    assert_eq!(result(&upstream, "x", &none).await, json!({"content": []}));
    line.close().await;
    serving.abort();
}

/// Connections of several clients, to a server that is away for a while.
#[tokio::test]
async fn a_server_that_is_back_is_back_for_all_its_connections_and_away_once_in_the_log() {
    let (log, _listening) = CapturedLog::listen("mcp_vary_upstream", Level::WARN);
    let is_away = Arc::new(AtomicBool::new(true));
    let away = Arc::clone(&is_away);
    let peer = ScriptedServer::start(move |seen| {
        let is_away = away.load(Ordering::SeqCst);
        is_away
            .then(|| Reply::new(503, "text/plain", ""))
            .or_else(|| script(Era::Legacy)(seen))
    })
    .await;
    let mut config = config(&peer);
    config.limits.backoff = Duration::from_secs(600);
    config.limits.max_backoff = Duration::from_secs(600);
    let (concurrency, facts) = (ConcurrencyLimit::new(&config.limits), Arc::default());
    let concurrency = Arc::new(concurrency);
    let open = || {
        let (concurrency, facts) = (Arc::clone(&concurrency), Arc::clone(&facts));
        SupervisedConnection::open_sharing(config.clone(), concurrency, facts)
    };
    let waiting = [open(), open(), open()];
    for line in &waiting {
        assert!(soon(line.first_attempt()).await.is_err());
    }
    let lines = log.take();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("server is down"), "{lines:?}");
    is_away.store(false, Ordering::SeqCst);
    // A client that comes now reaches it, and so do the others, long before their next attempt.
    let newcomer = open();
    soon(newcomer.first_attempt()).await.unwrap();
    for line in &waiting {
        until(async || line.current().is_some()).await;
    }
    assert_eq!(log.take(), [""; 0]);
}
