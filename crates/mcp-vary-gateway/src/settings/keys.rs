//! The keys that seal sessions and cursors.

use std::fmt;

/// The keys of a configuration file. The first one seals, all of them open.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Keys(Vec<[u8; 32]>);

/// Leaves out the keys.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({})", self.0.len())
    }
}

impl Keys {
    /// The first of `keys` seals, all of them open.
    #[must_use]
    pub const fn new(keys: Vec<[u8; 32]>) -> Self {
        Self(keys)
    }

    /// The sealing key, and the further ones that open; none if the process draws its own.
    pub fn split(&self) -> Option<([u8; 32], &[[u8; 32]])> {
        let (first, others) = self.0.split_first()?;
        Some((*first, others))
    }
}
