//! What a refusal means: a lost session, or an answer.

use mcp_vary_testkit::captured_log::CapturedLog;
use mcp_vary_testkit::session_server::{LOST_SESSIONS, LostSession, SessionServer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::*;

fn with(name: &str, arguments: &Value) -> Request {
    let params = json!({"name": name, "arguments": arguments});
    Request::new("tools/call", Some(params.to_string())).with_name(name)
}

async fn text(upstream: &UpstreamConnection, request: Request) -> Result<String, String> {
    let (_, outcome) = all(upstream.request(request).await.unwrap()).await;
    outcome.map(|result| result["content"][0]["text"].as_str().unwrap().to_owned())
}

fn lost(name: &str) -> LostSession {
    *LOST_SESSIONS.iter().find(|lost| lost.name == name).unwrap()
}

#[tokio::test]
async fn a_lost_session_heals_however_the_server_says_so() {
    for lost in LOST_SESSIONS {
        let peer = SessionServer::start(*lost, |_| None).await;
        let mut config = config(&peer.server);
        let token = HeaderValue::from_static("Bearer secret");
        let headers = http::HeaderMap::from_iter([(http::header::AUTHORIZATION, token)]);
        let url = peer.server.url.clone();
        config.target = Target::Http { url, headers };
        let upstream = UpstreamConnection::connect(config).await.unwrap();
        let good = |call: &str| with("good", &json!({"call": call}));
        assert_eq!(
            text(&upstream, good("a")).await.unwrap(),
            "done",
            "{}",
            lost.name
        );
        for round in 0..2 {
            peer.forget();
            let mut calls = tokio::task::JoinSet::new();
            for number in 0..5 {
                let (upstream, call) = (Arc::clone(&upstream), format!("{round}-{number}"));
                calls.spawn(
                    async move { text(&upstream, with("good", &json!({"call": call}))).await },
                );
            }
            for outcome in calls.join_all().await {
                if lost.shows_not_run {
                    assert_eq!(outcome.unwrap(), "done", "{}", lost.name);
                } else if let Err(error) = outcome {
                    says(&error, &["`remote`"]);
                }
            }
            let next = text(&upstream, good(&format!("{round}-next"))).await;
            assert_eq!(next.unwrap(), "done", "{}", lost.name);
        }
        assert_eq!(peer.opened(), 3, "{}", lost.name);
        assert!(peer.runs().values().all(|runs| *runs == 1), "{}", lost.name);
    }
}

/// An ordinary refusal of the tool `bad`, in a session that lives.
type Ordinary = fn(&ReceivedRequest) -> Reply;

/// Refusals, and what is said of each.
const ORDINARY: &[(Ordinary, &str)] = &[
    (
        |seen| seen.refuse(404, -32602, "no such item"),
        "no such item",
    ),
    (
        |seen| seen.refuse(404, -32601, "Method not found"),
        "-32601",
    ),
    (
        |seen| seen.refuse(404, -32002, "Resource not found"),
        "-32002",
    ),
    (
        |seen| seen.refuse(404, -32602, "Session of the browser not found"),
        "browser",
    ),
    (|seen| seen.refuse(400, -32602, "bad arguments"), "-32602"),
    (|seen| seen.refuse(401, -32001, "not for you"), "-32001"),
    (|seen| seen.refuse(403, -32003, "not for you"), "-32003"),
    (|seen| seen.refuse(429, -32005, "slower"), "-32005"),
    (|seen| seen.refuse(500, -32603, "oops"), "-32603"),
    (
        |seen| seen.refuse(200, -32000, "the shell session has ended"),
        "shell session",
    ),
    (
        |seen| seen.refuse(200, -32002, "the database is not initialized"),
        "database",
    ),
    (
        |seen| {
            let error = json!({"code": -32602, "message": "in a stream"});
            let message = json!({"jsonrpc": "2.0", "id": seen.id(), "error": error});
            Reply::new(404, "text/event-stream", event(&message))
        },
        "in a stream",
    ),
    (
        |_| Reply::new(401, "text/plain", "who?"),
        "401 Unauthorized",
    ),
    (
        |_| Reply::json(403, &json!({"detail": "no"})),
        "403 Forbidden",
    ),
    (|_| Reply::new(429, "text/plain", ""), "429 Too Many"),
    (
        |_| Reply::new(503, "text/html", "<html>session</html>"),
        "503 Service",
    ),
];

#[tokio::test]
async fn a_refusal_that_is_not_about_the_session_keeps_it_and_is_sent_once() {
    for (refusal, expected) in ORDINARY.iter().copied() {
        let peer = SessionServer::start(lost("404-json"), move |seen| {
            (seen.body["params"]["name"] == "bad").then(|| refusal(seen))
        })
        .await;
        let upstream = connect(&peer.server).await;
        text(&upstream, with("set", &json!({"to": "x"})))
            .await
            .unwrap();
        for _ in 0..2 {
            let error = text(&upstream, with("bad", &json!({}))).await.unwrap_err();
            says(&error, &[expected]);
        }
        let stored = text(&upstream, with("get", &json!({}))).await;
        assert_eq!(
            (stored.unwrap().as_str(), peer.opened()),
            ("\"x\"", 1),
            "{expected}"
        );
        let calls = peer.server.of("tools/call");
        let bad = calls
            .iter()
            .filter(|call| call.body["params"]["name"] == "bad");
        assert_eq!(bad.count(), 2, "{expected}");
    }
}

#[tokio::test]
async fn a_server_that_refuses_new_sessions_as_well_is_not_hammered_and_heals_later() {
    let closed = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_closed = Arc::clone(&closed);
    let peer = SessionServer::start(lost("401-text"), move |seen| {
        let refuses = seen.method() == "initialize" && is_closed.load(Ordering::SeqCst);
        refuses.then(|| Reply::new(401, "text/plain", "token has expired"))
    })
    .await;
    let upstream = connect(&peer.server).await;
    peer.forget();
    closed.store(true, Ordering::SeqCst);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let upstream = Arc::clone(&upstream);
        calls.spawn(async move { text(&upstream, with("good", &json!({}))).await.unwrap_err() });
    }
    for error in calls.join_all().await {
        // The first error stands.
        says(&error, &["401 Unauthorized", "Session not found"]);
    }
    let attempts = peer.server.of("initialize").len();
    assert!(attempts <= 4, "{attempts}");
    closed.store(false, Ordering::SeqCst);
    assert_eq!(
        text(&upstream, with("good", &json!({}))).await.unwrap(),
        "done"
    );
}

#[tokio::test]
async fn a_session_stays_in_use_until_a_new_one_is_answered() {
    let gate = Arc::new(Notify::new());
    let (open, sessions) = (Arc::clone(&gate), AtomicUsize::new(0));
    let peer = SessionServer::start(lost("404-json"), move |seen| {
        if seen.body["params"]["name"] == "elsewhere" {
            return Some(match seen.header("mcp-session-id") {
                Some("s-1") => Reply::new(404, "text/plain", ""),
                _ => seen.answer(&json!({})),
            });
        }
        let is_second =
            seen.method() == "initialize" && sessions.fetch_add(1, Ordering::SeqCst) == 1;
        is_second.then(|| initialize(seen, "s-2").after(&open))
    })
    .await;
    let upstream = connect(&peer.server).await;
    text(&upstream, with("set", &json!({"to": 1})))
        .await
        .unwrap();
    let refused = upstream
        .request(with("elsewhere", &json!({})))
        .await
        .unwrap();
    let refused = tokio::spawn(refused.answer());
    peer.server.wait_for("initialize", 2).await;
    assert_eq!(text(&upstream, with("get", &json!({}))).await.unwrap(), "1");
    gate.notify_one();
    assert!(soon(refused).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_refused_notification_after_the_handshake_is_one_warning_for_all_connections() {
    for status in [400, 401, 403, 404, 405, 406, 500, 503] {
        for has_session in [true, false] {
            let (log, _guard) = CapturedLog::listen("mcp_vary_upstream", tracing::Level::WARN);
            let peer = ScriptedServer::start(move |seen| match seen.method() {
                "initialize" if !has_session => {
                    let result = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
                    Some(seen.answer(&result))
                }
                "notifications/initialized" => Some(Reply::new(status, "text/plain", "what?")),
                _ => None,
            })
            .await;
            let config = config(&peer);
            for _ in 0..2 {
                let upstream = UpstreamConnection::connect(config.clone()).await.unwrap();
                assert!(result(&upstream, "x").await.is_ok(), "{status}");
            }
            let lines = log.take();
            let told: Vec<_> = lines
                .iter()
                .filter(|line| line.contains("initialized refused"))
                .collect();
            assert_eq!(told.len(), 1, "{lines:?}");
            says(told[0], &[&status.to_string(), "what?"]);
        }
    }
}

/// An address that closes connections that carry `server/discover`, and forwards others to `peer`.
async fn closing(peer: &ScriptedServer) -> http::Uri {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let address = peer.address;
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut start = vec![0; 1 << 16];
                let mut length = 0;
                while !String::from_utf8_lossy(&start[..length]).contains("\"method\"") {
                    match client.read(&mut start[length..]).await {
                        Ok(read @ 1..) => length += read,
                        _ => return,
                    }
                }
                if !String::from_utf8_lossy(&start[..length]).contains("server/discover") {
                    let mut server = TcpStream::connect(address).await.unwrap();
                    server.write_all(&start[..length]).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                }
            });
        }
    });
    url.parse().unwrap()
}

#[tokio::test]
async fn a_refused_probe_is_followed_by_initialize() {
    let refusals: [fn(&ReceivedRequest) -> Reply; 7] = [
        |_| Reply::new(401, "text/plain", "Unauthorized: Session not found"),
        |seen| seen.refuse(401, -32001, "Unauthorized"),
        |seen| seen.refuse(403, -32601, "method server/discover is not allowed"),
        |_| Reply::new(403, "text/html", "<!DOCTYPE html><title>Blocked"),
        |_| Reply::new(429, "text/plain", ""),
        |_| Reply::broken(),
        |_| Reply::events("data: {"),
    ];
    for (at, refusal) in refusals.into_iter().enumerate() {
        speaks(&format!("refusal[{at}]"), refusal, Revision::V2025_11_25).await;
        // If `initialize` fails as well, the first error is the one.
        let peer = ScriptedServer::start(move |seen| match seen.method() {
            "server/discover" => Some(Reply::new(401, "text/plain", "log in")),
            _ => Some(refusal(seen)),
        })
        .await;
        let error = fails(config(&peer)).await;
        says(&error, &["401 Unauthorized", "log in"]);
        assert!(error.is_unauthorized());
    }
    let peer = ScriptedServer::start(|_| None).await;
    let target = Target::http(closing(&peer).await);
    let upstream = UpstreamConnection::connect(UpstreamConfig::new("remote", target)).await;
    assert_eq!(
        upstream.unwrap().handshake().revision,
        Revision::V2025_11_25
    );
}

#[tokio::test]
async fn a_probe_that_is_refused_while_initialize_is_slow_does_not_end_the_handshake() {
    let answered = AtomicUsize::new(0);
    let gate = Arc::new(Notify::new());
    let open = Arc::clone(&gate);
    let peer = ScriptedServer::start(move |seen| match seen.method() {
        "initialize" => Some(initialize(seen, "s-1").after(&open)),
        "server/discover" if answered.fetch_add(1, Ordering::SeqCst) == 0 => Some(discover(seen)),
        "server/discover" => Some(Reply::new(403, "text/plain", "")),
        _ => None,
    })
    .await;
    let mut config = config(&peer);
    config.limits.initialize = Duration::from_millis(50);
    config.limits.ping = Duration::ZERO;
    let line = mcp_vary_upstream::SupervisedConnection::open(config);
    soon(line.first_attempt()).await.unwrap();
    // Its clients turn out to have sessions.
    line.prefer_era(mcp_vary_wire::revision::Era::Legacy);
    peer.wait_for("server/discover", 2).await;
    gate.notify_one();
    soon(line.wait_for_preferred_era()).await;
    let era = line.ready().await.unwrap().handshake().era();
    assert_eq!(era, mcp_vary_wire::revision::Era::Legacy);
    line.close().await;
}
