//! The command line.

use clap::{Parser, Subcommand};

use crate::commands::access::args::Access;
use crate::commands::audit::Audit;
use crate::commands::call::args::Call;
use crate::commands::check::args::ServerCheck;
use crate::commands::completions::Completions;
use crate::commands::config::args::Config;
use crate::commands::connect::args::Connect;
use crate::commands::demo::Demo;
use crate::commands::experiment::Experiment;
use crate::commands::inspect::args::Inspect;
use crate::commands::invite::Invite;
use crate::commands::key::Key;
use crate::commands::login::args::{Login, Logout};
use crate::commands::man::Man;
use crate::commands::open::args::Open;
use crate::commands::operate::Operate;
use crate::commands::serve::args::Serve;
use crate::commands::status::args::Status;
use crate::commands::suggest::args::Suggest;
use crate::commands::tools::args::Tools;
use crate::commands::up::args::{Down, Up};
use crate::log::LogArgs;

/// An MCP gateway: each client gets results in the format it asks for, and the tools that fit it
#[derive(Debug, Parser)]
#[command(
    name = "vary",
    version,
    max_term_width = 100,
    after_help = "Try `vary demo` first. Exit codes: 0 success, 1 a check failed, 2 the command could not run."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(Demo),
    Up(Up),
    Down(Down),
    Serve(Serve),
    Inspect(Inspect),
    Tools(Tools),
    Call(Call),
    Check(ServerCheck),
    Connect(Connect),
    Config(Config),
    Login(Login),
    Logout(Logout),
    Key(Key),
    Invite(Invite),
    Access(Access),
    Audit(Audit),
    Status(Status),
    Suggest(Suggest),
    /// Read the configuration of a running gateway again
    ///
    /// Does what a change of the file does, and prints what changed. If the file has a mistake, prints it, changes nothing,
    /// and exits with code 1.
    #[command(after_help = "Examples:\n  vary reload\n  vary reload 8801")]
    Reload(Operate),
    /// End a running gateway without losing a request
    ///
    /// Does what SIGTERM does: the gateway is not ready any more, accepts no more clients, lets requests in flight finish for
    /// `limits.drain`, and ends. Returns at once.
    #[command(after_help = "Examples:\n  vary drain\n  vary drain 8801")]
    Drain(Operate),
    Open(Open),
    Completions(Completions),
    #[command(hide = true)]
    Man(Man),
    Experiment(Experiment),
    /// The demo's server: an MCP server on standard input and output
    #[command(hide = true)]
    Weather,
}
