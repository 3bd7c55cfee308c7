//! The clock and the source of randomness, as arguments.

/// What a value cannot know: the time and randomness.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Outside {
    /// Seconds since 1970-01-01 UTC.
    pub now: fn() -> u64,
    /// Fills the bytes with cryptographic randomness.
    pub random: fn(&mut [u8]),
}

impl Outside {
    /// The clock and the source of randomness that a gateway uses.
    #[must_use]
    pub const fn new(now: fn() -> u64, random: fn(&mut [u8])) -> Self {
        Self { now, random }
    }
}
