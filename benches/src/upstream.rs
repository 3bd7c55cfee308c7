//! The upstream server: fast, so that the measurement shows the proxy in front of it.
//!
//! Answers are written by hand. It supports `initialize`, `server/discover`, `ping`, `tools/list` and `tools/call` of
//! one tool, `echo`. The arguments of `echo` set the size, delay and number of messages of its answer, and whether it
//! sends its client a request first or changes the list of tools.

mod answer;
mod http;
mod stdio;
pub(crate) mod tools;

use std::io;

use clap::{Parser, ValueEnum};

pub(crate) use answer::{Answer, Answers};

/// The upstream server of all of them.
#[derive(Clone, Debug, Parser)]
pub(crate) struct Options {
    /// How it is reached
    #[arg(long, value_enum)]
    transport: Transport,
    /// What it speaks
    #[arg(long, value_enum)]
    kind: Kind,
    /// How many tools it lists
    #[arg(long, default_value_t = 10)]
    tools: usize,
    /// The core that it keeps to
    #[arg(long)]
    core: Option<usize>,
}

/// How a server is reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Transport {
    Http,
    Stdio,
}

/// What a server speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Kind {
    /// 2025-11-25, with sessions.
    Sessions,
    /// 2025-11-25, without sessions.
    Legacy,
    /// 2026-07-28.
    Modern,
}

/// Serves until standard input closes.
pub(crate) fn serve(options: &Options) -> io::Result<()> {
    if let Some(core) = options.core {
        crate::machine::pin(&[core])?;
    }
    let answers = Answers::new(options.kind, options.tools);
    match options.transport {
        Transport::Http => http::serve(answers),
        Transport::Stdio => stdio::serve(&answers),
    }
}
