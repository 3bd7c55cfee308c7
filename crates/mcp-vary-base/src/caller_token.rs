//! The access token of a client, for those who exchange it.

use std::sync::Arc;

/// A verified access token of a client, which is exchanged for a token of a server and never sent to one.
///
/// # Properties
///
/// `Debug` shows nothing of it, neither its length nor its digest. Clones share the text.
///
/// # Examples
///
/// ```
/// use mcp_vary_base::caller_token::CallerToken;
///
/// let token = CallerToken::new("e30.e30.AA", [7; 32], 100);
/// assert_eq!(token.expose(), "e30.e30.AA");
/// assert_eq!(format!("{token:?}"), "CallerToken");
///
/// // The end is the first second at which it is not used any more.
/// assert!(token.has_ended(100) && !token.has_ended(99));
/// ```
#[derive(Clone)]
pub struct CallerToken(Arc<Token>);

struct Token {
    text: Box<str>,
    digest: [u8; 32],
    expires_at: u64,
}

impl CallerToken {
    /// The token with this text, its SHA-256 digest, and its end in seconds since 1970-01-01 UTC.
    #[must_use]
    pub fn new(text: &str, digest: [u8; 32], expires_at: u64) -> Self {
        Self(Arc::new(Token {
            text: text.into(),
            digest,
            expires_at,
        }))
    }

    /// The text. It is a secret: do not log or store it, and send it to nobody but the authorization server that the
    /// operator named.
    pub fn expose(&self) -> &str {
        &self.0.text
    }

    /// The SHA-256 digest of the text.
    pub fn digest(&self) -> &[u8; 32] {
        &self.0.digest
    }

    /// The first second at which it is not used any more.
    pub fn expires_at(&self) -> u64 {
        self.0.expires_at
    }

    /// Whether it has ended at `now`.
    pub fn has_ended(&self, now: u64) -> bool {
        self.expires_at() <= now
    }
}

// Omits the token.
crate::debug_by_name!(CallerToken);
