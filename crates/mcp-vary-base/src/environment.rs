//! The clock, the source of randomness and the environment variables, passed as arguments.

/// The clock, the source of randomness and the environment variables.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Environment {
    /// Seconds since 1970-01-01 UTC.
    pub now: fn() -> u64,
    /// Fills the bytes with cryptographic randomness.
    pub random: fn(&mut [u8]),
    /// The environment variables that name proxies; none by default.
    pub variables: Variables,
}

/// Reads an environment variable; `None` if it is not set.
pub type Variables = fn(&str) -> Option<String>;

impl Environment {
    /// The clock and the source of randomness that a gateway uses.
    #[must_use]
    pub const fn new(now: fn() -> u64, random: fn(&mut [u8])) -> Self {
        Self {
            now,
            random,
            variables: |_| None,
        }
    }

    /// The same with these environment variables.
    #[must_use]
    pub const fn with_variables(self, variables: Variables) -> Self {
        Self { variables, ..self }
    }

    /// A name of 32 hexadecimal digits that cannot be guessed.
    #[must_use]
    pub fn random_name(self) -> String {
        let mut bytes = [0; 16];
        (self.random)(&mut bytes);
        format!("{:032x}", u128::from_le_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::Environment;

    #[test]
    fn a_random_name_has_32_digits_of_all_random_bytes() {
        let environment = Environment::new(
            || 0,
            |bytes| {
                for (at, byte) in (1..).zip(bytes) {
                    *byte = at;
                }
            },
        );
        let name = environment.random_name();
        assert_eq!(name, "100f0e0d0c0b0a090807060504030201");
        let zeros = Environment::new(|| 0, |bytes| bytes.fill(0));
        assert_eq!(zeros.random_name(), "0".repeat(32));
    }
}
