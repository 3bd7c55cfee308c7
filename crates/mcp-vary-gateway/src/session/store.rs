//! Recently used sessions, found by the seals of their ids, and the deletions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use indexmap::IndexMap;

use super::id::{Nonce, Seal, SessionTail, SplitId};
use super::legacy_session::Session;

/// The sessions that a replica remembers.
///
/// # Properties
///
/// At most `limit` sessions are stored. An evicted one is found again by opening its id; only its log level is lost,
/// unless it is in use. A deleted session never opens again: if there are too many deletions to remember, ids that
/// expire no later than a forgotten one are refused.
#[derive(Debug)]
pub(super) struct SessionStore {
    limit: usize,
    /// How many deletions are remembered.
    max_deletions: usize,
    entries: IndexMap<Seal, Arc<Session>>,
    /// The next candidate for eviction.
    clock_hand: usize,
    /// Evicted sessions with an open request or stream.
    evicted_in_use: BTreeMap<Nonce, Weak<Session>>,
    /// By the time when they would have expired.
    deleted: BTreeSet<(u64, Nonce)>,
    /// The latest expiry of a forgotten deletion.
    forgotten_deletions: u64,
    /// No stored session expires earlier.
    earliest: u64,
}

/// How many sessions are probed for an unused one.
const MAX_PROBES: usize = 64;

impl SessionStore {
    pub(super) fn new(limit: usize, max_deletions: usize) -> Self {
        Self {
            limit: limit.max(1),
            max_deletions,
            entries: IndexMap::new(),
            clock_hand: 0,
            evicted_in_use: BTreeMap::new(),
            deleted: BTreeSet::new(),
            forgotten_deletions: 0,
            earliest: u64::MAX,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The session with exactly this id, if it is stored.
    pub(super) fn get(&self, id: SplitId<'_>) -> Option<Arc<Session>> {
        let session = self.entries.get(id.seal)?;
        if !id.is(&session.shared, &session.tail) {
            return None;
        }
        session.last_used.store(true, Ordering::Relaxed);
        Some(Arc::clone(session))
    }

    /// Whether an opened id may lead to a session.
    pub(super) fn admits(&self, tail: &SessionTail) -> bool {
        tail.expires > self.forgotten_deletions
            && !self.deleted.contains(&(tail.expires, tail.nonce))
    }

    /// The session with this nonce, if it was evicted while in use.
    pub(super) fn take_evicted(&mut self, nonce: &Nonce) -> Option<Arc<Session>> {
        self.evicted_in_use.remove(nonce)?.upgrade()
    }

    /// Stores a session, and evicts another if the store is full.
    pub(super) fn insert(&mut self, seal: Seal, session: Arc<Session>) {
        let is_full = self.entries.len() >= self.limit;
        let evicted = is_full.then(|| self.victim());
        self.earliest = self.earliest.min(session.tail.expires);
        self.entries.insert(seal, session);
        // The last one, which is the newest, moves to the free index.
        let lost = evicted.and_then(|at| self.entries.swap_remove_index(at));
        if let Some((_, session)) = lost
            && Arc::strong_count(&session) > 1
        {
            self.evict(&session);
        }
    }

    /// Removes expired sessions.
    pub(super) fn sweep(&mut self, now: u64) {
        if now < self.earliest {
            return;
        }
        self.entries.retain(|_, session| session.tail.expires > now);
        let expiries = self.entries.values().map(|session| session.tail.expires);
        self.earliest = expiries.min().unwrap_or(u64::MAX);
        // Otherwise the capacity would never shrink.
        self.entries.shrink_to(2 * self.entries.len());
    }

    fn evict(&mut self, session: &Arc<Session>) {
        if self.evicted_in_use.len() >= self.limit {
            self.evicted_in_use
                .retain(|_, session| session.strong_count() > 0);
        }
        if self.evicted_in_use.len() >= self.limit {
            self.evicted_in_use.pop_first();
        }
        let nonce = session.tail.nonce;
        self.evicted_in_use.insert(nonce, Arc::downgrade(session));
    }

    /// The index of a session that is not in use and was not used since the last probe, if one of those probed is such.
    fn victim(&mut self) -> usize {
        for _ in 0..MAX_PROBES {
            let (at, session) = self.next();
            let found = session.last_used.swap(false, Ordering::Relaxed);
            if !found && Arc::strong_count(session) == 1 {
                return at;
            }
        }
        self.next().0
    }

    fn next(&mut self) -> (usize, &Arc<Session>) {
        let at = self.clock_hand % self.entries.len();
        self.clock_hand = at + 1;
        (at, &self.entries[at])
    }

    /// Removes a session for good, and remembers that until its id expires.
    pub(super) fn delete(&mut self, seal: &Seal, tail: &SessionTail, now: u64) {
        self.entries.swap_remove(seal);
        while self
            .deleted
            .first()
            .is_some_and(|(expires, _)| *expires <= now)
        {
            self.deleted.pop_first();
        }
        if self.deleted.len() >= self.max_deletions
            && let Some((expires, _)) = self.deleted.pop_first()
        {
            self.forgotten_deletions = expires;
        }
        self.deleted.insert((tail.expires, tail.nonce));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::id;

    const MAX_DELETIONS: usize = 1_000;

    fn tail(n: usize, expires: u64) -> SessionTail {
        let mut nonce = Nonce::default();
        nonce[..8].copy_from_slice(&n.to_be_bytes());
        id::tests::tail(expires, nonce)
    }

    /// Deletions stay in force even if there are too many; the cost is that other ids are refused.
    #[test]
    fn no_deletion_is_ever_undone() {
        let mut store = SessionStore::new(1, MAX_DELETIONS);
        let deleted = |n: usize| tail(n, 2_000 + n as u64);
        for n in 0..MAX_DELETIONS + 9 {
            store.delete(&[0; _], &deleted(n), 1_000);
        }
        assert_eq!(store.deleted.len(), MAX_DELETIONS);
        for n in [0, 1, 8, 9, MAX_DELETIONS + 8] {
            assert!(!store.admits(&deleted(n)), "{n}");
        }
        assert!(!store.admits(&tail(usize::MAX, 2_008)));
        assert!(store.admits(&tail(usize::MAX, 2_009)));
    }

    #[test]
    fn a_deletion_is_remembered_until_it_would_have_expired() {
        let mut store = SessionStore::new(1, MAX_DELETIONS);
        for (n, now) in [(1, 1_000), (2, 1_999), (3, 2_000)] {
            store.delete(&[0; _], &tail(n, 2_000 + now), now);
        }
        assert_eq!(store.deleted.len(), 3);
        store.delete(&[0; _], &tail(4, 9_000), 4_000);
        assert_eq!(store.deleted.len(), 1);
    }
}
