//! Tokens of a server in exchange for the access tokens of clients: RFC 8693, and the on-behalf-of form of RFC 7523.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::{HeaderValue, StatusCode};
use mcp_vary_base::caller_token::CallerToken;
use mcp_vary_base::environment::Environment;
use mcp_vary_base::lock::ScopedLock;
use mcp_vary_http_client::credential_source::{
    ClientCredentials, CredentialError, CredentialSource, Refusal, Retry,
};
use quick_cache::sync::Cache;
use tokio::sync::{Mutex as AsyncMutex, Notify};

use crate::address::{Address, AddressPolicy};
use crate::challenge::Challenge;
use crate::client::Client;
use crate::credentials::Credentials;
use crate::discovery::{ServerMetadata, server_metadata};
use crate::error;
use crate::http_client::HttpClient;
use crate::scope::Scopes;
use crate::service::{ServiceAuthentication, ServiceCredentials, ServiceSettings};
use crate::source::AuthorizationSource;
use crate::token::{TokenEndpoint, Tokens};

/// What is exchanged, and where.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExchangeSettings {
    /// The server that gets the tokens.
    pub server: Address,
    /// Where tokens are exchanged. A server cannot name it: tokens of clients go where the operator says, and nowhere else.
    pub authorization_server: ExchangeServer,
    /// The id of the client that exchanges.
    pub client_id: String,
    /// How it authenticates.
    pub authentication: ServiceAuthentication,
    /// The form of the requests.
    pub form: ExchangeForm,
    /// The parameter `resource` (RFC 8707).
    pub resource: Option<String>,
    /// The parameter `audience`.
    pub audience: Option<String>,
    /// The scopes to request.
    pub scope: Scopes,
    /// The service that reads the lists of all clients; if absent, each client has its own.
    pub for_lists: Option<ServiceSettings>,
    /// The file of authorities that are trusted beside those of the system.
    pub ca: Option<PathBuf>,
}

/// The authorization server that exchanges tokens.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ExchangeServer {
    /// This one, whose metadata names its token endpoint.
    Issuer(Address),
    /// Its token endpoint; its metadata is not read.
    TokenEndpoint(Address),
}

/// The form of the requests for tokens.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ExchangeForm {
    /// `grant_type` is that of RFC 8693; the client's token is `subject_token`.
    #[default]
    TokenExchange,
    /// `grant_type` is that of RFC 7523; the client's token is `assertion`, with `requested_token_use=on_behalf_of`.
    OnBehalfOf,
}

/// Exchanges the tokens of the clients of one server.
///
/// # Properties
///
/// Tokens are in memory only: at most 8,192, each by the digest of the client's token, until 30 seconds before its end, until
/// the end of the client's token, and for 5 minutes at the longest. All requests with one client's token wait for the same
/// exchange.
#[derive(Clone, Debug)]
pub struct TokenExchange(Arc<Exchange>);

struct Exchange {
    settings: ExchangeSettings,
    identity: String,
    http: HttpClient,
    environment: Environment,
    for_lists: Option<Arc<AuthorizationSource>>,
    metadata: AsyncMutex<Option<ServerMetadata>>,
    tokens: Cache<[u8; 32], Arc<AsyncMutex<Option<Exchanged>>>>,
}

/// The result of one exchange.
#[derive(Clone)]
struct Exchanged {
    value: Result<HeaderValue, CredentialError>,
    /// The first second at which it is not used.
    until: u64,
    /// Whether it replaces a token that the server refused. If it is refused, too, another will not help.
    is_replacement: bool,
}

/// The exchanged tokens of the client of one connection.
#[derive(Debug)]
struct ExchangedSource {
    exchange: Arc<Exchange>,
    /// For requests that belong to no request of the client.
    latest: ScopedLock<CallerToken>,
    renewed: Notify,
}

impl ExchangeSettings {
    /// The exchange for `server`, as RFC 8693 has it, for tokens that are good for the server alone.
    #[must_use]
    pub fn new(
        server: Address,
        authorization_server: ExchangeServer,
        client_id: String,
        authentication: ServiceAuthentication,
    ) -> Self {
        Self {
            resource: Some(server.resource()),
            server,
            authorization_server,
            client_id,
            authentication,
            form: ExchangeForm::default(),
            audience: None,
            scope: Scopes::default(),
            for_lists: None,
            ca: None,
        }
    }
}

impl TokenExchange {
    /// The exchange with these settings. Those with the same `identity` are the same.
    #[must_use]
    pub fn new(settings: ExchangeSettings, identity: String, environment: Environment) -> Self {
        let (ExchangeServer::Issuer(written) | ExchangeServer::TokenEndpoint(written)) =
            &settings.authorization_server;
        let policy = AddressPolicy::new(&settings.server, Some(written));
        let for_lists = settings.for_lists.clone().map(|service| {
            let service = ServiceCredentials::new(service, environment);
            let credentials = Credentials::Service(service);
            Arc::new(AuthorizationSource::configured(
                credentials,
                identity.clone(),
            ))
        });
        Self(Arc::new(Exchange {
            http: HttpClient::new(policy, settings.ca.clone(), environment.variables),
            settings,
            identity,
            for_lists,
            environment,
            metadata: AsyncMutex::default(),
            tokens: Cache::new(MAX_TOKENS),
        }))
    }
}

impl ClientCredentials for TokenExchange {
    fn for_client(&self, caller: &CallerToken) -> Arc<dyn CredentialSource> {
        Arc::new(ExchangedSource {
            exchange: Arc::clone(&self.0),
            latest: ScopedLock::new(caller.clone()),
            renewed: Notify::new(),
        })
    }

    fn for_lists(&self) -> Option<Arc<dyn CredentialSource>> {
        let source = self.0.for_lists.clone()?;
        Some(source)
    }

    fn identity(&self) -> &str {
        &self.0.identity
    }
}

impl CredentialSource for ExchangedSource {
    fn authorization(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, CredentialError>> {
        Box::pin(async {
            let latest = self.latest.lock().clone();
            self.exchange.authorization(&latest).await.map(Some)
        })
    }

    fn authorization_for<'a>(
        &'a self,
        caller: &'a CallerToken,
    ) -> BoxFuture<'a, Result<Option<HeaderValue>, CredentialError>> {
        Box::pin(async { self.exchange.authorization(caller).await.map(Some) })
    }

    fn present(&self, caller: &CallerToken) -> bool {
        let mut latest = self.latest.lock();
        let is_later = caller.expires_at() >= latest.expires_at();
        let is_new = is_later && caller.digest() != latest.digest();
        if is_new {
            *latest = caller.clone();
            self.renewed.notify_one();
        }
        is_new
    }

    fn refused<'a>(
        &'a self,
        refusal: Refusal<'a>,
    ) -> BoxFuture<'a, Result<Retry, CredentialError>> {
        Box::pin(async move {
            // Another token has the same scopes.
            if refusal.status != StatusCode::UNAUTHORIZED {
                return Err(self.exchange.too_few_scopes(refusal.challenges));
            }
            let latest = self.latest.lock().clone();
            let caller = refusal.caller.unwrap_or(&latest);
            self.exchange.replace(caller, refusal.sent).await
        })
    }

    fn renewed(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.renewed.notified())
    }

    fn identity(&self) -> &str {
        &self.exchange.identity
    }
}

impl Exchange {
    /// The place of what is exchanged for a token. Its lock makes it one exchange for all who wait.
    fn place(&self, caller: &CallerToken) -> Arc<AsyncMutex<Option<Exchanged>>> {
        let new = || Ok::<_, Infallible>(Arc::default());
        let Ok(place) = self.tokens.get_or_insert_with(caller.digest(), new);
        place
    }

    async fn authorization(&self, caller: &CallerToken) -> Result<HeaderValue, CredentialError> {
        let now = (self.environment.now)();
        if caller.has_ended(now) {
            return Err(CredentialError::new(
                "the access token of its user has ended",
            ));
        }
        let place = self.place(caller);
        let mut known = place.lock().await;
        match &*known {
            Some(exchanged) if now < exchanged.until => exchanged.value.clone(),
            _ => known
                .insert(self.exchange(caller, false).await)
                .value
                .clone(),
        }
    }

    /// Exchanges again after the server refused the value `sent`, unless that was done.
    async fn replace(
        &self,
        caller: &CallerToken,
        sent: Option<&HeaderValue>,
    ) -> Result<Retry, CredentialError> {
        let place = self.place(caller);
        let mut known = place.lock().await;
        if let Some(Exchanged {
            value: Ok(value),
            is_replacement,
            ..
        }) = &*known
        {
            if Some(value) != sent {
                return Ok(Retry::Once);
            }
            if *is_replacement {
                return Err(CredentialError::new("it does not accept its user"));
            }
        }
        let exchanged = known.insert(self.exchange(caller, true).await);
        exchanged.value.clone().map(|_| Retry::Once)
    }

    /// The error for a token that has too few scopes. What the server wants is for the operator alone.
    fn too_few_scopes(&self, challenges: &[HeaderValue]) -> CredentialError {
        let scopes = &self.settings.scope;
        let requested = if scopes.is_empty() {
            "no `scopes` are configured for the exchange".to_owned()
        } else {
            format!("the exchange requests `{scopes}`")
        };
        let error =
            CredentialError::new(format!("its user's token has too few scopes; {requested}"));
        match Challenge::parse(challenges).scope {
            Some(wanted) => error.with_details(format!(
                "the server wants `{wanted}`; add what is missing to `scopes` in `auth.token-exchange`"
            )),
            None => error,
        }
    }

    /// Exchanges a token. A failure is the result for a moment, so that it is not repeated for each who waits.
    async fn exchange(&self, caller: &CallerToken, is_replacement: bool) -> Exchanged {
        let requested = self.request(caller).await;
        let now = (self.environment.now)();
        let (value, until) = match requested {
            Ok((value, tokens)) => (Ok(value), end(&tokens, now)),
            // What the authorization server says may name others than the user.
            Err(error) => {
                let what = "no token was issued in exchange for the access token of its user";
                let error = CredentialError::new(what).with_details(error.to_string());
                (Err(error), now.saturating_add(FAILURE_SECONDS))
            }
        };
        Exchanged {
            value,
            until: until.min(caller.expires_at()),
            is_replacement,
        }
    }

    async fn request(
        &self,
        caller: &CallerToken,
    ) -> Result<(HeaderValue, Tokens), error::CredentialError> {
        let settings = &self.settings;
        let metadata = self.metadata().await?;
        let client: Client = settings
            .authentication
            .client(settings.client_id.clone(), &metadata);
        let endpoint = TokenEndpoint {
            http: &self.http,
            url: &metadata.token_endpoint,
            issuer: &metadata.issuer,
            client: &client,
            environment: self.environment,
        };
        let scope = settings.scope.to_string();
        let mut parameters = match settings.form {
            ExchangeForm::TokenExchange => vec![
                ("grant_type", TOKEN_EXCHANGE),
                ("subject_token", caller.expose()),
                ("subject_token_type", ACCESS_TOKEN),
                ("requested_token_type", ACCESS_TOKEN),
            ],
            ExchangeForm::OnBehalfOf => vec![
                ("grant_type", JWT_BEARER),
                ("assertion", caller.expose()),
                ("requested_token_use", "on_behalf_of"),
            ],
        };
        let resource = settings.resource.as_deref();
        let audience = settings.audience.as_deref();
        parameters.extend(resource.map(|uri| ("resource", uri)));
        parameters.extend(audience.map(|name| ("audience", name)));
        if !scope.is_empty() {
            parameters.push(("scope", &scope));
        }
        let requested = endpoint.request(&parameters).await;
        if requested.is_err() {
            // The metadata may have changed.
            *self.metadata.lock().await = None;
        }
        let tokens = requested?;
        // An authorization server that returns the token unchanged would have it sent to the server.
        let is_same = tokens.access_token.expose() == caller.expose();
        let value = match tokens.access_token.bearer() {
            Some(value) if !is_same => value,
            _ => return Err(error::CredentialError::NotExchanged),
        };
        Ok((value, tokens))
    }

    /// The metadata of the authorization server, read once for all who wait.
    async fn metadata(&self) -> Result<ServerMetadata, error::CredentialError> {
        let issuer = match &self.settings.authorization_server {
            ExchangeServer::Issuer(issuer) => issuer.as_str(),
            ExchangeServer::TokenEndpoint(endpoint) => {
                return Ok(ServerMetadata {
                    // RFC 7523, section 3: the audience of an assertion may be the token endpoint.
                    issuer: endpoint.as_str().to_owned(),
                    token_endpoint: endpoint.as_str().to_owned(),
                    ..ServerMetadata::default()
                });
            }
        };
        let mut known = self.metadata.lock().await;
        if let Some(metadata) = &*known {
            return Ok(metadata.clone());
        }
        let metadata = server_metadata(&self.http, issuer).await?;
        Ok(known.insert(metadata).clone())
    }
}

/// The first second at which a new token is not used any more.
fn end(tokens: &Tokens, now: u64) -> u64 {
    let longest = now.saturating_add(MAX_SECONDS);
    tokens.expires_at.map_or(longest, |end| {
        // The life of some tokens is shorter than the usual margin.
        let margin = MARGIN_SECONDS.min(end.saturating_sub(now) / 5);
        end.saturating_sub(margin).min(longest)
    })
}

// Nothing of the tokens.
mcp_vary_base::debug_by_name!(Exchange);

/// RFC 8693, section 2.1.
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
/// RFC 8693, section 3.
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
/// RFC 7523, section 2.1.
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// The most tokens of one server.
const MAX_TOKENS: usize = 8192;
/// The longest use of a token, so that what the authorization server withdraws counts soon.
const MAX_SECONDS: u64 = 300;
/// How long before its end a token is replaced.
const MARGIN_SECONDS: u64 = 30;
/// The seconds in which a failure is not repeated.
const FAILURE_SECONDS: u64 = 5;
