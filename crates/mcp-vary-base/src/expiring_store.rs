//! A bounded store of values that expire.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Values by key, each for a limited time, with bounds on their number and size.
///
/// Used for results, tasks and the like. It has no lock and does not read the clock: `now` is an
/// argument, in any unit that is the same in all calls.
///
/// # Properties
///
/// - There are never more entries and never more bytes than the [`StoreLimits`] allow.
/// - If a limit would be exceeded, the oldest entry is removed: for the bytes that of the owner who has the most of
///   them, so that nobody takes the room of others, and else the oldest of all.
///   Reading an entry does not change its age. Replacing it does.
/// - An expired entry is never returned. It takes space until the next insertion or [`sweep`](Self::sweep).
#[derive(Debug)]
pub struct ExpiringStore<K, V> {
    limits: StoreLimits,
    entries: BTreeMap<K, Stored<V>>,
    /// Keys by age: the oldest first.
    by_age: BTreeMap<u64, K>,
    /// The entries of each owner, by age.
    by_owner: BTreeSet<(u64, u64)>,
    by_expiry: BTreeSet<(u64, u64)>,
    bytes: usize,
    /// The bytes of each owner who has any.
    bytes_of: BTreeMap<u64, usize>,
    /// The number of insertions so far.
    inserted: u64,
}

/// The limits of a store.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "built by the crates of this workspace"
)]
pub struct StoreLimits {
    /// The number of all entries.
    pub entries: usize,
    /// The total weight of all entries.
    pub bytes: usize,
}

/// A value to be stored.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "built by the crates of this workspace"
)]
pub struct Entry<V> {
    /// The stored value.
    pub value: V,
    /// The owner, whose entries make room for each other.
    pub owner: u64,
    /// Its weight.
    pub bytes: usize,
    /// The first moment at which it has expired.
    pub expires_at: u64,
}

#[derive(Debug)]
struct Stored<V> {
    entry: Entry<V>,
    /// Its place in the order of insertion.
    number: u64,
}

impl StoreLimits {
    /// No limits; a base for struct updates.
    pub const UNBOUNDED: Self = Self {
        entries: usize::MAX,
        bytes: usize::MAX,
    };
}

impl<V> Entry<V> {
    /// An entry without owner and weight that never expires.
    pub const fn new(value: V) -> Self {
        Self {
            value,
            owner: 0,
            bytes: 0,
            expires_at: u64::MAX,
        }
    }
}

impl<K: Clone + Ord, V> ExpiringStore<K, V> {
    /// An empty store.
    #[must_use]
    pub const fn new(limits: StoreLimits) -> Self {
        Self {
            limits,
            entries: BTreeMap::new(),
            by_age: BTreeMap::new(),
            by_owner: BTreeSet::new(),
            by_expiry: BTreeSet::new(),
            bytes: 0,
            bytes_of: BTreeMap::new(),
            inserted: 0,
        }
    }

    /// Stores an entry as the newest, and replaces the one with the same key. Returns `false` if it is larger than the
    /// whole store; then nothing is stored under its key.
    ///
    /// Removes expired entries, and as many of the oldest as necessary.
    pub fn insert(&mut self, key: K, entry: Entry<V>, now: u64) -> bool {
        self.remove(&key);
        self.sweep(now);
        let limits = self.limits;
        if entry.bytes > limits.bytes || limits.entries == 0 {
            return false;
        }
        let owner = entry.owner;
        while self.len() >= limits.entries {
            self.remove_oldest();
        }
        while self.bytes > limits.bytes - entry.bytes {
            self.remove_oldest_of_largest();
        }
        self.inserted += 1;
        let number = self.inserted;
        self.add_bytes(owner, entry.bytes);
        self.by_age.insert(number, key.clone());
        self.by_owner.insert((owner, number));
        self.by_expiry.insert((entry.expires_at, number));
        self.entries.insert(key, Stored { entry, number });
        true
    }

    /// The value of `key`, unless it has expired.
    pub fn get<Q>(&self, key: &Q, now: u64) -> Option<&V>
    where
        K: std::borrow::Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let stored = self.entries.get(key)?;
        (stored.entry.expires_at > now).then_some(&stored.entry.value)
    }

    /// Like [`get`](Self::get), but mutable. The weight of the entry does not change.
    pub fn get_mut<Q>(&mut self, key: &Q, now: u64) -> Option<&mut V>
    where
        K: std::borrow::Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let stored = self.entries.get_mut(key)?;
        (stored.entry.expires_at > now).then_some(&mut stored.entry.value)
    }

    /// Sets the weight of an entry that has grown or shrunk. Removes the oldest entries, possibly this one, until all
    /// fit. Returns `false` and changes nothing if the entry does not exist, or would be larger than the whole store.
    pub fn set_bytes<Q>(&mut self, key: &Q, bytes: usize) -> bool
    where
        K: std::borrow::Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let limit = self.limits.bytes;
        if bytes > limit {
            return false;
        }
        let Some(stored) = self.entries.get_mut(key) else {
            return false;
        };
        let before = std::mem::replace(&mut stored.entry.bytes, bytes);
        let owner = stored.entry.owner;
        self.remove_bytes(owner, before);
        self.add_bytes(owner, bytes);
        while self.bytes > limit {
            self.remove_oldest_of_largest();
        }
        true
    }

    /// Removes an entry, whether it has expired or not.
    pub fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        K: std::borrow::Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let Stored { entry, number } = self.entries.remove(key)?;
        self.by_age.remove(&number);
        self.by_owner.remove(&(entry.owner, number));
        self.by_expiry.remove(&(entry.expires_at, number));
        self.remove_bytes(entry.owner, entry.bytes);
        Some(entry.value)
    }

    /// Removes all entries that have expired.
    pub fn sweep(&mut self, now: u64) {
        while let Some((expires_at, number)) = self.by_expiry.first().copied()
            && expires_at <= now
        {
            self.remove_number(number);
        }
    }

    /// The unexpired keys and values of one owner, the oldest first.
    pub fn of_owner(&self, owner: u64, now: u64) -> impl Iterator<Item = (&K, &V)> {
        let numbers = self.by_owner.range((owner, 0)..=(owner, u64::MAX));
        numbers.filter_map(move |(_, number)| {
            let key = self.by_age.get(number)?;
            Some((key, self.get(key, now)?))
        })
    }

    /// The number of entries that take space, including those that have expired since the last insertion or sweep.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the store contains no entries, not even expired ones.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The weight of all entries.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    fn add_bytes(&mut self, owner: u64, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        if bytes > 0 {
            *self.bytes_of.entry(owner).or_default() += bytes;
        }
    }

    fn remove_bytes(&mut self, owner: u64, bytes: usize) {
        self.bytes -= bytes;
        if let Some(known) = self.bytes_of.get_mut(&owner) {
            *known -= bytes;
            if *known == 0 {
                self.bytes_of.remove(&owner);
            }
        }
    }

    /// Removes the oldest entry of the owner who has the most bytes.
    fn remove_oldest_of_largest(&mut self) {
        // Of several, the one with the oldest entry.
        let oldest_of = |owner| self.by_owner.range((owner, 0)..).next().map(|next| next.1);
        let owners = self.bytes_of.iter();
        let greatest = owners.max_by_key(|(owner, bytes)| (**bytes, Reverse(oldest_of(**owner))));
        let largest = greatest.map(|(owner, _)| *owner);
        self.remove_oldest_of(largest.unwrap_or_default());
    }

    fn remove_oldest(&mut self) {
        let oldest = self.by_age.first_key_value().map(|(number, _)| *number);
        self.remove_number(oldest.unwrap_or_default());
    }

    fn remove_oldest_of(&mut self, owner: u64) {
        let of_owner = self.by_owner.range((owner, 0)..=(owner, u64::MAX)).next();
        let oldest = of_owner.map(|(_, number)| *number);
        self.remove_number(oldest.unwrap_or_default());
    }

    fn remove_number(&mut self, number: u64) {
        if let Some(key) = self.by_age.get(&number).cloned() {
            self.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests;
