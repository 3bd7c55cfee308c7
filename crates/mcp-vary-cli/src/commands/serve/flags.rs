//! The configuration of `vary serve`: a file or the servers on the command line, changed by the flags.

use std::time::Duration;

use mcp_vary_config::File;
use mcp_vary_gateway::{Config, UpstreamConfig};

use crate::credentials::{LoginMode, file_with_logins, with_logins};
use crate::environment::environment;
use crate::failure::Failure;
use crate::serving::chain;
use crate::similar::nearest;

use super::args::Serve;

/// The configuration in `file`, changed by the flags.
pub(crate) fn file_config(args: &Serve, file: File) -> Result<Config, Failure> {
    let start_wait = file.program.start_wait;
    if args.require_all && !file.left_out.is_empty() {
        let left_out = file.left_out.iter();
        let names: Vec<_> = left_out
            .map(|server| format!("`{}`", server.name))
            .collect();
        let why = format!(
            "{} cannot be used, and --require-all is given",
            names.join(", ")
        );
        return Err(Failure::command(why));
    }
    with_args(args, file_with_logins(file, LoginMode::Stored)?, start_wait)
}

/// The configuration of a server that is in no file, changed by the flags.
pub(crate) fn server_config(args: &Serve, server: UpstreamConfig) -> Result<Config, Failure> {
    let config = with_logins(Config::new(server, environment()?), LoginMode::Stored);
    with_args(args, config, None)
}

/// `config`, changed by the flags.
fn with_args(
    args: &Serve,
    mut config: Config,
    start_wait: Option<Duration>,
) -> Result<Config, Failure> {
    config.variants &= !args.no_variants;
    config.negotiation &= !args.no_negotiation;
    if let Some(id) = &args.variant {
        let known: Vec<_> = config.variant_set.ids().map(|id| id.to_string()).collect();
        config = config.with_default_variant(id).map_err(|why| {
            Failure::command(match nearest(id, known.iter().map(String::as_str)) {
                Some(meant) if !id.contains('/') => {
                    format!("--variant: there is no variant `{id}`; did you mean `{meant}`?")
                }
                _ => format!("--variant: {why}"),
            })
        })?;
    }
    let are_several = config.servers.len() > 1;
    let usual = if are_several {
        START_WAIT
    } else {
        START_WAIT_FOR_ONE
    };
    config.start_wait = start_wait.unwrap_or(usual);
    config.class_wait = Some(start_wait.unwrap_or(START_WAIT));
    config.allow_empty_start = are_several;
    chain::with_ancestors(config)
}

/// How long clients wait for the slowest of several servers, and for the processes that their capabilities need. Some clients
/// give up after 3 s, and the other servers are ready earlier.
const START_WAIT: Duration = Duration::from_secs(2);
/// How long clients wait for the only server, without which there is nothing to list.
const START_WAIT_FOR_ONE: Duration = Duration::from_secs(8);
