//! `vary key`: makes API keys.

use clap::{Parser, Subcommand};
use mcp_vary::variant::Date;
use mcp_vary_access::Claims;
use mcp_vary_auth::key::{ApiKey, KeyEntry, KeyTable};

use crate::environment::today;
use crate::failure::{Failure, Verdict};
use crate::print::{self, notice, sanitize};

/// Make API keys
#[derive(Debug, Parser)]
#[command(after_help = "Example:\n  vary key new ann --expires 2027-01-31")]
pub(crate) struct Key {
    #[command(subcommand)]
    pub(crate) command: KeyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    New(NewKey),
}

/// Make an API key for a person or a program
///
/// Prints the key to standard output, and to standard error the entry for `auth.keys` of the configuration, which
/// has the digest of the key and not the key. The key is stored nowhere: if it is lost, make another one.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  \
    vary key new ann\n  \
    vary key new ci --expires 2027-01-31 > ci.key")]
pub(crate) struct NewKey {
    /// Whose key it is; rules, limits and logs go by this name
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The last day, in UTC, on which the key is accepted, such as 2027-01-31 [default: without end]
    #[arg(long, value_name = "DATE")]
    pub(crate) expires: Option<Date>,
}

/// Runs the command.
pub(crate) fn run(command: &KeyCommand) -> Result<Verdict, Failure> {
    match command {
        KeyCommand::New(args) => new(args),
    }
}

/// Prints a new key to standard output, and all else to standard error, so that the key can be redirected.
fn new(args: &NewKey) -> Result<Verdict, Failure> {
    let mut random = [0; 32];
    getrandom::fill(&mut random)
        .map_err(|error| Failure::command(format!("the system gives no randomness: {error}")))?;
    let key = ApiKey::from_random(random);
    let line = entry(args, &key, today())?;
    print::data(&format!("{}\n", key.expose()))?;
    let name = &args.name;
    notice(&sanitize(&format!(
        "The key of `{name}` is on standard output. It is not stored, and cannot be shown again.\n\
         Add this line to `auth.keys` of the configuration:\n\n    - {line}\n\n\
         Clients send the key in each request: Authorization: Bearer KEY"
    )));
    Ok(Verdict::Fine)
}

/// The entry of the configuration.
fn entry(args: &NewKey, key: &ApiKey, today: Date) -> Result<String, Failure> {
    if let Some(expires) = args.expires.filter(|expires| *expires < today) {
        let why = format!("--expires: {expires} is past; today is {today} (UTC)");
        return Err(Failure::command(why));
    }
    let digest = key.digest();
    let checked = KeyTable::new(vec![KeyEntry {
        name: args.name.clone(),
        digest,
        claims: Claims::default(),
        expires_at: None,
    }]);
    checked.map_err(|error| Failure::command(format!("NAME: {}", error.fault)))?;
    // A JSON string is a string in YAML, whatever it contains.
    let name = serde_json::Value::from(args.name.as_str());
    let member = args.expires.map(|day| format!(", expires: {day}"));
    let expires = member.unwrap_or_default();
    Ok(format!("{{name: {name}, sha256: {digest}{expires}}}"))
}
