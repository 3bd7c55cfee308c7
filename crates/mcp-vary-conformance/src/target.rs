//! The server that is checked.

use std::fmt;

use http::Uri;
use http::header::{HeaderName, HeaderValue};

/// A server under test: a streamable HTTP endpoint, and the headers that it wants.
///
/// ```
/// use mcp_vary_conformance::Target;
///
/// let target = Target::http("http://127.0.0.1:8800/mcp")?.with_header("authorization", "Bearer secret")?;
/// assert!(!format!("{target:?}").contains("secret"));
/// assert!(Target::http("127.0.0.1:8800").is_err());
/// # Ok::<(), mcp_vary_conformance::InvalidTarget>(())
/// ```
#[derive(Clone)]
pub struct Target {
    uri: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Target {
    /// The endpoint at `url`.
    ///
    /// # Errors
    ///
    /// If `url` is not an `http` URL with a host. `https` is not supported yet.
    pub fn http(url: &str) -> Result<Self, InvalidTarget> {
        let uri: Uri = url.parse().map_err(|_| InvalidTarget::Url)?;
        match (uri.scheme_str(), uri.host()) {
            (Some("http"), Some(_)) => Ok(Self {
                uri,
                headers: Vec::new(),
            }),
            (Some("https"), Some(_)) => Err(InvalidTarget::Https),
            _ => Err(InvalidTarget::Url),
        }
    }

    /// The same target, with a header for every request. Its value appears in no report.
    ///
    /// # Errors
    ///
    /// If name or value are not those of an HTTP header.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, InvalidTarget> {
        let name = HeaderName::try_from(name).map_err(|_| InvalidTarget::Header)?;
        let mut value = HeaderValue::try_from(value).map_err(|_| InvalidTarget::Header)?;
        value.set_sensitive(true);
        self.headers.push((name, value));
        Ok(self)
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    pub(crate) fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.headers
    }
}

/// The address without what may be secret in it: user information and query.
impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.uri.host().unwrap_or_default();
        write!(formatter, "http://{host}")?;
        if let Some(port) = self.uri.port_u16() {
            write!(formatter, ":{port}")?;
        }
        formatter.write_str(self.uri.path())
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
    /// The checks have no TLS yet.
    #[error("`https` is not supported yet; check the server where it listens without TLS")]
    Https,
    /// The name or the value of a header.
    #[error("not a header; write it as `NAME: VALUE`, in visible ASCII")]
    Header,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_urls_are_targets() {
        let error = |url| Target::http(url).unwrap_err();
        assert_eq!(error("127.0.0.1:80"), InvalidTarget::Url);
        assert_eq!(error("ftp://example.com"), InvalidTarget::Url);
        assert_eq!(error("https://example.com/mcp"), InvalidTarget::Https);
    }

    #[test]
    fn user_information_and_query_are_not_shown() {
        let target = Target::http("http://user:pass@example.com:81/mcp?key=1").unwrap();
        assert_eq!(target.to_string(), "http://example.com:81/mcp");
    }
}
