//! The arguments of `vary call`.

use clap::Parser;

use crate::server_target::args::ClientArgs;

/// Call a tool as a given client, and show what it receives
///
/// If the server does not support content negotiation, the call goes through Vary. Several --features show several
/// clients side by side. Without --features, the client declares no features and gets the result as the server sends it.
/// Tokens are counted with the encoding o200k, for the text in `content` and for `structuredContent` as compact JSON;
/// binary data is not counted. A model reads one of the two. With several clients, percentages compare with the first.
#[derive(Debug, Parser)]
#[command(
    override_usage = "vary call [OPTIONS] TOOL [ARGUMENT...] [TARGET | -- COMMAND...]",
    after_help = "Examples:\n  \
    vary call get_weather location=Bern --features agent,format=json http://127.0.0.1:8800/mcp\n  \
    vary call list_directory path=. --features agent --features human \\\n      \
    -- npx -y @modelcontextprotocol/server-filesystem .\n  \
    vary call files_read_files 'paths:=[\"a.txt\"]' vary.yaml\n  \
    vary call files_list_directory @arguments.json\n  \
    vary call get_weather '{\"location\":\"Bern\"}' http://127.0.0.1:8800/mcp\n\n\
    With --json, one line for each client: the result as received, or {error}."
)]
pub(crate) struct Call {
    // Positional arguments come before the command after `--`, which is one of `ClientArgs`.
    /// The tool's name
    pub(crate) tool: String,
    /// Arguments of the call, then TARGET. `{...}` is a JSON object with all arguments, @FILE a file with one. NAME=VALUE
    /// is one argument, of the type that the tool's schema has; NAME:=JSON is one argument as JSON. Anything else is
    /// TARGET: a URL, a port of this machine, or a file [default: ./vary.yaml or ./.mcp.json]
    #[arg(value_name = "ARGUMENT | TARGET")]
    pub(crate) arguments_and_target: Vec<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    /// Call as a client with these features, such as agent,format=json; may be repeated
    #[arg(long, value_name = "LIST")]
    pub(crate) features: Vec<String>,
}
