//! What a refusal of the server leads to.

use http::{HeaderValue, StatusCode};
use mcp_vary_login::credentials::{Credentials, Retry};
use mcp_vary_testkit::login_server::{LoginServer, parameter};
use serde_json::json;

use crate::scene::{Scene, access_token, pass, refuse};

const INSUFFICIENT: &str = "Bearer error=\"insufficient_scope\", scope=\"write\"";

#[tokio::test]
async fn a_refused_token_is_refreshed_once() {
    let scene = Scene::new().await;
    scene.log_in().await;
    let service = scene.service();
    let unauthorized = StatusCode::UNAUTHORIZED;
    let retry = refuse(&service, unauthorized, "Bearer").await;
    assert_eq!(retry, Ok(Retry::Once));
    assert_eq!(access_token(&service).await, "access-2");
    let again = refuse(&service, unauthorized, "Bearer").await.unwrap_err();
    assert!(again.contains("has just issued"), "{again}");
    assert_eq!(scene.peer.requests("POST /token").len(), 2);
}

#[tokio::test]
async fn a_refusal_of_an_older_token_needs_no_refresh() {
    let scene = Scene::new().await;
    let service = scene.service();
    scene.log_in().await;
    let status = StatusCode::UNAUTHORIZED;
    let old = HeaderValue::from_static("Bearer old");
    for sent in [None, Some(&old)] {
        let refused = service.refused(sent, status, &[]).await;
        assert_eq!(refused.unwrap(), Retry::Once);
    }
    assert_eq!(scene.peer.requests("POST /token").len(), 1);
}

#[tokio::test]
async fn without_a_person_a_refusal_says_what_to_type() {
    let scene = Scene::new().await;
    let refused = refuse(&scene.service(), StatusCode::UNAUTHORIZED, "Bearer").await;
    assert_eq!(refused, Err("log in with `vary login github`".to_owned()));
    assert!(scene.peer.lines().is_empty(), "nothing is asked for");
}

#[tokio::test]
async fn other_refusals_are_not_about_authorization() {
    let scene = Scene::new().await;
    scene.log_in().await;
    for (status, challenge) in [
        (StatusCode::FORBIDDEN, "Bearer"),
        (StatusCode::FORBIDDEN, "Basic error=\"insufficient_scope\""),
        (StatusCode::NOT_FOUND, INSUFFICIENT),
        (StatusCode::FORBIDDEN, "Bearer error=\"insufficient_scope\""),
    ] {
        let refused = refuse(&scene.service(), status, challenge).await;
        assert_eq!(refused, Ok(Retry::Never), "{status} {challenge}");
    }
}

#[tokio::test]
async fn a_missing_scope_is_requested_with_those_that_were_granted() {
    let scene = Scene::new().await;
    scene.peer.challenge("scope=read");
    scene.log_in().await;
    let terminal = Credentials::Login(scene.terminal(scene.settings()));
    let forbidden = StatusCode::FORBIDDEN;
    let retry = refuse(&terminal, forbidden, INSUFFICIENT).await;
    assert_eq!(retry, Ok(Retry::Once));
    let opened = scene.person.opened.lock().unwrap().clone();
    assert_eq!(parameter(&opened[1], "scope"), "write%20read");
    // It was requested: to request it again would change nothing.
    let retry = refuse(&terminal, forbidden, INSUFFICIENT).await;
    assert_eq!(retry, Ok(Retry::Never));
    assert_eq!(scene.person.opened.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn without_a_person_the_next_login_requests_the_missing_scope() {
    let scene = Scene::new().await;
    scene.peer.challenge("scope=read");
    scene.log_in().await;
    let service = scene.service();
    let error = refuse(&service, StatusCode::FORBIDDEN, INSUFFICIENT)
        .await
        .unwrap_err();
    assert_eq!(
        error,
        "log in with `vary login github`; it needs another scope: write"
    );
    assert_eq!(
        access_token(&service).await,
        "access-1",
        "the rest still works"
    );
    scene.log_in().await;
    let opened = scene.opened(1);
    assert_eq!(parameter(&opened, "scope"), "read%20write");
}

#[tokio::test]
async fn a_server_that_refuses_every_token_asks_a_person_three_times_at_most() {
    let scene = Scene::new().await;
    scene.peer.challenge("scope=read");
    let terminal = Credentials::Login(scene.terminal(scene.settings()));
    let mut refusals = 0;
    while refuse(&terminal, StatusCode::UNAUTHORIZED, "Bearer scope=read")
        .await
        .is_ok()
    {
        refusals += 1;
        assert!(refusals < 20);
    }
    assert_eq!(scene.person.opened.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn a_person_logs_in_at_the_new_authorization_server() {
    let scene = Scene::new().await;
    let terminal = Credentials::Login(scene.terminal(scene.settings()));
    let unauthorized = StatusCode::UNAUTHORIZED;
    let retry = refuse(&terminal, unauthorized, "Bearer").await;
    assert_eq!(retry, Ok(Retry::Once));
    let other = LoginServer::start().await;
    scene
        .peer
        .resource(json!({"authorization_servers": [other.url("")]}));
    pass(10);
    scene
        .peer
        .next_token("400 Bad Request", &json!({"error": "invalid_grant"}));
    let retry = refuse(&terminal, unauthorized, "Bearer").await;
    assert_eq!(retry, Ok(Retry::Once));
    assert_eq!(other.requests("POST /register").len(), 1);
    let form = &other.requests("POST /token")[0].body;
    assert_eq!(parameter(form, "grant_type"), "authorization_code");
}
