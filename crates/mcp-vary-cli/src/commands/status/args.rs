//! The arguments of `vary status`.

use clap::Parser;

/// Show the status of a running gateway
///
/// Shows its servers, its variants with their tools and tokens, and its recent clients: the variant of each, what selected
/// it, and how many requests and calls it made. With `auth`, shows the same of people, what was refused to them, and the
/// tokens of their results. Also shows which clients still use deprecated variants. Finds a gateway of the same user by
/// itself, by its socket in the state directory, below XDG_STATE_HOME or ~/.local/state. For one of another user, name its
/// `admin` address, and set VARY_ADMIN_TOKEN to its `admin-token`. Exit code 1 when a server is down, or audit records are
/// lost.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  \
    vary status\n  \
    vary serve vary.yaml --admin 8801\n  \
    vary status 8801\n\n\
    With --json, the answer to GET /status?tokens: {version, config, uptime, servers: [{name, state, since, reason, stderr, nextAttempt, login: {expires, refreshed, ended}, tools}], variants: \
    [{id, status, replacement, removalDate, daysLeft, default, tools, tokens}], deprecatedUse: [{variant, client: {name, version}, requests, \
    last}], clients: [{client: {name, version}, variant, reason, requests, calls, last}], people: [{person, requests, calls, refused, tokens, last}], peopleNeedToken, savings: {total: {without, with}, clients: [{client, person, without, with}], days: {day: {without, with}}}, directoryUse: [{server, tool, described, refused, repaired, unchecked, reason}], sessions, streams, listeners, subscriptions, pendingServerRequests, suspendedCalls, proxiedTasks, \
    dedicatedConnections, memory, resultStore, tasks, rankings, modelRanking: {requests, used, postponed, cached, failures}, rateLimits, counters}. Times are seconds, memory and resultStore are bytes, savings are tokens.")]
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
