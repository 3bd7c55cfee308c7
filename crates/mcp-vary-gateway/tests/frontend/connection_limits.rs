//! Peers that take all connections. Other clients still get in.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::*;

const CONNECTIONS: usize = 50;

async fn harness() -> Harness {
    Harness::with(|config| {
        let mut limits = limits();
        limits.connections = CONNECTIONS;
        limits.read_timeout = Duration::from_secs(5);
        config.with_limits(limits)
    })
    .await
}

/// A client without any connection gets one, and is served, within the time that a request may take.
async fn a_client_gets_in(harness: &Harness, after: &str) {
    let served = async {
        let mut session = LegacyClient::open(harness, "2025-11-25", &json!({})).await;
        let answer = session.answer("tools/call", tool("say")).await;
        assert!(answer["result"].is_object(), "{after}: {answer}");
        let list = modern(json!(1), "tools/list", json!({}), &json!({}));
        let answer = harness
            .connect()
            .await
            .ask(&HttpRequest::modern(&list))
            .await
            .json();
        assert!(answer["result"].is_object(), "{after}: {answer}");
    };
    let served = tokio::time::timeout(Duration::from_secs(20), served).await;
    assert!(served.is_ok(), "{after}: the client was not served");
}

/// Takes more connections than there are, with `open`; whatever becomes of them is kept.
async fn all_of<T>(open: impl AsyncFn(usize) -> T) -> Vec<T> {
    let mut used = Vec::new();
    for at in 0..CONNECTIONS + 10 {
        let opened = tokio::time::timeout(Duration::from_secs(3), open(at)).await;
        let Ok(opened) = opened else { break };
        used.push(opened);
    }
    used
}

/// More sessions than an honest client would open, each with as many streams as it may.
#[tokio::test]
async fn streams_of_many_sessions_leave_a_place_for_a_client() {
    let harness = harness().await;
    // A client with a stream was there before.
    let patient = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let mut stream = stream_of(&harness, &patient).await;
    drop(patient);
    let mut sessions = Vec::new();
    for _ in 0..15 {
        let session = LegacyClient::open(&harness, "2025-11-25", &json!({}))
            .await
            .session;
        sessions.push(session);
    }
    let taken = all_of(async |at| {
        let mut http = harness.connect().await;
        let get = HttpRequest::of(&sessions[at / 4], "").line("GET /mcp HTTP/1.1");
        http.send(&get.with("Accept", "text/event-stream").head())
            .await;
        assert_eq!(http.head().await.status, 200);
        http
    });
    let taken = taken.await;
    a_client_gets_in(&harness, "streams").await;
    drop(taken);
    // It held less than the others, and has its stream still.
    let quiet = tokio::time::timeout(Duration::from_millis(100), stream.event()).await;
    assert!(
        !matches!(quiet, Ok(None)),
        "the stream of the one who took little was closed"
    );
    let evicted = harness.gateway.status().counters["evicted-connections"];
    assert!(evicted > 0, "{evicted}");
}

/// Each is used more often than `read-timeout` closes it.
#[tokio::test]
async fn connections_that_are_used_now_and_then_leave_a_place_for_a_client() {
    let harness = harness().await;
    let session = LegacyClient::open(&harness, "2025-11-25", &json!({}))
        .await
        .session;
    let ping = HttpRequest::of(&session, request(json!(1), "ping", json!({})).to_string());
    let ping = ping.bytes();
    let taken = all_of(async |_| {
        let mut stream = TcpStream::connect(harness.address).await.unwrap();
        stream.write_all(&ping).await.unwrap();
        assert_ne!(stream.read(&mut [0; 4096]).await.unwrap(), 0);
        stream
    });
    let mut used = tokio::task::JoinSet::new();
    for mut stream in taken.await {
        let ping = ping.clone();
        used.spawn(async move {
            let is_open = async |stream: &mut TcpStream| {
                let sent = stream.write_all(&ping).await.is_ok();
                sent && matches!(stream.read(&mut [0; 4096]).await, Ok(1..))
            };
            while is_open(&mut stream).await {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
    }
    a_client_gets_in(&harness, "pings").await;
}

/// Without a session nothing tells one peer from another.
#[tokio::test]
async fn modern_listeners_leave_a_place_for_a_client() {
    let harness = harness().await;
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let message = modern(json!(1), "subscriptions/listen", listen, &json!({}));
    let listen = HttpRequest::modern(&message);
    let taken = all_of(async |_| {
        let mut http = harness.connect().await;
        http.send(&listen.bytes()).await;
        assert_eq!(http.head().await.status, 200);
        http
    });
    let taken = taken.await;
    a_client_gets_in(&harness, "listeners").await;
    drop(taken);
}

#[tokio::test]
async fn connections_that_say_nothing_or_little_leave_a_place_for_a_client() {
    let harness = harness().await;
    for said in ["", "POST /mcp HTTP/1.1\r\nHost: lo"] {
        let taken = all_of(async |_| {
            let mut stream = TcpStream::connect(harness.address).await.unwrap();
            stream.write_all(said.as_bytes()).await.unwrap();
            stream
        });
        let taken = taken.await;
        a_client_gets_in(&harness, "silence").await;
        drop(taken);
    }
}

/// Calls are closed last, and only after the time that a request may take.
#[tokio::test]
async fn calls_that_never_end_leave_a_place_for_a_client() {
    let harness = harness().await;
    let mut sessions = Vec::new();
    for _ in 0..5 {
        let session = LegacyClient::open(&harness, "2025-11-25", &json!({}))
            .await
            .session;
        sessions.push(session);
    }
    let taken = all_of(async |at| {
        let mut http = harness.connect().await;
        let call = request(json!(at), "tools/call", tool("wait"));
        let post = HttpRequest::of(&sessions[at % sessions.len()], call.to_string());
        http.send(&post.bytes()).await;
        harness.peer.wait_for("tools/call", at + 1).await;
        http
    });
    let taken = taken.await;
    assert_eq!(taken.len(), CONNECTIONS);
    a_client_gets_in(&harness, "calls").await;
    drop(taken);
}
