//! The keys that seal sessions and cursors.

/// A key that seals sessions and cursors.
#[derive(Clone, Copy, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "any 32 bytes are a key")]
pub struct SealingKey(pub [u8; 32]);

// Leaves out the key.
mcp_vary_base::debug_by_name!(SealingKey);

/// The keys of a configuration file. The first one seals, all of them open.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SealingKeys(Vec<SealingKey>);

impl SealingKeys {
    /// The first of `keys` seals, all of them open.
    #[must_use]
    pub const fn new(keys: Vec<SealingKey>) -> Self {
        Self(keys)
    }

    /// The sealing key, and the further ones that open; none if the process draws its own.
    pub fn split(&self) -> Option<(SealingKey, &[SealingKey])> {
        let (first, others) = self.0.split_first()?;
        Some((*first, others))
    }
}
