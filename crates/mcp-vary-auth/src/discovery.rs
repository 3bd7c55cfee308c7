//! Where the keys of an issuer are: authorization server metadata (RFC 8414, OpenID Connect Discovery 1.0).

use std::fmt;

use crate::strict::parse_object;
use crate::url::Url;
pub use crate::url::UrlError;

/// The largest metadata document, in bytes.
pub const MAX_METADATA: usize = 64 << 10;

/// An authorization server that issues tokens, by its identifier.
///
/// The identifier is an `https` URL without query and fragment (RFC 8414, section 2); `http` is accepted for loopback
/// hosts, for tests. It is compared byte for byte and never normalised: with and without a final slash it is two
/// issuers.
#[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Issuer(Box<str>);

/// Why the metadata of an issuer cannot be used. It never contains a part of the document.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DiscoveryError {
    /// It is longer than [`MAX_METADATA`].
    #[error("the metadata of the issuer has more than 65536 bytes")]
    TooLarge,
    /// It is not a JSON object, repeats a name, or nests too deep.
    #[error("the metadata of the issuer is not a JSON object, or it repeats a name")]
    NotAnObject,
    /// Its `issuer` is another one.
    #[error(
        "`issuer` in the metadata is not the configured issuer, character for character; compare a trailing slash"
    )]
    OtherIssuer,
    /// It has no `jwks_uri`.
    #[error("the metadata has no `jwks_uri`; name the key set in the configuration with `jwks`")]
    NoKeySet,
    /// Its `jwks_uri` is not a URL that can be used.
    #[error("`jwks_uri` in the metadata cannot be used: {0}")]
    KeySetUrl(UrlError),
    /// Its `jwks_uri` is on another host.
    #[error(
        "`jwks_uri` in the metadata is on another host than the issuer; if that is right, name it with `jwks`"
    )]
    OtherHost,
}

impl Issuer {
    /// Parses the identifier of an issuer.
    ///
    /// # Errors
    ///
    /// See [`UrlError`].
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        Url::parse_without_query(text)?;
        Ok(Self(text.into()))
    }

    /// The identifier, as written.
    pub const fn as_str(&self) -> &str {
        &self.0
    }

    /// The URLs to ask for metadata, in this order, until one answers 200.
    ///
    /// The order is that of the MCP specification, "Authorization Server Metadata Discovery": RFC 8414 with the path
    /// inserted, OpenID Connect Discovery with the path inserted, and the same appended.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_auth::discovery::Issuer;
    ///
    /// let realm = Issuer::parse("https://idp.example/realms/a")?;
    /// assert_eq!(realm.metadata_urls(), [
    ///     "https://idp.example/.well-known/oauth-authorization-server/realms/a",
    ///     "https://idp.example/.well-known/openid-configuration/realms/a",
    ///     "https://idp.example/realms/a/.well-known/openid-configuration",
    /// ]);
    ///
    /// // Without a path, inserting and appending are the same. A final slash is not a path (RFC 8414, section 3.1).
    /// assert_eq!(Issuer::parse("https://idp.example/")?.metadata_urls().len(), 2);
    /// # Ok::<(), mcp_vary_auth::discovery::UrlError>(())
    /// ```
    pub fn metadata_urls(&self) -> Vec<String> {
        // It was parsed when the value was created.
        let Ok(url) = Url::parse(&self.0) else {
            return Vec::new();
        };
        let base = format!("{}://{}", url.scheme(), url.authority);
        let path = url.path.strip_suffix('/').unwrap_or(url.path);
        let names = ["oauth-authorization-server", "openid-configuration"];
        let inserted = names
            .iter()
            .map(|name| format!("{base}/.well-known/{name}{path}"));
        let at_end = format!("{base}{path}/.well-known/openid-configuration");
        let appended = (!path.is_empty()).then_some(at_end);
        inserted.chain(appended).collect()
    }

    /// Checks a metadata document and returns its `jwks_uri`.
    ///
    /// # Errors
    ///
    /// When the document is not this issuer's, character for character (RFC 8414, section 3.3), or its keys are not on
    /// the issuer's own host and port: an operator who trusts another host names the key set in the configuration.
    pub fn check_metadata(&self, document: &[u8]) -> Result<String, DiscoveryError> {
        if document.len() > MAX_METADATA {
            return Err(DiscoveryError::TooLarge);
        }
        let document = parse_object(document, MAX_DEPTH).ok_or(DiscoveryError::NotAnObject)?;
        if document.text("issuer") != Some(self.as_str()) {
            return Err(DiscoveryError::OtherIssuer);
        }
        let uri = document.text("jwks_uri").ok_or(DiscoveryError::NoKeySet)?;
        let key_set = Url::parse(uri).map_err(DiscoveryError::KeySetUrl)?;
        let issuer = Url::parse(&self.0).map_err(DiscoveryError::KeySetUrl)?;
        if !key_set.is_same_origin(&issuer) {
            return Err(DiscoveryError::OtherHost);
        }
        Ok(uri.to_owned())
    }
}

/// Checks the URL of a key set that the configuration names.
///
/// # Errors
///
/// When it is neither `https` nor on a loopback host, or is not a URL.
pub fn check_key_set_url(text: &str) -> Result<(), UrlError> {
    Url::parse(text).map(|_| ())
}

impl std::borrow::Borrow<str> for Issuer {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Issuer({})", self.0)
    }
}

impl fmt::Display for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Metadata is flat, but for extensions.
const MAX_DEPTH: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUER: &str = "https://idp.example/realms/a";

    #[track_caller]
    fn checks(document: &str, outcome: Result<&str, DiscoveryError>) {
        let issuer = Issuer::parse(ISSUER).unwrap();
        let checked = issuer.check_metadata(document.as_bytes());
        assert_eq!(checked, outcome.map(str::to_owned));
    }

    fn document(issuer: &str, jwks_uri: &str) -> String {
        format!(r#"{{"issuer":"{issuer}","jwks_uri":"{jwks_uri}","x":[{{}}]}}"#)
    }

    #[test]
    fn metadata_names_the_issuer_and_keys_on_its_host() {
        let keys = "https://idp.example/keys?v=1";
        checks(&document(ISSUER, keys), Ok(keys));
    }

    #[test]
    fn metadata_of_another_issuer_is_refused() {
        for issuer in [
            "https://idp.example/realms/a/",
            "https://idp.example/realms/b",
            "https://IDP.example/realms/a",
            "",
        ] {
            checks(
                &document(issuer, "https://idp.example/k"),
                Err(DiscoveryError::OtherIssuer),
            );
        }
        checks(
            r#"{"jwks_uri":"https://idp.example/k"}"#,
            Err(DiscoveryError::OtherIssuer),
        );
    }

    #[test]
    fn keys_are_on_the_issuers_host() {
        for uri in [
            "https://evil.example/k",
            "https://idp.example.evil/k",
            "https://idp.example:8443/k",
            "http://127.0.0.1/k",
        ] {
            checks(&document(ISSUER, uri), Err(DiscoveryError::OtherHost));
        }
        let insecure = Err(DiscoveryError::KeySetUrl(UrlError::Insecure));
        checks(&document(ISSUER, "http://idp.example/k"), insecure);
        let user = Err(DiscoveryError::KeySetUrl(UrlError::UserInfo));
        checks(
            &document(ISSUER, "https://idp.example@evil.example/k"),
            user,
        );
        checks(
            &format!(r#"{{"issuer":"{ISSUER}"}}"#),
            Err(DiscoveryError::NoKeySet),
        );
    }

    #[test]
    fn metadata_is_bounded() {
        let filler = format!(r#"{{"x":"{}"}}"#, "x".repeat(MAX_METADATA));
        checks(&filler, Err(DiscoveryError::TooLarge));
        let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(1000), "]".repeat(1000));
        checks(&deep, Err(DiscoveryError::NotAnObject));
        let twice = document(ISSUER, "https://idp.example/k").replace("\"x\"", "\"issuer\"");
        checks(&twice, Err(DiscoveryError::NotAnObject));
    }

    #[test]
    fn keys_at_a_written_url_are_https() {
        let found = check_key_set_url("https://www.keys.example/certs?x=1");
        assert_eq!(found, Ok(()));
        let found = check_key_set_url("http://www.keys.example/certs");
        assert_eq!(found, Err(UrlError::Insecure));
    }
}
