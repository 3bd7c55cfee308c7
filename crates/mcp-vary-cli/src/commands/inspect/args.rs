//! The arguments of `vary inspect`.

use clap::Parser;

use crate::server_target::args::ClientArgs;

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
