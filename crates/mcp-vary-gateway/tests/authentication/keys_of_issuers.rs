//! The keys of authorization servers: fetched, rotated, and used while their server is away.

use mcp_vary_testkit::authorization_server::AuthorizationServer;
use mcp_vary_testkit::message::names;
use serde_json::json;

use super::clients::{ask_modern, claims, tokens};
use crate::support::Harness;

async fn before(server: &AuthorizationServer) -> Harness {
    let authentication = tokens(server);
    Harness::with(|mut config| {
        config.authentication = Some(authentication);
        config
    })
    .await
}

async fn status(harness: &Harness, token: &str) -> u16 {
    ask_modern(harness, token, "tools/list", json!({}))
        .await
        .status
}

#[tokio::test]
async fn a_new_key_holds_at_once_and_costs_one_request() {
    let server = AuthorizationServer::start().await;
    let harness = before(&server).await;
    assert_eq!(status(&harness, &server.sign(claims("ann"))).await, 200);
    assert_eq!(server.key_set_requests(), 1);
    server.rotate();
    let token = server.sign(claims("ann"));
    let answers = [status(&harness, &token), status(&harness, &token)];
    assert_eq!(futures_util::future::join_all(answers).await, [200, 200]);
    assert_eq!(server.key_set_requests(), 2);
}

#[tokio::test]
async fn a_thousand_unknown_keys_cost_one_request() {
    let server = AuthorizationServer::start().await;
    let harness = before(&server).await;
    assert_eq!(status(&harness, &server.sign(claims("ann"))).await, 200);
    for number in 0..1_000 {
        let token = server.sign_as(&format!("made-up-{number}"), claims("eve"));
        assert_eq!(status(&harness, &token).await, 401);
    }
    assert!(
        server.key_set_requests() <= 2,
        "{}",
        server.key_set_requests()
    );
}

#[tokio::test]
async fn known_keys_hold_while_the_server_is_dead() {
    let mut server = AuthorizationServer::start().await;
    let harness = before(&server).await;
    assert_eq!(status(&harness, &server.sign(claims("ann"))).await, 200);
    server.die().await;
    let answer = ask_modern(
        &harness,
        &server.sign(claims("bob")),
        "tools/list",
        json!({}),
    )
    .await;
    assert!(names(&answer.json()).contains(&"odd"));
    let unknown = server.sign_as("unknown", claims("ann"));
    assert_eq!(status(&harness, &unknown).await, 401);
}

/// At 401 clients throw their tokens away; at 503 they try again.
#[tokio::test]
async fn without_any_keys_the_answer_is_503() {
    let mut server = AuthorizationServer::start().await;
    server.die().await;
    let harness = before(&server).await;
    let token = server.sign(claims("ann"));
    let answer = ask_modern(&harness, &token, "tools/list", json!({})).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("www-authenticate"), None);
    assert!(answer.header("retry-after").is_some());
    assert_eq!(answer.json()["error"], "temporarily_unavailable");
}
