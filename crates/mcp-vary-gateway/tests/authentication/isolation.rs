//! Which connections to servers principals share.

use std::collections::BTreeSet;
use std::path::Path;

use mcp_vary_upstream::Isolation;

use super::clients::{Session, ask_modern, for_ann_and_eve, key};
use crate::support::*;

/// The sessions at the server in which tools were called.
fn sessions(harness: &Harness) -> BTreeSet<Option<String>> {
    let calls = harness.peer.of("tools/call").into_iter();
    calls
        .map(|call| call.header("mcp-session-id").map(str::to_owned))
        .collect()
}

/// A legacy server with a session for each `initialize`.
async fn with_sessions(isolation: Isolation) -> Harness {
    let script = places_server::script(Era::Legacy)
        .declares(places_server::capabilities())
        .in_sessions(|seen| format!("s-{}-{}", seen.id(), next()));
    let adapt = |mut config: Config| {
        config.servers[0].isolation = isolation;
        for_ann_and_eve(config)
    };
    Harness::with_server(script, adapt).await
}

fn next() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Calls of ann and eve, each with a session and without.
async fn call_all(harness: &Harness) {
    for who in ["ann", "eve", "ann"] {
        let answer = ask_modern(harness, &key(who), "tools/call", tool("odd")).await;
        assert!(answer.json()["result"].is_object(), "{}", answer.text());
        let mut session = Session::open(harness, &key(who), &json!({})).await;
        let answer = session.ask(&key(who), "tools/call", tool("odd")).await;
        assert!(answer.json()["result"].is_object(), "{}", answer.text());
    }
}

#[tokio::test]
async fn each_principal_has_its_own_session_at_a_server_with_sessions() {
    for (isolation, expected) in [
        (Isolation::Automatic, 2),
        (Isolation::Principal, 2),
        (Isolation::Shared, 1),
    ] {
        let harness = with_sessions(isolation).await;
        call_all(&harness).await;
        let found = sessions(&harness);
        assert_eq!(found.len(), expected, "{isolation:?}: {found:?}");
    }
}

/// Clients without sessions share a connection where each session has its own, but not with another principal.
#[tokio::test]
async fn isolated_sessions_are_isolated_principals() {
    let harness = with_sessions(Isolation::Session).await;
    call_all(&harness).await;
    let found = sessions(&harness);
    assert_eq!(
        found.len(),
        5,
        "three sessions, and two principals without: {found:?}"
    );
}

#[tokio::test]
async fn principals_share_the_connection_to_a_stateless_server() {
    let harness = Harness::before(Era::Modern, for_ann_and_eve).await;
    for who in ["ann", "eve"] {
        let answer = ask_modern(&harness, &key(who), "tools/call", tool("odd")).await;
        assert!(answer.json()["result"].is_object(), "{}", answer.text());
    }
    assert_eq!(harness.peer.of("server/discover").len(), 1);
    assert_eq!(harness.peer.of("tools/list").len(), 1);
}

/// A gateway before a process that says which one it is.
async fn before_a_process() -> Harness {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/who.py");
    let script = script.to_str().unwrap().to_owned();
    let config = for_ann_and_eve(config(Target::command("python3", [script])));
    Harness::behind(places_server::start(Era::Legacy).await, config).await
}

#[tokio::test]
async fn each_principal_has_its_own_process() {
    let harness = before_a_process().await;
    let mut processes = BTreeSet::new();
    let mut of = async |who: &str| {
        let answer = ask_modern(&harness, &key(who), "tools/call", tool("who")).await;
        let process = answer.json()["result"]["content"][0]["text"].to_string();
        processes.insert(process.clone());
        let mut session = Session::open(&harness, &key(who), &json!({})).await;
        let answer = session.ask(&key(who), "tools/call", tool("who")).await;
        let other = answer.json()["result"]["content"][0]["text"].to_string();
        (process, other)
    };
    let (ann, ann_in_session) = of("ann").await;
    let (eve, eve_in_session) = of("eve").await;
    let (ann_again, _) = of("ann").await;
    assert_eq!(ann, ann_again);
    assert_eq!(ann, ann_in_session, "both eras: the process speaks one");
    assert_eq!(eve, eve_in_session);
    assert_ne!(ann, eve);
    assert_eq!(processes.len(), 2);
}

/// A client that accepts server requests leases a connection for its call, which is not leased to another principal.
#[tokio::test]
async fn a_leased_connection_is_not_lent_to_another_principal() {
    let harness = before_a_process().await;
    let of = async |who: &str| {
        let capabilities = json!({"elicitation": {}});
        let post = HttpRequest::modern_request_as("tools/call", tool("who"), &capabilities);
        let mut http = harness.connect().await;
        let answer = http
            .ask(&super::clients::bearer(post, &key(who)))
            .await
            .json();
        let process = &answer["result"]["content"][0]["text"];
        assert!(process.is_string(), "{answer}");
        process.to_string()
    };
    let (ann, eve, again) = (of("ann").await, of("eve").await, of("ann").await);
    assert_eq!(ann, again);
    assert_ne!(ann, eve);
}
