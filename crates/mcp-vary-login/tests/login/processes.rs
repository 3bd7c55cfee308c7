//! Processes that end in the middle, and processes at the same time.

use std::process::{Child, Command};

use mcp_vary_testkit::login_server::parameter;
use mcp_vary_testkit::wait::soon;

use crate::scene::{Scene, access_token, pass, token};

/// A process that asks for the authorization once.
fn start_child(scene: &Scene) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_login-child"));
    command.arg(scene.peer.url("/mcp")).arg(&scene.directory);
    command.spawn().unwrap()
}

async fn refreshes(scene: &Scene, count: usize) {
    let sent = || {
        let requests = scene.peer.requests("POST /token");
        let refreshing = |form: &str| parameter(form, "grant_type") == "refresh_token";
        requests
            .iter()
            .filter(|request| refreshing(&request.body))
            .count()
    };
    soon(async {
        while sent() < count {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
}

async fn ended(mut child: Child) -> bool {
    let waiting = tokio::task::spawn_blocking(move || child.wait().unwrap().success());
    soon(waiting).await.unwrap()
}

#[tokio::test]
async fn two_processes_that_refresh_at_once_make_one_request() {
    let scene = Scene::new().await;
    scene.log_in().await;
    scene.peer.withhold();
    let children = [start_child(&scene), start_child(&scene)];
    refreshes(&scene, 1).await;
    scene.peer.release();
    for child in children {
        assert!(ended(child).await);
    }
    assert_eq!(
        scene.peer.requests("POST /token").len(),
        2,
        "the login, and one refresh"
    );
}

#[tokio::test]
async fn a_process_that_is_killed_at_a_refresh_leaves_the_login_and_its_lock() {
    let scene = Scene::new().await;
    scene.log_in().await;
    let before = scene.files();
    scene.peer.withhold();
    let mut killed = start_child(&scene);
    refreshes(&scene, 1).await;
    killed.kill().unwrap();
    assert!(!ended(killed).await);
    assert_eq!(scene.files(), before);
    // The authorization server has taken the refresh token back: one line says what to type. One answer goes to the process
    // that was killed.
    let error = serde_json::json!({"error": "invalid_grant"});
    for _ in 0..2 {
        scene.peer.next_token("400 Bad Request", &error);
    }
    scene.peer.release();
    let service = scene.service();
    pass(90);
    let error = token(&service).await.unwrap_err();
    assert!(
        error.starts_with("log in with `vary login github`"),
        "{error}"
    );
}

#[tokio::test]
async fn a_login_that_ends_between_code_and_token_leaves_the_last_one() {
    let scene = Scene::new().await;
    scene.log_in().await;
    let before = scene.files();
    scene.peer.withhold();
    let terminal = scene.terminal(scene.settings());
    let login = tokio::spawn(async move { terminal.log_in().await });
    soon(async {
        while scene.peer.requests("POST /token").len() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    login.abort();
    assert!(login.await.is_err());
    assert_eq!(scene.files(), before);
    assert_eq!(access_token(&scene.service()).await, "access-1");
}
