//! The automation of the project: `cargo xtask test` is the one command that says whether it holds.
#![expect(
    clippy::print_stdout,
    reason = "automation talks to whoever started it"
)]

mod allowed;
mod amplify;
mod behind;
mod bench;
mod cargo;
mod clients;
mod conformance;
mod extra;
mod faults;
mod guide;
mod interop;
mod layout;
mod modules;
mod names;
mod npm;
mod outcome;
mod phases;
mod process;
mod python;
mod requirements;
mod rust;
mod server;
mod shaped;
mod soak;
mod tokens;
mod workspace;

use std::process::ExitCode;

use ::faults::Crowd;
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
    /// Print what clients see when the server behind the gateway fails
    ///
    /// Starts real processes and makes them fail; the scripts and notes of each case are in target/xtask/faults.
    Faults {
        /// Only the scenarios whose titles hold this
        #[arg(default_value = "")]
        title: String,
        /// Bring the table in docs/faults.md up to date
        #[arg(long, conflicts_with = "title")]
        write: bool,
    },
    /// Print what the official suite finds of Vary before each kind of server
    Conformance {
        /// Bring the table in docs/conformance.md up to date
        #[arg(long)]
        write: bool,
    },
    Bench(bench::Bench),
    /// Let clients come and go in every way there is, and print what they leave in the gateway
    Soak {
        /// How many
        #[arg(long, default_value_t = soak::CLIENTS)]
        clients: usize,
        /// Only in the ways whose names hold this
        #[arg(long, default_value = "")]
        only: String,
        /// Bring the figures in docs/soak.md up to date
        #[arg(long, conflicts_with = "only")]
        write: bool,
    },
    /// Send small messages that would make the gateway hold much, and print what they make it hold
    Amplify {
        /// Only the cases whose names hold this
        #[arg(default_value = "")]
        only: String,
        /// Another `vary` than that of the workspace
        #[arg(long)]
        vary: Option<std::path::PathBuf>,
        /// Bring the table in docs/bounds.md up to date
        #[arg(long, conflicts_with_all = ["only", "vary"])]
        write: bool,
        /// Write the figures of the `vary` of this earlier commit down, for the column "before" of the table
        #[arg(long, value_name = "COMMIT", requires = "vary")]
        record: Option<String>,
    },
    /// Run what takes long, by hand before a release: all of it, or the named phases
    #[command(after_help = extra::help())]
    TestExtra {
        /// The phases to run; all when none is named
        #[arg(value_parser = extra::names())]
        phases: Vec<String>,
        #[command(flatten)]
        options: extra::Options,
    },
    /// Shorten the lists of today's violations, xtask/*-allowed.txt, to what still exists
    ///
    /// Deletes lines that no longer apply and follows names to files that were moved. Never adds a name.
    Prune,
    /// Print what the recorded tool lists, results and rows cost in tokens, and bring docs/tokens.md up to date
    Tokens {
        /// Change nothing; fail when the page is not current
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    let workspace = Workspace::here();
    match Arguments::parse().task {
        Task::Test { phases } => phases::run(&workspace, &phases),
        Task::Faults { title, write } => exit_code(faults::faults(&workspace, &title, write)),
        Task::Conformance { write } => exit_code(conformance::conformance(&workspace, write)),
        Task::Bench(options) => exit_code(bench::bench(&workspace, &options)),
        Task::Soak {
            clients,
            only,
            write,
        } => {
            let crowd = Crowd { clients, only };
            exit_code(soak::soak(&workspace, &crowd, write))
        }
        Task::Amplify {
            only,
            vary: Some(vary),
            record: Some(commit),
            ..
        } => exit_code(amplify::record(&workspace, vary, &only, &commit)),
        Task::Amplify {
            only, vary, write, ..
        } => exit_code(amplify::amplify(&workspace, vary, &only, write)),
        Task::TestExtra { phases, options } => exit_code(extra::run(&workspace, &phases, &options)),
        Task::Prune => exit_code(prune(&workspace)),
        Task::Tokens { check } => exit_code(tokens::tokens(&workspace, check)),
    }
}

fn prune(workspace: &Workspace) -> Result<(), String> {
    println!("{}", layout::prune(workspace)?);
    println!("{}", names::prune(workspace)?);
    Ok(())
}

/// The exit code of a task that either works or says why not.
fn exit_code(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}
