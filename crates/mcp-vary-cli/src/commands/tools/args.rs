//! The arguments of `vary tools`.

use clap::Parser;

use crate::server_target::args::ClientArgs;

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
