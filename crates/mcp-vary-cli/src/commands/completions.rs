//! `vary completions`: scripts that complete commands and flags in a shell.

use clap::{Command, Parser, ValueEnum};
use clap_complete::{Shell as Generator, generate};

use crate::failure::{Failure, Verdict};
use crate::print;

/// Print a script that completes commands and flags in a shell
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  \
    vary completions bash > ~/.local/share/bash-completion/completions/vary\n  \
    vary completions zsh > ~/.zfunc/_vary\n  \
    vary completions fish > ~/.config/fish/completions/vary.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// A shell for which a script is tested.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Prints the script.
pub(crate) fn run(args: &Completions, command: &Command) -> Result<Verdict, Failure> {
    let shell = match args.shell {
        Shell::Bash => Generator::Bash,
        Shell::Zsh => Generator::Zsh,
        Shell::Fish => Generator::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut visible(command), "vary", &mut script);
    let script = String::from_utf8(script);
    let script =
        script.map_err(|error| Failure::command(format!("the script is not text: {error}")))?;
    print::data(&script).map(|()| Verdict::Fine)
}

/// The command line without hidden commands, which the script for bash would complete.
fn visible(all: &Command) -> Command {
    let commands = all
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    Command::new("vary")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .args(all.get_arguments().cloned())
        .subcommands(commands.cloned())
}
