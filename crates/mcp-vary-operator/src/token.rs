//! The token of the operator.

use std::str::FromStr;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// The token with which the operator may change a running gateway. It is a secret.
///
/// # Grammar
///
/// 16 to 1,024 characters that a header can have: visible ones of ASCII.
///
/// # Examples
///
/// ```
/// use mcp_vary_operator::AdminToken;
///
/// assert!("correct-horse-battery".parse::<AdminToken>().is_ok());
/// // It would end at the space.
/// assert!("correct horse battery".parse::<AdminToken>().is_err());
/// assert!("secret".parse::<AdminToken>().is_err(), "it can be guessed");
/// ```
#[derive(Clone, Eq, PartialEq)]
pub struct AdminToken(String);

/// Why a text is not a token. It does not contain the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It can be guessed.
    #[error("has less than {MIN_LENGTH} characters")]
    Short,
    /// A request would be too large.
    #[error("has more than {MAX_LENGTH} characters")]
    Long,
    /// A header cannot have it.
    #[error("has characters other than visible ones of ASCII")]
    Characters,
}

impl AdminToken {
    /// A token of these random bytes.
    #[must_use]
    pub fn from_random(random: [u8; 32]) -> Self {
        Self(BASE64_URL_SAFE_NO_PAD.encode(random))
    }

    /// The token, to send it or to write it into a file of the operator.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The token for the page of the gateway whose token this is. It allows no command, and nobody learns this one from it.
    #[must_use]
    pub fn for_page(&self) -> Self {
        let digest = Sha256::new_with_prefix(PAGE).chain_update(&self.0);
        Self(BASE64_URL_SAFE_NO_PAD.encode(digest.finalize()))
    }

    pub(crate) fn digest(&self) -> TokenDigest {
        TokenDigest::of(self.0.as_bytes())
    }
}

impl FromStr for AdminToken {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Characters);
        }
        match text.len() {
            ..MIN_LENGTH => Err(TokenError::Short),
            MIN_LENGTH..=MAX_LENGTH => Ok(Self(text.to_owned())),
            _ => Err(TokenError::Long),
        }
    }
}

// Leaves out the token.
mcp_vary_base::debug_by_name!(AdminToken);

/// The digest of a token. How long a comparison takes tells nothing of the token.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) struct TokenDigest([u8; 32]);

impl TokenDigest {
    pub(crate) fn of(token: &[u8]) -> Self {
        Self(Sha256::digest(token).into())
    }
}

// Leaves out the digest.
mcp_vary_base::debug_by_name!(TokenDigest);

/// Distinguishes the token for the page from other digests of the token.
const PAGE: &[u8] = b"vary page\0";
const MIN_LENGTH: usize = 16;
const MAX_LENGTH: usize = 1024;
