//! `vary login` and `vary logout`.

pub(crate) mod args;

use std::path::Path;
use std::sync::Arc;

use mcp_vary_config::{AuthMethod, File, SecretFiles};
use mcp_vary_gateway::Target;
use mcp_vary_gateway::settings::sealing_keys::SealingKeys;
use mcp_vary_login::address::Address;
use mcp_vary_login::login::{Interaction, LoginCredentials, LoginSettings, Logout};
use mcp_vary_login::registration::ConfiguredClient;
use mcp_vary_login::scope::Scopes;
use mcp_vary_login::secret::Secret;
use mcp_vary_login::store::{LoginSummary, StoreError};
use mcp_vary_login::user_agent::Flow;
use serde_json::{Value, json};

use crate::credentials::browser::Browser;
use crate::credentials::{store, until};
use crate::environment::environment;
use crate::failure::{Failure, Verdict};
use crate::print::table::table;
use crate::print::{self, sanitize};
use crate::server_target::args::{FOUND, find_file};
use crate::stop::Stop;
use crate::{file, server_target};

use self::args::ServerFile;

/// Logs in, or lists the logins.
pub(crate) async fn log_in(args: args::Login, mut stop: Stop) -> Result<Verdict, Failure> {
    let Some(server) = &args.server else {
        return list(&args).await;
    };
    let browser = if args.no_browser {
        Browser::Pasted
    } else {
        Browser::Opened
    };
    let mut found = named(server, &args.file)?;
    configure(&mut found.settings, &args)?;
    let flow = if args.device {
        Flow::Device
    } else {
        found.flow
    };
    let interaction = Interaction::new(Arc::new(browser), flow);
    let tokens = store(&found.keys)?;
    let login = LoginCredentials::new(found.settings, tokens, Some(interaction), environment()?);
    let logging_in = stop.unless_requested(async {
        let logged_in = login.log_in().await;
        logged_in.map_err(|error| Failure::looked_at(format!("{}: {error}", shown(server))))
    });
    let summary = logging_in.await?;
    let line = format!(
        "logged in to {}, {}",
        summary.key.server,
        until(summary.status)
    );
    print::progress(&sanitize(&line));
    Ok(Verdict::Fine)
}

/// Logs out.
pub(crate) async fn log_out(args: args::Logout, mut stop: Stop) -> Result<Verdict, Failure> {
    let NamedServer { settings, keys, .. } = named(&args.server, &args.file)?;
    let server = settings.server.resource();
    let login = LoginCredentials::new(settings, store(&keys)?, None, environment()?);
    let outcome = stop.unless_requested(async {
        let logged_out = login.log_out().await;
        logged_out.map_err(|error| Failure::command(error.to_string()))
    });
    let line = match outcome.await? {
        Logout::Revoked => format!("logged out of {server}; the tokens are revoked"),
        Logout::AccessTokenEnds => format!(
            "logged out of {server}; the refresh token is revoked, and the access token ends by itself"
        ),
        Logout::NotRevoked => format!(
            "logged out of {server}; its authorization server did not revoke the tokens, so they end by themselves"
        ),
        _ => {
            let why =
                format!("nobody is logged in to {server}; `vary login --list` shows the logins");
            return Err(Failure::looked_at(why));
        }
    };
    print::progress(&sanitize(&line));
    Ok(Verdict::Fine)
}

async fn list(args: &args::Login) -> Result<Verdict, Failure> {
    let mut logins = stored(&keys(args.file.path.as_deref())?).await?;
    // The file of the directory matters only if its keys may seal what cannot be read without.
    if args.file.path.is_none() && logins.iter().any(Result::is_err) {
        logins = stored(&keys(find_file())?).await?;
    }
    let is_fine = logins.iter().all(Result::is_ok);
    let text = if args.json {
        let values: Vec<Value> = logins.iter().map(json_entry).collect();
        print::sanitize_json(&format!("{}\n", Value::from(values)))
    } else {
        let rows: Vec<Vec<String>> = logins.iter().map(row).collect();
        sanitize(&table(&rows, 3))
    };
    print::data(&text)?;
    if logins.is_empty() && !args.json {
        print::progress("nobody is logged in; `vary login URL` logs in");
    }
    Ok(Verdict::fine_if(is_fine))
}

async fn stored(keys: &SealingKeys) -> Result<Vec<Result<LoginSummary, StoreError>>, Failure> {
    let tokens = store(keys)?;
    // The keyring may wait for a person.
    let joined = tokio::task::spawn_blocking(move || tokens.list()).await;
    let listed = joined.map_err(|error| Failure::command(error.to_string()))?;
    listed.map_err(|error| Failure::command(error.to_string()))
}

/// The keys of the file at `path`, if there is one.
fn keys(path: Option<&Path>) -> Result<SealingKeys, Failure> {
    Ok(match path {
        Some(path) => parsed(path, &[])?.into_config(environment()?).named_keys,
        None => SealingKeys::default(),
    })
}

fn row(login: &Result<LoginSummary, StoreError>) -> Vec<String> {
    match login {
        Ok(login) => vec![
            login.key.server.clone(),
            until(login.status),
            login.scope.to_string(),
        ],
        Err(error) => vec![error.to_string()],
    }
}

fn json_entry(login: &Result<LoginSummary, StoreError>) -> Value {
    match login {
        Ok(login) => json!({
            "server": login.key.server,
            "issuer": login.issuer,
            "scope": login.scope.to_string(),
            "expires": login.status.expires_at,
            "refreshed": login.status.is_refreshed,
            "ended": login.status.has_ended,
        }),
        Err(error) => json!({"error": error.to_string()}),
    }
}

/// Changes the settings by the options.
fn configure(settings: &mut LoginSettings, args: &args::Login) -> Result<(), Failure> {
    if !args.scopes.is_empty() {
        let scopes = args.scopes.iter().flat_map(|text| text.split(' '));
        settings.scope = Scopes::from_names(scopes);
    }
    if args.client_id.is_some() {
        settings.client = ConfiguredClient::default();
        settings.client.id.clone_from(&args.client_id);
    }
    if args.ca.is_some() {
        settings.ca.clone_from(&args.ca);
    }
    let port = args.redirect_port.or(settings.client.redirect_port);
    settings.client.redirect_port = port;
    if let Some(path) = &args.client_secret_file {
        let text = file::text(path)?;
        settings.client.secret = Some(Secret::new(text.trim()));
    }
    if let Some(issuer) = &args.issuer {
        let issuer = Address::parse(issuer);
        let unusable = |error| Failure::command(format!("--issuer cannot be used: {error}"));
        settings.issuer = Some(issuer.map_err(unusable)?);
    }
    Ok(())
}

/// A server to log in to, as a file configures it.
struct NamedServer {
    settings: LoginSettings,
    flow: Flow,
    /// The keys of the file.
    keys: SealingKeys,
}

/// The server at a URL, or with a name in a file.
fn named(server: &str, file: &ServerFile) -> Result<NamedServer, Failure> {
    let unusable = |error| Failure::command(format!("`{}` cannot be used: {error}", shown(server)));
    if server.contains("://") {
        server_target::http_url(server, server).map_err(Failure::command)?;
        let address = Address::parse(server).map_err(unusable)?;
        return Ok(NamedServer {
            settings: LoginSettings::new(shown(server), address),
            flow: Flow::AuthorizationCode,
            keys: keys(file.path.as_deref())?,
        });
    }
    let path = file.path.as_deref().or(find_file()).ok_or_else(|| {
        Failure::command(format!(
            "`{}` is not a URL, and this directory has neither {}; name the file of the server with `--file`",
            shown(server),
            FOUND.join(" nor ")
        ))
    })?;
    let mut read = parsed(path, &[server.to_owned()])?;
    let auth = read.auth.remove(server);
    let config = read.into_config(environment()?);
    let found = config.servers.iter().find(|found| found.name == server);
    let Some((found, Target::Http { url, .. })) = found.map(|found| (found, &found.target)) else {
        let why = format!(
            "`{server}` of {} has no `url`: only servers with one need a login",
            path.display()
        );
        return Err(Failure::command(why));
    };
    let (settings, flow) = match auth.map(|auth| auth.method) {
        Some(AuthMethod::Login { settings, flow }) => (*settings, flow),
        Some(_) => {
            let why = format!(
                "`{server}` of {} has credentials of its own in `auth`, and needs no login",
                path.display()
            );
            return Err(Failure::command(why));
        }
        None => {
            let address = Address::parse(&url.to_string()).map_err(unusable)?;
            let mut settings = LoginSettings::new(server, address);
            settings.ca.clone_from(&found.ca);
            (settings, Flow::AuthorizationCode)
        }
    };
    Ok(NamedServer {
        settings,
        flow,
        keys: config.named_keys,
    })
}

/// The file at `path`, with the servers `only`.
fn parsed(path: &Path, only: &[String]) -> Result<File, Failure> {
    let secrets = SecretFiles::beside(path);
    file::parse_and_report(path, &file::text(path)?, only, &secrets, None)
}

/// An address without a query, which can have a key.
fn shown(server: &str) -> &str {
    server.split('?').next().unwrap_or_default()
}
