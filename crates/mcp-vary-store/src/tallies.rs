//! What a store has to know of tallies that replicas share.

use std::sync::Arc;

use arc_swap::ArcSwap;
use mcp_vary_base::log_backoff::LogBackoff;

/// The bytes of a [`TallyRecord`].
pub const TALLY_RECORD: usize = 65;

/// What one replica counted of one client: its place, of which the last 8 bytes are the source that counted, and
/// values. A later record of the same place replaces an earlier one.
pub type TallyRecord = [u8; TALLY_RECORD];

/// A tally that replicas share.
pub trait SharedTally: Send + Sync {
    /// The same at all replicas that count the same.
    fn id(&self) -> u64;

    /// The source of the records that are counted here.
    fn source(&self) -> u64;

    /// Takes over a record, which may have come before, or be older than the one that is known.
    fn merge(&self, record: &TallyRecord);

    /// Records that the store may not have, at most so many.
    fn unwritten(&self, most: usize) -> Vec<TallyRecord>;

    /// The store has this record.
    fn note_written(&self, record: &TallyRecord);

    /// The store may have no records.
    fn note_lost(&self);
}

/// The tallies of a gateway.
#[derive(Default)]
pub(crate) struct Tallies {
    pub(crate) all: ArcSwap<Vec<Arc<dyn SharedTally>>>,
    pub(crate) failures: LogBackoff,
}
