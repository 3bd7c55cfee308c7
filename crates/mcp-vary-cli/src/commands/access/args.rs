//! The arguments of `vary access`.

use std::path::PathBuf;

use clap::{ArgGroup, Parser, Subcommand};

/// Explain access rules
#[derive(Debug, Parser)]
#[command(after_help = "Example:\n  vary access explain --as '{\"groups\": [\"dev\"]}' vary.yaml")]
pub(crate) struct Access {
    #[command(subcommand)]
    pub(crate) command: AccessCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AccessCommand {
    Explain(ExplainAccess),
}

/// Show what a client may see and use, and which rules decide
///
/// Reads `access` of the configuration, starts its servers as `vary inspect` does, and shows for each tool, prompt and
/// resource whether the client sees it and which rule decided, and the variants that it is offered. Names are those of
/// the variant `standard`. Exit code 1 when a server is down, since its items are missing then, or the token is refused.
#[derive(Debug, Parser)]
#[command(
    group(ArgGroup::new("client of the gateway").args(["claims", "key", "token", "client"]).required(true).multiple(true)),
    after_help = "Examples:\n  \
    vary access explain --as '{\"groups\": [\"dev\"], \"scope\": \"repo:write\"}' vary.yaml\n  \
    vary access explain --as claims.json vary.yaml\n  \
    vary access explain --key ci --json vary.yaml\n  \
    vary access explain --token token.txt vary.yaml\n\n\
    With --json: {rules: [{rule, when}], claims: [{name, present}], variants: [{id, offered, default, pinned, rules}], \
    pinsConflict, items: [{kind, name, server, visible, decision, hasScopes, reasons: [{rule, effect, pattern, scopes, \
    if}]}], servers: [{name, state, error}]}. A decision is hidden, allowed, needsScopes or conditional."
)]
pub(crate) struct ExplainAccess {
    /// The claims of the client's token by the names that rules use: a JSON object, or a file that has one; '{}' for
    /// none
    #[arg(long = "as", value_name = "CLAIMS", conflicts_with = "key")]
    pub(crate) claims: Option<String>,
    /// The name of an API key of the configuration
    #[arg(long, value_name = "NAME")]
    pub(crate) key: Option<String>,
    /// A file with an access token, or `-` for standard input. The token is verified as the gateway does it, and a refusal
    /// says what is different from the configuration
    #[arg(long, value_name = "FILE", conflicts_with_all = ["claims", "key"])]
    pub(crate) token: Option<PathBuf>,
    /// The subject of the client's certificate, alone or beside --as or --key
    #[arg(long, value_name = "SUBJECT")]
    pub(crate) client: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The configuration
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}
