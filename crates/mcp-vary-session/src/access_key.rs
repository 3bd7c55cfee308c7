//! An access class as a part of keys.

use std::cmp::Ordering;
use std::sync::Arc;

use mcp_vary_access::AccessClass;

/// An access class, ordered by its rules: two of one configuration are equal if their rules are.
#[derive(Clone, Debug)]
pub struct AccessKey(pub Arc<AccessClass>);

impl PartialEq for AccessKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for AccessKey {}

impl PartialOrd for AccessKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for AccessKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.rules().cmp(&other.0.rules())
    }
}
