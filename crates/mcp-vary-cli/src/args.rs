//! What was typed.

use std::path::PathBuf;

use clap::{ArgGroup, Parser, Subcommand};
use mcp_vary_config::Format;

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
    /// What is logged to standard error: error, warn, info, debug, trace or off [default: error; with serve warn, and at
    /// info what servers print]
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
    Config(Config),
    Status(Status),
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

/// Serve MCP servers to every client in its own way
///
/// A server is a command that speaks MCP on its standard streams, or the URL of a streamable HTTP endpoint. Several
/// come from a file: Vary's own, or that in which a client keeps its servers. Their tools are then called
/// `server_tool`. A server that is down is tried again and stops no other. Clients connect to http://ADDR/mcp.
///
/// A file is read again when it changes and on SIGHUP: servers whose entry is as before run on, and no request is
/// lost. A bad file changes nothing and says why.
#[derive(Debug, Parser)]
#[command(
    override_usage = "vary serve [OPTIONS] <--config <FILE> | --mcp-json <FILE> | --url <URL> | -- <COMMAND>...>",
    group(ArgGroup::new("server behind").args(["config", "mcp_json", "url", "command"]).required(true)),
    group(ArgGroup::new("file").args(["config", "mcp_json"])),
    after_help = "Examples:\n  \
        vary serve -- npx -y @modelcontextprotocol/server-filesystem .\n  \
        vary serve --url https://example.com/mcp --header 'Authorization: Bearer TOKEN'\n  \
        vary serve --config vary.yaml\n  \
        vary serve --mcp-json .mcp.json --stdio"
)]
pub(crate) struct Serve {
    /// Where to serve: HOST:PORT on this machine, or a port alone [default: `listen` of --config, or 127.0.0.1:8800]
    #[arg(long, value_name = "ADDR", conflicts_with = "stdio")]
    pub(crate) listen: Option<String>,
    /// Serve one client on standard input and output instead
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Where `vary status` may ask how it stands: HOST:PORT on this machine, or a port alone [default: `admin` of
    /// --config, or nowhere]
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin: Option<String>,
    /// The server's streamable HTTP endpoint
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// A header for every request to --url; may be repeated
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "url")]
    pub(crate) headers: Vec<String>,
    /// A configuration with `servers`: YAML, JSON or TOML; `vary config check` explains it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A file with `mcpServers`, as clients keep it; ${VAR}, ${VAR:-default} and ${env:VAR} are replaced
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_json: Option<PathBuf>,
    /// Only this server of the file
    #[arg(long, value_name = "NAME", requires = "file")]
    pub(crate) server: Option<String>,
    /// The variant of clients that name none, and that no rule of `clients` is about, in place of `variant` in the
    /// file and of what their hints ask for
    #[arg(long, value_name = "ID", conflicts_with = "no_variants")]
    pub(crate) variant: Option<String>,
    /// End with exit code 2 if an entry of a client's file cannot be used, instead of serving the others
    #[arg(long, requires = "file")]
    pub(crate) require_all: bool,
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
/// A server that does not offer variants itself is shown as `vary serve` would offer it, with every variant, whether
/// clients are told of it or not. Of a server that offers variants itself those are shown that it tells of. Tokens are those of the
/// encoding o200k: a tool's as compact JSON, a variant's as the whole array `tools`. Percentages compare with
/// the variant `standard`, or the first one where there is none.
#[derive(Debug, Parser)]
#[command(
    override_usage = "vary inspect [OPTIONS] <URL | --config <FILE> | -- <COMMAND>...>",
    after_help = "Examples:\n  \
    vary inspect -- npx -y @modelcontextprotocol/server-filesystem .\n  \
    vary inspect --hints contextSize=compact http://127.0.0.1:8800/mcp\n  \
    vary inspect --config vary.yaml\n  \
    vary inspect --admin 127.0.0.1:8801 http://127.0.0.1:8800/mcp\n  \
    vary inspect --lint http://127.0.0.1:8800/mcp\n\n\
    With --json: {server, revision, encoding, moreVariantsAvailable, variants: [{id, status, description, hints, \
    deprecationInfo, daysLeft, advertised, tokens, percent, tools: [{name, tokens}]}]}. A server without variants has one with the id null. With \
    --hints also ranking: {order: [{id, score, reasons: [{what, points}], movedToFront, first, advertised}], unweighted, \
    unknown}, null where the server itself ranks. With several servers, instead of server and revision, {servers: \
    [{name, state, error, server, revision, lists}], served: [{list, id, server, own}], collisions: [{list, id, keptBy, \
    hidden}]}. With --admin also deprecatedUse, as in `vary status`. With --lint also lint: [{name, notCalled, findings: \
    [{kind, says}]}]."
)]
pub(crate) struct Inspect {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    /// Ask as a client with this hint, and explain the order; several values in order of preference; may be repeated
    #[arg(long, value_name = "KEY=VALUE[,VALUE...]")]
    pub(crate) hints: Vec<String>,
    /// Ask as a client with these features, such as agent,format=json
    #[arg(long, value_name = "LIST")]
    pub(crate) features: Option<String>,
    /// Say what is wrong with the tools: schemas that cannot be checked, and results whose fields contradict each other,
    /// lack one, break the schema or repeat far more than the other says. Calls the tools that declare `readOnlyHint`
    /// and need no arguments, and no other; exits with 1 when something is broken
    #[arg(long)]
    pub(crate) lint: bool,
    /// Where the running gateway at URL answers its operator (its `--admin`): show who uses deprecated variants, and the
    /// variants that clients are not told of
    #[arg(long, value_name = "ADDR", conflicts_with_all = ["command", "config"])]
    pub(crate) admin: Option<String>,
    /// The server's URL
    #[arg(
        value_name = "URL",
        required_unless_present_any = ["command", "config"],
        conflicts_with_all = ["command", "config"]
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
/// binary data is not counted. A model reads one of the two; with several clients, percentages compare with the first.
#[derive(Debug, Parser)]
#[command(
    override_usage = "vary call [OPTIONS] <TOOL> [JSON] <URL | --config <FILE> | -- <COMMAND>...>",
    after_help = "Examples:\n  \
    vary call get_weather '{\"location\":\"Bern\"}' --features agent,format=json http://127.0.0.1:8800/mcp\n  \
    vary call list_directory '{\"path\":\".\"}' --features agent --features human \\\n      \
    -- npx -y @modelcontextprotocol/server-filesystem .\n  \
    vary call files_list_directory '{\"path\":\".\"}' --config vary.yaml\n  \
    vary call get_weather '{\"location\":\"Bern\"}' --lint http://127.0.0.1:8800/mcp\n\n\
    With --json, a line for each client: the result as it came, or {error}; with --lint as well, {result, findings: [{kind, says}]}."
)]
pub(crate) struct Call {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    /// Call as a client with these features, such as agent,format=json; may be repeated
    #[arg(long, value_name = "LIST")]
    pub(crate) features: Vec<String>,
    /// Compare `content` with `structuredContent`: what the one says that the other denies or lacks, and which is
    /// missing or far too large; exit code 1 when they contradict each other
    #[arg(long)]
    pub(crate) lint: bool,
    /// The tool's name
    pub(crate) tool: String,
    /// The arguments, a JSON object [default: {}]
    #[arg(value_name = "JSON")]
    pub(crate) arguments: Option<String>,
    /// The server's URL
    #[arg(value_name = "URL", conflicts_with_all = ["command", "config"])]
    pub(crate) url: Option<String>,
    /// The server's command and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Begin, check or edit a configuration
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
    /// Editors complete and check what is written when the file says where its schema is: in YAML by the first line
    /// `# yaml-language-server: $schema=vary.schema.json`, in JSON by the key `$schema`.
    #[command(after_help = "Example:\n  vary config schema > vary.schema.json")]
    Schema,
    /// Show what is done for known clients
    ///
    /// With `known-clients: on` in the configuration, clients that call themselves so get what is shown, unless the variant or a
    /// rule of `clients` says otherwise.
    Clients,
}

/// Say what is wrong with a configuration, and what its servers offer
///
/// Every mistake is named at once, with its line and what to write. When there is none, the servers are connected to:
/// what each offers, and which names or URIs of two collide. Exit code 1 when there is a mistake, a
/// server is down, or a variant names what is not there.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  \
    vary config check vary.yaml\n  \
    vary config check --offline .mcp.json\n\n\
    With --json: {file, servers: [{name, state, error, lists}], disabled: [name], mistakes, notes, slips, collisions: \
    [{list, id, keptBy, hidden}], variants: [{id, tools, tokens}], problems: [text]}, where mistakes, notes and slips are lists of {line, column, key, message, fix}; a slip has \
    its variant, too.")]
pub(crate) struct Check {
    /// Only read the file, connect to no server
    #[arg(long)]
    pub(crate) offline: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The configuration, or the file in which a client keeps its servers
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Print a configuration with the servers of other programs
///
/// Reads the files in which Claude, Cursor, Windsurf, Gemini and others keep `mcpServers`, VS Code `servers` and `inputs`, Codex
/// `mcp_servers`, opencode `mcp`, and prints one configuration as YAML. What has no equivalent is named on standard error.
/// Secrets stand in what is printed as they stood in the files, and are never shown elsewhere.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  \
    vary config import .mcp.json > vary.yaml\n  \
    vary config import ~/.codex/config.toml .vscode/mcp.json > vary.yaml")]
pub(crate) struct Import {
    /// What the files are: mcp-servers, vscode, codex or opencode [default: what each looks like]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// The files, in the order of their servers
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
}

/// Show how a running gateway stands
///
/// The servers behind, the variants, and who still uses deprecated ones. The gateway answers where `vary serve --admin`
/// or `admin:` in its configuration says. Exit code 1 when a server is down.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  \
    vary serve --config vary.yaml --admin 8801\n  \
    vary status 8801\n\n\
    With --json, what GET /status answers: {version, uptime, servers: [{name, state, since, reason, tools}], variants: \
    [{id, status, replacement, removalDate, daysLeft}], deprecatedUse: [{variant, client: {name, version}, requests, \
    last}], sessions, streams, listeners, subscriptions, questions, \
    heldCalls, watchedTasks, finishedTasks, ownConnections, tasks, rankings}. Times are seconds.")]
pub(crate) struct Status {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Where the gateway answers its operator: HOST:PORT, a port, or the URL
    #[arg(value_name = "ADDR", default_value = "127.0.0.1:8801")]
    pub(crate) address: String,
}

/// What `inspect` and `call` have in common.
#[derive(Debug, Parser)]
pub(crate) struct ClientArgs {
    /// Vary in front of the servers of this configuration, or of the file in which a client keeps them
    #[arg(
        long,
        value_name = "FILE",
        visible_alias = "mcp-json",
        conflicts_with = "command"
    )]
    pub(crate) config: Option<PathBuf>,
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
        conflicts_with_all = ["command", "config"]
    )]
    pub(crate) headers: Vec<String>,
}
