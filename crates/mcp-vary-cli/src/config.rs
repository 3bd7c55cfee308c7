//! `vary config`: what there is to say and to do about a configuration.

use mcp_vary_gateway::config;

use crate::args::ConfigCommand;
use crate::check;
use crate::failure::{Failure, Verdict};
use crate::import;
use crate::print;
use crate::stop::Stop;

/// Runs the command.
pub(crate) async fn run(command: ConfigCommand, stop: Stop) -> Result<Verdict, Failure> {
    match command {
        ConfigCommand::Check(check) => check::run(check, stop).await,
        ConfigCommand::Import(args) => import::run(&args),
        ConfigCommand::Schema => print::data(&config::schema()).map(|()| Verdict::Fine),
    }
}
