//! Processes that are killed in the middle of a login: it stays whole, and so do those at other servers.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use mcp_vary_login::address::Address;
use mcp_vary_login::login::{Interaction, LoginCredentials, LoginSettings};
use mcp_vary_login::store::TokenStore;
use mcp_vary_login::user_agent::Flow;
use mcp_vary_testkit::wait::soon;

use crate::person::Person;
use crate::scene::{Scene, environment, token};

const URL: &str = "VARY_TEST_KILLED_SERVER";
const DIRECTORY: &str = "VARY_TEST_KILLED_DIRECTORY";

/// What a child process does: it logs in again and again.
#[tokio::test]
#[ignore = "the other tests start it as a process, and kill it"]
async fn child() {
    #[expect(clippy::disallowed_methods, reason = "the parent's arguments")]
    let [url, directory] = [URL, DIRECTORY].map(|name| std::env::var(name).unwrap());
    let settings = LoginSettings::new("github", Address::parse(&url).unwrap());
    let store = TokenStore::new(directory.into(), Vec::new(), environment());
    let person = Interaction::new(Arc::new(Person::default()), Flow::AuthorizationCode);
    let login = LoginCredentials::new(settings, store, Some(person), environment());
    loop {
        login.log_in().await.unwrap();
    }
}

/// A process that is killed when this ends.
struct Victim(Child);

impl Victim {
    fn start(scene: &Scene) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "kills::child", "--ignored"]);
        command
            .env(URL, scene.peer.url("/mcp"))
            .env(DIRECTORY, &scene.directory);
        Self(command.stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Waits until this many tokens were requested.
async fn requested(scene: &Scene, count: usize) {
    soon(async {
        while scene.peer.requests("POST /token").len() < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

/// Two logins in one directory; the second is at another server.
async fn two_logins() -> [Scene; 2] {
    let (scene, mut other) = (Scene::new().await, Scene::new().await);
    other.directory.clone_from(&scene.directory);
    scene.log_in().await;
    other.log_in().await;
    [scene, other]
}

#[tokio::test]
async fn between_code_and_token_both_logins_stay_as_they_were() {
    let [scene, other] = two_logins().await;
    let before = scene.files();
    scene.peer.withhold();
    let victim = Victim::start(&scene);
    requested(&scene, 2).await;
    drop(victim);
    assert_eq!(scene.files(), before);
    for scene in [&scene, &other] {
        let last = token(&scene.service()).await;
        assert_eq!(last, Ok(Some("access-1".to_owned())));
    }
    // The lock of the process has ended with it.
    scene.peer.release();
    scene.log_in().await;
}

#[tokio::test]
async fn while_writing_nothing_is_half_written_and_no_other_login_is_lost() {
    let [scene, other] = two_logins().await;
    let others = token(&other.service()).await;
    let mut count = 1;
    for delay in 0..24_u8 {
        let victim = Victim::start(&scene);
        requested(&scene, count + 1 + usize::from(delay % 2)).await;
        // What follows the answer of the authorization server is the writing.
        tokio::time::sleep(Duration::from_micros(u64::from(delay) * 250)).await;
        drop(victim);
        let listed = scene.store().list().unwrap();
        assert_eq!(listed.len(), 2, "{listed:?}");
        assert!(listed.iter().all(Result::is_ok), "{listed:?}");
        assert!(token(&scene.service()).await.is_ok_and(|it| it.is_some()));
        assert_eq!(token(&other.service()).await, others);
        count = scene.peer.requests("POST /token").len();
    }
    scene.log_in().await;
}
