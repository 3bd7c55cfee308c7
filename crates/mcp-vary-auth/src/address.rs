//! The public URL of this server: what clients type, and what tokens are issued for.

use mcp_vary_wire::endpoint_path::{ENDPOINT, VARIANTS, has_whole_escapes};

use crate::url::{Url, UrlError};

pub use mcp_vary_wire::endpoint_path::EndpointPath;

/// The URL under which clients reach this server, without `/mcp`.
///
/// It comes from the configuration and never from `Host` or `X-Forwarded-Host`: a client sends tokens to the addresses
/// that are built from it.
///
/// # Examples
///
/// ```
/// use mcp_vary_auth::address::{EndpointPath, PublicUrl};
///
/// let public = PublicUrl::parse("https://mcp.example/tools/")?;
/// assert_eq!(public.resource(&EndpointPath::Base), "https://mcp.example/tools/mcp");
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
pub enum PublicUrlError {
    /// It is not a URL that can be used.
    #[error("{0}")]
    Url(#[from] UrlError),
    /// It ends with `/mcp`.
    #[error("it ends with `/mcp`; write it without, since Vary adds `/mcp` and `/mcp/v/NAME`")]
    Endpoint,
    /// It has capital letters in the host, or the default port.
    #[error(
        "it has capital letters in its host or names the default port; write it as clients send it"
    )]
    NotNormal,
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
        if prefix.ends_with('/') || prefix.contains("//") || !has_whole_escapes(prefix) {
            return Err(UrlError::NotAUrl.into());
        }
        if prefix.ends_with(ENDPOINT) || prefix.contains(VARIANTS) {
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
    pub fn resource(&self, target: &EndpointPath) -> String {
        format!("{}{}{target}", self.origin, self.prefix)
    }

    /// The URL of the metadata document for `target` (RFC 9728, section 3.1).
    pub fn metadata_url(&self, target: &EndpointPath) -> String {
        format!("{}{WELL_KNOWN}{}{target}", self.origin, self.prefix)
    }

    /// The target whose metadata document is at `path`; `None` if there is none.
    pub fn metadata_path(&self, path: &str) -> Option<EndpointPath> {
        match path.strip_prefix(WELL_KNOWN)? {
            "" => Some(EndpointPath::Base),
            path => EndpointPath::parse(path.strip_prefix(&self.prefix)?),
        }
    }

    /// The target whose [`resource`](Self::resource) is `audience`.
    pub(crate) fn audience_path(&self, audience: &str) -> Option<EndpointPath> {
        let path = audience.strip_prefix(&self.origin)?;
        EndpointPath::parse(path.strip_prefix(&self.prefix)?)
    }
}

/// RFC 9728, section 3.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

#[cfg(test)]
mod tests {
    use super::*;

    fn public(text: &str) -> PublicUrl {
        PublicUrl::parse(text).unwrap()
    }

    #[test]
    fn resources_and_documents_have_the_paths_of_rfc_9728() {
        let target = EndpointPath::parse("/mcp/v/reviewer").unwrap();
        let url = public("https://mcp.example");
        assert_eq!(url.resource(&target), "https://mcp.example/mcp/v/reviewer");
        let expected = "https://mcp.example/.well-known/oauth-protected-resource/mcp/v/reviewer";
        assert_eq!(url.metadata_url(&target), expected);
        let url = public("https://mcp.example:8443/tools/");
        let expected = "https://mcp.example:8443/tools/mcp/v/reviewer";
        assert_eq!(url.resource(&target), expected);
        let expected = "https://mcp.example:8443/.well-known/oauth-protected-resource/tools/mcp";
        assert_eq!(url.metadata_url(&EndpointPath::Base), expected);
    }

    #[test]
    fn documents_are_found_by_their_path() {
        let url = public("https://mcp.example/tools");
        let found = |path: &str| url.metadata_path(path).map(|target| target.to_string());
        let base = "/.well-known/oauth-protected-resource";
        assert_eq!(found(base).as_deref(), Some("/mcp"));
        assert_eq!(found(&format!("{base}/tools/mcp")).as_deref(), Some("/mcp"));
        let expected = Some("/mcp/v/a");
        assert_eq!(found(&format!("{base}/tools/mcp/v/a")).as_deref(), expected);
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
