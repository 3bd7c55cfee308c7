//! Codes that open the page once.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use mcp_vary_base::lock::ScopedLock;

use crate::token::TokenDigest;

/// The codes that nobody has used yet, oldest first.
#[derive(Debug, Default)]
pub(crate) struct PageCodes(ScopedLock<VecDeque<(TokenDigest, Instant)>>);

impl PageCodes {
    /// Adds a code. The oldest one of too many works no more.
    pub(crate) fn add(&self, code: TokenDigest, now: Instant) {
        let mut codes = self.0.lock();
        codes.push_back((code, now));
        let excess = codes.len().saturating_sub(MOST_CODES);
        codes.drain(..excess);
    }

    /// Removes a code, and returns whether it was there and is not too old.
    pub(crate) fn take(&self, code: TokenDigest, now: Instant) -> bool {
        let mut codes = self.0.lock();
        codes.retain(|(_, added)| now.duration_since(*added) < LIFETIME);
        let index = codes.iter().position(|(unused, _)| *unused == code);
        index.and_then(|index| codes.remove(index)).is_some()
    }
}

/// A browser opens an address at once, and a person who copies it soon.
const LIFETIME: Duration = Duration::from_secs(60);
/// The most codes that wait to be used.
const MOST_CODES: usize = 16;
