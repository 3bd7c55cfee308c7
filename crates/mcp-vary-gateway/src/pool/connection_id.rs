//! The identity of a connection on which changes are announced.

use std::sync::atomic::{AtomicU64, Ordering};

/// Identifies a source of announced changes: one server as a class sees it, or a dedicated connection.
///
/// # Properties
///
/// Unique in the process: an id is never used again.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct ConnectionId(u64);

impl ConnectionId {
    pub(super) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}
