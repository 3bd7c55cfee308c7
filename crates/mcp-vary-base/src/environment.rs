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

    /// A name of 32 hexadecimal digits that cannot be guessed.
    #[must_use]
    pub fn random_name(self) -> String {
        let mut bytes = [0; 16];
        (self.random)(&mut bytes);
        format!("{:032x}", u128::from_le_bytes(bytes))
    }
}
