//! The tokens that were verified, by the digest of their text.

use foldhash::quality::RandomState;
use quick_cache::UnitWeighter;
use quick_cache::sync::{Cache, DefaultLifecycle};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

use crate::token::VerifiedToken;

/// The most tokens that are remembered.
pub const MAX_CACHED_TOKENS: usize = 16_384;

/// A token is verified again after this many seconds: so long is a key believed that the issuer has withdrawn.
pub const MAX_AGE: u64 = 300;

/// Verified tokens.
///
/// # Properties
///
/// - At most [`MAX_CACHED_TOKENS`], each until its `exp` and for [`MAX_AGE`] at the longest.
/// - The text of a token is not stored, unless its principal has it
///   ([`retain_tokens`](crate::authenticator::Authenticator::retain_tokens)).
/// - It is for one configuration: a new one needs a new cache.
#[derive(Debug)]
pub struct TokenCache {
    tokens: Cache<TokenDigest, Remembered, UnitWeighter, RandomState>,
}

/// The SHA-256 digest of a token's text.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct TokenDigest(pub(crate) [u8; 32]);

#[derive(Clone, Debug)]
struct Remembered {
    token: Arc<VerifiedToken>,
    /// The first second at which the entry is not used.
    until: u64,
}

impl TokenDigest {
    /// The digest of `text`.
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }
}

impl Default for TokenCache {
    fn default() -> Self {
        Self::with_capacity(MAX_CACHED_TOKENS)
    }
}

impl TokenCache {
    /// A cache of `capacity` tokens.
    pub fn with_capacity(capacity: usize) -> Self {
        let tokens = Cache::with(
            capacity,
            capacity as u64,
            UnitWeighter,
            RandomState::default(),
            DefaultLifecycle::default(),
        );
        Self { tokens }
    }

    /// The token with this digest, if it was verified lately. The expired one is forgotten.
    pub fn get(&self, digest: TokenDigest, now: u64) -> Option<Arc<VerifiedToken>> {
        let found = self.tokens.get(&digest)?;
        if found.until <= now {
            self.tokens.remove(&digest);
            return None;
        }
        Some(found.token)
    }

    /// Remembers `token`, which was verified at `now`.
    pub fn insert(&self, digest: TokenDigest, token: Arc<VerifiedToken>, now: u64) {
        let until = token.expires_at.min(now.saturating_add(MAX_AGE));
        if until > now {
            self.tokens.insert(digest, Remembered { token, until });
        }
    }

    /// Forgets all tokens, as after a change of an issuer's keys that must count at once.
    pub fn clear(&self) {
        self.tokens.clear();
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }
}
