//! Measures the cost of a request in Vary, its limits and its peers.
//!
//! One program with many subcommands, so that each can run in a process that is pinned to a core: `run` starts the
//! others and sends them requests; `cargo xtask bench` builds everything and starts `run`.
#![expect(
    clippy::print_stdout,
    reason = "the figures are printed for the person who runs it"
)]

mod changes;
mod configurations;
mod endpoint;
mod fanout;
mod forwarding;
mod load;
mod machine;
mod principals;
mod reload;
mod report;
mod rows;
mod run;
mod sections;
mod servers;
mod sessions;
mod subject;
mod upstream;
mod upstream_spec;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "vary-bench")]
struct Arguments {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// Measure, print a table, and compare it with the bars
    Run(run::Options),
    /// The limit of a list: an HTTP server whose answer is fixed
    Fixed(servers::fixed::Options),
    /// The limit of a notification to many clients: an HTTP server that sends all of them the same
    Fan(servers::fan::Options),
    /// The limit of a call: an HTTP proxy that reads only the envelope
    Forward(servers::forward::Options),
    /// A proxy made of rmcp's server and client
    RmcpProxy(servers::rmcp_proxy::Options),
    /// A handler on rmcp's own server, bare or wrapped by the library
    Library(servers::library::Options),
    /// A collector of spans
    Collector(servers::collector::Options),
    /// The server behind all of them
    Upstream(upstream::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().part {
        Part::Run(options) => return run::run(&options),
        Part::Fixed(options) => servers::fixed::serve(&options),
        Part::Fan(_) => servers::fan::serve(),
        Part::Forward(options) => servers::forward::serve(options),
        Part::RmcpProxy(options) => servers::rmcp_proxy::serve(options),
        Part::Library(options) => servers::library::serve(&options),
        Part::Collector(options) => servers::collector::serve(&options),
        Part::Upstream(options) => upstream::serve(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error}");
            ExitCode::from(2)
        }
    }
}
