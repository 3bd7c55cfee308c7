//! The process that ends the servers of this one if it is killed: the same program with an argument that no help shows.

use std::process::Command;

/// What the guard is started with, before what it has to end.
const GUARD: &str = "--end-servers-of";

/// The command that starts the guard.
pub(crate) fn command() -> Command {
    // The path of the program may name another version by now.
    let mut command = Command::new("/proc/self/exe");
    #[cfg(unix)]
    std::os::unix::process::CommandExt::arg0(&mut command, "vary");
    command.arg(GUARD);
    command
}

/// What this process has to end, if it is a guard.
pub(crate) fn argument() -> Option<String> {
    let mut args = std::env::args_os().skip(1);
    args.next().filter(|first| *first == GUARD)?;
    args.next()?.into_string().ok()
}
