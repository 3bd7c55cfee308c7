//! Which questions of tasks clients are being asked, and which they have answered.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};

use super::TaskKey;

/// The questions of tasks, so that each is asked once, however many wait for the result.
///
/// > Claims are arbitrary identifiers for matching requests to responses, unique over the lifetime of the task.
/// > (SEP-2663)
///
/// # Properties
///
/// Bounded: those that are asked by what clients are asked at once; of those that were answered the oldest are forgotten.
#[derive(Debug, Default)]
pub(crate) struct InputClaims(Mutex<ClaimTable>);

#[derive(Debug, Default)]
struct ClaimTable {
    /// Whether it was answered.
    known: BTreeMap<Digest, bool>,
    /// Those that were answered, from the oldest on.
    answered: VecDeque<Digest>,
}

/// Of a server, a task of it, and the key of one question.
type Digest = [u8; 32];

/// Answered questions that are remembered.
const MAX_CLAIMS: usize = 4096;

/// The right to ask one question; given back when this is dropped before it was answered.
#[derive(Debug)]
pub(crate) struct InputClaim {
    claims: Arc<InputClaims>,
    digest: Digest,
    /// What the server calls the question.
    pub(crate) key: String,
}

impl InputClaims {
    /// The right to ask the question `key` of a task; none while somebody else has it, and when it was answered.
    pub(crate) fn claim(
        self: &Arc<Self>,
        (server, own): &TaskKey,
        key: &str,
    ) -> Option<InputClaim> {
        let mut hash = Sha256::new();
        for part in [server, own, key] {
            hash.update(part.len().to_le_bytes());
            hash.update(part.as_bytes());
        }
        let digest = hash.finalize().into();
        let mut all = self.lock();
        if all.known.contains_key(&digest) {
            return None;
        }
        all.known.insert(digest, false);
        Some(InputClaim {
            claims: Arc::clone(self),
            digest,
            key: key.to_owned(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, ClaimTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InputClaim {
    /// The server has the answer.
    pub(crate) fn settle(self) {
        let mut all = self.claims.lock();
        all.known.insert(self.digest, true);
        all.answered.push_back(self.digest);
        if all.answered.len() > MAX_CLAIMS
            && let Some(oldest) = all.answered.pop_front()
        {
            all.known.remove(&oldest);
        }
    }
}

impl Drop for InputClaim {
    fn drop(&mut self) {
        let mut all = self.claims.lock();
        if all.known.get(&self.digest) == Some(&false) {
            all.known.remove(&self.digest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(server: &str, own: &str) -> TaskKey {
        (server.into(), own.into())
    }

    #[test]
    fn a_question_is_asked_by_one_and_answered_once() {
        let claims = Arc::new(InputClaims::default());
        let task = key("s", "1");
        let first = claims.claim(&task, "a").unwrap();
        assert!(claims.claim(&task, "a").is_none());
        assert!(claims.claim(&task, "b").is_some() && claims.claim(&key("s", "2"), "a").is_some());
        assert!(
            claims.claim(&key("s1", ""), "a").is_some(),
            "no other parts"
        );
        drop(first);
        claims.claim(&task, "a").unwrap().settle();
        assert!(claims.claim(&task, "a").is_none());
        assert_eq!(claims.lock().known.len(), 1);
    }

    #[test]
    fn the_oldest_answers_are_forgotten() {
        let claims = Arc::new(InputClaims::default());
        let task = key("s", "1");
        for question in 0..=MAX_CLAIMS {
            claims.claim(&task, &question.to_string()).unwrap().settle();
        }
        assert_eq!(claims.lock().known.len(), MAX_CLAIMS);
        assert!(claims.claim(&task, "0").is_some() && claims.claim(&task, "1").is_none());
    }
}
