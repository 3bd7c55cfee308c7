//! The commands and their paths.

/// What can be requested of a running gateway.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Command {
    /// Read the configuration again, and use it if it has no mistake.
    Reload,
    /// Accept no more clients, finish what is in flight, and end.
    Drain,
}

impl Command {
    /// All commands.
    pub const ALL: [Self; 2] = [Self::Reload, Self::Drain];

    /// The path at which the gateway accepts it.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Reload => "/reload",
            Self::Drain => "/drain",
        }
    }

    /// The command at `path`.
    pub fn at(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.path() == path)
    }
}
