//! The credentials of a person who logged in.

mod authorize;
mod latest;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderMap, HeaderValue, StatusCode, header::WWW_AUTHENTICATE};
use mcp_vary_base::environment::Environment;
use mcp_vary_base::lock::ScopedLock;
use mcp_vary_base::tasks::spawn;
use mcp_vary_http_client::credential_source::Retry;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::address::{Address, AddressPolicy};
use crate::challenge::Challenge;
use crate::error::CredentialError;
use crate::http_client::HttpClient;
use crate::refusal::{Refusal, RefusalKind};
use crate::registration::ConfiguredClient;
use crate::scope::Scopes;
use crate::secret::Secret;
use crate::service::Failure;
use crate::store::{LockedLogin, Login, LoginKey, LoginSummary, StoreError, TokenStore, Version};
use crate::token::TokenEndpoint;
use crate::user_agent::{Flow, UserAgent};

use self::latest::Latest;

/// The tokens of a principal for one server. They are in a [`TokenStore`], which other processes use at the same time.
#[derive(Clone, Debug)]
pub struct LoginCredentials(Arc<Shared>);

mcp_vary_base::defaults! {
    /// The server to log in to.
    #[derive(Clone, Debug)]
    #[non_exhaustive]
    pub struct LoginSettings {
        /// The operator's login at `server`, which messages call `name`.
        pub fn new(name: impl Into<String>, server: Address);
        /// The arguments of `vary login` for the server, for messages.
        pub name: String = name.into(),
        /// The server.
        pub server: Address = server,
        /// Who is logged in.
        pub principal: String = LoginKey::OPERATOR.to_owned(),
        /// The client; if it has no id, one is registered.
        pub client: ConfiguredClient = ConfiguredClient::default(),
        /// The authorization server; if absent, the first that the server names.
        pub issuer: Option<Address> = None,
        /// The scopes to request, beside those that the server asks for.
        pub scope: Scopes = Scopes::default(),
        /// The file of authorities that are trusted beside those of the system.
        pub ca: Option<PathBuf> = None,
    }
}

/// How a person is asked, if one is there.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Interaction {
    /// Shows where to authorize.
    pub user_agent: Arc<dyn UserAgent>,
    /// How the person authorizes.
    pub flow: Flow,
}

/// What a logout did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Logout {
    /// Nobody was logged in.
    NotLoggedIn,
    /// The tokens are removed, and the authorization server has revoked them.
    Revoked,
    /// The tokens are removed, and the authorization server has revoked the refresh token, but cannot revoke the access
    /// token: that is valid until it ends.
    AccessTokenEnds,
    /// The tokens are removed. The authorization server could not revoke them: they are valid until they end.
    NotRevoked,
}

#[derive(Debug)]
struct Shared {
    settings: LoginSettings,
    key: LoginKey,
    http: HttpClient,
    store: TokenStore,
    environment: Environment,
    interaction: Option<Interaction>,
    state: Arc<Mutex<State>>,
    /// The second in which the store had no login: most servers need none, and are asked for each request.
    absent_at: AtomicU64,
    latest: ScopedLock<Latest>,
}

#[derive(Debug, Default)]
struct State {
    login: Option<Login>,
    /// The version of `login` in the store.
    version: Option<Version>,
    /// The token that a refusal led to. If it is refused, too, another refresh will not help.
    replacement: Option<Secret>,
    /// How often a person was asked because of a refusal.
    authorizations: usize,
    failure: Option<Failure>,
}

impl Interaction {
    /// Asks by `flow`.
    #[must_use]
    pub const fn new(user_agent: Arc<dyn UserAgent>, flow: Flow) -> Self {
        Self { user_agent, flow }
    }
}

impl LoginCredentials {
    /// The credentials in `store`. Without an `interaction`, nobody is asked to log in.
    #[must_use]
    pub fn new(
        settings: LoginSettings,
        store: TokenStore,
        interaction: Option<Interaction>,
        environment: Environment,
    ) -> Self {
        let policy = AddressPolicy::new(&settings.server, settings.issuer.as_ref());
        let key = LoginKey {
            principal: settings.principal.clone(),
            server: settings.server.resource(),
        };
        Self(Arc::new(Shared {
            http: HttpClient::new(policy, settings.ca.clone(), environment.variables),
            settings,
            key,
            store,
            environment,
            interaction,
            state: Arc::default(),
            absent_at: AtomicU64::new(u64::MAX),
            latest: ScopedLock::default(),
        }))
    }

    /// Whether there was no login when the store was last read, in this second.
    pub(crate) fn is_absent(&self) -> bool {
        self.0.absent_at.load(Ordering::Relaxed) == (self.0.environment.now)()
    }

    pub(crate) async fn authorization(&self) -> Result<Option<HeaderValue>, CredentialError> {
        if self.is_absent() {
            return Ok(None);
        }
        let now = (self.0.environment.now)();
        let mut state = Arc::clone(&self.0.state).lock_owned().await;
        self.0.reload(&mut state).await?;
        let tokens = state.login.as_ref().and_then(|login| login.tokens.as_ref());
        let Some(tokens) = tokens else {
            self.0.absent_at.store(now, Ordering::Relaxed);
            return Ok(None);
        };
        let valid = (!tokens.is_expired(now)).then(|| tokens.access_token.clone());
        let is_waiting = Failure::recent(state.failure.as_ref(), now);
        let is_refreshed = tokens.refresh_token.is_some() && tokens.is_due(now);
        let token = match (is_refreshed, is_waiting, valid) {
            (false, _, valid) | (true, Some(_), valid @ Some(_)) => valid,
            (true, Some(error), None) => return Err(error),
            (true, None, valid) => match self.refresh(state).await {
                Ok(token) => Some(token),
                // It is refreshed before it ends, so that there is time to try again.
                Err(CredentialError::Token(_)) if valid.is_some() => valid,
                Err(error) => return Err(error),
            },
        };
        Ok(token.and_then(|token| token.bearer()))
    }

    /// Refreshes the tokens in a task: if the caller goes away, the answer with the next refresh token is still stored.
    async fn refresh(&self, state: OwnedMutexGuard<State>) -> Result<Secret, CredentialError> {
        let shared = Arc::clone(&self.0);
        let refreshing = spawn(async move {
            let mut state = state;
            let refreshed = shared.refresh(&mut state).await;
            let now = (shared.environment.now)();
            let failure = |error: &CredentialError| Failure::new(now, error.clone());
            state.failure = refreshed.as_ref().err().map(failure);
            refreshed
        });
        refreshing.await.map_err(|error| ended(&error))?
    }

    pub(crate) async fn refused(&self, refusal: Refusal) -> Result<Retry, CredentialError> {
        let shared = Arc::clone(&self.0);
        let replacing = spawn(async move {
            let mut state = Arc::clone(&shared.state).lock_owned().await;
            shared.replace(&mut state, refusal).await
        });
        replacing.await.map_err(|error| ended(&error))?
    }

    /// Asks the person to log in.
    ///
    /// # Errors
    ///
    /// If there is no interaction, or the login fails.
    pub async fn log_in(&self) -> Result<LoginSummary, CredentialError> {
        let probed = self.0.http.probe(&self.0.settings.server).await?;
        let challenges: Vec<_> = probed.get_all(WWW_AUTHENTICATE).iter().cloned().collect();
        let challenge = Challenge::parse(&challenges);
        let mut state = Arc::clone(&self.0.state).lock_owned().await;
        self.0.reload(&mut state).await?;
        let login = self.0.authorize(&mut state, &challenge).await?;
        Ok(login.summary((self.0.environment.now)()))
    }

    /// The login as it is stored; `None` if nobody is logged in.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub async fn summary(&self) -> Result<Option<LoginSummary>, CredentialError> {
        let mut state = self.0.state.lock().await;
        self.0.reload(&mut state).await?;
        let now = (self.0.environment.now)();
        Ok(state.login.as_ref().map(|login| login.summary(now)))
    }

    /// Revokes the tokens and removes the login.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn log_out(&self) -> Result<Logout, CredentialError> {
        let lock = self.0.lock().await?;
        let (lock, login) = blocking(move || {
            let login = lock.read();
            Ok((lock, login))
        })
        .await?;
        let login = match login {
            // What cannot be read can still be removed.
            Err(StoreError::Sealed(_) | StoreError::Damaged(_)) => None,
            Ok(None) => return Ok(Logout::NotLoggedIn),
            login => login?,
        };
        let outcome = match &login {
            Some(login) => self.0.revoke(login).await,
            None => Logout::NotRevoked,
        };
        blocking(move || lock.remove()).await?;
        Ok(outcome)
    }
}

impl Shared {
    /// Reads the login if the store has another version: somebody logged in or out, or another process refreshed.
    async fn reload(&self, state: &mut State) -> Result<(), CredentialError> {
        let version = self.store.version(&self.key);
        if version != state.version {
            let store = self.store.clone();
            let key = self.key.clone();
            state.login = blocking(move || store.read(&key)).await?;
            state.version = version;
            state.failure = None;
            self.publish(state);
        }
        Ok(())
    }

    async fn lock(&self) -> Result<LockedLogin, CredentialError> {
        let store = self.store.clone();
        let key = self.key.clone();
        Ok(blocking(move || store.lock(&key)).await?)
    }

    /// Refreshes the tokens of `state`, unless another process did so while this one waited for the lock.
    async fn refresh(&self, state: &mut State) -> Result<Secret, CredentialError> {
        let token = |login: &Login| {
            login
                .tokens
                .as_ref()
                .map(|tokens| tokens.access_token.clone())
        };
        let stale = state.login.as_ref().and_then(token);
        let lock = self.lock().await?;
        let (stored, lock) = blocking(move || Ok((lock.read()?, lock))).await?;
        let ended = |reason: &str| CredentialError::LoginNeeded {
            server: self.settings.name.clone(),
            reason: Some(reason.to_owned()),
        };
        let mut login = stored.ok_or_else(|| ended("somebody logged out"))?;
        if let Some(current) = token(&login).filter(|current| Some(current) != stale.as_ref()) {
            self.remember(state, login);
            return Ok(current);
        }
        let last = login
            .tokens
            .as_ref()
            .and_then(|tokens| tokens.refresh_token.clone());
        let refresh_token = last.ok_or_else(|| ended("the last login has ended"))?;
        let http = self.http(&login);
        let endpoint = self.endpoint(&http, &login);
        let refreshed = endpoint.refresh(&refresh_token, &login.resource).await;
        let result = match refreshed {
            Ok(tokens) => {
                let token = tokens.access_token.clone();
                login.tokens = Some(tokens);
                Ok(token)
            }
            Err(error) if error.is_invalid_grant() => {
                login.tokens = None;
                let why = error.for_clients();
                Err(ended(&format!("the last login has ended: {why}")))
            }
            Err(error) => return Err(error.into()),
        };
        self.write(state, lock, login).await?;
        result
    }

    /// A client for the authorization server of a login, which the operator may have written at another terminal.
    fn http(&self, login: &Login) -> HttpClient {
        let written = login
            .is_issuer_written
            .then(|| Address::parse(&login.issuer).ok());
        match written.flatten() {
            Some(issuer) => {
                let policy = AddressPolicy::new(&self.settings.server, Some(&issuer));
                self.http.with_policy(policy)
            }
            None => self.http.clone(),
        }
    }

    fn endpoint<'a>(&self, http: &'a HttpClient, login: &'a Login) -> TokenEndpoint<'a> {
        TokenEndpoint {
            http,
            url: &login.token_endpoint,
            issuer: &login.issuer,
            client: &login.client,
            environment: self.environment,
        }
    }

    /// Stores `login`. This process uses it even if that fails.
    async fn write(
        &self,
        state: &mut State,
        lock: LockedLogin,
        login: Login,
    ) -> Result<(), CredentialError> {
        let stored = login.clone();
        let written = blocking(move || lock.write(&stored)).await;
        self.remember(state, login);
        Ok(written?)
    }

    fn remember(&self, state: &mut State, login: Login) {
        state.login = Some(login);
        state.version = self.store.version(&self.key);
        self.publish(state);
    }

    /// Replaces the authorization that was refused.
    async fn replace(&self, state: &mut State, refusal: Refusal) -> Result<Retry, CredentialError> {
        self.reload(state).await?;
        let tokens = state.login.as_ref().and_then(|login| login.tokens.as_ref());
        let current = tokens.and_then(|tokens| tokens.access_token.bearer());
        if current.is_some() && current != refusal.sent {
            return Ok(Retry::Once);
        }
        let mut reason = None;
        match refusal.kind {
            RefusalKind::InsufficientScope => {
                let requested = refusal.challenge.scope.clone().unwrap_or_default();
                let login = state.login.as_ref();
                if login.is_none_or(|login| login.scope.contains_all(&requested)) {
                    return Ok(Retry::Never);
                }
                self.store_missing_scope(state, &requested).await?;
                reason = Some(format!("it needs another scope: {requested}"));
            }
            RefusalKind::Unauthorized => {
                let token = tokens.map(|tokens| tokens.access_token.clone());
                let is_replacement = token.is_some() && token == state.replacement;
                let can_refresh = tokens.is_some_and(|tokens| tokens.refresh_token.is_some());
                if can_refresh && !is_replacement {
                    match self.refresh(state).await {
                        Ok(token) => {
                            state.replacement = Some(token);
                            return Ok(Retry::Once);
                        }
                        Err(CredentialError::LoginNeeded { reason: why, .. }) => reason = why,
                        Err(error) => return Err(error),
                    }
                } else if is_replacement && self.interaction.is_none() {
                    return Err(CredentialError::Rejected);
                }
            }
        }
        if self.interaction.is_none() {
            let server = self.settings.name.clone();
            return Err(CredentialError::LoginNeeded { server, reason });
        }
        if state.authorizations >= MAX_AUTHORIZATIONS {
            return Err(CredentialError::Rejected);
        }
        state.authorizations += 1;
        self.authorize(state, &refusal.challenge).await?;
        Ok(Retry::Once)
    }

    /// Stores the scopes that the next login requests, too.
    async fn store_missing_scope(
        &self,
        state: &mut State,
        requested: &Scopes,
    ) -> Result<(), CredentialError> {
        let lock = self.lock().await?;
        let (login, lock) = blocking(move || Ok((lock.read()?, lock))).await?;
        if let Some(mut login) = login.filter(|login| !login.missing_scope.contains_all(requested))
        {
            login.missing_scope = login.missing_scope.union(requested);
            self.write(state, lock, login).await?;
        }
        Ok(())
    }

    /// Revokes the tokens (RFC 7009).
    async fn revoke(&self, login: &Login) -> Logout {
        let endpoint = login.revocation_endpoint.as_ref();
        let Some((url, tokens)) = endpoint.zip(login.tokens.as_ref()) else {
            return Logout::NotRevoked;
        };
        let http = self.http(login);
        let endpoint = TokenEndpoint {
            url,
            ..self.endpoint(&http, login)
        };
        let revoked = async |token: &Secret| {
            let answer = endpoint.post(&[("token", token.expose())]).await;
            answer.is_ok_and(|answer| answer.status == StatusCode::OK)
        };
        let has_refresh_ended = match &tokens.refresh_token {
            Some(token) => revoked(token).await,
            None => false,
        };
        match revoked(&tokens.access_token).await {
            true if has_refresh_ended || tokens.refresh_token.is_none() => Logout::Revoked,
            // Few authorization servers can revoke an access token that is a JWT.
            false if has_refresh_ended => Logout::AccessTokenEnds,
            _ => Logout::NotRevoked,
        }
    }
}

impl HttpClient {
    /// Sends a request without authorization, and returns the headers of the answer: a server that needs a login says where.
    async fn probe(&self, server: &Address) -> Result<HeaderMap, CredentialError> {
        let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
        let answer = self.post_json(server.as_str(), message.to_owned()).await?;
        Ok(answer.headers)
    }
}

/// Runs what reads or writes files where it blocks nothing else.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let worked = tokio::task::spawn_blocking(work).await;
    worked.map_err(|error| StoreError::Failed(error.to_string()))?
}

fn ended(error: &tokio::task::JoinError) -> CredentialError {
    CredentialError::Store(StoreError::Failed(error.to_string()))
}

/// How often one process asks a person because of refusals.
const MAX_AUTHORIZATIONS: usize = 3;
