//! `vary man`: a man page for each command, for packages.

use std::path::{Path, PathBuf};

use clap::{Command, Parser};

use crate::failure::{Failure, Verdict};
use crate::file::unwritable;

/// Write a man page for each command to a directory
#[derive(Debug, Parser)]
#[command(after_help = "Example:\n  vary man target/man && man -l target/man/vary-serve.1")]
pub(crate) struct Man {
    /// The directory; it is created
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Writes the pages.
pub(crate) fn run(args: &Man, command: Command) -> Result<Verdict, Failure> {
    // `vary help` prints what these pages have.
    let mut documented = command.disable_help_subcommand(true);
    documented.build();
    std::fs::create_dir_all(&args.directory)
        .map_err(|error| unwritable(&args.directory, &error))?;
    write(&documented, "vary", &args.directory)?;
    Ok(Verdict::Fine)
}

/// Writes the page `name` of `command`, and those of its subcommands.
fn write(command: &Command, name: &str, directory: &Path) -> Result<(), Failure> {
    let path = directory.join(format!("{name}.1"));
    // Pages are found by their file's name, in which words are joined by hyphens.
    let page = clap_mangen::Man::new(command.clone().display_name(name.to_owned()));
    let mut text = Vec::new();
    let rendered = page
        .render(&mut text)
        .and_then(|()| std::fs::write(&path, text));
    rendered.map_err(|error| unwritable(&path, &error))?;
    for subcommand in command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
    {
        write(
            subcommand,
            &format!("{name}-{}", subcommand.get_name()),
            directory,
        )?;
    }
    Ok(())
}
