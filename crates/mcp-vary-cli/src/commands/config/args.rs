//! The options of `vary config`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use mcp_vary_config::Format;

/// Check a configuration, or convert the server lists of clients to one
#[derive(Debug, Parser)]
#[command(
    after_help = "Examples:\n  vary config import .mcp.json > vary.yaml\n  vary config check vary.yaml\n  \
    vary config schema > vary.schema.json"
)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    Check(Check),
    Import(Import),
    /// Print the JSON Schema of a configuration, for editors
    ///
    /// Editors complete and check a configuration that names its schema: in YAML by the first line
    /// `# yaml-language-server: $schema=vary.schema.json`, in JSON by the key `$schema`.
    #[command(after_help = "Example:\n  vary config schema > vary.schema.json")]
    Schema,
    /// Show the settings for known clients
    ///
    /// With `known-clients: on` in the configuration, a client with one of these names gets these settings, unless its
    /// variant or a rule of `clients` sets something else.
    Clients,
}

/// Check a configuration, and show what its servers offer
///
/// Reports every mistake with its line and the fix. If there is none, connects to the servers and shows what each offers,
/// and which names or URIs of two servers collide. Exit code 1 when the file has a mistake, a server is down, or a
/// variant names something that does not exist.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  \
    vary config check vary.yaml\n  \
    vary config check --offline .mcp.json\n\n\
    With --json: {file, servers: [{name, state, error, lists}], disabled: [name], errors, notes, unmatched, collisions: \
    [{list, id, shownFrom, hidden}], variants: [{id, tools, tokens, wholeTokens}], problems: [text]}, where errors, notes and unmatched are lists of {line, column, key, message, fix}; unmatched ones have \
    their variant, too.")]
pub(crate) struct Check {
    /// Only read the file; do not connect to servers
    #[arg(long)]
    pub(crate) offline: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Without FILE: start the servers of the file of this directory without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// The configuration, or the server list of an MCP client [default: ./vary.yaml or ./.mcp.json]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// Convert the server lists of MCP clients to a configuration
///
/// Reads the files of Claude, Cursor, Windsurf, Gemini and others (`mcpServers`), VS Code (`servers` and `inputs`), Codex
/// (`mcp_servers`) and opencode (`mcp`), and prints one configuration as YAML. Settings without an equivalent are listed
/// on standard error. The configuration contains the secrets of the files; nothing else shows them.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  \
    vary config import .mcp.json > vary.yaml\n  \
    vary config import ~/.codex/config.toml .vscode/mcp.json > vary.yaml")]
pub(crate) struct Import {
    /// Format of the files: mcp-servers, vscode, codex or opencode [default: detected for each file]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// The files, in the order of their servers
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
}
