//! What was typed.

use std::path::PathBuf;

use clap::{ArgGroup, Parser, Subcommand};

/// One MCP server, many faces: every client gets content in its form, and the tools it has room for
#[derive(Debug, Parser)]
#[command(
    name = "vary",
    version,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = "Try `vary demo` first. Exit codes: 0 fine, 1 what was looked at failed, 2 the command could not be \
                  carried out."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// What is logged to standard error: error, warn, info, debug or trace [default: warn with serve, else error]
    #[arg(
        long,
        global = true,
        value_name = "LEVEL",
        env = "VARY_LOG",
        hide_env_values = true,
        display_order = 100
    )]
    pub(crate) log: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(Demo),
    Serve(Serve),
    Inspect(Inspect),
    Call(Call),
    /// The demo's server: an MCP server on standard input and output
    #[command(hide = true)]
    Weather,
}

/// Show what three clients get from one server, then serve it
///
/// Starts a weather server that knows nothing of the extensions, puts Vary in front of it, calls the same tool
/// as three clients and prints what each gets, with its cost in tokens. Then serves until it is stopped.
#[derive(Debug, Parser)]
#[command(after_help = "Example:\n  vary demo --once")]
pub(crate) struct Demo {
    /// End after printing
    #[arg(long)]
    pub(crate) once: bool,
    /// Where to serve [default: 127.0.0.1:8800, or any free port with --once]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
}

/// Serve an MCP server to every client in its own way
///
/// The server is a command that speaks MCP on its standard streams, the URL of a streamable HTTP endpoint, or
/// an entry of the file in which a client keeps its servers. Clients connect to http://ADDR/mcp.
#[derive(Debug, Parser)]
#[command(
    override_usage = "vary serve [OPTIONS] <--url <URL> | --mcp-json <FILE> | -- <COMMAND>...>",
    group(ArgGroup::new("server behind").args(["url", "mcp_json", "command"]).required(true)),
    after_help = "Examples:\n  \
        vary serve -- npx -y @modelcontextprotocol/server-filesystem .\n  \
        vary serve --url https://example.com/mcp --header 'Authorization: Bearer TOKEN'\n  \
        vary serve --mcp-json .mcp.json --server git --stdio"
)]
pub(crate) struct Serve {
    /// Where to serve: HOST:PORT on this machine, or a port alone
    #[arg(
        long,
        value_name = "ADDR",
        default_value = "127.0.0.1:8800",
        conflicts_with = "stdio"
    )]
    pub(crate) listen: String,
    /// Serve one client on standard input and output instead
    #[arg(long)]
    pub(crate) stdio: bool,
    /// The server's streamable HTTP endpoint
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// A header for every request to --url; may be repeated
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "url")]
    pub(crate) headers: Vec<String>,
    /// A file with `mcpServers`, as clients keep it; ${VAR}, ${VAR:-default} and ${env:VAR} are replaced
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_json: Option<PathBuf>,
    /// Which server of --mcp-json, when there are several
    #[arg(long, value_name = "NAME", requires = "mcp_json")]
    pub(crate) server: Option<String>,
    /// Offer no variants: every client gets the lists as the server wrote them
    #[arg(long)]
    pub(crate) no_variants: bool,
    /// Negotiate no content: every client gets results as the server wrote them
    #[arg(long)]
    pub(crate) no_negotiation: bool,
    /// The server's command and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Show which variants a server offers, and what their tools cost in tokens
///
/// A server that does not offer variants itself is shown as `vary serve` would offer it. Tokens are those of the
/// encoding o200k: a tool's as compact JSON, a variant's as the whole array `tools`. Percentages compare with
/// the variant `standard`, or the first one where there is none.
#[derive(Debug, Parser)]
#[command(
    override_usage = "vary inspect [OPTIONS] <URL | -- <COMMAND>...>",
    after_help = "Examples:\n  \
    vary inspect -- npx -y @modelcontextprotocol/server-filesystem .\n  \
    vary inspect --hints contextSize=compact http://127.0.0.1:8800/mcp\n\n\
    With --json: {server, revision, encoding, moreVariantsAvailable, variants: [{id, status, description, hints, \
    deprecationInfo, tokens, percent, tools: [{name, tokens}]}]}. A server without variants has one with the id null."
)]
pub(crate) struct Inspect {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    /// Ask as a client with this hint; several values in order of preference; may be repeated
    #[arg(long, value_name = "KEY=VALUE[,VALUE...]")]
    pub(crate) hints: Vec<String>,
    /// Ask as a client with these features, such as agent,format=json
    #[arg(long, value_name = "LIST")]
    pub(crate) features: Option<String>,
    /// The server's URL
    #[arg(
        value_name = "URL",
        required_unless_present = "command",
        conflicts_with = "command"
    )]
    pub(crate) url: Option<String>,
    /// The server's command and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Call a tool as a given client would, and show what it gets
///
/// A server that does not negotiate content itself is called through Vary. Several --features show several
/// clients side by side. Without any, the client declares nothing and gets what the server says.
/// Tokens are those of the encoding o200k, of the text in `content` and of `structuredContent` as compact JSON;
/// binary data is not counted.
#[derive(Debug, Parser)]
#[command(
    override_usage = "vary call [OPTIONS] <TOOL> [JSON] <URL | -- <COMMAND>...>",
    after_help = "Examples:\n  \
    vary call get_weather '{\"location\":\"Bern\"}' --features agent,format=json http://127.0.0.1:8800/mcp\n  \
    vary call list_directory '{\"path\":\".\"}' --features agent --features human \\\n      \
    -- npx -y @modelcontextprotocol/server-filesystem ."
)]
pub(crate) struct Call {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    /// Call as a client with these features, such as agent,format=json; may be repeated
    #[arg(long, value_name = "LIST")]
    pub(crate) features: Vec<String>,
    /// The tool's name
    pub(crate) tool: String,
    /// The arguments, a JSON object [default: {}]
    #[arg(value_name = "JSON")]
    pub(crate) arguments: Option<String>,
    /// The server's URL
    #[arg(value_name = "URL", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// The server's command and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// What `inspect` and `call` have in common.
#[derive(Debug, Parser)]
pub(crate) struct ClientArgs {
    /// Only this variant
    #[arg(long, value_name = "ID")]
    pub(crate) variant: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// A header for every request to URL; may be repeated
    #[arg(
        long = "header",
        value_name = "NAME: VALUE",
        conflicts_with = "command"
    )]
    pub(crate) headers: Vec<String>,
}
