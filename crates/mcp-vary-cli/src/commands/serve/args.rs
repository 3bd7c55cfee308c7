//! The arguments of `vary serve`.

use std::path::PathBuf;

use clap::Parser;

use crate::log::LogFormat;
use crate::server_target::args::TargetArgs;
use crate::service::Manager;

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
    /// Address that `vary open` and `vary status` connect to: HOST:PORT on this machine, only a port, or `off` [default:
    /// `admin` of the file, or any free port]
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
    /// The manager of the service, as `vary up` writes it
    #[arg(long, value_name = "MANAGER", hide = true)]
    pub(crate) service: Option<Manager>,
    /// Disable variants: every client gets the lists as the server sends them
    #[arg(long)]
    pub(crate) no_variants: bool,
    /// Disable content negotiation: every client gets results as the server sends them
    #[arg(long)]
    pub(crate) no_negotiation: bool,
}
