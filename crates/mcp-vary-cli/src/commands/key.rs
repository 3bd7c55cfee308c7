//! `vary key`: makes and lists API keys.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use mcp_vary::variant::Date;
use mcp_vary_access::Claims;
use mcp_vary_auth::key::{ApiKey, KeyEntry, KeyTable, KnownKey};
use mcp_vary_config::SecretFiles;
use mcp_vary_gateway::Config;
use serde_json::{Value, json};

use crate::environment::{environment, random_secret, today};
use crate::failure::{Failure, Verdict};
use crate::file;
use crate::print::table::table;
use crate::print::{self, notice, sanitize};

/// Make and list API keys
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  \
    vary key new ann --groups dev --expires 2027-01-31\n  \
    vary key list")]
pub(crate) struct Key {
    #[command(subcommand)]
    pub(crate) command: KeyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    New(NewKey),
    List(ListKeys),
}

/// Make an API key for a person or a program
///
/// Prints the key to standard output, and to standard error the entry for `auth.keys` of the configuration, which
/// has the digest of the key and not the key. The key is stored nowhere: if it is lost, make another one.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  \
    vary key new ann --groups dev,ops\n  \
    vary key new ci --expires 2027-01-31 > ci.key")]
pub(crate) struct NewKey {
    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// What a new key is for.
#[derive(Args, Debug)]
pub(crate) struct KeyArgs {
    /// Whose key it is; rules, limits and logs go by this name
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The groups of the owner, for access rules, such as dev,ops
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    pub(crate) groups: Vec<String>,
    /// The last day, in UTC, on which the key is accepted, such as 2027-01-31 [default: without end]
    #[arg(long, value_name = "DATE")]
    pub(crate) expires: Option<Date>,
}

/// List the API keys of a configuration
///
/// Prints the name of each key, its groups, and the last day on which it is accepted. Keys themselves are in no file.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  vary key list\n  vary key list /etc/vary/vary.yaml")]
pub(crate) struct ListKeys {
    /// The configuration
    #[arg(value_name = "FILE", default_value = DEFAULT)]
    pub(crate) file: PathBuf,
}

/// The configuration without FILE.
const DEFAULT: &str = "vary.yaml";

/// Runs the command.
pub(crate) fn run(command: &KeyCommand) -> Result<Verdict, Failure> {
    match command {
        KeyCommand::New(args) => new(&args.key),
        KeyCommand::List(args) => list(&args.file),
    }
}

/// Prints a new key to standard output, and all else to standard error, so that the key can be redirected.
fn new(args: &KeyArgs) -> Result<Verdict, Failure> {
    let (key, entry) = generate(args)?;
    print::data(&format!("{}\n", key.expose()))?;
    let name = &args.name;
    notice(&sanitize(&format!(
        "The key of `{name}` is on standard output. It is not stored, and cannot be shown again.\n\
         Add this line to `auth.keys` of the configuration:\n\n    - {entry}\n\n\
         Clients send the key in each request: Authorization: Bearer KEY"
    )));
    Ok(Verdict::Fine)
}

/// A new key, and its entry of the configuration.
pub(crate) fn generate(args: &KeyArgs) -> Result<(ApiKey, String), Failure> {
    let key = ApiKey::from_random(random_secret()?);
    let entry = entry(args, &key, today())?;
    Ok((key, entry))
}

/// The entry of the configuration.
fn entry(args: &KeyArgs, key: &ApiKey, today: Date) -> Result<String, Failure> {
    if let Some(expires) = args.expires.filter(|expires| *expires < today) {
        let why = format!("--expires: {expires} is past; today is {today} (UTC)");
        return Err(Failure::command(why));
    }
    if args.groups.iter().any(|group| group.trim().is_empty()) {
        let why = "--groups: the name of a group is empty; write them like dev,ops";
        return Err(Failure::command(why));
    }
    let digest = key.digest();
    let claims = Claims::from_json(&json!({"groups": args.groups}).to_string());
    let checked = KeyTable::new(vec![KeyEntry {
        name: args.name.clone(),
        digest,
        claims: claims.map_err(|error| Failure::command(format!("--groups: {error}")))?,
        expires_at: None,
    }]);
    checked.map_err(|error| Failure::command(format!("NAME: {}", error.fault)))?;
    // JSON is YAML, whatever a string contains.
    let name = Value::from(args.name.as_str());
    let mut entry = format!("{{name: {name}, sha256: {digest}");
    if !args.groups.is_empty() {
        let groups = Value::from(args.groups.clone());
        entry.push_str(&format!(", claims: {{groups: {groups}}}"));
    }
    if let Some(day) = args.expires {
        entry.push_str(&format!(", expires: {day}"));
    }
    Ok(entry + "}")
}

/// Prints the keys of the file at `path`, in the order of their names.
fn list(path: &Path) -> Result<Verdict, Failure> {
    if path == Path::new(DEFAULT) && !path.exists() {
        return Err(Failure::command(
            "no vary.yaml here; name the file: vary key list FILE",
        ));
    }
    let config = read_config(path)?;
    let authentication = config.authentication.as_ref();
    let keys = authentication.map(|authentication| authentication.authenticator.keys());
    let mut rows: Vec<_> = keys
        .into_iter()
        .flat_map(|keys| keys.all())
        .map(row)
        .collect();
    if rows.is_empty() {
        notice(&sanitize(&format!(
            "{} has no `auth.keys`; `vary key new NAME` makes a key",
            path.display()
        )));
        return Ok(Verdict::Fine);
    }
    rows.sort();
    rows.insert(0, ["key", "groups", "last day"].map(str::to_owned).to_vec());
    print::data(&sanitize(&table(&rows, 3)))?;
    Ok(Verdict::Fine)
}

/// The name of a key, its groups, and its last day.
fn row(key: &KnownKey) -> Vec<String> {
    let claim = key.principal.claims().get("groups");
    let groups: Vec<_> = claim.into_iter().flat_map(|claim| claim.texts()).collect();
    let last_day = key
        .expires_at
        .map(|at| Date::from_unix(at.saturating_sub(1)));
    let shown_day = last_day.map_or_else(String::new, |day| {
        let end = if day < today() { ", past" } else { "" };
        format!("{day}{end}")
    });
    vec![
        key.principal.key_name().unwrap_or_default().to_owned(),
        groups.join(", "),
        shown_day,
    ]
}

/// The configuration in the file at `path`, in which variables may be missing.
pub(crate) fn read_config(path: &Path) -> Result<Config, Failure> {
    let (name, text) = (path.display().to_string(), file::text(path)?);
    let read = file::parse_with_variables(&name, &text, &SecretFiles::beside(path));
    let found = read.map_err(|diagnostics| file::invalid_file(&diagnostics))?;
    Ok(found.file.into_config(environment()?))
}
