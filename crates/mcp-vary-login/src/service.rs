//! The credentials of a service (OAuth 2.1, section 4.2; SEP-1046).

use std::path::PathBuf;
use std::sync::Arc;

use http::HeaderValue;
use mcp_vary_base::environment::Environment;
use mcp_vary_http_client::credential_source::{CredentialStatus, Retry};
use tokio::sync::Mutex;

use crate::address::{Address, AddressPolicy};
use crate::assertion::SigningKey;
use crate::challenge::Challenge;
use crate::client::{Client, ClientAuthentication};
use crate::discovery::{ServerMetadata, discover};
use crate::error::CredentialError;
use crate::http_client::HttpClient;
use crate::refusal::{Refusal, RefusalKind};
use crate::scope::Scopes;
use crate::secret::Secret;
use crate::token::{TokenEndpoint, TokenError, Tokens};

/// Tokens that a service gets by client credentials. They are in memory only.
#[derive(Clone, Debug)]
pub struct ServiceCredentials(Arc<Service>);

mcp_vary_base::defaults! {
    /// The service that a server knows.
    #[derive(Clone, Debug)]
    #[non_exhaustive]
    pub struct ServiceSettings {
        /// The service `client_id` at the authorization server of `server`.
        #[must_use]
        pub fn new(server: Address, client_id: String, authentication: ServiceAuthentication);
        /// The server.
        pub server: Address = server,
        /// The authorization server; if absent, the first that the server names. A secret is sent only to one that is named
        /// here.
        pub issuer: Option<Address> = None,
        /// The id of the client.
        pub client_id: String = client_id,
        /// How the client authenticates.
        pub authentication: ServiceAuthentication = authentication,
        /// The scopes to request; if there are none, those that the server names.
        pub scope: Scopes = Scopes::default(),
        /// The file of authorities that are trusted beside those of the system.
        pub ca: Option<PathBuf> = None,
    }
}

/// How a service authenticates.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ServiceAuthentication {
    /// By a secret.
    Secret(Secret),
    /// By assertions (`private_key_jwt`).
    PrivateKey(SigningKey),
}

#[derive(Debug)]
struct Service {
    settings: ServiceSettings,
    http: HttpClient,
    environment: Environment,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    grant: Option<Grant>,
    tokens: Option<Tokens>,
    /// The token that was requested because of a refusal. If it is refused, too, another will not help.
    replacement: Option<HeaderValue>,
    failure: Option<Failure>,
}

/// What a request for tokens needs.
#[derive(Clone, Debug)]
struct Grant {
    metadata: ServerMetadata,
    client: Client,
    resource: String,
    scope: Scopes,
}

/// A failure that is reported to all who ask at the same time, instead of being repeated for each.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    until: u64,
    error: CredentialError,
}

impl Failure {
    pub(crate) fn new(now: u64, error: CredentialError) -> Self {
        let until = now.saturating_add(FAILURE_SECONDS);
        Self { until, error }
    }

    /// The failure, if it is recent.
    pub(crate) fn recent(failure: Option<&Self>, now: u64) -> Option<CredentialError> {
        let recent = failure.filter(|failure| now < failure.until)?;
        Some(recent.error.clone())
    }
}

impl ServiceAuthentication {
    /// The client `id`, as it authenticates at the authorization server with this metadata.
    pub(crate) fn client(&self, id: String, metadata: &ServerMetadata) -> Client {
        match self {
            Self::Secret(secret) => Client::with_secret(id, Some(secret.clone()), metadata),
            Self::PrivateKey(key) => Client {
                id,
                authentication: ClientAuthentication::PrivateKey(key.clone()),
            },
        }
    }
}

impl ServiceCredentials {
    /// The credentials with these settings.
    #[must_use]
    pub fn new(settings: ServiceSettings, environment: Environment) -> Self {
        let policy = AddressPolicy::new(&settings.server, settings.issuer.as_ref());
        Self(Arc::new(Service {
            http: HttpClient::new(policy, settings.ca.clone(), environment.variables),
            settings,
            environment,
            state: Mutex::default(),
        }))
    }

    /// The current token, if it is known without waiting.
    pub(crate) fn status(&self) -> Option<CredentialStatus> {
        let state = self.0.state.try_lock().ok()?;
        let tokens = state.tokens.as_ref()?;
        Some(CredentialStatus {
            expires_at: tokens.expires_at,
            is_refreshed: true,
            has_ended: false,
        })
    }

    pub(crate) async fn authorization(&self) -> Result<HeaderValue, CredentialError> {
        let now = (self.0.environment.now)();
        let mut state = self.0.state.lock().await;
        let valid = state
            .tokens
            .as_ref()
            .filter(|tokens| !tokens.is_expired(now));
        if let Some(tokens) = valid {
            let is_waiting = Failure::recent(state.failure.as_ref(), now).is_some();
            if !tokens.is_due(now) || is_waiting {
                return bearer(tokens);
            }
        } else if let Some(error) = Failure::recent(state.failure.as_ref(), now) {
            return Err(error);
        }
        let unexpired = valid.cloned();
        match (
            self.0.request(&mut state, &Challenge::default()).await,
            unexpired,
        ) {
            (Ok(value), _) => Ok(value),
            // It is refreshed before it ends, so that there is time to try again.
            (Err(_), Some(tokens)) => bearer(&tokens),
            (Err(error), None) => Err(error),
        }
    }

    pub(crate) async fn refused(&self, refusal: Refusal) -> Result<Retry, CredentialError> {
        let mut state = self.0.state.lock().await;
        let current = state
            .tokens
            .as_ref()
            .and_then(|tokens| tokens.access_token.bearer());
        if current.is_some() && current != refusal.sent {
            return Ok(Retry::Once);
        }
        match refusal.kind {
            RefusalKind::Unauthorized => {
                if state.replacement.is_some() && state.replacement == refusal.sent {
                    return Err(CredentialError::Rejected);
                }
                // The authorization server may be another one by now.
                state.grant = None;
            }
            RefusalKind::InsufficientScope => {
                let requested = refusal.challenge.scope.as_ref();
                let Some((requested, grant)) = requested.zip(state.grant.as_mut()) else {
                    return Ok(Retry::Never);
                };
                if grant.scope.contains_all(requested) {
                    return Ok(Retry::Never);
                }
                grant.scope = grant.scope.union(requested);
            }
        }
        let value = self.0.request(&mut state, &refusal.challenge).await?;
        state.replacement = Some(value);
        Ok(Retry::Once)
    }
}

impl Service {
    /// Requests a token. The lock of `state` makes it one request for all who wait.
    async fn request(
        &self,
        state: &mut State,
        challenge: &Challenge,
    ) -> Result<HeaderValue, CredentialError> {
        let received = self.tokens(state, challenge).await;
        match received.and_then(|tokens| Ok((bearer(&tokens)?, tokens))) {
            Ok((value, tokens)) => {
                state.tokens = Some(tokens);
                state.failure = None;
                Ok(value)
            }
            Err(error) => {
                state.failure = Some(Failure::new((self.environment.now)(), error.clone()));
                Err(error)
            }
        }
    }

    async fn tokens(
        &self,
        state: &mut State,
        challenge: &Challenge,
    ) -> Result<Tokens, CredentialError> {
        let grant = match state.grant.take() {
            Some(grant) => grant,
            None => self.grant(challenge).await?,
        };
        let endpoint = TokenEndpoint {
            http: &self.http,
            url: &grant.metadata.token_endpoint,
            issuer: &grant.metadata.issuer,
            client: &grant.client,
            environment: self.environment,
        };
        let scope = grant.scope.to_string();
        let mut parameters = vec![
            ("grant_type", "client_credentials"),
            ("resource", &grant.resource),
        ];
        if !scope.is_empty() {
            parameters.push(("scope", &scope));
        }
        // A failure forgets the grant: the metadata may have changed.
        let tokens = endpoint.request(&parameters).await?;
        state.grant = Some(grant);
        Ok(tokens)
    }

    async fn grant(&self, challenge: &Challenge) -> Result<Grant, CredentialError> {
        let settings = &self.settings;
        let issuer = settings.issuer.as_ref().map(Address::as_str);
        let discovered = discover(&self.http, &settings.server, challenge, issuer, None).await?;
        let authentication = &settings.authentication;
        if issuer.is_none() && matches!(authentication, ServiceAuthentication::Secret(_)) {
            let issuer = discovered.metadata.issuer;
            return Err(CredentialError::IssuerNeeded { issuer });
        }
        let client = authentication.client(settings.client_id.clone(), &discovered.metadata);
        let mut scope = settings.scope.clone();
        if let Some(requested) = &challenge.scope {
            scope = scope.union(requested);
        } else if scope.is_empty() {
            scope = discovered.resource.scopes.unwrap_or_default();
        }
        Ok(Grant {
            metadata: discovered.metadata,
            client,
            resource: discovered.resource.resource,
            scope,
        })
    }
}

fn bearer(tokens: &Tokens) -> Result<HeaderValue, CredentialError> {
    let value = tokens.access_token.bearer();
    value.ok_or(CredentialError::Token(TokenError::NotBearer))
}

/// The seconds in which a failure is not repeated.
const FAILURE_SECONDS: u64 = 5;
