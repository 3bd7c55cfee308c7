//! The automation of the project: `cargo xtask test` checks all of it.
#![expect(clippy::print_stdout, reason = "the output of the command")]

mod amplify;
mod auth;
mod bench;
mod book;
mod capability_servers;
mod cargo;
mod changed;
mod check;
mod client_jobs;
mod clients;
mod debian;
mod directory_clients;
mod dist;
mod document_examples;
mod extra;
mod faults;
mod fork_server;
mod guide;
mod interop;
mod layout;
mod library;
mod modules;
mod npm;
mod official_servers;
mod official_suite;
mod operator_page;
mod outcome;
mod page;
mod parallel;
mod phases;
mod process;
mod python;
mod recall;
mod release_build;
mod replicas;
mod requirements;
mod rust;
mod rust_tests;
mod server;
mod shaped;
mod soak;
mod tokens;
mod verdicts;
mod workspace;

use std::process::ExitCode;

use ::faults::SoakOptions;
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
    /// Installs the npm and PyPI packages that they need, pinned in tests/interop, below the workspace.
    /// The full output of each phase is in target/xtask.
    #[command(after_help = phases::help())]
    Test {
        /// The phases to run; all if none is given
        #[arg(value_parser = phases::names())]
        phases: Vec<String>,
        /// The commit with which `quick` and `layout` compare [default: the last one that HEAD shares with `main`]
        #[arg(long, value_name = "COMMIT")]
        since: Option<String>,
    },
    /// Print what clients receive when a server of the gateway fails
    ///
    /// Starts real processes and makes them fail. The scripts and notes of each case are in target/xtask/faults.
    Faults {
        /// Only the scenarios whose titles contain this
        #[arg(default_value = "")]
        title: String,
        /// Update the table in docs/internals/faults.md
        #[arg(long, conflicts_with = "title")]
        write: bool,
    },
    /// Print the results of the official suite for Vary in front of each kind of server
    Conformance {
        /// Update the table in docs/internals/conformance.md
        #[arg(long)]
        write: bool,
    },
    Dist(dist::Dist),
    Bench(bench::Bench),
    /// Connect and disconnect clients in every way, and print what remains of them in the gateway
    Soak {
        /// The number of clients
        #[arg(long, default_value_t = soak::CLIENTS)]
        clients: usize,
        /// Only the ways whose names contain this
        #[arg(long, default_value = "")]
        only: String,
        /// Update the figures in docs/internals/soak.md
        #[arg(long, conflicts_with = "only")]
        write: bool,
    },
    /// Send small messages that could make the gateway use much memory, and print how much it uses
    Amplify {
        /// Only the cases whose names contain this
        #[arg(default_value = "")]
        only: String,
        /// Another `vary` binary than the one of the workspace
        #[arg(long)]
        vary: Option<std::path::PathBuf>,
        /// Update the table in docs/internals/bounds.md
        #[arg(long, conflicts_with_all = ["only", "vary"])]
        write: bool,
        /// Record the figures of --vary as those of this earlier commit, for the column "before" of the table
        #[arg(long, value_name = "COMMIT", requires = "vary")]
        record: Option<String>,
    },
    /// Run the long phases before a release: all, or the given ones
    #[command(after_help = extra::help())]
    TestExtra {
        /// The phases to run; all if none is given
        #[arg(value_parser = extra::names())]
        phases: Vec<String>,
        #[command(flatten)]
        options: extra::Options,
    },
    Recall(recall::Recall),
    /// Print the cost in tokens of the recorded tool lists, results and rows, and update docs/reference/tokens.md
    Tokens {
        /// Change nothing; fail if the page is not up to date
        #[arg(long)]
        check: bool,
        /// Print the cost of other tools instead: those in a file for `cargo xtask recall --data`
        #[arg(long, value_name = "FILE", conflicts_with = "check")]
        data: Option<std::path::PathBuf>,
    },
}

fn main() -> ExitCode {
    let mut workspace = Workspace::here();
    match Arguments::parse().task {
        Task::Test { phases, since } => {
            workspace.since = since;
            phases::run(&workspace, &phases)
        }
        Task::Faults { title, write } => exit_code(faults::faults(&workspace, &title, write)),
        Task::Conformance { write } => exit_code(official_suite::official_suite(&workspace, write)),
        Task::Dist(options) => exit_code(dist::dist(&workspace, &options)),
        Task::Bench(options) => exit_code(bench::bench(&workspace, &options)),
        Task::Soak {
            clients,
            only,
            write,
        } => {
            let options = SoakOptions { clients, only };
            exit_code(soak::soak(&workspace, &options, write))
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
        Task::Recall(options) => exit_code(recall::recall(&workspace, &options)),
        Task::Tokens {
            data: Some(data), ..
        } => exit_code(tokens::tokens_of(&data)),
        Task::Tokens { check, .. } => exit_code(tokens::tokens(&workspace, check)),
    }
}

/// Prints the error of a task, if any, and returns the exit code.
fn exit_code(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}
