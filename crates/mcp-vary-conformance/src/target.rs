//! The server that is checked.

use std::fmt;

use http::Uri;
use http::header::{HeaderName, HeaderValue};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

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
/// // Arguments that may be secret are not shown.
/// let target = Target::command(["npx", "-y", "my-server", "--key=secret"])?;
/// assert_eq!(target.to_string(), "npx -y my-server --key=…");
/// # Ok::<(), mcp_vary_conformance::InvalidTarget>(())
/// ```
#[derive(Clone)]
pub struct Target {
    endpoint: Endpoint,
    /// What reports call it in place of its address or command.
    name: Option<String>,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The headers of another principal, each instead of one of the same name.
    other_headers: Vec<(HeaderName, HeaderValue)>,
    /// The certificates of authorities that are trusted beside those of the machine.
    authorities: Vec<CertificateDer<'static>>,
}

/// Where the server is.
#[derive(Clone)]
pub(crate) enum Endpoint {
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
            (Some("http" | "https"), Some(host)) if !host.is_empty() => {
                Ok(Self::new(Endpoint::Http(uri)))
            }
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
        argv: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, InvalidTarget> {
        let command: Vec<String> = argv.into_iter().map(Into::into).collect();
        match command.first() {
            Some(program) if !program.is_empty() => Ok(Self::new(Endpoint::Command(command))),
            _ => Err(InvalidTarget::Command),
        }
    }

    fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            name: None,
            headers: Vec::new(),
            other_headers: Vec::new(),
            authorities: Vec::new(),
        }
    }

    /// The same target, which reports and errors call `name`, such as the file that it was started from.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The same target, which may show certificates of the authorities in `pem`.
    ///
    /// # Errors
    ///
    /// If `pem` has no certificate.
    pub fn with_authorities(mut self, pem: &[u8]) -> Result<Self, InvalidTarget> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        self.authorities = certificates.unwrap_or_default();
        if self.authorities.is_empty() {
            return Err(InvalidTarget::Authorities);
        }
        Ok(self)
    }

    /// The same target, with a header for every request. Its value appears in no report.
    ///
    /// # Errors
    ///
    /// If name or value are not those of an HTTP header, or the target is a command.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, InvalidTarget> {
        let header = self.header(name, value)?;
        self.headers.push(header);
        Ok(self)
    }

    /// The same target, with a header of another principal, such as its credentials: some checks compare what both get.
    ///
    /// # Errors
    ///
    /// As for [`Target::with_header`].
    pub fn with_other_header(mut self, name: &str, value: &str) -> Result<Self, InvalidTarget> {
        let header = self.header(name, value)?;
        self.other_headers.push(header);
        Ok(self)
    }

    fn header(&self, name: &str, value: &str) -> Result<(HeaderName, HeaderValue), InvalidTarget> {
        if matches!(self.endpoint, Endpoint::Command(_)) {
            return Err(InvalidTarget::HeaderOfCommand);
        }
        let name = HeaderName::try_from(name).map_err(|_| InvalidTarget::Header)?;
        let mut value = HeaderValue::try_from(value).map_err(|_| InvalidTarget::Header)?;
        value.set_sensitive(true);
        Ok((name, value))
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(crate) fn authorities(&self) -> &[CertificateDer<'static>] {
        &self.authorities
    }

    /// The headers of requests by the run's principal, or by the other one.
    pub(crate) fn headers(
        &self,
        is_other: bool,
    ) -> impl Iterator<Item = &(HeaderName, HeaderValue)> {
        let others: &[_] = if is_other { &self.other_headers } else { &[] };
        let is_replaced = |name: &HeaderName| others.iter().any(|(other, _)| other == name);
        let headers = self.headers.iter();
        headers
            .filter(move |(name, _)| !is_replaced(name))
            .chain(others)
    }

    /// Whether another principal is known.
    pub(crate) fn has_other(&self) -> bool {
        !self.other_headers.is_empty()
    }
}

/// Its name; else the address without what may be secret in it (user information and query), or the command without values
/// that may be.
impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            return formatter.write_str(name);
        }
        match &self.endpoint {
            Endpoint::Http(uri) => {
                let scheme = uri.scheme_str().unwrap_or_default();
                write!(formatter, "{scheme}://{}", uri.host().unwrap_or_default())?;
                if let Some(port) = uri.port_u16() {
                    write!(formatter, ":{port}")?;
                }
                formatter.write_str(uri.path())
            }
            Endpoint::Command(command) => {
                let before = std::iter::once("").chain(command.iter().map(String::as_str));
                let shown: Vec<String> = before
                    .zip(command)
                    .map(|(before, argument)| redacted(argument, before))
                    .collect();
                formatter.write_str(&shown.join(" "))
            }
        }
    }
}

/// An argument of a command, without a value that may be secret: that of an option `--name=value`, one after an option that is
/// called like a credential, and one that looks like none of a path, a package or a word.
fn redacted(argument: &str, before: &str) -> String {
    const CREDENTIALS: [&str; 7] = ["auth", "cred", "header", "key", "pass", "secret", "token"];
    const LONGEST: usize = 24;
    if let Some((name, _)) = argument.split_once('=')
        && argument.starts_with('-')
    {
        return format!("{name}=…");
    }
    let option = before.to_ascii_lowercase();
    let names_secret =
        option.starts_with('-') && CREDENTIALS.iter().any(|word| option.contains(word));
    let is_plain = argument
        .chars()
        .all(|letter| letter.is_alphanumeric() || "@._-/+~".contains(letter));
    let mut parts = argument.split(['@', '.', '-', '/']);
    if option == "-h" || names_secret || !is_plain || parts.any(|part| part.len() > LONGEST) {
        "…".to_owned()
    } else {
        argument.to_owned()
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
    /// The text has no certificate.
    #[error("it has no certificate in PEM, which begins with `-----BEGIN CERTIFICATE-----`")]
    Authorities,
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
        for (command, expected) in [
            (&["server", "--token=1"][..], "server --token=…"),
            (
                &["npx", "-y", "@acme/server-git@1.2", "src"],
                "npx -y @acme/server-git@1.2 src",
            ),
            (
                &["server", "--api-key", "abc", "-H", "A: b"],
                "server --api-key … -H …",
            ),
            (&["server", "postgres://me:pw@host/db"], "server …"),
            (&["server", "sk0123456789abcdef0123456789"], "server …"),
        ] {
            let target = Target::command(command.to_vec()).unwrap();
            assert_eq!(format!("{target:?}"), format!("Target({expected:?})"));
        }
    }
}
