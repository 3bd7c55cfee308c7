//! The keys that seal sessions and cursors.

use std::fmt;

/// The secrets of a configuration, as keys; the first seals, all of them open.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Keys(Vec<[u8; 32]>);

/// Without the keys.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({})", self.0.len())
    }
}

impl Keys {
    /// The first of `keys` seals, and all of them open.
    #[must_use]
    pub const fn new(keys: Vec<[u8; 32]>) -> Self {
        Self(keys)
    }

    /// The key that seals and those that open, too; none where the process draws its own.
    pub fn split(&self) -> Option<([u8; 32], &[[u8; 32]])> {
        let (first, others) = self.0.split_first()?;
        Some((*first, others))
    }
}
