//! The identities of connections and catalogs on which changes are announced.

use std::sync::atomic::{AtomicU64, Ordering};

/// Identifies a source of announced changes: one server as a class sees it, or a dedicated connection.
///
/// # Properties
///
/// Unique in the process: an id is never used again.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct ConnectionId(u64);

/// Identifies a catalog; unique as a [`ConnectionId`] is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CatalogId(u64);

impl ConnectionId {
    pub(crate) fn next() -> Self {
        Self(next_number())
    }
}

impl CatalogId {
    pub(super) fn next() -> Self {
        Self(next_number())
    }
}

fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
