//! Opens, finds and deletes sessions. A bounded store has those that were used recently, by the seals of their ids.

use crate::id::{Nonce, Seal, SessionKeys, SessionTail, SplitId};
use crate::legacy_session::Session;
use crate::negotiated::{Negotiated, ServerVisibility};
use indexmap::IndexMap;
use mcp_vary_base::environment::Environment;
use mcp_vary_base::lock::ScopedLock;
use mcp_vary_settings::config::Config;
use mcp_vary_store::SessionKey;
use mcp_vary_wire::client_id::ClientId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, Weak};
use std::time::Duration;

/// The sessions of a gateway.
pub struct Sessions {
    keys: SessionKeys,
    environment: Environment,
    clients: AtomicU64,
    /// The tag of this replica.
    replica: u32,
    /// By the seals of the ids, so that requests of different sessions seldom wait for each other.
    shards: Box<[ScopedLock<SessionStore>]>,
}

// Leaves out keys and ids, which open sessions.
mcp_vary_base::debug_by_name!(Sessions);

impl Sessions {
    /// The first of `keys` seals, all of them open.
    pub fn new(
        config: &Config,
        keys: Vec<[u8; 32]>,
        visibility: Arc<dyn ServerVisibility>,
        replica: u32,
    ) -> Self {
        let mut first = [0; 8];
        (config.environment.random)(&mut first);
        Self {
            replica,
            keys: SessionKeys::new(keys, visibility),
            environment: config.environment,
            // Replicas that count together must not have the same client.
            clients: AtomicU64::new(u64::from_be_bytes(first) >> 2),
            shards: shards(config.limits.sessions),
        }
    }

    /// A new client, for a connection or request without a session.
    pub fn new_client(&self) -> ClientId {
        self.clients.fetch_add(1, Ordering::Relaxed)
    }

    /// Opens a session that lasts for `lifetime`, and seals its id.
    pub fn open(&self, fixed: Negotiated, lifetime: Duration) -> (String, Arc<Session>) {
        let mut nonce = [0; 16];
        (self.environment.random)(&mut nonce);
        // Neither the first part, which is the client, nor the last one, by which connections tell sessions apart.
        nonce[8..12].copy_from_slice(&self.replica.to_be_bytes());
        let expires = (self.environment.now)().saturating_add(lifetime.as_secs());
        let (id, shared, tail) = self.keys.seal(fixed, expires, nonce);
        let session = Session::with_id(shared, tail);
        if let Some(id) = SplitId::read(&id) {
            self.shard(id.seal).insert(*id.seal, Arc::clone(&session));
        }
        (id, session)
    }

    /// A session without an id: that of a stdio client.
    pub fn open_stdio(&self, fixed: Negotiated) -> Arc<Session> {
        let shared = Arc::new(self.keys.unsealed(fixed));
        Arc::new(Session::new(
            shared,
            SessionTail::unnamed(),
            self.new_client(),
        ))
    }

    /// The session that `id` seals; `None` if it is forged, expired or deleted.
    pub fn find(&self, id: &str) -> Option<Arc<Session>> {
        self.find_read(SplitId::read(id)?)
    }

    fn find_read(&self, id: SplitId<'_>) -> Option<Arc<Session>> {
        let placed = self.shard(id.seal).get(id);
        let session = match placed {
            Some(session) => session,
            None => self.find_sealed(id)?,
        };
        (session.tail.expires > (self.environment.now)()).then_some(session)
    }

    /// Finds a session that is not in the store, and adds it.
    fn find_sealed(&self, id: SplitId<'_>) -> Option<Arc<Session>> {
        let (shared, tail) = self.keys.open(id)?;
        if tail.expires <= (self.environment.now)() {
            return None;
        }
        let mut store = self.shard(id.seal);
        // Another request may have added it.
        if let Some(session) = store.get(id) {
            return Some(session);
        }
        if !store.admits(&tail) {
            return None;
        }
        let session = store
            .take_evicted(&tail.nonce)
            .unwrap_or_else(|| Session::with_id(shared, tail));
        store.insert(*id.seal, Arc::clone(&session));
        Some(session)
    }

    /// How many are found without opening their ids.
    pub fn known(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Removes expired sessions.
    pub fn sweep(&self) {
        let now = (self.environment.now)();
        for shard in &self.shards {
            shard.lock().sweep(now);
        }
    }

    /// Deletes the session that `id` seals. Returns what other replicas need to delete it; `None` if there was none.
    pub fn delete(&self, id: &str) -> Option<SessionKey> {
        let id = SplitId::read(id)?;
        let session = self.find_read(id)?;
        let now = (self.environment.now)();
        self.shard(id.seal).delete(id.seal, &session.tail, now);
        session.end();
        Some(session.tail.ended(id.seal))
    }

    /// Deletes a session that has ended at another replica. Returns its client; `None` if it is not a session.
    pub fn delete_ended(&self, ended: &SessionKey) -> Option<ClientId> {
        let (tail, seal) = SessionTail::of_ended(ended)?;
        let mut store = self.shard(&seal);
        let placed = store.entries.get(&seal).cloned();
        let session = placed.or_else(|| store.take_evicted(&tail.nonce));
        store.delete(&seal, &tail, (self.environment.now)());
        drop(store);
        if let Some(session) = session {
            session.end();
        }
        Some(tail.client())
    }

    /// What names the session that `id` seals to other replicas, if its request `request` does not run here.
    pub fn elsewhere(&self, id: &str, request: &str) -> Option<SessionKey> {
        let id = SplitId::read(id)?;
        let session = self.find_read(id)?;
        (!session.is_in_flight(request)).then(|| session.tail.ended(id.seal))
    }

    /// Cancels a request of a session, if it runs here.
    pub fn cancel(&self, key: &SessionKey, request: &str) {
        let Some((tail, seal)) = SessionTail::of_ended(key) else {
            return;
        };
        let store = self.shard(&seal);
        let placed = store.entries.get(&seal).cloned();
        let evicted = || store.evicted_in_use.get(&tail.nonce)?.upgrade();
        if let Some(session) = placed.or_else(evicted) {
            drop(store);
            session.cancel(request);
        }
    }

    /// Refuses sessions that expire no later than `expires`: other replicas have ended too many to remember.
    pub fn refuse_until(&self, expires: u64) {
        for shard in &self.shards {
            shard.lock().refuse_until(expires);
        }
    }

    /// The shard that has the sessions of this seal.
    fn shard(&self, seal: &Seal) -> MutexGuard<'_, SessionStore> {
        // Seals that lead to a session are HMACs in base64, so that clients cannot choose their shard.
        let letters = seal.iter().take(SHARD_LETTERS);
        let sum = letters.fold(0, |sum: usize, letter| sum + usize::from(*letter));
        self.shards[sum % self.shards.len()].lock()
    }
}

/// Stores with `limit` places together; one store when there are few.
fn shards(limit: usize) -> Box<[ScopedLock<SessionStore>]> {
    let count = (limit / MIN_PLACES).clamp(1, MAX_SHARDS);
    let new = |_| {
        ScopedLock::new(SessionStore::new(
            limit / count,
            REMEMBERED_DELETIONS / count,
        ))
    };
    (0..count).map(new).collect()
}

/// A shard has at least so many places, so that chance fills them evenly enough.
const MIN_PLACES: usize = 256;
const MAX_SHARDS: usize = 16;
/// The letters of a seal that decide its shard: their sum takes each remainder about as often.
const SHARD_LETTERS: usize = 8;
/// Deletions that are remembered, in all shards together.
const REMEMBERED_DELETIONS: usize = 100_000;

/// The sessions that a replica remembers.
///
/// # Properties
///
/// At most `limit` sessions are stored. An evicted one is found again by opening its id; only its log level is lost,
/// unless it is in use. A deleted session never opens again: if there are too many deletions to remember, ids that
/// expire no later than a forgotten one are refused.
#[derive(Debug)]
struct SessionStore {
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
    fn new(limit: usize, max_deletions: usize) -> Self {
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

    fn len(&self) -> usize {
        self.entries.len()
    }

    /// The session with exactly this id, if it is stored.
    fn get(&self, id: SplitId<'_>) -> Option<Arc<Session>> {
        let session = self.entries.get(id.seal)?;
        if !id.is(&session.shared, &session.tail) {
            return None;
        }
        session.last_used.store(true, Ordering::Relaxed);
        Some(Arc::clone(session))
    }

    /// Whether an opened id may lead to a session.
    fn admits(&self, tail: &SessionTail) -> bool {
        tail.expires > self.forgotten_deletions
            && !self.deleted.contains(&(tail.expires, tail.nonce))
    }

    /// The session with this nonce, if it was evicted while in use.
    fn take_evicted(&mut self, nonce: &Nonce) -> Option<Arc<Session>> {
        self.evicted_in_use.remove(nonce)?.upgrade()
    }

    /// Stores a session, and evicts another if the store is full.
    fn insert(&mut self, seal: Seal, session: Arc<Session>) {
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

    fn refuse_until(&mut self, expires: u64) {
        self.forgotten_deletions = self.forgotten_deletions.max(expires);
        let is_refused = |session: &Arc<Session>| session.tail.expires <= expires;
        let evicted = self.evicted_in_use.values().filter_map(Weak::upgrade);
        let stored = self
            .entries
            .extract_if(.., |_, session| is_refused(session));
        let refused = stored.map(|(_, session)| session);
        for session in refused.chain(evicted.filter(is_refused)) {
            session.end();
        }
    }

    /// Removes expired sessions.
    fn sweep(&mut self, now: u64) {
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
    fn delete(&mut self, seal: &Seal, tail: &SessionTail, now: u64) {
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
pub(super) mod tests {
    use super::*;
    use crate::id::tests::{AllServers, fixed};
    use mcp_vary_upstream::{Target, UpstreamConfig};

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    static NONCES: AtomicU64 = AtomicU64::new(0);

    /// Sessions with a store of `limit`. Tests that run at the same time share the nonces, of which none occurs twice.
    pub(crate) fn sessions(limit: usize) -> Sessions {
        let target = Target::command("none", []);
        let random = |bytes: &mut [u8]| {
            let nonce = NONCES.fetch_add(1, Ordering::Relaxed).to_le_bytes();
            bytes[..nonce.len()].copy_from_slice(&nonce);
        };
        let outside = Environment::new(|| 1_000, random);
        let mut config = Config::new(UpstreamConfig::new("none", target), outside);
        config.limits.sessions = limit;
        Sessions::new(&config, vec![[1; 32]], Arc::new(AllServers), 7)
    }

    fn places(sessions: &Sessions) -> usize {
        sessions.known()
    }

    #[test]
    fn a_session_is_found_by_its_id_alone() {
        let sessions = sessions(2);
        let (id, session) = sessions.open(fixed(&[]), DAY);
        assert!(Arc::ptr_eq(&session, &sessions.find(&id).unwrap()));
        for other in ["", "x", &id[1..], &id[..id.len() - 1], &format!("{id}A")] {
            assert!(sessions.find(other).is_none(), "{other}");
        }
    }

    #[test]
    fn many_sessions_are_spread_over_shards_and_found_there() {
        let sessions = sessions(2 * MIN_PLACES);
        assert_eq!(sessions.shards.len(), 2);
        let open = || sessions.open(fixed(&[]), DAY);
        let opened: Vec<_> = (0..200).map(|_| open()).collect();
        for (id, session) in &opened {
            assert!(Arc::ptr_eq(session, &sessions.find(id).unwrap()));
        }
        let placed = sessions.shards.iter().map(|shard| shard.lock().len());
        assert!(placed.clone().all(|placed| placed > 50));
        assert_eq!((placed.sum::<usize>(), sessions.known()), (200, 200));
        assert!(sessions.delete(&opened[0].0).is_some() && sessions.find(&opened[0].0).is_none());
        assert_eq!(sessions.known(), 199);
    }

    #[test]
    fn there_are_never_more_places_than_the_limit() {
        let sessions = sessions(4);
        let ids: Vec<_> = (0..9).map(|_| sessions.open(fixed(&[]), DAY).0).collect();
        assert_eq!(places(&sessions), 4);
        for id in &ids {
            assert!(sessions.find(id).is_some());
            assert_eq!(places(&sessions), 4);
        }
    }

    /// A session that is evicted loses its log level.
    #[test]
    fn a_session_that_is_found_again_and_again_keeps_its_place() {
        let sessions = sessions(4);
        let (id, session) = sessions.open(fixed(&[]), DAY);
        session.set_log_level(3);
        drop(session);
        for _ in 0..20 {
            assert_eq!(sessions.find(&id).unwrap().log_level(), Some(3));
            sessions.open(fixed(&[]), DAY);
        }
        for _ in 0..20 {
            sessions.open(fixed(&[]), DAY);
        }
        assert_eq!(sessions.find(&id).unwrap().log_level(), None);
    }

    /// What belongs to a client, such as a dedicated connection, still does when its session returns.
    #[test]
    fn a_session_that_comes_back_is_the_same_client() {
        let sessions = sessions(1);
        let (one, two) = (
            sessions.open(fixed(&[]), DAY),
            sessions.open(fixed(&[]), DAY),
        );
        let ((one, first), (two, second)) = (one, two);
        let clients = [first.client, second.client];
        drop((first, second));
        for _ in 0..3 {
            assert_eq!(sessions.find(&one).unwrap().client, clients[0]);
            assert_eq!(sessions.find(&two).unwrap().client, clients[1]);
        }
        assert_ne!(clients[0], clients[1]);
        assert!(!clients.contains(&sessions.new_client()));
    }

    /// Replicas that count together would take two clients for one.
    #[test]
    fn clients_without_a_session_have_other_numbers_in_other_processes() {
        let clients = [sessions(1), sessions(1)].map(|sessions| sessions.new_client());
        assert_ne!(clients[0], clients[1]);
    }

    /// Expired sessions do not return, so they are removed.
    #[test]
    fn sessions_that_have_expired_are_let_go() {
        let sessions = sessions(9);
        let opened = [0, 60, 120].map(|time| sessions.open(fixed(&[]), Duration::from_secs(time)));
        sessions.sweep();
        assert_eq!(places(&sessions), 2);
        let found = opened.map(|(id, _)| sessions.find(&id).is_some());
        assert_eq!(found, [false, true, true]);
        sessions.sweep();
        assert_eq!(sessions.known(), 2);
    }

    /// With more sessions in use than the store holds, all of them are still found.
    #[test]
    fn a_session_in_use_is_the_same_without_its_place() {
        let sessions = sessions(2);
        let busy: Vec<_> = (0..2).map(|_| sessions.open(fixed(&[]), DAY)).collect();
        for _ in 0..6 {
            let (other, _) = sessions.open(fixed(&[]), DAY);
            assert!(sessions.find(&other).is_some());
        }
        for (id, session) in &busy {
            assert!(Arc::ptr_eq(session, &sessions.find(id).unwrap()));
        }
        assert_eq!(places(&sessions), 2);
    }

    #[test]
    fn a_deleted_session_is_gone_with_and_without_a_place() {
        let sessions = sessions(2);
        for others in [0, 5] {
            let (id, session) = sessions.open(fixed(&[]), DAY);
            for _ in 0..others {
                sessions.open(fixed(&[]), DAY);
            }
            assert!(sessions.delete(&id).is_some());
            assert!(session.has_ended());
            assert!(sessions.find(&id).is_none() && sessions.delete(&id).is_none());
        }
    }

    /// Two replicas have the same keys.
    #[test]
    fn a_session_that_ended_elsewhere_is_gone_here_with_and_without_a_place() {
        let (here, elsewhere) = (sessions(9), sessions(9));
        for is_placed in [true, false] {
            let (id, _) = elsewhere.open(fixed(&[]), DAY);
            let (other, _) = elsewhere.open(fixed(&[]), DAY);
            let placed = is_placed.then(|| here.find(&id).unwrap());
            let ended = elsewhere.delete(&id).unwrap();
            let client = placed.as_ref().map(|session| session.client);
            assert_eq!(
                here.delete_ended(&ended),
                client.or(here.delete_ended(&ended))
            );
            assert!(placed.is_none_or(|session| session.has_ended()));
            assert!(here.find(&id).is_none());
            assert!(here.find(&other).is_some());
        }
    }

    #[test]
    fn sessions_that_may_have_ended_elsewhere_are_refused() {
        let sessions = sessions(9);
        let opened = [60, 61, 62].map(|time| sessions.open(fixed(&[]), Duration::from_secs(time)));
        sessions.refuse_until(1_061);
        let found = opened.each_ref().map(|(id, _)| sessions.find(id).is_some());
        assert_eq!(found, [false, false, true]);
        assert!(opened[0].1.has_ended() && !opened[2].1.has_ended());
    }

    #[test]
    fn a_session_in_use_is_refused_without_its_place_too() {
        let sessions = sessions(1);
        let (_, busy) = sessions.open(fixed(&[]), Duration::from_secs(60));
        sessions.open(fixed(&[]), DAY);
        sessions.refuse_until(1_060);
        assert!(busy.has_ended());
    }

    #[test]
    fn many_at_once_find_one_session() {
        let sessions = sessions(1);
        let (id, session) = sessions.open(fixed(&[]), DAY);
        drop(session);
        sessions.open(fixed(&[]), DAY);
        let found = std::thread::scope(|scope| {
            let finders: Vec<_> = (0..4).map(|_| scope.spawn(|| sessions.find(&id))).collect();
            let found = finders.into_iter().map(|finder| finder.join().unwrap());
            found.collect::<Vec<_>>()
        });
        let first = found[0].as_ref().unwrap();
        assert!(
            found
                .iter()
                .all(|other| Arc::ptr_eq(first, other.as_ref().unwrap()))
        );
    }

    const MAX_DELETIONS: usize = 1_000;

    fn numbered_tail(n: usize, expires: u64) -> SessionTail {
        let mut nonce = Nonce::default();
        nonce[..8].copy_from_slice(&n.to_be_bytes());
        crate::id::tests::tail(expires, nonce)
    }

    /// Deletions stay in force even if there are too many; the cost is that other ids are refused.
    #[test]
    fn no_deletion_is_ever_undone() {
        let mut store = SessionStore::new(1, MAX_DELETIONS);
        let deleted = |n: usize| numbered_tail(n, 2_000 + n as u64);
        for n in 0..MAX_DELETIONS + 9 {
            store.delete(&[0; _], &deleted(n), 1_000);
        }
        assert_eq!(store.deleted.len(), MAX_DELETIONS);
        for n in [0, 1, 8, 9, MAX_DELETIONS + 8] {
            assert!(!store.admits(&deleted(n)), "{n}");
        }
        assert!(!store.admits(&numbered_tail(usize::MAX, 2_008)));
        assert!(store.admits(&numbered_tail(usize::MAX, 2_009)));
    }

    #[test]
    fn a_deletion_is_remembered_until_it_would_have_expired() {
        let mut store = SessionStore::new(1, MAX_DELETIONS);
        for (n, now) in [(1, 1_000), (2, 1_999), (3, 2_000)] {
            store.delete(&[0; _], &numbered_tail(n, 2_000 + now), now);
        }
        assert_eq!(store.deleted.len(), 3);
        store.delete(&[0; _], &numbered_tail(4, 9_000), 4_000);
        assert_eq!(store.deleted.len(), 1);
    }
}
