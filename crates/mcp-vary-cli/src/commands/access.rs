//! `vary access`: explains what a client may see and use.

pub(crate) mod args;
mod report;
mod token;

use std::fs::File as DiskFile;
use std::io::Read as _;
use std::sync::Arc;

use mcp_vary_access::{Claims, MAX_CLAIMS_JSON, Principal, PrincipalError};
use mcp_vary_base::io_error;
use mcp_vary_gateway::settings::authentication::Authentication;
use mcp_vary_gateway::{Config, Gateway};

use self::args::{AccessCommand, ExplainAccess};
use self::report::Explanation;
use crate::credentials::{LoginMode, file_with_logins};
use crate::failure::{Failure, Verdict};
use crate::file::{self, with_full_start_wait};
use crate::print::{self, sanitize, sanitize_json};
use crate::serving;
use crate::serving::chain;
use crate::stop::Stop;

/// Runs the command.
pub(crate) async fn run(command: AccessCommand, stop: Stop) -> Result<Verdict, Failure> {
    match command {
        AccessCommand::Explain(args) => explain(&args, stop).await,
    }
}

/// Starts the servers of the file, and prints what the client may use of them. Always stops the servers.
async fn explain(args: &ExplainAccess, mut stop: Stop) -> Result<Verdict, Failure> {
    let file = file::read(&args.file)?;
    let config = file_with_logins(file, LoginMode::Stored)?;
    let mut config = with_full_start_wait(config);
    let principal = match &args.token {
        Some(path) => {
            let accepted = token::verify(path, config.authentication.as_ref()).await?;
            print::notice(&sanitize(&accepted.summary));
            with_certificate(accepted.principal, args)?
        }
        None => principal(args, config.authentication.as_ref())?,
    };
    let Some(access) = config.access.take() else {
        if args.token.is_some() {
            print::notice("the configuration has no `access`, so the client may use everything");
            return Ok(Verdict::Fine);
        }
        let name = args.file.display();
        return Err(Failure::command(format!(
            "{name} has no `access`, so every client may use everything; see docs/reference/access.md"
        )));
    };
    // The servers are read as the rules see them: whole, and by nobody else.
    (config.authentication, config.stdio_principal) = (None, None);
    let gateway = open(config, &mut stop).await?;
    let class = access.policy.class_of(&principal);
    let explanation = Explanation {
        policy: &access.policy,
        class: &class,
        claims: principal.claims(),
        report: gateway.explain_access(&access, &class),
        variants: gateway.variants(),
        servers: gateway.servers(),
    };
    let shown = print::data(&if args.json {
        sanitize_json(&explanation.to_json())
    } else {
        sanitize(&explanation.to_text())
    });
    tokio::select! {
        () = gateway.close() => {}
        () = stop.requested() => {}
    }
    shown.map(|()| Verdict::fine_if(explanation.is_complete()))
}

async fn open(config: Config, stop: &mut Stop) -> Result<Arc<Gateway>, Failure> {
    let gateway = Gateway::open(chain::with_ancestors(config)?).await;
    serving::wait(&gateway, stop, |_| false).await?;
    Ok(gateway)
}

/// The client that the arguments describe.
fn principal(
    args: &ExplainAccess,
    authentication: Option<&Authentication>,
) -> Result<Principal, Failure> {
    let principal = match (&args.claims, &args.key) {
        (Some(claims), _) => {
            // Which issuer and subject it is does not matter to rules: those are claims as well.
            Principal::token("--as", "--as", read_claims(claims)?).map_err(refused_client)?
        }
        (None, Some(name)) => key_principal(name, authentication)?,
        (None, None) => {
            let subject = args.client.as_deref().unwrap_or_default();
            return Principal::certificate(subject, Claims::default()).map_err(refused_client);
        }
    };
    with_certificate(principal, args)
}

/// `principal` with the certificate that the arguments name, too.
fn with_certificate(principal: Principal, args: &ExplainAccess) -> Result<Principal, Failure> {
    match &args.client {
        Some(subject) => principal.with_certificate(subject).map_err(refused_client),
        None => Ok(principal),
    }
}

fn refused_client(error: PrincipalError) -> Failure {
    Failure::command(format!("--client: {error}"))
}

/// The principal of the key `name`.
fn key_principal(
    name: &str,
    authentication: Option<&Authentication>,
) -> Result<Principal, Failure> {
    let keys = authentication.map(|authentication| authentication.authenticator.keys());
    let mut principals = keys.into_iter().flat_map(|keys| keys.principals());
    let found = principals.find(|principal| principal.key_name() == Some(name));
    let principal = found.map(|principal| Principal::clone(principal));
    principal.ok_or_else(|| {
        Failure::command(format!(
            "--key: `auth.keys` of the configuration has no key `{name}`"
        ))
    })
}

/// The claims in `text`, or in the file of that name. No error repeats any of it.
fn read_claims(text: &str) -> Result<Claims, Failure> {
    let json = if text.trim_start().starts_with('{') {
        text.to_owned()
    } else {
        claims_file(text).map_err(|error| {
            Failure::command(format!(
                "--as: it is not a JSON object, and cannot be read as a file: {}; write it like \
             '{{\"groups\": [\"dev\"]}}'",
                io_error::describe(&error)
            ))
        })?
    };
    Claims::from_json(&json).map_err(|error| Failure::command(format!("--as: {error}")))
}

/// The text of a file, without reading more of it than claims can have.
fn claims_file(path: &str) -> std::io::Result<String> {
    let mut text = String::new();
    let longest = u64::try_from(MAX_CLAIMS_JSON).unwrap_or(u64::MAX);
    let file = DiskFile::open(path)?;
    file.take(longest.saturating_add(1))
        .read_to_string(&mut text)?;
    Ok(text)
}
