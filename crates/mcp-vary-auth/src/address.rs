//! The addresses of this server: what clients type, and what tokens are issued for.

use std::fmt;

use mcp_vary::variant::VariantId;
use percent_encoding::percent_decode_str;

use crate::url::{Url, UrlError};

/// The URL under which clients reach this server, without `/mcp`.
///
/// It comes from the configuration and never from `Host` or `X-Forwarded-Host`: a client sends tokens to the addresses
/// that are built from it.
///
/// # Examples
///
/// ```
/// use mcp_vary_auth::address::{PublicUrl, Target};
///
/// let public = PublicUrl::parse("https://mcp.example/tools/")?;
/// assert_eq!(public.resource(&Target::Endpoint), "https://mcp.example/tools/mcp");
///
/// // Clients compare the address with what their users typed, so it has the form in which URLs are typed.
/// assert!(PublicUrl::parse("https://mcp.example/mcp").is_err());
/// assert!(PublicUrl::parse("https://MCP.example").is_err());
/// # Ok::<(), mcp_vary_auth::address::PublicUrlError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PublicUrl {
    /// Scheme, host and port.
    origin: String,
    /// Empty, or a path that starts with a slash and does not end with one.
    prefix: String,
}

/// Why a text cannot be the public URL.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PublicUrlError {
    /// It is not a URL that can be used.
    #[error("`public-url` cannot be used: {0}")]
    Url(#[from] UrlError),
    /// It ends with `/mcp`.
    #[error(
        "`public-url` ends with `/mcp`; write it without, since Vary adds `/mcp` and `/mcp/v/NAME`"
    )]
    Endpoint,
    /// It has capital letters in the host, or the default port.
    #[error(
        "`public-url` has capital letters in its host or names the default port; write it as clients send it"
    )]
    NotNormal,
}

/// The address of a request.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Target {
    /// `/mcp`
    Endpoint,
    /// `/mcp/v/NAME` or `/mcp/v/SERVER/ID`
    Variant(VariantAddress),
}

/// The name in `/mcp/v/NAME` or `/mcp/v/SERVER/ID`. It may name a variant that does not exist.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VariantAddress {
    /// As it is written, percent-encoded.
    path: Box<str>,
    id: VariantId,
}

impl PublicUrl {
    /// Parses the URL. A final slash is dropped.
    ///
    /// # Errors
    ///
    /// See [`PublicUrlError`].
    pub fn parse(text: &str) -> Result<Self, PublicUrlError> {
        let url = Url::parse_without_query(text)?;
        let prefix = url.path.strip_suffix('/').unwrap_or(url.path);
        if prefix.ends_with('/')
            || prefix.contains("//")
            || !prefix.split('%').skip(1).all(is_escape)
        {
            return Err(UrlError::NotAUrl.into());
        }
        if prefix.ends_with(ENDPOINT) || prefix.contains("/mcp/v/") {
            return Err(PublicUrlError::Endpoint);
        }
        let default_port = if url.is_https { ":443" } else { ":80" };
        if url.authority.bytes().any(|byte| byte.is_ascii_uppercase())
            || url.authority.ends_with(default_port)
        {
            return Err(PublicUrlError::NotNormal);
        }
        Ok(Self {
            origin: format!("{}://{}", url.scheme(), url.authority),
            prefix: prefix.to_owned(),
        })
    }

    /// The identifier of the resource at `target` (RFC 9728, section 1.2), which is also the audience of its tokens
    /// (RFC 8707).
    #[must_use]
    pub fn resource(&self, target: &Target) -> String {
        format!("{}{}{target}", self.origin, self.prefix)
    }

    /// The URL of the metadata document for `target` (RFC 9728, section 3.1).
    #[must_use]
    pub fn metadata_url(&self, target: &Target) -> String {
        format!("{}{WELL_KNOWN}{}{target}", self.origin, self.prefix)
    }

    /// The target whose metadata document is at `path`; `None` if there is none.
    #[must_use]
    pub fn metadata_target(&self, path: &str) -> Option<Target> {
        match path.strip_prefix(WELL_KNOWN)? {
            "" => Some(Target::Endpoint),
            path => Target::parse(path.strip_prefix(&self.prefix)?),
        }
    }

    /// The target whose [`resource`](Self::resource) is `audience`.
    pub(crate) fn audience_target(&self, audience: &str) -> Option<Target> {
        let path = audience.strip_prefix(&self.origin)?;
        Target::parse(path.strip_prefix(&self.prefix)?)
    }
}

impl Target {
    /// Parses a path: `/mcp` or `/mcp/v/NAME`. The name of a variant that a server offers itself has two segments:
    /// `/mcp/v/SERVER/ID`.
    ///
    /// A name is every id that a variant can have, percent-encoded. Whether a variant has it does not matter here, so
    /// that nobody learns it before they are known.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_auth::address::Target;
    ///
    /// assert_eq!(Target::parse("/mcp"), Some(Target::Endpoint));
    /// assert!(Target::parse("/mcp/v/f%C3%BCr%20mich").is_some());
    /// assert!(Target::parse("/mcp/").is_none());
    /// assert!(Target::parse("/mcp/v/crm/agent").is_some());
    /// assert!(Target::parse("/mcp/v/a/b/c").is_none());
    /// ```
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        match path.strip_prefix(ENDPOINT)? {
            "" => Some(Self::Endpoint),
            name => VariantAddress::parse(name.strip_prefix("/v/")?).map(Self::Variant),
        }
    }

    /// The name of the variant, if the address has one.
    #[must_use]
    pub const fn variant(&self) -> Option<&VariantId> {
        match self {
            Self::Endpoint => None,
            Self::Variant(address) => Some(&address.id),
        }
    }
}

impl VariantAddress {
    /// Parses the one or two segments after `/mcp/v/`.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let mut segments = path.splitn(2, '/');
        let is_valid = |it: &str| !it.is_empty() && it.bytes().all(is_segment_byte);
        if path.len() > MAX_SEGMENT || !segments.all(is_valid) {
            return None;
        }
        if !path.split('%').skip(1).all(is_escape) {
            return None;
        }
        let id = percent_decode_str(path).decode_utf8().ok()?;
        Some(Self {
            path: path.into(),
            id: id.parse().ok()?,
        })
    }
}

/// The path.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Endpoint => f.write_str(ENDPOINT),
            Self::Variant(address) => write!(f, "{ENDPOINT}/v/{}", address.path),
        }
    }
}

/// Whether a `%` is followed by two hexadecimal digits. The decoder would keep it as it is.
fn is_escape(after: &str) -> bool {
    let digits = after.as_bytes().get(..2);
    digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

/// `pchar` of RFC 3986, section 3.3. None of them ends a quoted string in a header.
const fn is_segment_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.' | b'_' | b'~' | b'%' | b':' | b'@' | b'!' | b'$'..=b',' | b';' | b'='
        )
}

const ENDPOINT: &str = "/mcp";

/// RFC 9728, section 3.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The longest id with every byte escaped.
const MAX_SEGMENT: usize = 3 * mcp_vary::variant::MAX_ID;

#[cfg(test)]
mod tests {
    use super::*;

    fn public(text: &str) -> PublicUrl {
        PublicUrl::parse(text).unwrap()
    }

    #[test]
    fn resources_and_documents_have_the_paths_of_rfc_9728() {
        let target = Target::parse("/mcp/v/reviewer").unwrap();
        let url = public("https://mcp.example");
        assert_eq!(url.resource(&target), "https://mcp.example/mcp/v/reviewer");
        assert_eq!(
            url.metadata_url(&target),
            "https://mcp.example/.well-known/oauth-protected-resource/mcp/v/reviewer"
        );
        let url = public("https://mcp.example:8443/tools/");
        assert_eq!(
            url.resource(&target),
            "https://mcp.example:8443/tools/mcp/v/reviewer"
        );
        assert_eq!(
            url.metadata_url(&Target::Endpoint),
            "https://mcp.example:8443/.well-known/oauth-protected-resource/tools/mcp"
        );
    }

    #[test]
    fn documents_are_found_by_their_path() {
        let url = public("https://mcp.example/tools");
        let found = |path: &str| url.metadata_target(path).map(|target| target.to_string());
        let base = "/.well-known/oauth-protected-resource";
        assert_eq!(found(base).as_deref(), Some("/mcp"));
        assert_eq!(found(&format!("{base}/tools/mcp")).as_deref(), Some("/mcp"));
        assert_eq!(
            found(&format!("{base}/tools/mcp/v/a")).as_deref(),
            Some("/mcp/v/a")
        );
        for path in [
            "/",
            "/mcp",
            "/tools",
            "/tools/mcp/",
            "/tools/mcp/v/",
            "/tools/mcp/v/a/b/c",
            "/tools/mcp/v/%zz",
            "x",
        ] {
            assert_eq!(found(&format!("{base}{path}")), None, "{path}");
        }
    }

    #[test]
    fn names_are_percent_encoded_ids() {
        let id = |path: &str| {
            Target::parse(path).and_then(|target| target.variant().map(|id| id.as_str().to_owned()))
        };
        assert_eq!(id("/mcp/v/f%C3%BCr%20mich").as_deref(), Some("für mich"));
        assert_eq!(id("/mcp/v/crm/agent").as_deref(), Some("crm/agent"));
        assert_eq!(
            id("/mcp/v/a:b@c!$&'()*+,;=").as_deref(),
            Some("a:b@c!$&'()*+,;=")
        );
        for path in [
            "/mcp/v/",
            "/mcp/v/%",
            "/mcp/v/%ff",
            "/mcp/v/%00",
            "/mcp/v/a\"b",
            "/mcp/v/a b",
            "/mcp/v/ü",
            "/mcp/va",
        ] {
            assert_eq!(id(path), None, "{path}");
        }
        assert!(id(&format!("/mcp/v/{}", "a".repeat(128))).is_some());
        assert!(id(&format!("/mcp/v/{}", "a".repeat(129))).is_none());
    }

    #[test]
    fn a_name_may_escape_each_byte_of_the_longest_id() {
        let parse = |id: String| VariantAddress::parse(&id);
        let longest = parse("%61".repeat(128)).expect("128 bytes");
        assert_eq!(longest.id.as_str(), "a".repeat(128));
        assert_eq!(parse("%61".repeat(129)), None);
        assert_eq!(parse(format!("{}a", "%61".repeat(128))), None);
    }

    #[test]
    fn a_public_url_is_what_clients_type() {
        for (text, error) in [
            ("https://mcp.example/mcp", PublicUrlError::Endpoint),
            ("https://mcp.example/mcp/", PublicUrlError::Endpoint),
            ("https://mcp.example/mcp/v/x", PublicUrlError::Endpoint),
            ("https://mcp.example:443", PublicUrlError::NotNormal),
            ("https://Mcp.example", PublicUrlError::NotNormal),
            (
                "http://mcp.example",
                PublicUrlError::Url(UrlError::Insecure),
            ),
            (
                "https://mcp.example?a",
                PublicUrlError::Url(UrlError::Query),
            ),
            (
                "https://mcp.example//",
                PublicUrlError::Url(UrlError::NotAUrl),
            ),
        ] {
            assert_eq!(PublicUrl::parse(text), Err(error), "{text}");
        }
        assert!(PublicUrl::parse("http://127.0.0.1:8801").is_ok());
    }
}
