//! Streams end with the credential that opened them; calls in flight finish.

use std::sync::atomic::AtomicU64;

use super::clients::{NOW, Session, bearer, claims, key, keys, tokens};
use crate::support::*;

/// With short pauses between the checks of streams, and with patience for connections without a request.
fn watched(mut config: Config) -> Config {
    config.limits.read_timeout = Duration::from_secs(3_600);
    if let Some(authentication) = &mut config.authentication {
        authentication.stream_check = Duration::from_millis(20);
    }
    config
}

fn with_keys(mut config: Config, names: &[&str]) -> Config {
    config.authentication = Some(keys(names));
    watched(config)
}

/// The stream of a session, and one that listens without.
async fn streams(harness: &Harness, token: &str) -> [RawHttp; 2] {
    let session = Session::open(harness, token, &json!({})).await;
    let get = HttpRequest::of(&session.id, "").line("GET /mcp HTTP/1.1");
    let mut of_session = harness.connect().await;
    of_session.send(&bearer(get, token).bytes()).await;
    assert_eq!(of_session.head().await.status, 200);
    let params = json!({"notifications": {"toolsListChanged": true}});
    let listen = modern(json!(1), "subscriptions/listen", params, &json!({}));
    let mut listening = harness.connect().await;
    listening
        .send(&bearer(HttpRequest::modern(&listen), token).bytes())
        .await;
    assert_eq!(listening.head().await.status, 200);
    assert!(soon(listening.event()).await.is_some(), "acknowledged");
    [of_session, listening]
}

async fn have_ended([mut of_session, mut listening]: [RawHttp; 2]) {
    assert_eq!(soon(of_session.event()).await, None);
    assert!(of_session.is_closed().await, "and its connection with it");
    let last = soon(listening.events()).await;
    let methods: Vec<_> = last.iter().map(|it| it["method"].as_str()).collect();
    assert_eq!(methods, [Some("notifications/cancelled"), None], "{last:?}");
}

async fn are_open(streams: &mut [RawHttp; 2]) {
    for stream in streams {
        let event = tokio::time::timeout(Duration::from_millis(200), stream.written_event());
        match event.await {
            Err(_elapsed) => {}
            // The first event shows that the stream is open.
            Ok(event) => assert!(event.is_some(), "it ended"),
        }
    }
}

static CLOCK: AtomicU64 = AtomicU64::new(NOW);

#[tokio::test]
async fn streams_end_when_their_token_expires() {
    let server = AuthorizationServer::start().await;
    let authentication = tokens(&server);
    let harness = Harness::with(|mut config| {
        let random = config.environment.random;
        config =
            config.with_environment(Environment::new(|| CLOCK.load(Ordering::Relaxed), random));
        config.authentication = Some(authentication);
        watched(config)
    });
    let harness = harness.await;
    let mut open = streams(&harness, &server.sign(claims("ann"))).await;
    CLOCK.store(NOW + 599, Ordering::Relaxed);
    are_open(&mut open).await;
    CLOCK.store(NOW + 600, Ordering::Relaxed);
    have_ended(open).await;
}

#[tokio::test]
async fn streams_end_when_their_key_is_removed_and_no_others() {
    let harness = Harness::with(|config| with_keys(config, &["ann", "eve"])).await;
    let of_ann = streams(&harness, &key("ann")).await;
    let mut of_eve = streams(&harness, &key("eve")).await;
    let after = config(Target::http(harness.peer.url.clone()));
    let after = with_keys(after, &["eve"]);
    harness.reload(after).await;
    have_ended(of_ann).await;
    are_open(&mut of_eve).await;
}

#[tokio::test]
async fn streams_end_when_their_issuer_is_removed() {
    let server = AuthorizationServer::start().await;
    let authentication = tokens(&server);
    let harness = Harness::with(|mut config| {
        config.authentication = Some(authentication);
        watched(config)
    });
    let harness = harness.await;
    let open = streams(&harness, &server.sign(claims("ann"))).await;
    let after = config(Target::http(harness.peer.url.clone()));
    let after = with_keys(after, &["ann"]);
    harness.reload(after).await;
    have_ended(open).await;
}

#[tokio::test]
async fn a_call_in_flight_finishes_although_its_key_is_removed() {
    let (called, calls) = std::sync::mpsc::channel();
    let script = places_server::script(Era::Legacy).reply("tools/call", move |seen| {
        let (sender, reply) = Reply::stream();
        called.send((sender, seen.clone())).unwrap();
        reply
    });
    let harness = Harness::with_server(script, |config| with_keys(config, &["ann"])).await;
    let call = modern(json!(1), "tools/call", tool("begin"), &json!({}));
    let mut http = harness.connect().await;
    http.send(&bearer(HttpRequest::modern(&call), &key("ann")).bytes())
        .await;
    harness.peer.wait_for("tools/call", 1).await;
    let (sender, seen) = calls.recv().unwrap();
    let after = config(Target::http(harness.peer.url.clone()));
    harness.reload(with_keys(after, &["eve"])).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let done = seen.message(&json!({"content": []}));
    sender.send(event(&done).into()).unwrap();
    let answer = soon(http.response()).await;
    answer.json().has("/result/content", json!([]));
}
