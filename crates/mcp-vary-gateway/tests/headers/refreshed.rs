//! A refreshed token with other claims: the next request has its values.

use std::collections::BTreeSet;

use super::people::{Session, ask_modern, headers_of, with_headers, with_people};
use crate::support::*;

/// A gateway that accepts tokens of the server.
async fn harness(era: Era, tokens: &AuthorizationServer) -> Harness {
    Harness::before(era, |mut config| {
        let server = config.servers.remove(0);
        config.servers.push(with_headers(server));
        with_people(config, Some(tokens))
    })
    .await
}

/// A token of one user with this address.
fn token(server: &AuthorizationServer, email: &Value) -> String {
    server.sign(json!({
        "sub": "ann", "aud": "here", "exp": 1_000_600, "email": email, "level": 7,
    }))
}

fn users(calls: &[ReceivedRequest]) -> Vec<Option<&str>> {
    calls.iter().map(|call| headers_of(call).0).collect()
}

#[tokio::test]
async fn the_next_request_has_the_claims_of_its_own_token() {
    let tokens = AuthorizationServer::start().await;
    for era in [Era::Legacy, Era::Modern] {
        for capabilities in [json!({}), json!({"elicitation": {}})] {
            let harness = harness(era, &tokens).await;
            let one = token(&tokens, &json!("one@example.com"));
            let two = token(&tokens, &json!("two@example.com"));
            let mut session = Session::open(&harness, &one, &capabilities).await;
            for token in [&one, &two, &one] {
                let answer = session.ask(token, "tools/call", tool("odd")).await.json();
                let found = &answer["result"];
                assert!(found.is_object(), "{era:?} {capabilities}: {answer}");
                let client = (token.as_str(), &capabilities);
                let answer = ask_modern(&harness, client, "tools/call", tool("odd")).await;
                assert!(answer.json()["result"].is_object(), "{}", answer.text());
            }
            let (one, two) = (Some("user one@example.com"), Some("user two@example.com"));
            let calls = harness.peer.of("tools/call");
            let expected = [one, one, two, two, one, one];
            assert_eq!(users(&calls), expected, "{era:?} {capabilities}");
            let all = harness.peer.received();
            let users: BTreeSet<_> = users(&all).into_iter().collect();
            let expected = BTreeSet::from([one, two]);
            assert_eq!(users, expected, "every request has one of them");
        }
    }
}

#[tokio::test]
async fn a_session_goes_on_but_a_token_without_the_claim_is_refused_in_it() {
    let tokens = AuthorizationServer::start().await;
    let harness = harness(Era::Legacy, &tokens).await;
    let good = token(&tokens, &json!("one@example.com"));
    let bad = token(&tokens, &json!(["one@example.com"]));
    let mut session = Session::open(&harness, &good, &json!({})).await;
    assert!(session.ask(&good, "tools/call", tool("odd")).await.json()["result"].is_object());
    let answer = session.ask(&bad, "tools/call", tool("odd")).await.json();
    answer.has("/error/message", "server `peer` cannot be used by this client: the claim `email` is not one string, number or boolean");
    assert!(session.ask(&good, "tools/call", tool("odd")).await.json()["result"].is_object());
    assert_eq!(harness.peer.of("tools/call").len(), 2);
}

/// What would break a header does not pass the verification of the token, or gives no header.
#[tokio::test]
async fn hostile_claims_of_a_verified_token_never_reach_the_server() {
    let tokens = AuthorizationServer::start().await;
    let harness = harness(Era::Legacy, &tokens).await;
    for (email, status) in [
        (json!("a\r\nX-Admin: 1"), 401),
        (json!("a\u{0}"), 401),
        (json!("a\u{1b}[2J"), 401),
        (json!("x".repeat(5000)), 401),
        (json!("ä@example.com"), 200),
        (json!("a\u{2028}b"), 200),
        (json!(["a@example.com", "b@example.com"]), 200),
        (json!({"a": 1}), 200),
        (json!(null), 200),
    ] {
        let token = token(&tokens, &email);
        let client = (token.as_str(), &json!({}));
        let answer = ask_modern(&harness, client, "tools/call", tool("odd")).await;
        assert_eq!(answer.status, status, "{email}: {}", answer.text());
        if status == 200 {
            let message = answer.json()["error"]["message"].to_string();
            assert!(message.contains("the claim `email`"), "{email}: {message}");
        }
    }
    // A megabyte does not even fit into the head of a request.
    let token = token(&tokens, &json!("x".repeat(1 << 20)));
    let client = (token.as_str(), &json!({}));
    let answer = ask_modern(&harness, client, "tools/call", tool("odd")).await;
    assert!([401, 431].contains(&answer.status), "{}", answer.status);
    assert!(harness.peer.received().is_empty());
}

#[tokio::test]
async fn a_reload_with_another_header_uses_it_for_the_next_request() {
    let tokens = AuthorizationServer::start().await;
    let peer = places_server::start(Era::Legacy).await;
    let harness = Harness::behind_one(peer, |mut config| {
        let server = config.servers.remove(0);
        config.servers.push(with_headers(server));
        with_people(config, Some(&tokens))
    })
    .await;
    let token = token(&tokens, &json!("one@example.com"));
    let mut session = Session::open(&harness, &token, &json!({})).await;
    assert!(session.ask(&token, "tools/call", tool("odd")).await.json()["result"].is_object());
    let target = Target::http(harness.peer.url.clone());
    let next = with_people(config(target), Some(&tokens));
    let reloaded = harness.reload(next).await;
    assert_eq!(reloaded.servers.replaced, ["peer"]);
    assert!(session.ask(&token, "tools/call", tool("odd")).await.json()["result"].is_object());
    let calls = harness.peer.of("tools/call");
    assert_eq!(users(&calls), [Some("user one@example.com"), None]);
}
