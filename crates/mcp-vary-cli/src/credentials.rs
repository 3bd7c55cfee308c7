//! The stored logins as credentials of servers.

pub(crate) mod browser;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::header::AUTHORIZATION;
use mcp_vary::variant::Date;
use mcp_vary_base::environment::Environment;
use mcp_vary_config::{AuthMethod, File, ServerAuth};
use mcp_vary_gateway::settings::sealing_keys::SealingKeys;
use mcp_vary_gateway::{Config, Target, UpstreamConfig};
use mcp_vary_http_client::credential_source::CredentialStatus;
use mcp_vary_login::address::Address;
use mcp_vary_login::credentials::Credentials;
use mcp_vary_login::exchange::{ExchangeSettings, TokenExchange};
use mcp_vary_login::login::{Interaction, LoginCredentials, LoginSettings};
use mcp_vary_login::seal::SealKey;
use mcp_vary_login::service::ServiceCredentials;
use mcp_vary_login::source::AuthorizationSource;
use mcp_vary_login::store::TokenStore;
use mcp_vary_login::user_agent::Flow;
use mcp_vary_upstream::command_line::shell_word;

use crate::environment::{environment, path_variable, state_directory};
use crate::failure::Failure;

use self::browser::Browser;

/// Whether a person is asked to log in when a server wants it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum LoginMode {
    /// Stored logins alone are used. `vary serve` never opens a browser.
    #[default]
    Stored,
    /// A browser is opened, in the middle of a call too.
    Interactive,
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

/// The configuration of `file` with credentials for its servers.
pub(crate) fn file_with_logins(file: File, mode: LoginMode) -> Result<Config, Failure> {
    let auth = file.auth.clone();
    let needs_store = |auth: &ServerAuth| matches!(auth.method, AuthMethod::Login { .. });
    if auth.values().any(needs_store) {
        store(&SealingKeys::default())?;
    }
    let option = file_option(&file.name);
    Ok(add(
        file.into_config(environment()?),
        (&auth, &option),
        mode,
    ))
}

/// What names the file `name` to `vary login`.
fn file_option(name: &str) -> String {
    // `vary status` shows the command in any directory.
    let absolute = std::path::absolute(name).ok();
    let whole = absolute.as_deref().and_then(Path::to_str).unwrap_or(name);
    format!(" --file {}", shell_word(whole))
}

/// The configuration of servers that are in no file, with the stored logins.
pub(crate) fn with_logins(config: Config, mode: LoginMode) -> Config {
    add(config, (&BTreeMap::new(), ""), mode)
}

/// Adds the credentials in `auth` to the servers that have them, and the stored logins to those that have a URL and no
/// credentials in the configuration. `option` names the file to `vary login`. Without a directory for logins there are
/// none. A gateway with `auth` serves several people, and none of them gets the login of the person who started it.
fn add(
    mut config: Config,
    (auth, option): (&BTreeMap<String, ServerAuth>, &str),
    mode: LoginMode,
) -> Config {
    let logins = Logins {
        option: option.to_owned(),
        store: store(&config.named_keys).ok(),
        is_implied: mode == LoginMode::Interactive || config.authentication.is_none(),
        mode,
        environment: config.environment,
    };
    let all = config.servers.into_iter();
    let servers = all.map(|server| {
        let configured = auth.get(&server.name);
        if let Some((settings, identity)) = exchange(configured) {
            let exchange = TokenExchange::new(settings, identity, logins.environment);
            return server.with_client_credentials(Arc::new(exchange));
        }
        let source = logins.source(&server, configured);
        match source {
            Some(source) => logins.add(server, source),
            None => server,
        }
    });
    config.servers = servers.collect();
    config
}

/// The exchange in `auth`, with its identity.
fn exchange(configured: Option<&ServerAuth>) -> Option<(ExchangeSettings, String)> {
    let auth = configured?;
    match &auth.method {
        AuthMethod::TokenExchange(settings) => Some(((**settings).clone(), auth.identity.clone())),
        _ => None,
    }
}

/// Where the credentials of servers come from.
struct Logins {
    /// What names the file to `vary login`.
    option: String,
    /// Absent without a directory for logins.
    store: Option<TokenStore>,
    /// Whether servers without configured credentials use a stored login.
    is_implied: bool,
    mode: LoginMode,
    environment: Environment,
}

impl Logins {
    /// The credentials of `server`, for which `auth` is configured.
    fn source(
        &self,
        server: &UpstreamConfig,
        auth: Option<&ServerAuth>,
    ) -> Option<AuthorizationSource> {
        let Some(auth) = auth else {
            return self.implied(server);
        };
        let credentials = match &auth.method {
            AuthMethod::ClientCredentials(settings) => Credentials::Service(
                ServiceCredentials::new((**settings).clone(), self.environment),
            ),
            AuthMethod::Login { settings, flow } => {
                let mut settings = (**settings).clone();
                settings.name.push_str(&self.option);
                self.login(settings, *flow)?
            }
            _ => return None,
        };
        let identity = auth.identity.clone();
        Some(AuthorizationSource::configured(credentials, identity))
    }

    /// The stored login at a server without configured credentials.
    fn implied(&self, server: &UpstreamConfig) -> Option<AuthorizationSource> {
        let protected = self.is_implied.then(|| address(server)).flatten()?;
        let name = match &server.target {
            // The name of a server that was named by its URL is not known elsewhere.
            Target::Http { url, .. } if url.host() == Some(&*server.name) => protected.resource(),
            _ => format!("{}{}", server.name, self.option),
        };
        let identity = format!("login {}", protected.resource());
        let mut settings = LoginSettings::new(name, protected);
        settings.ca.clone_from(&server.ca);
        let credentials = self.login(settings, Flow::AuthorizationCode)?;
        Some(match self.mode {
            LoginMode::Stored => AuthorizationSource::implied(credentials, identity),
            LoginMode::Interactive => AuthorizationSource::configured(credentials, identity),
        })
    }

    fn login(&self, settings: LoginSettings, flow: Flow) -> Option<Credentials> {
        let store = self.store.clone()?;
        let interaction = (self.mode == LoginMode::Interactive)
            .then(|| Interaction::new(Arc::new(Browser::Opened), flow));
        let login = LoginCredentials::new(settings, store, interaction, self.environment);
        Some(Credentials::Login(login))
    }

    fn add(&self, server: UpstreamConfig, source: AuthorizationSource) -> UpstreamConfig {
        let mut authorized = server.with_credential(AUTHORIZATION, Arc::new(source));
        if self.mode == LoginMode::Interactive {
            let limits = &mut authorized.limits;
            for limit in [
                &mut limits.handshake,
                &mut limits.probe,
                &mut limits.initialize,
                &mut limits.idle,
            ] {
                *limit = (*limit).max(PATIENCE);
            }
        }
        authorized
    }
}

/// The address of a server that may need a login.
fn address(server: &UpstreamConfig) -> Option<Address> {
    let Target::Http { url, headers } = &server.target else {
        return None;
    };
    let mut claims = server.claim_headers.iter().map(|(name, _)| name);
    let mut sources = server.credentials.iter().map(|source| &source.header);
    let is_configured = headers.contains_key(AUTHORIZATION)
        || claims.any(|name| *name == AUTHORIZATION)
        || sources.any(|name| *name == AUTHORIZATION);
    // An address with a user is not one of these.
    let address = Address::parse(&url.to_string()).ok()?;
    (!is_configured).then_some(address)
}

/// The login for requests to `url`, if somebody is logged in there.
/// `ca` is the file of further authorities.
pub(crate) async fn authorization(
    url: &str,
    ca: Option<&Path>,
) -> Result<Option<HeaderValue>, Failure> {
    let (Ok(address), Ok(store)) = (Address::parse(url), store(&SealingKeys::default())) else {
        return Ok(None);
    };
    let mut settings = LoginSettings::new(address.resource(), address);
    settings.ca = ca.map(Path::to_owned);
    let login = LoginCredentials::new(settings, store, None, environment()?);
    let value = Credentials::Login(login).authorization().await;
    value.map_err(|error| Failure::command(error.to_string()))
}

/// The time that a person has: a login is a part of a request.
const PATIENCE: Duration = Duration::from_secs(660);

/// The logins of this user, which are sealed with the `keys` of the configuration if it has any.
pub(crate) fn store(keys: &SealingKeys) -> Result<TokenStore, Failure> {
    let directory = state_directory(&path_variable).ok_or_else(|| {
        Failure::command(
            "`HOME` is not set, so logins cannot be stored; set it (`export HOME=/srv/NAME`), or XDG_STATE_HOME to an absolute path",
        )
    })?;
    let logins = directory.join("vary").join("logins");
    let split = keys.split().into_iter();
    let all = split.flat_map(|(first, others)| [&[first], others].concat());
    let seal_keys = all.filter_map(|key| SealKey::derived(&key.0)).collect();
    Ok(TokenStore::new(logins, seal_keys, environment()?).with_keyring())
}

/// Until when credentials are valid.
pub(crate) fn until(status: CredentialStatus) -> String {
    let time = |seconds| {
        let minutes = seconds / 60;
        format!(
            "{} {:02}:{:02} UTC",
            Date::from_unix(seconds),
            minutes / 60 % 24,
            minutes % 60
        )
    };
    match status.expires_at {
        _ if status.has_ended => "ended".to_owned(),
        _ if status.is_refreshed => "refreshed by itself".to_owned(),
        Some(end) => format!("until {}", time(end)),
        None => "without end".to_owned(),
    }
}
