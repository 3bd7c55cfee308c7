//! Tokens that end, and who refreshes them.

use futures_util::future::join_all;
use mcp_vary_http_client::credential_source::CredentialSource as _;
use mcp_vary_login::address::Address;
use mcp_vary_login::credentials::Credentials;
use mcp_vary_login::secret::Secret;
use mcp_vary_login::source::AuthorizationSource;
use mcp_vary_testkit::login_server::parameter;
use mcp_vary_testkit::wait::soon;
use serde_json::json;

use crate::scene::{Scene, access_token, assert_all, pass, token};

fn refreshes(scene: &Scene) -> Vec<String> {
    let requests = scene.peer.requests("POST /token").into_iter();
    let sent = requests.map(|request| parameter(&request.body, "refresh_token"));
    sent.filter(|token| !token.is_empty()).collect()
}

#[tokio::test]
async fn a_token_is_refreshed_at_four_fifths_of_its_life() {
    let scene = Scene::new().await;
    scene.log_in().await;
    let service = scene.service();
    pass(79);
    assert_eq!(access_token(&service).await, "access-1");
    assert_eq!(refreshes(&scene), [""; 0]);
    pass(1);
    assert_eq!(access_token(&service).await, "access-2");
    assert_eq!(refreshes(&scene), ["TOPSECRET-refresh-1"]);
    // The answer may have no new refresh token.
    pass(80);
    let answer = json!({"access_token": "TOPSECRET-x", "token_type": "Bearer", "expires_in": 10});
    scene.peer.next_token("200 OK", &answer);
    assert_eq!(access_token(&service).await, "x");
    pass(8);
    assert_eq!(access_token(&service).await, "access-3");
    assert_eq!(
        refreshes(&scene)[1..],
        ["TOPSECRET-refresh-2", "TOPSECRET-refresh-2"]
    );
    let form = scene.peer.requests("POST /token").pop().unwrap().body;
    assert!(!parameter(&form, "resource").is_empty(), "{form}");
}

#[tokio::test]
async fn many_callers_of_several_processes_make_one_refresh() {
    let scene = Scene::new().await;
    scene.log_in().await;
    let processes: Vec<Credentials> = (0..4).map(|_| scene.service()).collect();
    for process in &processes {
        assert_eq!(access_token(process).await, "access-1");
    }
    pass(101);
    let callers = (0..100).map(|number| token(&processes[number % processes.len()]));
    let tokens = soon(join_all(callers)).await;
    assert_all(&tokens, "access-2");
    assert_eq!(refreshes(&scene).len(), 1);
}

#[tokio::test]
async fn a_caller_who_goes_away_does_not_lose_the_next_refresh_token() {
    let scene = Scene::new().await;
    scene.log_in().await;
    let service = scene.service();
    pass(90);
    scene.peer.withhold();
    let waiting = tokio::spawn({
        let service = service.clone();
        async move { service.authorization().await }
    });
    soon(async {
        while refreshes(&scene).is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    waiting.abort();
    scene.peer.release();
    assert_eq!(access_token(&service).await, "access-2");
    assert_eq!(access_token(&scene.service()).await, "access-2");
    assert_eq!(refreshes(&scene).len(), 1);
}

#[tokio::test]
async fn a_failed_refresh_is_tried_again_and_the_token_used_while_it_is_valid() {
    let scene = Scene::new().await;
    scene.log_in().await;
    let service = scene.service();
    pass(80);
    for _ in 0..2 {
        scene.peer.next_token("503 Later", &json!({}));
    }
    for _ in 0..3 {
        assert_eq!(access_token(&service).await, "access-1");
    }
    assert_eq!(
        refreshes(&scene).len(),
        1,
        "failures are not repeated at once"
    );
    pass(20);
    let error = token(&service).await.unwrap_err();
    assert!(error.contains("HTTP 503"), "{error}");
    assert_eq!(
        token(&service).await,
        Err(error),
        "all who ask get the same failure"
    );
    pass(5);
    assert_eq!(access_token(&service).await, "access-2");
    assert_eq!(refreshes(&scene).len(), 3);
}

/// An authorization server may repeat what it was sent: clients get the code alone, and the log nothing secret.
#[tokio::test]
async fn a_refused_refresh_reveals_nothing_that_was_sent() {
    let scene = Scene::new().await;
    let mut settings = scene.settings();
    settings.client.id = Some("dcr".to_owned());
    settings.client.secret = Some(Secret::new("TOPSECRET-client"));
    settings.issuer = Address::parse(&scene.peer.url("")).ok();
    scene.try_log_in(settings).await.unwrap();
    pass(100);
    let said = "you sent grant_type=refresh_token&refresh_token=TOPSECRET-refresh-1&client_id=dcr&client_secret=TOPSECRET-client";
    let error = json!({"error": "invalid_scope", "error_description": said});
    scene.peer.next_token("400 Bad Request", &error);
    let source = AuthorizationSource::configured(scene.service(), String::new());
    let refused = soon(source.authorization()).await.unwrap_err();
    let shown = refused.to_string();
    assert!(
        shown.contains("invalid_scope") && !shown.contains("you sent"),
        "{shown}"
    );
    let details = refused.details();
    assert!(
        details.contains("you sent grant_type=refresh_token"),
        "{details}"
    );
    assert!(!details.contains("TOPSECRET"), "{details}");
}

#[tokio::test]
async fn a_refresh_token_that_has_ended_asks_for_a_login_once() {
    let scene = Scene::new().await;
    scene.log_in().await;
    let service = scene.service();
    pass(80);
    scene
        .peer
        .next_token("400 Bad Request", &json!({"error": "invalid_grant"}));
    let error = token(&service).await.unwrap_err();
    assert!(
        error.starts_with("log in with `vary login github`; "),
        "{error}"
    );
    assert_eq!(token(&service).await, Ok(None));
    assert_eq!(refreshes(&scene).len(), 1);
    // It joins again without a restart.
    scene.log_in().await;
    pass(1);
    assert_eq!(access_token(&service).await, "access-2");
}

#[tokio::test]
async fn a_logout_elsewhere_is_noticed() {
    let scene = Scene::new().await;
    let service = scene.service();
    assert_eq!(token(&service).await, Ok(None));
    scene.log_in().await;
    pass(1);
    assert_eq!(access_token(&service).await, "access-1");
    scene.terminal(scene.settings()).log_out().await.unwrap();
    assert_eq!(token(&service).await, Ok(None));
}
