//! What the scripted server does: written by a scenario, read by the server at each of its starts.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// An era of the protocol.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "the protocol has two")]
pub enum Era {
    /// 2025-11-25: `initialize`, sessions.
    Legacy,
    /// 2026-07-28: stateless.
    Modern,
}

impl Era {
    /// Both, the older first.
    pub const BOTH: [Self; 2] = [Self::Legacy, Self::Modern];

    /// Its name in tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Legacy => Self::Modern,
            Self::Modern => Self::Legacy,
        }
    }
}

/// What a start of the server comes to.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(
    clippy::exhaustive_enums,
    reason = "the server and the scenarios are one program"
)]
pub enum Start {
    /// It serves.
    #[default]
    Serve,
    /// It says why not on standard error and ends with exit code 1.
    Exit,
    /// It ends as soon as the handshake is done.
    Leave,
    /// It takes what comes and never answers.
    Silence,
    /// It talks, but not MCP.
    Garbage,
}

/// What the server does from its next start on.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the server and the scenarios are one program"
)]
pub struct Script {
    /// What its answers begin with, so that it is seen who answered.
    pub name: String,
    /// What it speaks.
    pub era: Era,
    /// What its starts come to.
    pub start: Start,
    /// How many starts, from the first that read this script, come to `start`; all when `None`.
    /// Those after them serve.
    pub starts: Option<usize>,
    /// A tool that it lists besides those of [`TOOLS`].
    pub tool: Option<String>,
    /// Whether it starts a process of its own, as package runners do.
    pub starts_child: bool,
    /// Whether it stays when its input closes and when it is asked to end.
    pub stubborn: bool,
}

impl Script {
    /// A server of `era` that serves.
    #[must_use]
    pub fn new(name: &str, era: Era) -> Self {
        Self {
            name: name.to_owned(),
            era,
            start: Start::Serve,
            starts: None,
            tool: None,
            starts_child: false,
            stubborn: false,
        }
    }

    /// Writes it for the next start.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn write(&self, directory: &Path) -> Result<(), String> {
        let text = serde_json::to_string(self).map_err(|error| error.to_string())?;
        // A server may be starting: it reads the old one or the new one.
        let (new, path) = (directory.join("script.new"), directory.join(SCRIPT));
        fs::write(&new, text)
            .and_then(|()| fs::remove_file(directory.join(STARTS)).or(Ok(())))
            .and_then(|()| fs::rename(&new, &path))
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Reads what was written.
    ///
    /// # Errors
    ///
    /// When there is none, or it cannot be read.
    pub fn read(directory: &Path) -> Result<Self, String> {
        let path = directory.join(SCRIPT);
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// The tools of every script: say it back, answer late, the same but declared to change nothing, never answer,
/// end the process, answer nonsense.
pub const TOOLS: [&str; 6] = ["echo", "sleep", READ_ONLY, "hang", "die", "noise"];
/// The tool that declares `readOnlyHint`.
pub const READ_ONLY: &str = "get";

/// The script, in the server's directory.
pub const SCRIPT: &str = "script.json";
/// A line for each start since the script was written.
pub const STARTS: &str = "starts";
/// A line for each start ever: the id of the process.
pub const PROCESSES: &str = "processes";
/// A line for each process that the server started itself: its id.
pub const CHILDREN: &str = "children";
/// A line for each call that arrived: what the argument `call` says.
pub const CALLS: &str = "calls";
