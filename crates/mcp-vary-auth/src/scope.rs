//! Scopes that every request needs.

use std::fmt;

/// A scope (RFC 6749, section 3.3): visible ASCII without quotation marks and backslashes.
///
/// # Examples
///
/// ```
/// use mcp_vary_auth::scope::Scope;
///
/// assert_eq!(Scope::parse("mcp:read")?.as_str(), "mcp:read");
/// assert!(Scope::parse("read write").is_err(), "two scopes");
/// // A refresh token is between a client and its authorization server.
/// assert!(Scope::parse("offline_access").is_err());
/// # Ok::<(), mcp_vary_auth::scope::ScopeError>(())
/// ```
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Scope(Box<str>);

/// Why a text is not a scope that the configuration can require.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ScopeError {
    /// It is empty, too long, or has a character that a scope cannot have.
    #[error(
        "a scope is 1 to 256 visible ASCII characters without spaces, quotation marks and backslashes"
    )]
    Syntax,
    /// It is `offline_access`, which the MCP specification says a resource should not ask for.
    #[error("`offline_access` is not a scope of a resource; leave it out")]
    OfflineAccess,
}

impl Scope {
    /// Parses a scope.
    ///
    /// # Errors
    ///
    /// See [`ScopeError`].
    pub fn parse(text: &str) -> Result<Self, ScopeError> {
        let is_allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        if text.is_empty() || text.len() > MAX_SCOPE || !text.bytes().all(is_allowed) {
            return Err(ScopeError::Syntax);
        }
        if text == "offline_access" {
            return Err(ScopeError::OfflineAccess);
        }
        Ok(Self(text.into()))
    }

    /// The scope as text.
    pub const fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `scopes` as a list separated by spaces.
pub(crate) fn join(scopes: &[Scope]) -> String {
    let texts: Vec<&str> = scopes.iter().map(Scope::as_str).collect();
    texts.join(" ")
}

/// The longest scope, in bytes.
const MAX_SCOPE: usize = 256;
