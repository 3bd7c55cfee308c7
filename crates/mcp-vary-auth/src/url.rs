//! URLs of issuers, of key sets, and of this server.

use http::Uri;

/// The longest URL, in bytes.
pub(crate) const MAX_URL: usize = 2048;

/// The parts of a URL that is safe to write into headers and documents.
pub(crate) struct Url<'a> {
    pub(crate) is_https: bool,
    /// Host and port, as written.
    pub(crate) authority: &'a str,
    /// Host, in lower case.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The path, as written; may be empty.
    pub(crate) path: &'a str,
    pub(crate) has_query: bool,
}

/// Why a text is not a URL that can be used. It never contains the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum UrlError {
    /// It is longer than 2048 bytes.
    #[error("the URL has more than 2048 bytes")]
    TooLong,
    /// It is not an absolute URL.
    #[error("it is not an absolute URL such as `https://host.example/path`")]
    NotAUrl,
    /// It has neither `https` nor a loopback host.
    #[error("the URL does not start with `https://`; `http://` is for loopback addresses only")]
    Insecure,
    /// It has a user name or password.
    #[error("the URL has a user name or password; remove what is before the `@`")]
    UserInfo,
    /// It has a query or a fragment where none is allowed.
    #[error("the URL has a query or a fragment; remove what is after the `?` or `#`")]
    Query,
}

impl<'a> Url<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self, UrlError> {
        if text.len() > MAX_URL {
            return Err(UrlError::TooLong);
        }
        if text.contains('#') {
            return Err(UrlError::Query);
        }
        let is_safe = |byte: u8| byte.is_ascii_graphic() && !br#""<>\^`{|}"#.contains(&byte);
        let uri: Uri = text.parse().map_err(|_| UrlError::NotAUrl)?;
        let (scheme, remaining) = text.split_once("://").ok_or(UrlError::NotAUrl)?;
        if !text.bytes().all(is_safe) {
            return Err(UrlError::NotAUrl);
        }
        let end = remaining.find(['/', '?']).unwrap_or(remaining.len());
        let (authority, path) = remaining.split_at_checked(end).ok_or(UrlError::NotAUrl)?;
        if authority.contains('@') {
            return Err(UrlError::UserInfo);
        }
        let written = uri.host().filter(|host| !host.is_empty());
        let host = written.ok_or(UrlError::NotAUrl)?.to_ascii_lowercase();
        let is_https = match scheme {
            "https" => true,
            "http" if is_loopback(&host) => false,
            _ => return Err(UrlError::Insecure),
        };
        let default = if is_https { 443 } else { 80 };
        let port = match authority.rsplit_once(':') {
            Some((_, port)) if !port.ends_with(']') => {
                port.parse().map_err(|_| UrlError::NotAUrl)?
            }
            _ => default,
        };
        Ok(Self {
            is_https,
            authority,
            host,
            port,
            path: path.split('?').next().unwrap_or_default(),
            has_query: path.contains('?'),
        })
    }

    /// The same, for URLs without a query.
    pub(crate) fn parse_without_query(text: &'a str) -> Result<Self, UrlError> {
        let url = Self::parse(text)?;
        if url.has_query {
            return Err(UrlError::Query);
        }
        Ok(url)
    }

    pub(crate) const fn scheme(&self) -> &'static str {
        if self.is_https { "https" } else { "http" }
    }

    /// Whether both are the same host and port, with the same scheme.
    pub(crate) fn is_same_origin(&self, other: &Url<'_>) -> bool {
        (self.is_https, &self.host, self.port) == (other.is_https, &other.host, other.port)
    }
}

/// Whether `host` is this machine: `localhost`, `[::1]` or an address in 127.0.0.0/8.
fn is_loopback(host: &str) -> bool {
    let octets = |host: &str| {
        host.parse()
            .is_ok_and(|ip: core::net::Ipv4Addr| ip.is_loopback())
    };
    host == "localhost" || host == "[::1]" || octets(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refuses(text: &str, error: UrlError) {
        assert_eq!(Url::parse_without_query(text).err(), Some(error), "{text}");
    }

    #[test]
    fn urls_are_https_or_loopback() {
        for good in [
            "https://a.example",
            "https://a:8443/x/",
            "http://127.0.0.1:9",
            "http://[::1]:9/x",
            "http://localhost",
        ] {
            assert!(Url::parse_without_query(good).is_ok(), "{good}");
        }
        for bad in [
            "http://a.example",
            "http://127.0.0.1.a.example",
            "http://localhost.a",
            "ftp://a",
            "HTTPS://a",
        ] {
            refuses(bad, UrlError::Insecure);
        }
    }

    #[test]
    fn urls_have_no_secrets_and_no_characters_that_break_a_header() {
        refuses("https://user:pw@a.example/", UrlError::UserInfo);
        refuses("https://a.example/?x", UrlError::Query);
        refuses("https://a.example/#x", UrlError::Query);
        for bad in [
            "",
            "a.example",
            "/x",
            "https://",
            "https:///x",
            "https://a/\"",
            "https://a/\\",
            "https://a/ b",
            "https://a/\r\nX: y",
            "https://a/é",
            "https://a:99999/",
        ] {
            refuses(bad, UrlError::NotAUrl);
        }
        let text = format!("https://a/{}", "x".repeat(MAX_URL));
        refuses(&text, UrlError::TooLong);
    }

    #[test]
    fn origins_compare_host_and_port() {
        let same = |a: &str, b: &str| {
            Url::parse(a)
                .unwrap()
                .is_same_origin(&Url::parse(b).unwrap())
        };
        assert!(same("https://A.example/x", "https://a.example:443/y?z"));
        assert!(!same("https://a.example", "https://a.example:8443"));
        assert!(!same("https://a.example", "https://a.example.evil"));
        assert!(!same("https://localhost", "http://localhost:443"));
    }
}
