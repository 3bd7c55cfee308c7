//! The outcomes of a command.

pub(crate) mod refused_variant;

use std::fmt;
use std::process::ExitCode;

use mcp_vary_gateway::ConnectError;
use mcp_vary_upstream::{RAISE_START_TIMEOUT, UpstreamError};

use self::refused_variant::refused_address;

/// The result of a command that ran to its end and checked something.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    /// Exit code 0.
    Fine,
    /// Exit code 1.
    Failed,
}

impl Verdict {
    pub(crate) const fn fine_if(is_fine: bool) -> Self {
        if is_fine { Self::Fine } else { Self::Failed }
    }
}

/// The reason why a command ended early, and its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    text: String,
    code: u8,
    is_unauthorized: bool,
    /// The error with which the server refused the handshake, JSON text.
    refusal: Option<String>,
}

impl Failure {
    /// The command itself could not be run: exit code 2.
    pub(crate) fn command(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            code: 2,
            is_unauthorized: false,
            refusal: None,
        }
    }

    /// The server or file that the command checks has failed: exit code 1.
    pub(crate) fn looked_at(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            code: 1,
            is_unauthorized: false,
            refusal: None,
        }
    }

    /// The same failure of a server that the command checks.
    pub(crate) const fn into_looked_at(mut self) -> Self {
        self.code = 1;
        self
    }

    /// Servers that the command needs are down.
    pub(crate) fn servers_down(errors: &[ConnectError]) -> Self {
        let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
        Self::command(match (&lines[..], errors) {
            ([one], [error]) => refusal(error)
                .and_then(refused_address)
                .unwrap_or_else(|| one.clone()),
            (several, _) => format!("{} servers are down\n{}", several.len(), several.join("\n")),
        })
    }

    /// The failure as it is for a server of the command line, which has no settings.
    pub(crate) fn without_file(mut self) -> Self {
        let instead = "write it to a file with `start-timeout: 5m`, and name that file";
        self.text = self.text.replace(RAISE_START_TIMEOUT, instead);
        self
    }

    /// The same with an `end` of its sentence.
    pub(crate) fn with_end(mut self, end: &str) -> Self {
        self.text.push_str(end);
        self
    }

    /// The same with one more line.
    pub(crate) fn with_line(mut self, line: &str) -> Self {
        self.text = format!("{}\n{line}", self.text);
        self
    }

    /// The error with which the server refused the handshake, JSON text.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Whether a server answered 401.
    pub(crate) const fn is_unauthorized(&self) -> bool {
        self.is_unauthorized
    }

    /// Whether the command itself could not be run.
    pub(crate) const fn is_of_command(&self) -> bool {
        self.code == 2
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Without a connection, the command cannot be run.
impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let is_unauthorized =
            matches!(&error, ConnectError::Failed(refusal) if refusal.is_unauthorized());
        Self {
            is_unauthorized,
            refusal: refusal(&error).map(str::to_owned),
            ..Self::command(error.to_string())
        }
    }
}

/// The error with which a server refused the handshake, JSON text.
fn refusal(error: &ConnectError) -> Option<&str> {
    match error {
        ConnectError::Handshake { refusal, .. } => refusal.as_deref(),
        _ => None,
    }
}

impl From<UpstreamError> for Failure {
    fn from(error: UpstreamError) -> Self {
        Self::looked_at(error.details())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_for_a_server_of_the_command_line_can_be_followed_there() {
        let why =
            format!("it wrote nothing; if it downloads or builds first, {RAISE_START_TIMEOUT}");
        assert_eq!(
            Failure::command(why).without_file().to_string(),
            "it wrote nothing; if it downloads or builds first, write it to a file with `start-timeout: 5m`, and name that \
             file"
        );
    }
}
