//! The command line of Vary: `demo`, `up`, `down`, `serve`, `inspect`, `tools`, `call`, `check`, `connect`, `config`,
//! `login`, `logout`, `key`, `invite`, `access`, `audit`, `status`, `suggest`, `open`, `reload` and `drain`.
//!
//! This is the only crate that prints, exits, and reads flags, the environment and the time of day.
//! Standard output is for data, standard error for messages.

mod args;
mod audit_log;
#[cfg(test)]
mod book_tests;
mod client;
mod commands;
mod credentials;
mod environment;
mod failure;
mod file;
mod log;
mod operator;
mod print;
mod question;
mod server_guard;
mod server_target;
mod service;
mod serving;
mod similar;
mod stop;
mod tokens;
mod usage_error;

use std::process::ExitCode;
use std::time::Duration;

use clap::CommandFactory as _;
use mcp_vary_auth::provider::Provider;
use mcp_vary_operator::Command as OperatorCommand;
use mcp_vary_upstream::{guard_servers, set_server_guard};

use args::{Args, Command};
use commands::serve::passed_sockets::PassedSockets;
use commands::{
    access, audit, call, check, completions, config, connect, demo, down, experiment, inspect,
    invite, key, login, man, open, operate, serve, status, suggest, tools, up,
};
use failure::{Failure, Verdict};
use log::{CommandLog, LogFormat};
use stop::Stop;

/// Does what the arguments of the process say.
pub fn main() -> ExitCode {
    if let Some(prefix) = server_guard::argument() {
        guard_servers(&prefix);
        return ExitCode::SUCCESS;
    }
    set_server_guard(server_guard::command);
    match usage_error::parse().and_then(run) {
        Ok(Verdict::Fine) => ExitCode::SUCCESS,
        Ok(Verdict::Failed) => ExitCode::from(1),
        Err(failure) => {
            print::notice(&print::sanitize(&format!("error: {failure}")));
            failure.exit_code()
        }
    }
}

fn run(args: Args) -> Result<Verdict, Failure> {
    print::set_quiet(args.log.quiet);
    let log = CommandLog::new(&args.log)?;
    match &args.command {
        Command::Serve(serve) if serve.log_format == Some(LogFormat::Json) => print::set_json(),
        Command::Serve(_) => {}
        _ => log.start()?,
    }
    // Before anything verifies a token.
    Provider::install().map_err(|error| Failure::command(error.to_string()))?;
    // Before there are threads, since it changes the environment.
    let sockets = match args.command {
        Command::Serve(_) => PassedSockets::of_environment()?,
        _ => PassedSockets::default(),
    };
    let mut builder = match std::thread::available_parallelism() {
        // On one core, several workers would only add overhead: they poll the clock and each other's queues.
        Ok(cores) if cores.get() == 1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder
        .enable_all()
        .build()
        .map_err(|error| Failure::command(format!("no runtime could be started: {error}")))?;
    let verdict = runtime.block_on(dispatch(args.command, log, sockets));
    // Ends the remaining tasks: those of child processes, and a blocked read of standard input.
    runtime.shutdown_timeout(LAST_TASKS);
    verdict
}

async fn dispatch(
    command: Command,
    log: CommandLog,
    sockets: PassedSockets,
) -> Result<Verdict, Failure> {
    let mut stop = Stop::listen()?;
    if !matches!(command, Command::Serve(_)) {
        stop = stop.with_hangup()?;
    }
    match command {
        Command::Demo(demo) => demo::run(demo, stop).await,
        Command::Up(up) => up::run(up, stop).await,
        Command::Down(down) => down::run(down, stop).await,
        Command::Serve(serve) => serve::run(serve, log, sockets, stop).await,
        Command::Inspect(inspect) => inspect::run(inspect, stop).await,
        Command::Tools(tools) => tools::run(tools, stop).await,
        Command::Call(call) => call::run(call, stop).await,
        Command::Check(check) => check::run(check, stop).await,
        Command::Config(config) => config::run(config.command, stop).await,
        Command::Connect(args) => connect::run(args, stop).await,
        Command::Login(args) => login::log_in(args, stop).await,
        Command::Logout(args) => login::log_out(args, stop).await,
        Command::Key(key) => key::run(&key.command),
        Command::Invite(args) => stop.unless_requested(invite::run(&args)).await,
        Command::Access(access) => access::run(access.command, stop).await,
        Command::Audit(args) => audit::run(args, stop).await,
        Command::Completions(args) => completions::run(&args, &Args::command()),
        Command::Man(args) => man::run(&args, Args::command()),
        Command::Status(status) => status::run(status, stop).await,
        Command::Suggest(suggest) => suggest::run(suggest, stop).await,
        Command::Reload(args) => operate::run(OperatorCommand::Reload, args, stop).await,
        Command::Drain(args) => operate::run(OperatorCommand::Drain, args, stop).await,
        Command::Open(args) => open::run(args, stop).await,
        Command::Experiment(args) => experiment::run(args, stop).await,
        Command::Weather => tokio::select! {
            served = weather::serve_stdio() => served
                .map(|()| Verdict::Fine)
                .map_err(|error| Failure::looked_at(error.to_string())),
            () = stop.requested() => Ok(Verdict::Fine),
        },
    }
}

/// How long background work may take to end once the command is done.
const LAST_TASKS: Duration = Duration::from_millis(200);
