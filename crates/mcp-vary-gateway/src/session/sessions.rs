//! Opens, finds and deletes sessions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use mcp_vary_base::environment::Environment;
use mcp_vary_base::lock::ScopedLock;
use mcp_vary_wire::client_id::ClientId;

use super::id::{Seal, SessionKeys, SessionTail, SplitId};
use super::legacy_session::Session;
use super::negotiated::{Negotiated, ServerVisibility};
use crate::session::store::SessionStore;
use crate::settings::config::Config;

/// The sessions of a gateway.
pub(crate) struct Sessions {
    keys: SessionKeys,
    environment: Environment,
    clients: AtomicU64,
    /// By the seals of the ids, so that requests of different sessions seldom wait for each other.
    shards: Box<[ScopedLock<SessionStore>]>,
}

/// Leaves out keys and ids, which open sessions.
impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions")
            .field("places", &self.known())
            .finish_non_exhaustive()
    }
}

impl Sessions {
    /// The first of `keys` seals, all of them open.
    pub(crate) fn new(
        config: &Config,
        keys: Vec<[u8; 32]>,
        visibility: Arc<dyn ServerVisibility>,
    ) -> Self {
        Self {
            keys: SessionKeys::new(keys, visibility),
            environment: config.environment,
            clients: AtomicU64::new(0),
            shards: shards(config.limits.sessions),
        }
    }

    /// A new client, for a connection or request without a session.
    pub(crate) fn new_client(&self) -> ClientId {
        self.clients.fetch_add(1, Ordering::Relaxed)
    }

    /// Opens a session that lasts for `lifetime`, and seals its id.
    pub(crate) fn open(&self, fixed: Negotiated, lifetime: Duration) -> (String, Arc<Session>) {
        let mut nonce = [0; 16];
        (self.environment.random)(&mut nonce);
        let expires = (self.environment.now)().saturating_add(lifetime.as_secs());
        let (id, shared, tail) = self.keys.seal(fixed, expires, nonce);
        let session = Session::with_id(shared, tail);
        if let Some(id) = SplitId::read(&id) {
            self.shard(id.seal).insert(*id.seal, Arc::clone(&session));
        }
        (id, session)
    }

    /// A session without an id: that of a stdio client.
    pub(crate) fn open_stdio(&self, fixed: Negotiated) -> Arc<Session> {
        let shared = Arc::new(self.keys.unsealed(fixed));
        Arc::new(Session::new(
            shared,
            SessionTail::unnamed(),
            self.new_client(),
        ))
    }

    /// The session that `id` seals; `None` if it is forged, expired or deleted.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<Session>> {
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
    pub(crate) fn known(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Removes expired sessions.
    pub(crate) fn sweep(&self) {
        let now = (self.environment.now)();
        for shard in &self.shards {
            shard.lock().sweep(now);
        }
    }

    /// Deletes the session that `id` seals. Returns whether there was one.
    pub(crate) fn delete(&self, id: &str) -> bool {
        let Some(id) = SplitId::read(id) else {
            return false;
        };
        let Some(session) = self.find_read(id) else {
            return false;
        };
        let now = (self.environment.now)();
        self.shard(id.seal).delete(id.seal, &session.tail, now);
        session.end();
        true
    }

    /// The shard that has the sessions of this seal.
    fn shard(&self, seal: &Seal) -> MutexGuard<'_, SessionStore> {
        // Seals that lead to a session are HMACs, so that clients cannot choose their shard.
        let sum = seal
            .iter()
            .fold(0, |sum: usize, byte| sum + usize::from(*byte));
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
/// Deletions that are remembered, in all shards together.
const REMEMBERED_DELETIONS: usize = 100_000;

#[cfg(test)]
pub(super) mod tests {
    use super::super::id::tests::{AllServers, fixed};
    use super::*;
    use mcp_vary_upstream::{Target, UpstreamConfig};

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    static NONCES: AtomicU64 = AtomicU64::new(0);

    /// Sessions with a store of `limit`. Tests that run at the same time share the nonces, of which none occurs twice.
    pub(in super::super) fn sessions(limit: usize) -> Sessions {
        let target = Target::command("none", []);
        let random = |bytes: &mut [u8]| {
            let nonce = NONCES.fetch_add(1, Ordering::Relaxed).to_le_bytes();
            bytes[..nonce.len()].copy_from_slice(&nonce);
        };
        let outside = Environment::new(|| 1_000, random);
        let mut config = Config::new(UpstreamConfig::new("none", target), outside);
        config.limits.sessions = limit;
        Sessions::new(&config, vec![[1; 32]], Arc::new(AllServers))
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
        assert!(sessions.delete(&opened[0].0) && sessions.find(&opened[0].0).is_none());
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
            assert!(sessions.delete(&id));
            assert!(session.has_ended());
            assert!(sessions.find(&id).is_none() && !sessions.delete(&id));
        }
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
}
