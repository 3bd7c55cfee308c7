//! The sessions that have ended, at this replica or another one.

use std::collections::BTreeSet;

/// A session as replicas name it to each other.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct SessionKey {
    /// When it would have expired, in seconds since 1970-01-01 UTC.
    pub expires: u64,
    /// What the gateway needs to find it again.
    pub id: [u8; ENDED_ID],
}

/// The bytes of the id of an ended session.
pub const ENDED_ID: usize = 60;

/// The most ended sessions that are in the store and in memory.
pub const MAX_ENDED: usize = 100_000;

/// All that this replica knows of, at most [`MAX_ENDED`]: an empty store gets them back.
#[derive(Debug, Default)]
pub(crate) struct EndedSessions {
    known: BTreeSet<SessionKey>,
    /// Those that ended here and that the store does not have yet.
    unwritten: BTreeSet<SessionKey>,
}

impl EndedSessions {
    /// Adds a session; returns whether it was unknown. Of too many, the one that expires first is forgotten.
    pub(crate) fn insert(&mut self, session: SessionKey, now: u64) -> bool {
        let is_expired = |first: &SessionKey| first.expires <= now;
        while self.known.first().is_some_and(is_expired) {
            self.known.pop_first();
        }
        let is_new = session.expires > now && self.known.insert(session);
        if self.known.len() > MAX_ENDED {
            self.known.pop_first();
        }
        is_new
    }

    /// Adds a session that ends at this replica.
    pub(crate) fn insert_unwritten(&mut self, session: SessionKey, now: u64) {
        self.insert(session, now);
        self.unwritten.insert(session);
        if self.unwritten.len() > MAX_ENDED {
            self.unwritten.pop_first();
        }
    }

    /// How many sessions it knows.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// The store has these sessions.
    pub(crate) fn note_written(&mut self, sessions: &[SessionKey]) {
        for session in sessions {
            self.unwritten.remove(session);
        }
    }

    /// The sessions that ended here and that the store does not have yet.
    pub(crate) fn unwritten(&self) -> Vec<SessionKey> {
        self.unwritten.iter().copied().collect()
    }

    /// Those that are not in `others`.
    pub(crate) fn without(&self, others: &BTreeSet<SessionKey>) -> Vec<SessionKey> {
        self.known.difference(others).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: usize, expires: u64) -> SessionKey {
        let mut id = [0; ENDED_ID];
        id[..8].copy_from_slice(&number.to_be_bytes());
        SessionKey { expires, id }
    }

    #[test]
    fn a_session_is_new_once_and_forgotten_when_it_would_have_expired() {
        let mut ended = EndedSessions::default();
        assert!(ended.insert(session(1, 100), 50));
        assert!(!ended.insert(session(1, 100), 50));
        assert!(!ended.insert(session(2, 50), 50));
        assert!(ended.insert(session(3, 200), 100));
        assert_eq!(ended.without(&BTreeSet::new()), [session(3, 200)]);
        assert!(ended.without(&[session(3, 200)].into()).is_empty());
    }

    #[test]
    fn of_too_many_those_that_expire_first_are_forgotten() {
        let mut ended = EndedSessions::default();
        for number in 0..=MAX_ENDED {
            ended.insert(session(number, 1_000 + number as u64), 1);
        }
        let known = ended.without(&BTreeSet::new());
        assert_eq!((known.len(), known[0].expires), (MAX_ENDED, 1_001));
    }

    #[test]
    fn a_session_that_ended_here_is_unwritten_until_the_store_has_it() {
        let mut ended = EndedSessions::default();
        ended.insert_unwritten(session(1, 100), 50);
        ended.insert(session(2, 100), 50);
        assert_eq!(ended.unwritten(), [session(1, 100)]);
        ended.note_written(&[session(1, 100)]);
        assert!(ended.unwritten().is_empty());
        assert!(!ended.insert(session(1, 100), 50));
    }
}
