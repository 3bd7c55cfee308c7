//! The client that is checked.

use std::fmt;

/// A client under test: a command that connects to the server that it is given as its last arguments, lists its tools, calls
/// some, and ends.
///
/// ```
/// use mcp_vary_conformance::ClientCommand;
///
/// let client = ClientCommand::http(["python3", "client.py", "--key=secret"])?;
/// // Arguments may be secret: only the program is shown.
/// assert_eq!(client.to_string(), "python3 …");
/// assert!(ClientCommand::http([""]).is_err());
/// # Ok::<(), mcp_vary_conformance::InvalidClient>(())
/// ```
#[derive(Clone)]
pub struct ClientCommand {
    command: Vec<String>,
    relay: Option<Vec<String>>,
}

impl ClientCommand {
    /// A client over HTTP: its last argument is the URL of the mock server.
    ///
    /// # Errors
    ///
    /// When the command is empty.
    pub fn http(argv: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, InvalidClient> {
        let command: Vec<String> = argv.into_iter().map(Into::into).collect();
        match command.first() {
            Some(program) if !program.is_empty() => Ok(Self {
                command,
                relay: None,
            }),
            _ => Err(InvalidClient),
        }
    }

    /// A client over standard input and output: its last arguments are the command of the mock server, which it starts. That
    /// command is `relay` and an address, with which the program has to call [`relay`](crate::relay).
    ///
    /// # Errors
    ///
    /// When the command or `relay` is empty.
    pub fn stdio(
        command: impl IntoIterator<Item = impl Into<String>>,
        relay: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, InvalidClient> {
        let relay = Self::http(relay)?.command;
        Ok(Self {
            relay: Some(relay),
            ..Self::http(command)?
        })
    }

    /// Whether the client starts the mock server as a command.
    pub(crate) fn is_stdio(&self) -> bool {
        self.relay.is_some()
    }

    /// The program, and its arguments for a mock server at `address`.
    pub(crate) fn command_for(&self, address: &str) -> Vec<String> {
        let mut command = self.command.clone();
        match &self.relay {
            Some(relay) => {
                command.extend(relay.iter().cloned());
                command.push(address.to_owned());
            }
            None => command.push(format!("http://{address}/mcp")),
        }
        command
    }
}

impl fmt::Display for ClientCommand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.command.len() > 1 { " …" } else { "" };
        let program = self.command.first().map_or("", String::as_str);
        write!(formatter, "{program}{more}")
    }
}

impl fmt::Debug for ClientCommand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("ClientCommand")
            .field(&self.to_string())
            .finish()
    }
}

/// Why a client cannot be checked: there is no program.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the command is empty; give a program and its arguments")]
#[non_exhaustive]
pub struct InvalidClient;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_the_last_argument() {
        let client = ClientCommand::http(["client", "--json"]).unwrap();
        let command = client.command_for("127.0.0.1:7");
        assert_eq!(command, ["client", "--json", "http://127.0.0.1:7/mcp"]);
        let client = ClientCommand::stdio(["client"], ["vary", "check", "--relay"]).unwrap();
        let command = client.command_for("127.0.0.1:7");
        let expected = ["client", "vary", "check", "--relay", "127.0.0.1:7"];
        assert_eq!(command, expected);
    }

    #[test]
    fn a_client_without_a_program_is_refused() {
        assert!(ClientCommand::http([""; 0]).is_err());
        assert!(ClientCommand::stdio(["client"], [""]).is_err());
    }
}
