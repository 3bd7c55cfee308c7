//! The arguments of `vary up` and `vary down`.

use clap::Parser;

/// Put Vary in front of the servers of all your clients, as a service
///
/// Finds the clients of this user, tries their servers and shows what they cost. Once you agree, it writes a
/// configuration, runs Vary as a service, and puts Vary in place of the servers in each client's file. Servers that do
/// not answer stay as they are, as do files of the current directory without --project. A second `vary up` adds what
/// is new and repairs what is missing.
#[derive(Debug, Parser)]
#[command(
    after_help = "Examples:\n  vary up --dry-run\n  vary up\n  vary up --project\n  vary down"
)]
pub(crate) struct Up {
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
    /// Copy the servers of the clients' files in the current directory, too, after a question that --yes does not
    /// answer
    #[arg(long)]
    pub(crate) project: bool,
    /// Print what would be written, without secrets, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Undo `vary up`: end the service, and give every client its servers back
///
/// A file that nobody else changed is byte for byte what it was. In others, that change stays. The configuration stays,
/// too.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  vary down\n  vary down --all")]
pub(crate) struct Down {
    /// Remove the configuration, too
    #[arg(long)]
    pub(crate) all: bool,
}
