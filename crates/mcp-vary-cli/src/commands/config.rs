//! `vary config`: creates, checks and explains configurations.

pub(crate) mod args;
pub(crate) mod check;
mod import;

use mcp_vary_gateway::KNOWN_CLIENTS;

use self::args::ConfigCommand;
use crate::failure::{Failure, Verdict};
use crate::print;
use crate::print::table::table;
use crate::stop::Stop;

/// Runs the command.
pub(crate) async fn run(command: ConfigCommand, stop: Stop) -> Result<Verdict, Failure> {
    match command {
        ConfigCommand::Check(check) => check::run(check, stop).await,
        ConfigCommand::Import(args) => import::run(&args),
        ConfigCommand::Clients => print::data(&clients()).map(|()| Verdict::Fine),
        ConfigCommand::Schema => print::data(&mcp_vary_config::schema()).map(|()| Verdict::Fine),
    }
}

/// The clients of `known-clients`, each with its behavior and the source of this knowledge.
fn clients() -> String {
    let heading = ["client", "name", "gets"].map(str::to_owned).to_vec();
    let rows = KNOWN_CLIENTS.iter().map(|known| {
        let cells = [known.client, known.name, &known.rule_text()];
        cells.map(str::to_owned).to_vec()
    });
    let rows: Vec<_> = std::iter::once(heading).chain(rows).collect();
    let reasons = KNOWN_CLIENTS
        .iter()
        .map(|known| format!("{} {}\n  {}\n", known.client, known.behavior, known.source));
    format!("{}\n{}", table(&rows, 3), reasons.collect::<String>())
}
