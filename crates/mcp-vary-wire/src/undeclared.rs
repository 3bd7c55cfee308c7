//! Methods that a server has without declaring them.

use mcp_vary_base::lock::Lock;
use std::collections::BTreeMap;
use std::sync::MutexGuard;

/// The undeclared methods that a server received, and whether it has them.
#[derive(Debug, Default)]
pub struct UndeclaredMethods(Lock<BTreeMap<&'static str, bool>>);

impl UndeclaredMethods {
    /// Whether the server has the undeclared `method`; `None` until it was sent once.
    pub fn has(&self, method: &str) -> Option<bool> {
        self.lock().get(method).copied()
    }

    /// Remembers whether the server has `method`. That it has one is final.
    pub fn note(&self, method: &'static str, has: bool) {
        *self.lock().entry(method).or_default() |= has;
    }

    /// The methods that were sent, and whether the server has them.
    pub fn all(&self) -> BTreeMap<&'static str, bool> {
        self.lock().clone()
    }

    /// Forgets all: the server may be another.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, bool>> {
        self.0.lock()
    }
}
