//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use mcp_vary::variant::Date;

use crate::commands::access::args::Access;
use crate::commands::check::args::ServerCheck;
use crate::commands::completions::Completions;
use crate::commands::config::args::Config;
use crate::commands::connect::args::Connect;
use crate::commands::login::args::{Login, Logout};
use crate::commands::man::Man;
use crate::commands::open::args::Open;
use crate::server_target::args::TargetArgs;

/// An MCP gateway: each client gets results in the format it asks for, and the tools that fit it
#[derive(Debug, Parser)]
#[command(
    name = "vary",
    version,
    max_term_width = 100,
    after_help = "Try `vary demo` first. Exit codes: 0 success, 1 a check failed, 2 the command could not run."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// What is written to standard error.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// Log level for standard error: error, warn, info, debug, trace or off [default: error; with serve: `log.level` of
    /// the file, or warn]
    #[arg(
        long = "log",
        global = true,
        value_name = "LEVEL",
        env = "VARY_LOG",
        hide_env_values = true,
        display_order = 100
    )]
    pub(crate) level: Option<String>,
    /// Log more: one level for each -v. Replaces --log
    #[arg(short, long, global = true, action = clap::ArgAction::Count, display_order = 101)]
    pub(crate) verbose: u8,
    /// Only print data and errors. With --log or -v, the log is still written
    #[arg(short, long, global = true, display_order = 102)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(Demo),
    Serve(Serve),
    Inspect(Inspect),
    Tools(Tools),
    Call(Call),
    Check(ServerCheck),
    Connect(Connect),
    Config(Config),
    Login(Login),
    Logout(Logout),
    Key(Key),
    Access(Access),
    Status(Status),
    /// Read the configuration of a running gateway again
    ///
    /// Does what a change of the file does, and prints what changed. If the file has a mistake, prints it, changes nothing,
    /// and exits with code 1.
    #[command(after_help = "Examples:\n  vary reload\n  vary reload 8801")]
    Reload(Operate),
    /// End a running gateway without losing a request
    ///
    /// Does what SIGTERM does: the gateway is not ready any more, accepts no more clients, lets requests in flight finish for
    /// `limits.drain`, and ends. Returns at once.
    #[command(after_help = "Examples:\n  vary drain\n  vary drain 8801")]
    Drain(Operate),
    Open(Open),
    Completions(Completions),
    #[command(hide = true)]
    Man(Man),
    Experiment(Experiment),
    /// The demo's server: an MCP server on standard input and output
    #[command(hide = true)]
    Weather,
}

/// Call one server as three clients, print what each receives, then serve it
///
/// Starts a weather server that does not support the extensions, with Vary in front of it. Calls the same tool as
/// three clients and prints each result with its cost in tokens. Then serves until you stop it.
#[derive(Debug, Parser)]
#[command(after_help = "Example:\n  vary demo --once")]
pub(crate) struct Demo {
    /// Exit after printing
    #[arg(long)]
    pub(crate) once: bool,
    /// Address to serve on [default: 127.0.0.1:8800, or any free port with --once]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
}

/// Serve MCP servers, adapted to each client
///
/// TARGET is the URL of a streamable HTTP endpoint, a configuration, or the server list of an MCP client; or a command
/// after `--` that speaks MCP on its standard streams. Without any of them, Vary uses ./vary.yaml or ./.mcp.json, after
/// asking once. The tools of several servers are called `server_tool`. If a server is down, Vary keeps retrying and the
/// others keep working. Clients connect to http://ADDR/mcp.
///
/// Vary reloads the file when it changes and on SIGHUP. Servers with an unchanged entry keep running, and no request is
/// lost. If the file has a mistake, Vary reports it and changes nothing.
#[derive(Debug, Parser)]
#[command(
    override_usage = "vary serve [OPTIONS] [TARGET | -- COMMAND...]",
    after_help = "Examples:\n  \
        vary serve -- npx -y @modelcontextprotocol/server-filesystem .\n  \
        vary serve vary.yaml\n  \
        vary serve .mcp.json --stdio\n  \
        vary serve https://example.com/mcp --header 'Authorization: Bearer TOKEN'"
)]
pub(crate) struct Serve {
    /// A URL, a port of this machine, or a file [default: ./vary.yaml or ./.mcp.json]
    #[arg(value_name = "TARGET")]
    pub(crate) named: Option<String>,
    /// Address to serve on: HOST:PORT, or only a port of this machine [default: `listen` of the
    /// file, or 127.0.0.1:8800]
    #[arg(long, value_name = "ADDR", conflicts_with = "stdio")]
    pub(crate) listen: Option<String>,
    /// Serve one client on standard input and output instead
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Run in this directory: TARGET, and what servers call `.`, start there [default: the current directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Address that `vary status` and `vary open` connect to: HOST:PORT on this machine, or only a port [default: `admin`
    /// of the file, or none]
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin: Option<String>,
    /// Address of /metrics, /livez and /readyz, for anybody who can connect: HOST:PORT, or only a port of this machine
    /// [default: `probes` of the file, or none]
    #[arg(long, value_name = "ADDR")]
    pub(crate) probes: Option<String>,
    /// Form of the lines on standard error. With json, each line is an object with timestamp, level, message and fields
    /// [default: `log.format` of the file, or plain]
    #[arg(long, value_enum, value_name = "FORMAT", display_order = 100)]
    pub(crate) log_format: Option<LogFormat>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// The variant for clients that select none and match no rule of `clients`. Replaces `variant` of the file, and
    /// ignores hints
    #[arg(long, value_name = "ID", conflicts_with = "no_variants")]
    pub(crate) variant: Option<String>,
    /// Exit with code 2 if a server is down at the start or its lists cannot be read, or if an entry of a client's file
    /// cannot be used, instead of serving the others
    #[arg(long)]
    pub(crate) require_all: bool,
    /// Disable variants: every client gets the lists as the server sends them
    #[arg(long)]
    pub(crate) no_variants: bool,
    /// Disable content negotiation: every client gets results as the server sends them
    #[arg(long)]
    pub(crate) no_negotiation: bool,
}

/// The form of the lines on standard error.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Text, as a person reads it.
    Plain,
    /// A JSON object on each line.
    Json,
}

/// Show the variants of a server, and what their tools cost in tokens
///
/// If the server does not offer variants itself, the command shows what `vary serve` would offer, including variants
/// that are not advertised. Otherwise it shows the variants that the server advertises. Tokens are counted with the
/// encoding o200k over what clients forward to a model: of each tool its name, description and input schema. Prompts,
/// resources and instructions have their own rows. Percentages compare with the variant `standard`, or with the first
/// variant if there is no `standard`.
#[derive(Debug, Parser)]
#[command(
    override_usage = "vary inspect [OPTIONS] [TARGET | -- COMMAND...]",
    after_help = "Examples:\n  \
    vary inspect -- npx -y @modelcontextprotocol/server-filesystem .\n  \
    vary inspect --hints contextSize=compact http://127.0.0.1:8800/mcp\n  \
    vary inspect vary.yaml\n  \
    vary inspect --admin 127.0.0.1:8801 http://127.0.0.1:8800/mcp\n\n\
    With --json: {server, revision, encoding, moreVariantsAvailable, variants: [{id, status, description, hints, \
    deprecationInfo, daysLeft, advertised, tokens, wholeTokens, otherTokens, percent, taskTokens, tools: [{name, tokens}]}]}, where wholeTokens \
    counts all members of the tools, and otherTokens the other lists and the instructions. A server without variants has one with the id null. With \
    --hints also ranking: {order: [{id, score, reasons: [{what, points}], movedToFront, first, advertised}], unweighted, \
    unknown}, null where the server itself ranks. With several servers, instead of server and revision, {servers: \
    [{name, state, error, server, revision, lists}], served: [{list, id, server, upstreamName}], collisions: [{list, id, shownFrom, \
    hidden}]}. With --admin also deprecatedUse, as in `vary status`."
)]
pub(crate) struct Inspect {
    /// A URL, a port of this machine, or a file [default: ./vary.yaml or ./.mcp.json]
    #[arg(value_name = "TARGET")]
    pub(crate) named: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    /// Connect as a client with this hint, and explain the order; several values in order of preference; may be repeated
    #[arg(long, value_name = "KEY=VALUE[,VALUE...]")]
    pub(crate) hints: Vec<String>,
    /// Connect as a client with these features, such as agent,format=json
    #[arg(long, value_name = "LIST")]
    pub(crate) features: Option<String>,
    /// Show the sums alone, for long lists
    #[arg(long, conflicts_with = "json")]
    pub(crate) summary: bool,
    /// The `--admin` address of the running gateway at the URL: also show which clients use deprecated variants, and the
    /// variants that are not advertised
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin: Option<String>,
}

/// Show the tools of a variant: descriptions, arguments and schemas
///
/// Shows what clients of one variant read. With --diff, shows word by word what the variant changes in the definitions of
/// the servers. Tokens are counted as by `vary inspect`.
#[derive(Debug, Parser)]
#[command(
    override_usage = "vary tools [OPTIONS] [TARGET | -- COMMAND...]",
    after_help = "Examples:\n  \
    vary tools --variant agent vary.yaml\n  \
    vary tools --variant agent --diff vary.yaml\n  \
    vary tools --tool get_weather --schema http://127.0.0.1:8800/mcp\n\n\
    With --json: {variant, tokens, wholeTokens, tools: [{name, server, upstreamName, tokens, tool, upstreamTool}], hidden: [text]}, where \
    tool is the definition as clients receive it, and upstreamTool that of the server, with --diff."
)]
pub(crate) struct Tools {
    /// A URL, a port of this machine, or a file [default: ./vary.yaml or ./.mcp.json]
    #[arg(value_name = "TARGET")]
    pub(crate) named: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    /// Only this tool; may be repeated
    #[arg(long = "tool", value_name = "NAME")]
    pub(crate) tools: Vec<String>,
    /// Show the schemas as JSON instead of the descriptions
    #[arg(long)]
    pub(crate) schema: bool,
    /// Show the differences to the servers' own definitions, and which of their tools are not listed
    #[arg(long, conflicts_with = "schema")]
    pub(crate) diff: bool,
}

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

/// Show the status of a running gateway
///
/// Shows its servers, its variants with their tools and tokens, and its recent clients: the variant of each, what selected it, and how many requests
/// and calls it made. Also shows which clients still use deprecated variants. Finds a gateway of the same user by itself,
/// by its socket in the state directory, below XDG_STATE_HOME or ~/.local/state. One of another user must be started with
/// `vary serve --admin`, or have `admin:` in its configuration. Exit code 1 when a server is down, or audit records are lost.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  \
    vary status\n  \
    vary serve vary.yaml --admin 8801\n  \
    vary status 8801\n\n\
    With --json, the answer to GET /status?tokens: {version, uptime, servers: [{name, state, since, reason, nextAttempt, login: {expires, refreshed, ended}, tools}], variants: \
    [{id, status, replacement, removalDate, daysLeft, default, tools, tokens}], deprecatedUse: [{variant, client: {name, version}, requests, \
    last}], clients: [{client: {name, version}, variant, reason, requests, calls, last}], directoryUse: [{server, tool, described, refused, repaired, unchecked, reason}], sessions, streams, listeners, subscriptions, pendingServerRequests, suspendedCalls, proxiedTasks, \
    dedicatedConnections, memory, resultStore, tasks, rankings, modelRanking: {requests, used, postponed, cached, failures}, rateLimits, counters}. Times are seconds, memory and resultStore are bytes.")]
pub(crate) struct Status {
    /// Print JSON; with --watch, a line each time
    #[arg(long)]
    pub(crate) json: bool,
    /// Show the status again every so many seconds, until Ctrl-C, with the metrics that have no labels
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2",
        value_parser = clap::value_parser!(u64).range(1..=3600)
    )]
    pub(crate) watch: Option<u64>,
    /// The gateway: its `--admin` address as HOST:PORT, a port or the URL, or its socket [default: the running gateway of
    /// this user, or 127.0.0.1:8801]
    #[arg(value_name = "ADDR")]
    pub(crate) address: Option<String>,
}

/// Options of the commands for a running gateway.
#[derive(Debug, Parser)]
pub(crate) struct Operate {
    /// `admin-token` of the gateway's configuration; without it, the token that the gateway wrote for its user
    #[arg(
        long,
        env = "VARY_ADMIN_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    pub(crate) token: Option<String>,
    /// The gateway: its `--admin` address as HOST:PORT, a port or the URL, or its socket [default: the running gateway of
    /// this user, or 127.0.0.1:8801]
    #[arg(value_name = "ADDR")]
    pub(crate) address: Option<String>,
}

/// Show the results of the experiments of a running gateway
///
/// Compares each arm with the first one, the control, by the clients that took part: values, 95 % intervals, and whether
/// the difference is real. An arm with too few clients has no result yet.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  \
    vary experiment 8801\n  \
    vary experiment --name words replica-1:8801 replica-2:8801\n\n\
    With --json, a list: {name, metric, shares: {arms: [[variant, clients, planned]], p}, comparisons: [{metric, \
    variant, control, arm, difference: {value, from, to}, p, power, verdict}]}. Shares are between 0 and 1, durations \
    milliseconds.")]
pub(crate) struct Experiment {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Only the experiment of this name
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The `--admin` addresses of the gateway and its replicas: HOST:PORT, a port, or the URL
    #[arg(value_name = "ADDR", default_value = "127.0.0.1:8801")]
    pub(crate) addresses: Vec<String>,
}

/// The options of both `inspect` and `call`.
#[derive(Debug, Parser)]
pub(crate) struct ClientArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Only this variant
    #[arg(long, value_name = "ID")]
    pub(crate) variant: Option<String>,
    /// Connect under the name of another client, to try rules under `clients`
    #[arg(long, value_name = "NAME")]
    pub(crate) client_name: Option<String>,
    /// Open the browser when a server wants a login, in the middle of a call too
    #[arg(long)]
    pub(crate) login: bool,
    /// The version of that client
    #[arg(
        long,
        value_name = "VERSION",
        requires = "client_name",
        default_value = "1"
    )]
    pub(crate) client_version: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
