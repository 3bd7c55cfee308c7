//! The log on standard error.

mod format;

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;

use self::format::{JsonLines, LineTime};
use crate::args::{Args, Command, LogFormat};
use crate::failure::Failure;
use crate::print;

/// Starts the log at the level that was requested, or at the command's default level.
pub(crate) fn start(args: &Args) -> Result<(), Failure> {
    let directives = directives(args);
    check(directives)?;
    let filter = EnvFilter::try_new(directives).map_err(|error| {
        Failure::command(format!(
            "the log level `{directives}` cannot be read ({error}); write error, warn, info, debug or trace"
        ))
    })?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| print::LogWriter)
        .with_target(false)
        .with_ansi(print::terminal::has_color(&io::stderr()));
    let time = match io::stderr().is_terminal() {
        true => LineTime::OfDay,
        false => LineTime::Full,
    };
    match &args.command {
        Command::Serve(serve) if serve.log_format == LogFormat::Json => {
            print::set_json();
            log.with_ansi(false).event_format(JsonLines).init();
        }
        Command::Serve(_) => log.with_timer(time).init(),
        // They end before a time would help.
        _ => log.without_time().init(),
    }
    Ok(())
}

/// The levels of the log. `-v` counts from the command's default level.
fn directives(args: &Args) -> &str {
    let usual = match args.command {
        // `--log debug` also shows the servers' standard error. If a server dies, the error contains its last lines.
        Command::Serve(_) if !args.quiet => "warn",
        _ => "error",
    };
    if args.verbose == 0 {
        return args.log.as_deref().unwrap_or(usual);
    }
    let at = LEVELS.iter().position(|level| *level == usual).unwrap_or(0);
    let wanted = LEVELS.iter().take(5).nth(at + usize::from(args.verbose));
    wanted.copied().unwrap_or("trace")
}

/// Checks that each part is a level, alone or after `TARGET=`: another word would be read as a target, and disable the
/// log of all others.
fn check(directives: &str) -> Result<(), Failure> {
    for part in directives.split(',').map(str::trim) {
        let level = part.rsplit_once('=').map_or(part, |(_, level)| level);
        let is_level = LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level));
        if !is_level {
            return Err(Failure::command(format!(
                "`{part}` is not a log level; write {}, or TARGET=LEVEL",
                LEVELS.join(", ")
            )));
        }
    }
    Ok(())
}

const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];
