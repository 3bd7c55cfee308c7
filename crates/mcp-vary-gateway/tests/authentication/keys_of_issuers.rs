//! The keys of authorization servers: fetched, rotated, and used while their server is away.

use std::time::Instant;

use mcp_vary_gateway::settings::authentication::KeySource;

use super::clients::{ask_modern, claims, tokens};
use crate::support::*;

async fn before(server: &AuthorizationServer) -> Harness {
    let authentication = tokens(server);
    Harness::of(|config| config.authentication = Some(authentication)).await
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

/// A key with the id of the first one of an [`AuthorizationServer`], of which nobody has the private part.
const SAME_ID: &str = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"key-1","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

/// The first token was verified before; the second one is new to the gateway.
#[tokio::test]
async fn tokens_of_a_withdrawn_key_are_refused_after_a_reload() {
    let withdraw: [fn(&AuthorizationServer); 2] = [AuthorizationServer::rotate, |server| {
        server.respond("/keys", "200 OK", SAME_ID);
    }];
    for withdraw in withdraw {
        let server = AuthorizationServer::start().await;
        let harness = before(&server).await;
        let [known, new] = ["ann", "bob"].map(|name| server.sign(claims(name)));
        assert_eq!(status(&harness, &known).await, 200);
        withdraw(&server);
        assert_eq!(status(&harness, &known).await, 200);
        let mut config = config(Target::http(harness.peer.url.clone()));
        config.authentication = Some(tokens(&server));
        harness.reload(config).await;
        let refused = async {
            while status(&harness, &known).await != 401 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let refused = tokio::time::timeout(Duration::from_secs(20), refused);
        assert!(refused.await.is_ok(), "accepted for longer than 20 s");
        assert_eq!(status(&harness, &new).await, 401);
    }
}

#[tokio::test]
async fn a_thousand_unknown_keys_cost_one_request_in_thirty_seconds() {
    let server = AuthorizationServer::start().await;
    let harness = before(&server).await;
    assert_eq!(status(&harness, &server.sign(claims("ann"))).await, 200);
    let begun = Instant::now();
    for number in 0..1_000 {
        let token = server.sign_as(&format!("made-up-{number}"), claims("eve"));
        assert_eq!(status(&harness, &token).await, 401);
    }
    // One at the start, and one more for each pause that has passed on a slow machine.
    let most = 2 + begun.elapsed().as_secs() / 30;
    let requests = server.key_set_requests() as u64;
    assert!(requests <= most, "{requests}, at most {most}");
}

#[tokio::test]
async fn known_keys_hold_while_the_server_is_dead() {
    let mut server = AuthorizationServer::start().await;
    let harness = before(&server).await;
    assert_eq!(status(&harness, &server.sign(claims("ann"))).await, 200);
    server.die().await;
    let params = json!({});
    let answer = ask_modern(&harness, &server.sign(claims("bob")), "tools/list", params).await;
    assert!(names(&answer.json()).contains(&"odd"));
    let unknown = server.sign_as("unknown", claims("ann"));
    assert_eq!(status(&harness, &unknown).await, 401);
}

/// The interval in which unknown keys cause one request counts what was fetched, and not what failed.
#[tokio::test]
async fn the_first_token_of_a_new_key_holds_soon_after_its_server_came_back() {
    let mut server = AuthorizationServer::start().await;
    let harness = before(&server).await;
    assert_eq!(status(&harness, &server.sign(claims("ann"))).await, 200);
    server.die().await;
    server.rotate();
    let token = server.sign(claims("ann"));
    assert_eq!(status(&harness, &token).await, 401);
    server.restart().await;
    let accepted = async {
        while status(&harness, &token).await != 200 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let accepted = tokio::time::timeout(Duration::from_secs(10), accepted);
    assert!(accepted.await.is_ok(), "refused for longer than 10 s");
    assert_eq!(server.key_set_requests(), 2);
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
    answer.json().has("/error", "temporarily_unavailable");
}

/// Where the metadata of an issuer say that its keys are, or where they really are.
#[derive(Clone, Copy)]
enum Elsewhere {
    /// `jwks_uri` is this.
    Named(&'static str),
    /// `jwks_uri` is on the other server.
    OtherServer,
    /// The metadata are a redirect to the other server.
    MetadataRedirect,
    /// `jwks_uri` is right, and a redirect to the other server.
    KeysRedirect,
}

/// A token that is signed with a key of `other`, which is not the issuer, is not accepted: `other` is not even asked.
async fn keys_are_not_fetched(elsewhere: Elsewhere, why: &str) {
    let (log, _listening) = CapturedLog::listen("mcp_vary_session", Level::WARN);
    let [server, other] = [
        AuthorizationServer::start().await,
        AuthorizationServer::start().await,
    ];
    let metadata = "/.well-known/oauth-authorization-server";
    let document = |keys: &str| json!({"issuer": server.issuer(), "jwks_uri": keys}).to_string();
    let redirect = |path: &str| format!("302 Found\r\nlocation: {}{path}", other.issuer());
    match elsewhere {
        Elsewhere::Named(url) => server.respond(metadata, "200 OK", &document(url)),
        Elsewhere::OtherServer => {
            let url = format!("{}/keys", other.issuer());
            server.respond(metadata, "200 OK", &document(&url));
        }
        Elsewhere::MetadataRedirect => server.respond(metadata, &redirect(metadata), ""),
        Elsewhere::KeysRedirect => server.respond("/keys", &redirect("/keys"), ""),
    }
    let harness = before(&server).await;
    // Both servers sign with the same key.
    let params = json!({});
    let answer = ask_modern(&harness, &server.sign(claims("ann")), "tools/list", params).await;
    assert_eq!(answer.status, 503, "{why}");
    assert_eq!(other.requests(), 0, "{why}");
    let log = log.take().join("\n");
    assert!(
        log.contains("keys not fetched") && log.contains(why),
        "{log}"
    );
}

#[tokio::test]
async fn keys_come_from_the_host_of_the_issuer_and_no_other() {
    let other_host = "`jwks_uri` in the metadata is on another host than the issuer; if that is right, name it with `jwks`";
    for url in [
        "https://keys.example/keys",
        "https://127.0.0.1.evil.example/keys",
        "http://localhost/keys",
    ] {
        keys_are_not_fetched(Elsewhere::Named(url), other_host).await;
    }
    keys_are_not_fetched(Elsewhere::OtherServer, other_host).await;
    let unusable = "`jwks_uri` in the metadata cannot be used";
    for url in ["http://keys.example/keys", "file:///etc/keys", "keys", ""] {
        keys_are_not_fetched(Elsewhere::Named(url), unusable).await;
    }
}

#[tokio::test]
async fn a_redirect_to_other_keys_is_not_followed() {
    let redirect =
        "it answered with a redirect (HTTP 302 Found), which is not followed; name the final URL";
    for elsewhere in [Elsewhere::MetadataRedirect, Elsewhere::KeysRedirect] {
        keys_are_not_fetched(elsewhere, redirect).await;
    }
}

/// What an operator writes into the configuration may be anywhere.
#[tokio::test]
async fn keys_at_an_address_of_the_configuration_may_be_on_another_host() {
    let [server, other] = [
        AuthorizationServer::start().await,
        AuthorizationServer::start().await,
    ];
    let mut authentication = tokens(&server);
    authentication.key_sources = vec![KeySource::Url(format!("{}/keys", other.issuer())).into()];
    let harness = Harness::of(|config| config.authentication = Some(authentication)).await;
    assert_eq!(status(&harness, &server.sign(claims("ann"))).await, 200);
    assert_eq!((server.requests(), other.key_set_requests()), (0, 1));
}
