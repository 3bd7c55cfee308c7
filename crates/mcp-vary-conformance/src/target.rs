//! The server that is checked.

use std::fmt;

use http::Uri;
use http::header::{HeaderName, HeaderValue};

/// A server under test: a streamable HTTP endpoint with the headers that it wants, or a command that speaks MCP on its
/// standard streams.
///
/// ```
/// use mcp_vary_conformance::Target;
///
/// let target = Target::http("https://example.com/mcp")?.with_header("authorization", "Bearer secret")?;
/// assert!(!format!("{target:?}").contains("secret"));
/// assert!(Target::http("127.0.0.1:8800").is_err());
///
/// // Arguments may be secret, too: only the program is shown.
/// let target = Target::command(["npx", "-y", "my-server", "--key=secret"])?;
/// assert_eq!(target.to_string(), "npx …");
/// # Ok::<(), mcp_vary_conformance::InvalidTarget>(())
/// ```
#[derive(Clone)]
pub struct Target {
    place: Place,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// Where the server is.
#[derive(Clone)]
pub(crate) enum Place {
    Http(Uri),
    /// The program and its arguments.
    Command(Vec<String>),
}

impl Target {
    /// The endpoint at `url`.
    ///
    /// Certificates of `https` URLs are checked against those that the machine trusts, or that the environment variables
    /// `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
    ///
    /// # Errors
    ///
    /// If `url` is not an `http` or `https` URL with a host.
    pub fn http(url: &str) -> Result<Self, InvalidTarget> {
        let uri: Uri = url.parse().map_err(|_| InvalidTarget::Url)?;
        match (uri.scheme_str(), uri.host()) {
            (Some("http" | "https"), Some(host)) if !host.is_empty() => Ok(Self {
                place: Place::Http(uri),
                headers: Vec::new(),
            }),
            _ => Err(InvalidTarget::Url),
        }
    }

    /// The server that a command starts: a program and its arguments. It is started without a shell, for every legacy
    /// client of the checks, and ended with all processes that it started.
    ///
    /// # Errors
    ///
    /// If there is no program.
    pub fn command(
        command: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, InvalidTarget> {
        let command: Vec<String> = command.into_iter().map(Into::into).collect();
        match command.first() {
            Some(program) if !program.is_empty() => Ok(Self {
                place: Place::Command(command),
                headers: Vec::new(),
            }),
            _ => Err(InvalidTarget::Command),
        }
    }

    /// The same target, with a header for every request. Its value appears in no report.
    ///
    /// # Errors
    ///
    /// If name or value are not those of an HTTP header, or the target is a command.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, InvalidTarget> {
        if matches!(self.place, Place::Command(_)) {
            return Err(InvalidTarget::HeaderOfCommand);
        }
        let name = HeaderName::try_from(name).map_err(|_| InvalidTarget::Header)?;
        let mut value = HeaderValue::try_from(value).map_err(|_| InvalidTarget::Header)?;
        value.set_sensitive(true);
        self.headers.push((name, value));
        Ok(self)
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.headers
    }
}

/// The address without what may be secret in it: user information, query, and arguments.
impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Http(uri) => {
                let scheme = uri.scheme_str().unwrap_or_default();
                write!(formatter, "{scheme}://{}", uri.host().unwrap_or_default())?;
                if let Some(port) = uri.port_u16() {
                    write!(formatter, ":{port}")?;
                }
                formatter.write_str(uri.path())
            }
            Place::Command(command) => {
                let more = if command.len() > 1 { " …" } else { "" };
                let program = command.first().map_or("", String::as_str);
                write!(formatter, "{program}{more}")
            }
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Target")
            .field(&self.to_string())
            .finish()
    }
}

/// Why a server cannot be checked.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTarget {
    /// The text is not a URL that the checks can use.
    #[error("not an HTTP URL; write it as `http://127.0.0.1:8800/mcp`")]
    Url,
    /// There is no program.
    #[error("the command is empty; give a program and its arguments")]
    Command,
    /// The name or the value of a header.
    #[error("not a header; write it as `NAME: VALUE`, in visible ASCII")]
    Header,
    /// A header for a command.
    #[error("a command has no headers; only URLs do")]
    HeaderOfCommand,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_urls_and_commands_are_targets() {
        for url in ["127.0.0.1:80", "ftp://example.com", "http://", "/mcp", ""] {
            assert_eq!(Target::http(url).unwrap_err(), InvalidTarget::Url, "{url}");
        }
        assert!(Target::http("https://example.com/mcp").is_ok());
        for command in [&[][..], &["", "a"]] {
            let error = Target::command(command.to_vec()).unwrap_err();
            assert_eq!(error, InvalidTarget::Command);
        }
        let command = Target::command(["server"]).unwrap();
        let error = command.with_header("a", "b").unwrap_err();
        assert_eq!(error, InvalidTarget::HeaderOfCommand);
    }

    #[test]
    fn user_information_query_and_arguments_are_not_shown() {
        let target = Target::http("http://user:pass@example.com:81/mcp?key=1").unwrap();
        assert_eq!(target.to_string(), "http://example.com:81/mcp");
        let target = Target::command(["server", "--token=1"]).unwrap();
        assert_eq!(format!("{target:?}"), "Target(\"server …\")");
    }
}
