//! What each test has: a peer, a person, a store, and a clock that the test moves.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{HeaderValue, StatusCode};
use mcp_vary_base::environment::Environment;
use mcp_vary_login::address::Address;
use mcp_vary_login::credentials::{Credentials, Retry};
use mcp_vary_login::error::CredentialError;
use mcp_vary_login::login::{Interaction, LoginCredentials, LoginSettings};
use mcp_vary_login::store::TokenStore;
use mcp_vary_login::user_agent::Flow;
use mcp_vary_testkit::login_server::{LoginServer, Response};
use mcp_vary_testkit::wait::soon;
use serde_json::Value;

use crate::person::Person;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(1000) };
}

/// Moves the clock of this test.
pub(crate) fn pass(seconds: u64) {
    NOW.set(NOW.get() + seconds);
}

pub(crate) fn environment() -> Environment {
    Environment::new(|| NOW.get(), getrandom)
}

fn getrandom(bytes: &mut [u8]) {
    use ring::rand::SecureRandom as _;
    ring::rand::SystemRandom::new().fill(bytes).unwrap();
}

pub(crate) struct Scene {
    pub(crate) peer: LoginServer,
    pub(crate) person: Arc<Person>,
    pub(crate) directory: PathBuf,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        Self::with_person(Person::default()).await
    }

    pub(crate) async fn with_person(person: Person) -> Self {
        static SCENES: AtomicUsize = AtomicUsize::new(0);
        let number = SCENES.fetch_add(1, Ordering::Relaxed);
        let name = format!("vary-login-scene-{}-{number}", std::process::id());
        Self {
            peer: LoginServer::start().await,
            person: Arc::new(person),
            directory: std::env::temp_dir().join(name),
        }
    }

    pub(crate) fn settings(&self) -> LoginSettings {
        let server = Address::parse(&self.peer.url("/mcp")).unwrap();
        LoginSettings::new("github", server)
    }

    pub(crate) fn store(&self) -> TokenStore {
        TokenStore::new(self.directory.clone(), Vec::new(), environment())
    }

    fn login_of(&self, settings: LoginSettings, flow: Option<Flow>) -> LoginCredentials {
        let person = Arc::clone(&self.person);
        let interaction = flow.map(|flow| Interaction::new(person, flow));
        LoginCredentials::new(settings, self.store(), interaction, environment())
    }

    /// A process at which a person can log in.
    pub(crate) fn terminal(&self, settings: LoginSettings) -> LoginCredentials {
        self.login_of(settings, Some(Flow::AuthorizationCode))
    }

    pub(crate) fn device(&self) -> LoginCredentials {
        self.login_of(self.settings(), Some(Flow::Device))
    }

    /// A process without a person.
    pub(crate) fn service(&self) -> Credentials {
        Credentials::Login(self.login_of(self.settings(), None))
    }

    /// Logs in at a terminal.
    pub(crate) async fn log_in(&self) {
        self.try_log_in(self.settings()).await.unwrap();
    }

    pub(crate) async fn try_log_in(&self, settings: LoginSettings) -> Result<(), CredentialError> {
        let terminal = self.terminal(settings);
        soon(terminal.log_in()).await.map(|_| ())
    }

    /// Why a login with `settings` fails.
    pub(crate) async fn refuse_log_in(&self, settings: LoginSettings) -> String {
        self.try_log_in(settings).await.unwrap_err().to_string()
    }

    /// Lets the peer answer at `path` with `status` and `body`.
    pub(crate) fn respond(&self, path: &str, status: &str, body: &Value) {
        self.peer.respond(path, &Response::new(status, body));
    }

    /// The address that the person opened as login `number`.
    pub(crate) fn opened(&self, number: usize) -> String {
        self.person.opened.lock().unwrap()[number].clone()
    }

    /// The files of the store, with their text.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        let logins = paths.filter(|path| path.extension().is_some_and(|it| it == "login"));
        logins
            .map(|path| std::fs::read_to_string(path).unwrap())
            .collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// The token that `credentials` give now.
pub(crate) async fn token(credentials: &Credentials) -> Result<Option<String>, String> {
    let value = soon(credentials.authorization()).await;
    let value = value.map_err(|error| error.to_string())?;
    let text = |value: HeaderValue| value.to_str().unwrap().replace("Bearer TOPSECRET-", "");
    Ok(value.map(text))
}

/// The text of the token that `credentials` give now.
pub(crate) async fn access_token(credentials: &Credentials) -> String {
    token(credentials).await.unwrap().unwrap()
}

/// Checks that each caller got the token with this text.
#[track_caller]
pub(crate) fn assert_all(tokens: &[Result<Option<String>, String>], expected: &str) {
    for token in tokens {
        assert_eq!(*token, Ok(Some(expected.to_owned())));
    }
}

/// What a refusal of the present token leads to.
pub(crate) async fn refuse(
    credentials: &Credentials,
    status: StatusCode,
    challenge: &str,
) -> Result<Retry, String> {
    let sent = credentials.authorization().await.unwrap();
    let challenges = [HeaderValue::from_str(challenge).unwrap()];
    let refused = credentials.refused(sent.as_ref(), status, &challenges);
    soon(refused).await.map_err(|error| error.to_string())
}
