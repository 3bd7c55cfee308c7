//! The stored logins as credentials of servers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::header::AUTHORIZATION;
use mcp_vary_gateway::{Config, Target, UpstreamConfig};
use mcp_vary_login::address::Address;
use mcp_vary_login::credentials::{self, Credentials};
use mcp_vary_login::login::{Interaction, LoginCredentials, LoginSettings};
use mcp_vary_login::store::TokenStore;
use mcp_vary_login::user_agent::Flow;
use mcp_vary_upstream::credential_source::{CredentialError, CredentialSource, Refusal, Retry};

use super::browser::Browser;

/// Whether a person is asked to log in when a server wants it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum LoginMode {
    /// Stored logins alone are used. `vary serve` never opens a browser.
    #[default]
    Stored,
    /// A browser is opened, in the middle of a call too.
    Interactive,
}

/// The login of one server.
#[derive(Debug)]
struct StoredLogin {
    credentials: Credentials,
    mode: LoginMode,
    /// The server: all else is in the store.
    identity: String,
}

impl LoginMode {
    /// What `--login` says.
    pub(crate) const fn from_flag(is_interactive: bool) -> Self {
        if is_interactive {
            Self::Interactive
        } else {
            Self::Stored
        }
    }
}

/// Adds the stored logins to the servers that have a URL and no credentials in the configuration. Without a directory for
/// logins there are none. A gateway with `auth` serves several people, and none of them gets the login of the person who
/// started it.
pub(crate) fn with_logins(mut config: Config, mode: LoginMode) -> Config {
    if mode == LoginMode::Stored && config.authentication.is_some() {
        return config;
    }
    let Ok(store) = super::store() else {
        return config;
    };
    let environment = config.environment;
    config.servers = config
        .servers
        .into_iter()
        .map(|server| {
            let Some(address) = address(&server) else {
                return server;
            };
            let name = match &server.target {
                // The name of a server that was named by its URL is not known elsewhere.
                Target::Http { url, .. } if url.host() == Some(&*server.name) => address.resource(),
                _ => server.name.to_string(),
            };
            let source = StoredLogin::new(
                LoginSettings::new(name, address),
                store.clone(),
                mode,
                environment,
            );
            let mut server = server.with_credential(AUTHORIZATION, Arc::new(source));
            if mode == LoginMode::Interactive {
                let limits = &mut server.limits;
                for limit in [
                    &mut limits.handshake,
                    &mut limits.probe,
                    &mut limits.initialize,
                    &mut limits.idle,
                ] {
                    *limit = (*limit).max(PATIENCE);
                }
            }
            server
        })
        .collect();
    config
}

/// The address of a server that may need a login.
fn address(server: &UpstreamConfig) -> Option<Address> {
    let Target::Http { url, headers } = &server.target else {
        return None;
    };
    let mut claims = server.claim_headers.iter().map(|(name, _)| name);
    let mut sources = server.credentials.iter().map(|it| &it.header);
    let is_configured = headers.contains_key(AUTHORIZATION)
        || claims.any(|name| *name == AUTHORIZATION)
        || sources.any(|name| *name == AUTHORIZATION);
    // An address with a user is not one of these.
    let address = Address::parse(&url.to_string()).ok();
    address.filter(|_| !is_configured)
}

impl StoredLogin {
    fn new(
        settings: LoginSettings,
        store: TokenStore,
        mode: LoginMode,
        environment: mcp_vary_base::environment::Environment,
    ) -> Self {
        let identity = format!("login {}", settings.server.resource());
        let browser = || Interaction::new(Arc::new(Browser::Opened), Flow::AuthorizationCode);
        let interaction = (mode == LoginMode::Interactive).then(browser);
        let login = LoginCredentials::new(settings, store, interaction, environment);
        Self {
            credentials: Credentials::Login(login),
            mode,
            identity,
        }
    }
}

/// The time that a person has: a login is a part of a request.
const PATIENCE: Duration = Duration::from_secs(660);

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, CredentialError>> + Send + 'a>>;

impl CredentialSource for StoredLogin {
    fn authorization(&self) -> Answer<'_, Option<HeaderValue>> {
        Box::pin(async {
            let value = self.credentials.authorization().await;
            value.map_err(|error| CredentialError::new(error.to_string()))
        })
    }

    fn refused<'a>(&'a self, refusal: Refusal<'a>) -> Answer<'a, Retry> {
        Box::pin(async move {
            let Refusal {
                sent,
                status,
                challenges,
            } = refusal;
            // A server that asks for something else than a login keeps its answer.
            if sent.is_none() && challenges.is_empty() && self.mode == LoginMode::Stored {
                return Ok(Retry::Never);
            }
            match self.credentials.refused(sent, status, challenges).await {
                Ok(credentials::Retry::Worthwhile) => Ok(Retry::Once),
                Ok(_) => Ok(Retry::Never),
                Err(error) => Err(CredentialError::new(error.to_string())),
            }
        })
    }

    fn identity(&self) -> &str {
        &self.identity
    }
}
