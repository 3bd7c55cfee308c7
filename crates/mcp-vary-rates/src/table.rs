//! The bounded table of a limit: when each bucket is full again.

use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use governor::nanos::Nanos;
use governor::state::StateStore;
use indexmap::IndexMap;
use mcp_vary_base::lock::ScopedLock;

/// The states of a limit's buckets.
///
/// A state is governor's theoretical arrival time: the moment at which the bucket has its whole burst again. The later
/// it is, the more of its rate the bucket has used; buckets that are blocked have the latest ones. So a full table
/// forgets the earliest.
#[derive(Debug)]
pub(crate) struct Table<K> {
    /// Keyed at random, so that clients cannot choose their shard.
    hasher: RandomState,
    shards: Box<[ScopedLock<Shard<K>>]>,
    shard_capacity: usize,
    /// Whether it ever had a bucket: a table of refusals has none in most processes, and is asked about each request.
    was_used: AtomicBool,
}

type Shard<K> = IndexMap<K, Nanos, RandomState>;

/// A shard is searched when it is full, so it must be small.
const SHARD: usize = 1024;

impl<K: Clone + Eq + Hash> Table<K> {
    /// An empty table for `capacity` buckets, rounded up to a multiple of the number of shards.
    pub(crate) fn new(capacity: usize) -> Self {
        let shards = capacity.div_ceil(SHARD).max(1);
        let hasher = RandomState::new();
        let shard = || ScopedLock::new(IndexMap::with_hasher(hasher.clone()));
        Self {
            shards: (0..shards).map(|_| shard()).collect(),
            hasher,
            shard_capacity: capacity.div_ceil(shards).max(1),
            was_used: AtomicBool::new(false),
        }
    }

    fn shard(&self, key: &K) -> Option<&ScopedLock<Shard<K>>> {
        let shards = u64::try_from(self.shards.len()).unwrap_or(1);
        // The map uses the low bits of the same hash; the shard uses the high ones.
        let index = (self.hasher.hash_one(key) >> 32) % shards;
        self.shards.get(usize::try_from(index).unwrap_or(0))
    }

    /// Gives back an operation that was counted: `interval` is the time that it takes to become available again.
    pub(crate) fn refund(&self, key: &K, interval: Nanos) {
        let Some(shard) = self.shard(key) else { return };
        if let Some(full_at) = shard.lock().get_mut(key) {
            *full_at = full_at.saturating_sub(interval);
        }
    }

    /// Lets a bucket be full again at this time, unless it is later already.
    pub(crate) fn delay(&self, key: &K, full_at: Nanos) {
        let Some(shard) = self.shard(key) else { return };
        let mut entries = shard.lock();
        let known = entries.get(key).copied();
        if known.is_none_or(|known| known < full_at) {
            self.insert(&mut entries, key, full_at);
        }
    }

    /// When the bucket is full again; `None` if it is not in the table and therefore full.
    pub(crate) fn full_at(&self, key: &K) -> Option<Nanos> {
        if !self.was_used.load(Ordering::Acquire) {
            return None;
        }
        self.shard(key)?.lock().get(key).copied()
    }

    /// The number of buckets in the table.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    fn insert(&self, shard: &mut Shard<K>, key: &K, full_at: Nanos) {
        if let Some(known) = shard.get_mut(key) {
            *known = full_at;
            return;
        }
        if shard.len() >= self.shard_capacity {
            let earliest = shard.values().enumerate().min_by_key(|(_, at)| **at);
            if let Some(index) = earliest.map(|(index, _)| index) {
                shard.swap_remove_index(index);
            }
        }
        shard.insert(key.clone(), full_at);
        self.was_used.store(true, Ordering::Release);
    }
}

/// A table that governor and the limiter share.
#[derive(Debug)]
pub(crate) struct SharedTable<K>(pub(crate) Arc<Table<K>>);

impl<K: Clone + Eq + Hash> StateStore for SharedTable<K> {
    type Key = K;

    fn measure_and_replace<T, F, E>(&self, key: &K, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let Some(shard) = self.0.shard(key) else {
            return decide(None).map(|(outcome, _)| outcome);
        };
        let mut entries = shard.lock();
        let (outcome, full_at) = decide(entries.get(key).copied())?;
        self.0.insert(&mut entries, key, full_at);
        Ok(outcome)
    }
}
