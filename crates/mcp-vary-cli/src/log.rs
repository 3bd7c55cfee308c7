//! The log on standard error.

use std::io;

use tracing_subscriber::EnvFilter;

use crate::args::Command;
use crate::failure::Failure;

/// Starts the log at the level `wanted`, or at the command's default level.
pub(crate) fn start(wanted: Option<&str>, command: &Command) -> Result<(), Failure> {
    let directives = wanted.unwrap_or(match command {
        // `--log info` also shows the servers' standard error. If a server dies, the error contains its last lines.
        Command::Serve(_) => "warn",
        _ => "error",
    });
    check(directives)?;
    let filter = EnvFilter::try_new(directives).map_err(|error| {
        Failure::command(format!(
            "the log level `{directives}` cannot be read ({error}); write error, warn, info, debug or trace"
        ))
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .without_time()
        .with_target(false)
        .with_ansi(io::IsTerminal::is_terminal(&io::stderr()))
        .init();
    Ok(())
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
