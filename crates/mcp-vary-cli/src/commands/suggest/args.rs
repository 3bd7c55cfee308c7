//! The arguments of `vary suggest`.

use std::path::PathBuf;

use clap::Parser;

/// Propose a variant with the tools that were used
///
/// Reads the last calls of the running gateway, or audit logs, and prints a variant for the file, with what it saves:
/// the tools that were called. With `audit: {arguments: full}`, logs have arguments, too: those of a tool are fixed that
/// had one value in all of its calls, at least 20 in 5 sessions. Changes nothing.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  \
    vary suggest\n  \
    vary suggest claude-code\n  \
    vary suggest claude-code --audit audit.jsonl --audit audit.jsonl.1\n\n\
    With --json: {id, calls, tools, tokens, allTools, allTokens, value, yaml}, where value and yaml are the entry.")]
pub(crate) struct Suggest {
    /// The client whose calls are read, by the name that it sends [default: all clients]
    #[arg(value_name = "CLIENT")]
    pub(crate) client: Option<String>,
    /// Read calls from this audit log; may be repeated. Tools are those of the running gateway
    #[arg(long, value_name = "FILE")]
    pub(crate) audit: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The gateway: its `--admin` address as HOST:PORT, a port or the URL, or its socket [default: the running gateway of
    /// this user, or 127.0.0.1:8801]
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin: Option<String>,
}
