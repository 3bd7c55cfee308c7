//! The clock and the source of randomness, passed as arguments.

/// The clock and the source of randomness.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Environment {
    /// Seconds since 1970-01-01 UTC.
    pub now: fn() -> u64,
    /// Fills the bytes with cryptographic randomness.
    pub random: fn(&mut [u8]),
}

impl Environment {
    /// The clock and the source of randomness that a gateway uses.
    #[must_use]
    pub const fn new(now: fn() -> u64, random: fn(&mut [u8])) -> Self {
        Self { now, random }
    }
}
