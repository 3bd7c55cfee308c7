//! The automation of the project: `cargo xtask test` is the one command that says whether it holds.
#![expect(
    clippy::print_stdout,
    reason = "automation talks to whoever started it"
)]

mod cargo;
mod layout;
mod phases;
mod process;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use workspace::Workspace;

/// The automation of the project.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run the tests: all phases, or the named ones
    ///
    /// Installs what they need (npm and PyPI packages, pinned in tests/interop) below the workspace.
    /// Full output of each phase is kept in target/xtask, a file each.
    #[command(after_help = phases::help())]
    Test {
        /// The phases to run; all when none is named
        #[arg(value_parser = phases::names())]
        phases: Vec<String>,
    },
}

fn main() -> ExitCode {
    let workspace = Workspace::here();
    match Arguments::parse().task {
        Task::Test { phases } => phases::run(&workspace, &phases),
    }
}
